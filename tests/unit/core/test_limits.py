"""Session limits: what may be set, the room that is left, and the reason that is told first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core.errors import (
    DurationLimitError,
    InsufficientBalanceError,
    InvalidFieldError,
    LossLimitError,
    RgsError,
    SessionInactiveError,
    StakeLimitError,
)
from rgs.core.ledger import PARTICIPATION_MINOR_MAX, Participation
from rgs.core.limits import DURATION_MS_MAX, Headroom, SessionLimits, headroom_of
from rgs.core.sessions import Session, SessionStatus

MOST = {
    "loss_minor": PARTICIPATION_MINOR_MAX,
    "stake_minor": PARTICIPATION_MINOR_MAX,
    "duration_ms": DURATION_MS_MAX,
}


@pytest.mark.parametrize("name", MOST)
def test_a_limit_is_an_amount_or_a_time(name: str) -> None:
    for value in (0, 1, MOST[name]):
        SessionLimits(**{name: value}).verify()
    for value, limit in ((-1, 0), (MOST[name] + 1, MOST[name])):
        with pytest.raises(InvalidFieldError) as caught:
            SessionLimits(**{name: value}).verify()
        assert caught.value.field == f"limits.{name}"
        assert caught.value.metadata == {"limit": str(limit), "value": str(value)}


def test_a_statement_names_the_limits_that_are_set() -> None:
    assert SessionLimits().body() == {}
    assert SessionLimits(loss_minor=5, duration_ms=7).body() == {"duration_ms": "7", "loss_minor": "5"}
    assert SessionLimits(1, 2, 3).body() == {"duration_ms": "3", "loss_minor": "1", "stake_minor": "2"}


@pytest.mark.parametrize(
    ("limits", "money", "room"),
    [
        (SessionLimits(), Participation(1000, 300, 100), Headroom(800, None, None)),
        # 200 lost so far: 300 of 500 are left to lose; 300 staked so far: 100 of 400 are left to stake.
        (SessionLimits(loss_minor=500), Participation(1000, 300, 100), Headroom(800, 300, None)),
        (SessionLimits(stake_minor=400), Participation(1000, 300, 100), Headroom(800, None, 100)),
        # What was won may be lost again.
        (SessionLimits(loss_minor=500), Participation(1000, 300, 900), Headroom(1600, 1100, None)),
        # Nothing is less than nothing.
        (SessionLimits(loss_minor=100, stake_minor=200), Participation(1000, 300, 100), Headroom(800, 0, 0)),
    ],
)
def test_the_room_that_is_left(limits: SessionLimits, money: Participation, room: Headroom) -> None:
    assert headroom_of(limits, money) == room


@pytest.mark.parametrize(
    ("limits", "reserved_minor", "room"),
    [
        (SessionLimits(), 800, Headroom(0, None, None)),
        (SessionLimits(loss_minor=500), 50, Headroom(750, 250, None)),
        (SessionLimits(stake_minor=400), 50, Headroom(750, None, 50)),
        # Nothing is less than nothing.
        (SessionLimits(loss_minor=500, stake_minor=400), 301, Headroom(499, 0, 0)),
    ],
)
def test_what_is_reserved_counts_as_staked_and_lost(limits: SessionLimits, reserved_minor: int, room: Headroom) -> None:
    assert headroom_of(limits, Participation(1000, 300, 100), reserved_minor) == room


@given(st.builds(SessionLimits, st.integers(0, 2000), st.integers(0, 2000)), *[st.integers(0, 2000)] * 4)
def test_a_reservation_leaves_what_its_stake_would_leave(
    limits: SessionLimits, bought: int, staked: int, returned: int, reserved: int
) -> None:
    money = Participation(bought + staked + reserved, staked, returned)
    after = replace(money, staked_minor=staked + reserved)
    assert headroom_of(limits, money, reserved) == headroom_of(limits, after)


@pytest.mark.parametrize(
    ("room", "cost_minor", "error", "limit"),
    [
        (Headroom(99, 99, 99), 100, InsufficientBalanceError, 99),
        (Headroom(100, 99, 98), 100, LossLimitError, 99),
        (Headroom(100, 100, 98), 100, StakeLimitError, 98),
        (Headroom(100, None, 98), 100, StakeLimitError, 98),
        (Headroom(100, 0, None), 1, LossLimitError, 0),
        (Headroom(99, None, None), 100, InsufficientBalanceError, 99),
    ],
)
def test_the_first_reason_is_told(room: Headroom, cost_minor: int, error: type[RgsError], limit: int) -> None:
    assert room.reason_against(cost_minor) == error.reason
    with pytest.raises(error) as caught:
        room.verify_covers(cost_minor, "bets", "U-11")
    assert type(caught.value) is error
    assert caught.value.field == "bets"
    assert caught.value.metadata == {"value": str(cost_minor), "limit": str(limit), "rule": "U-11"}


AMOUNTS = st.integers(0, 2000)


@given(st.builds(SessionLimits, AMOUNTS, AMOUNTS), AMOUNTS, AMOUNTS, AMOUNTS, st.integers(1, 2000))
def test_what_the_room_covers_keeps_every_limit_and_nothing_more_would(
    limits: SessionLimits, bought: int, staked: int, returned: int, cost: int
) -> None:
    money = Participation(bought + staked, staked, returned)
    room = headroom_of(limits, money)
    after = replace(money, staked_minor=staked + cost)
    kept = (
        after.balance_minor >= 0
        and (not limits.loss_minor or -after.net_position_minor <= limits.loss_minor)
        and (not limits.stake_minor or after.staked_minor <= limits.stake_minor)
    )
    assert (cost <= room.minor) is kept
    assert (room.reason_against(cost) == "") is kept
    assert room.minor >= 0
    if kept:
        room.verify_covers(cost, "bets", "U-11")
        # Staking takes the same from every side: what is left covers exactly what it covered before, less the cost.
        assert headroom_of(limits, after).minor == room.minor - cost


# --- time -------------------------------------------------------------------------------------------------------------

SESSION = Session(
    session_id="S" * 26,
    operator="op-1",
    player="anna",
    operator_reference="ref",
    ruleset_id="uth-solo",
    jurisdiction_id="demo",
    currency="EUR",
    status=SessionStatus.OPEN,
    open_ms=1000,
    last_ms=5000,
)


def test_a_session_without_a_limit_has_no_end() -> None:
    assert SESSION.time_left_ms(10**15) is None
    SESSION.verify_duration(10**15)


def test_a_session_may_start_rounds_until_its_time_is_up() -> None:
    limited = replace(SESSION, limits=SessionLimits(duration_ms=6000))
    assert [limited.time_left_ms(now) for now in (1000, 6999, 7000, 9000)] == [6000, 1, 0, 0]
    limited.verify_duration(6999)
    for now in (7000, 9000):
        with pytest.raises(DurationLimitError) as caught:
            limited.verify_duration(now)
        result = {"limit": "6000", "value": str(now - 1000), "session_id": SESSION.session_id}
        assert caught.value.metadata == result


def test_a_session_in_which_nothing_happens_ends_its_right_to_start() -> None:
    SESSION.verify_in_time(300, 300)
    with pytest.raises(SessionInactiveError) as caught:
        SESSION.verify_in_time(301, 300)
    assert caught.value.metadata == {"value": "301", "limit": "300", "session_id": SESSION.session_id}


def test_the_room_of_a_session_is_that_of_its_participation() -> None:
    session = replace(SESSION, limits=SessionLimits(loss_minor=50), participation=Participation(bought_minor=80))
    assert session.headroom == Headroom(80, 50, None)
    assert session.headroom.minor == 50
