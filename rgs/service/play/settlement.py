"""How a round moves on and ends, as changes: decisions, settlement, void. Play, rule and admins all use it.

These are pure functions over stored state. The caller holds the session's lock, checks who may act, and commits.
"""

from __future__ import annotations

from typing import Any, Final

from rgs.core import games
from rgs.core.free_bets import reclaim_id, reclaimed_minor, renewed_id
from rgs.core.games.types import Seat
from rgs.core.ids import return_id
from rgs.core.rounds import (
    DECK_UNRECOVERABLE,
    Round,
    RoundStatus,
    TakenAction,
    UnsealedDeck,
    Void,
    final_body,
    staked_so_far,
    void_body,
)
from rgs.core.sessions import Session
from rgs.core.statements import format_canonical
from rgs.core.times import format_date, format_time
from rgs.core.values import changed
from rgs.core.views import RoundView, round_view
from rgs.observe.traces import current_traceparent
from rgs.ports.regulator import StageReport
from rgs.service.play.requests import expiry_of, free_bet_of
from rgs.store.changes import BalanceReported, Change, DayCount, Draft, Operation, Record
from rgs.store.free_bets import GrantRenewed

RENEWED_MS: Final = 86_400_000
"""How long a free bet that takes the place of one in a void round can be played at least."""


def taken_action(seat: Seat, now_ms: int, *, by: str, party: str, digest: bytes) -> TakenAction:
    """The seat's last decision as it is recorded."""
    phase, action, cost = seat.actions[-1]
    return TakenAction(str(phase), str(action), cost, now_ms, by, party, digest.hex())


def after_decisions(
    round_: Round, session: Session, taken: tuple[TakenAction, ...], now_ms: int
) -> tuple[Round, Session]:
    """Round and session after decisions, one version later, with the cost staked."""
    money, cost_minor = session.participation, sum([action.amount_minor for action in taken])
    if cost_minor:  # in seamless mode it has just been debited
        money = money.bet(cost_minor) if session.is_seamless else money.stake(cost_minor)
    return (
        changed(round_, version=round_.version + 1, actions=(*round_.actions, *taken)),
        changed(session, version=session.version + 1, participation=money, last_ms=now_ms),
    )


def transfer_draft(direction: str, amount_minor: int, transaction_id: str, round_id: str, now_ms: int) -> Draft:
    """A draft of `transfer`: the amount debited or credited for a round, and its transaction id."""
    body = {
        "amount_minor": str(amount_minor),
        "direction": direction,
        "round_id": round_id,
        "time": format_time(now_ms),
        "transaction_id": transaction_id,
    }
    return Draft("transfer", body)


def free_bet_draft(
    direction: str, amount_minor: int, grant_id: str, transaction_id: str, round_id: str, now_ms: int, **terms: str
) -> Draft:
    """A draft of `free_bet`: what the campaign paid for a round, or gets back of it. `terms` stand in the debit."""
    body = {
        "amount_minor": str(amount_minor),
        "direction": direction,
        "grant_id": grant_id,
        "round_id": round_id,
        "time": format_time(now_ms),
        "transaction_id": transaction_id,
        **terms,
    }
    return Draft("free_bet", body)


def debit_drafts(operation: Operation | None, round_id: str, now_ms: int) -> tuple[Draft, ...]:
    """The statement of an operation's debit: it stands before the round or decision that it paid for."""
    if operation is None:
        return ()
    if not free_bet_of(operation):
        return (transfer_draft("debit", operation.amount_minor, operation.operation_id, round_id, now_ms),)
    campaign, _, grant_id = free_bet_of(operation).partition(":")
    terms = {"campaign": campaign, "expiry_time": format_time(expiry_of(operation))}
    paid = free_bet_draft("debit", operation.amount_minor, grant_id, operation.operation_id, round_id, now_ms, **terms)
    return (paid,)


def balance_reported(session: Session) -> tuple[Record, ...]:
    """A record of the balance that the wallet last answered; none if it never did."""
    if not session.wallet_balance_ms:
        return ()
    return (
        BalanceReported(
            session.wallet_balance_minor, session.wallet_credited_minor, session.wallet_balance_ms, session.session_id
        ),
    )


def settled(
    session: Session, round_: Round, unsealed: UnsealedDeck, seat: Seat, running: bytes, now_ms: int
) -> tuple[Change, Session, RoundView]:
    """Settle a seat at showdown: (change without an answer, session after it, view)."""
    settlement = games.settle(seat)
    round_ = changed(
        round_,
        status=RoundStatus.SETTLED,
        end_ms=now_ms,
        staked_minor=settlement.staked_minor,
        returned_minor=settlement.returned_minor,
        sealed=b"",
    )
    body = final_body(
        round_,
        UnsealedDeck(seat, unsealed.deck, unsealed.salt, unsealed.transcript),
        settlement,
        actions_hash=running,
        debited_minor=_debited(session, round_),
    )
    reclaimed = reclaimed_minor(body["settlement"]) if round_.free_bet else 0
    session = _ended(session, settlement.returned_minor - reclaimed)
    view = round_view(round_, seat, actions_hash=running, settlement=settlement)
    return _ending(session, round_, body, now_ms, reclaimed), session, view


def voided(session: Session, round_: Round, void: Void, unsealed: UnsealedDeck | None, now_ms: int) -> Change:
    """Void the round: all stakes go back, and everything that can be unsealed is revealed (ARCHITECTURE 2.20)."""
    if (unsealed is None) != (void.reason == DECK_UNRECOVERABLE):
        raise ValueError(f"a void has no deck if and only if its reason is {DECK_UNRECOVERABLE}")
    staked = staked_so_far(round_)
    body = void_body(round_, void, staked_minor=staked, revealed=unsealed, debited_minor=_debited(session, round_))
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
    granted = round_.granted_minor
    session = _ended(changed(session, version=session.version + 1, last_ms=now_ms), staked - granted)
    change = _ending(session, round_, body, now_ms, granted)
    if round_.free_bet:
        change.records = (*change.records, renewed_grant(round_, now_ms))
    return change


