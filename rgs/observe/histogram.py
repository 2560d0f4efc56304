"""Counts of values by upper bound, as monitoring systems read them: what a process has measured since its start."""

from __future__ import annotations

from bisect import bisect_left


class Histogram:
    """How many values were at most each bound and above the one before; the last count is of those above all bounds.

    `bounds` grow. `total` is the sum of the values, in their unit.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


LATENCY_S: tuple[float, ...] = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Bounds of times of calls and commits, in seconds."""
SIZES: tuple[float, ...] = (1, 2, 4, 8, 16, 32)
"""Bounds of the changes in a commit."""
