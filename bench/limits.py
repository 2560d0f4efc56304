"""Where one server process ends: callers without a pause, more and more of them, and which part is full first.

Of each number of callers: rounds a second, latencies, and the shares (`bench.shares`) of the server's loop, of its
writer, of its other threads, of the load generator, of the database and of the disk. The load generator, and
PostgreSQL, run on the same processors and take them from the server: a machine of its own would bear more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from bench.database import database
from bench.figures import BenchError, Figure
from bench.homes import make_home, serving
from bench.mix import CALLS_PER_ROUND
from bench.players import Player
from bench.saturation import SLICES, Saturated, quantile, saturate
from bench.shares import Look, Shares, first_full, look, shares
from bench.windows import POSTGRES, Load, suffix

CALLERS: Final = (1, 4, 16, 64, 128, 256)
WINDOW_S: Final = 5.0
PLENTY: Final = 0.95
"""The least number of callers that plays this share of the most rounds a second is where the server is at its end."""
WAYS: Final = ("unary", "stream")
THREADS: Final = {"MainThread": "the server's loop", "store-writer": "the server's writer", "log": "the server's log"}
"""Names of threads begin so."""
_HEAD: Final = (
    f"{'limits':16} {'callers':>7} {'rounds/s':>8} {'p50 ms':>7} {'p99 ms':>7}   loop writer other   load database idle"
    "  flushes/s"
)


def measure(
    folder: Path, stores: Sequence[str], callers: Sequence[int], window_s: float, emit: Callable[[str], None]
) -> list[Figure]:
    """The figures over these stores; prints a table of each, and a sentence for each way."""
    figures: list[Figure] = []
    for store in stores:
        home = folder / store
        if store == POSTGRES:
            with database() as (address, _):
                make_home(home, address)
                figures += asyncio.run(_ramp(home, store, callers, window_s, emit))
        else:
            make_home(home)
            figures += asyncio.run(_ramp(home, store, callers, window_s, emit))
    return figures


async def _ramp(
    home: Path, store: str, callers: Sequence[int], window_s: float, emit: Callable[[str], None]
) -> list[Figure]:
    figures: list[Figure] = []
    print(f"{_HEAD}  (CPU + waiting for a processor, % of one)")
    async with serving(home) as load:
        names = await _names(load)
        players = await load.players(max(callers))
        for way in WAYS:
            found: dict[int, tuple[Saturated[Look], Shares]] = {}
            for count in callers:
                emit(f"limits, {store}, {way}, {count} callers")
                found[count] = await _window(load, players[:count], way, names, window_s, home)
                print(_line(f"{store} {way}", count, *found[count]), flush=True)
                figures += _figures(store, way, count, found[count][0])
            print(f"{'':16} {_sentence(found)}", flush=True)
            await asyncio.gather(*(player.hang_up() for player in players))
    return figures


async def _names(load: Load) -> dict[int, str]:
    """The server's threads that are parts by themselves."""
    return {
        int(thread): part
        for thread, name in (await load.subject.read()).threads.items()
        for begin, part in THREADS.items()
        if name.startswith(begin)
    }


async def _window(
    load: Load, players: Sequence[Player], way: str, names: dict[int, str], window_s: float, folder: Path
) -> tuple[Saturated[Look], Shares]:
    await asyncio.gather(*(player.refill() for player in players))
    steps = [player.play_unary if way == "unary" else player.play_streamed for player in players]
    pid = load.subject.process_id
    saturated = await saturate(steps, window_s, lambda: look(pid, folder))
    if not all(saturated.slices()):
        raise BenchError(f"in a fifth of {window_s:g} s no call of {len(players)} {way} callers was answered")
    return saturated, shares(saturated.before, saturated.after, names)


def _line(name: str, count: int, saturated: Saturated[Look], taken: Shares) -> str:
    latencies = [latency for _, latency in saturated.calls]

    def part(name: str) -> str:
        one = taken.parts.get(name)
        return f"{100 * one.cpu_s:.0f}+{100 * one.waited_s:.0f}" if one is not None else "-"

    loop, writer, other = (part(f"the server's {which}") for which in ("loop", "writer", "busiest other thread"))
    flushes = f"{taken.flushes_per_s:10.0f}"
    return (
        f"{name:16} {count:7} {saturated.rounds_per_s:8.0f} {1000 * quantile(latencies, 0.5):7.1f}"
        f" {1000 * quantile(latencies, 0.99):7.1f} {loop:>6} {writer:>6} {other:>5}"
        f" {part('the load generator'):>6} {100 * taken.database:8.0f} {100 * taken.idle:4.0f} {flushes}"
    )


def _sentence(found: dict[int, tuple[Saturated[Look], Shares]]) -> str:
    most = max(one.rounds_per_s for one, _ in found.values())
    count = min(count for count, (one, _) in found.items() if one.rounds_per_s >= PLENTY * most)
    saturated, taken = found[count]
    return f"{saturated.rounds_per_s:.0f} rounds/s from {count} callers on. {first_full(taken)}"


def _figures(store: str, way: str, count: int, saturated: Saturated[Look]) -> list[Figure]:
    slice_s = saturated.elapsed_s / SLICES
    parts = saturated.slices()
    rounds = tuple(len(part) / CALLS_PER_ROUND / slice_s for part in parts)
    p99_ms = tuple(1000 * quantile(part, 0.99) for part in parts)
    return [
        Figure(f"limits_{way}_rounds_per_s_{count}{suffix(store)}", rounds, "1/s"),
        Figure(f"limits_{way}_p99_ms_{count}{suffix(store)}", p99_ms, "ms"),
    ]
