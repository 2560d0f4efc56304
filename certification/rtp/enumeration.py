"""Plays one ruleset out: the best decision at every state, and the results of all 2.78e13 deals.

`play` finds the best play for the main bets alone, or for these and a side bet of the size of the ante together (the
two differ where a fold forfeits the side bet); `count` counts the deals under it. A **deal** is ordered: a hole, a
flop, turn and river as a pair, a dealer's hand: C(52,2) x C(50,3) x C(47,2) x C(45,2), all equally likely.

Where two decisions are worth exactly the same, the caller of `count` says which to take. Only the stakes, and what
follows from them, depend on that.

The flops may be taken in parts, by an engine for `run_part` (`certification.engines`). What a part adds are sums of
whole numbers, so the results are the same to the last digit. A worker counts the boards and values the entries of a
game once, and keeps those of the last game: half a gigabyte.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import comb
from typing import Any, Final

import numpy as np

from certification.engines import Engine, answered
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
from certification.rtp.flops import FLOPS, STATES, flops
from certification.rtp.payments import Payments, payments_of
from rgs.core.rulesets import Ruleset

RIVERS: Final = comb(47, 2)
DEALERS: Final = comb(45, 2)
DEALS: Final = comb(52, 2) * comb(50, 3) * RIVERS * DEALERS
PART: Final = 117
"""Flops of a part."""


@dataclass(frozen=True)
class Game:
    """What is enumerated: a ruleset, by either reading of what a hand is, for the main bets or with the side bet."""

    ruleset: Ruleset
    exactly_two: bool = False
    with_side_bet: bool = False


@dataclass(frozen=True, eq=False)
class Valued:
    """What every entry is worth, and the decisions on the river: all that the decisions on the flops are taken on."""

    game: Game
    payments: Payments
    boards: Boards
    values: Ints
    river: Bytes
    on_five: Longs


@dataclass(frozen=True, eq=False)
class FlopDecisions:
    """The decisions at the states of some flops, what their five cards are, and what they add to each of the holes."""

    flop: Bytes
    five_strength: Shorts
    holes: Longs


@dataclass(frozen=True, eq=False)
class BestPlay:
    """Best play: `preflop[hole number]`, `flop[state]` and `river[entry]` are PASS, RAISE or EITHER.

    `values` and `holes` are what the decisions were taken on (`certification.rtp.decisions`); where the side bet was
    part of it, it is in them.
    """

    game: Game
    payments: Payments
    boards: Boards
    values: Ints
    holes: Longs
    preflop: Bytes
    flop: Bytes
    river: Bytes
    five_strength: Shorts

    @property
    def with_side_bet(self) -> bool:
        return self.game.with_side_bet

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

    def __add__(self, other: DealCounts) -> DealCounts:
        rivers = self.indifferent_rivers + other.indifferent_rivers
        return DealCounts(self.final + other.final, self.five + other.five, rivers)


def raised_value(payments: Payments, fields: Longs) -> int:
    """Return the worth of the largest bet before the flop.

    A smaller one there is never better: the worth is a straight line in the size of the bet, so 3x beats 4x only where
    the bet loses, and there checking down to the smallest bet loses less. Nor does it tie with the best alone.
    """
    if not payments.preflop_multiples:
        return -(1 << 62)
    return int(fields[OPENING]) + payments.preflop_multiples[0] * int(fields[DECIDED])


def value(game: Game, boards: Boards | None = None) -> Valued:
    """Value every entry of a game; `boards` are those of another game that reads hands alike."""
    payments = payments_of(game.ruleset)
    if boards is None:
        boards = count_boards(evaluator().tables, payments.least_qualified, exactly_two=game.exactly_two)
    opening = sum(payments.main.values(), start=np.zeros((len(payments.final.names), 2, 3), dtype=np.int64))
    on_five = np.zeros(len(evaluator().hands), dtype=np.int64)
    fold = payments.folded
    # A side bet that a fold does not touch does not affect the player's decisions.
    if game.with_side_bet and not payments.ruleset.side_bet_survives_fold:
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
    return Valued(game, payments, boards, values, river, on_five)


def decide(valued: Valued, first: int = 0, end: int = FLOPS) -> FlopDecisions:
    """Decide at the states of the flops from `first` to `end`, without the latter."""
    states = flops().states
    flop = np.zeros(STATES, dtype=np.uint8)
    five_strength = np.zeros(STATES, dtype=np.int16)
    holes = np.zeros((HOLES, 3), dtype=np.int64)
    decide_flops(
        evaluator().tables, states, first, end, valued.values, valued.payments.flop_multiple, valued.on_five,
        flop, five_strength, holes,
    )  # fmt: skip
    these = states_of(first, end)
    return FlopDecisions(flop[these], five_strength[these], holes)


def play(game: Game, boards: Boards | None = None, engine: PartEngine | None = None) -> BestPlay:
    """Return the best play; the decisions on the flops by an engine, if there is one. EngineError."""
    valued = value(game, boards)
    if engine is None:
        decided = [decide(valued)]
    else:
        decided = [answer for _, answer in answered([DecidePart(game, *ends) for ends in PARTS], engine)]
    holes = sum((part.holes for part in decided), start=np.zeros((HOLES, 3), dtype=np.int64))
    raised = [raised_value(valued.payments, holes[number]) for number in range(HOLES)]
    preflop = [
        RAISE if value > rest else PASS if value < rest else EITHER
        for value, rest in zip(raised, holes[:, REST].tolist(), strict=True)
    ]
    return BestPlay(
        game, valued.payments, valued.boards, valued.values, holes, np.array(preflop, dtype=np.uint8),
        np.concatenate([part.flop for part in decided]), valued.river,
        np.concatenate([part.five_strength for part in decided]),
    )  # fmt: skip


def count(best: BestPlay, *, raise_ties: bool = False, engine: PartEngine | None = None) -> DealCounts:
    """Return the count of all deals under best play; indifferent decisions are folded or checked, or raised. By an
    engine, if there is one: EngineError.
    """
    if engine is None:
        return count_flops(best, raise_ties=raise_ties)
    parts = [
        CountPart(best.game, *ends, raise_ties, best.preflop, best.flop[these], best.five_strength[these])
        for ends in PARTS
        for these in [states_of(*ends)]
    ]
    counts: list[DealCounts] = [answer for _, answer in answered(parts, engine)]
    return sum(counts[1:], start=counts[0])


def count_flops(best: BestPlay, first: int = 0, end: int = FLOPS, *, raise_ties: bool = False) -> DealCounts:
    """Return the count of the deals with the flops from `first` to `end`, without the latter."""
    states = flops().states
    accepted = (RAISE, EITHER) if raise_ties else (RAISE,)
    raised_preflop = np.isin(best.preflop, accepted)[hole_numbers()[states.hole[:, 0], states.hole[:, 1]]]
    how = np.where(raised_preflop, RAISED_PREFLOP, np.where(np.isin(best.flop, accepted), RAISED_FLOP, RAISED_RIVER))
    visits = np.zeros(ENTRIES * 3, dtype=np.int32)
    visit_entries(evaluator().tables, states, first, end, how.astype(np.uint8), visits)
    classes, least_qualified = best.payments.final, best.payments.least_qualified
    final = np.zeros((4, len(classes.names), 2, 3), dtype=np.int64)
    indifferent = count_deals(best.boards, classes.of_strength, least_qualified, visits, best.river, raise_ties, final)
    # A game without a bet on the river is over at the flop: whoever has not bet there has folded.
    how[how == RAISED_RIVER] = RAISED_RIVER if best.payments.river_multiple else RAISED_RIVER + 1
    five = np.zeros((4, len(best.payments.five.names)), dtype=np.int64)
    these = states_of(first, end)
    hands = best.payments.five.of_strength[best.five_strength[these]]
    np.add.at(five, (how[these], hands), state_weights()[these] * RIVERS * DEALERS)
    return DealCounts(final, five, indifferent * DEALERS)


# --- in parts ---


@dataclass(frozen=True, eq=False)
class DecidePart:
    """The decisions on some flops, for a worker."""

    game: Game
    first: int
    end: int

    def run(self) -> FlopDecisions:
        return decide(_valued(self.game), self.first, self.end)


@dataclass(frozen=True, eq=False)
class CountPart:
    """The deals with some flops, for a worker; the decisions on these flops are sent along."""

    game: Game
    first: int
    end: int
    raise_ties: bool
    preflop: Bytes
    flop: Bytes
    five_strength: Shorts

    def run(self) -> DealCounts:
        valued = _valued(self.game)
        flop, five_strength = np.zeros(STATES, dtype=np.uint8), np.zeros(STATES, dtype=np.int16)
        these = states_of(self.first, self.end)
        flop[these], five_strength[these] = self.flop, self.five_strength
        holes = np.zeros((HOLES, 3), dtype=np.int64)
        best = BestPlay(
            self.game, valued.payments, valued.boards, valued.values, holes, self.preflop, flop, valued.river,
            five_strength,
        )  # fmt: skip
        return count_flops(best, self.first, self.end, raise_ties=self.raise_ties)


PartEngine = Engine["DecidePart | CountPart", Any]
PARTS: Final = tuple((first, min(first + PART, FLOPS)) for first in range(0, FLOPS, PART))
_held: dict[tuple[str, bool, bool], Valued] = {}


def run_part(part: DecidePart | CountPart) -> FlopDecisions | DealCounts:
    """What a worker of the engine does."""
    return part.run()


def _valued(game: Game) -> Valued:
    key = (game.ruleset.sha256, game.exactly_two, game.with_side_bet)
    if key not in _held:
        _held.clear()
        _held[key] = value(game)
    return _held[key]


def states_of(first: int, end: int) -> slice:
    """The states of the flops from `first` to `end`, without the latter."""
    starts = flops().states.first_state
    return slice(int(starts[first]), int(starts[end]))


@cache
def hole_numbers() -> Ints:
    """Return the number among the 169 of every two cards."""
    return np.array([[hole_number(one, other) for other in range(52)] for one in range(52)], dtype=np.int32)


@cache
def state_weights() -> Longs:
    """Return how many pairs of hole and flop each state stands for."""
    states = flops().states
    return np.repeat(states.flop_weight, np.diff(states.first_state)) * states.weight
