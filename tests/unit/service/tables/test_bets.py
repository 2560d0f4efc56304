"""Bets at tables are reservations: whole, idempotent, checked at once, cut exactly at red (T-1, R-7, U-10, U-11)."""

from __future__ import annotations

import pytest

from rgs.core.errors import (
    BetsReservedError,
    DurationLimitError,
    GuardClosedError,
    IdempotencyConflictError,
    InsufficientBalanceError,
    InvalidFieldError,
    LossLimitError,
    NotFoundError,
    ParticipationEndedError,
    ParticipationMissingError,
    RgsError,
    SessionInactiveError,
    StakeAboveMaximumError,
    StakeBelowMinimumError,
    StakeStepError,
    TableChangedError,
    TableFundingError,
    TableOnlyError,
    UnknownBetError,
)
from rgs.core.games.types import StakeLimits
from rgs.core.limits import SessionLimits
from rgs.core.sessions import Funding
from rgs.core.tables.machine import State
from rgs.service.callers import Caller, Role
from rgs.service.play.requests import EndParticipation, OpenSession, StartRound
from rgs.service.tables.requests import PlaceBets
from tests.support.service.harness import OPERATOR, ServiceHarness, open_harness, read_reply, read_statement
from tests.support.service.oracles import replay, stored_statements
from tests.support.service.tables import Evening, Sitter


@pytest.fixture
async def evening(harness: ServiceHarness) -> Evening:
    return await Evening(harness, "uth-online").open()


@pytest.fixture
async def sitter(evening: Evening) -> Sitter:
    return await Sitter(evening, "player-1").sit(bought_minor=10_000)


async def refused(sitter: Sitter, kind: type[RgsError], **bets: int) -> RgsError:
    """Bets that are refused: nothing of it takes effect."""
    before = await sitter.evening.harness.store.session(sitter.session_id)
    with pytest.raises(kind) as caught:
        await sitter.bet("", **bets)
    assert await sitter.evening.harness.store.session(sitter.session_id) == before
    assert type(caught.value) is kind
    return caught.value


async def test_a_bet_is_reserved_replaced_and_taken_back(sitter: Sitter) -> None:
    """What is reserved stays in the balance and is no headroom; the newest whole bet counts."""
    await sitter.bet(ante=1_000)
    assert (sitter.seat["reserved_minor"], sitter.session["balance_minor"]) == (2_000, 10_000)
    assert sitter.seat["bets"] == [["ante", 1_000], ["blind", 1_000]]
    await sitter.bet(ante=2_000, trips=500)
    assert sitter.seat["reserved_minor"] == 4_500
    stored = await sitter.evening.harness.store.session(sitter.session_id)
    assert stored is not None
    assert (stored.reserved_minor, stored.headroom.minor) == (4_500, 5_500)
    await sitter.bet()
    assert (sitter.seat["reserved_minor"], sitter.seat["bets"]) == (0, [])
    assert await sitter.evening.until(State.IDLE, most=2) is State.IDLE
    assert not [row for row in stored_statements(sitter.evening.harness.folder) if row.kind.startswith("table_")]


async def test_the_same_request_is_done_once(evening: Evening, sitter: Sitter) -> None:
    harness = evening.harness
    request = PlaceBets(harness.request_id(), sitter.session_id, 1, "", 1, {"ante": 1_000})
    first = await harness.tables.seats.place_bets(OPERATOR, request)
    assert await harness.tables.seats.place_bets(OPERATOR, request) == first
    assert read_reply(first)["seat"]["seat_version"] == 2
    other = PlaceBets(request.request_id, sitter.session_id, 1, "", 1, {"ante": 2_000})
    with pytest.raises(IdempotencyConflictError):
        await harness.tables.seats.place_bets(OPERATOR, other)


async def test_a_late_bet_over_a_newer_one_is_refused(sitter: Sitter) -> None:
    """A retry that comes after a newer bet names an old version."""
    await sitter.bet(ante=1_000)
    sitter.seat["seat_version"] -= 1
    error = await refused(sitter, TableChangedError, ante=3_000)
    assert (error.field, error.metadata["value"], error.metadata["limit"]) == ("seat_version", "1", "2")