def renewed_grant(round_: Round, now_ms: int) -> GrantRenewed:
    """The free bet that takes the place of the one of a void round."""
    return GrantRenewed(renewed_id(round_.round_id), now_ms, now_ms + RENEWED_MS, round_.round_id)


def _debited(session: Session, round_: Round) -> int:
    """What was debited for decisions inside the round, in seamless mode."""
    return sum(taken.amount_minor for taken in round_.actions) if session.is_seamless else 0


def _ended(session: Session, returned_minor: int) -> Session:
    money = session.participation
    return changed(
        session,
        participation=money.credit(returned_minor) if session.is_seamless else money.give_back(returned_minor),
        open_round_id="",
        rounds=session.rounds + 1,
    )


def stage_report(session: Session, round_: Round, reclaimed: int = 0) -> StageReport:
    """The regulator's report of a round that has ended: the player's own money, without what a campaign paid for it and
    what it got back.
    """
    return StageReport(
        session_id=session.session_id,
        stage_no=round_.round_no,
        regulator_session_id=session.regulator_session_id,
        regulator_participation_id=session.regulator_participation_id,
        available_minor=round_.balance_before_minor - round_.granted_minor,
        staked_minor=round_.staked_minor - round_.granted_minor,
        returned_minor=round_.returned_minor - reclaimed,
        opening_hash=round_.opening_hash,
        end_ms=round_.end_ms,
    )


def stage_count(session: Session, round_: Round, reclaimed: int = 0) -> DayCount:
    """A round that has ended, as a part of its day's totals: the player's own money, as in its report."""
    return DayCount(
        session.operator,
        session.currency,
        format_date(round_.end_ms),
        stages=1,
        staked_minor=round_.staked_minor - round_.granted_minor,
        returned_minor=round_.returned_minor - reclaimed,
    )


def _ending(session: Session, round_: Round, body: dict[str, Any], now_ms: int, reclaimed: int) -> Change:
    draft = Draft(
        "round_final", {**body, "time": format_time(now_ms)}, round_id=round_.round_id, seat_no=round_.seat_no
    )
    if session.is_seamless:
        return _credited(Change(session=session, round=round_, drafts=(draft,)), session, round_, now_ms)
    if session.is_demo:  # no report, no total
        return Change(session=session, round=round_, drafts=(draft,))
    report, counted = stage_report(session, round_, reclaimed), stage_count(session, round_, reclaimed)
    change = Change(session=session, round=round_, drafts=(draft,), report=report, counted=counted)
    return _reclaimed(change, session, round_, reclaimed, now_ms) if round_.free_bet else change


def seat_ended(session: Session, ended: Round, body: dict[str, Any]) -> Change:
    """The end of a seat at a table: `ended` is its row as it ends, `body` that of its `seat_final`."""
    after = changed(
        session,
        version=session.version + 1,
        participation=session.participation.give_back(ended.returned_minor),
        open_round_id="",
        rounds=session.rounds + 1,
        last_ms=ended.end_ms,
    )
    draft = Draft(
        "seat_final", {**body, "time": format_time(ended.end_ms)}, round_id=ended.round_id, seat_no=ended.seat_no
    )
    report, counted = stage_report(after, ended), stage_count(after, ended)
    return Change(session=after, round=ended, drafts=(draft,), report=report, counted=counted)


def round_credit(
    session: Session, credit_id: str, amount_minor: int, round_id: str, now_ms: int, free_bet: str = ""
) -> Operation:
    """The operation that stays pending until the wallet accepts a signed credit; to a campaign, if it names one."""
    detail = {"round_id": round_id, **({"free_bet": free_bet} if free_bet else {})}
    return Operation(
        operation_id=credit_id,
        session_id=session.session_id,
        kind="credit",
        status="pending",
        party=session.operator,
        method="Return",
        request_id=credit_id,
        digest=b"",
        amount_minor=amount_minor,
        purchase_no=0,
        created_ms=now_ms,
        detail=format_canonical(detail).decode("ascii"),
        traceparent=current_traceparent(),
    )


def _credited(change: Change, session: Session, round_: Round, now_ms: int) -> Change:
    """The end of a round in seamless mode, with the credit that is owed from this commit on.

    The credit's id follows from the round's id, so a round whose end was lost is not credited twice. A credit of 0
    tells the wallet that the round has ended, and is owed like any other.
    """
    amount_minor = round_.returned_minor
    credit_id = return_id(round_.round_id)
    transfer = transfer_draft("credit", amount_minor, credit_id, round_.round_id, now_ms)
    change.drafts, change.main = (*change.drafts, transfer), -2
    change.credit = round_credit(session, credit_id, amount_minor, round_.round_id, now_ms)
    return change


def _reclaimed(change: Change, session: Session, round_: Round, amount_minor: int, now_ms: int) -> Change:
    """The end of a round that a campaign has paid for, with what it gets back from this commit on. The id follows from
    the round's; a credit of 0 tells the wallet that the round has ended.
    """
    credit_id, grant_id = reclaim_id(round_.round_id), round_.grant_id
    given_back = free_bet_draft("credit", amount_minor, grant_id, credit_id, round_.round_id, now_ms)
    change.drafts, change.main = (*change.drafts, given_back), -2
    change.credit = round_credit(session, credit_id, amount_minor, round_.round_id, now_ms, round_.free_bet)
    return change
