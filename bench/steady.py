"""A steady load for a long time: it shows whether calls become slower as the store grows and the process ages.

Players call at a given pace, each at planned times; a call waits for the one before it. Latency is counted from the
planned time, so that calls that had to wait behind a slow one count as slow too. All stores are loaded at the same
time, each at the whole pace, by one load generator. The run has ten parts; the first and the last are cut into five
each, so that their p99 have a spread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Final

from bench.database import database
from bench.figures import BenchError, Figure, ratio
from bench.homes import make_home, serving
from bench.mix import CALLS_PER_ROUND
from bench.players import Player
from bench.saturation import quantile
from bench.waiting import resident_kib
from bench.windows import POSTGRES, Load, suffix

SECONDS: Final = 3_600
PACE: Final = 200.0
"""Calls a second of each store: about a fifth of what one process bears here (part `limits`)."""
PLAYERS: Final = 64
PARTS: Final = 10
SLICES: Final = 5
"""Of a part."""
QUANTILES: Final = (0.5, 0.99, 0.999, 1.0)


@dataclass(slots=True)
class _Steady:
    """What one store has answered, by slice: latencies in seconds; and memory at the end of each part."""

    load: Load
    slices: list[list[float]] = field(default_factory=lambda: [[] for _ in range(PARTS * SLICES)])
    rss_kib: list[int] = field(default_factory=list)

    def part(self, number: int) -> list[float]:
        return [latency for one in self.slices[number * SLICES : (number + 1) * SLICES] for latency in one]


def measure(
    folder: Path, stores: Sequence[str], seconds: float, pace: float, emit: Callable[[str], None]
) -> list[Figure]:
    """The figures over these stores; prints a line for each part of the run."""
    with ExitStack() as opened:
        for store in stores:
            address = opened.enter_context(database())[0] if store == POSTGRES else None
            make_home(folder / store, address)
        return asyncio.run(_run(folder, stores, seconds, pace, emit))


async def _run(
    folder: Path, stores: Sequence[str], seconds: float, pace: float, emit: Callable[[str], None]
) -> list[Figure]:
    async with AsyncExitStack() as opened:
        steady = {store: _Steady(await opened.enter_async_context(serving(folder / store))) for store in stores}
        players = {store: await one.load.players(PLAYERS) for store, one in steady.items()}
        print(f"{'steady':20} {pace:g} calls/s ({pace / CALLS_PER_ROUND:.0f} rounds/s) a store, {seconds:g} s")
        begin = perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for store, one in steady.items():
                for number, player in enumerate(players[store]):
                    planned = _planned(number, seconds, pace / PLAYERS)
                    tasks.create_task(_play(player, planned, begin, seconds, one.slices))
            for number in range(PARTS):
                emit(f"steady, {number + 1} of {PARTS} parts")
                await asyncio.sleep(begin + (number + 1) * seconds / PARTS - perf_counter())
                for one in steady.values():
                    one.rss_kib.append(resident_kib(one.load.subject.process_id))
                if number:  # the part before: by now its late calls are answered, too
                    _say(number - 1, steady)
        _say(PARTS - 1, steady)
        for some in players.values():
            await asyncio.gather(*(player.hang_up() for player in some))
    return [figure for store, one in steady.items() for figure in figures_of(store, one.slices)]


def _planned(number: int, seconds: float, pace: float) -> Iterator[float]:
    """The times of a player's calls; those of all players lie evenly beside each other."""
    calls = int(seconds * pace)
    return ((nth + number / PLAYERS) / pace for nth in range(calls))


async def _play(
    player: Player, planned: Iterator[float], begin: float, seconds: float, slices: list[list[float]]
) -> None:
    for time_s in planned:
        wait_s = begin + time_s - perf_counter()
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        await player.refill()
        await player.play_streamed()
        slices[int(time_s / seconds * len(slices))].append(perf_counter() - begin - time_s)


def _say(number: int, steady: Mapping[str, _Steady]) -> None:
    for store, one in steady.items():
        print(f"{'steady, ' + store:20} {_line(number, one)}", flush=True)


def _line(number: int, one: _Steady) -> str:
    latencies = one.part(number)
    times = " ".join(
        f"{'worst' if share == 1 else f'p{100 * share:g}'} {1000 * quantile(latencies, share):.1f}"
        for share in QUANTILES
    )
    return f"part {number + 1:2}: {len(latencies)} calls, {times} ms, {one.rss_kib[number] / 1024:.1f} MiB"


def figures_of(store: str, slices: Sequence[Sequence[float]]) -> list[Figure]:
    """The p99 of the first and of the last part, and the last over the first."""
    if not all(slices):
        raise BenchError("a part of the steady load has a slice without a call: make it longer, or its pace higher")
    first, last = ([quantile(one, 0.99) for one in part] for part in (slices[:SLICES], slices[-SLICES:]))
    tail = suffix(store)
    return [
        Figure(f"steady_p99_first_ms{tail}", tuple(1000 * one for one in first), "ms"),
        Figure(f"steady_p99_last_ms{tail}", tuple(1000 * one for one in last), "ms"),
        ratio(f"steady_p99_growth{tail}", last, first),
    ]
