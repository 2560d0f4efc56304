"""What changes of a table demand of its bets and seats as they are committed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rgs.core.rounds import RoundStatus
from rgs.core.tables.machine import State
from rgs.store.changes import Change, Draft, SessionRaceError, TableMovedError
from rgs.store.table_records import BetsStand, SeatsStand, SittingEnded
from tests.support.store.shelf import answer, applied, open_shelf, ulid
from tests.support.store.table_rows import (
    BETS,
    RESERVED,
    TABLE,
    at_table,
    guarded,
    seat_opened,
    seat_round,
    seated,
    sitting,
    table_round,
    table_row,
)

pytestmark = pytest.mark.usefixtures("either_store")


def step(version: int, state: State, has_bets: int) -> Change:
    return Change(table=table_row(version, state=state), records=(BetsStand(TABLE, has_bets),))


async def test_a_window_without_a_bet_is_cancelled_and_one_with_a_bet_is_closed(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(table=table_row()))
        await store.commit(seated(9, table_id="sala-piccola", bets=True))
        await store.commit(seated(1))
        with pytest.raises(TableMovedError):
            await store.commit(step(2, State.CLOSED, 1))
        await store.commit(step(2, State.IDLE, 0))
        await store.commit(Change(sitting=sitting(1).placed(BETS)))
        with pytest.raises(TableMovedError):
            await store.commit(step(3, State.IDLE, 0))
        await store.commit(step(3, State.CLOSED, 1))
        assert await store.table_versions([TABLE]) == {TABLE: 3}


async def test_a_bet_in_the_last_moment_is_not_cancelled_away(tmp_path: Path) -> None:
    """The dealer saw no bet; one is committed in the same group before the step."""
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(table=table_row()))
        await store.commit(seated(1))
        bet = guarded(
            1,
            session=at_table(1, version=2, reserved_minor=RESERVED),
            sitting=sitting(1).placed(BETS),
            answer=answer(1),
        )
        outcomes = await applied(store, [bet, step(2, State.IDLE, 0)])
        assert [type(one) for one in outcomes] == [tuple, TableMovedError]
        assert await store.has_bets(TABLE)
        assert await store.table_versions([TABLE]) == {TABLE: 1}


async def test_no_seat_has_moved_after_the_time_of_a_step(tmp_path: Path) -> None:
    round_ = table_round(1)
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(table=table_row(), table_round=round_))
        for number, last_ms in ((1, 500), (2, 700), (3, 900)):
            await store.commit(seat_opened(at_table(number, last_ms=last_ms), seat_round(number, number, round_)))
        third = await store.seat(ulid(3), round_.round_id)
        session = await store.session(ulid(3))
        ended = replace(third, version=2, status=RoundStatus.SETTLED, end_ms=900)
        await store.commit(Change(replace(session, version=2), ended))  # its time counts no more

        def shown(time_ms: int) -> Change:
            return Change(table=table_row(2), records=(SeatsStand(time_ms, round_.round_id),))

        with pytest.raises(TableMovedError):
            await store.commit(shown(699))
        await store.commit(shown(700))
        with pytest.raises(TableMovedError):  # there is no such round
            await store.commit(Change(table=table_row(3), records=(SeatsStand(700, ulid(1)),)))


# --- seats that end ---------------------------------------------------------------------------------------------------


def bet() -> Change:
    return guarded(
        1,
        session=at_table(1, version=2, reserved_minor=RESERVED),
        sitting=sitting(1).placed(BETS),
        answer=answer(1),
    )


def left(**change: Any) -> Change:
    """A seat without bets is given back, as it was read."""
    return Change(records=(SittingEnded(ulid(1)),), answer=answer(2), **change)


@pytest.mark.parametrize("has_session", [True, False])
@pytest.mark.parametrize("is_bet_first", [True, False])
async def test_of_a_bet_and_the_end_of_its_seat_in_one_group_the_first_wins(
    tmp_path: Path, is_bet_first: bool, has_session: bool
) -> None:
    """Where the session's version does not tell, what is reserved does: no bet is left without its seat."""
    leave = left(session=at_table(1, version=2)) if has_session else left()
    changes = [bet(), leave] if is_bet_first else [leave, bet()]
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(table=table_row()))
        await store.commit(seated(1))
        outcomes = await applied(store, changes)
        assert [type(one) for one in outcomes] == [tuple, SessionRaceError if has_session else TableMovedError]
        held, seat = (await store.session(ulid(1))).reserved_minor, await store.sitting(ulid(1))
        assert (held, seat is not None) == ((RESERVED, True) if is_bet_first else (0, False))
        assert await store.reserved_breaks(TABLE, "", 9) == []
        answers = [await store.answer("op-1", "Act", f"request-{number}") is not None for number in (1, 2)]
        assert answers == [is_bet_first, not is_bet_first]


