"""`certify log`: good logs whole and in parts, every corruption, rollbacks, forks, shards, and what a state may be."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from certification import auditing, chunks
from certification.chunks import LogChunk, named_keys, verify_chunk
from certification.log import StateFile, main
from certification.sources import Folder
from certification.tree import Tree, read_accepted, read_bundle
from rgs.core.errors import VerificationError
from rgs.core.statements import KINDS, PAYLOAD_BYTES_MAX, Ed25519Signer, Envelope, format_canonical, format_envelope
from rgs.core.statements.envelope import pre_authentication_encoding
from rgs.core.tlog.merkle import leaf_hash
from rgs.core.tlog.note import ED25519, format_vkey, note_key
from rgs.core.tlog.policies import parse_policy
from rgs.core.tlog.tiles import TILE_WIDTH
from tests.support.log.logs import (
    CORRUPTIONS,
    SIZE,
    SIZES,
    STRANGER,
    VKEY,
    Corruption,
    make_entries,
    make_log,
    roll_back,
)
from tests.support.records.audited import POLICY, POLICY_OWN, SEEN_S, Case, a_round, entries_of, witnessed
from tests.support.records.factory import RecordFactory

VERIFIED = parse_policy(f"log {VKEY}\nquorum none\n".encode())


@pytest.fixture
def case(tmp_path: Path) -> Case:
    """A server with two ended sessions, one that is open with its round, a lost instance and a void."""
    factory = RecordFactory("audit")
    first = factory.start("node-1-b1-w0")
    second = factory.start("node-2-b1-w0", "node-2")
    for worker in (first, second):
        player = factory.open(worker)
        factory.buy(worker, player, 50_000)
        for _ in range(4):
            a_round(factory, worker, player)
        if worker is second:
            factory.deal(worker, [player], {"ante": 100})
            factory.void(worker, player)
        factory.end_participation(worker, player)
        factory.close(worker, player)
    factory.lose(first, second)
    player = factory.open(first)
    factory.buy(first, player, 50_000)
    a_round(factory, first, player)
    factory.deal(first, [player], {"ante": 100})
    case = Case(tmp_path, factory)
    case.publish()
    return case


def go_on(case: Case, rounds: int = 3, time_s: int = SEEN_S) -> None:
    """A new node, a new session; seen at that time."""
    factory, node = case.factory, f"node-{len(case.factory.lines)}"
    worker = factory.start(f"{node}-b1-w0", node)
    player = factory.open(worker)
    factory.buy(worker, player, 50_000)
    for _ in range(rounds):
        a_round(factory, worker, player)
    case.publish(time_s=time_s)


# --- good logs --------------------------------------------------------------------------------------------------------


def test_a_good_log_whole(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    page = case.folder / "report.html"
    assert case.audit("--html", str(page)) == 0
    assert case.report["verdict"] == "PASSED WITNESSED ANCHORED"
    summary = case.report["summary"]
    assert [summary[f"rounds_{name}"] for name in ("verified", "failed", "open")] == [10, 0, 1]
    assert case.report["exposure"] == [{"node": "node-2", "day": case.report["newest_statement"][:10], "draws": 8}]
    (void,) = case.report["voids"]
    assert void["approved_by"] == "admin-1, admin-2"
    assert void["returned_minor"] == void["staked_minor"]
    assert [(row["approved_by"], row["voids"]) for row in case.report["voids_by_admin"]] == [
        ("admin-1", 1),
        ("admin-2", 1),
    ]
    assert case.report["overdue"] == []
    assert case.report["speed"]["entries"] == len(case.factory.lines)
    assert "PASSED WITNESSED ANCHORED" in page.read_text()
    assert "admin-1, admin-2" in page.read_text()
    assert case.audit(root=False) == 0
    assert case.report["verdict"] == "PASSED WITNESSED UNANCHORED"
    assert "records per CPU second" in capsys.readouterr().out


def test_each_run_reads_what_is_new_and_comes_to_the_same(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = entries_of(case.factory)
    for size in (0, 1, 5, 17, 18, 40, len(entries)):
        case.publish(entries[:size])
        assert case.audit() == 0, case.report["failures"]
        assert case.report.get("speed", {"entries": 0})["entries"] <= size
    last = {**case.report, "speed": None, "checkpoint": None}
    go_on(case, 120)  # across the boundary of a bundle
    assert case.audit() == 0, case.report["failures"]
    assert case.report["speed"]["entries"] == len(case.factory.lines) - len(entries)
    in_parts = case.report
    assert case.audit("--whole") == 0
    for document in (in_parts, case.report):
        document.pop("speed")
    in_parts["checkpoint"]["verified_before"] = case.report["checkpoint"]["verified_before"]
    assert in_parts == case.report != last
    case.state.unlink()
    assert case.audit() == 0
    assert case.report["summary"] == in_parts["summary"]


def test_a_run_that_was_interrupted_goes_on(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    assert case.audit() == 0
    go_on(case, 300)
    monkeypatch.setattr(auditing, "SAVE_ENTRIES", 10)
    monkeypatch.setattr(auditing, "CHUNK_BUNDLES", 1)
    read: list[int] = []
    real = vars(auditing)["read_bundle"]

    def stop(source: Folder, index: int, size: int) -> tuple[bytes, list[bytes]]:
        read.append(index)
        if len(read) == 3:
            raise KeyboardInterrupt
        found: tuple[bytes, list[bytes]] = real(source, index, size)
        return found

    monkeypatch.setattr(auditing, "read_bundle", stop)
    with pytest.raises(KeyboardInterrupt):
        case.audit()
    assert case.audit() == 0
    assert read == [0, 1, 2, 2]
    assert case.report["summary"]["rounds_verified"] == 310
    assert not (case.folder / "state.part").exists()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.slow
def test_trees_of_all_sizes(tmp_path: Path, size: int) -> None:
    entries = make_entries(size)
    checkpoint = make_log(tmp_path / "log", entries)
    source, tree = Folder(tmp_path / "log"), Tree()
    assert not list(tree.grow(source, list(map(leaf_hash, entries)))) + list(tree.finish(source, checkpoint))


def test_a_signed_payload_counts_as_formed_only_in_the_one_form_of_its_kind() -> None:
    signer = Ed25519Signer.from_seed(b"s" * 32)
    right = format_canonical(
        {
            "code": "X",
            "instance": "a",
            "kind": "event",
            "statement_no": "2",
            "time": "2026-11-21T22:30:00.123Z",
        }
    )
    event = KINDS["event"].payload_type
    payloads = {
        (event, right): True,
        (event, right.replace(b":", b": ", 1)): False,
        (event, right.replace(b'"2"', b'"02"')): False,
        (event, right + b" " * PAYLOAD_BYTES_MAX): False,
        (KINDS["report"].payload_type, right): False,
        ("application/x", right): False,
    }
    entries = [
        format_envelope(Envelope(kind, payload, signer.keyid, signer.sign(pre_authentication_encoding(kind, payload))))
        for kind, payload in payloads
    ]
    found = verify_chunk(LogChunk(tuple(entries), {signer.keyid: signer.public_key})).found
    assert [(is_signed, formed) for _, _, is_signed, formed in found] == [
        (True, formed) for formed in payloads.values()
    ]
    unsigned = verify_chunk(LogChunk((entries[0],), {})).found
    assert unsigned[0][2:] == (False, False)  # nothing is asked of what nobody has signed


def test_what_is_no_envelope_and_names_no_key_is_passed_on_as_it_is(case: Case) -> None:
    entries = entries_of(case.factory)
    assert verify_chunk(LogChunk((b"{}",), {})).found == ((leaf_hash(b"{}"), None, False, False),)
    start = entries[0]
    for bad in (start.replace(b'"payload":"', b'"payload":"AAAA'), start[:20] + start[200:], b"x" + chunks._START):
        assert not named_keys([bad])


# --- what is wrong ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large") / "log"
    make_log(folder, make_entries(SIZE))
    return folder


def tree_failures(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[VerificationError]:
    """What is wrong with the files of a log, whatever its entries are."""
    source = Folder(folder)
    monkeypatch.setattr("certification.tree.NONE", "-")  # these logs have no witness
    try:
        checkpoint = read_accepted(source, VERIFIED)[1].checkpoint
        tree, failures = Tree(), list[VerificationError]()
        for index in range(-(-checkpoint.size // TILE_WIDTH)):
            _, entries = read_bundle(source, index, checkpoint.size)
            failures += tree.grow(source, list(map(leaf_hash, entries)))
        return [*failures, *tree.finish(source, checkpoint)]
    except VerificationError as error:
        return [error]


def test_the_log_that_is_corrupted_is_good(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tree_failures(large, monkeypatch) == []


@pytest.mark.parametrize("corruption", CORRUPTIONS, ids=lambda one: one.name)
@pytest.mark.slow
def test_every_corruption_is_refused(
    corruption: Corruption, large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "log"
    shutil.copytree(large, folder, copy_function=_link)
    for path in folder.rglob("*"):
        if path.is_file() and path.stat().st_size < 8192 * 2:
            data = path.read_bytes()
            path.unlink()
            path.write_bytes(data)
    corruption.apply(folder)
    failures = tree_failures(folder, monkeypatch)
    assert failures
    assert all(failure.metadata["check"].startswith("log ") for failure in failures)


def _link(source: str, target: str) -> None:
    Path(target).hardlink_to(source)


def test_a_rolled_back_log_is_caught_by_who_remembers(case: Case) -> None:
    assert case.audit() == 0
    size = len(case.factory.lines)
    kept = case.state.read_bytes()
    roll_back(case.log, size - 3)
    witnessed(case.log)  # even if the witness were in on it
    assert case.audit() == 1
    assert case.checks == {"log consistency"}
    assert f"rolled back: {size - 3} entries, where {size} were verified" in case.report["failures"][0]["message"]
    assert case.state.read_bytes() == kept
    case.state.unlink()
    assert case.audit() == 0  # who remembers nothing sees nothing


def test_a_forked_log_is_caught_by_who_remembers(case: Case) -> None:
    entries = entries_of(case.factory)
    case.publish(entries[:30])
    assert case.audit() == 0
    shutil.rmtree(case.log)
    case.publish([*entries[:10], *entries[11:]])
    assert case.audit() == 1
    assert case.checks == {"log consistency"}
    assert "forked" in case.report["failures"][0]["message"]
    shutil.rmtree(case.log)
    case.publish([*entries[:10], *entries[11:31]])  # the same size
    assert case.audit() == 1
    assert case.checks == {"log consistency"}


def test_a_damaged_log_leaves_the_state_as_it_was(case: Case) -> None:
    assert case.audit() == 0
    kept = case.state.read_bytes()
    go_on(case)
    path = next((case.log / "tile" / "entries" / "000.p").glob(str(len(case.factory.lines))))
    data = bytearray(path.read_bytes())
    data[-400] ^= 1
    path.write_bytes(data)
    assert case.audit() == 1
    assert {"log tiles"} <= case.checks
    assert case.state.read_bytes() == kept
    assert not (case.folder / "state.part").exists()


def test_the_quorum(case: Case) -> None:
    case.publish(is_witnessed=False)
    assert case.audit() == 1
    assert case.checks == {"log quorum"}
    case.publish()
    case.policy = f"log {VKEY}\nquorum none\n"
    assert case.audit() == 1
    assert "asks for no witness" in case.report["failures"][0]["message"]
    assert not case.state.exists()
    case.policy = POLICY_OWN
    assert case.audit() == 0
    assert case.report["verdict"] == "PASSED SELF-WITNESSED ANCHORED"
    assert case.report["checkpoint"]["witnesses"][0]["self_witness"]
    case.policy = POLICY
    assert case.audit("--self-witness", "w") == 0
    assert case.report["verdict"] == "PASSED SELF-WITNESSED ANCHORED"
    assert case.audit("--self-witness", "stranger") == 2
    case.policy = POLICY_OWN.replace("self-witness own", "self-witness other")
    assert case.audit() == 2


def test_a_lie_in_a_record_fails_now_and_in_the_runs_after(tmp_path: Path) -> None:
    def lie(kind: str, count: int, body: dict[str, object]) -> None:
        if (kind, count) == ("round_final", 2):
            body["returned_minor"] = "123456"

    factory = RecordFactory("liar", lie=lie)
    worker = factory.start("node-1-b1-w0")
    player = factory.open(worker)
    factory.buy(worker, player, 50_000)
    for _ in range(3):
        a_round(factory, worker, player)
    case = Case(tmp_path, factory)
    case.publish()
    assert case.audit() == 1
    assert "18 balance" in case.checks
    assert case.report["tree_is_sound"]
    first = case.report["failed"]
    go_on(case)
    assert case.audit() == 1
    assert case.report["failed"] == first
    assert case.report["verdict"] == "FAILED WITNESSED ANCHORED"


@pytest.mark.parametrize(
    ("entry", "check"),
    [(b"{}", "1 line"), (b"", "log entries"), (b"log.example/2026h1\n1\n", "log entries")],
)
def test_an_entry_that_is_no_statement(case: Case, entry: bytes, check: str) -> None:
    case.publish([entry, *entries_of(case.factory)])
    assert case.audit() == 1
    assert check in case.checks


def test_a_participation_of_two_sessions(case: Case) -> None:
    factory = case.factory
    worker = factory.start("node-9-b1-w0", "node-9")
    one, other = factory.open(worker), factory.open(worker)
    other.participation_id = one.participation_id
    factory.buy(worker, one, 1_000)
    factory.buy(worker, other, 1_000)
    case.publish()
    assert case.audit() == 1
    assert "another session's" in case.report["failures"][0]["message"]


def test_a_scope_in_a_log_excuses_nothing(case: Case) -> None:
    entries = entries_of(case.factory)
    shutil.rmtree(case.log)
    scope = case.factory.scope(instances=[{"first": "2", "instance": "node-1-b1-w0", "last": "9"}])
    case.factory.lines.insert(2, scope)
    from_scope = entries_of(case.factory)
    case.publish([*from_scope[:12], *from_scope[13:]])
    assert case.audit() == 1
    assert "6 number" in case.checks
    case.factory.lines.pop(2)
    shutil.rmtree(case.log)
    case.state.unlink()
    case.publish(entries)
    assert case.audit() == 0


def test_rounds_left_open_for_too_long_are_listed(case: Case) -> None:
    case.factory.clock_ms += 400 * 86_400_000
    go_on(case, time_s=SEEN_S + 400 * 86_400)
    assert case.audit() == 0
    assert [row["round_id"] for row in case.report["overdue"]] != []


def test_a_later_shard_goes_on_from_the_one_before(case: Case) -> None:
    assert case.audit() == 0
    size = len(case.factory.lines)
    last = (case.log / "checkpoint").read_bytes()
    go_on(case)
    later = entries_of(case.factory)[size:]
    origin = "log.example/2027h1"
    case.policy = POLICY.replace("witness", f"log {format_vkey(note_key(origin, ED25519, STRANGER))}\nwitness", 1)
    first = case.state.read_bytes()
    folder = case.folder / "next"
    for entries, status in (
        ([last.replace(f"\n{size}\n".encode(), f"\n{size - 1}\n".encode()), *later], 1),
        (later, 1),
        ([last, *later], 0),
    ):
        shutil.rmtree(folder, ignore_errors=True)
        case.state.write_bytes(first)
        make_log(folder, entries, origin=origin, signer=STRANGER)
        witnessed(folder)
        assert case.audit(log=str(folder)) == status, case.report["failures"]
    case.state.unlink()
    assert case.audit(log=str(folder)) == 1


def test_one_run_at_a_time_has_the_state(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    assert case.audit() == 0
    with StateFile(case.state).held():
        assert case.audit() == 2
    assert "another run uses this state" in capsys.readouterr().err
    assert case.audit() == 0


def test_a_full_disk_leaves_the_state_that_was(
    case: Case, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert case.audit() == 0
    before = case.state.read_bytes()
    go_on(case)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        assert case.audit() == 2
    assert "state.part: No space left on device" in capsys.readouterr().err
    assert case.state.read_bytes() == before
    assert not [path for path in case.folder.iterdir() if path.name.endswith(".unfinished")]
    assert case.audit() == 0


def test_a_checkpoint_that_is_not_accepted_now_costs_no_part(case: Case) -> None:
    part = case.folder / "state.part"
    part.write_bytes(b"what an interrupted run left")
    good = (case.log / "checkpoint").read_bytes()
    case.publish(is_witnessed=False)
    assert case.audit() == 1
    assert part.exists()
    (case.log / "checkpoint").write_bytes(good)
    assert case.audit() == 0
    assert not part.exists()


def test_keys_that_are_not_the_root_given(case: Case) -> None:
    assert case.audit("--root", "0" * 64) == 1
    assert "3 key" in case.checks
    assert case.report["verdict"] == "FAILED UNANCHORED"
    assert case.audit() == 0  # a slip of the hand is not remembered
    (case.folder / "broken").write_bytes(b"{}")
    assert case.audit("--keys", str(case.folder / "broken")) == 1


def test_usage(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    for more in (["--policy", str(case.folder / "none")], ["--ruleset", str(case.folder / "none")]):
        assert case.audit(*more) == 2
    assert case.audit("--html", str(case.folder / "no" / "where.html")) == 2
    assert case.audit(log=str(case.folder / "nowhere")) == 2
    assert case.audit(log="http://127.0.0.1:9/") == 2
    with pytest.raises(SystemExit):
        main([])
    capsys.readouterr()
