"""The malicious server, as the auditor meets it: for each of its tricks what catches it, or that nothing here does
(docs/verify.md, section 8).
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from certification import omission
from rgs.core.statements import KINDS, format_canonical, seal_envelope
from rgs.core.times import format_time
from rgs.core.tlog.checkpoints import parse_checkpoint
from rgs.core.tlog.merkle import consistency_proof, leaf_hash, root_of
from rgs.core.tlog.note import ED25519, add_signatures, format_note, format_vkey, note_key, parse_note, parse_signatures
from rgs.core.tlog.witness import AddCheckpoint, WitnessRefusalError, format_add_checkpoint
from rgs.store.witness import WitnessStore
from rgs.tlog.directory import LogDirectory
from rgs.tlog.witness.witness import Witness
from tests.support.clocks import ManualClock
from tests.support.log.logs import ORIGIN, SIGNER, STRANGER, make_log, roll_back, signed_checkpoint
from tests.support.records.audited import OWN, POLICY_OWN, SEEN_S, WITNESS, Case, a_round, entries_of, witnessed
from tests.support.records.factory import RecordFactory
from tests.support.records.lying import widen
from tests.support.records.parts import SessionRecord, Worker

Lie = Callable[[str, int, dict[str, Any]], None]


def opened(harness: RecordFactory, name: str = "node-1-b1-w0", **more: Any) -> tuple[Worker, SessionRecord]:
    worker = harness.start(name, **more)
    player = harness.open(worker)
    harness.buy(worker, player, 50_000)
    return worker, player


def finish(factory: RecordFactory, worker: Worker, player: SessionRecord) -> None:
    factory.end_participation(worker, player)
    factory.close(worker, player)
    factory.end(worker)


def audited(folder: Path, factory: RecordFactory) -> tuple[int, Case]:
    case = Case(folder, factory)
    case.publish()
    return case.audit(), case


# --- 1: it draws again where much is staked ---------------------------------------------------------------------------


def test_1_a_draw_that_was_thrown_away_leaves_a_gap(tmp_path: Path) -> None:
    harness = RecordFactory("redraws")
    worker, player = opened(harness)
    a_round(harness, worker, player)
    harness.draw(worker)  # a deck that it did not like
    a_round(harness, worker, player)
    finish(harness, worker, player)
    status, case = audited(tmp_path, harness)
    assert (status, case.checks) == (1, {"20 draws"})


def test_1_one_that_it_admits_is_counted(tmp_path: Path) -> None:
    harness = RecordFactory("redraws")
    worker, player = opened(harness)
    for _ in range(3):
        harness.discard(worker)
        a_round(harness, worker, player)
    finish(harness, worker, player)
    status, case = audited(tmp_path, harness)
    assert (status, case.report["summary"]["draws_discarded"]) == (0, 3)


def test_1_a_draw_outside_of_the_certified_software_is_not_caught(tmp_path: Path) -> None:
    harness = RecordFactory("redraws")
    worker, player = opened(harness)
    for _ in range(3):
        harness.random.transcript()  # drawn, looked at, forgotten: no number was taken
        a_round(harness, worker, player)
    finish(harness, worker, player)
    assert audited(tmp_path, harness)[0] == 0


# --- 2: bad decks go to a ghost ---------------------------------------------------------------------------------------


def test_2_a_ghost_session_is_not_caught_here(tmp_path: Path) -> None:
    harness = RecordFactory("ghosts")
    worker, player = opened(harness)
    ghost = harness.open(worker)
    harness.buy(worker, ghost, 50_000)
    for _ in range(3):
        a_round(harness, worker, ghost)
        a_round(harness, worker, player)
    for one in (ghost, player):
        harness.end_participation(worker, one)
        harness.close(worker, one)
    harness.end(worker)
    status, case = audited(tmp_path, harness)
    # The ghost is in the log with its purchase: wallet and regulator know of none, which reconciliation says.
    assert (status, case.report["summary"]["sessions"]) == (0, 2)


# --- 3: it kills itself before a commit -------------------------------------------------------------------------------


def test_3_each_kill_is_counted_against_its_node_and_day(tmp_path: Path) -> None:
    harness = RecordFactory("kills")
    watcher = harness.start("node-2-b1-w0", "node-2")
    for boot_no in range(1, 6):
        worker, player = opened(harness, f"node-1-b{boot_no}-w0", boot_no=boot_no)
        a_round(harness, worker, player)
        harness.draw(worker)  # seen, and killed
        worker.draw_no -= 1  # nothing of it is durable
        harness.lose(watcher, worker)
    status, case = audited(tmp_path, harness)
    assert status == 0
    day = case.report["newest_statement"][:10]
    assert case.report["exposure"] == [{"node": "node-1", "day": day, "draws": 40}]


def test_3_the_exposure_of_a_kill_is_the_window_of_its_last_statement(tmp_path: Path) -> None:
    harness = RecordFactory("windows")
    watcher = harness.start("node-2-b1-w0", "node-2")
    worker, player = opened(harness, "node-1-b1-w0")
    a_round(harness, worker, player)
    widen(harness, worker, 12)
    widen(harness, worker, 24)
    harness.lose(watcher, worker)
    status, case = audited(tmp_path, harness)
    assert status == 0
    day = case.report["newest_statement"][:10]
    assert case.report["exposure"] == [{"node": "node-1", "day": day, "draws": 24}]
    assert case.report["summary"]["draws_exposed"] == 24
    (lost,) = [row for row in case.report["instances"] if row["state"] == "lost"]
    assert lost["draws_unknown_at_most"] == 24


def test_3_a_window_that_is_told_smaller_fails_and_makes_the_exposure_no_smaller(tmp_path: Path) -> None:
    harness = RecordFactory("windows")
    watcher = harness.start("node-2-b1-w0", "node-2")
    worker, player = opened(harness, "node-1-b1-w0")
    a_round(harness, worker, player)
    widen(harness, worker, 24)
    widen(harness, worker, 1)
    harness.lose(watcher, worker)
    status, case = audited(tmp_path, harness)
    assert (status, [failure["check"] for failure in case.report["failures"]]) == (1, ["20 draws"])
    assert (case.report["exposure"][0]["draws"], case.report["summary"]["draws_exposed"]) == (24, 24)


# --- 4: the last round of a session never was -------------------------------------------------------------------------


@pytest.mark.parametrize("dropped", [(5, 7), (6, 7), (5, 9)])
def test_4_what_is_cut_out_of_the_log_shows(tmp_path: Path, dropped: tuple[int, int]) -> None:
    harness = RecordFactory("drops")
    worker, player = opened(harness)
    for _ in range(2):
        a_round(harness, worker, player)
    finish(harness, worker, player)
    entries = entries_of(harness)
    case = Case(tmp_path, harness)
    case.publish([*entries[: dropped[0]], *entries[dropped[1] :]])
    assert case.audit() == 1
    assert "6 number" in case.checks


def test_4_a_story_signed_again_without_it_is_refuted_by_the_players_opening(tmp_path: Path) -> None:
    result, true = RecordFactory("drops"), RecordFactory("drops")
    lives = [opened(harness) for harness in (result, true)]
    for harness, life in zip((result, true), lives, strict=True):
        a_round(harness, *life)
    true.deal(lives[1][0], [lives[1][1]], {"ante": 100})
    opening = entries_of(true)[-1]  # in the player's hands
    finish(result, *lives[0])
    status, case = audited(tmp_path, result)
    assert status == 0  # the log alone is one whole, false story
    receipt = tmp_path / "opening.json"
    receipt.write_bytes(opening)
    arguments = [str(receipt), "--log", str(case.log), "--policy", str(tmp_path / "policy.txt")]
    arguments += ["--keys", str(tmp_path / "keys.json"), "--root", result.root.keyid]
    assert omission.main(arguments) == 1


# --- 5: a stolen key dates back ---------------------------------------------------------------------------------------


def test_5_a_revoked_key_signs_nothing_more_whatever_time_it_writes(tmp_path: Path) -> None:
    """All ways through it: tests/unit/certification/audit/test_stolen_key.py."""
    harness = RecordFactory("stolen")
    worker, player = opened(harness)
    a_round(harness, worker, player)
    status, case = audited(tmp_path, harness)
    assert status == 0
    position = {"origin": ORIGIN, "size": str(len(harness.lines))}
    harness.key_statement(
        harness.root,
        "revocation",
        {"key": harness.nodes["node-1"].keyid, "reason": "STOLEN", "time": format_time(SEEN_S * 1000), **position},
    )
    harness.clock_ms -= 60_000  # the thief dates back
    a_round(harness, worker, player)
    case.publish(time_s=SEEN_S + 60)
    assert case.audit() == 1
    assert case.checks == {"3 key"}
    assert case.report["summary"]["rounds_verified"] == 1  # what a witness saw before stands
    # Who comes only now, and brings nothing that a witness saw, cannot tell the honest statements from the thief's.
    case.state.unlink()
    assert case.audit() == 1
    assert case.report["summary"]["rounds_verified"] == 0


# --- 6: it folds for the player ---------------------------------------------------------------------------------------


def test_6_a_decision_in_the_players_name_is_not_caught_here(tmp_path: Path) -> None:
    harness = RecordFactory("folds")
    worker, player = opened(harness)
    a_round(harness, worker, player, ("check", "check", "fold"))
    assert audited(tmp_path, harness)[0] == 0


def test_6_one_in_the_timers_name_must_be_the_default(tmp_path: Path) -> None:
    harness = RecordFactory("folds")
    worker, player = opened(harness)
    harness.deal(worker, [player], {"ante": 100})
    harness.act(player, ["play_4x"], by="timer")
    harness.settle(worker, player)
    status, case = audited(tmp_path, harness)
    assert (status, case.checks) == (1, {"15 actions"})


# --- 7 and 8: the log is rolled back, or there are two ----------------------------------------------------------------


@pytest.fixture
def witness(tmp_path: Path) -> Any:
    store = WitnessStore(tmp_path / "seen.db")
    yield Witness("w.example", WITNESS, [note_key(ORIGIN, ED25519, SIGNER)], store, ManualClock(SEEN_S * 1000))
    store.close()


def cosigned(witness: Witness, folder: Path, old: int) -> None:
    """The log asks the witness for a cosignature, and publishes it."""
    directory = LogDirectory(folder)
    note = parse_note(directory.checkpoint())
    size = parse_checkpoint(note.text).size
    proof = tuple(consistency_proof(directory.subtrees(size), old, size))
    line = witness.add_checkpoint(format_add_checkpoint(AddCheckpoint(old, proof, note)))
    directory.publish(format_note(add_signatures(note, parse_signatures(line))))


def two_stories(seed: str = "split") -> tuple[RecordFactory, list[bytes], list[bytes]]:
    """A server, and two logs that begin alike: in the second the last session is another."""
    harness = RecordFactory(seed)
    worker, player = opened(harness)
    a_round(harness, worker, player)
    common = len(harness.lines)
    a_round(harness, worker, player)
    first = entries_of(harness)
    other = RecordFactory(seed)
    worker, player = opened(other)
    a_round(other, worker, player)
    other.event(worker)
    return harness, first, [*first[:common], *entries_of(other)[common:]]


def test_7_a_rollback_is_refused_by_the_witness_and_by_who_remembers(tmp_path: Path, witness: Witness) -> None:
    factory, first, _ = two_stories()
    case = Case(tmp_path, factory)
    case.publish(first, is_witnessed=False)
    cosigned(witness, case.log, 0)
    assert case.audit() == 0
    roll_back(case.log, len(first) - 2)
    with pytest.raises(WitnessRefusalError):
        cosigned(witness, case.log, 0)
    assert case.audit() == 1  # without a cosignature
    assert case.checks == {"log quorum"}
    witnessed(case.log)  # and with one, of a witness that is in on it
    assert case.audit() == 1
    assert case.checks == {"log consistency"}


def test_7_what_is_published_and_what_is_cosigned_are_one_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The witness's checkpoint is kept as `checkpoint.cosigned`, and the server publishes another one beside it."""
    factory, first, _ = two_stories()
    case = Case(tmp_path, factory)
    case.publish(first[:-2])
    kept = (case.log / "checkpoint").read_bytes()
    (case.log / "checkpoint.cosigned").write_bytes(kept)
    older, whole = (signed_checkpoint(size, root_of(list(map(leaf_hash, first[:size])))) for size in (3, len(first)))
    case.publish(first, is_witnessed=False)
    assert (case.log / "checkpoint").read_bytes() == whole
    assert case.audit() == 0  # not cosigned yet: told, and not read
    assert case.report["checkpoint"]["size"] + 2 == case.report["checkpoint"]["published"] == len(first)
    assert "not read     2 entries more, published without" in capsys.readouterr().out
    (case.log / "checkpoint").write_bytes(older)  # an older one, as a cache may still have it
    assert case.audit() == 0
    assert "not read" not in capsys.readouterr().out
    (case.log / "checkpoint").write_bytes(signed_checkpoint(len(first), leaf_hash(b"another history")))
    assert case.audit() == 1
    assert case.checks == {"log consistency"}
    assert "forked: not the log that was signed by the log" in case.report["failures"][0]["message"]


