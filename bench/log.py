"""Measures the transparency log: the cost and the time of a statement on its way from the store into the log.

Backlog: statements of a store on SQLite that are all there already, of about a final's size, through the sequencer in
full batches: reading, order, files, signatures, checkpoints, everything synced. Its CPU per statement stands over that
of signing one of the same size, its time per statement over that of one write with `fdatasync` in the same folder. Lag:
statements committed at a steady pace while the sequencer works as in the server; from the end of each commit to the
checkpoint that covers it, over the sequencer's period.

All of it runs in one process and one event loop. No game is played, and nobody reads the log meanwhile.
"""

from __future__ import annotations

import asyncio
import bisect
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Final

import structlog

from bench.disk import fdatasync_s
from bench.figures import BenchError, Figure, ratio
from rgs.core.statements import Ed25519Signer, seal_envelope
from rgs.core.tlog.checkpoints import parse_checkpoint
from rgs.core.tlog.note import parse_note
from rgs.node.clock import SystemClock
from rgs.node.transparency_log import LOG_S
from rgs.store.changes import Change, Draft, NewInstance
from rgs.store.sqlite.store import SqliteStore, create_store
from rgs.tlog.sequencer import BATCH, Sequencer

KEY: Final = Ed25519Signer.from_seed(b"a key of no server for the bench")
TEXT_BYTES: Final = 900
"""Bytes of padding, to the size of a final."""
PACE_S: Final = 0.004
GROUP: Final = 64
SIGNATURES: Final = 2_000
STATEMENTS: Final = 20 * BATCH
QUICK_STATEMENTS: Final = 2 * BATCH
LAGS: Final = 500
QUICK_LAGS: Final = 60


async def run(folder: Path, repeats: int, statements: int, lags: int, emit: Callable[[str], None]) -> list[Figure]:
    """The figures of the log: `statements` of backlog and `lags` commits at a pace, in each repeat."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    rates: list[tuple[float, float]] = []
    signing: list[float] = []
    writing: list[float] = []
    lag: list[float] = []
    try:
        for repeat in range(repeats):
            emit(f"log, repeat {repeat + 1} of {repeats}")
            home = folder / str(repeat)
            for part in ("backlog", "lag"):
                (home / part).mkdir(parents=True)
            writing.append(fdatasync_s(home))
            signing.append(signing_cpu_s())
            rates.append(await backlog(home / "backlog", statements))
            lag.append(median(await lags_s(home / "lag", lags)))
    finally:
        structlog.reset_defaults()
    elapsed, cpu = [one for one, _ in rates], [one for _, one in rates]
    return [
        ratio("log_cpu_ratio", cpu, signing),
        Figure("log_cpu_us", tuple(one * 1e6 for one in cpu), "us"),
        ratio("log_write_ratio", elapsed, writing),
        Figure("log_statements_per_s", tuple(1 / one for one in elapsed), "1/s"),
        ratio("log_lag_ratio", lag, [LOG_S] * repeats),
        Figure("log_lag_us", tuple(one * 1e6 for one in lag), "us"),
    ]


def draft(number: int) -> Draft:
    """A statement with the size of a final."""
    return Draft("event", {"code": "BENCH", "time": "then", "text": f"{number:0{TEXT_BYTES}d}"})


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[tuple[SqliteStore, Sequencer]]:
    """A new store with an instance that signs, and a sequencer over it as the server has it."""
    create_store(folder / "rgs.db", "0" * 26)
    store = SqliteStore(folder / "rgs.db")
    await store.start_instance(
        NewInstance(
            instance="bench-b1-w0",
            node="bench",
            boot_no=1,
            worker=0,
            start_ms=0,
            start=Draft("instance_start", {"draws_in_flight_max": "8", "time": "then"}),
            node_signer=KEY,
            signer=KEY,
        )
    )
    sequencer = Sequencer(
        store=store, clock=SystemClock(), folder=folder / "log", prefix="log.example", signer=KEY, delay_ms=60_000
    )
    try:
        yield store, sequencer
    finally:
        await sequencer.close()
        await store.close()


async def backlog(folder: Path, count: int) -> tuple[float, float]:
    """(seconds, CPU seconds) a statement where all are there already. BenchError if not all came into the log."""
    sizes = [0]
    async with opened(folder) as (store, sequencer):
        sequencer.on_published = lambda note: sizes.append(parse_checkpoint(parse_note(note).text).size)
        await sequencer.work()  # makes its files, and takes the instance's start
        for begin in range(0, count, GROUP):
            await asyncio.gather(
                *(store.commit(Change(drafts=(draft(number),))) for number in range(begin, min(begin + GROUP, count)))
            )
        wall, cpu = time.perf_counter(), time.process_time()
        while sizes[-1] <= count:
            before = sizes[-1]
            await sequencer.work()
            if sizes[-1] == before:
                raise BenchError(f"the log stands at {before} of {count + 1} entries")
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return wall / count, cpu / count


async def lags_s(folder: Path, count: int) -> list[float]:
    """Seconds from the end of each commit to the checkpoint that covers it."""
    published: list[tuple[int, float]] = []
    committed: list[float] = []
    async with opened(folder) as (store, sequencer):
        sequencer.on_published = lambda note: published.append(
            (parse_checkpoint(parse_note(note).text).size, time.perf_counter())
        )

        async def commit() -> None:
            for number in range(count):
                await store.commit(Change(drafts=(draft(number),)))
                committed.append(time.perf_counter())
                await asyncio.sleep(PACE_S)

        writing = asyncio.create_task(commit())
        while not writing.done():
            await sequencer.work()
            await asyncio.sleep(LOG_S)
        await writing
        await sequencer.work()
    sizes = [size for size, _ in published]
    # The first entry is the instance's start.
    return [published[bisect.bisect_left(sizes, at + 2)][1] - when for at, when in enumerate(committed)]


def signing_cpu_s(count: int = SIGNATURES) -> float:
    """CPU seconds of signing one statement of this size."""
    payload = b"x" * (TEXT_BYTES + 150)
    begin = time.process_time()
    for _ in range(count):
        seal_envelope("application/vnd.rgs.event.v1+json", payload, KEY)
    return (time.process_time() - begin) / count
