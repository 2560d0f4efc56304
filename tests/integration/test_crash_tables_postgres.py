"""The evening of `test_crash_tables` over PostgreSQL: one unlucky evening whose process dies at every write in turn.

Each process goes on where the last one died, and dies before its first commit; the next one dies right after it. Where
that brought nothing new (an opening that is asked for again), the ones after it die one commit later. So each commit of
the evening is cut off on both sides, of the database, the wallet and the regulator.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from rgs.store.address import PostgresAddress
from rgs.store.opening import open_store
from rgs.store.postgres.store import PostgresStore
from tests.integration.test_crash_tables import life, lives
from tests.support.service.crashing import FAILPOINT, forking, live, serve_children
from tests.support.service.floor import BEGIN_MS, CLOCK, Floor
from tests.support.service.harness import read_statement

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

LIVES_MAX = 600
KILLS_MIN = 200
COMMIT = "COMMIT"
RESERVED = (
    "SELECT count(*) FROM sessions s LEFT JOIN sittings p ON p.session_id = s.session_id"
    " WHERE s.reserved_minor <> COALESCE(p.reserved_minor, 0)"
)
PROGRESS = """
    SELECT (SELECT count(*) FROM answers), (SELECT count(*) FROM voids),
    (SELECT sum(version) FROM tables), (SELECT sum(version) FROM table_rounds), (SELECT sum(version) FROM sessions),
    (SELECT sum(version) FROM sittings), (SELECT count(*) FROM rounds), (SELECT sum(version) FROM rounds),
    (SELECT string_agg(status, ' ') FROM operations)
"""
"""What an evening has come to, the starts of processes aside."""


async def deadly_life(order: dict[str, Any]) -> None:
    """A life whose connections pass the failpoint before and after every commit."""
    execute = asyncpg.Connection.execute

    async def deadly(self: Any, query: str, *values: Any, **options: Any) -> Any:
        if query != COMMIT:
            return await execute(self, query, *values, **options)
        commit = FAILPOINT.reach("postgres")
        FAILPOINT.pass_by(commit, "before")
        status = await execute(self, query, *values, **options)
        FAILPOINT.pass_by(commit, "after")
        return status

    asyncpg.Connection.execute = deadly  # type: ignore[method-assign]
    folder, address = Path(order["folder"]), PostgresAddress(order["database"])
    floor = Floor(address, folder)
    await life(folder, recover_first=order["recover_first"], database=address, pass_to=floor.pass_to)


@pytest.fixture(scope="module")
def processes() -> Iterator[subprocess.Popen[str]]:
    with forking("tests.integration.test_crash_tables_postgres") as process:
        yield process


class Left:
    """What a dead process left, read over connections of its own."""

    def __init__(self, folder: Path, address: PostgresAddress) -> None:
        self._floor = Floor(address, folder)

    async def begin(self) -> None:
        """The database's clock is the test's."""
        await self._floor.execute(*CLOCK)

    async def reserved_breaks(self) -> int:
        ((row,),) = await self._floor.execute(RESERVED)
        return int(row[0])

    async def progress(self) -> tuple[Any, ...]:
        ((row,),) = await self._floor.execute(PROGRESS)
        return tuple(row)

    async def verified(self) -> Counter[str]:
        """The kinds of all statements, which replay; of finals with their status."""
        store = await open_store(self._floor.address)
        assert isinstance(store, PostgresStore)
        try:
            rows = await self._floor.verified_by(store)
        finally:
            await store.close()
        finals = [read_statement(row.envelope)["status"] for row in rows if row.kind == "seat_final"]
        return Counter(row.kind for row in rows) + Counter(f"seat_final {status}" for status in finals)


def test_killed_at_every_write_of_one_evening(
    tmp_path: Path, processes: subprocess.Popen[str], database: PostgresAddress
) -> None:
    left, places, number = Left(tmp_path, database), list[str](), 1
    asyncio.run(left.begin())
    (tmp_path / "clock.txt").write_text(str(BEGIN_MS), "ascii")
    status = -signal.SIGKILL
    while status == -signal.SIGKILL:
        before = asyncio.run(left.progress())
        for when in ("before", "after"):
            order = {"folder": str(tmp_path), "database": database.url, "recover_first": False}
            status = live(processes, {**order, "kill_at": f"step commit {number} {when}"})
            if status != -signal.SIGKILL:
                break
            assert asyncio.run(left.reserved_breaks()) == 0
            places.append((tmp_path / "points.txt").read_text("ascii").splitlines()[-1])
        number = number + 1 if asyncio.run(left.progress()) == before else 1
        assert len(places) < LIVES_MAX, places[-10:]
        if len(places) % 40 == 0:
            asyncio.run(left.verified())
    lives(tmp_path, status)
    # A step that was cut off is ended by whoever looks at the table next, under that step's name.
    assert Counter(place.split("/")[1] for place in places).keys() == {"postgres", "wallet", "regulator"}
    assert len(places) > KILLS_MIN
    found = asyncio.run(left.verified())
    shared = ("table_round", "table_seats", "table_deal", "table_final")
    assert {kind: found[kind] for kind in shared} == dict.fromkeys(shared, 3)
    assert (found["seat_opening"], found["seat_final settled"], found["seat_final void"]) == (5, 4, 1)
    assert (found["session_open"], found["session_close"]) == (4, 4)


if __name__ == "__main__":
    serve_children(deadly_life)
