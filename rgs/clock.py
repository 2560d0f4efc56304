"""The one clock of the house: UTC in whole milliseconds, and the watch over it (ARCHITECTURE 2.19, 2.21).

`SystemClock` never goes backwards by itself: it stands where the operating system's clock steps back. `ClockWatch`
compares the wall clock with the monotonic one, which nobody sets: a jump of more than JUMP_MS either way is told, and
so is the agreement of AGREED_MS after it. Then the clock follows the wall again, even backwards: sessions hold their
own times.

Refuses to be read elsewhere: every other file takes a clock, or a time, as a parameter.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

JUMP_MS = 2_000
"""A change of the difference between the two clocks beyond which the wall clock was set."""
AGREED_MS = 10_000
"""So long without another jump, and the wall clock is believed again."""
SLEW_PER_MILLE = 1
"""How fast the wall clock may be steered (500 ppm is the most of adjtimex); what is within is no jump, ever."""


class Clock(Protocol):
    """Milliseconds since 1970-01-01T00:00:00Z."""

    def now_ms(self) -> int: ...


class SystemClock:
    """The operating system's UTC clock, held where it steps backwards until time has caught up, or `follow`."""

    def __init__(self) -> None:
        self._last_ms = 0

    def now_ms(self) -> int:
        self._last_ms = max(self._last_ms, self.wall_ms())
        return self._last_ms

    def wall_ms(self) -> int:
        """The operating system's time as it is."""
        return time.time_ns() // 1_000_000

    def follow(self) -> None:
        """The wall clock is right: take its time, even if it is earlier."""
        self._last_ms = self.wall_ms()


def monotonic_ms() -> int:
    """Milliseconds of a clock that nobody sets; its zero means nothing."""
    return time.monotonic_ns() // 1_000_000


class ClockWatch:
    """Looks at two clocks from time to time. `agrees` is False from a jump until the agreement after it."""

    def __init__(self, wall_ms: Callable[[], int], monotonic_ms: Callable[[], int] = monotonic_ms) -> None:
        self._wall_ms = wall_ms
        self._monotonic_ms = monotonic_ms
        self._seen_ms = monotonic_ms()
        self._difference_ms = float(wall_ms() - self._seen_ms)
        self._jumped_ms: int | None = None
        """When the last jump was seen, by the monotonic clock; None once the clocks agree."""

    @property
    def agrees(self) -> bool:
        """Whether the wall clock is to be believed."""
        return self._jumped_ms is None

    def look(self) -> int:
        """The jump since the last look in milliseconds, 0 if there was none."""
        now_ms = self._monotonic_ms()
        difference_ms = self._wall_ms() - now_ms
        moved_ms = difference_ms - self._difference_ms
        steered_ms = (now_ms - self._seen_ms) * SLEW_PER_MILLE / 1000
        self._seen_ms = now_ms
        if abs(moved_ms) > JUMP_MS:
            self._difference_ms, self._jumped_ms = float(difference_ms), now_ms
            return round(moved_ms)
        # What the wall clock may have been steered by meanwhile is forgotten, and no more: steps do not add up unseen.
        self._difference_ms += max(-steered_ms, min(steered_ms, moved_ms))
        if self._jumped_ms is not None and now_ms - self._jumped_ms >= AGREED_MS:
            self._jumped_ms = None
        return 0
