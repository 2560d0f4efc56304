"""Every illegal message is refused with its code, in its class, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from rgs.adapters.embedded.regulator import STAGES_MAX
from rgs.core.errors import (
    AlreadySeatedError,
    FormatError,
    IdempotencyConflictError,
    InvalidFieldError,
    ParticipationCapError,
    ParticipationEndedError,
    ParticipationOpenError,
    RegulatorRefusedError,
    RgsError,
    SessionClosedError,
)
from rgs.core.times import format_date
from rgs.ports.regulator import DayAlignment, Rejection
from tests.support.adapters.books import NOTHING, NOW_MS, Played, modules, opening, purchase, stage

Act = Callable[[Played], Awaitable[Any]]
FUTURE = NOW_MS + 1
NOBODY = "Z" * 16


async def as_played(played: Played) -> None:
    """Two stages told, 440 left, and nothing since."""


async def ended(played: Played) -> None:
    await played.end()


async def closed(played: Played) -> None:
    await played.end()
    await played.close()


async def second_session(played: Played) -> None:
    message = opening(played.number(), reference="session-2")
    played.other = (await played.regulator.open_session(message)).regulator_session_id


async def second_player(played: Played) -> None:
    played.other = (await played.buy(player="bert", reference="participation-2")).regulator_participation_id


ILLEGAL: list[tuple[Rejection, type[RgsError], Act, Act]] = [
    (Rejection.REFERENCE_USED, RegulatorRefusedError, as_played, lambda p: p.regulator.open_session(
        opening(p.number()))),
    (Rejection.REFERENCE_USED, RegulatorRefusedError, as_played, lambda p: p.buy(player="bert")),
    (Rejection.DATE_IN_FUTURE, RegulatorRefusedError, as_played, lambda p: p.regulator.open_session(
        replace(opening(p.number(), reference="session-2"), open_ms=FUTURE))),
    (Rejection.DATE_IN_FUTURE, RegulatorRefusedError, as_played, lambda p: p.regulator.buy_participation(
        replace(purchase(p.number(), p.session, purchase_no=2), purchase_ms=FUTURE))),
    (Rejection.DATE_IN_FUTURE, RegulatorRefusedError, as_played, lambda p: p.report(p.stage(3, 440, end_ms=FUTURE))),
    (Rejection.DATE_IN_FUTURE, RegulatorRefusedError, as_played, lambda p: p.end(end_ms=FUTURE)),
    (Rejection.DATE_IN_FUTURE, RegulatorRefusedError, ended, lambda p: p.close(close_ms=FUTURE)),
    (Rejection.UNKNOWN_SESSION, RegulatorRefusedError, as_played, lambda p: p.regulator.buy_participation(
        purchase(p.number(), NOBODY, player="bert"))),
    (Rejection.UNKNOWN_SESSION, RegulatorRefusedError, as_played, lambda p: p.close(regulator_session_id=NOBODY)),
    (Rejection.UNKNOWN_PARTICIPATION, RegulatorRefusedError, as_played, lambda p: p.report(
        stage(p.session, NOBODY, 1, 500))),
    (Rejection.UNKNOWN_PARTICIPATION, RegulatorRefusedError, as_played, lambda p: p.report(
        stage(NOBODY, p.participation, 3, 440))),
    (Rejection.UNKNOWN_PARTICIPATION, RegulatorRefusedError, as_played, lambda p: p.end(
        regulator_participation_id=NOBODY)),
    (Rejection.UNKNOWN_PARTICIPATION, RegulatorRefusedError, as_played, lambda p: p.end(regulator_session_id=NOBODY)),
    (Rejection.UNKNOWN_PARTICIPATION, RegulatorRefusedError, second_session, lambda p: p.end(
        regulator_session_id=p.other)),
    (Rejection.UNKNOWN_PARTICIPATION, RegulatorRefusedError, second_session, lambda p: p.report(
        stage(p.other, p.participation, 3, 440))),
    (Rejection.SESSION_CLOSED, SessionClosedError, closed, lambda p: p.buy(player="bert", reference="q")),
    (Rejection.SESSION_CLOSED, SessionClosedError, closed, lambda p: p.close()),
    (Rejection.AMOUNT_NOT_POSITIVE, InvalidFieldError, as_played, lambda p: p.buy(purchase_no=2, amount_minor=0)),
    (Rejection.AMOUNT_NOT_POSITIVE, InvalidFieldError, as_played, lambda p: p.buy(purchase_no=2, amount_minor=-1)),
    (Rejection.ALREADY_SEATED, AlreadySeatedError, as_played, lambda p: p.buy(reference="q")),
    (Rejection.ALREADY_SEATED, AlreadySeatedError, ended, lambda p: p.buy(reference="q")),
    (Rejection.PARTICIPATION_ENDED, ParticipationEndedError, ended, lambda p: p.buy(purchase_no=2)),
    (Rejection.PARTICIPATION_ENDED, ParticipationEndedError, ended, lambda p: p.report(p.stage(3, 440))),
    (Rejection.PURCHASE_GAP, RegulatorRefusedError, as_played, lambda p: p.buy(purchase_no=3)),
    (Rejection.PURCHASE_GAP, RegulatorRefusedError, as_played, lambda p: p.buy(purchase_no=1)),
    (Rejection.PURCHASE_GAP, RegulatorRefusedError, as_played, lambda p: p.buy(
        player="bert", reference="q", purchase_no=2)),
    (Rejection.ABOVE_MAXIMUM, ParticipationCapError, as_played, lambda p: p.buy(purchase_no=2, amount_minor=501)),
    (Rejection.ABOVE_MAXIMUM, ParticipationCapError, as_played, lambda p: p.buy(
        player="bert", reference="q", amount_minor=1001)),
    (Rejection.STAGE_CONFLICT, IdempotencyConflictError, as_played, lambda p: p.report(
        p.stage(2, 470, staked_minor=31))),
    (Rejection.STAGE_CONFLICT, IdempotencyConflictError, as_played, lambda p: p.report(
        replace(p.stage(2, 470), final_hash="0" * 64))),
    (Rejection.STAGE_CONFLICT, IdempotencyConflictError, as_played, lambda p: p.report(
        p.stage(3, 440), p.stage(3, 440, returned_minor=1))),
    (Rejection.STAGE_CONFLICT, IdempotencyConflictError, closed, lambda p: p.report(p.stage(2, 471))),
    (Rejection.STAGE_GAP, RegulatorRefusedError, as_played, lambda p: p.report(p.stage(4, 440))),
    (Rejection.STAGE_GAP, RegulatorRefusedError, as_played, lambda p: p.report(p.stage(4, 410), p.stage(3, 440))),
    (Rejection.AVAILABLE_MISMATCH, RegulatorRefusedError, as_played, lambda p: p.report(p.stage(3, 439))),
    (Rejection.AVAILABLE_MISMATCH, RegulatorRefusedError, as_played, lambda p: p.report(p.stage(3, 441))),
    (Rejection.AVAILABLE_MISMATCH, RegulatorRefusedError, second_player, lambda p: p.report(
        stage(p.session, p.other, 1, 0, staked_minor=0))),
    (Rejection.STAKE_NOT_COVERED, RegulatorRefusedError, as_played, lambda p: p.report(
        p.stage(3, 440, staked_minor=441))),
    (Rejection.ENDED_TWICE, ParticipationEndedError, ended, lambda p: p.end()),
    (Rejection.ROUNDS_MISMATCH, RegulatorRefusedError, as_played, lambda p: p.end(rounds=3)),
    (Rejection.ROUNDS_MISMATCH, RegulatorRefusedError, as_played, lambda p: p.end(rounds=1)),
    (Rejection.BALANCE_MISMATCH, RegulatorRefusedError, as_played, lambda p: p.end(439)),
    (Rejection.BALANCE_MISMATCH, RegulatorRefusedError, as_played, lambda p: p.end(441)),
    (Rejection.SEATED, ParticipationOpenError, as_played, lambda p: p.close()),
    (Rejection.DATE_IN_FUTURE, RegulatorRefusedError, as_played, lambda p: p.regulator.align_day(
        DayAlignment(p.number(), "op", "EUR", format_date(NOW_MS), NOTHING))),
    (Rejection.DATE_IN_FUTURE, RegulatorRefusedError, as_played, lambda p: p.regulator.report_modules(
        replace(modules(p.number()), report_ms=FUTURE))),
    (Rejection.TOTALS_MISMATCH, RegulatorRefusedError, as_played, lambda p: p.regulator.align_day(
        DayAlignment(p.number(), "op", "EUR", "2026-01-01", replace(NOTHING, staked_minor=1)))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "error", "before", "act"), ILLEGAL, ids=[f"{number}-{row[0]}" for number, row in enumerate(ILLEGAL)]
)
async def test_an_illegal_order_is_refused_and_leaves_nothing(
    played: Played, code: Rejection, error: type[RgsError], before: Act, act: Act
) -> None:
    await before(played)
    entries = played.state()
    with pytest.raises(error) as refused:
        await act(played)
    assert type(refused.value) is error
    assert refused.value.metadata["rejection"] == code
    assert played.state() == entries


def test_every_rejection_is_shown() -> None:
    elsewhere = {Rejection.LIMIT_REACHED, Rejection.JURISDICTION_REFUSED, Rejection.INVALID_FIELD}
    """Of the contract alone: this regulator keeps no such limits, and names malformed fields itself."""
    assert {row[0] for row in ILLEGAL} | {Rejection.TRANSACTION_CONFLICT} | elsewhere == set(Rejection)


FACTS: list[tuple[Act, str, str | None, dict[str, str]]] = [
    (lambda p: p.end(439), "balance is 439; expected 440", None,
     {"rejection": "BALANCE_MISMATCH", "limit": "440", "value": "439"}),
    (lambda p: p.end(rounds=3), "number of rounds is 3; expected 2", None,
     {"rejection": "ROUNDS_MISMATCH", "limit": "2", "value": "3"}),
    (lambda p: p.buy(purchase_no=3), "purchase number is 3; expected 2", None,
     {"rejection": "PURCHASE_GAP", "limit": "2", "value": "3"}),
    (lambda p: p.buy(purchase_no=2, amount_minor=501), "purchases of 1001 exceed the limit 1000", None,
     {"rejection": "ABOVE_MAXIMUM", "limit": "1000", "value": "1001"}),
    (lambda p: p.buy(purchase_no=2, amount_minor=True), "amount_minor True is not a whole number", "amount_minor",
     {"limit": "1", "value": "True"}),
    (lambda p: p.close(), "1 participations have not ended", None, {"rejection": "SEATED", "value": "1"}),
    (lambda p: p.report(p.stage(4, 440)), "stage number is 4; expected 3", None,
     {"rejection": "STAGE_GAP", "limit": "3", "value": "4", "index": "0"}),
    (lambda p: p.report(p.stage(3, 439)), "available is 439; expected 440", None,
     {"rejection": "AVAILABLE_MISMATCH", "limit": "440", "value": "439", "index": "0"}),
    (lambda p: p.report(p.stage(3, 440, staked_minor=441)), "stakes of 441 exceed the limit 440", None,
     {"rejection": "STAKE_NOT_COVERED", "limit": "440", "value": "441", "index": "0"}),
    (lambda p: p.report(*[p.stage(3, 440)] * 1001), "a report holds 1 to 1000 stages, not 1001", "stages",
     {"limit": "1000", "value": "1001"}),
    (lambda p: p.report(), "a report holds 1 to 1000 stages, not 0", "stages", {"limit": "1000", "value": "0"}),
    (lambda p: p.report(replace(p.stage(3, 440), final_hash="")), "stage 3: a hash is not 64 lowercase hex digits",
     "stages", {}),
    (lambda p: p.regulator.report_modules(replace(modules(p.number()), modules=())),
     "a report holds 1 to 1000 modules, each once", "modules", {"limit": "1000", "value": "0"}),
    (lambda p: p.regulator.align_day(
        DayAlignment(p.number(), "op", "EUR", "2026-01-01", replace(NOTHING, staked_minor=1))),
     "staked_minor is 1; expected 0", None, {"rejection": "TOTALS_MISMATCH", "limit": "0", "value": "1"}),
    (lambda p: p.close(close_ms=NOW_MS + 1_000),
     "2026-11-18T11:06:41.000Z is in the future; the regulator accepts times until 2026-11-18T11:06:40.000Z", None,
     {"rejection": "DATE_IN_FUTURE", "limit": "2026-11-18T11:06:40.000Z", "value": "2026-11-18T11:06:41.000Z"}),
]  # fmt: skip


@pytest.mark.parametrize(("act", "message", "field", "facts"), FACTS, ids=range(len(FACTS)))
async def test_a_refusal_says_what_was_sent_and_what_was_expected(
    played: Played, act: Act, message: str, field: str | None, facts: dict[str, str]
) -> None:
    with pytest.raises(RgsError) as refused:
        await act(played)
    assert (refused.value.message, refused.value.field, refused.value.metadata) == (message, field, facts)


async def test_one_bad_stage_refuses_its_whole_batch_and_is_named(played: Played) -> None:
    before = played.state()
    with pytest.raises(RegulatorRefusedError) as refused:
        await played.report(played.stage(3, 440), played.stage(4, 410), played.stage(6, 380))
    assert refused.value.metadata == {"rejection": "STAGE_GAP", "limit": "5", "value": "6", "index": "2"}
    assert played.state() == before


NO_VALUES: list[tuple[type[RgsError], Act]] = [
    (FormatError, lambda p: p.regulator.open_session(replace(opening(p.number()), currency="eur"))),
    (InvalidFieldError, lambda p: p.regulator.open_session(replace(opening(p.number()), participation_cap_minor=0))),
    (InvalidFieldError, lambda p: p.regulator.open_session(replace(opening(p.number()), operator="OP"))),
    (FormatError, lambda p: p.regulator.open_session(replace(opening(p.number()), open_ms=-1))),
    (InvalidFieldError, lambda p: p.regulator.open_session(opening("not-a-ulid", reference="s-2"))),
    (InvalidFieldError, lambda p: p.buy(amount_minor=True, purchase_no=2)),
    (InvalidFieldError, lambda p: p.buy(purchase_no=0)),
    (InvalidFieldError, lambda p: p.report()),
    (InvalidFieldError, lambda p: p.report(*[p.stage(3, 440)] * (STAGES_MAX + 1))),
    (InvalidFieldError, lambda p: p.report(p.stage(3, 440, staked_minor=-1))),
    (InvalidFieldError, lambda p: p.report(p.stage(3, 440, returned_minor=-1))),
    (InvalidFieldError, lambda p: p.report(replace(p.stage(3, 440), opening_hash="F" * 64))),
    (InvalidFieldError, lambda p: p.report(replace(p.stage(3, 440), final_hash=""))),
    (InvalidFieldError, lambda p: p.report(stage("M1", p.participation, 3, 440))),
    (InvalidFieldError, lambda p: p.end(final_balance_minor=-1)),
    (InvalidFieldError, lambda p: p.end(rounds=-1)),
    (InvalidFieldError, lambda p: p.close(regulator_session_id="m")),
]


@pytest.mark.parametrize(("error", "act"), NO_VALUES, ids=range(len(NO_VALUES)))
async def test_what_is_no_value_is_refused(played: Played, error: type[RgsError], act: Act) -> None:
    before = played.state()
    with pytest.raises(error):
        await act(played)
    assert played.state() == before
