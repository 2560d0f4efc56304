"""Do a player's decisions go with cards that he should not know? Evidence for it, by player, from recorded rounds.

A decision counts where it is close by own cards. For what a player decided in a round, q(dead) is how likely it is of
one who knows these dead cards: he does what is best with a chance of 1 - e, else the other thing. The **evidence** of a
round is q(the cards that the neighbours held) over the mean of q over these and RESAMPLES sets of cards that they could
have held as well, given the player's hole and the board. Evidence of rounds is multiplied, in full or as a share.

**Why it does not accuse the honest.** Whoever does not know the neighbours' cards decides by other things, well or
badly. Given his hole, the board and his decisions, the cards that the neighbours held are then a set like those drawn:
the mean evidence of a round is exactly 1, whatever his way of playing, and whatever q is. By Ville's inequality
evidence ever reaches 1 / alpha with a chance of at most alpha. All of a round's decisions make one factor, because they
share the neighbours' cards.

Beside it stands the plain likelihood ratio of the decisions on which best play with and without the neighbours' cards
differ. It supposes that the honest play best, so it is shown and does not judge.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import comb
from typing import Final

import numpy as np

from certification.collusion.outs import effect_of, effects, renaming_of
from certification.collusion.rounds import SeatDecisions, TableHands
from certification.collusion.values import Floats, Game, Memo, Own, flop_margins, game_of, new_memo, river_margins
from certification.rtp.compiled import Longs
from certification.rtp.decisions import HOLES, REST
from certification.rtp.enumeration import DEALERS, RIVERS, hole_numbers
from certification.rtp.strategy import Strategy, hole_count
from rgs.core.cards import DECK_SIZE
from rgs.core.games.types import Phase
from rgs.core.returns.evidence import average

EVERYBODY: Final = "all at the table"
ERROR: Final = 0.05
RESAMPLES: Final = 50
CLOSE: Final[Mapping[Phase, float]] = {Phase.PREFLOP: 0.5, Phase.FLOP: 0.15, Phase.RIVER: 0.4}
"""So close is a decision that twelve known cards can turn, in antes between betting and not. Fewer turn fewer: by the
root of their number.
"""
SHARES: Final = (1.0, 0.25, 0.0625)
"""The evidence of a series is the mean of three: of each round all counts, or such a share of it and the rest is 1. A
share finds who knows the cards in some rounds only, or errs more.
"""
_BET: Final = np.log(SHARES)
_KEPT: Final = np.array([math.log1p(-share) if share < 1 else -math.inf for share in SHARES])
_MOST_KNOWN: Final = 12
_NOBODY: Final = np.zeros((1, 0), np.int64)


@dataclass(frozen=True, slots=True)
class Weight:
    """What one round says about a player as one who knows `whom`: the evidence, as a logarithm, and its decisions."""

    player: str
    whom: str
    evidence: float
    decisions: int
    followed: int
    against: int
    """Of those on which best play with and without these cards differ: who knows them does so, or does not."""


@dataclass(slots=True)
class Series:
    """The evidence of a player as one who knows `whom`, over all rounds so far."""

    player: str
    whom: str
    rounds: int = 0
    decisions: int = 0
    followed: int = 0
    against: int = 0
    evidence: float = 0.0
    highest: float = 0.0
    bets: Floats = field(default_factory=lambda: np.zeros(len(SHARES)))

    def add(self, weight: Weight) -> None:
        self.rounds += 1
        self.decisions += weight.decisions
        self.followed += weight.followed
        self.against += weight.against
        self.bets += np.logaddexp(_KEPT, _BET + weight.evidence)
        self.evidence = average(self.bets.tolist())
        self.highest = max(self.highest, self.evidence)

    def ratio(self, error: float) -> float:
        """Return ln of the likelihood ratio against who plays best by own cards."""
        return (self.followed - self.against) * math.log((1 - error) / error)


def could_have_held(hands: TableHands, hand: int) -> Longs:
    """Sets of cards that the neighbours of a hand could have held as well, for all who know that hand and the board.

    The round and the hand are the seed: the same sets in every run, whatever the order of the files.
    """
    unseen = np.setdiff1d(np.arange(DECK_SIZE), [*hands.holes[hand], *hands.board])
    chance = np.random.default_rng([int(hands.name, 16), hand])
    return chance.permuted(np.tile(unseen, (RESAMPLES, 1)), axis=1)[:, : 2 * (len(hands.holes) - 1)].astype(np.int64)


class Scorer:
    """Weighs the rounds of one ruleset; keeps what it has learned of a hole."""

    def __init__(self, strategy: Strategy, error: float = ERROR) -> None:
        self.error = error
        self.game: Game = game_of(strategy.payments)
        self.own = Own.of(strategy.decisions)
        self.scale = strategy.payments.scale
        deals = np.array([hole_count(number) for number in range(HOLES)]) * comb(50, 3) * RIVERS * DEALERS
        raised = np.array([strategy.play.raised(number) for number in range(HOLES)])
        self.preflop: Floats = (raised - strategy.play.holes[:, REST]) / deals / self.scale
        self._memo: Memo = new_memo()
        self._effects: dict[int, Floats] = {}

    def weigh(self, hands: TableHands) -> list[Weight]:
        """Return what a round says, of each seat in the file."""
        return [weight for seat in hands.seats for weight in self._of_seat(hands, seat)]

    def _of_seat(self, hands: TableHands, seat: SeatDecisions) -> Iterator[Weight]:
        hole, board = np.array(hands.holes[seat.hand], np.int64), np.array(hands.board, np.int64)
        margins = {phase: float(self.margins(phase, hole, board, _NOBODY)[0]) for phase in seat.bets}
        others = [place for place in range(len(hands.holes)) if place != seat.hand]
        players = {one.hand: one.player for one in hands.seats}
        drawn = could_have_held(hands, seat.hand)
        held = np.array([card for place in others for card in hands.holes[place]], np.int64)
        yield from self._weights(seat, hole, board, margins, held[None], drawn, [EVERYBODY])
        named = [place for place in others if place in players]
        if named and len(others) > 1:
            pairs = np.array([hands.holes[place] for place in named], np.int64)
            whom = [players[place] for place in named]
            yield from self._weights(seat, hole, board, margins, pairs, drawn[:, :2], whom)

    def _weights(
        self, seat: SeatDecisions, hole: Longs, board: Longs, own: Mapping[Phase, float], held: Longs, drawn: Longs,
        whom: Iterable[str],
    ) -> Iterator[Weight]:  # fmt: skip
        """The weights of a seat as one that knows each row of `held`."""
        reach = math.sqrt(held.shape[1] / _MOST_KNOWN)
        counted = [phase for phase in seat.bets if abs(own[phase]) <= CLOSE.get(phase, 0) * reach]
        if not counted:
            return
        likely = np.zeros(len(held) + len(drawn))
        followed, against = np.zeros(len(held), np.int64), np.zeros(len(held), np.int64)
        for phase in counted:
            margins = self.margins(phase, hole, board, np.concatenate([held, drawn]))
            agreeing = np.sign(margins) * (1 if seat.bets[phase] else -1)
            likely += np.log(np.select([agreeing > 0, agreeing < 0], [1 - self.error, self.error], 0.5))
            differing = margins[: len(held)] * own[phase] < 0
            followed += differing & (agreeing[: len(held)] > 0)
            against += differing & (agreeing[: len(held)] < 0)
        could_be = np.exp(likely[len(held) :]).sum()
        for row, name in enumerate(whom):
            evidence = likely[row] - math.log((math.exp(likely[row]) + could_be) / (1 + len(drawn)))
            yield Weight(seat.player, name, float(evidence), len(counted), int(followed[row]), int(against[row]))

    def margins(self, phase: Phase, hole: Longs, board: Longs, dead: Longs) -> Floats:
        """How much more the bet is worth than not to bet, in antes, for each row of dead cards."""
        out = dead.shape[1]
        dealers = comb(45 - out, 2) * self.scale
        if phase is Phase.PREFLOP:
            number = int(hole_numbers()[hole[0], hole[1]])
            return np.asarray(self.preflop[number] + self._effect(number, hole, dead))
        if phase is Phase.FLOP:
            dealers *= comb(47 - out, 2)
            sums = flop_margins(self.game, self._memo, hole, board[:3], dead)
        else:
            sums = river_margins(self.game, hole, board, dead)
        margins: Floats = sums / dealers
        return margins

    def _effect(self, number: int, hole: Longs, dead: Longs) -> Floats:
        """How much each row of dead cards moves the margin before the flop."""
        if not dead.shape[1]:
            return np.zeros(len(dead))
        renamed = renaming_of(int(hole[0]), int(hole[1]))
        if number not in self._effects:
            one, other = sorted(int(card) for card in renamed[hole])
            self._effects[number] = effects(self.game, self.own, one, other) / self.scale
        return effect_of(self._effects[number], renamed[dead])


@dataclass
class PlayerWatch:
    """All series, and which of them alarm."""

    alpha: float
    rounds: int = 0
    series: dict[tuple[str, str], Series] = field(default_factory=dict)

    def add(self, weights: Iterable[Weight]) -> None:
        """Take in a round."""
        self.rounds += 1
        for weight in weights:
            key = weight.player, weight.whom
            self.series.setdefault(key, Series(*key)).add(weight)

    def limit(self, series: Series) -> float:
        """Return ln of the evidence at which a series alarms. Half of alpha is shared by the series of each
        sort.
        """
        is_pair = series.whom != EVERYBODY
        alike = sum((whom != EVERYBODY) == is_pair for _, whom in self.series)
        return math.log(2 * alike / self.alpha)

    @property
    def alarming(self) -> list[Series]:
        """Those whose evidence has ever reached the limit."""
        return [one for one in self.series.values() if one.highest >= self.limit(one)]
