"""A backup of the store is restored: no start over it, the log brings it back, and replay and log agree afterwards."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rgs.core.checkpoints import Checkpoint, parse_checkpoint
from rgs.core.errors import VerificationError
from rgs.core.note import parse_note
from rgs.core.replay import KeyBook, Replay, Rulebook
from rgs.core.rounds import DECK_UNRECOVERABLE, Round
from rgs.core.statements import Ed25519Signer, ExportLine, format_line
from rgs.core.statements.canonical import parse_canonical
from rgs.service.instance import Instance
from rgs.service.recovery import REASON, Recovered, plan_import, sign_recovery
from rgs.service.sealing import Sealer
from rgs.store.changes import StoreRefusedError
from rgs.store.opening import open_reads
from rgs.store.recovery import import_gap
from rgs.store.sqlite import SqliteStore
from rgs.translog.directory import LogRefusedError
from rgs.translog.gap import Missing, find_gap, verify_not_behind
from rgs.translog.sequencer import Sequencer
from tests.house import KEK, NODE, NODE_KEY, STORE_EPOCH, House, Player, key_bundle, read_statement
from tests.unit.service.admins import AdminOf, refusals

LOG_KEY = Ed25519Signer.from_seed(b"\x31" * 32)


async def sequence(house: House, log: Path) -> None:
    """Everything that is committed into the log."""
    sequencer = Sequencer(
        store=house.store, clock=house.clock, folder=log, prefix="log.example", signer=LOG_KEY, delay_ms=60_000
    )
    await sequencer.close()
    assert sequencer.code == ""


def copy_store(folder: Path, to: Path) -> None:
    """The files of the store, while nobody holds it."""
    to.mkdir(exist_ok=True)
    for path in to.glob("rgs.db*"):
        path.unlink()
    for path in folder.glob("rgs.db*"):
        shutil.copy(path, to / path.name)


async def gap_of(folder: Path, seen: Checkpoint | None = None) -> list[Missing]:
    reads = await open_reads(folder / "rgs.db")
    try:
        return await find_gap(reads, folder / "log", KeyBook(key_bundle()), seen)
    finally:
        await reads.close()


async def import_all(folder: Path) -> int:
    """The first half: nothing is signed."""
    reads = await open_reads(folder / "rgs.db")
    try:
        planned = await plan_import(reads, await find_gap(reads, folder / "log", KeyBook(key_bundle())))
    finally:
        await reads.close()
    import_gap(folder / "rgs.db", planned)
    return len(planned.statements)


async def sign(folder: Path, house: House) -> Recovered:
    """The second half, under the clock of the house that was."""
    store = SqliteStore(folder / "rgs.db")
    instance = Instance(store=store, clock=house.clock, sealer=Sealer(KEK), node=NODE, worker=999)
    try:
        await instance.start(NODE_KEY, manifest_sha256="0" * 64, software_version="0.1.0", artifacts=(), recovers=True)
        recovered = await sign_recovery(store, instance, house.clock)
        await instance.end(REASON)
        return recovered
    finally:
        await store.close()


class Lived:
    """A house that was backed up with a round open, and lived on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.house = House(folder)
        self.anna, self.bert, self.cleo = (Player(self.house, name=name) for name in ("anna", "bert", "cleo"))
        self.dora = Player(self.house, name="dora")

    async def live(self) -> None:
        house, log = self.house, self.folder / "log"
        await house.start()
        for player in (self.anna, self.bert, self.cleo):
            await player.sit()
        await self.anna.play()
        house.clock.tick(1500)
        await self.bert.start()
        await self.cleo.start()
        await sequence(house, log)
        await house.stop(ended=False)
        copy_store(self.folder, self.folder / "backup")
        again = House(self.folder, clock=house.clock)
        await again.start()
        for player in (self.anna, self.bert, self.cleo, self.dora):
            player.house = again
        await self.anna.play(200)
        await self.anna.buy(700)
        await self.anna.start()  # its deck is in no backup
        await self.bert.finish_round()
        await self.bert.leave()
        await self.cleo.act("check")  # decided, and nothing signed tells of it
        await self.dora.sit()
        await again.settle()
        await sequence(again, log)
        await again.stop(ended=False)
        copy_store(self.folder / "backup", self.folder)


@asynccontextmanager
async def restored(folder: Path) -> AsyncIterator[Lived]:
    lived = Lived(folder)
    await lived.live()
    yield lived


async def test_a_restored_store_is_not_started_over_its_log(tmp_path: Path) -> None:
    async with restored(tmp_path):
        reads = await open_reads(tmp_path / "rgs.db")
        with pytest.raises(LogRefusedError, match="run `rgs recover`") as caught:
            await verify_not_behind(reads, tmp_path / "log")
        assert caught.value.code == "STORE_BEHIND"
        await reads.close()


