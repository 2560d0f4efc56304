"""The transparency log: `python -m bench.log [--statements N]`. From a committed statement to its public checkpoint.

Backlog: statements of a store on SQLite that are all there already, in one life of the sequencer; what is measured is
reading, order, files, signatures, checkpoints, everything synced. CPU per statement stands over the CPU of signing a
statement of the same size in the same run. Lag: statements committed at a steady pace while the sequencer works every
200 ms as in the server; from the end of each commit to the checkpoint that covers it. Wall times are of this machine,
in this hour, and no yardstick for another.
"""

from __future__ import annotations

import argparse
import asyncio
import bisect
import sys
import tempfile
import time
from pathlib import Path

import structlog

from bench.machine import describe
from rgs.clock import SystemClock
from rgs.core.checkpoints import parse_checkpoint
from rgs.core.note import parse_note
from rgs.core.statements import Ed25519Signer, seal_envelope
from rgs.server import LOG_S
from rgs.store.changes import Change, Draft
from rgs.store.sqlite import SqliteStore, create_store
from rgs.translog.sequencer import Sequencer

KEY = Ed25519Signer.from_seed(b"a key of no house, for the bench")
TEXT_BYTES = 900
"""Of padding: about what a final has."""
PACE_S = 0.004
GROUP = 64


def draft(number: int) -> Draft:
    """A statement of a final's size; no game is played here."""
    return Draft("event", {"code": "BENCH", "time": "then", "text": f"{number:0{TEXT_BYTES}d}"})


async def open_store(folder: Path) -> SqliteStore:
    """A new store with an instance that signs."""
    create_store(folder / "rgs.db", "0" * 26)
    store = SqliteStore(folder / "rgs.db")
    await store.start_instance(
        instance="bench-b1-w0", node="bench", boot_no=1, worker=0, start_ms=0,
        start=Draft("instance_start", {"time": "then"}), node_signer=KEY, signer=KEY,
    )  # fmt: skip
    return store


def sequencer_of(store: SqliteStore, folder: Path) -> Sequencer:
    """As the server has it."""
    return Sequencer(
        store=store, clock=SystemClock(), folder=folder / "log", prefix="log.example", signer=KEY, delay_ms=60_000
    )


async def backlog(folder: Path, count: int) -> tuple[float, float]:
    """(statements a second, CPU seconds a statement) where all are there already."""
    store = await open_store(folder)
    for begin in range(0, count, GROUP):
        await asyncio.gather(
            *(store.commit(Change(drafts=(draft(number),))) for number in range(begin, min(begin + GROUP, count)))
        )
    sequencer, sizes = sequencer_of(store, folder), [0]
    sequencer.on_published = lambda note: sizes.append(parse_checkpoint(parse_note(note).text).size)
    wall, cpu = time.perf_counter(), time.process_time()
    while sizes[-1] <= count:
        await sequencer.work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    await sequencer.close()
    await store.close()
    return count / wall, cpu / count


async def lags(folder: Path, count: int) -> list[float]:
    """Seconds from the end of each commit to the checkpoint that covers it, shortest first."""
    store = await open_store(folder)
    sequencer, published = sequencer_of(store, folder), list[tuple[int, float]]()
    sequencer.on_published = lambda note: published.append(
        (parse_checkpoint(parse_note(note).text).size, time.perf_counter())
    )
    committed: list[float] = []

    async def commit() -> None:
        for number in range(count):
            await store.commit(Change(drafts=(draft(number),)))
            committed.append(time.perf_counter())
            await asyncio.sleep(PACE_S)

    writing = asyncio.create_task(commit())
    while not writing.done():
        await sequencer.work()
        await asyncio.sleep(LOG_S)
    await sequencer.work()
    sizes = [size for size, _ in published]
    # The first entry is the instance's start.
    found = [published[bisect.bisect_left(sizes, at + 2)][1] - when for at, when in enumerate(committed)]
    await sequencer.close()
    await store.close()
    return sorted(found)


def signing_cpu_s(count: int = 2_000) -> float:
    """CPU seconds of signing one statement of this size."""
    payload = b"x" * (TEXT_BYTES + 150)
    begin = time.process_time()
    for _ in range(count):
        seal_envelope("application/vnd.rgs.event.v1+json", payload, KEY)
    return (time.process_time() - begin) / count


def main() -> int:
    """Run and print."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    parser = argparse.ArgumentParser(prog="python -m bench.log", description=__doc__)
    parser.add_argument("--statements", type=int, default=20_000)
    parser.add_argument("--folder", type=Path, default=Path("var"), help="on a real disk (default: var)")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-log-", dir=arguments.folder) as name:
        folder = Path(name)
        for what, value in describe(folder):
            print(f"{what:20} {value}")
        for part in ("backlog", "lag"):
            (folder / part).mkdir()
        rate, cpu_s = asyncio.run(backlog(folder / "backlog", arguments.statements))
        signing_s = signing_cpu_s()
        found = asyncio.run(lags(folder / "lag", 1_000))
    print(f"backlog              {rate:.0f} statements a second, {arguments.statements} of about 1.5 KB")
    print(
        f"CPU a statement      {cpu_s * 1e6:.0f} us, {cpu_s / signing_s:.2f} of signing one ({signing_s * 1e6:.0f} us)"
    )
    middle, most = found[len(found) // 2], found[-1]
    late = found[len(found) * 99 // 100]
    print(f"lag                  median {middle * 1e3:.0f} ms, p99 {late * 1e3:.0f} ms, most {most * 1e3:.0f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
