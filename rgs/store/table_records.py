"""What commits of tables leave beside their rows: numbers of seats, conditions, reservations, bars, chat.

They are records of a change (`rgs.store.changes`); `rgs.store.table_rows` has the SQL of each.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SeatsFixed:
    """The cut bets of a table get the numbers of their seats: 1, 2, 3, … in the order of box and session id."""

    table_id: str


@dataclass(frozen=True, slots=True)
class BetsStand:
    """The change holds only where something is reserved at the table (1), or nothing (0): as it is committed, not as it
    was read before. The store refuses it otherwise with TableMovedError.
    """

    table_id: str
    has_bets: int


@dataclass(frozen=True, slots=True)
class SeatsStand:
    """The change holds only where no open seat of the round has moved after this time. TableMovedError otherwise."""

    time_ms: int
    round_id: str


@dataclass(frozen=True, slots=True)
class SeatsLost:
    """Who has not played since the round `last_no` loses the seat (RULEBOOK T-5); reserved bets keep theirs."""

    table_id: str
    last_no: int


@dataclass(frozen=True, slots=True)
class SittingEnded:
    """The session leaves its table, for whatever reason: the place is free.

    `reserved_minor` is what was reserved there and goes back to the session in the same change. The store refuses it
    with TableMovedError where the seat has another reservation.
    """

    session_id: str
    reserved_minor: int = 0


@dataclass(frozen=True, slots=True)
class TableConfigKept:
    """A version of a table's configuration, found by its hash for ever."""

    sha256: str
    table_id: str
    version: int
    canonical: bytes


@dataclass(frozen=True, slots=True)
class PlayerBarred:
    """A player may not sit at a table. `party` said so, for a coded reason."""

    table_id: str
    operator: str
    player: str
    reason: str
    party: str
    time_ms: int


@dataclass(frozen=True, slots=True)
class BarEnded:
    """The player may sit at the table again."""

    table_id: str
    operator: str
    player: str


@dataclass(frozen=True, slots=True)
class BoxReserved:
    """An admin holds a box for a player, until after the round `last_no`; 0: for good (`BoxReservation`)."""

    table_id: str
    box: int
    operator: str
    player: str
    last_no: int


@dataclass(frozen=True, slots=True)
class BoxReleased:
    """The box is held for nobody any more."""

    table_id: str
    box: int


@dataclass(frozen=True, slots=True)
class ReservationsLapsed:
    """Reservations of boxes that were held until this round of the table end."""

    table_id: str
    table_round_no: int


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A line of a table's chat. The dealer's lines are codes (`code`), a player's are text."""

    message_id: str
    table_id: str
    time_ms: int
    operator: str
    player: str
    nickname: str
    text: str = field(repr=False)
    code: str


@dataclass(frozen=True, slots=True)
class ChatErased:
    """A line of the chat is emptied: its text and nickname go, its row stays."""

    message_id: str


@dataclass(frozen=True, slots=True)
class SeatTraced:
    """The trace of the call that decided last for a seat in play: the seat's report by the table continues it."""

    traceparent: str
    session_id: str
    round_id: str


TableRecord = (
    SeatsFixed
    | BetsStand
    | SeatsStand
    | SeatsLost
    | SittingEnded
    | TableConfigKept
    | PlayerBarred
    | BarEnded
    | BoxReserved
    | BoxReleased
    | ReservationsLapsed
    | ChatMessage
    | ChatErased
    | SeatTraced
)
