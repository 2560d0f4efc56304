"""rgs.tlog: statements in order into the log, one leader, and everything that makes it refuse to sign."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from rgs.core.tlog.checkpoints import parse_checkpoint
from rgs.core.tlog.merkle import EMPTY_ROOT
from rgs.core.tlog.note import Note, add_signatures, cosign, format_note, parse_note, parse_vkey
from rgs.store.checkpoints import CheckpointRaceError, Checkpoints
from rgs.store.interface import InstanceRow
from rgs.tlog.directory import LogDirectory, LogRefusedError
from rgs.tlog.sequencer import LOG_BEHIND, RETRY_MS, Sequencer
from rgs.tlog.shard import ShardWriter
from tests.support.clocks import ManualClock
from tests.support.log.sequencing import (
    AUTUMN_MS,
    PREFIX,
    SIGNER,
    SUMMER_MS,
    Logged,
    Shelf,
    fill,
    make_sequencer,
    verify_shelf,
)
from tests.support.service.harness import NODE_KEY, sealed

H1 = f"{PREFIX}/2026h1"


# --- order ------------------------------------------------------------------------------------------------------------


async def test_an_empty_store_makes_an_empty_log(sequencer: Sequencer, log: Path) -> None:
    await sequencer.work()
    logged = Logged(log / "2026h1")
    assert (logged.checkpoint.size, logged.checkpoint.root, logged.checkpoint.origin) == (0, EMPTY_ROOT, H1)
    assert parse_vkey(sequencer.vkey).name == H1
    await sequencer.close()


async def test_statements_stand_in_the_order_of_their_numbers_and_rows(
    shelf: Shelf, sequencer: Sequencer, log: Path
) -> None:
    rows = [shelf.commit(name, id_=id_) for name, id_ in (("a", 10), ("b", 11), ("a", 20), ("c", 15), ("b", 30))]
    await sequencer.work()
    expected = [row.envelope for row in sorted(rows, key=lambda row: row.id)]
    assert Logged(log / "2026h1").entries == expected
    await sequencer.close()


async def test_a_slower_instance_that_commits_a_lower_row_is_not_passed_over(
    shelf: Shelf, sequencer: Sequencer, log: Path
) -> None:
    shelf.commit("quick", id_=1_000)
    await sequencer.work()
    shelf.commit("slow", id_=5)
    shelf.commit("quick", id_=2_000)
    await sequencer.work()
    logged = Logged(log / "2026h1")
    verify_shelf(shelf, [logged])
    assert [b"slow" in entry for entry in logged.entries] == [False, True, False]
    await sequencer.close()


async def test_a_long_queue_is_cut_into_checkpoints_without_losing_the_order(
    shelf: Shelf, sequencer: Sequencer, log: Path
) -> None:
    rows = [shelf.commit(f"i{(nth * 7) % 5}") for nth in range(1_500)]
    seen: list[int] = []
    sequencer.on_published = lambda note: seen.append(parse_checkpoint(parse_note(note).text).size)
    await sequencer.work()
    assert seen == [256, 512, 768, 1_024, 1_280, 1_500]
    assert Logged(log / "2026h1").entries == [row.envelope for row in rows]
    await sequencer.close()


async def test_an_instance_that_lived_between_two_looks_is_found(
    shelf: Shelf, sequencer: Sequencer, log: Path, clock: ManualClock
) -> None:
    shelf.commit("a")
    await sequencer.work()
    fill(shelf, 2, "brief")
    shelf.ended.add("brief")
    clock.tick(10_000)
    await sequencer.work()
    verify_shelf(shelf, [Logged(log / "2026h1")])
    await sequencer.close()


async def test_the_end_is_logged_before_the_sequencer_lets_go(shelf: Shelf, sequencer: Sequencer, log: Path) -> None:
    shelf.commit("a")
    await sequencer.work()
    shelf.commit("a")
    shelf.ended.add("a")
    await sequencer.close()
    verify_shelf(shelf, [Logged(log / "2026h1")])


async def test_artifacts_lie_beside_the_tiles(shelf: Shelf, sequencer: Sequencer, log: Path) -> None:
    digest = shelf.artifact("a", b"the rules")
    await sequencer.work()
    assert (log / "2026h1" / "artifact" / digest).read_bytes() == b"the rules"
    shelf.artifacts[shelf.artifact("a", b"other rules")] = b"altered rules"
    with pytest.raises(LogRefusedError, match="does not hold the artifact"):
        await sequencer.work()
    assert sequencer.code == "ARTIFACT_MISSING"
    assert Logged(log / "2026h1").checkpoint.size == 1
    await sequencer.close()


# --- the key bundle ---------------------------------------------------------------------------------------------------


async def test_key_statements_stand_once_in_order_before_what_waits(
    shelf: Shelf, sequencer: Sequencer, log: Path, clock: ManualClock
) -> None:
    fill(shelf, 3)
    first, second = shelf.key(), shelf.key()
    await sequencer.work()
    assert Logged(log / "2026h1").entries[:2] == [first, second]
    fill(shelf, 3)
    third = shelf.key()
    fill(shelf, 3, "b")
    await sequencer.work()
    assert Logged(log / "2026h1").entries[5] == third
    await sequencer.close()
    again = make_sequencer(shelf, log, clock)
    await again.work()
    clock.time_ms = AUTUMN_MS
    shelf.key()
    await again.work()
    verify_shelf(shelf, [Logged(log / "2026h1"), Logged(log / "2026h2")])
    await again.close()


async def test_a_key_that_comes_while_the_store_is_looked_at_stands_before_what_it_signs(
    shelf: Shelf, log: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.key()
    instances = shelf.instances
    late: list[bytes] = []

    async def checked(*, alive_only: bool) -> list[InstanceRow]:
        if not late:
            late.extend((shelf.key(), shelf.commit("late").envelope))
        return await instances(alive_only=alive_only)

    sequencer = make_sequencer(shelf, log, clock)
    await sequencer.work()
    monkeypatch.setattr(sequencer.store, "instances", checked)
    await sequencer.work()
    assert Logged(log / "2026h1").entries[1:] == late
    await sequencer.close()


async def test_more_key_statements_than_a_batch_holds(shelf: Shelf, sequencer: Sequencer, log: Path) -> None:
    fill(shelf, 3)
    for _ in range(600):
        shelf.key()
    await sequencer.work()
    logged = Logged(log / "2026h1")
    verify_shelf(shelf, [logged])
    assert logged.entries[:600] == list(shelf.keys)
    await sequencer.close()


async def test_a_bundle_with_a_new_root_begins_again(shelf: Shelf, sequencer: Sequencer, log: Path) -> None:
    shelf.key()
    shelf.key()
    await sequencer.work()
    old, shelf.keys = shelf.keys, (sealed({"kind": "root_key"}, SIGNER),)
    await sequencer.work()
    assert Logged(log / "2026h1").entries == [*old, *shelf.keys]
    await sequencer.close()


async def test_a_node_whose_bundle_is_older_goes_on_with_what_it_has(
    shelf: Shelf, sequencer: Sequencer, log: Path, clock: ManualClock
) -> None:
    for _ in range(3):
        shelf.key()
    newest = shelf.keys
    await sequencer.work()
    await sequencer.close()
    other = make_sequencer(shelf, log, clock)
    shelf.keys = newest[:1]
    fill(shelf, 2)
    await other.work()
    assert (Logged(log / "2026h1").checkpoint.size, other.code) == (5, "")
    shelf.keys = newest
    shelf.key()
    await other.work()
    verify_shelf(shelf, [Logged(log / "2026h1")])
    await other.close()


async def test_what_another_node_has_begun_needs_its_bundle(
    shelf: Shelf, sequencer: Sequencer, log: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.key()
    await sequencer.work()
    shelf.key()
    newest = shelf.keys
    with monkeypatch.context() as patch:  # the order is durable, and nothing else
        patch.setattr(ShardWriter, "write", _full)
        with pytest.raises(OSError, match="No space"):
            await sequencer.work()
        with pytest.raises(OSError, match="No space"):
            await sequencer.work()
    other = make_sequencer(shelf, log, clock)
    shelf.keys = newest[:1]
    await sequencer.close()
    with pytest.raises(LogRefusedError) as refused:
        await other.work()
    assert refused.value.code == other.code == "KEYS_BEHIND"
    shelf.keys = newest
    clock.tick(RETRY_MS)
    await other.work()
    verify_shelf(shelf, [Logged(log / "2026h1")])
    await other.close()


def _full(*_values: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


async def test_a_bundle_that_says_otherwise_than_the_log_is_refused(
    shelf: Shelf, sequencer: Sequencer, log: Path, clock: ManualClock
) -> None:
    shelf.key()
    shelf.key()
    good = shelf.keys
    await sequencer.work()
    shelf.keys = good[:1]
    shelf.key("-of-another-life")
    fill(shelf, 1)
    with pytest.raises(LogRefusedError) as refused:
        await sequencer.work()
    assert refused.value.code == sequencer.code == "KEYS_DIFFER"
    assert Logged(log / "2026h1").checkpoint.size == 2
    shelf.keys = good
    clock.tick(RETRY_MS)
    await sequencer.work()
    verify_shelf(shelf, [Logged(log / "2026h1")])
    await sequencer.close()


# --- shards -----------------------------------------------------------------------------------------------------------


async def test_a_new_half_year_is_a_new_log_that_begins_with_the_old_ones_end(
    shelf: Shelf, sequencer: Sequencer, log: Path, clock: ManualClock
) -> None:
    fill(shelf, 300)
    await sequencer.work()
    before = sequencer.vkey
    clock.time_ms = AUTUMN_MS
    fill(shelf, 3)
    await sequencer.work()
    logs = [Logged(log / "2026h1"), Logged(log / "2026h2")]
    assert [len(one.entries) for one in logs] == [300, 4]
    verify_shelf(shelf, logs)
    assert parse_vkey(sequencer.vkey).public_key == parse_vkey(before).public_key
    assert sequencer.vkey.startswith(f"{PREFIX}/2026h2+")
    clock.time_ms = SUMMER_MS  # a clock set back opens nothing again
    fill(shelf, 1)
    await sequencer.work()
    assert len(Logged(log / "2026h2").entries) == 5
    await sequencer.close()


async def test_a_half_year_without_statements_is_followed_by_another(
    shelf: Shelf, sequencer: Sequencer, log: Path, clock: ManualClock
) -> None:
    await sequencer.work()
    clock.time_ms = AUTUMN_MS
    await sequencer.work()
    logs = [Logged(log / "2026h1"), Logged(log / "2026h2")]
    assert [len(one.entries) for one in logs] == [0, 1]
    verify_shelf(shelf, logs)
    await sequencer.close()


# --- who leads --------------------------------------------------------------------------------------------------------


async def test_two_nodes_fight_for_the_lead_and_one_has_it(shelf: Shelf, log: Path, clock: ManualClock) -> None:
    one, other = make_sequencer(shelf, log, clock), make_sequencer(shelf, log, clock)
    for _ in range(20):
        fill(shelf, 7)
        await other.work() if other.leads else await one.work()
        await one.work() if other.leads else await other.work()
        assert one.leads != other.leads
    leader, second = (one, other) if one.leads else (other, one)
    fill(shelf, 7)
    await leader.close()
    fill(shelf, 7)
    await second.work()
    assert second.leads
    verify_shelf(shelf, [Logged(log / "2026h1")])
    await second.close()


async def test_who_is_told_not_to_lead_lets_go_and_watches(shelf: Shelf, log: Path, clock: ManualClock) -> None:
    one, other = make_sequencer(shelf, log, clock), make_sequencer(shelf, log, clock)
    fill(shelf, 3)
    await one.work()
    shelf.is_leader = False
    await one.work()
    await other.work()
    assert not one.leads
    assert not other.leads
    assert other.code == ""
    fill(shelf, 3)
    for _ in range(70):  # nobody does the work: whoever stands by sees it
        clock.tick(1_000)
        await other.work()
    assert other.code == LOG_BEHIND
    shelf.is_leader = True
    await other.work()
    await other.work()
    assert other.code == ""
    await other.close()
    await one.close()


async def test_one_that_stands_by_where_no_log_is_sees_nothing_done(
    shelf: Shelf, log: Path, clock: ManualClock
) -> None:
    shelf.is_leader = False
    fill(shelf, 1)
    sequencer = make_sequencer(shelf, log, clock)
    await sequencer.work()
    clock.tick(61_000)
    assert sequencer.code == LOG_BEHIND
    await sequencer.close()
    assert LogDirectory(log).checkpoint() == b""


def test_two_writers_without_a_common_lock_cannot_both_sign(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "checkpoints.db")
    one = ShardWriter.open(LogDirectory(tmp_path / "one"), checkpoints, H1, SIGNER)
    other = ShardWriter.open(LogDirectory(tmp_path / "other"), checkpoints, H1, SIGNER)
    one.write([b"a history"])
    other.write([b"another history"])
    one.sign()
    with pytest.raises(CheckpointRaceError):
        other.sign()
    checkpoints.close()


# --- trouble ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nth", range(1, 8))
async def test_a_full_disk_in_the_middle_of_a_file_costs_nothing(
    shelf: Shelf, sequencer: Sequencer, log: Path, nth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(shelf, 200)
    await sequencer.work()
    fill(shelf, 200)
    left = iter(range(nth, 0, -1))
    sync = os.fsync

    def fail(descriptor: int) -> None:
        if next(left, 0) != 1:
            return sync(descriptor)
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            os.truncate(descriptor, status.st_size // 2)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        await sequencer.work()
    monkeypatch.undo()
    assert Logged(log / "2026h1").checkpoint.size == 200
    await sequencer.work()
    verify_shelf(shelf, [Logged(log / "2026h1")])
    await sequencer.close()


async def test_a_log_that_falls_behind_says_so(
    shelf: Shelf, sequencer: Sequencer, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sequencer.work()
    fill(shelf, 1)

    def full(_self: LogDirectory, _content: bytes) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(LogDirectory, "_stage", full)
    for _ in range(3):
        with pytest.raises(OSError, match="No space"):
            await sequencer.work()
        clock.tick(25_000)
    assert sequencer.lag_ms == 75_000
    assert sequencer.code == LOG_BEHIND
    monkeypatch.undo()
    await sequencer.work()
    assert (sequencer.code, sequencer.lag_ms) == ("", 0)
    await sequencer.close()


# --- witnesses --------------------------------------------------------------------------------------------------------


async def test_cosignatures_are_kept_and_published_with_their_checkpoint(
    shelf: Shelf, sequencer: Sequencer, log: Path, clock: ManualClock
) -> None:
    fill(shelf, 3)
    await sequencer.work()
    directory = LogDirectory(log / "2026h1")
    note = _cosigned(directory)
    assert await sequencer.cosign(note, has_quorum=False)  # published, as far as it goes
    assert (directory.checkpoint(), directory.cosigned()) == (format_note(note), b"")
    assert await sequencer.cosign(note, has_quorum=True)
    fill(shelf, 2)
    await sequencer.work()
    assert len(parse_note(directory.checkpoint()).signatures) == 1  # newer, and not cosigned yet
    assert directory.cosigned() == format_note(note)
    newer = _cosigned(directory)
    fill(shelf, 1)
    await sequencer.work()
    assert await sequencer.cosign(newer, has_quorum=True)  # it came late: kept, and the newest stays published
    assert parse_checkpoint(parse_note(directory.checkpoint()).text).size == 6
    assert directory.cosigned() == format_note(newer)
    assert await sequencer.cosign(last := _cosigned(directory), has_quorum=True)
    await sequencer.close()
    assert not await sequencer.cosign(last, has_quorum=True)  # it has let go
    again = make_sequencer(shelf, log, clock)
    await again.work()
    assert directory.checkpoint() == directory.cosigned() == format_note(last)
    await again.close()


async def test_the_last_checkpoint_of_a_shard_that_has_ended_is_cosigned_too(
    shelf: Shelf, sequencer: Sequencer, log: Path, clock: ManualClock
) -> None:
    fill(shelf, 3)
    await sequencer.work()
    ended = LogDirectory(log / "2026h1")
    note = _cosigned(ended)
    clock.time_ms = AUTUMN_MS
    fill(shelf, 1)
    await sequencer.work()
    assert await sequencer.cosign(note, has_quorum=True)
    assert ended.checkpoint() == ended.cosigned() == format_note(note)
    assert LogDirectory(log / "2026h2").cosigned() == b""
    await sequencer.close()
    reported: list[int] = []
    again = make_sequencer(shelf, log, clock)
    again.on_published = lambda reported_note: reported.append(parse_checkpoint(parse_note(reported_note).text).size)
    await again.work()
    assert reported == [3, 2]  # who begins to lead is told of both
    verify_shelf(shelf, [Logged(log / "2026h1"), Logged(log / "2026h2")])
    await again.close()


async def test_who_is_accused_of_a_second_history_signs_no_more(shelf: Shelf, sequencer: Sequencer, log: Path) -> None:
    fill(shelf, 3)
    await sequencer.work()
    sequencer.accuse(LogRefusedError("FORKED", "a witness shows another history"))
    fill(shelf, 1)
    for _ in range(2):
        with pytest.raises(LogRefusedError, match="another history"):
            await sequencer.work()
    assert sequencer.code == "FORKED"
    await sequencer.close()
    assert Logged(log / "2026h1").checkpoint.size == 3


def _cosigned(directory: LogDirectory) -> Note:
    note = parse_note(directory.checkpoint())
    return add_signatures(note, [cosign(note.text, "witness.example", NODE_KEY, 1_800_000_000)])
