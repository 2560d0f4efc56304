"""A store of tables that was restored beside a longer log: it is recovered, and the table goes on.

Admins make void what is paused, the players who are there play one more round and go, and an auditor replays the whole
record: what was before, the gap, and what came behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from rgs.core.errors import TableStateError
from rgs.core.sessions import SessionStatus
from rgs.core.statements import ExportLine, format_line
from rgs.core.statements.canonical import parse_canonical
from rgs.core.tables.machine import State
from rgs.node.clock import wall_ms
from rgs.service.admin.recovery import REASON, Recovered, plan_import, sign_recovery, with_privates
from rgs.service.instance import Instance
from rgs.service.play.requests import CloseSession
from rgs.service.sealing import Sealer
from rgs.store.interface import Store
from rgs.store.opening import import_gap, open_reads, open_store
from rgs.store.privates import PRIVATES_FILE, SealedPrivates
from rgs.store.recovery import Import
from rgs.store.sqlite.store import SqliteStore
from tests.support.clocks import ManualClock
from tests.support.service.harness import KEK, NODE, NODE_KEY, ServiceHarness
from tests.support.service.oracles import replay_lines
from tests.support.service.places import Place, sequence
from tests.support.service.table_cuts import evening_of
from tests.support.service.tables import ADMIN, SECOND_ADMIN, Evening, Sitter


class Restored:
    """A store that was restored beside a longer log, and what becomes of it."""

    def __init__(self, place: Place, table_id: str, sessions: Mapping[str, str], time_ms: int) -> None:
        """`sessions` are those of the players by name; `time_ms` is when the store was lost."""
        self.place, self.table_id, self.sessions = place, table_id, sessions
        self.clock = ManualClock()
        self.clock.time_ms = time_ms
        if isinstance(place.store, Path):  # a database's clock is not the test's
            self.clock.tick(60_000)
        self.planned: Import
        self.recovered: Recovered

    async def import_all(self) -> None:
        reads = await open_reads(self.place.store)
        sealed = SealedPrivates(self.place.log / PRIVATES_FILE)
        gap = with_privates(await self.place.gap(), sealed, Sealer(KEK))
        self.planned = await plan_import(reads, gap)
        sealed.close()
        await reads.close()
        await import_gap(self.place.store, self.planned)
        assert await self.place.gap() == []

    async def sign(self, *, void_undecided: bool = True) -> None:
        """The second half, under the clock of the server that was."""
        store = await open_store(self.place.store)
        shared = not isinstance(self.place.store, Path)
        instance = Instance(store=store, clock=self.clock, sealer=Sealer(KEK), node=NODE, worker=999, shared=shared)
        try:
            await instance.start(
                NODE_KEY, manifest_sha256="0" * 64, software_version="0.1.0", artifacts=(), recovers=True
            )
            self.recovered = await sign_recovery(store, instance, self.clock, void_undecided=void_undecided)
            await instance.end(REASON)
        finally:
            await store.close()

    def expected(self) -> list[str]:
        """What replay reports: each seat that cannot be opened or settled any more, and nothing else."""
        lost = ["28 " for table in self.recovered.tables if table.fault]
        return sorted([*lost, *("11 " for _ in self.recovered.undecided)])

    async def go_on(self) -> None:
        """Admins make void what is paused, the players play one more round, and go; the log goes on."""
        harness = await self.place.harness(self.clock)
        await harness.start()
        try:
            evening = evening_of(harness, self.table_id)
            await harness.let_in(ADMIN.party, SECOND_ADMIN.party)
            await void_all(harness, self.recovered)
            if await harness.store.table(self.table_id) is not None:
                await in_service(evening)
                assert await harness.store.reserved_breaks(self.table_id, "", 10) == []
                sitters = await back(evening, self.sessions)
                if sitters:
                    await last_round(evening, sitters)
            await harness.settle()
            await harness.instance.end("DRAINED")
            await sequence(harness, self.place.log)
        finally:
            await harness.stop(ended=False)
        assert await self.place.gap() == []

    async def verify(self) -> list[str]:
        """Replay everything: it reports what is `expected`, and nothing else. What it reports."""
        reads = await open_reads(self.place.store)
        rows = [row async for row in reads.statements_in_order()]
        await reads.close()
        lines = [
            format_line(ExportLine(row.envelope, parse_canonical(row.private) if row.private else None)) for row in rows
        ]
        failures, summary = replay_lines(lines)
        assert sorted(failure[:3] for failure in failures) == self.expected(), failures
        assert summary.rounds_open == 0
        return failures


async def reach(evening: Evening, *states: State) -> None:
    """The table in one of these states: over a file the test lets time pass, a database has a clock of its own."""
    store: Store = evening.harness.store
    if isinstance(store, SqliteStore):
        await evening.until(*states, most=20)
        return
    async with asyncio.timeout(30):
        while await evening.state() not in states:
            await asyncio.sleep(0.02)
            await evening.look()
    clock = evening.harness.clock
    clock.tick(max(0, wall_ms() + 500 - clock.time_ms))  # ahead of what the database has dated


async def void_all(harness: ServiceHarness, recovered: Recovered) -> None:
    admin = harness.tables.admin
    for one in recovered.tables:
        with pytest.raises(TableStateError, match="can only be made void"):
            await admin.resume(ADMIN, harness.request_id(), one.table_id, "REPAIRED")
        for party, is_void in ((ADMIN, False), (SECOND_ADMIN, True)):
            done, _ = await admin.void(party, harness.request_id(), one.table_id, one.round_id, one.reason)
            assert done is is_void


async def in_service(evening: Evening) -> None:
    """The table between two rounds, whatever the admins had ordered in the gap."""
    harness, table_id, admin = evening.harness, evening.config.id, evening.harness.tables.admin
    if await evening.state() is State.PAUSED:
        await admin.resume(ADMIN, harness.request_id(), table_id, "REPAIRED")
    if (await evening.row()).is_shut:
        await admin.set_open(ADMIN, harness.request_id(), table_id, is_open=True, reason="INSPECTED")
    await reach(evening, State.IDLE, State.RESULT, State.BETTING)


async def back(evening: Evening, sessions: Mapping[str, str]) -> list[Sitter]:
    """The players whose participation runs, at the table again."""
    sitters = []
    for name, session_id in sessions.items():
        session = await evening.harness.store.session(session_id)
        if session is None or session.status is not SessionStatus.OPEN:
            continue
        if session.participation.ended or not session.participation_id:
            await evening.harness.send(CloseSession(evening.harness.request_id(), session_id))
            continue
        sitter = Sitter(evening, name)
        sitter.session_id = session_id
        await sitter.join()
        sitters.append(sitter)
    return sitters


async def last_round(evening: Evening, sitters: list[Sitter]) -> None:
    await reach(evening, State.IDLE, State.BETTING)
    for sitter in sitters:
        await sitter.look()
        await sitter.bet(ante=1_000)
    await reach(evening, State.DECIDING)
    await sitters[0].decide("check")
    await reach(evening, State.RESULT)
    for sitter in sitters:
        await sitter.look()
        assert sitter.seat["round"]["status"] == "settled"
        await sitter.leave()
        await sitter.end()
    await reach(evening, State.IDLE)
