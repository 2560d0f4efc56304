"""Draw accounting of one instance (check 20, ARCHITECTURE 2.8: no draw is lost or repeated).

Draws come nearly in order, because few are in flight at a time. Only the highest draw and the gaps below it are kept.
The certified unit reseeds once before each draw and ends with the first failure, so the count of reseeds is the
draw's number, also for a discarded draw.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from operator import itemgetter

from rgs.core.replay.checks import DRAWS

_Gap = tuple[int, int]
"""First and last draw missing."""


@dataclass(slots=True)
class DrawAccount:
    """`highest` draw seen, `missing` how many below it were not seen yet."""

    highest: int = 0
    missing: int = 0
    gaps: list[_Gap] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.gaps = [(first, last) for first, last in self.gaps]  # JSON has no tuples

    def use(self, draw_no: int, reseed_counter: int) -> None:
        """Account for a draw.

        Raises VerificationError if it was used before, or (it is kept then) if its reseed counter is not the one that
        the certified unit gives.
        """
        if draw_no <= self.highest:
            self._fill(draw_no)
        else:
            if draw_no > self.highest + 1:
                self.gaps.append((self.highest + 1, draw_no - 1))
                self.missing += draw_no - self.highest - 1
            self.highest = draw_no
        if reseed_counter != draw_no:
            raise DRAWS.failure(
                f"draw {draw_no}: the reseed counter is {reseed_counter}, the certified unit gives {draw_no}"
            )

    def _fill(self, draw_no: int) -> None:
        place = bisect_left(self.gaps, draw_no, key=itemgetter(1))
        if place == len(self.gaps) or self.gaps[place][0] > draw_no:
            raise DRAWS.failure(f"draw {draw_no} is used twice")
        first, last = self.gaps[place]
        parts = ((first, draw_no - 1), (draw_no + 1, last))
        self.gaps[place : place + 1] = [part for part in parts if part[0] <= part[1]]
        self.missing -= 1

    def first_missing(self) -> int:
        """The lowest draw not seen, `highest` + 1 if none is missing below it."""
        return self.gaps[0][0] if self.gaps else self.highest + 1
