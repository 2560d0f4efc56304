"""What waits outside: reports that were refused and set aside, days aligned, software told, and the figures of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from rgs.core.errors import InvalidFieldError, NotFoundError, RegulatorUnavailableError, RgsError, WalletRefusedError
from rgs.ports.readings import CircuitReading, CircuitState
from rgs.ports.regulator import Rejection, SoftwareModule, refusal_of
from rgs.service.admin.orders import Order, order_of
from rgs.service.callers import Caller, Role
from rgs.service.money.transfers import GAP_LAST_MS, gap_ms
from tests.support.service.harness import OPERATOR, ServiceHarness, read_statement
from tests.support.service.oracles import stored_statements, verify_books
from tests.support.service.player import Player

ADMIN = Caller("admin-1", Role.ADMIN, "")
DAY_MS = 86_400_000
MODULES = [SoftwareModule("manifest", "1.0", "0" * 64)]


def events_of(folder: Path, code: str) -> list[dict[str, str]]:
    bodies = [read_statement(row.envelope) for row in stored_statements(folder) if row.kind == "event"]
    return [body for body in bodies if body["code"] == code]


def order(harness: ServiceHarness, kind: str, subject: str) -> Order:
    return order_of(ADMIN, "ReleaseReports", harness.request_id(), kind=kind, subject=subject)


async def test_a_refused_report_holds_up_nobody_else(tmp_path: Path, harness: ServiceHarness, anna: Player) -> None:
    bert = Player(harness, name="bert")
    for player in (anna, bert):
        await player.sit()
        for _ in range(2):
            await player.play()
    refusal = refusal_of(Rejection.AVAILABLE_MISMATCH, "no", index=0)
    harness.regulator_script.plan("report_stages", refusal, refusal)  # of both together, then of the first by itself
    assert await harness.reporting.report_stages() == 2
    (held,), _ = await harness.services.outbox.held_reports(0, "")
    assert (held.kind, held.reason) == ("stages", "AVAILABLE_MISMATCH")
    assert held.subject == anna.session_id
    (event,) = events_of(tmp_path, "REPORTS_HELD")
    assert (event["session_id"], event["reason"]) == (anna.session_id, "AVAILABLE_MISMATCH")
    await bert.play()
    rows, _ = await harness.services.outbox.figures()
    assert {row.kind: row.count for row in rows} == {"held": 2, "stages": 1}
    assert await harness.reporting.report_stages() == 1, "the others' go on, what is held stays"
    rows, _ = await harness.services.outbox.figures()
    assert {row.kind: row.count for row in rows} == {"held": 2}
    with pytest.raises(NotFoundError):
        await harness.services.outbox.release_reports(
            order(harness, "stages", bert.session_id), "stages", "x", "CORRECTED"
        )
    with pytest.raises(InvalidFieldError):
        await harness.services.outbox.release_reports(
            order(harness, "stages", held.subject), "stages", held.subject, "no"
        )
    released = order(harness, "stages", held.subject)
    first = await harness.services.outbox.release_reports(released, "stages", held.subject, "CORRECTED")
    assert await harness.services.outbox.release_reports(released, "stages", held.subject, "CORRECTED") == first
    assert await harness.reporting.report_stages() == 2
    assert await harness.services.outbox.held_reports(0, "") == ((), "")
    for player in (anna, bert):
        await player.leave()
    verify_books(tmp_path)


async def test_what_is_accepted_with_the_end_of_a_participation_is_held_no_more(
    tmp_path: Path, harness: ServiceHarness, anna: Player
) -> None:
    await anna.sit()
    for _ in range(2):
        await anna.play()
    refusal = refusal_of(Rejection.DATE_IN_FUTURE, "no", index=0)
    harness.regulator_script.plan("report_stages", refusal, refusal, refusal)
    assert await harness.reporting.report_stages() == 0
    with pytest.raises(RgsError):
        await anna.end()
    assert len((await harness.services.outbox.held_reports(0, ""))[0]) == 1, "refused again"
    await anna.leave()
    assert await harness.services.outbox.held_reports(0, "") == ((), "")
    (released,) = events_of(tmp_path, "REPORTS_RELEASED")
    assert (released["before"], released["after"]) == ("DATE_IN_FUTURE", "ACCEPTED")
    assert (released["subject"], released["session_id"]) == (f"stages {anna.session_id}", anna.session_id)
    assert "actor" not in released
    rows, _ = await harness.services.outbox.figures()
    assert not rows
    verify_books(tmp_path)


async def test_held_reports_are_read_in_pages(harness: ServiceHarness, anna: Player) -> None:
    players = [Player(harness, name=f"player-{number}") for number in range(3)]
    for player in players:
        await player.sit()
        await player.play()
    refusal = refusal_of(Rejection.STAGE_GAP, "no", index=0)
    harness.regulator_script.plan("report_stages", *[refusal] * 4)
    assert await harness.reporting.report_stages() == 0
    first, token = await harness.services.outbox.held_reports(2, "")
    second, end = await harness.services.outbox.held_reports(2, token)
    assert (len(first), len(second), end) == (2, 1, "")
    assert {held.subject for held in (*first, *second)} == {player.session_id for player in players}


async def test_a_silent_regulator_keeps_the_queue(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    await anna.play()
    refusal = refusal_of(Rejection.STAGE_GAP, "no", index=0)
    harness.regulator_script.plan("report_stages", "before", refusal, "before")
    for _ in range(2):
        with pytest.raises(RegulatorUnavailableError):
            await harness.reporting.report_stages()
    assert await harness.services.outbox.held_reports(0, "") == ((), "")
    assert await harness.reporting.report_stages() == 1


async def test_days_are_aligned_once_and_again_when_they_change(
    tmp_path: Path, harness: ServiceHarness, anna: Player
) -> None:
    reporting = harness.services.reporting
    await anna.sit()
    await anna.play()
    assert await reporting.align_days() == 0, "the day is not over"
    harness.clock.tick(2 * DAY_MS)
    assert await reporting.align_days() == 0, "a stage of it is not told"
    await harness.reporting.report_stages()
    harness.regulator_script.plan("align_day", "after")
    with pytest.raises(RegulatorUnavailableError):
        await reporting.align_days()
    assert await reporting.align_days() == 1
    assert await reporting.align_days() == 0
    ids = {transaction_id for method, transaction_id in harness.regulator_script.calls if method == "align_day"}
    assert len(ids) == 1, "a repeat is the same message"
    await anna.leave()
    harness.clock.tick(DAY_MS + DAY_MS)
    assert await reporting.align_days() == 1


async def test_a_day_is_over_ten_minutes_after_its_midnight(harness: ServiceHarness, anna: Player) -> None:
    reporting, midnight_ms = harness.services.reporting, (harness.clock.now_ms() // DAY_MS + 1) * DAY_MS
    await anna.sit()
    harness.clock.time_ms = midnight_ms + 599_999
    assert await reporting.align_days() == 0
    harness.clock.tick()
    assert await reporting.align_days() == 1


async def test_a_stage_of_today_that_waits_holds_up_no_day_before(harness: ServiceHarness, anna: Player) -> None:
    midnight_ms = (harness.clock.now_ms() // DAY_MS + 1) * DAY_MS
    await anna.sit()
    harness.clock.time_ms = midnight_ms + DAY_MS // 2
    late = Player(harness, name="bert")
    await late.sit()
    await late.play()
    assert len(await harness.store.reports(100)) == 1
    assert await harness.services.reporting.align_days() == 1


async def test_a_refused_alignment_is_set_aside(tmp_path: Path, harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    await anna.leave()
    harness.clock.tick(2 * DAY_MS)
    harness.regulator_script.plan("align_day", refusal_of(Rejection.TOTALS_MISMATCH, "no"))
    assert await harness.services.reporting.align_days() == 0
    assert await harness.services.reporting.align_days() == 0
    (held,), _ = await harness.services.outbox.held_reports(0, "")
    assert (held.kind, held.reason) == ("alignment", "TOTALS_MISMATCH")
    assert held.subject.startswith("op-1:EUR:2026-")
    await harness.services.outbox.release_reports(
        order(harness, held.kind, held.subject), held.kind, held.subject, "CORRECTED"
    )
    assert await harness.services.reporting.align_days() == 1


async def test_software_is_told_once_a_day(tmp_path: Path, harness: ServiceHarness) -> None:
    reporting = harness.services.reporting
    harness.regulator_script.plan("report_modules", "after")
    with pytest.raises(RegulatorUnavailableError):
        await reporting.report_modules(MODULES)
    assert await reporting.report_modules(MODULES)
    assert not await reporting.report_modules(MODULES)
    assert len(set(harness.regulator_script.calls)) == 1
    harness.clock.tick(DAY_MS)
    harness.regulator_script.plan("report_modules", refusal_of(Rejection.DATE_IN_FUTURE, "no"))
    assert await reporting.report_modules(MODULES)
    (event,) = events_of(tmp_path, "REPORTS_HELD")
    assert (event["subject"], event["reason"]) == ("modules node-1", "DATE_IN_FUTURE")


async def test_what_is_owed_is_listed_with_age_attempts_and_reason(harness: ServiceHarness, anna: Player) -> None:
    players = [Player(harness, name=f"player-{number}") for number in range(3)]
    for player in players:
        await player.sit(5_000)
        harness.wallet_script.plan("credit", WalletRefusedError("no", refusal="ACCOUNT_UNKNOWN"))
        with pytest.raises(WalletRefusedError):
            await player.end()
        harness.clock.tick(10)
    first, token = await harness.services.outbox.pending_credits(ADMIN, 2, "")
    second, end = await harness.services.outbox.pending_credits(ADMIN, 2, token)
    assert end == ""
    owed = (*first, *second)
    assert [(credit.player, credit.operator, credit.operation.amount_minor) for credit in owed] == [
        (player.name, OPERATOR.party, 5_000) for player in players
    ]
    assert [(credit.operation.attempts, credit.operation.reason, credit.age_ms) for credit in owed] == [
        (1, "WALLET_REFUSED", 30 - 10 * number) for number in range(3)
    ]
    assert (await harness.services.outbox.pending_credits(OPERATOR, 0, ""))[0] == owed
    assert await harness.services.outbox.pending_credits(Caller("op-2", Role.OPERATOR, "demo"), 0, "") == ((), "")
    await harness.settle()
    assert await harness.services.outbox.pending_credits(ADMIN, 0, "") == ((), "")


async def test_a_credit_whose_session_the_store_does_not_hold_is_refused_by_name(
    harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    await anna.sit(5_000)
    harness.wallet_script.plan("credit", WalletRefusedError("no", refusal="ACCOUNT_UNKNOWN"))
    with pytest.raises(WalletRefusedError):
        await anna.end()

    async def gone(_session_id: str) -> None:
        """A store that was restored in part."""

    with monkeypatch.context() as patched:
        patched.setattr(harness.store, "session", gone)
        with pytest.raises(NotFoundError) as refused:
            await harness.services.outbox.pending_credits(ADMIN, 2, "")
    assert refused.value.metadata == {"kind": "session", "session_id": anna.session_id}


async def test_the_log_has_a_line_a_minute_while_something_waits(harness: ServiceHarness, anna: Player) -> None:
    with capture_logs() as logs:
        await harness.services.outbox.log()
        await anna.open()
        harness.wallet_script.plan("debit", "before")
        with pytest.raises(RgsError):
            await anna.buy()
        for _ in range(3):
            await harness.services.outbox.log()
        harness.clock.tick(60_000)
        await harness.services.outbox.log()
    lines = [line for line in logs if line["event"] == "outbox"]
    assert [(line["waiting"], line["unknown"], line["oldest_ms"]) for line in lines] == [(1, 1, 60_000)]


async def test_the_figures_tell_of_the_connections(harness: ServiceHarness) -> None:
    reading = CircuitReading("wallet of op-1", CircuitState.OPEN, 1, 2, 3, None)
    harness.services.outbox.readings = lambda: (reading,)
    assert await harness.services.outbox.figures() == ((), (reading,))


def test_gaps_grow_to_a_limit_and_differ() -> None:
    assert [gap_ms("x", attempts) for attempts in (0, 1)] == [0, 0]
    gaps = [gap_ms("x", attempts) for attempts in range(2, 40)]
    for attempts, gap in enumerate(gaps):
        plain = min(GAP_LAST_MS, 1_000 << attempts)
        assert plain * 3 // 4 <= gap <= plain * 5 // 4
    assert len({gap_ms(name, 9) for name in "abcdefgh"}) == 8
    assert gaps == [gap_ms("x", attempts) for attempts in range(2, 40)], "the same in every process"
