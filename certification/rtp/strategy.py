"""Best play as a library: the exact value of every decision at any (hole, flop, board), and the decision itself.

`Strategy` keeps the values and answers in exact fractions of the ante. `Decisions` keeps only the decisions, is small
enough to be sent to other processes, and answers fast. Both give best play for the main bets, or with `with_side_bet`
for these and a side bet of the size of the ante. Where two decisions are worth exactly the same, the answer is EITHER.

InvalidFieldError for cards that come twice, and for a board on which no decision is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Final

import numpy as np

from certification.rtp.compiled import Bytes, Longs
from certification.rtp.decisions import DECIDED, EITHER, HOLES, OPENING, RAISE, REST
from certification.rtp.enumeration import DEALERS, RIVERS, BestPlay, Game, hole_numbers, play, state_weights
from certification.rtp.evaluator import RANK_COUNT, evaluator
from certification.rtp.flops import find_entry, flops, sum_boards
from certification.rtp.payments import action_of
from rgs.core.cards import RANKS, Card, format_cards
from rgs.core.errors import InvalidFieldError
from rgs.core.games.types import Action, Phase
from rgs.core.rulesets import Ruleset

_FLOPS_OF_HOLE: Final = comb(50, 3)
_DEALS_OF_HOLE: Final = _FLOPS_OF_HOLE * RIVERS * DEALERS


@dataclass(frozen=True)
class Advice:
    """What each action is worth from here on, in antes, best play afterwards; and those that are worth most."""

    phase: Phase
    values: Mapping[Action, Fraction]

    @property
    def best(self) -> tuple[Action, ...]:
        """The best action; several if they are worth exactly the same."""
        most = max(self.values.values())
        return tuple(action for action, value in self.values.items() if value == most)


@dataclass(frozen=True, eq=False)
class Decisions:
    """The decisions of best play, by the numbers that `BestPlay` gives to holes, states and entries."""

    ruleset: Ruleset
    preflop: Bytes
    flop: Bytes
    river: Bytes

    @classmethod
    def of(cls, best: BestPlay) -> Decisions:
        """The decisions of best play, without the values."""
        return cls(best.payments.ruleset, best.preflop, best.flop, best.river)

    def decide(self, hole: Sequence[int], board: Sequence[int], *, raise_ties: bool = False) -> Action:
        """Return the action at a decision of the ruleset; indifferent decisions check or fold, or raise."""
        phase = phase_of(self.ruleset, board)
        if phase is Phase.PREFLOP:
            decision = self.preflop[hole_numbers()[hole[0], hole[1]]]
        elif phase is Phase.FLOP:
            decision = self.flop[flops().state(hole, board)]
        else:
            decision = self.river[_entry(hole, board)]
        raised = decision == RAISE or (raise_ties and decision == EITHER)
        multiples = [self.ruleset.rules.multiples.get(action, 0) for action in self.ruleset.rules.transitions[phase]]
        return action_of(self.ruleset, phase, max(multiples) if raised else 0)


class Strategy:
    """Best play of a ruleset with the values that it rests on; some 400 MB while it lasts, two seconds to make."""

    def __init__(self, ruleset: Ruleset, *, with_side_bet: bool = False) -> None:
        self.ruleset = ruleset
        self.play = play(Game(ruleset, with_side_bet=with_side_bet))
        self.payments = self.play.payments
        self.decisions = Decisions.of(self.play)

    def advise(self, hole: Sequence[Card], board: Sequence[Card] = ()) -> Advice:
        """Return the exact value of each action open to these cards; raise InvalidFieldError for other cards."""
        if len(hole) != 2 or len({*hole, *board}) != 2 + len(board):
            raise InvalidFieldError(
                f"{' '.join(format_cards((*hole, *board)))}: two cards and a board, none of them twice", field="cards"
            )
        phase = phase_of(self.ruleset, board)
        if phase is Phase.PREFLOP:
            number = int(hole_numbers()[hole[0], hole[1]])
            return self.advise_hole(number)
        if phase is Phase.FLOP:
            return self._advice(phase, self._flop_fields(hole, board), RIVERS * DEALERS)
        entry = _entry(hole, board)
        fields = self.play.values[entry * 3 : entry * 3 + 3].astype(np.int64)
        fields[REST] = self._folded() * DEALERS
        return self._advice(phase, fields, DEALERS)

    def advise_hole(self, number: int) -> Advice:
        """Return the same for one of the 169 holes before the flop."""
        return self._advice(Phase.PREFLOP, self.play.holes[number], hole_count(number) * _DEALS_OF_HOLE)

    def hole_value(self, number: int) -> Fraction:
        """Return what one of the 169 holes is worth, played best."""
        worth = max(self.play.raised(number), int(self.play.holes[number, REST]))
        return Fraction(worth, hole_count(number) * _DEALS_OF_HOLE * self.payments.scale)

    def _flop_fields(self, hole: Sequence[int], flop: Sequence[int]) -> Longs:
        fields = sum_boards(evaluator().tables, self.play.values, hole[0], hole[1], np.array(flop, dtype=np.int64))
        if self.play.with_side_bet and self.ruleset.rules.side_bet_on_flop and not self.ruleset.side_bet_survives_fold:
            classes = self.payments.five.of_strength
            paid = self.payments.side[classes[self.play.five_strength[flops().state(hole, flop)]]]
            fields[OPENING] += paid * RIVERS * DEALERS
        return fields

    def _folded(self) -> int:
        forfeits = self.play.with_side_bet and not self.ruleset.side_bet_survives_fold
        return self.payments.folded + (self.payments.side_folded if forfeits else 0)

    def _advice(self, phase: Phase, fields: Longs, deals: int) -> Advice:
        rest, opening, decided = int(fields[REST]), int(fields[OPENING]), int(fields[DECIDED])
        values = {}
        for action in self.ruleset.rules.transitions[phase]:
            multiple = self.ruleset.rules.multiples.get(action, 0)
            worth = opening + multiple * decided if multiple else rest
            values[action] = Fraction(worth, deals * self.payments.scale)
        return Advice(phase, values)


def phase_of(ruleset: Ruleset, board: Sequence[int]) -> Phase:
    """Return the phase in which so much of the board is seen; raise InvalidFieldError if nothing is decided then."""
    shown = ruleset.rules.board_shown
    for phase in ruleset.rules.transitions:
        if shown[phase] == len(board):
            return phase
    wanted = ", ".join(str(shown[phase]) for phase in ruleset.rules.transitions)
    raise InvalidFieldError(
        f"board: {ruleset.id} decides on {wanted} cards of the board, not on {len(board)}", field="board"
    )


def hole_name(number: int) -> str:
    """Return "AA", "AKs" or "AKo"."""
    row, column = divmod(number, RANK_COUNT)
    high, low = RANKS[max(row, column)], RANKS[min(row, column)]
    return high + low + ("" if row == column else "s" if row > column else "o")


def hole_count(number: int) -> int:
    """Return how many of the 1,326 holes have this number."""
    row, column = divmod(number, RANK_COUNT)
    return 6 if row == column else 4 if row > column else 12


def hole_shares(strategy: Strategy) -> Mapping[int, Fraction]:
    """Return, for a game whose first decision is at the flop, in how many of a hole's flops the bet is made."""
    states = flops().states
    numbers = hole_numbers()[states.hole[:, 0], states.hole[:, 1]]
    raised = np.zeros(HOLES, dtype=np.int64)
    np.add.at(raised, numbers, np.where(strategy.play.flop == RAISE, state_weights(), 0))
    return {number: Fraction(int(raised[number]), hole_count(number) * _FLOPS_OF_HOLE) for number in range(HOLES)}


def _entry(hole: Sequence[int], board: Sequence[int]) -> int:
    return find_entry(evaluator().tables, hole[0], hole[1], np.array(board, dtype=np.int64))
