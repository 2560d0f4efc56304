"""Stored answers are dropped when the time for retries has passed (ARCHITECTURE 2.16): for one process at a time.

Looks once a minute, for it may be asked every second. Refuses nothing: a retry that comes later still fails by its
stage, version or purchase number.
"""

from __future__ import annotations

from rgs.clock import Clock
from rgs.store.interface import Store

PERIOD_MS = 60_000


class StoredAnswers:
    """Drops those that are older than `kept_ms`."""

    def __init__(self, *, store: Store, clock: Clock, kept_ms: int) -> None:
        self._store = store
        self._clock = clock
        self._kept_ms = kept_ms
        self._looked_ms = 0

    async def forget(self) -> int:
        """Drop what is due; how much the store says has gone."""
        now_ms = self._clock.now_ms()
        if now_ms - self._looked_ms < PERIOD_MS:
            return 0
        self._looked_ms, gone = now_ms, 0
        while dropped := await self._store.forget_answers(now_ms - self._kept_ms):
            gone += dropped
        return gone
