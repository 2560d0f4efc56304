"""`certify omission` and `certify receipt`: what a player can show who kept what was signed for him."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from certification import omission, receipt
from certification.sources import Folder, SourceError
from rgs.core.errors import FormatError, NotFoundError
from rgs.core.receipts import format_key_path, parse_key_path
from rgs.core.statements import Ed25519Signer, key_fingerprint, leaf_hash, parse_envelope, parse_statement
from rgs.core.statements.lines import parse_key_bundle
from rgs.core.times import format_time, parse_time
from rgs.core.tlog.note import ED25519, format_vkey, note_key
from rgs.core.tlog.proofs import format_log_proof, parse_log_proof
from rgs.core.tlog.tiles import format_bundle
from rgs.tlog.published import make_proof
from tests.support.log.logs import SIGNER, VKEY, make_log
from tests.support.records.audited import OWN, POLICY_OWN, SEEN_S, Case, a_round, entries_of, witnessed
from tests.support.records.factory import START_MS, RecordFactory

DAY_MS = 86_400_000
KEYS = {f"log.example/{name}": Ed25519Signer.from_seed(name.encode() * 5 + b"ab") for name in ("2026h1", "2027h1")}
SOON = format_time(SEEN_S * 1000 + 1000)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    """Two rounds; the second one's opening is entry 5, its final entry 6."""
    factory = RecordFactory("omission")
    worker = factory.start("node-1-b1-w0")
    player = factory.open(worker)
    factory.buy(worker, player, 50_000)
    for _ in range(2):
        a_round(factory, worker, player)
    case = Case(tmp_path, factory)
    (tmp_path / "keys.json").write_bytes(factory.keys())
    (tmp_path / "policy.txt").write_text(case.policy)
    return case


def omitted(case: Case, *entries: bytes, now: str = SOON, more: tuple[str, ...] = ()) -> int:
    path = case.folder / "receipt"
    path.write_bytes(b"\n".join(entries) + b"\n")
    arguments = [str(path), "--log", str(case.log), "--policy", str(case.folder / "policy.txt")]
    arguments += ["--keys", str(case.folder / "keys.json"), "--root", case.factory.root.keyid, "--now", now]
    return omission.main([*arguments, *more])


