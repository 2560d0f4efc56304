"""A backup of the store is restored: no start over it, the log brings it back, and replay and log agree afterwards."""

from __future__ import annotations

import pytest

from rgs.core.errors import VerificationError
from rgs.core.replay import KeyBook, Replay, Rulebook
from rgs.core.statements import ExportLine, format_line
from rgs.core.statements.canonical import parse_canonical
from rgs.core.tlog.checkpoints import Checkpoint, parse_checkpoint
from rgs.core.tlog.note import parse_note
from rgs.service.admin.recovery import plan_import
from rgs.store.address import PostgresAddress
from rgs.store.changes import StoreRefusedError
from rgs.store.opening import import_gap, open_reads
from rgs.tlog.directory import LogRefusedError
from rgs.tlog.gap import find_gap, verify_not_behind
from tests.support.clocks import ManualClock
from tests.support.service.harness import ServiceHarness, key_bundle, read_statement
from tests.support.service.places import Place, sequence, void_all
from tests.support.service.player import Player


class Lived:
    """A server that was backed up with a round open, lived on, and was restored."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.clock = ManualClock()

    async def live(self) -> None:
        place = self.place
        harness = await place.harness(self.clock)
        self.anna, self.bert, self.cleo = (Player(harness, name=name) for name in ("anna", "bert", "cleo"))
        self.dora = Player(harness, name="dora")
        await harness.start()
        for player in (self.anna, self.bert, self.cleo):
            await player.sit()
        await self.anna.play()
        harness.clock.tick(1500)
        await self.bert.start()
        await self.cleo.start()
        await sequence(harness, place.log)
        await harness.stop(ended=False)
        place.back_up()
        again = await place.harness(self.clock)
        await again.start()
        for player in (self.anna, self.bert, self.cleo, self.dora):
            player.harness = again
        await self.anna.play(200)
        await self.anna.buy(700)
        await self.anna.start()  # its deck is in no backup
        await self.bert.finish_round()
        await self.bert.leave()
        await self.cleo.act("check")  # decided, and nothing signed tells of it
        await self.dora.sit()
        await again.settle()
        await sequence(again, place.log)
        await again.stop(ended=False)
        place.restore()
        await place.lapse()


async def restored(place: Place) -> Lived:
    lived = Lived(place)
    await lived.live()
    return lived


async def test_a_restored_store_is_not_started_over_its_log(place: Place) -> None:
    await restored(place)
    reads = await open_reads(place.store)
    with pytest.raises(LogRefusedError, match="run `rgs recover`") as caught:
        await verify_not_behind(reads, place.log)
    assert caught.value.code == "STORE_BEHIND"
    await reads.close()


async def test_the_log_brings_everything_back_that_can_be(place: Place) -> None:
    lived = await restored(place)
    assert await place.import_all() > 10
    assert await place.gap() == []
    interrupted = await place.harness(lived.clock)
    with pytest.raises(StoreRefusedError, match="cut short"):
        await interrupted.start()
    await interrupted.stop(ended=False)
    epoch = await meta(place, "store_epoch")
    recovered = await place.sign(lived.clock)
    assert recovered.before == epoch
    assert {(round_.session_id, bool(round_.sealed)) for round_ in recovered.paused} == {
        (lived.anna.session_id, False),
        (lived.cleo.session_id, True),
    }
    harness = await place.harness(lived.clock)
    await harness.start()
    await verify_not_behind(harness.store, place.log)
    await void_all(harness, recovered.paused)
    for player in (lived.anna, lived.cleo, lived.dora):  # dora came in the gap
        session = await harness.store.session(player.session_id)
        assert session is not None
        player.harness = harness
        await player.end()
        await player.close()
    await harness.settle()
    await sequence(harness, place.log)
    bert = await harness.store.session(lived.bert.session_id)
    assert bert is not None
    assert (bert.status, bert.player, bert.rounds) == ("closed", "bert", 1)
    await harness.instance.end("DRAINED")
    await verify_everything(harness)
    starts = [one async for row in harness.store.statements_in_order() if row.kind == "instance_start"
              for one in [read_statement(row.envelope)]]  # fmt: skip
    assert [one["store_epoch"] == epoch for one in starts] == [True, True, True, False]
    assert starts[-1]["store_epoch"] == recovered.after
    await harness.stop(ended=False)


async def meta(place: Place, key: str) -> str:
    reads = await open_reads(place.store)
    try:
        return await reads.meta(key)
    finally:
        await reads.close()


async def test_a_store_that_is_served_is_left_alone(place: Place) -> None:
    await restored(place)
    reads = await open_reads(place.store)
    planned = await plan_import(reads, await find_gap(reads, place.log, KeyBook(key_bundle())))
    await reads.close()
    harness = await place.harness()
    await harness.services.load()
    if isinstance(place.store, PostgresAddress):
        await harness.start()
    with pytest.raises(StoreRefusedError, match="in use"):
        await import_gap(place.store, planned)
    await harness.stop(ended=False)


async def test_what_is_there_already_is_not_imported_twice(place: Place) -> None:
    await restored(place)
    reads = await open_reads(place.store)
    planned = await plan_import(reads, await find_gap(reads, place.log, KeyBook(key_bundle())))
    await reads.close()
    await import_gap(place.store, planned)
    with pytest.raises(StoreRefusedError, match="nothing was imported"):
        await import_gap(place.store, planned)
    assert await place.gap() == []


async def verify_everything(harness: ServiceHarness) -> None:
    replay = Replay(KeyBook(key_bundle()), Rulebook())
    failures = []
    async for row in harness.store.statements_in_order():
        private = parse_canonical(row.private) if row.private else None
        failures += replay.feed(format_line(ExportLine(row.envelope, private)))
    assert [failure.message for failure in (*failures, *replay.finish())] == []
    summary = replay.summary
    assert (summary.rounds_verified, summary.rounds_failed, summary.seats_void) == (5, 0, 2)
    assert summary.draws_exposed == 2 * 16 + 1  # two instances that were lost, and a deck that was


async def test_a_store_that_went_on_is_not_mended(place: Place) -> None:
    """Planted: the restored store was served without a look at the log."""
    lived = await restored(place)
    harness = await place.harness(lived.clock)
    await harness.start()
    await harness.stop()
    with pytest.raises(LogRefusedError) as caught:
        await place.gap()
    assert caught.value.code == "STORE_FORKED"


async def test_a_log_that_was_restored_too_is_told_by_a_witness(place: Place) -> None:
    await restored(place)
    (shard,) = [path.parent for path in place.log.glob("*/checkpoint")]
    newest = parse_checkpoint(parse_note((shard / "checkpoint").read_bytes()).text)
    assert await place.gap(newest)
    for planted, words in (
        (Checkpoint(newest.origin, newest.size + 1, newest.root), "restored from a backup, too"),
        (Checkpoint(newest.origin, newest.size, bytes(32)), "another history"),
        (Checkpoint("log.example/1999h1", 1, bytes(32)), "has no shard"),
    ):
        with pytest.raises(VerificationError, match=words):
            await place.gap(planted)


async def test_a_statement_that_was_changed_in_the_log_is_not_imported(place: Place) -> None:
    await restored(place)
    (bundle,) = sorted(place.log.glob("*/tile/entries/000.p/*"), key=lambda path: int(path.name))[-1:]
    data = bytearray(bundle.read_bytes())
    data[-20] ^= 1
    bundle.write_bytes(data)
    with pytest.raises(LogRefusedError) as caught:
        await place.gap()
    assert caught.value.code == "ROOT_DIFFERS"
