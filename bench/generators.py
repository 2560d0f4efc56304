"""What the generator costs in a process of its own (docs/generator.md), over the embedded one: time and CPU of a draw.

Both are awaited on uvloop as an instance awaits them, one at a time or CALLERS at once. The process is the real
command, started as a server would find it. CPU is of all threads, read from the system.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Final

import uvloop

from bench.database import server_cpu_s
from bench.figures import BenchError, Figure, ratio
from rgs.integrity.isolation import isolated_command
from rgs.integrity.manifest import make_manifest
from rgs.node.generator.client import begin_served
from rgs.node.generator.wire import rng_sha256
from rgs.service.generators import EmbeddedGenerator, RunningGenerator

CALLERS: Final = 32
START_S: Final = 60.0
"""A process that does not listen by then has failed."""
POLL_S: Final = 0.05


def measure(folder: Path, repeats: int, draws: int) -> list[Figure]:
    """`repeats` pairs of blocks of `draws` draws, one at a time and then many at once. BenchError."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_measure(folder, repeats, draws))


async def _measure(folder: Path, repeats: int, draws: int) -> list[Figure]:
    path = folder / "generator.sock"
    command = isolated_command("generator", "serve", "--socket", str(path))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
    try:
        await _until_listening(process, path)
        served = await begin_served(path, rng_sha256(make_manifest()), "bench")
        embedded = await EmbeddedGenerator.begin("bench")
        figures = await _compare(embedded, served, process.pid, repeats, draws)
        await served.close()
    finally:
        process.terminate()
        await process.wait()
    return figures


async def _until_listening(process: asyncio.subprocess.Process, path: Path) -> None:
    async with asyncio.timeout(START_S):
        while not path.exists():  # noqa: ASYNC240 - a look at a folder
            if process.returncode is not None:
                raise BenchError("the generator process did not start")
            await asyncio.sleep(POLL_S)


async def _compare(
    embedded: RunningGenerator, served: RunningGenerator, pid: int, repeats: int, draws: int
) -> list[Figure]:
    figures: list[Figure] = []
    for callers in (1, CALLERS):
        ours: list[tuple[float, float, float]] = []
        yardstick: list[tuple[float, float, float]] = []
        pairs = ((ours, served), (yardstick, embedded))
        for _, generator in pairs:
            await _block(generator, pid, callers, draws)  # a warm-up
        for repeat in range(repeats):
            for values, generator in pairs if repeat % 2 == 0 else reversed(pairs):
                values.append(await _block(generator, pid, callers, draws))
        for place, name in enumerate(("time", "server_cpu", "all_cpu")):
            mine, other = [one[place] for one in ours], [one[place] for one in yardstick]
            figures.append(ratio(f"deal_process_{name}_ratio_{callers}", mine, other))
        figures.append(Figure(f"deal_process_us_{callers}", tuple(one[0] * 1e6 for one in ours), "us"))
    return figures


async def _block(generator: RunningGenerator, pid: int, callers: int, draws: int) -> tuple[float, float, float]:
    """(time, CPU of this process, CPU of both) of one draw, over `draws` of them."""

    async def caller() -> None:
        for _ in range(draws // callers):
            await generator.draw()

    begin, own, both = perf_counter(), process_time(), process_time() + server_cpu_s(pid)
    await _all(caller, callers)
    own_s = process_time() - own
    found = (perf_counter() - begin, own_s, process_time() + server_cpu_s(pid) - both)
    count = draws // callers * callers
    return found[0] / count, found[1] / count, found[2] / count


async def _all(caller: Callable[[], Awaitable[None]], callers: int) -> None:
    await asyncio.gather(*[caller() for _ in range(callers)])
