"""Every refusal of the play and session services, alone, and that it changes nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rgs.core.errors import (
    IllegalActionError,
    InsufficientBalanceError,
    InvalidFieldError,
    JurisdictionError,
    NotFoundError,
    NumberExpectedError,
    OperationPendingError,
    ParticipationCapError,
    ParticipationEndedError,
    ParticipationMissingError,
    ParticipationOpenError,
    RegulatorUnavailableError,
    RgsError,
    RoundNotOpenError,
    RoundOpenError,
    SessionClosedError,
    StakeAboveMaximumError,
    StakeBelowMinimumError,
    StakeStepError,
    TableOnlyError,
    TooEarlyError,
    UnknownBetError,
    UnknownRulesetError,
    WalletUnavailableError,
)
from rgs.core.games.types import Action
from rgs.core.views import RoundChangedError
from rgs.service.callers import Caller, Role
from rgs.service.play.requests import Act, BuyParticipation, CloseSession, EndParticipation, OpenSession, StartRound
from tests.support.service.harness import ServiceHarness, round_document, session_document
from tests.support.service.oracles import stored_statements, table
from tests.support.service.player import Player

TABLES = ("sessions", "rounds", "statements", "answers", "operations", "stage_reports")


def everything(folder: Path) -> list[object]:
    return [table(folder, f"SELECT * FROM {name}") for name in TABLES]  # noqa: S608 - our own names


async def refused(harness: ServiceHarness, call: Awaitable[object], error: type[RgsError]) -> RgsError:
    """The call fails with exactly this error and leaves no trace in the store."""
    before = everything(harness.folder)
    with pytest.raises(error) as caught:
        await call
    assert type(caught.value) is error
    assert everything(harness.folder) == before
    return caught.value


# --- opening ----------------------------------------------------------------------------------------------------------

OPENINGS: list[tuple[OpenSession, type[RgsError], str]] = [
    (OpenSession("x", "uth-solo", "anna", "EUR", "ref"), InvalidFieldError, "request_id"),
    (OpenSession("", "poker", "anna", "EUR", "ref"), UnknownRulesetError, "game"),
    (OpenSession("", "uth-online", "anna", "EUR", "ref"), TableOnlyError, "table"),
    (OpenSession("", "uth-solo", "anna", "USD", "ref"), JurisdictionError, "currency"),
    (OpenSession("", "uth-solo", "", "EUR", "ref"), InvalidFieldError, "player"),
    (OpenSession("", "uth-solo", "anna maria", "EUR", "ref"), InvalidFieldError, "player"),
    (OpenSession("", "uth-solo", "anna", "EUR", "ref/1"), InvalidFieldError, "operator_reference"),
]


@pytest.mark.parametrize(("request_", "error", "field"), OPENINGS)
async def test_a_session_is_not_opened(
    harness: ServiceHarness, request_: OpenSession, error: type[RgsError], field: str
) -> None:
    request_ = replace(request_, request_id=request_.request_id or harness.request_id())
    assert (await refused(harness, harness.send(request_), error)).field == field
    assert harness.regulator_script.calls == []


@pytest.mark.parametrize("caller", [Caller("op-1", Role.OPERATOR, ""), Caller("audit-1", Role.AUDITOR, "")])
async def test_without_a_jurisdiction_no_session_is_opened(harness: ServiceHarness, caller: Caller) -> None:
    await refused(harness, Player(harness, caller=caller).open(), JurisdictionError)


# --- money ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("amount_minor", [0, -1])
async def test_nothing_is_not_bought(harness: ServiceHarness, anna: Player, amount_minor: int) -> None:
    await anna.open()
    error = await refused(harness, anna.buy(amount_minor), InvalidFieldError)
    assert (error.field, error.metadata["limit"]) == ("amount_minor", "1")


async def test_the_cap_is_for_all_purchases_together(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit(60_000)
    error = await refused(harness, anna.buy(40_001), ParticipationCapError)
    assert error.metadata["limit"] == "100000"
    assert harness.wallet_script.count("debit") == 1, "the wallet was not asked"
    await anna.buy(40_000)
    await refused(harness, anna.buy(1), ParticipationCapError)


@pytest.mark.parametrize("number", [0, 1, 3, -1])
async def test_a_purchase_out_of_turn(harness: ServiceHarness, anna: Player, number: int) -> None:
    await anna.sit()
    request = BuyParticipation(harness.request_id(), anna.session_id, number, 100)
    error = await refused(harness, harness.send(request), NumberExpectedError)
    assert (error.field, error.metadata["limit"]) == ("purchase_no", "2")


# --- rounds -----------------------------------------------------------------------------------------------------------


async def test_no_round_before_a_purchase(harness: ServiceHarness, anna: Player) -> None:
    await anna.open()
    await refused(harness, anna.start(), ParticipationMissingError)
    await refused(harness, anna.end(), ParticipationMissingError)


STAKES: list[tuple[dict[str, int], type[RgsError], str]] = [
    ({"ante": 8}, StakeBelowMinimumError, "bets.ante"),
    ({"ante": 100_002}, StakeAboveMaximumError, "bets.ante"),
    ({"ante": 101}, StakeStepError, "bets.ante"),
    ({"ante": 100, "trips": 2}, StakeBelowMinimumError, "bets.trips"),
    ({"ante": 100, "blind": 100}, UnknownBetError, "bets.blind"),
    ({"trips": 100}, InvalidFieldError, "bets.ante"),
    ({}, InvalidFieldError, "bets.ante"),
    ({"ante": -100}, InvalidFieldError, "bets.ante"),
]


@pytest.mark.parametrize(("bets", "error", "field"), STAKES)
async def test_stakes_that_no_round_is_played_for(
    harness: ServiceHarness, anna: Player, bets: dict[str, int], error: type[RgsError], field: str
) -> None:
    await anna.sit(100_000)
    request = StartRound(harness.request_id(), anna.session_id, 1, bets)
    assert (await refused(harness, harness.send(request), error)).field == field


async def test_a_round_needs_its_opening_bets_and_the_cheapest_way_on(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit(219)
    error = await refused(harness, anna.start(100, trips=20), InsufficientBalanceError)
    assert error.metadata == {"value": "220", "limit": "219", "rule": "U-11"}
    await anna.start(100, trips=18)
    assert anna.balance_minor == 1
    offered = {action: available for action, _, available in anna.round["legal_actions"]}
    assert offered == {"check": True, "play_4x": False, "play_3x": False}
    await refused(harness, anna.act("play_4x"), InsufficientBalanceError)
    await anna.finish_round(lambda legal: "check" if "check" in legal else "fold")


@pytest.mark.parametrize("number", [0, 1, 3, -5])
async def test_a_start_out_of_turn(harness: ServiceHarness, anna: Player, number: int) -> None:
    await anna.sit()
    await anna.play()
    request = StartRound(harness.request_id(), anna.session_id, number, {"ante": 100})
    error = await refused(harness, harness.send(request), NumberExpectedError)
    assert (error.field, error.metadata["limit"]) == ("round_no", "2")


async def test_nothing_else_while_a_round_is_open(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    await anna.start()
    for call in (anna.start, anna.buy, anna.end, anna.close):
        error = await refused(harness, call(), RoundOpenError)
        assert error.metadata["round_id"] == anna.round["round_id"]


ILLEGAL = [Action.PLAY_1X, Action.PLAY_2X, Action.FOLD, Action.CALL]


@pytest.mark.parametrize("action", ILLEGAL)
async def test_what_the_phase_does_not_have(harness: ServiceHarness, anna: Player, action: Action) -> None:
    await anna.sit()
    await anna.start()
    error = await refused(harness, anna.act(action.value), IllegalActionError)
    assert error.metadata["legal"] == "check play_4x play_3x"


async def test_a_decision_at_another_version_gets_the_fresh_view(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    await anna.start()
    await anna.act("check")
    view, _ = await harness.sessions.get(anna.caller, anna.session_id)
    for version in (0, 1, 3):
        request = Act(harness.request_id(), anna.session_id, anna.round["round_id"], version, Action.CHECK)
        error = await refused(harness, harness.send(request), RoundChangedError)
        assert isinstance(error, RoundChangedError)
        assert error.round is not None
        assert error.session is not None
        assert round_document(error.round) == anna.round
        assert session_document(error.session) == session_document(view)
        assert (error.field, error.metadata) == ("round_version", {"value": str(version), "limit": "2"})
        assert error.reason == "ROUND_CHANGED"


async def test_a_settled_round_takes_no_decision(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    await anna.play()
    error = await refused(harness, anna.act("check"), RoundNotOpenError)
    assert error.metadata["status"] == "settled"


async def test_a_round_of_another_session_is_not_there(harness: ServiceHarness, anna: Player) -> None:
    bert = Player(harness, name="bert")
    for player in (anna, bert):
        await player.sit()
        await player.start()
    request = Act(harness.request_id(), anna.session_id, bert.round["round_id"], 1, Action.CHECK)
    await refused(harness, harness.send(request), NotFoundError)
    await refused(harness, harness.send(replace(request, round_id=anna.session_id)), NotFoundError)
    await refused(harness, harness.send(replace(request, round_id="x")), InvalidFieldError)


async def test_the_pace_of_the_jurisdiction(
    harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = replace(harness.books.jurisdictions["demo"], min_round_interval_ms=5000)
    monkeypatch.setattr(harness.books, "jurisdictions", {"demo": slow})
    await anna.sit()
    await anna.start()
    harness.clock.tick(4999)
    await anna.finish_round()
    error = await refused(harness, anna.start(), TooEarlyError)
    assert error.metadata == {"retry_after_ms": "1", "limit": "5000"}
    harness.clock.tick(1)
    await anna.start()


async def test_no_id_of_the_regulator_no_round(
    harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    await anna.sit()
    harness.store._db.execute("UPDATE sessions SET regulator_participation_id = ''")
    harness.store._memory._fresh.clear()
    await refused(harness, anna.start(), RegulatorUnavailableError)
    free = replace(harness.books.jurisdictions["demo"], regulator_ids_required=False)
    monkeypatch.setattr(harness.books, "jurisdictions", {"demo": free})
    await anna.start()


# --- ends -------------------------------------------------------------------------------------------------------------


async def test_a_participation_ends_once_and_takes_nothing_afterwards(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    await refused(harness, anna.close(), ParticipationOpenError)
    await anna.end()
    for call in (anna.end, anna.buy, anna.start):
        await refused(harness, call(), ParticipationEndedError)


async def test_nothing_happens_in_a_closed_session(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    await anna.leave()
    for call in (anna.end, anna.buy, anna.start, anna.close):
        await refused(harness, call(), SessionClosedError)


async def test_nothing_happens_beside_an_operation(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    await anna.play()
    harness.wallet_script.plan("debit", "before")
    with pytest.raises(WalletUnavailableError):
        await anna.buy(100)
    for call in (anna.buy, anna.start, anna.end, anna.close):
        error = await refused(harness, call(), OperationPendingError)
        assert error.metadata["session_id"] == anna.session_id
        assert error.metadata["retry_after_ms"] == "1000", "tried again at the next look"
    for _ in range(3):
        harness.wallet_script.plan("get_transaction", "before")
        harness.wallet_script.plan("debit", "before")
        harness.clock.tick(10_000)
        await harness.sessions.recover()
    operation = await harness.store.pending_operation(anna.session_id)
    assert operation is not None
    due_ms = operation.next_ms - harness.clock.now_ms()
    assert due_ms > 1_000
    for call in (anna.buy, anna.start, anna.end, anna.close):
        error = await refused(harness, call(), OperationPendingError)
        assert error.metadata["retry_after_ms"] == str(due_ms)


async def test_nothing_happens_before_the_regulator_gave_an_id(harness: ServiceHarness, anna: Player) -> None:
    harness.regulator_script.plan("open_session", "before")
    opening = anna.opening()
    with pytest.raises(RegulatorUnavailableError):
        await anna.send(opening)
    ((session_id,),) = table(harness.folder, "SELECT session_id FROM sessions")
    calls: list[object] = [
        BuyParticipation(harness.request_id(), session_id, 1, 100),
        StartRound(harness.request_id(), session_id, 1, {"ante": 100}),
        EndParticipation(harness.request_id(), session_id),
        CloseSession(harness.request_id(), session_id),
    ]
    for request in calls:
        await refused(harness, harness.send(request), RegulatorUnavailableError)  # type: ignore[arg-type]
    await anna.send(opening)
    assert anna.session_id == session_id


# --- whose ------------------------------------------------------------------------------------------------------------

STRANGER = Caller("op-2", Role.OPERATOR, "demo")
READS: dict[str, Callable[[ServiceHarness, Player], Awaitable[object]]] = {
    "get": lambda harness, anna: harness.sessions.get(STRANGER, anna.session_id),
    "round": lambda harness, anna: harness.play.get_round(STRANGER, anna.session_id, anna.round["round_id"]),
    "record": lambda harness, anna: harness.history.get_records(
        STRANGER, round_id=anna.round["round_id"], player="", date="", game_code=""
    ),
    "start": lambda harness, anna: harness.send(anna.starting(), STRANGER),
    "act": lambda harness, anna: harness.send(anna.decision("check"), STRANGER),
    "buy": lambda harness, anna: harness.send(anna.purchase(5), STRANGER),
    "end": lambda harness, anna: harness.send(anna.ending(), STRANGER),
    "close": lambda harness, anna: harness.send(anna.closing(), STRANGER),
    "statements": lambda harness, anna: harness.audit.list_statements(
        STRANGER,
        session_id=anna.session_id,
        round_id="",
        instance="",
        first_no=0,
        last_no=0,
        page_size=0,
        page_token="",
    ),
}


@pytest.mark.parametrize("name", READS)
async def test_another_operators_session_reads_as_none(harness: ServiceHarness, anna: Player, name: str) -> None:
    await anna.sit()
    await anna.start()
    error = await refused(harness, READS[name](harness, anna), NotFoundError)
    anna.session["session_id"] = "0" * 26
    anna.round["round_id"] = "0" * 26
    missing = await refused(harness, READS[name](harness, anna), NotFoundError)
    result = {key: value for key, value in error.metadata.items() if not key.endswith("_id")}
    assert result == {key: value for key, value in missing.metadata.items() if not key.endswith("_id")}
    assert (error.reason, error.field) == (missing.reason, missing.field)


async def test_a_refusal_signs_nothing(harness: ServiceHarness, anna: Player) -> None:
    """What `refused` compares would show a statement."""
    await anna.sit()
    before = everything(harness.folder)
    await anna.start()
    assert everything(harness.folder) != before
    assert stored_statements(harness.folder)[-1].kind == "round_opening"
