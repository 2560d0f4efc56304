"""The seats of a table between and during rounds: who sits where, what is reserved, when a seat is lost.

A bet is a reservation of the whole bet, until the betting window closes (RULEBOOK R-7, T-1). A seat belongs to one
player; a second device takes it over (T-3). A box is lost after a number of rounds in a row that its holder did not
play (T-5). Nothing here has a clock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from rgs.core import games
from rgs.core.cards import FULL_DECK
from rgs.core.errors import (
    BoxTakenError,
    DeviceReplacedError,
    InvalidFieldError,
    PlayerBarredError,
    TableFullError,
    TablesAtOnceError,
)
from rgs.core.games.dealing import deal_again
from rgs.core.games.types import Action, ActionTaken, Phase, Ruleset, StakeLimits
from rgs.core.games.types import Seat as DealtSeat
from rgs.core.limits import Headroom
from rgs.core.rounds import SERVER_PARTY, TakenAction
from rgs.core.statements import request_digest
from rgs.core.tables.windows import Window, WindowEnd

Bets = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Sitting:
    """One player at one table. `bets` are reserved until the seat is opened; `version` rises with every change.

    `box` is 0 where the table has no boxes. `device_no` counts the devices that took the seat; only the newest plays.
    `place_no` is which of the player's tables it is, from 1 to the number that the law allows at once.
    """

    table_id: str
    session_id: str
    operator: str
    player: str
    nickname: str
    place_no: int = 1
    box: int = 0
    device_no: int = 1
    bets: Bets = ()
    reserved_minor: int = 0
    """What the reserved bets come to, the system's own among them."""
    version: int = 1
    seat_no: int = 0
    """The seat in the round whose bets are cut, until it is opened; else 0."""
    played_no: int = 0
    """The newest round of the table that the player played, or that had begun when the player sat down."""
    leaving: bool = False
    """The player has left while the bets were cut: they stand, and the place is free once the seat is opened."""

    def verify_device(self, device_no: int) -> None:
        """DeviceReplacedError for a device that another one has replaced (T-3); InvalidFieldError for a number that no
        device has.
        """
        if not 0 < device_no <= self.device_no:
            raise InvalidFieldError(
                f"no device of this seat has the number {device_no}: the answer to Join says which one you have",
                field="device_no",
                value=device_no,
                limit=self.device_no,
                table=self.table_id,
            )
        if device_no != self.device_no:
            raise DeviceReplacedError(
                f"device {device_no} no longer plays this seat, device {self.device_no} does: join to take it over",
                field="device_no",
                value=device_no,
                limit=self.device_no,
                table=self.table_id,
            )

    def taken_over(self) -> Sitting:
        """The seat on the player's next device."""
        return replace(self, device_no=self.device_no + 1, version=self.version + 1)

    def placed(self, bets: Bets) -> Sitting:
        """The seat with this whole bet in place of the one before; no bets take it back."""
        staked = sum(amount for _, amount in bets)
        return replace(self, bets=bets, reserved_minor=staked, version=self.version + 1)

    def opened(self, table_round_no: int) -> Sitting:
        """The seat once its round is opened: nothing is reserved, and the count of missed rounds begins anew."""
        return replace(self.placed(()), seat_no=0, played_no=table_round_no)

    def is_lost(self, ruleset: Ruleset, table_round_no: int) -> bool:
        """Whether the ruleset takes the seat back after this round of the table (T-5)."""
        return 0 < ruleset.seat_lost_after_rounds <= table_round_no - self.played_no


@dataclass(frozen=True, slots=True)
class BoxReservation:
    """A box that an admin holds for a player (RULEBOOK F-13). It lapses after the round `last_no` of the table; 0:
    never.
    """

    table_id: str
    box: int
    operator: str
    player: str
    last_no: int


@dataclass(frozen=True, slots=True)
class Places:
    """Which places of a table are taken: seats in all, and by box its holder or the player it is reserved for."""

    seats_max: int
    boxes: int
    """0 where the table has no boxes."""
    seats: int
    taken: Mapping[int, tuple[str, str]]
    """Box -> (operator, player)."""
    barred: Collection[tuple[str, str]] = ()