async def test_the_log_brings_everything_back_that_can_be(tmp_path: Path) -> None:
    async with restored(tmp_path) as lived:
        assert await import_all(tmp_path) > 10
        assert await gap_of(tmp_path) == []
        interrupted = House(tmp_path, clock=lived.house.clock)
        with pytest.raises(StoreRefusedError, match="cut short"):
            await interrupted.start()
        await interrupted.stop(ended=False)
        recovered = await sign(tmp_path, lived.house)
        assert recovered.before == STORE_EPOCH
        assert {(round_.session_id, bool(round_.sealed)) for round_ in recovered.paused} == {
            (lived.anna.session_id, False),
            (lived.cleo.session_id, True),
        }
        house = House(tmp_path, clock=lived.house.clock)
        await house.start()
        await verify_not_behind(house.store, tmp_path / "log")
        await void_all(house, recovered.paused)
        for player in (lived.anna, lived.cleo):
            session = await house.store.session(player.session_id)
            assert session is not None
            player.house = house
            await player.end()
            await player.close()
        await house.settle()
        await sequence(house, tmp_path / "log")
        bert = await house.store.session(lived.bert.session_id)
        assert bert is not None
        assert (bert.status, bert.player, bert.rounds) == ("closed", "bert", 1)
        await house.instance.end("DRAINED")
        await verify_everything(house)
        starts = [one async for row in house.store.statements_in_order() if row.kind == "instance_start"
                  for one in [read_statement(row.envelope)]]  # fmt: skip
        assert [one["store_epoch"] == STORE_EPOCH for one in starts] == [True, True, True, False]
        assert starts[-1]["store_epoch"] == recovered.after
        await house.stop(ended=False)


async def void_all(house: House, rounds: tuple[Round, ...]) -> None:
    one, two = AdminOf(house), AdminOf(house, "admin-2")
    for round_ in rounds:
        reason = REASON if round_.sealed else DECK_UNRECOVERABLE
        assert refusals(await one.propose(round_.round_id, reason=reason)) == [""]
        assert refusals(await two.approve(round_.round_id)) == [""]


async def verify_everything(house: House) -> None:
    replay = Replay(KeyBook(key_bundle()), Rulebook())
    failures = []
    async for row in house.store.statements_in_order():
        private = parse_canonical(row.private) if row.private else None
        failures += replay.feed(format_line(ExportLine(row.envelope, private)))
    left = [failure.message for failure in (*failures, *replay.finish())]
    # Dora came in the gap: her session cannot be closed by a store that does not know who she is.
    assert left == ["the session ends at 2 without its end"]
    summary = replay.summary
    assert (summary.rounds_verified, summary.rounds_failed, summary.seats_void) == (5, 0, 2)
    assert summary.draws_exposed == 2 * 1024 + 1  # two instances that were lost, and a deck that was


async def test_a_store_that_went_on_is_not_mended(tmp_path: Path) -> None:
    """Planted: the restored store was served without a look at the log."""
    async with restored(tmp_path) as lived:
        house = House(tmp_path, clock=lived.house.clock)
        await house.start()
        await house.stop()
        with pytest.raises(LogRefusedError) as caught:
            await gap_of(tmp_path)
        assert caught.value.code == "STORE_FORKED"


async def test_a_log_that_was_restored_too_is_told_by_a_witness(tmp_path: Path) -> None:
    async with restored(tmp_path):
        (shard,) = [path.parent for path in (tmp_path / "log").glob("*/checkpoint")]
        newest = parse_checkpoint(parse_note((shard / "checkpoint").read_bytes()).text)
        assert await gap_of(tmp_path, newest)
        for planted, words in (
            (Checkpoint(newest.origin, newest.size + 1, newest.root), "restored from a backup, too"),
            (Checkpoint(newest.origin, newest.size, bytes(32)), "another history"),
            (Checkpoint("log.example/1999h1", 1, bytes(32)), "has no shard"),
        ):
            with pytest.raises(VerificationError, match=words):
                await gap_of(tmp_path, planted)


async def test_a_statement_that_was_changed_in_the_log_is_not_imported(tmp_path: Path) -> None:
    async with restored(tmp_path):
        (bundle,) = sorted((tmp_path / "log").glob("*/tile/entries/000.p/*"), key=lambda path: int(path.name))[-1:]
        data = bytearray(bundle.read_bytes())
        data[-20] ^= 1
        bundle.write_bytes(data)
        with pytest.raises(LogRefusedError) as caught:
            await gap_of(tmp_path)
        assert caught.value.code == "ROOT_DIFFERS"
