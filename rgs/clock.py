"""The one clock of the house: UTC in whole milliseconds, never backwards within a process (ARCHITECTURE 2.21).

Refuses to be read elsewhere: every other file takes a clock, or a time, as a parameter.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Milliseconds since 1970-01-01T00:00:00Z."""

    def now_ms(self) -> int: ...


class SystemClock:
    """The operating system's UTC clock, held where it steps backwards until time has caught up."""

    def __init__(self) -> None:
        self._last_ms = 0

    def now_ms(self) -> int:
        self._last_ms = max(self._last_ms, time.time_ns() // 1_000_000)
        return self._last_ms
