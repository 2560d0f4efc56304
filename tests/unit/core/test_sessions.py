"""A session's preconditions: each refusal alone, and their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rgs.core.errors import (
    NumberExpectedError,
    OperationPendingError,
    ParticipationEndedError,
    ParticipationMissingError,
    ParticipationOpenError,
    RegulatorUnavailableError,
    RgsError,
    RoundOpenError,
    SessionClosedError,
)
from rgs.core.ledger import Participation
from rgs.core.sessions import Session, SessionStatus

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
]


@pytest.mark.parametrize(("step", "session", "error"), REFUSED)
def test_a_step_out_of_turn_is_refused(step: str, session: Session, error: type[RgsError]) -> None:
    with pytest.raises(error) as caught:
        STEPS[step](session)
    assert type(caught.value) is error


ALLOWED = [("buy", OPEN), ("buy", BOUGHT), ("start", BOUGHT), ("end", BOUGHT), ("close", ENDED), ("close", OPEN)]


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
