"""Draw accounting of one instance (check 20, ARCHITECTURE 2.8): which draws are accounted for, in memory that grows
with the gaps only.

Draws come nearly in order, because few are in flight at a time; what is kept is the highest draw seen and the gaps
below it, each with the reseed counters on both sides. The counter must rise strictly with the draw number. Refuses a
draw that is accounted for already.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from operator import itemgetter

from rgs.core.replay.checks import DRAWS

_Gap = tuple[int, int, int, int]
"""First and last draw missing, and the reseed counters of the draws below and above."""


@dataclass(slots=True)
class DrawAccount:
    """`highest` draw seen, `missing` how many below it were not seen yet."""

    highest: int = 0
    missing: int = 0
    _reseed_counter: int = 0
    _gaps: list[_Gap] = field(default_factory=list)

    def use(self, draw_no: int, reseed_counter: int) -> None:
        """Account for a draw.

        Raises VerificationError if it was used before, or (it is kept then) if its reseed counter is out of order.
        """
        below, above = self._reseed_counter, reseed_counter + 1
        if draw_no <= self.highest:
            below, above = self._fill(draw_no, reseed_counter)
        else:
            if draw_no > self.highest + 1:
                self._gaps.append((self.highest + 1, draw_no - 1, below, reseed_counter))
                self.missing += draw_no - self.highest - 1
            self.highest, self._reseed_counter = draw_no, reseed_counter
        if not below < reseed_counter < above:
            raise DRAWS.failure(
                f"draw {draw_no}: the reseed counter {reseed_counter} does not rise with the draw number"
            )

    def _fill(self, draw_no: int, reseed_counter: int) -> tuple[int, int]:
        place = bisect_left(self._gaps, draw_no, key=itemgetter(1))
        if place == len(self._gaps) or self._gaps[place][0] > draw_no:
            raise DRAWS.failure(f"draw {draw_no} is used twice")
        first, last, below, above = self._gaps[place]
        parts = ((first, draw_no - 1, below, reseed_counter), (draw_no + 1, last, reseed_counter, above))
        self._gaps[place : place + 1] = [part for part in parts if part[0] <= part[1]]
        self.missing -= 1
        return below, above

    def first_missing(self) -> int:
        """The lowest draw not seen, `highest` + 1 if none is missing below it."""
        return self._gaps[0][0] if self._gaps else self.highest + 1
