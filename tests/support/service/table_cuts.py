"""An evening at one table, kept in pieces: the store after every commit, and the log up to any statement.

`Kept.lost` puts a pair of them together: a backup of the store beside a log that goes further. Wallet and regulator are
as they were behind the log's last statement, and `truth` is the store that was there then.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rgs.core.tables.machine import State
from rgs.service.sealing import Sealer
from rgs.store.changes import Change, Signed
from rgs.store.sqlite.store import SqliteStore
from rgs.tlog.sequencer import Sequencer
from tests.support.clocks import ManualClock
from tests.support.service.harness import KEK, OPERATOR, ServiceHarness, open_harness
from tests.support.service.places import LOG_KEY, Place
from tests.support.service.tables import ADMIN, ALWAYS, SECOND_ADMIN, Evening, Sitter, config_text

TIMERS = {"betting_ms": 20_000, "amber_ms": 5_000, "decision_ms": 15_000, "result_ms": 5_000}
BOOKS = ("rgs.db", "wallet.db", "regulator.db")
NAMES = ("player-1", "player-2", "player-3")
BARRED = "player-5"
LATE = "player-4"
"""Comes after the first round."""


def evening_of(harness: ServiceHarness, table_id: str) -> Evening:
    return Evening(harness, table_id, hours=ALWAYS, timers=TIMERS)


@dataclass
class Kept:
    """What is kept of an evening."""

    folder: Path
    table_id: str
    time_ms: int = 0
    counts: list[int] = field(default_factory=list)
    """How many statements each copy of the store has."""
    kinds: list[str] = field(default_factory=list)
    """Kind of each statement."""
    sessions: dict[str, str] = field(default_factory=dict)
    """Session of each player."""

    def copy_of(self, number: int, name: str = BOOKS[0]) -> Path:
        return self.folder / f"{number}-{name}"

    def keep(self, store: Path) -> None:
        """Keep a copy of the store as it is now."""
        for name in BOOKS:
            copy = self.copy_of(len(self.counts), name)
            with closing(sqlite3.connect(store.parent / name)) as source, closing(sqlite3.connect(copy)) as to:
                source.backup(to)
        (count,) = rows(self.copy_of(len(self.counts)), "SELECT count(*) FROM statements")[0]
        self.counts.append(count)

    def backups(self, cut: int) -> list[int]:
        """The copies that a log of so many statements is ahead of."""
        return [number for number, count in enumerate(self.counts) if 0 < count < cut]

    def truth(self, cut: int) -> int | None:
        """The last copy with exactly these statements."""
        found = [number for number, count in enumerate(self.counts) if count == cut]
        return found[-1] if found else None

    async def lost(self, folder: Path, backup: int, cut: int) -> Place:
        """A place with the backup, and a log of the first `cut` statements of the evening."""
        folder.mkdir()  # noqa: ASYNC240
        place = Place(folder, None)
        shutil.copy(self.copy_of(len(self.counts) - 1), folder / "cut.db")
        with closing(sqlite3.connect(folder / "cut.db")) as db, db:
            db.execute("DELETE FROM statements WHERE id NOT IN (SELECT id FROM statements ORDER BY id LIMIT ?)", (cut,))
            db.execute(
                "UPDATE instances SET statement_no = (SELECT count(*) FROM statements s"
                " WHERE s.instance = instances.instance)"
            )
        clock = ManualClock()
        clock.time_ms = self.time_ms
        store = SqliteStore(folder / "cut.db")
        sequencer = Sequencer(
            store=store, clock=clock, folder=place.log, prefix="log.example", signer=LOG_KEY, delay_ms=60_000,
            seal=Sealer(KEK).seal_private,
        )  # fmt: skip
        await sequencer.close()
        assert sequencer.code == ""
        await store.close()
        shutil.copy(self.copy_of(backup), folder / "rgs.db")
        newest = next(
            number for number, count in enumerate(self.counts) if count == max(c for c in self.counts if c <= cut)
        )
        for name in BOOKS[1:]:
            shutil.copy(self.copy_of(newest, name), folder / name)
        return place


def rows(store: Path, query: str, *values: object) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(store)) as db:
        return db.execute(query, values).fetchall()


async def kept_evening(folder: Path, table_id: str) -> Kept:
    """Four rounds: all decide at once, some are silent, all decide, void. Between them one comes and one goes."""
    kept = Kept(folder, table_id)
    async with open_harness(folder, ended=False) as harness:
        commit = harness.store.commit

        async def commit_and_keep(change: Change) -> tuple[Signed, ...]:
            signed = await commit(change)
            kept.keep(folder / "rgs.db")
            return signed

        harness.store.commit = commit_and_keep  # type: ignore[method-assign]
        evening = await evening_of(harness, table_id).open()
        sitters = await evening.seated(*NAMES)
        await _play(evening, sitters, 0)
        sitters += await evening.seated(LATE)
        kept.sessions = {sitter.name: sitter.session_id for sitter in sitters}
        await _play(evening, sitters, 1)
        await sitters[1].look()
        await sitters[1].leave()
        await sitters[1].end()
        del sitters[1]
        await configure(evening, harness, 2)
        await _play(evening, sitters, 2)
        await _void(evening, sitters)
        kept.time_ms = harness.clock.time_ms
    kept.kinds = [kind for (kind,) in rows(folder / "rgs.db", "SELECT kind FROM statements ORDER BY id")]
    return kept


async def configure(evening: Evening, harness: ServiceHarness, version: int) -> None:
    """The next configuration of the table: results are shown for longer."""
    timers = {**TIMERS, "result_ms": TIMERS["result_ms"] + version}
    text = config_text(evening.config.id, hours=ALWAYS, timers=timers, version=version)
    await harness.tables.admin.configure(ADMIN, harness.request_id(), text, "LONGER_RESULTS")


async def _void(evening: Evening, sitters: Sequence[Sitter]) -> None:
    """A round that a malfunction stops, and that two admins make void."""
    harness, table_id, admin = evening.harness, evening.config.id, evening.harness.tables.admin
    await evening.until(State.IDLE, State.BETTING)
    for sitter in sitters:
        await sitter.look()
        await sitter.bet(ante=1_000)
    order = (harness.request_id(), table_id, OPERATOR.party, BARRED)
    await admin.bar(ADMIN, *order, barred=True, reason="COURT_ORDER")  # a statement while bets are reserved
    await evening.until(State.DECIDING)
    await sitters[0].decide("play_3x")
    harness.clock.tick(300)
    await admin.pause(ADMIN, harness.request_id(), table_id, "DISPLAY_FAULT")
    await admin.resume(ADMIN, harness.request_id(), table_id, "REPAIRED")
    await admin.pause(ADMIN, harness.request_id(), table_id, "DISPLAY_FAULT")
    round_id = (await evening.row()).table.round_id
    for party in (ADMIN, SECOND_ADMIN):
        await admin.void(party, harness.request_id(), table_id, round_id, "DISPLAY_FAULT")
    await evening.until(State.RESULT)
    await admin.pause(ADMIN, harness.request_id(), table_id, "DISPLAY_FAULT")
    await admin.resume(ADMIN, harness.request_id(), table_id, "REPAIRED")
    await admin.set_open(ADMIN, harness.request_id(), table_id, is_open=False, reason="INSPECTION")
    await admin.set_open(ADMIN, harness.request_id(), table_id, is_open=True, reason="INSPECTION")


async def _play(evening: Evening, sitters: Sequence[Sitter], number: int) -> None:
    harness = evening.harness
    await evening.until(State.IDLE, State.BETTING)
    for place, sitter in enumerate(sitters):
        harness.clock.tick(300)
        await sitter.look()
        await sitter.bet(ante=1_000 + 500 * place)
    await sitters[0].look()
    await sitters[0].bet(ante=1_500, trips=500)  # another bet in place of the first
    await evening.until(State.DECIDING)
    if number == 1:  # one is silent, one decides at the flop
        await sitters[0].look()
        await sitters[0].decide("play_3x")
        await sitters[1].decide("check")
        await evening.pass_time()
        await sitters[1].look()
        await sitters[1].decide("check")
    else:
        for sitter in sitters:
            harness.clock.tick(100)
            await sitter.look()
            await sitter.decide("play_3x" if sitter is sitters[0] else "check")
        while await evening.state() is State.DECIDING:
            for sitter in sitters:
                await sitter.look()
                if "check" in sitter.legal:
                    await sitter.decide("check")
                elif "fold" in sitter.legal:
                    await sitter.decide("fold")
            await evening.look()
    await evening.until(State.RESULT)