@pytest.mark.parametrize(
    ("bets", "kind"),
    [
        ({"ante": 50}, StakeBelowMinimumError),
        ({"ante": 10_100}, StakeAboveMaximumError),
        ({"ante": 101}, StakeStepError),
        ({"ante": 1_000, "bonus": 100}, UnknownBetError),
        ({"trips": 500}, RgsError),
        ({"ante": 5_100}, InsufficientBalanceError),
    ],
)
async def test_bets_are_checked_when_they_are_placed(
    sitter: Sitter, bets: dict[str, int], kind: type[RgsError]
) -> None:
    """The table's limits, and the funds: ante, blind, and what the cheapest finish costs."""
    with pytest.raises(kind):
        await sitter.bet("", **bets)
    row = await sitter.evening.row()
    assert row.table.state is State.IDLE  # a refused bet opens no window
    await sitter.bet(ante=5_000)


async def test_reserved_bets_bar_what_would_take_their_money(evening: Evening, sitter: Sitter) -> None:
    harness = evening.harness
    await sitter.bet(ante=1_000)
    with pytest.raises(BetsReservedError):
        await sitter.buy(1_000, purchase_no=2)
    with pytest.raises(BetsReservedError) as caught:
        await harness.send(EndParticipation(harness.request_id(), sitter.session_id))
    assert caught.value.metadata == {"session_id": sitter.session_id, "table": "uth-online", "value": "2000"}
    await sitter.bet()
    await sitter.buy(1_000, purchase_no=2)


async def test_the_window_takes_bets_until_its_last_millisecond(evening: Evening, sitter: Sitter) -> None:
    """At the deadline a bet is in, a millisecond later it is out, also while no process has closed the window yet."""
    await sitter.bet(ante=1_000)
    deadline_ms = (await evening.row()).table.deadline_ms
    evening.harness.clock.time_ms = deadline_ms
    await sitter.bet(ante=1_100)
    evening.harness.clock.time_ms = deadline_ms + 1
    error = await refused(sitter, TableChangedError, ante=1_200)
    assert "window has closed" in error.message
    await evening.look()
    error = await refused(sitter, TableChangedError, ante=1_200)
    assert "deciding" in error.message
    await evening.until(State.RESULT)
    await sitter.look()
    assert sitter.seat["round"]["bets"][0] == ["ante", 1_100]


async def test_bets_name_the_round_of_the_window(evening: Evening, sitter: Sitter) -> None:
    await sitter.bet(ante=1_000)
    round_id = (await evening.row()).table.round_id
    await sitter.bet(round_id, ante=1_100)
    with pytest.raises(TableChangedError) as caught:
        await sitter.bet("01M7Q5CQG00000000000000000", ante=1_200)
    assert round_id in caught.value.message


async def test_a_session_needs_its_participation(evening: Evening) -> None:
    harness = evening.harness
    poor = await Sitter(evening, "player-2").sit(bought_minor=0)
    await refused(poor, ParticipationMissingError, ante=1_000)
    await poor.buy(10_000)
    await harness.send(EndParticipation(harness.request_id(), poor.session_id))
    await refused(poor, ParticipationEndedError, ante=1_000)


async def test_who_may_not_bet_may_not_in_a_window_that_another_has_opened(evening: Evening, sitter: Sitter) -> None:
    harness = evening.harness
    poor = await Sitter(evening, "player-2").sit(bought_minor=0)
    await sitter.bet(ante=1_000)
    await refused(poor, ParticipationMissingError, ante=1_000)
    harness.services.availability.close_guard("rules", "SOFTWARE_CHANGED", harness.clock.now_ms())
    await refused(sitter, GuardClosedError, ante=2_000)
    await sitter.bet()  # what is reserved returns all the same
    assert sitter.seat["reserved_minor"] == 0


async def test_limits_of_the_session_hold(harness: ServiceHarness, evening: Evening) -> None:
    """R-8: reserved bets count as staked, and a limit stops the next bet only."""
    sitter = Sitter(evening, "player-3")
    limits = SessionLimits(loss_minor=5_000, duration_ms=60_000)
    opening = OpenSession(
        harness.request_id(), "uth-online", "player-3", "EUR", "ref-3", limits=limits, table="uth-online"
    )
    sitter.session_id = read_reply(await harness.send(opening))["session"]["session_id"]
    await sitter.buy(50_000)
    await sitter.join()
    await refused(sitter, LossLimitError, ante=2_600)
    await sitter.bet(ante=1_000)
    await evening.until(State.DECIDING)
    await sitter.look()
    assert [action for action, _, available in sitter.seat["round"]["legal_actions"] if not available] == ["play_4x"]
    await evening.until(State.RESULT)
    harness.clock.tick(60_000)
    await evening.until(State.IDLE)
    await sitter.look()
    await refused(sitter, DurationLimitError, ante=100)


