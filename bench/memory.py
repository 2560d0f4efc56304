"""Is a node's memory bounded? Resident memory of the server process over a long run at full speed.

64 players play on streams without a pause; memory is read every few seconds. The first quarter of the readings is
warm-up. `rss_mib` are the readings after it; `rss_growth_bytes_per_round` is the least-squares slope over the rounds
played, one value for each fifth of the run: about 0 if the server keeps nothing. Not measured: more sessions than
players (a node keeps `FRESH_MAX` of them in memory, some kilobytes each).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Final

from bench.figures import BenchError, Figure
from bench.homes import make_home, serving
from bench.mix import CALLS_PER_ROUND
from bench.players import Player

CONCURRENCY: Final = 64
READINGS: Final = 40
WARM_UP: Final = READINGS // 4
FIFTHS: Final = 5
MIB: Final = 2**20


async def run(home: Path, seconds: float, emit: Callable[[str], None]) -> list[Figure]:
    """Play for so many seconds; prints a line for each reading."""
    make_home(home)
    readings: list[tuple[float, int]] = []
    async with serving(home) as load:
        players = await load.players(CONCURRENCY)
        calls = 0
        for number in range(READINGS):
            emit(f"memory, {number + 1} of {READINGS} readings")
            await asyncio.gather(*(player.refill() for player in players))
            until = perf_counter() + seconds / READINGS
            calls += sum(await asyncio.gather(*(_play(player, until) for player in players)))
            readings.append((calls / CALLS_PER_ROUND, (await load.subject.read()).rss_bytes))
        await asyncio.gather(*(player.hang_up() for player in players))
    for rounds, rss in readings[READINGS // 10 - 1 :: READINGS // 10]:
        print(f"{'memory':20} {rss / MIB:.1f} MiB after {rounds:.0f} rounds")
    print(f"{'':20} {slope(readings[WARM_UP:]):.1f} bytes a round after the warm-up", flush=True)
    return figures_of(readings)


async def _play(player: Player, until: float) -> int:
    calls = 0
    while perf_counter() < until:
        await player.play_streamed()
        calls += 1
    return calls


def figures_of(readings: Sequence[tuple[float, int]]) -> list[Figure]:
    """The figures of readings (rounds so far, bytes resident)."""
    warm = readings[WARM_UP:]
    size = len(warm) // FIFTHS
    slopes = [slope(warm[first : first + size]) for first in range(0, size * FIFTHS, size)]
    return [
        Figure("rss_mib", tuple(rss / MIB for _, rss in warm), "MiB"),
        Figure("rss_growth_bytes_per_round", tuple(slopes), "bytes/round"),
    ]


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The least-squares slope."""
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    square = sum((x - middle_x) ** 2 for x, _ in points)
    if not square:
        raise BenchError("nothing was played between two readings of memory")
    return sum((x - middle_x) * (y - middle_y) for x, y in points) / square
