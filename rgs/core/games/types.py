"""The vocabulary of a game: phases, actions, seats, settlements, and the tables that make one game (`FamilyRules`).

RULEBOOK sections 2 and 3 give the words. Everything is frozen: an action makes a new `Seat`. The `repr` of a `Seat`
shows no card, because cards leak in log lines (ARCHITECTURE section 1; U-0: hole cards may be secret).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import NamedTuple

from rgs.core.cards import Card
from rgs.core.games.paytables import HandFloor, Paytable
from rgs.core.hands import HandValue

INSUFFICIENT_BALANCE = "INSUFFICIENT_BALANCE"
"""The one reason for which a legal action is unavailable (U-11)."""


class Action(StrEnum):
    """A decision of the player: play bets are 4, 3, 2 and 1 times the ante (U-2), the call is twice the ante (C-1)."""

    CHECK = "check"
    PLAY_4X = "play_4x"
    PLAY_3X = "play_3x"
    PLAY_2X = "play_2x"
    PLAY_1X = "play_1x"
    CALL = "call"
    FOLD = "fold"


class Phase(StrEnum):
    """What is on the table, earliest first; at SHOWDOWN no decision is left. Casino Hold'em begins at FLOP."""

    PREFLOP = "preflop"
    FLOP = "flop"
    RIVER = "river"
    SHOWDOWN = "showdown"


class Outcome(StrEnum):
    """The better hand, or FOLD if the player gave up before the showdown."""

    PLAYER = "player"
    DEALER = "dealer"
    TIE = "tie"
    FOLD = "fold"


class BetResult(StrEnum):
    """The result of one bet: WIN returns more than the stake, PUSH exactly the stake, LOSE nothing."""

    WIN = "win"
    LOSE = "lose"
    PUSH = "push"


class Pay(Enum):
    """How a bet is settled in one outcome: lost, returned, paid 1:1, or by its paytable on the player's hand."""

    LOST = "lost"
    PUSH = "push"
    EVEN = "even"
    TABLE = "table"


@dataclass(frozen=True, slots=True, eq=False)
class FamilyRules:
    """One game as data. Stakes are counted in antes; the `…_rule` fields are RULEBOOK ids for errors.

    `opening_bets` is the canonical order of the bets on the table when the cards are dealt; of these, the player places
    `placed_bets` (the first is required) and the system places the others, each equal to the ante. `decided_bet` is the
    bet that an action with a multiple in `multiples` places. `settlement` says by (dealer
    qualifies, outcome) how each main bet is settled. The side bet has its own paytable, for the final hand or for the
    first five cards.
    """

    name: str
    opening_bets: tuple[str, ...]
    placed_bets: tuple[str, ...]
    side_bet: str
    side_bet_on_flop: bool
    decided_bet: str
    paytables: tuple[str, ...]
    transitions: Mapping[Phase, Mapping[Action, Phase]]
    multiples: Mapping[Action, int]
    board_shown: Mapping[Phase, int]
    settlement: Mapping[tuple[bool, Outcome], Mapping[str, Pay]]
    decision_rule: str
    stake_rule: str
    funds_rule: str

    @property
    def first_phase(self) -> Phase:
        """The phase right after the deal."""
        return next(iter(self.transitions))


class DealStep(NamedTuple):
    """One block of the deal and its number of cards (for each seat, where the seats have own cards)."""

    block: str
    cards: int


@dataclass(frozen=True, slots=True)
class StakeLimits:
    """The least and the largest stake of a bet that the player places, both multiples of the ruleset's step."""

    min_minor: int
    max_minor: int


