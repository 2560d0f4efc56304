"""Stored answers live for the promised retry window (ARCHITECTURE 2.16), and are dropped by whoever leads that duty.

A request that is sent again later than that fails by its numbers. Refuses to drop an answer within the window.
"""

from __future__ import annotations

from rgs.clock import Clock
from rgs.store.interface import Store

LOOK_MS = 600_000
"""Between two looks when there was nothing to drop."""
HOUR_MS = 3_600_000
DUTY = "answers"


class Answers:
    """One look at a time, in the background."""

    def __init__(self, store: Store, clock: Clock, retry_window_h: int) -> None:
        self._store = store
        self._clock = clock
        self._window_ms = retry_window_h * HOUR_MS
        self._next_ms = 0

    async def look(self) -> int:
        """Drop a share of what is older than the window, and make room for what comes; how much went."""
        now_ms = self._clock.now_ms()
        if now_ms < self._next_ms or not await self._store.lead(DUTY):
            return 0
        gone = await self._store.forget_answers(now_ms, now_ms - self._window_ms)
        if not gone:
            self._next_ms = now_ms + LOOK_MS
        return gone
