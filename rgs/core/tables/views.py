"""What may be seen of a table: by all its players, and by the holder of a seat. Cards are text, amounts minor units.

Where boxes have cards of their own, those of others are shown once the round has ended (U-0). An operator sees names
and bets of its own players only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rgs.core.games.types import Phase
from rgs.core.hands import HandValue
from rgs.core.tables.config import TableConfig
from rgs.core.tables.machine import State
from rgs.core.tables.seating import Bets
from rgs.core.views import RoundView

PLAYERS_STEPS: Final = (0, 1, 5, 10, 50, 100, 500, 1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000)
"""How many players are shown: the highest step that is reached, so that nobody learns how many another operator has."""


def players_at_least(players: int) -> int:
    """The highest step that this number of players reaches.

    >>> players_at_least(0), players_at_least(4), players_at_least(7)
    (0, 1, 5)
    """
    return max(step for step in PLAYERS_STEPS if step <= players)


@dataclass(frozen=True, slots=True)
class BoxView:
    """A box. `session_id` and `bets` are empty in boxes of other operators' players."""

    box: int
    nickname: str = ""
    session_id: str = ""
    bets: Bets = ()
    in_round: bool = False
    decided: bool = False
    hole_cards: tuple[str, ...] = ()
    reserved: bool = False


@dataclass(frozen=True, slots=True)
class TableView:
    """A table as one operator's players see it, at a version. Times are milliseconds, 0 for none."""

    table_id: str
    version: int
    state: State
    paused_from: State | None
    phase: Phase | None
    round_id: str
    table_round_no: int
    game_code: str
    open_ms: int
    amber_ms: int
    """When the light turns amber; 0 outside the betting window."""
    deadline_ms: int
    time_ms: int
    hole_cards: tuple[str, ...]
    board: tuple[str, ...]
    dealer_cards: tuple[str, ...]
    dealer_hand: HandValue | None
    player_hand: HandValue | None
    dealer_qualifies: bool
    boxes: tuple[BoxView, ...]
    players_at_least: int
    commitment: bytes
    malfunction_code: str
    table_round: bytes
    """Envelopes of the statements of the round so far, empty for those that are not signed yet."""
    table_deal: bytes
    table_final: bytes


@dataclass(frozen=True, slots=True)
class SeatView:
    """A player's seat. `round` is the running round, or the one that has just ended; `ended` is LEFT in the answer to
    Leave; else CLOSED, BARRED or NOT_SEATED where the session has no seat.
    """

    session_id: str
    table_id: str
    box: int
    device_no: int
    seat_version: int
    bets: Bets
    reserved_minor: int
    round: RoundView | None
    regulator_session_id: str
    """RULEBOOK R-1: both ids are shown wherever the round is."""
    regulator_participation_id: str
    ended: str = ""


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A table as the lobby shows it."""

    config: TableConfig
    state: State
    players_at_least: int
    boxes: int
    boxes_free: int
    hours_change_ms: int
    """The next opening or closing by its hours; 0 if there is none."""


@dataclass(frozen=True, slots=True)
class ChatLine:
    """A line of chat as a caller sees it: `player` and `operator` are empty for players of other operators, and for the
    dealer.
    """

    message_id: str
    table_id: str
    time_ms: int
    nickname: str
    text: str
    code: str
    player: str
    operator: str = ""
    is_own: bool = False
    """Whether a player of the caller wrote it."""
