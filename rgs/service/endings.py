"""How a round moves on and ends, as changes: decisions taken, settled, void. The one way forward of play, rule and
admins.

Pure functions over durable state; the caller holds the session's lock and commits. Refuses to decide who may do
what.
"""

from __future__ import annotations

from typing import Any

from rgs.core.games import game_of
from rgs.core.games.types import Seat
from rgs.core.rounds import (
    DECK_UNRECOVERABLE,
    Revealed,
    Round,
    RoundStatus,
    TakenAction,
    Void,
    final_body,
    staked_so_far,
    void_body,
)
from rgs.core.sessions import Session
from rgs.core.times import format_date, format_time
from rgs.core.values import changed
from rgs.core.views import RoundView, round_view
from rgs.service.decks import Opened
from rgs.store.changes import Change, DayCount, Draft, StageReport


def taken_action(seat: Seat, now_ms: int, *, by: str, party: str, digest: bytes) -> TakenAction:
    """The seat's last decision as it is recorded."""
    phase, action, cost = seat.actions[-1]
    return TakenAction(phase.value, action.value, cost, now_ms, by, party, digest.hex())


def after_decisions(
    round_: Round, session: Session, taken: tuple[TakenAction, ...], now_ms: int
) -> tuple[Round, Session]:
    """Round and session after decisions, one version on; their cost is staked."""
    cost = sum(action.amount_minor for action in taken)
    return (
        changed(round_, version=round_.version + 1, actions=(*round_.actions, *taken)),
        changed(
            session,
            version=session.version + 1,
            participation=session.participation.stake(cost) if cost else session.participation,
            last_ms=now_ms,
        ),
    )


def settled(
    session: Session, round_: Round, opened: Opened, seat: Seat, running: bytes, now_ms: int
) -> tuple[Change, Session, RoundView]:
    """(change without an answer, session after it, view) of a seat at showdown, with round and session after it."""
    settlement = game_of(seat.ruleset).settle(seat)
    round_ = changed(
        round_,
        status=RoundStatus.SETTLED,
        end_ms=now_ms,
        staked_minor=settlement.staked_minor,
        returned_minor=settlement.returned_minor,
        sealed=b"",
    )
    session = _ended(session, settlement.returned_minor)
    body = final_body(
        round_,
        seat,
        settlement,
        deck=opened.deck,
        salt=opened.salt,
        transcript=opened.transcript,
        actions_hash=running,
    )
    view = round_view(round_, seat, actions_hash=running, settlement=settlement)
    return _ending(session, round_, body, now_ms), session, view


def voided(session: Session, round_: Round, void: Void, opened: Opened | None, now_ms: int) -> Change:
    """The round void: all stakes back, everything revealed that can be (ARCHITECTURE 2.20)."""
    if (opened is None) != (void.reason == DECK_UNRECOVERABLE):
        raise ValueError("a void reveals its deck unless that is what it is void for")
    staked = staked_so_far(round_)
    revealed = None if opened is None else Revealed(opened.seat, opened.deck, opened.salt, opened.transcript)
    body = void_body(round_, void, staked_minor=staked, revealed=revealed)
    round_ = changed(
        round_,
        version=round_.version + 1,
        status=RoundStatus.VOID,
        end_ms=now_ms,
        staked_minor=staked,
        returned_minor=staked,
        sealed=b"",
        malfunction_code="",
    )
    session = _ended(changed(session, version=session.version + 1, last_ms=now_ms), staked)
    return _ending(session, round_, body, now_ms)


def _ended(session: Session, returned_minor: int) -> Session:
    """The session after its round has ended."""
    return changed(
        session,
        participation=session.participation.give_back(returned_minor),
        open_round_id="",
        rounds=session.rounds + 1,
    )


def _ending(session: Session, round_: Round, body: dict[str, Any], now_ms: int) -> Change:
    draft = Draft(
        "round_final", {**body, "time": format_time(now_ms)}, round_id=round_.round_id, seat_no=round_.seat_no
    )
    report = StageReport(
        session_id=session.session_id,
        stage_no=round_.stage_no,
        regulator_session_id=session.regulator_session_id,
        regulator_participation_id=session.regulator_participation_id,
        available_minor=round_.balance_before_minor,
        staked_minor=round_.staked_minor,
        returned_minor=round_.returned_minor,
        opening_hash=round_.opening_hash,
        end_ms=round_.end_ms,
    )
    counted = DayCount(
        session.operator,
        session.currency,
        format_date(round_.end_ms),
        stages=1,
        staked_minor=round_.staked_minor,
        returned_minor=round_.returned_minor,
    )
    return Change(session=session, round=round_, drafts=(draft,), report=report, counted=counted)
