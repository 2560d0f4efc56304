"""What it is worth to know the hole cards of neighbours: best play with and without them, over sampled deals.

Of a deal only two things are sampled: the player's hole, and the cards of the neighbours whom he knows. What follows is
summed exactly over every board and every hand of the dealer that is left (`certification.collusion.values`), for who
knows these cards and, on the very same deals, for who plays best by own cards. So the difference of the two is exact
for each hole and known cards, never negative, and 0 for every one where nobody is known. The standard error is that of
the mean of these differences.

Main bets only: a side bet is settled by the player's own hand, whoever knows what.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import comb
from typing import Final

import numpy as np

from certification.collusion.values import (
    ALL,
    FLOP,
    FLOPS_OF_BOARD,
    OWN,
    RIVER,
    Game,
    Own,
    game_of,
    new_memo,
    value_hole,
)
from certification.processes import over
from certification.rtp.compiled import Longs
from certification.rtp.enumeration import DEALS, BestPlay
from certification.rtp.strategy import Decisions
from rgs.core.errors import InvalidFieldError
from rgs.core.rulesets import Ruleset

_CHUNK: Final = 10
_SPREAD: Final = 1.959963984540054
"""Standard errors of a 95 % interval."""


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over the deals, in antes, with its standard error."""

    value: float
    error: float

    @property
    def interval(self) -> tuple[float, float]:
        """Where the exact value lies in 95 of 100 samples."""
        return self.value - _SPREAD * self.error, self.value + _SPREAD * self.error


@dataclass(frozen=True, slots=True)
class Worth:
    """What was found. `exact` is best play by own cards over all deals, `sampled` the same over these deals.

    `steps` are the parts of `worth` that the river, the flop and the first decision add, in this order.
    """

    known: int
    deals: int
    exact: float
    sampled: Mean
    worth: Mean
    steps: tuple[Mean, Mean, Mean]

    @property
    def informed(self) -> Mean:
        """The value of the game to who knows these cards: the exact one by own cards, and the worth."""
        return Mean(self.exact + self.worth.value, self.worth.error)


@dataclass(frozen=True, eq=False)
class Sampling:
    """The deals of one run."""

    game: Game
    own: Own
    known: int
    deals: int
    seed: int


def verify_boxes(ruleset: Ruleset) -> None:
    """Raise InvalidFieldError unless players of this ruleset have cards that they could tell each other."""
    if ruleset.hole_cards != "own" or ruleset.max_seats < 2:
        raise InvalidFieldError(
            f"{ruleset.id}: hole_cards {ruleset.hole_cards}, max_seats {ruleset.max_seats}: no player has cards that"
            " another one could tell him; name a ruleset with boxes, such as uth-seven-box",
            field="ruleset",
        )


def value_deals(sampling: Sampling, number: int) -> Longs:
    """Return what the holes of one chunk of deals are worth, a row of OWN to ALL each."""
    chance = np.random.default_rng([sampling.seed, number])
    memo = new_memo()
    count = min(_CHUNK, sampling.deals - number * _CHUNK)
    values = np.zeros((count, 4), np.int64)
    for row in range(count):
        cards = chance.permutation(52).astype(np.int64)
        values[row] = value_hole(sampling.game, sampling.own, memo, cards[:2], cards[2 : 2 + 2 * sampling.known])
    return values


def worth_of(
    best: BestPlay,
    known: int,
    deals: int,
    seed: int,
    *,
    workers: int = 1,
    reported: Callable[[int], None] = lambda _: None,
) -> Worth:
    """Value so many deals; the same seed, the same result, however many processes."""
    sampling = Sampling(game_of(best.payments), Own.of(Decisions.of(best)), known, deals, seed)
    chunks: list[Longs] = []
    for chunk in over(partial(value_deals, sampling), range(-(-deals // _CHUNK)), workers):
        chunks.append(chunk)
        reported(sum(map(len, chunks)))
    values = np.concatenate(chunks)
    unit = FLOPS_OF_BOARD * comb(50 - 2 * known, 5) * comb(45 - 2 * known, 2) * best.payments.scale
    return Worth(
        known=known,
        deals=deals,
        exact=best.value / (DEALS * best.payments.scale),
        sampled=_mean(values[:, OWN], unit),
        worth=_mean(values[:, ALL] - values[:, OWN], unit),
        steps=(
            _mean(values[:, RIVER] - values[:, OWN], unit),
            _mean(values[:, FLOP] - values[:, RIVER], unit),
            _mean(values[:, ALL] - values[:, FLOP], unit),
        ),
    )


def _mean(sums: Longs, unit: int) -> Mean:
    antes = sums / unit
    return Mean(float(antes.mean()), float(antes.std(ddof=1) / len(antes) ** 0.5))
