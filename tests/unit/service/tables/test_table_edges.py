"""At a table: who may not bet opens no window, what is seen without a seat, how late a step was, what is logged."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from rgs.core.errors import GuardClosedError, ParticipationMissingError
from rgs.core.tables.machine import State
from rgs.core.tables.views import SeatView
from tests.support.service.harness import OPERATOR, ServiceHarness
from tests.support.service.tables import ADMIN, ALWAYS, SECOND_ADMIN, Evening, Sitter
from tests.unit.service.tables.test_bets import refused


@pytest.fixture
async def evening(harness: ServiceHarness) -> Evening:
    return await Evening(harness, "uth-online", hours=ALWAYS).open()


async def test_who_may_not_bet_opens_no_window(evening: Evening) -> None:
    poor = await Sitter(evening, "player-1").sit(bought_minor=0)
    await refused(poor, ParticipationMissingError, ante=1_000)
    assert await evening.state() is State.IDLE
    rich = await Sitter(evening, "player-2").sit()
    availability, now_ms = evening.harness.services.availability, evening.harness.clock.now_ms()
    availability.close_guard("rules", "SOFTWARE_CHANGED", now_ms)
    await refused(rich, GuardClosedError, ante=1_000)
    assert await evening.state() is State.IDLE


async def test_a_session_without_a_seat_is_seen_with_none(evening: Evening) -> None:
    sitter = await Sitter(evening, "player-1").sit()
    await sitter.leave()
    session, seat = await evening.harness.tables.views.seat(OPERATOR, sitter.session_id)
    ids = session.session.regulator_session_id, session.session.regulator_participation_id
    assert seat == SeatView(sitter.session_id, "uth-online", 0, 0, 0, (), 0, None, *ids, "NOT_SEATED")


async def test_how_late_a_step_was_is_measured(evening: Evening) -> None:
    sitter = await Sitter(evening, "player-1").sit()
    await sitter.bet(ante=1_000)
    evening.harness.clock.time_ms = (await evening.row()).due_ms + 1_500
    await evening.look()
    late = evening.harness.tables.dealer.late
    assert sum(times.total for times in late.values()) == 1.5


async def test_each_step_of_a_void_is_a_line_of_the_log(evening: Evening) -> None:
    sitter = await Sitter(evening, "player-1").sit()
    await sitter.bet(ante=1_000)
    await evening.until(State.DECIDING)
    harness, round_id = evening.harness, (await evening.row()).table.round_id
    await harness.tables.admin.pause(ADMIN, harness.request_id(), "uth-online", "DISPLAY_FAULT")
    with capture_logs() as lines:
        for admin in (ADMIN, SECOND_ADMIN):
            await harness.tables.admin.void(admin, harness.request_id(), "uth-online", round_id, "DISPLAY_FAULT")
    logged = [line for line in lines if line["event"] in {"void_proposed", "round_void"}]
    of_both = {"log_level": "warning", "round_id": round_id, "table": "uth-online", "reason": "DISPLAY_FAULT"}
    assert logged == [
        {"event": "void_proposed", "admin": ADMIN.party, **of_both},
        {"event": "round_void", "admin": SECOND_ADMIN.party, **of_both},
    ]
