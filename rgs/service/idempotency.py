"""Drops stored answers and launches after the promised retry window (ARCHITECTURE 2.16: a repeat gets the same answer).
One process leads this duty.

The window is counted twice, and both counts must have passed: by trusted time, and by the time that the server has run,
which adds up over its processes on monotonic clocks. So a jump of the clock drops no answer early, not even a jump
while the server was down. A cut is made every twelfth of a window. Answers older than a cut are dropped once the server
has run for a whole window since.

A request that is repeated later fails by its numbers; `OpenSession` has none, and finds the session that it opened.
Nothing is dropped while time is not trusted.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from rgs.core.clock import Clock
from rgs.store.changes import Change, MetaSet
from rgs.store.interface import Store

POLL_MS: Final = 600_000
"""The pause after there was nothing to drop."""
HOUR_MS: Final = 3_600_000
CUTS: Final = 12
"""Cuts in a window."""
SLACK_MS: Final = 60_000
"""An answer has the time at which it was made; its commit may come later, and clocks may differ a little."""
DUTY: Final = "answers"
KEY: Final = "answers_cuts"
"""Key of `meta`: who counts, how long the server has run, and each cut as `ran:time`, in milliseconds."""


class _Cut(NamedTuple):
    ran_ms: int
    time_ms: int


class Answers:
    """Drops answers in the background. `who` names the process, so that two that count at once do not count twice."""

    def __init__(self, store: Store, clock: Clock, retry_window_h: int, who: str) -> None:
        self._store = store
        self._clock = clock
        self._window_ms = retry_window_h * HOUR_MS
        self._who = who
        self._counted_ms = 0
        """Up to when this process has counted, by the monotonic clock."""
        self._next_ms = 0

    async def poll(self) -> int:
        """Drop some answers and launches that are older than the window; how many were dropped."""
        running_ms = self._clock.running_ms()
        if running_ms < self._next_ms or not self._clock.is_trusted or not await self._store.lead(DUTY):
            return 0
        now_ms, before_ms = self._clock.now_ms(), await self._count(running_ms)
        gone = await self._store.forget_answers(now_ms, before_ms) + await self._store.forget_launches(before_ms)
        if not gone:
            self._next_ms = running_ms + POLL_MS
        return gone

    async def _count(self, running_ms: int) -> int:
        """Count how long the server has run, and make a cut if it is time; answers before the result may be dropped."""
        now_ms, window_ms = self._clock.now_ms(), self._window_ms
        who, _, kept = (await self._store.meta(KEY)).partition(" ")
        ran, *result = kept.split() or ["0"]
        ran_ms = int(ran)
        # A cut from the future was made before the clock was set back.
        cuts = [cut for cut in (_Cut(*map(int, text.split(":"))) for text in result) if cut.time_ms <= now_ms]
        if who == self._who and self._counted_ms:
            ran_ms += running_ms - self._counted_ms
        self._counted_ms = running_ms
        if not cuts or ran_ms - cuts[-1].ran_ms >= window_ms // CUTS:
            cuts.append(_Cut(ran_ms, now_ms))
        due = [min(ran_ms - cut.ran_ms, self._clock.passed_ms(cut.time_ms)) >= window_ms for cut in cuts]
        newest = sum(due)  # cuts are in order: all before one that is due are due
        cuts = cuts[max(0, newest - 1) :]
        texts = [self._who, str(ran_ms), *(f"{cut.ran_ms}:{cut.time_ms}" for cut in cuts)]
        await self._store.commit(Change(records=(MetaSet(KEY, " ".join(texts)),)))
        return max(0, cuts[0].time_ms - SLACK_MS) if newest else 0
