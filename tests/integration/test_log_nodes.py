"""Two nodes over one PostgreSQL and one log folder: one leads, the other takes over, and nothing is passed over though
each commits by its own clock.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

from rgs.node.clock import SystemClock
from rgs.store.opening import open_reads
from rgs.store.postgres.store import PostgresStore
from rgs.tlog.sequencer import Sequencer
from tests.support.log.sequencing import PREFIX, SIGNER, Logged
from tests.support.store.databases import fresh_database
from tests.support.store.shelf import opened, session, start_instance

EACH = 150


def node(store: PostgresStore, folder: Path) -> Sequencer:
    return Sequencer(store=store, clock=SystemClock(), folder=folder, prefix=PREFIX, signer=SIGNER, delay_ms=60_000)


async def commit(store: PostgresStore, first: int) -> None:
    for number in range(first, first + EACH):
        await store.commit(opened(session(number)))


async def work(sequencer: Sequencer, until: asyncio.Event) -> None:
    while not until.is_set():
        await sequencer.work()
        await asyncio.sleep(0.01)


async def test_two_nodes_share_a_log(tmp_path: Path) -> None:
    with fresh_database() as address:
        one, other = await PostgresStore.open(address), await PostgresStore.open(address)
        await start_instance(one, "node-1-b1-w0")
        await start_instance(other, "node-1-b2-w0", 2)
        first, second = node(one, tmp_path / "log"), node(other, tmp_path / "log")
        stop_first, stop_second = asyncio.Event(), asyncio.Event()
        loops = [asyncio.create_task(work(first, stop_first)), asyncio.create_task(work(second, stop_second))]
        await asyncio.gather(commit(one, 1), commit(other, 1_001))
        assert first.leads != second.leads
        # Whoever leads goes, and the other goes on.
        if second.leads:
            first, second, one, other = second, first, other, one
            stop_first, stop_second = stop_second, stop_first
            loops.reverse()
        stop_first.set()
        await loops[0]
        await first.close()
        await one.close()
        await commit(other, 2_001)
        stop_second.set()
        await loops[1]
        await second.close()
        assert first.code == second.code == ""
        await other.close()
        reads = await open_reads(address)
        rows = [row async for row in reads.statements_in_order()]
        await reads.close()
    (folder,) = [path for path in (tmp_path / "log").iterdir() if path.is_dir()]
    logged = Logged(folder)
    assert len(rows) == 3 * EACH + 2
    assert Counter(logged.entries) == Counter(row.envelope for row in rows)
    places = {entry: at for at, entry in enumerate(logged.entries)}
    for instance in ("node-1-b1-w0", "node-1-b2-w0"):
        mine = sorted((row for row in rows if row.instance == instance), key=lambda row: row.statement_no)
        at = [places[row.envelope] for row in mine]
        assert at == sorted(at)