def choose_box(places: Places, operator: str, player: str, box: int) -> int:
    """The box that the player gets: `box`, or with 0 the one reserved for the player, else the lowest free one.

    It is 0 at a table without boxes. Raises PlayerBarredError, TableFullError, BoxTakenError, InvalidFieldError for a
    box that the table does not have.
    """
    who = (operator, player)
    if who in places.barred:
        raise PlayerBarredError("the player is barred from this table", field="player")
    if not 0 <= box <= places.boxes:
        problem = (
            f"not one of 1 to {places.boxes}, or 0 for any" if places.boxes else "not 0, and the table has no boxes"
        )
        raise InvalidFieldError(f"box: {box} is {problem}", field="box", value=box, limit=places.boxes)
    if places.seats >= places.seats_max:
        raise TableFullError(f"all {places.seats_max} seats are taken", limit=places.seats_max, value=places.seats)
    if not places.boxes:
        return 0
    own = [number for number, holder in places.taken.items() if holder == who]
    free = [*own, *(number for number in range(1, places.boxes + 1) if number not in places.taken)]
    if box and box not in free:
        raise BoxTakenError(f"box {box} is taken or reserved", field="box", value=box)
    if not free:
        raise TableFullError(f"all {places.boxes} boxes are taken or reserved", limit=places.boxes, value=places.boxes)
    return box or free[0]


def verify_tables_at_once(
    tables_max: int, others: int, *, is_beside_allowed: bool, are_others_beside_allowed: bool
) -> None:
    """TablesAtOnceError if the player may not sit at one more table (T-4): the law's number, or a table's own rule.

    `others` is the number of tables at which the player sits now.
    """
    if others >= tables_max:
        raise TablesAtOnceError(
            f"the player sits at {others} tables, the limit is {tables_max}", limit=tables_max, value=others
        )
    if others and not (is_beside_allowed and are_others_beside_allowed):
        raise TablesAtOnceError(
            "one of these tables may not be played beside others", limit=1, value=others, field="table"
        )


def check_bets(
    ruleset: Ruleset, limits: Mapping[str, StakeLimits], placed: Mapping[str, int], headroom: Headroom
) -> Bets:
    """All opening bets of a seat, from those that the player places; none for an empty bet.

    `headroom` is what the session may stake without this reservation. Checked are the table's limits, and that bets and
    the cheapest finish are covered, so that nothing can fail at the deal. Raises as `check_stakes` does, and
    InsufficientBalanceError, LossLimitError or StakeLimitError.
    """
    if not placed:
        return ()
    bets = games.check_stakes(ruleset, placed, limits=limits)
    cost = sum(amount for _, amount in bets) + games.cheapest_finish(ruleset, placed)
    headroom.verify_covers(cost, "bets", "U-11")
    return bets


def seat_in_play(
    ruleset: Ruleset, seat_no: int, bets: Bets, funds_minor: int, actions: Collection[TakenAction]
) -> DealtSeat:
    """A seat after its decisions, for what needs no card: what is legal, and what it costs.

    Its cards are not those of the deal. Never show them.
    """
    return after_actions(deal_again(ruleset, FULL_DECK, seat_no, bets, funds_minor), actions)


def after_actions(seat: DealtSeat, actions: Collection[TakenAction]) -> DealtSeat:
    """The seat after recorded decisions."""
    taken = [ActionTaken(Phase(one.phase), Action(one.action), one.amount_minor) for one in actions]
    return games.apply_again(seat, taken) if taken else seat


def with_defaults(
    seat: DealtSeat, actions: tuple[TakenAction, ...], windows: Collection[Window], round_id: str
) -> tuple[TakenAction, ...]:
    """The decisions of a seat after these windows: its own, and the ruleset's default where one ran out (T-2).

    `seat` stands after `actions`. A default has the time at which its window closed.
    """
    digest = request_digest({"method": "FinishByTimer", "round_id": round_id}).hex()
    for window in windows:
        if window.end is WindowEnd.TIME and window.phase is seat.phase:
            action = games.default_action(seat)
            actions = (
                *actions,
                TakenAction(seat.phase.value, action.value, 0, window.close_ms, "timer", SERVER_PARTY, digest),
            )
            seat = games.apply(seat, action)
    return actions
