"""A session's preconditions: each refusal alone, and their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rgs.core.errors import (
    BetsReservedError,
    NumberExpectedError,
    OperationPendingError,
    ParticipationEndedError,
    ParticipationMissingError,
    ParticipationOpenError,
    RegulatorUnavailableError,
    RgsError,
    RoundOpenError,
    SessionClosedError,
    TableOnlyError,
)
from rgs.core.ledger import PARTICIPATION_MINOR_MAX, Participation
from rgs.core.limits import Headroom, SessionLimits
from rgs.core.sessions import Funding, Session, SessionStatus

OPEN = Session(
    session_id="S" * 26,
    operator="op-1",
    player="anna",
    operator_reference="ref",
    ruleset_id="uth-solo",
    jurisdiction_id="demo",
    currency="EUR",
    status=SessionStatus.OPEN,
    open_ms=1000,
    last_ms=1000,
)
BOUGHT = replace(OPEN, participation_id="P" * 26, participation=Participation(bought_minor=500), purchase_no=1)
PLAYING = replace(BOUGHT, open_round_id="R" * 26, round_no=3)
ENDED = replace(BOUGHT, participation=Participation(bought_minor=500, paid_out_minor=500, ended=True))
CLOSED = replace(ENDED, status=SessionStatus.CLOSED)
PENDING = replace(OPEN, status=SessionStatus.PENDING)
SEATED = replace(BOUGHT, table_id="table-1")
WAITING = replace(SEATED, reserved_minor=220)


def busy(session: Session) -> Session:
    return replace(session, pending_operation="A" * 26)


Step = Callable[[Session], None]
STEPS: dict[str, Step] = {
    "buy": lambda session: session.verify_may_buy(session.purchase_no + 1),
    "start": lambda session: session.verify_may_start(session.round_no + 1),
    "end": Session.verify_may_end,
    "close": Session.verify_may_close,
}

REFUSED: list[tuple[str, Session, type[RgsError]]] = [
    *((step, CLOSED, SessionClosedError) for step in STEPS),
    *((step, busy(CLOSED), SessionClosedError) for step in STEPS),
    *((step, PENDING, RegulatorUnavailableError) for step in STEPS),
    *((step, busy(PENDING), RegulatorUnavailableError) for step in STEPS),
    *((step, busy(PLAYING), OperationPendingError) for step in STEPS),
    *((step, PLAYING, RoundOpenError) for step in STEPS),
    ("buy", ENDED, ParticipationEndedError),
    ("start", ENDED, ParticipationEndedError),
    ("end", ENDED, ParticipationEndedError),
    ("start", OPEN, ParticipationMissingError),
    ("end", OPEN, ParticipationMissingError),
    ("close", BOUGHT, ParticipationOpenError),
    *((step, WAITING, BetsReservedError) for step in ("buy", "end")),
    *((step, busy(WAITING), OperationPendingError) for step in ("buy", "end")),
    *((step, replace(WAITING, open_round_id="R" * 26), RoundOpenError) for step in ("buy", "end")),
    # Before anything else is checked: no round of solo play ever starts in it.
    *(("start", one, TableOnlyError) for one in (SEATED, WAITING, busy(SEATED), replace(CLOSED, table_id="table-1"))),
]


@pytest.mark.parametrize(("step", "session", "error"), REFUSED)
def test_a_step_out_of_turn_is_refused(step: str, session: Session, error: type[RgsError]) -> None:
    with pytest.raises(error) as caught:
        STEPS[step](session)
    assert type(caught.value) is error


ALLOWED = [
    *(("buy", OPEN), ("buy", BOUGHT), ("start", BOUGHT), ("end", BOUGHT), ("close", ENDED), ("close", OPEN)),
    *(("buy", SEATED), ("end", SEATED), ("close", replace(ENDED, table_id="table-1"))),
]


@pytest.mark.parametrize(("step", "session"), ALLOWED)
def test_a_step_in_turn_is_not(step: str, session: Session) -> None:
    STEPS[step](session)


@pytest.mark.parametrize(
    ("verify", "name"), [(Session.verify_may_buy, "purchase_no"), (Session.verify_may_start, "round_no")]
)
def test_only_the_next_number_will_do(verify: Callable[[Session, int], None], name: str) -> None:
    session = replace(BOUGHT, purchase_no=4, round_no=4)
    verify(session, 5)
    for number in (0, 4, 6):
        with pytest.raises(NumberExpectedError) as caught:
            verify(session, number)
        assert (caught.value.field, caught.value.metadata) == (name, {"value": str(number), "limit": "5"})


def test_refusals_name_what_stands_in_the_way() -> None:
    with pytest.raises(RoundOpenError) as round_open:
        PLAYING.verify_may_close()
    assert round_open.value.metadata["round_id"] == PLAYING.open_round_id
    with pytest.raises(OperationPendingError) as pending:
        busy(BOUGHT).verify_may_end()
    assert pending.value.metadata["operation_id"] == "A" * 26
    with pytest.raises(ParticipationOpenError) as running:
        BOUGHT.verify_may_close()
    assert running.value.metadata == {"participation_id": BOUGHT.participation_id, "balance_minor": "500"}
    assert BOUGHT.balance_minor == 500


# --- at a table -------------------------------------------------------------------------------------------------------


def test_refusals_at_a_table_name_it() -> None:
    with pytest.raises(BetsReservedError) as reserved:
        WAITING.verify_may_buy(2)
    assert reserved.value.metadata == {"session_id": WAITING.session_id, "table": "table-1", "value": "220"}
    assert reserved.value.message == (
        "220 is reserved for bets at table table-1: take them back, or wait for the end of the round"
    )
    with pytest.raises(TableOnlyError) as elsewhere:
        SEATED.verify_may_start(1)
    assert elsewhere.value.metadata == {"session_id": SEATED.session_id}
    assert elsewhere.value.message == "the session plays at table table-1: place bets there"


def test_bets_at_a_table_need_what_a_round_of_solo_play_needs() -> None:
    for session in (SEATED, WAITING, BOUGHT):
        session.verify_may_bet()
    refused: list[tuple[Session, type[RgsError]]] = [
        (CLOSED, SessionClosedError), (PENDING, RegulatorUnavailableError), (busy(SEATED), OperationPendingError),
        (OPEN, ParticipationMissingError), (ENDED, ParticipationEndedError), (PLAYING, RoundOpenError),
    ]  # fmt: skip
    for session, error in refused:
        with pytest.raises(error) as caught:
            session.verify_may_bet()
        assert type(caught.value) is error
    replace(OPEN, table_id="table-1", funding=Funding.SEAMLESS).verify_may_bet()


def test_reserved_money_is_no_headroom() -> None:
    limited = replace(WAITING, limits=SessionLimits(loss_minor=400, stake_minor=300))
    assert limited.headroom == Headroom(500 - 220, 400 - 220, 300 - 220)
    assert replace(limited, reserved_minor=0).headroom == Headroom(500, 400, 300)
    assert limited.balance_minor == 500, "it is part of the balance until the seat is opened"
    assert limited.offer == limited.headroom


def test_the_wallet_covers_what_is_reserved_bet_by_bet() -> None:
    limits = SessionLimits(stake_minor=300)
    seamless = replace(OPEN, table_id="table-1", funding=Funding.SEAMLESS, reserved_minor=220, limits=limits)
    assert seamless.headroom == Headroom(PARTICIPATION_MINOR_MAX, None, 80)
