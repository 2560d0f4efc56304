"""What the players' decisions cost, exactly, and the return that these players could expect (docs/monitoring.md, 4).

Best play gives each decision a value: the mean of what follows, if it is taken and everything after it is played best.
The cost of a decision is how much less it is worth than the best one. The net win of a round **plus the costs of its
decisions** has the mean of best play, whoever decides and however: chance is left, skill is out. So it is watched on
both sides.

Above, the test bets on a larger mean (`rgs.core.returns.evidence.betting`). Below, a bet can lose by the 500 to 1 of a
royal flush, so it could only be small. It is made on the value cut off at a height instead. The mean of that value is
at least that of best play, less what the cut can take away, summed over the hands as they are dealt.

An error where best play has no value: cards that come twice, an action that its phase does not know.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from certification.rtp.strategy import Strategy
from rgs.core.cards import parse_cards
from rgs.core.games.stakes import dearest_round
from rgs.core.games.types import Action, Phase
from rgs.core.hands import Category, HandValue
from rgs.core.returns.distributions import HAND, Laws
from rgs.core.returns.evidence import average, betting
from rgs.core.returns.tally import ALPHA
from rgs.core.rulesets import Ruleset


@dataclass(frozen=True, slots=True)
class Adjusted:
    """Means per round and ante: of what was won, of what decisions cost; `expected` is best play less that cost."""

    rounds: int
    measured: float
    cost: float
    expected: float
    evidence: float
    limit: float

    @property
    def is_alarming(self) -> bool:
        """Whether the measured win differs from the win expected of these decisions."""
        return self.evidence >= self.limit


class Decided:
    """The decisions of one ruleset's rounds."""

    def __init__(self, strategy: Strategy, laws: Laws) -> None:
        self._strategy = strategy
        self._bound = laws.main
        self._height, self._cut = _cut_off(strategy.ruleset, laws)
        self._values: Counter[Fraction] = Counter()
        self._won = self._cost = Fraction(0)

    def add(self, seats: Sequence[tuple[Mapping[str, Any], Fraction]]) -> None:
        """Take in a round: the final of each seat and what its main bets won, in antes. Several seats of a table share
        a deal and count once, with their mean, which has the mean of best play as each of them has.
        """
        cost = sum((cost_of(self._strategy, final) for final, _ in seats), Fraction(0)) / len(seats)
        won = sum((one for _, one in seats), Fraction(0)) / len(seats)
        self._won += won
        self._cost += cost
        self._values[won + cost] += 1

    def adjusted(self) -> Adjusted | None:
        """Return where they stand, None before the first round."""
        n = self._values.total()
        if not n:
            return None
        mean, height = float(self._bound.mean), float(self._height)
        values = [(float(value), count) for value, count in self._values.items()]
        above = betting(values, mean, float(self._bound.least))
        below = betting([(-min(value, height), count) for value, count in values], float(self._cut) - mean, -height)
        return Adjusted(
            rounds=n,
            measured=float(self._won / n),
            cost=float(self._cost / n),
            expected=float(self._bound.mean - self._cost / n),
            evidence=average([above, below]),
            limit=math.log(1 / ALPHA),
        )


def cost_of(strategy: Strategy, final: Mapping[str, Any]) -> Fraction:
    """Return what the decisions of a final cost in antes; those that a void cut off are the ruleset's defaults."""
    rules, cost = strategy.ruleset.rules, Fraction(0)
    hole, board = (parse_cards(final["cards"][name]) for name in ("hole_cards", "board"))
    taken = [Action(one["action"]) for one in final["actions"]]
    phase = rules.first_phase
    while phase is not Phase.SHOWDOWN:
        action = taken.pop(0) if taken else strategy.ruleset.default_decisions[phase]
        values = strategy.advise(hole, board[: rules.board_shown[phase]]).values
        cost += max(values.values()) - values[action]
        phase = rules.transitions[phase][action]
    return cost


def _cut_off(ruleset: Ruleset, laws: Laws) -> tuple[Fraction, Fraction]:
    """Return the height at which values are cut off, and what that takes from their mean at most, in antes.

    On a hand no round is worth more than its bonus, all other bets won and what earlier decisions can have cost: twice
    the dearest round. A fold before the hand is known is worth the mean of such, which is cut off by no more (Jensen).
    """
    dearest = Fraction(dearest_round(ruleset.rules))
    height, cut = 4 * dearest, Fraction(0)
    for category in Category:
        bonus = max(
            ruleset.paytables[bet].odds_for(HandValue(category, (category,), ())).returned_per_unit
            for bet in ruleset.rules.paytables
            if bet != ruleset.rules.side_bet
        )
        cut += laws.figures[HAND].chances[category.text] * max(bonus + 2 * dearest - height, Fraction(0))
    return height, cut
