"""A load that never pauses: every caller sends its next call when the last one is answered.

Unlike a window of `bench.windows`, which goes from rest to rest, the measurement begins and ends in the middle of it:
what calls leave behind then costs as much as they have found left behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from math import ceil
from time import perf_counter
from typing import Final, Generic, TypeVar

from bench.figures import REPEATS_MIN
from bench.mix import CALLS_PER_ROUND

WARM_S: Final = 1.0
SLICES: Final = REPEATS_MIN
"""Parts of a measurement, so that its figures have a spread."""

Counts = TypeVar("Counts")


@dataclass(frozen=True, slots=True)
class Saturated(Generic[Counts]):
    """The calls that ended while it was measured: when, counted from its begin, and how long each took."""

    calls: Sequence[tuple[float, float]]
    elapsed_s: float
    before: Counts
    after: Counts

    @property
    def rounds_per_s(self) -> float:
        return len(self.calls) / CALLS_PER_ROUND / self.elapsed_s

    def slices(self) -> list[list[float]]:
        """The latencies of each part of the time, all of one length."""
        found: list[list[float]] = [[] for _ in range(SLICES)]
        for end_s, latency_s in self.calls:
            found[min(SLICES - 1, int(end_s / self.elapsed_s * SLICES))].append(latency_s)
        return found


async def saturate(
    steps: Sequence[Callable[[], Awaitable[None]]], seconds: float, look: Callable[[], Counts]
) -> Saturated[Counts]:
    """Repeat each step in a task of its own. `look` is asked when the load has run for WARM_S, and so many seconds
    later.
    """
    done = asyncio.Event()
    calls: list[tuple[float, float]] = []

    async def repeat(step: Callable[[], Awaitable[None]]) -> None:
        begin = perf_counter()
        while not done.is_set():
            await step()
            end = perf_counter()
            calls.append((end, end - begin))
            begin = end

    async with asyncio.TaskGroup() as tasks:
        for step in steps:
            tasks.create_task(repeat(step))
        await asyncio.sleep(WARM_S)
        before, begin_s = look(), perf_counter()
        calls.clear()
        await asyncio.sleep(seconds)
        ended, after, end_s = list(calls), look(), perf_counter()
        done.set()
    return Saturated([(end - begin_s, latency) for end, latency in ended], end_s - begin_s, before, after)


def quantile(latencies: Sequence[float], share: float) -> float:
    """The least value that so large a share of the values does not exceed; 0 of none."""
    ordered = sorted(latencies)
    return ordered[max(0, ceil(share * len(ordered)) - 1)] if ordered else 0.0