def test_8_of_two_logs_the_witness_cosigns_one(tmp_path: Path, witness: Witness) -> None:
    factory, first, second = two_stories()
    one, other = Case(tmp_path / "one", factory), Case(tmp_path / "other", factory)
    for case, entries in ((one, first), (other, second)):
        case.folder.mkdir()
        case.publish(entries, is_witnessed=False)
    cosigned(witness, one.log, 0)
    with pytest.raises(WitnessRefusalError):
        cosigned(witness, other.log, 0)
    assert (one.audit(), other.audit()) == (0, 1)
    assert other.checks == {"log quorum"}


def test_8_with_its_own_witness_alone_both_pass_and_are_labelled(tmp_path: Path) -> None:
    factory, first, second = two_stories()
    one, other = Case(tmp_path / "one", factory, POLICY_OWN), Case(tmp_path / "other", factory, POLICY_OWN)
    for case, entries in ((one, first), (other, second)):
        case.folder.mkdir()
        make_log(case.log, entries)
        witnessed(case.log, "own.example", OWN)
        assert case.audit() == 0
        assert case.report["verdict"] == "PASSED SELF-WITNESSED ANCHORED"
    # Two who were shown two logs find it when they compare: the state of one against the log of the other.
    shutil.copy(one.state, other.state)
    assert other.audit() == 1
    assert other.checks == {"log consistency"}