def test_what_is_in_the_log_is_included(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    case.publish()
    entries = entries_of(case.factory)
    assert omitted(case, entries[5]) == 0
    assert omitted(case, *case.factory.lines[5:7]) == 0  # export lines, two receipts
    result = capsys.readouterr().out
    assert "as entry 5 of 7" in result
    assert "WITNESSED ANCHORED" in result
    assert "STALE" not in result
    assert omitted(case, entries[0]) == 0  # the start of an instance alone


def test_what_is_missing_is_an_omission_when_it_is_due(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    entries = entries_of(case.factory)
    case.publish(entries[:5])
    opened = parse_time("2026-11-18T" + format_time(START_MS)[11:])
    assert omitted(case, entries[5]) == 1  # cosigned a day and more later
    result = capsys.readouterr().out
    assert "PROVEN_OMITTED round_opening" in result
    assert "cosigned by w at 2026-11-19" in result
    assert omitted(case, entries[5], more=("--delay-s", "200000")) == 3
    assert "NOT_YET_DUE" in capsys.readouterr().out
    assert omitted(case, entries[2], entries[5]) == 1  # of several the worst
    # A log that has stopped is not the player's fault, and is told.
    assert omitted(case, entries[5], now=format_time(opened + 400 * DAY_MS), more=("--delay-s", "200000")) == 3
    assert "STALE" in capsys.readouterr().out
    assert omitted(case, entries[5], now=format_time(SEEN_S * 1000)) == 1


def test_the_time_of_a_logged_statement_counts_too(case: Case) -> None:
    entries = entries_of(case.factory)
    case.factory.clock_ms += 40 * DAY_MS
    case.factory.event(case.factory.start("node-1-b2-w0", boot_no=2))
    make_log(case.log, [*entries[:5], *entries_of(case.factory)[7:]])
    witnessed(case.log, time_s=START_MS // 1000)
    assert omitted(case, entries[5]) == 1
    shutil.rmtree(case.log / "tile" / "entries")  # not open to the player
    assert omitted(case, case.factory.lines[0], case.factory.lines[5]) == 3


def test_several_receipts_at_once_and_each_file_is_named(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    case.publish()
    entries = entries_of(case.factory)
    second, bad = case.folder / "second.json", case.folder / "bad.json"
    second.write_bytes(entries[6])
    bad.write_bytes(b"nothing")
    assert omitted(case, entries[5], more=(str(second),)) == 0
    assert capsys.readouterr().out.count("INCLUDED") == 2
    assert omitted(case, entries[5], more=(str(bad),)) == 2
    assert "bad.json: not a DSSE envelope" in capsys.readouterr().err


def test_a_round_without_a_final_is_told(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    factory = case.factory
    worker = factory.start("node-1-b2-w0", boot_no=2)
    player = factory.open(worker)
    factory.buy(worker, player, 50_000)
    factory.deal(worker, [player], {"ante": 100})
    opening = len(factory.lines) - 1
    case.publish([*entries_of(factory), b'x "application/vnd.rgs.round-final.v1+json"'], time_s=START_MS // 1000)
    assert omitted(case, entries_of(factory)[opening], entries_of(factory)[5]) == 0
    assert "WITHOUT_FINAL" not in capsys.readouterr().out  # there is time still
    shutil.rmtree(case.log)
    factory.clock_ms += 11 * 60_000
    factory.event(worker)
    case.publish(time_s=START_MS // 1000)
    assert omitted(case, entries_of(factory)[opening], entries_of(factory)[5]) == 0
    result = capsys.readouterr().out
    assert result.count("WITHOUT_FINAL") == 1
    assert "under demo an interrupted round ends after 0:10:00" in result
    shutil.rmtree(case.log / "tile" / "entries")
    assert omitted(case, factory.lines[0], factory.lines[5]) == 0
    assert "not open to you" in capsys.readouterr().out


def test_a_statement_is_looked_for_in_the_shards_where_it_belongs(
    case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    """Planted: the shard of another half-year, which cannot hold the opening, however far it has come."""
    entries, opened = entries_of(case.factory), case.folder / "shards"
    policy = case.policy
    for origin in ("log.example/2027h1", "log.example/2026h1"):
        policy = policy.replace("witness", f"log {format_vkey(note_key(origin, ED25519, KEYS[origin]))}\nwitness", 1)
        make_log(opened / origin[-6:], entries[:5], origin=origin, signer=KEYS[origin])
        witnessed(opened / origin[-6:], time_s=SEEN_S + 300 * 86_400)
    (case.folder / "policy.txt").write_text(policy)
    case.publish(entries[:5])

    def polled(*shards: str, entry: bytes = entries[5], delay_s: str = "86400") -> int:
        (case.folder / "receipt").write_bytes(entry)
        logs = [word for name in shards for word in ("--log", str(opened / name if name else case.log))]
        files = ["--policy", str(case.folder / "policy.txt"), "--keys", str(case.folder / "keys.json")]
        return omission.main([str(case.folder / "receipt"), *logs, *files, "--delay-s", delay_s, "--now", SOON])

    assert polled("2027h1") == polled("2026h1") == polled("2026h1", "2027h1") == 2
    assert "so --log 2026h2, too" in capsys.readouterr().out
    assert polled("") == polled("", "2027h1") == 1
    assert polled("2027h1", entry=entries[2]) == 0  # found is found
    # At the turn of the half-year it may stand in either.
    turn = str(60 * 86_400)
    assert polled("", delay_s=turn) == 2
    assert "so --log 2027h1, too" in capsys.readouterr().out
    assert polled("", "2027h1", delay_s=turn) == 1
    assert "it is not among the 5 entries of log.example/2026h2 nor of the 5 entries of" in capsys.readouterr().out


def test_shards_under_one_key_have_a_policy_each(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    """Planted: an opening of New Year's Eve that stands in the next shard, or in none."""
    factory = case.factory
    factory.clock_ms = parse_time("2026-12-31T23:59:00.000Z")
    worker = factory.start("node-1-b2-w0", boot_no=2)
    player = factory.open(worker)
    factory.buy(worker, player, 50_000)
    a_round(factory, worker, player)
    opened, closed = entries_of(factory)[10:12]
    make_log(case.log, entries_of(factory)[:10])
    witnessed(case.log, time_s=SEEN_S + 100 * DAY_MS // 1000)
    later, policy = case.folder / "later", case.folder / "policy-2027h1.txt"
    policy.write_text(case.policy.replace(VKEY, format_vkey(note_key("log.example/2027h1", ED25519, SIGNER))))
    both = ("--log", str(later), "--policy", str(policy))
    for entries, status in (([closed], 1), ([opened, closed], 0)):
        shutil.rmtree(later, ignore_errors=True)
        make_log(later, entries, origin="log.example/2027h1")
        witnessed(later, time_s=SEEN_S + 101 * DAY_MS // 1000)
        assert omitted(case, opened) == 2
        assert omitted(case, opened, more=both) == status
    assert "as entry 0 of 2 in log.example/2027h1" in capsys.readouterr().out
    assert omitted(case, opened, more=(*both, "--policy", str(policy))) == 2
    assert "one for each of the 2 --log; not 3" in capsys.readouterr().err
    shutil.rmtree(later)
    make_log(later, [opened], origin="another.example/2027h1")
    witnessed(later)
    policy.write_text(case.policy.replace(VKEY, format_vkey(note_key("another.example/2027h1", ED25519, SIGNER))))
    assert omitted(case, opened, more=both) == 2
    assert "these are of another.example, log.example" in capsys.readouterr().err


def test_a_receipt_that_proves_nothing_accuses_nobody(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    entries = entries_of(case.factory)
    case.publish(entries[:5])
    other = RecordFactory("somebody else")
    worker = other.start("node-1-b1-w0")
    other.event(worker)
    forged = entries_of(other)[1]
    for wrong in (forged, entries[5].replace(b'"sig":"', b'"sig":"A', 1), b"nothing", entries[5][:-9]):
        assert omitted(case, wrong) == 2
    case.publish(entries[:5])
    unknown = RecordFactory("omission")
    late = unknown.start("node-1-b7-w0", boot_no=7)
    unknown.event(late)
    assert omitted(case, entries_of(unknown)[1]) == 2  # an instance that neither log nor receipt names
    assert omitted(case, *unknown.lines[:2]) == 1  # here the receipt does
    assert omitted(case, entries[5], more=("--root", "0" * 64)) == 2
    assert omitted(case, entries[5], more=("--keys", "nowhere")) == 2
    capsys.readouterr()


def test_entries_of_a_copy_that_tell_another_time_accuse_nobody(case: Case) -> None:
    """Planted: in the copy of an honest log the last bundle names a day that has not come."""
    entries = entries_of(case.factory)
    case.factory.clock_ms += 40 * DAY_MS
    case.factory.event(case.factory.start("node-1-b2-w0", boot_no=2))
    case.publish(entries[:5], time_s=START_MS // 1000)
    assert omitted(case, entries[5]) == 3
    bundle = case.log / "tile" / "entries" / "000.p" / "5"
    bundle.write_bytes(format_bundle([*entries[:4], entries_of(case.factory)[7]]))
    assert omitted(case, case.factory.lines[0], case.factory.lines[5]) == 3


def test_the_clock_of_one_witness_of_two_accuses_nobody(case: Case) -> None:
    """Planted: one of the two says that it is years later."""
    entries = entries_of(case.factory)
    own, policy = POLICY_OWN.split("\n")[2], case.folder / "policy.txt"
    policy.write_text(case.policy.replace("quorum w", f"{own}\ngroup both all w own\nquorum both"))
    case.publish(entries[:5], is_witnessed=False)
    witnessed(case.log, time_s=START_MS // 1000)
    witnessed(case.log, "own.example", OWN, SEEN_S + 900 * 86_400)
    assert omitted(case, *case.factory.lines[:1], case.factory.lines[5]) == 3
    policy.write_text(case.policy.replace("quorum w", f"{own}\ngroup any 1 w own\nquorum any"))
    assert omitted(case, *case.factory.lines[:1], case.factory.lines[5], now=SOON) == 1  # where one is believed


def test_the_log_of_another_server_accuses_nobody(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    other, receipts = RecordFactory("somebody else"), (case.factory.lines[0], case.factory.lines[5])
    other.event(other.start("node-1-b1-w0"))
    case.publish(entries_of(other))
    assert omitted(case, *receipts) == 2
    assert "another system's log" in capsys.readouterr().err
    shutil.rmtree(case.log)
    case.publish([*entries_of(other), entries_of(case.factory)[4]])  # it holds something of this server
    assert omitted(case, *receipts) == 1
    shutil.rmtree(case.log)
    case.publish([])
    assert omitted(case, *receipts) == 1  # it holds nothing at all
    shutil.rmtree(case.log)
    case.publish(entries_of(other))
    shutil.rmtree(case.log / "tile" / "entries")  # whose it is, the policy says
    assert omitted(case, *receipts) == 1


def test_what_no_log_was_promised_is_no_omission(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    """The scope of an export stands in none, a key statement when a node has taken it up."""
    scope = case.factory.scope()
    case.publish(entries_of(case.factory)[:5])
    assert omitted(case, scope, *case.factory.lines[:5]) == 0
    assert omitted(case, scope) == 2
    assert "export_scope is not a statement" in capsys.readouterr().err


def test_a_time_that_has_not_come_is_told(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    entries = entries_of(case.factory)
    case.publish(entries[:5], time_s=START_MS // 1000)
    assert omitted(case, entries[5], now=format_time(START_MS - 2 * DAY_MS)) == 3
    assert "AHEAD round_opening" in capsys.readouterr().out
    assert omitted(case, entries[5], now=format_time(START_MS)) == 3
    assert "AHEAD" not in capsys.readouterr().out


def test_tiles_that_are_not_the_checkpoints(case: Case) -> None:
    case.publish()
    path = case.log / "tile" / "0" / "000.p" / "7"
    path.write_bytes(path.read_bytes()[:-32] + bytes(32))
    assert omitted(case, entries_of(case.factory)[5]) == 2
    with pytest.raises(SourceError):
        Folder(case.log / "checkpoint")


# --- receipts ---------------------------------------------------------------------------------------------------------


def made(case: Case, index: int) -> tuple[Path, Path]:
    """The two files of a receipt."""
    entries = entries_of(case.factory)
    proof = make_proof(case.log, leaf_hash(entries[index]), bundle=case.factory.keys(), start=entries[0])
    files = case.folder / "r.json", case.folder / "r.tlog-proof"
    files[0].write_bytes(entries[index])
    files[1].write_bytes(proof)
    return files


def verified(case: Case, files: tuple[Path, Path], *more: str) -> int:
    return receipt.main(
        [*map(str, files), "--policy", str(case.folder / "policy.txt"), "--root", case.factory.root.keyid, *more]
    )


def test_a_receipt_is_two_files(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    case.publish()
    files = made(case, 6)
    shutil.rmtree(case.log)  # offline
    assert verified(case, files) == 0
    assert "is entry 6 of log.example/2026h2\nINCLUDED WITNESSED ANCHORED" in capsys.readouterr().out
    assert verified(case, files, "--keys", str(case.folder / "keys.json")) == 0
    (case.folder / "policy.txt").write_text(POLICY_OWN)
    assert verified(case, files) == 0
    assert "SELF-WITNESSED" in capsys.readouterr().out
    assert OWN.keyid
    (case.folder / "policy.txt").write_text(f"log {VKEY}\nquorum none\n")
    assert verified(case, files) == 1
    assert verified(case, files, "--policy", "nowhere") == 2


def test_a_receipt_that_does_not_hold(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    case.publish()
    files = made(case, 6)
    good = [path.read_bytes() for path in files]
    entries = entries_of(case.factory)
    proof = parse_log_proof(good[1])
    for envelope, changed in (
        (entries[5], good[1]),  # the proof of another
        (good[0], good[1].replace(b"index 6", b"index 5")),
        (good[0], b""),
        (good[0], format_log_proof(type(proof)(proof.index, proof.path, proof.checkpoint))),  # no key path
        (good[0][:-1], good[1]),
    ):
        files[0].write_bytes(envelope)
        files[1].write_bytes(changed)
        assert verified(case, files) == 1
    for path, data in zip(files, good, strict=True):
        path.write_bytes(data)
    assert verified(case, files, "--root", "0" * 64) == 1
    capsys.readouterr()


def test_a_statement_that_is_not_there_has_no_proof(case: Case) -> None:
    case.publish(entries_of(case.factory)[:5])
    with pytest.raises(NotFoundError, match="not in the log yet"):
        made(case, 6)


def test_a_folder_of_shards_is_searched_from_the_newest(case: Case) -> None:
    entries = entries_of(case.factory)
    for name, held in (("2026h2", entries[:5]), ("2027h1", entries[5:])):
        make_log(case.folder / "shards" / name, held, origin=f"log.example/{name}")
    for index, at in ((6, 1), (2, 2)):
        proof = make_proof(
            case.folder / "shards", leaf_hash(entries[index]), bundle=case.factory.keys(), start=entries[0]
        )
        assert parse_log_proof(proof).index == at


def test_a_receipt_does_not_grow_with_the_nodes(case: Case) -> None:
    case.publish()
    start = entries_of(case.factory)[0]
    before = parse_key_path(parse_log_proof(made(case, 5)[1].read_bytes()).extra or b"")
    for number in range(400):
        key = Ed25519Signer.from_seed(number.to_bytes(32, "big")).public_key
        case.factory.key_statement(
            case.factory.root, "node_key", {"development": True, "node": f"other-{number}", "public_key": key.hex()}
        )
        case.factory.key_statement(case.factory.root, "key_end", {"key": key_fingerprint(key), "reason": "ROTATED"})
    proof = parse_log_proof(made(case, 5)[1].read_bytes())
    assert len(case.factory.keys()) > 256 * 1024
    assert parse_key_path(proof.extra or b"") == before
    assert before[1] == start
    # What befell the keys of the path itself is told.
    _, body = parse_statement(parse_envelope(start))
    of_instance = key_fingerprint(bytes.fromhex(body["public_key"]))
    case.factory.key_statement(case.factory.root, "revocation", {"key": of_instance, "reason": "STOLEN"})
    narrowed = parse_key_bundle(parse_key_path(parse_log_proof(made(case, 5)[1].read_bytes()).extra or b"")[0])
    assert narrowed == [*parse_key_bundle(before[0]), parse_key_bundle(case.factory.keys())[-1]]


def test_key_paths(case: Case) -> None:
    start = entries_of(case.factory)[0]
    data = format_key_path(case.factory.keys(), start)
    assert parse_key_path(data) == (case.factory.keys(), start)
    for bad in (b"", data + b"\n", data[:-1], case.factory.keys(), data.replace(b"rgs/keys/v1", b"rgs/keys/v2")):
        with pytest.raises(FormatError):
            parse_key_path(bad)