async def test_a_seat_ends_with_the_reservation_that_goes_back_and_no_other(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(table=table_row()))
        await store.commit(seated(1, bets=True))
        back = at_table(1, version=2)
        for reserved_minor in (0, RESERVED - 1, RESERVED + 1):
            late = guarded(1, session=back, records=(SittingEnded(ulid(1), reserved_minor),), answer=answer(1))
            outcomes = await applied(store, [Change(answer=answer(2 + reserved_minor)), late])
            assert [type(one) for one in outcomes] == [tuple, TableMovedError]
        assert (await store.session(ulid(1))).version == 1
        assert await store.answer("op-1", "Act", "request-1") is None
        await store.commit(guarded(1, session=back, records=(SittingEnded(ulid(1), RESERVED),), answer=answer(1)))
        assert await store.sitting(ulid(1)) is None
        assert await store.reserved_breaks(TABLE, "", 9) == []


async def test_a_session_without_a_seat_leaves_nothing(tmp_path: Path) -> None:
    """It is closed, and has left its table before."""
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(session=at_table(1)))
        await store.commit(left(session=at_table(1, version=2)))
        assert (await store.session(ulid(1))).version == 2


async def test_who_has_left_meanwhile_goes_with_the_opening_of_the_seat(tmp_path: Path) -> None:
    """The seat itself takes the reservation back in the same change."""
    async with open_shelf(tmp_path) as store:
        await store.commit(seated(1, bets=True))
        change = seat_opened(at_table(1, version=2), seat_round(1, 1, table_round(1)))
        change.sitting = replace(await store.sitting(ulid(1)), leaving=True).opened(1)
        change.records = (SittingEnded(ulid(1)),)
        await store.commit(change)
        assert await store.sitting(ulid(1)) is None


# --- the time of seats ------------------------------------------------------------------------------------------------


async def test_a_round_keeps_the_newest_time_that_its_seats_have_signed(tmp_path: Path) -> None:
    """Not the order of the commits decides, and no other move of the sessions counts."""
    round_ = table_round(1)
    async with open_shelf(tmp_path) as store:
        assert await store.newest_seat_ms(round_.round_id) == 0
        await store.commit(Change(table=table_row(), table_round=round_))
        assert await store.newest_seat_ms(round_.round_id) == 0
        opening = [
            seat_opened(at_table(number, last_ms=last_ms), seat_round(number, number, round_))
            for number, last_ms in ((1, 500), (2, 700), (3, 600))
        ]
        await applied(store, [opening[1], opening[0]])
        assert await store.newest_seat_ms(round_.round_id) == 700
        await store.commit(opening[2])
        session, seat = await store.session(ulid(3)), await store.seat(ulid(3), round_.round_id)
        await store.commit(Change(replace(session, version=2, last_ms=800), replace(seat, version=2)))  # a decision
        await store.commit(Change(table_round=replace(round_, version=2)))
        assert await store.newest_seat_ms(round_.round_id) == 700
        final = Draft("seat_final", {"time": "then"}, round_id=round_.round_id, seat_no=3)
        ended = replace(seat, version=3, status=RoundStatus.SETTLED, end_ms=900)
        await store.commit(Change(replace(session, version=3, last_ms=900), ended, drafts=(final,)))
        assert await store.newest_seat_ms(round_.round_id) == 900