def test_a_thief_with_the_log_key_alone_makes_no_statement(tmp_path: Path) -> None:
    harness = RecordFactory("thief")
    worker, player = opened(harness)
    a_round(harness, worker, player)
    body = {"code": "MALFUNCTION", "instance": worker.name, "kind": "event", "statement_no": "6", "time": harness.now()}
    forged = seal_envelope(KINDS["event"].payload_type, format_canonical(body), STRANGER)
    case = Case(tmp_path, harness)
    case.publish([*entries_of(harness), forged])
    assert case.audit() == 1
    assert case.checks == {"3 key"}
    assert format_vkey(note_key(ORIGIN, ED25519, SIGNER)) in case.policy


def test_the_page_names_every_trick_and_tests_that_exist() -> None:
    root = Path(__file__).parents[4]
    _, page = (root / "docs" / "verify.md").read_text().split("## 8. The malicious licensee")
    named = set(re.findall(r"`(test_\w+)`", page))
    here = {name for name in globals() if re.match(r"test_[1-8]_", name)}
    assert here <= named
    assert {int(name[5]) for name in here} == set(range(1, 9))
    elsewhere = (root / "tests" / "integration" / "test_reconcile_breaks.py").read_text()
    assert all(name in here or f"def {name}(" in elsewhere for name in named)
    assert all((root / path).exists() for path in re.findall(r"`(tests/[\w/]+\.py)`", page))
