"""Plays one ruleset out: the best decision at every state, and the results of all 2.78e13 deals.

`play` finds the best play for the main bets alone, or for these and a side bet of the size of the ante together (the
two differ where a fold forfeits the side bet); `count` counts the deals under it. A **deal** is ordered: a hole, a
flop, turn and river as a pair, a dealer's hand: C(52,2) x C(50,3) x C(47,2) x C(45,2), all equally likely.

Where two decisions are worth exactly the same, the caller of `count` says which to take. Only the stakes, and what
follows from them, depend on that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import comb
from typing import Final

import numpy as np

from certification.rtp.boards import ENTRIES, Boards, count_boards
from certification.rtp.compiled import Bytes, Ints, Longs, Shorts
from certification.rtp.decisions import (
    DECIDED,
    EITHER,
    HOLES,
    OPENING,
    PASS,
    RAISE,
    RAISED_FLOP,
    RAISED_PREFLOP,
    RAISED_RIVER,
    REST,
    count_deals,
    decide_flops,
    hole_number,
    value_entries,
    visit_entries,
)
from certification.rtp.evaluator import evaluator
from certification.rtp.flops import STATES, flops
from certification.rtp.payments import Payments

RIVERS: Final = comb(47, 2)
DEALERS: Final = comb(45, 2)
DEALS: Final = comb(52, 2) * comb(50, 3) * RIVERS * DEALERS


@dataclass(frozen=True, eq=False)
class BestPlay:
    """Best play: `preflop[hole number]`, `flop[state]` and `river[entry]` are PASS, RAISE or EITHER.

    `values` and `holes` are what the decisions were taken on (`certification.rtp.decisions`); where the side bet was
    part of it, it is in them.
    """

    payments: Payments
    boards: Boards
    with_side_bet: bool
    values: Ints
    holes: Longs
    preflop: Bytes
    flop: Bytes
    river: Bytes
    five_strength: Shorts

    @property
    def value(self) -> int:
        """The value of the game: the sum over all deals, in units of 1 / scale antes."""
        return sum(int(max(self.raised(number), self.holes[number, REST])) for number in range(HOLES))

    def raised(self, number: int) -> int:
        """Return what the largest bet before the flop is worth with a hole, or less than all else without one."""
        return raised_value(self.payments, self.holes[number])


@dataclass(frozen=True, eq=False)
class DealCounts:
    """All deals: `final[how, class, qualifies, outcome]`, and `five[how, class]` by the first five cards.

    `how` is RAISED_PREFLOP, RAISED_FLOP, RAISED_RIVER or FOLDED. `indifferent_rivers` counts the deals in which the
    decision on the river is reached and is indifferent.
    """

    final: Longs
    five: Longs
    indifferent_rivers: int


def raised_value(payments: Payments, fields: Longs) -> int:
    """Return the worth of the largest bet before the flop.

    A smaller one there is never better: the worth is a straight line in the size of the bet, so 3x beats 4x only where
    the bet loses, and there checking down to the smallest bet loses less. Nor does it tie with the best alone.
    """
    if not payments.preflop_multiples:
        return -(1 << 62)
    return int(fields[OPENING]) + payments.preflop_multiples[0] * int(fields[DECIDED])


def boards_of(payments: Payments, *, exactly_two: bool = False) -> Boards:
    """Return the counted boards for the ruleset's dealer."""
    return count_boards(evaluator().tables, payments.least_qualified, exactly_two=exactly_two)


def play(payments: Payments, boards: Boards, *, with_side_bet: bool = False) -> BestPlay:
    """Return the best play, for the main bets or for these and the side bet together."""
    opening = sum(payments.main.values(), start=np.zeros((len(payments.final.names), 2, 3), dtype=np.int64))
    on_five = np.zeros(len(evaluator().hands), dtype=np.int64)
    fold = payments.folded
    # A side bet that a fold does not touch does not affect the player's decisions.
    if with_side_bet and not payments.ruleset.side_bet_survives_fold:
        fold += payments.side_folded
        if payments.ruleset.rules.side_bet_on_flop:
            on_five = payments.side[payments.five.of_strength]
        else:
            opening = opening + payments.side[:, None, None]
    values = np.zeros(ENTRIES * 3, dtype=np.int32)
    river = np.zeros(ENTRIES, dtype=np.uint8)
    value_entries(
        boards, payments.final.of_strength, opening, payments.decided,
        payments.least_qualified, payments.river_multiple, fold, values, river,
    )  # fmt: skip
    flop = np.zeros(STATES, dtype=np.uint8)
    five_strength = np.zeros(STATES, dtype=np.int16)
    holes = np.zeros((HOLES, 3), dtype=np.int64)
    decide_flops(
        evaluator().tables, flops().states, values, payments.flop_multiple, on_five, flop, five_strength, holes
    )
    raised = [raised_value(payments, holes[number]) for number in range(HOLES)]
    preflop = [
        RAISE if value > rest else PASS if value < rest else EITHER
        for value, rest in zip(raised, holes[:, REST].tolist(), strict=True)
    ]
    return BestPlay(
        payments, boards, with_side_bet, values, holes, np.array(preflop, dtype=np.uint8), flop, river, five_strength
    )


def count(best: BestPlay, *, raise_ties: bool = False) -> DealCounts:
    """Return the count of all deals under best play; indifferent decisions are folded or checked, or raised."""
    states = flops().states
    accepted = (RAISE, EITHER) if raise_ties else (RAISE,)
    raised_preflop = np.isin(best.preflop, accepted)[hole_numbers()[states.hole[:, 0], states.hole[:, 1]]]
    how = np.where(raised_preflop, RAISED_PREFLOP, np.where(np.isin(best.flop, accepted), RAISED_FLOP, RAISED_RIVER))
    visits = np.zeros(ENTRIES * 3, dtype=np.int32)
    visit_entries(evaluator().tables, states, how.astype(np.uint8), visits)
    classes, least_qualified = best.payments.final, best.payments.least_qualified
    final = np.zeros((4, len(classes.names), 2, 3), dtype=np.int64)
    indifferent = count_deals(best.boards, classes.of_strength, least_qualified, visits, best.river, raise_ties, final)
    # A game without a bet on the river is over at the flop: whoever has not bet there has folded.
    how[how == RAISED_RIVER] = RAISED_RIVER if best.payments.river_multiple else RAISED_RIVER + 1
    five = np.zeros((4, len(best.payments.five.names)), dtype=np.int64)
    np.add.at(five, (how, best.payments.five.of_strength[best.five_strength]), state_weights() * RIVERS * DEALERS)
    return DealCounts(final, five, indifferent * DEALERS)


@cache
def hole_numbers() -> Ints:
    """Return the number among the 169 of every two cards."""
    return np.array([[hole_number(one, other) for other in range(52)] for one in range(52)], dtype=np.int32)


@cache
def state_weights() -> Longs:
    """Return how many pairs of hole and flop each state stands for."""
    states = flops().states
    return np.repeat(states.flop_weight, np.diff(states.first_state)) * states.weight
