"""Four processes over one PostgreSQL whose clock the test moves: `Floor`, with the tables as each of them sees them.

The processes are harnesses with connections, clocks and memories of their own. The database's clock is a row: a
function of the test's hides the database's own.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg

from rgs.cli.export import SCOPE_INSTANCES
from rgs.core.statements import ExportLine, format_line, parse_canonical
from rgs.core.tables.machine import State
from rgs.core.times import format_time
from rgs.store.address import PostgresAddress
from rgs.store.interface import StatementRow, Store
from rgs.store.opening import open_parties, open_store
from tests.support.clocks import NOW_MS, ManualClock
from tests.support.service.harness import NODE_KEY, ServiceHarness, read_statement, sealed
from tests.support.service.oracles import replay_lines, verify_numbers
from tests.support.service.tables import ALWAYS, Evening

AHEAD_MS = (0, 4_000, -4_000, 0)
"""So much is the clock of each process ahead of the database's."""
BEGIN_MS = NOW_MS + 60_000
"""No clock is behind the keys."""
CLOCK = (
    f"CREATE TABLE test_clock AS SELECT {BEGIN_MS}::bigint AS ms",
    """
    CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
    'SELECT to_timestamp(ms / 1000.0) FROM public.test_clock'
    """,
    "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database()); END $$",
)


class Floor:
    """The processes, the tables as each of them sees them, and the database's clock."""

    def __init__(self, address: PostgresAddress, folder: Path) -> None:
        self.address, self.folder, self.now_ms = address, folder, BEGIN_MS
        self.processes: list[ServiceHarness] = []
        self._dead: set[int] = set()
        self._rows: dict[str, dict[str, Any]] = {}

    async def start(self, number: int) -> None:
        harness = ServiceHarness(
            self.folder,
            clock=ManualClock(self.now_ms),
            store=await open_store(self.address),
            parties=await open_parties(self.address),
        )
        del harness.store.clock_ms  # the database says
        harness.instance.worker = number
        await harness.start()
        self.processes.append(harness)

    async def drift(self) -> None:
        """Four seconds pass for the database; the clocks of some processes run fast, or stand."""
        for harness, ahead_ms in zip(self.processes, AHEAD_MS, strict=False):
            harness.clock.tick(ahead_ms - min(AHEAD_MS))
        self.now_ms -= min(AHEAD_MS)
        await self.pass_to(self.now_ms)

    async def kill(self, number: int) -> None:
        """The process is gone, without a word."""
        await self.processes[number].stop(ended=False)
        self._dead.add(number)

    @property
    def alive(self) -> list[ServiceHarness]:
        return [one for number, one in enumerate(self.processes) if number not in self._dead]

    async def set_up(self, table: str, **rows: Any) -> None:
        self._rows[table] = {"hours": ALWAYS, **rows}
        await self.at(table, 0).open()

    def at(self, table: str, number: int) -> Evening:
        """The table as a process sees it."""
        return Evening(self.processes[number], table, **self._rows[table])

    async def execute(self, *texts: str) -> list[Any]:
        connection = await asyncpg.connect(self.address.url)
        try:
            return [await connection.fetch(text) for text in texts]
        finally:
            await connection.close()

    async def pass_to(self, time_ms: int) -> None:
        """Time passes, for the database and all processes."""
        passed_ms, self.now_ms = max(0, time_ms - self.now_ms), max(time_ms, self.now_ms)
        await self.execute(f"UPDATE test_clock SET ms = {self.now_ms}")  # noqa: S608 - a number
        for harness in self.processes:
            harness.clock.tick(passed_ms)

    async def until(
        self, table: str, *states: State, look: Callable[[], Awaitable[None]], phase: str = "", late_ms: int = 0
    ) -> None:
        """Let time pass, `late_ms` more than is due, until the table stands so; `look` is what processes do then."""
        store = self.alive[0].store
        for _ in range(40):
            found = await store.table(table)
            assert found is not None
            row = found[0]
            if row.table.state in states and (not phase or row.table.phase == phase):
                return
            await self.pass_to(row.due_ms + late_ms)
            await look()
        raise AssertionError(f"{table} never is {', '.join(states)}")

    async def poll(self, *numbers: int) -> None:
        """The dealers of these processes look for what is due, and finish what they begin."""
        for harness in [self.processes[number] for number in numbers] or self.alive:
            await harness.tables.dealer.poll()
        for harness in self.alive:
            while harness.tables.dealer._under_way:
                await harness.tables.dealer.poll()

    async def everywhere(self, table: str) -> None:
        """All processes take the step at once."""
        await asyncio.gather(*(one.tables.dealer.advance(table) for one in self.alive))

    # --- what is left -------------------------------------------------------------------------------------------------

    async def verified(self) -> list[StatementRow]:
        """All statements; they replay, their numbers have no gap, and every session has what its finals say."""
        return await self.verified_by(self.alive[0].store)

    async def verified_by(self, store: Store) -> list[StatementRow]:
        """The same, read by a store of the caller's."""
        rows = [row async for row in store.statements_in_order()]
        verify_numbers(rows)
        failures, _ = replay_lines(await self._export(rows))
        assert failures == [], failures
        staked: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        for row in rows:
            if row.kind == "seat_final":
                body = read_statement(row.envelope)
                more = (int(body["staked_minor"]), int(body["returned_minor"]), 1)
                staked[row.session_id] = [old + new for old, new in zip(staked[row.session_id], more, strict=True)]
        columns = "session_id, staked_minor, returned_minor, rounds"
        query = f"SELECT {columns} FROM sessions WHERE open_round_id = '' AND table_id <> ''"  # noqa: S608 - our names
        (sessions,) = await self.execute(query)
        for session_id, *sums in sessions:
            assert sums == staked[session_id], session_id
        for table in self._rows:
            assert await store.reserved_breaks(table, "", 100) == []
        return rows

    async def _export(self, rows: Sequence[StatementRow]) -> list[bytes]:
        (instances,) = await self.execute("SELECT instance, statement_no FROM instances ORDER BY instance")
        ranges = [{"first": "1", "instance": name, "last": str(last)} for name, last in instances]
        scopes = [
            {
                "instances": ranges[at : at + SCOPE_INSTANCES],
                "kind": "export_scope",
                "reason": "UNFINISHED",
                "sessions": [],
                "time": format_time(BEGIN_MS),
            }
            for at in range(0, len(ranges), SCOPE_INSTANCES)
        ]
        (seats,) = await self.execute("SELECT opening_hash, path FROM rounds WHERE table_id <> ''")
        paths = {bytes.fromhex(opening): path for opening, path in seats}
        lines = [format_line(ExportLine(sealed(scope, NODE_KEY), None)) for scope in scopes]
        for row in rows:
            path = paths.get(row.hash, b"")
            nodes = tuple(path[at : at + 32] for at in range(0, len(path), 32))
            private = parse_canonical(row.private) if row.private else None
            lines.append(format_line(ExportLine(row.envelope, private, nodes)))
        return lines


@asynccontextmanager
async def opened(address: PostgresAddress, folder: Path, processes: int = 4) -> AsyncIterator[Floor]:
    floor = Floor(address, folder)
    await floor.execute(*CLOCK)
    try:
        for number in range(processes):
            await floor.start(number)
        await floor.drift()
        yield floor
    finally:
        for harness in floor.alive:
            await harness.stop(ended=False)
