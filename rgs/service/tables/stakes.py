"""What a void of a table's round gives back, seat by seat: the dry run of the order says it (docs/tables.md).

Before the draw these are the reserved bets of everybody at the table, then the stakes of the seats of the deal: what is
reserved where a seat has no opening yet, opening bets and decisions where it has one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from rgs.core.rounds import staked_so_far
from rgs.core.tables.rows import TableRound
from rgs.store.interface import Store

STAKES_MAX: Final = 1_000
"""So many seats are listed; all of them are counted."""
_PAGE: Final = 200


@dataclass(frozen=True, slots=True)
class SeatStake:
    """What one seat gets back. `seat_no` is 0 before the seats are numbered."""

    seat_no: int
    session_id: str
    operator: str
    staked_minor: int


@dataclass(frozen=True, slots=True)
class Stakes:
    """What all seats get back, and the first of them."""

    currency: str
    seats: int
    staked_minor: int
    listed: tuple[SeatStake, ...]


async def stakes_of(store: Store, round_: TableRound, currency: str) -> Stakes:
    """What comes back if the round is made void as it stands."""
    seats = staked_minor = 0
    listed: list[SeatStake] = []
    async for stake in _dealt(store, round_) if round_.deal else _reserved(store, round_):
        seats, staked_minor = seats + 1, staked_minor + stake.staked_minor
        if seats <= STAKES_MAX:
            listed.append(stake)
    listed.sort(key=lambda stake: (stake.seat_no, stake.session_id))
    return Stakes(currency, seats, staked_minor, tuple(listed))


async def _reserved(store: Store, round_: TableRound) -> AsyncIterator[SeatStake]:
    after = (-1, "")
    while page := await store.cut_sittings(round_.table_id, after, _PAGE):
        after = (page[-1].box, page[-1].session_id)
        for one in page:
            yield SeatStake(one.seat_no, one.session_id, one.operator, one.reserved_minor)


async def _dealt(store: Store, round_: TableRound) -> AsyncIterator[SeatStake]:
    seat_no, unopened = 0, set[int]()
    while sittings := await store.fixed_sittings(round_.table_id, seat_no, _PAGE):
        seat_no = sittings[-1].seat_no
        for one in sittings:
            unopened.add(one.seat_no)
            yield SeatStake(one.seat_no, one.session_id, one.operator, one.reserved_minor)
    seat_no = 0
    while seats := await store.open_seats(round_.round_id, seat_no, _PAGE):
        seat_no = seats[-1].seat_no
        for seat in seats:
            if seat.seat_no not in unopened:  # opened in between
                yield SeatStake(seat.seat_no, seat.session_id, seat.operator, staked_so_far(seat))
