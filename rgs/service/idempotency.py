"""Stored answers live for the promised retry window (ARCHITECTURE 2.16), and are dropped by whoever leads that duty.

The window is counted twice, and both must have passed: by trusted time, and by how long the house has run, which adds
up over its processes on clocks that nobody sets. So no jump drops an answer early, neither one that is seen nor one
that nobody could see because the house was down. A cut is made every twelfth of a window; what is older than a cut goes
once the house has run for a whole window since.

A request that is sent again later fails by its numbers; `OpenSession`, which has none, finds the session that it has
opened. Refuses to drop an answer within the window, and any while time is not trusted.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from rgs.core.clock import Clock
from rgs.store.changes import Change, MetaSet
from rgs.store.interface import Store

LOOK_MS: Final = 600_000
"""Between two looks when there was nothing to drop."""
HOUR_MS: Final = 3_600_000
CUTS: Final = 12
"""Cuts in a window."""
SLACK_MS: Final = 60_000
"""An answer bears the time at which it was made, its commit may come later, and clocks are apart by a little."""
DUTY: Final = "answers"
KEY: Final = "answers_cuts"
"""Key of `meta`: who counts, how long the house has run, and each cut as `ran:time`, in milliseconds."""


class _Cut(NamedTuple):
    ran_ms: int
    time_ms: int


class Answers:
    """One look at a time, in the background. `who` names the process: two that count at once do not add up twice."""

    def __init__(self, store: Store, clock: Clock, retry_window_h: int, who: str) -> None:
        self._store = store
        self._clock = clock
        self._window_ms = retry_window_h * HOUR_MS
        self._who = who
        self._counted_ms = 0
        """Up to when this process has counted, by the clock that nobody sets."""
        self._next_ms = 0

    async def look(self) -> int:
        """Drop a share of what is older than the window, and make room for what comes; how much went."""
        running_ms = self._clock.running_ms()
        if running_ms < self._next_ms or not self._clock.is_trusted or not await self._store.lead(DUTY):
            return 0
        now_ms, before_ms = self._clock.now_ms(), await self._count(running_ms)
        gone = await self._store.forget_answers(now_ms, before_ms)
        if not gone:
            self._next_ms = running_ms + LOOK_MS
        return gone

    async def _count(self, running_ms: int) -> int:
        """Count how long the house has run, and cut where it is time; before when an answer may go."""
        now_ms, window_ms = self._clock.now_ms(), self._window_ms
        who, _, kept = (await self._store.meta(KEY)).partition(" ")
        ran, *told = kept.split() or ["0"]
        ran_ms = int(ran)
        # A cut from the future was made before the clock was set back.
        cuts = [cut for cut in (_Cut(*map(int, text.split(":"))) for text in told) if cut.time_ms <= now_ms]
        if who == self._who and self._counted_ms:
            ran_ms += running_ms - self._counted_ms
        self._counted_ms = running_ms
        if not cuts or ran_ms - cuts[-1].ran_ms >= window_ms // CUTS:
            cuts.append(_Cut(ran_ms, now_ms))
        due = [min(ran_ms - cut.ran_ms, self._clock.passed_ms(cut.time_ms)) >= window_ms for cut in cuts]
        newest = sum(due)  # they rise, so that all before one that is due are due
        cuts = cuts[max(0, newest - 1) :]
        texts = [self._who, str(ran_ms), *(f"{cut.ran_ms}:{cut.time_ms}" for cut in cuts)]
        await self._store.commit(Change(records=(MetaSet(KEY, " ".join(texts)),)))
        return max(0, cuts[0].time_ms - SLACK_MS) if newest else 0