@dataclass(frozen=True, slots=True)
class Timers:
    """The clock of a table, 0 for none: betting, its amber end (T-1), a decision (T-2), the results (T-8)."""

    betting_ms: int
    amber_ms: int
    decision_ms: int
    result_ms: int


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Ruleset:
    """One version of one ruleset. Two are equal if their hashes are.

    `rules` are the tables of its game. `max_seats` 0 is any number of players on a shared hand. `hole_cards` is
    "own" or "shared", `visibility` "open" or "secret" (U-0); `trips_after_fold` and `aa_after_fold` are "paid" or
    "lost" (U-8, C-7), None in the other game; `seat_lost_after_rounds` and `reservation_lapses_after_rounds` count
    rounds in a row (T-5), 0 for never.
    """

    id: str
    version: int
    family: str
    rules: FamilyRules
    table_only: bool
    max_seats: int
    hole_cards: str
    visibility: str
    deal_procedure: tuple[DealStep, ...]
    paytables: Mapping[str, Paytable]
    qualify: HandFloor
    limits: Mapping[str, StakeLimits]
    step_minor: int
    timers: Timers
    default_decisions: Mapping[Phase, Action]
    trips_after_fold: str | None
    aa_after_fold: str | None
    seat_lost_after_rounds: int
    reservation_lapses_after_rounds: int
    sources: Mapping[str, str]
    canonical: bytes
    sha256: str

    @property
    def side_bet_survives_fold(self) -> bool:
        """Whether the side bet is settled on its own merits after a fold."""
        return "paid" in (self.trips_after_fold, self.aa_after_fold)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ruleset) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        return f"<Ruleset {self.id} version {self.version} sha256 {self.sha256}>"


@dataclass(frozen=True, slots=True)
class SeatStakes:
    """What a seat brings to the deal: the player's bets, and the funds that are left *after* all opening bets."""

    seat_no: int
    bets: Mapping[str, int]
    funds_minor: int


class ActionTaken(NamedTuple):
    """One decision as it was taken: in which phase, and what it cost."""

    phase: Phase
    action: Action
    amount_minor: int


@dataclass(frozen=True)
class Seat:
    """One seat of one round, with every card the deal gave it; `view` says which of them may be seen.

    `bets` are (bet, stake in minor units): the opening bets in their canonical order, then the play or call bet once
    placed.
    """

    ruleset: Ruleset
    seat_no: int
    hole_cards: tuple[Card, ...] = field(repr=False)
    dealer_cards: tuple[Card, ...] = field(repr=False)
    board: tuple[Card, ...] = field(repr=False)
    burns: tuple[Card, ...] = field(repr=False)
    bets: tuple[tuple[str, int], ...]
    funds_minor: int
    phase: Phase
    actions: tuple[ActionTaken, ...] = ()

    @property
    def ante_minor(self) -> int:
        """The ante: every other main bet is a multiple of it."""
        return next(amount for bet, amount in self.bets if bet == "ante")

    @property
    def has_folded(self) -> bool:
        """Whether the player gave up."""
        return any(taken.action is Action.FOLD for taken in self.actions)


class LegalAction(NamedTuple):
    """An action of the phase, its cost, and whether the seat's funds cover it; `reason` says why not."""

    action: Action
    cost_minor: int
    available: bool
    reason: str | None


class BetSettlement(NamedTuple):
    """One bet settled: `returned_minor` includes the stake, `net_minor` does not."""

    bet: str
    stake_minor: int
    returned_minor: int
    result: BetResult

    @property
    def net_minor(self) -> int:
        """What the player has gained with this bet, negative if lost."""
        return self.returned_minor - self.stake_minor


class Settlement(NamedTuple):
    """A seat settled, bets in the seat's order; `flop_hand` is the worth of the first five cards if a bet needs it."""

    outcome: Outcome
    dealer_qualifies: bool
    player_hand: HandValue
    dealer_hand: HandValue
    flop_hand: HandValue | None
    bets: tuple[BetSettlement, ...]
    staked_minor: int
    returned_minor: int

    @property
    def net_minor(self) -> int:
        """What the player has gained in the round, negative if lost."""
        return self.returned_minor - self.staked_minor


class SeatView(NamedTuple):
    """What may be seen of a seat now. Cards that may not be seen are absent, not masked.

    `player_hand` is the worth of the visible hole cards and board once these are five or more; `dealer_cards` is empty
    before the showdown; `finished` says that the showdown is what is being shown.
    """

    phase: Phase
    hole_cards: tuple[Card, ...]
    dealer_cards: tuple[Card, ...]
    board: tuple[Card, ...]
    bets: tuple[tuple[str, int], ...]
    player_hand: HandValue | None
    finished: bool
