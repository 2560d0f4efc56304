"""What a ruleset pays, as tables of whole numbers, from the game's own tables and the production paytables.

Stakes are one ante, the other main bets as the rules make them, and a side bet as large as the ante. Every amount is in
units of `1 / scale` antes; `scale` is the least number that makes all of the ruleset's odds whole.

An error for a game that allows more than one bet before the flop, on the flop or on the river, and for odds so long
that the sums of the enumeration could overflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm
from typing import Final

import numpy as np

from certification.rtp.compiled import Longs
from certification.rtp.decisions import MAX_PAYMENT
from certification.rtp.evaluator import evaluator
from rgs.core.errors import RulesetError
from rgs.core.games.paytables import HandFloor, Paytable, format_floor
from rgs.core.games.types import Action, Outcome, Pay, Phase
from rgs.core.hands import Category
from rgs.core.rulesets import Ruleset

OUTCOMES: Final = (Outcome.PLAYER, Outcome.DEALER, Outcome.TIE)
"""In the order of the cells' columns."""

_FIXED: Final = {Pay.LOST: -1, Pay.PUSH: 0, Pay.EVEN: 1}


@dataclass(frozen=True, eq=False)
class Classes:
    """Strengths in classes, worst first: all ten categories, cut where a paytable of the hand changes inside one."""

    names: tuple[str, ...]
    categories: tuple[Category, ...]
    of_strength: Longs


@dataclass(frozen=True, eq=False)
class Payments:
    """Payments net of the stake. `main[bet][class, qualifies, outcome]` for the bets on the table at the deal.

    `decided[qualifies, outcome]` is for one ante's worth of the bet decided on, `fold[bet]` for a fold; `side[class]`
    is the side bet's, by the final hand or the first five cards. Multiples are those of the bets, 0 for no bet.
    """

    ruleset: Ruleset
    scale: int
    least_qualified: int
    final: Classes
    five: Classes
    main: dict[str, Longs]
    decided: Longs
    fold: dict[str, int]
    side: Longs
    side_folded: int
    preflop_multiples: tuple[int, ...]
    flop_multiple: int
    river_multiple: int

    @property
    def side_class(self) -> Classes:
        """The classes that the side bet is paid by."""
        return self.five if self.ruleset.rules.side_bet_on_flop else self.final

    @property
    def opening_stakes(self) -> int:
        """The main bets on the table at the deal, in antes."""
        return len(self.main)

    @property
    def folded(self) -> int:
        """What a fold pays on the main bets."""
        return sum(self.fold.values())


def payments_of(ruleset: Ruleset) -> Payments:
    """Return the tables of a ruleset; raise RulesetError for one that the enumeration does not cover."""
    rules = ruleset.rules
    side = ruleset.paytables[rules.side_bet]
    final_bets = [bet for bet in ruleset.paytables if bet != rules.side_bet or not rules.side_bet_on_flop]
    final = _classes([floor for bet in final_bets for floor, _ in ruleset.paytables[bet].rows])
    five = _classes([floor for floor, _ in side.rows])
    scale = lcm(*(odds.per for table in ruleset.paytables.values() for _, odds in table.rows))
    main_bets = [bet for bet in rules.opening_bets if bet != rules.side_bet]
    by_table = {bet: _paid(ruleset.paytables[bet], final, scale) for bet in main_bets if bet in ruleset.paytables}
    main = {bet: np.zeros((len(final.names), 2, 3), dtype=np.int64) for bet in main_bets}
    decided = np.zeros((2, 3), dtype=np.int64)
    fold = {}
    for qualifies in (False, True):
        for column, outcome in enumerate(OUTCOMES):
            pays = rules.settlement[qualifies, outcome]
            for bet in main_bets:
                fixed = by_table[bet] if pays[bet] is Pay.TABLE else _FIXED[pays[bet]] * scale
                main[bet][:, int(qualifies), column] = fixed
            decided[int(qualifies), column] = _FIXED[pays[rules.decided_bet]] * scale
    for bet in main_bets:
        (pay,) = {rules.settlement[qualifies, Outcome.FOLD][bet] for qualifies in (False, True)}
        fold[bet] = _FIXED[pay] * scale
    multiples = {
        phase: tuple(sorted((rules.multiples[act] for act in acts if act in rules.multiples), reverse=True))
        for phase, acts in rules.transitions.items()
    }
    payments = Payments(
        ruleset=ruleset,
        scale=scale,
        least_qualified=_least(ruleset.qualify),
        final=final,
        five=five,
        main=main,
        decided=decided,
        fold=fold,
        side=_paid(side, five if rules.side_bet_on_flop else final, scale),
        side_folded=-scale,
        preflop_multiples=multiples.get(Phase.PREFLOP, ()),
        flop_multiple=_single(multiples, Phase.FLOP),
        river_multiple=_single(multiples, Phase.RIVER),
    )
    most = sum(int(abs(table).max()) for table in main.values()) + int(abs(payments.side).max())
    most += scale * max(rules.multiples.values())
    if rules.side_bet_on_flop and payments.river_multiple:
        raise RulesetError("game: a side bet on the first five cards is counted where the flop decides", field="game")
    if most > MAX_PAYMENT:
        raise RulesetError(f"paytables: a round can pay {most}/{scale} antes, the sums hold {MAX_PAYMENT}/{scale}")
    return payments


def action_of(ruleset: Ruleset, phase: Phase, multiple: int) -> Action:
    """Return the action of a phase that bets this multiple; 0: the one that bets nothing."""
    rules = ruleset.rules
    return next(action for action in rules.transitions[phase] if rules.multiples.get(action, 0) == multiple)


def _single(multiples: dict[Phase, tuple[int, ...]], phase: Phase) -> int:
    found = multiples.get(phase, (0,))
    if len(found) != 1:
        raise RulesetError(f"game: {len(found)} bets at {phase}, the enumeration knows one", field="game")
    return found[0]


def _least(floor: HandFloor) -> int:
    """Return the least strength that meets a floor."""
    return next(strength for strength, hand in enumerate(evaluator().hands) if floor.is_met_by(hand))


def _classes(floors: list[HandFloor]) -> Classes:
    cuts = sorted({*floors, *(HandFloor((int(category),)) for category in Category)})
    of_strength = np.zeros(len(evaluator().hands), dtype=np.int64)
    for number, floor in enumerate(cuts):
        of_strength[_least(floor) :] = number
    return Classes(
        names=tuple(format_floor(floor) for floor in cuts),
        categories=tuple(Category(floor.key[0]) for floor in cuts),
        of_strength=of_strength,
    )


def _paid(table: Paytable, classes: Classes, scale: int) -> Longs:
    """Return what a paytable pays on each class, asked of its first hand."""
    firsts = np.searchsorted(classes.of_strength, np.arange(len(classes.names)))
    paid = [table.odds_for(evaluator().hands[first]) for first in firsts]
    return np.array([-scale if odds.lost else scale * odds.wins // odds.per for odds in paid], dtype=np.int64)