async def test_limits_on_bets_of_the_session_hold_inside_the_tables(harness: ServiceHarness, evening: Evening) -> None:
    """The narrower of both counts, and what is signed is what both verifiers hold the seats to."""
    widest = evening.config.limits["ante"]
    limits = (("ante", StakeLimits(widest.min_minor, widest.min_minor + 200)),)
    opening = OpenSession(
        harness.request_id(), "uth-online", "player-3", "EUR", "ref-1", table="uth-online", bet_limits=limits
    )
    sitter = Sitter(evening, "player-3")
    sitter.session_id = read_reply(await harness.send(opening))["session"]["session_id"]
    await sitter.buy(50_000)
    await sitter.join()
    most = widest.min_minor + 200
    error = await refused(sitter, StakeAboveMaximumError, ante=most + 2)
    assert (error.field, error.metadata["limit"]) == ("bets.ante", str(most))
    await sitter.bet(ante=most)
    await evening.until(State.RESULT)
    await evening.until(State.IDLE)
    opened = [read_statement(row.envelope) for row in stored_statements(harness.folder) if row.kind == "session_open"]
    assert opened[-1]["bet_limits"] == [{"bet": "ante", "max_minor": str(most), "min_minor": str(widest.min_minor)}]
    assert replay(harness.folder).failures == 0


async def test_limits_that_leave_nothing_of_the_tables_open_no_session(
    harness: ServiceHarness, evening: Evening
) -> None:
    widest = evening.config.limits["ante"]
    limits = (("ante", StakeLimits(10, widest.min_minor - 2)),)
    opening = OpenSession(
        harness.request_id(), "uth-online", "player-3", "EUR", "ref-1", table="uth-online", bet_limits=limits
    )
    with pytest.raises(InvalidFieldError, match="table uth-online takes ante from") as caught:
        await harness.send(opening)
    assert caught.value.field == "bet_limits.ante"


async def test_a_session_has_the_tables_currency(harness: ServiceHarness, evening: Evening) -> None:
    assert evening.config.currency == "EUR"
    opening = OpenSession(harness.request_id(), "uth-online", "player-3", "CHF", "ref-1", table="uth-online")
    with pytest.raises(InvalidFieldError, match="'CHF' is not EUR, in which table uth-online is played") as caught:
        await harness.send(opening)
    assert (caught.value.field, caught.value.metadata["limit"]) == ("currency", "EUR")


async def test_an_inactive_session_places_no_bets(evening: Evening, sitter: Sitter) -> None:
    evening.harness.clock.tick(1_800_001)
    await refused(sitter, SessionInactiveError, ante=1_000)


async def test_who_plays_where(harness: ServiceHarness, evening: Evening, sitter: Sitter) -> None:
    """A session of a table plays there and nowhere else; a table is its operators' alone."""
    with pytest.raises(TableOnlyError):
        await harness.send(StartRound(harness.request_id(), sitter.session_id, 1, {"ante": 1_000}))
    with pytest.raises(TableOnlyError):
        await harness.send(OpenSession(harness.request_id(), "uth-online", "player-9", "EUR", "ref-9"))
    other = Caller("op-2", Role.OPERATOR, "demo")
    with pytest.raises(NotFoundError):
        await Sitter(evening, "player-9", other).open()
    with pytest.raises(NotFoundError):
        await harness.tables.seats.place_bets(
            other, PlaceBets(harness.request_id(), sitter.session_id, 1, "", 1, {"ante": 1_000})
        )
    wrong = OpenSession(harness.request_id(), "uth-lugano", "player-9", "EUR", "ref-9", table="uth-online")
    with pytest.raises(RgsError) as caught:
        await harness.send(wrong)
    assert caught.value.field == "game"


async def test_operators_that_are_funded_bet_by_bet_have_no_tables(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("seamless")
    async with open_harness(folder, fundings={OPERATOR.party: Funding.SEAMLESS}) as harness:
        evening = await Evening(harness, "uth-online").open()
        with pytest.raises(TableFundingError):
            await Sitter(evening, "player-1").open()


async def test_nobody_opens_the_window_for_everybody_with_no_bet(evening: Evening, sitter: Sitter) -> None:
    await refused(sitter, TableChangedError)
    assert await evening.state() is State.IDLE
    await sitter.bet(ante=1_000)
    assert await evening.state() is State.BETTING
