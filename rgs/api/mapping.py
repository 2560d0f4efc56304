"""Views of the core as messages of the contract (protos/rgs/v1/common.proto): what is stored as an answer is made here.

On the play path: every message is built in one construction, and the signed statement is put behind the stored bytes
without taking them apart. Refuses nothing and adds nothing: a card that is not in a view cannot be in a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from google.protobuf.descriptor import Descriptor

from rgs.core.cards import format_cards
from rgs.core.games.types import Action, BetSettlement, LegalAction, Outcome, Phase, Result
from rgs.core.hands import HandValue
from rgs.core.jurisdictions import Jurisdiction
from rgs.core.limits import SessionLimits
from rgs.core.rounds import RoundStatus, TakenAction
from rgs.core.rulesets import Ruleset
from rgs.core.sessions import SessionStatus
from rgs.core.views import RoundView, SessionView
from rgs.service.callers import Reply
from rgs.service.catalog import GameEntry
from rgs.v1 import admin_pb2 as admin
from rgs.v1 import common_pb2 as common
from rgs.v1 import play_pb2 as play
from rgs.v1 import session_pb2 as session

# --- words ------------------------------------------------------------------------------------------------------------

PHASES: Final = {phase.value: common.Phase.Value(f"PHASE_{phase.name}") for phase in Phase}
ACTIONS: Final = {action.value: common.Action.Value(f"ACTION_{action.name}") for action in Action}
DECIDED_BY: Final = {by: common.DecidedBy.Value(f"DECIDED_BY_{by.upper()}") for by in ("player", "timer", "rule")}
OUTCOMES: Final = {outcome: common.Outcome.Value(f"OUTCOME_{outcome.name}") for outcome in Outcome}
RESULTS: Final = {result.value: common.BetResult.Value(f"BET_RESULT_{result.name}") for result in Result}
ROUND_STATUSES: Final = {status: common.RoundStatus.Value(f"ROUND_STATUS_{status.name}") for status in RoundStatus}
SESSION_STATUSES: Final = {
    status: common.SessionStatus.Value(f"SESSION_STATUS_{status.name}") for status in SessionStatus
}
ACTION_OF: Final[Mapping[int, Action]] = {ACTIONS[action.value]: action for action in Action}
"""What a request may decide: the enum of the contract without UNSPECIFIED."""


# A message inside a message is given as the mapping of its fields: built in place, where a message object would be
# copied (about half the time of a round's answer). The stubs know no such form, hence `Any`; a wrong name raises.


def time_fields(time_ms: int) -> Any:
    """Milliseconds since 1970 as a Timestamp; None for 0, which stands for "not yet" in rows."""
    if not time_ms:
        return None
    return {"seconds": time_ms // 1000, "nanos": time_ms % 1000 * 1_000_000}


def rules_fields(rules: Ruleset | Jurisdiction) -> Any:
    """A ruleset or jurisdiction as a RulesRef."""
    return {"id": rules.id, "version": str(rules.version), "sha256": rules.sha256}


# --- rounds -----------------------------------------------------------------------------------------------------------


def round_message(view: RoundView) -> common.RoundView:
    """A round as its player may see it. A void round returns its stakes in full (ARCHITECTURE 2.20)."""
    settled = view.settlement
    staked_minor = sum([amount for _, amount in view.bets])
    if settled is not None:
        returned_minor = settled.returned_minor
    else:
        returned_minor = staked_minor if view.status is RoundStatus.VOID else 0
    return common.RoundView(
        round_id=view.round_id,
        game_code=view.game_code,
        stage_no=view.stage_no,
        round_version=view.round_version,
        status=ROUND_STATUSES[view.status],
        phase=PHASES[view.phase.value],
        hole_cards=view.hole_cards,
        dealer_cards=view.dealer_cards,
        board=view.board,
        bets=[_bet(bet, amount) for bet, amount in view.bets],
        legal_actions=[_legal(legal) for legal in view.legal_actions],
        actions=[_taken(action) for action in view.actions],
        player_hand=_hand(view.player_hand),
        dealer_hand=None if settled is None else _hand(settled.dealer_hand),
        outcome=common.OUTCOME_UNSPECIFIED if settled is None else OUTCOMES[settled.outcome],
        dealer_qualifies=settled is not None and settled.dealer_qualifies,
        settlement=[] if settled is None else [_settled(bet) for bet in settled.bets],
        staked_minor=staked_minor,
        returned_minor=returned_minor,
        start_time=time_fields(view.start_ms),
        end_time=time_fields(view.end_ms),
        deadline=time_fields(view.deadline_ms),
        commitment=view.commitment,
        actions_hash=view.actions_hash,
        paused=bool(view.malfunction_code),
        malfunction_code=view.malfunction_code,
    )


def _bet(bet: str, amount_minor: int) -> Any:
    return {"bet": bet, "amount_minor": amount_minor}


def _legal(legal: LegalAction) -> Any:
    return {
        "action": ACTIONS[legal.action.value],
        "cost_minor": legal.cost_minor,
        "available": legal.available,
        "reason": legal.reason or "",
    }


def _taken(action: TakenAction) -> Any:
    return {
        "phase": PHASES[action.phase],
        "action": ACTIONS[action.action],
        "amount_minor": action.amount_minor,
        "time": time_fields(action.time_ms),
        "by": DECIDED_BY[action.by],
    }


def _settled(bet: BetSettlement) -> Any:
    return {
        "bet": bet.bet,
        "stake_minor": bet.stake_minor,
        "returned_minor": bet.returned_minor,
        "result": RESULTS[bet.result.value],
    }


def _hand(hand: HandValue | None) -> Any:
    if hand is None:
        return None
    return {"category": hand.category.text, "cards": format_cards(hand.best5)}


NO_LIMITS: Final = SessionLimits()


# --- sessions and answers ---------------------------------------------------------------------------------------------

_Response = (
    session.OpenSessionResponse
    | session.BuyParticipationResponse
    | session.EndParticipationResponse
    | session.CloseSessionResponse
)
_SESSION_RESPONSES: Final[Mapping[str, Callable[..., _Response]]] = {
    "OpenSession": session.OpenSessionResponse,
    "BuyParticipation": session.BuyParticipationResponse,
    "EndParticipation": session.EndParticipationResponse,
    "CloseSession": session.CloseSessionResponse,
}


class Encoder:
    """The `Encode` of the services: (method, session, round) -> the response's bytes without its statement."""

    def __init__(self, games: Iterable[GameEntry]) -> None:
        self._names = {entry.ruleset.id: entry.name for entry in games}

    def __call__(self, method: str, view: SessionView, round_: RoundView | None) -> bytes:
        if method == "Act" and round_ is not None:
            return self.act(view, round_).SerializeToString()
        if method == "StartRound" and round_ is not None:
            return play.StartRoundResponse(session=self.session(view), round=round_message(round_)).SerializeToString()
        return _SESSION_RESPONSES[method](session=self.session(view)).SerializeToString()

    def act(self, view: SessionView, round_: RoundView) -> play.ActResponse:
        """The answer to a decision; it travels with ROUND_CHANGED as well."""
        return play.ActResponse(session=self.session(view), round=round_message(round_))

    def session(self, view: SessionView) -> common.SessionView:
        """The whole session."""
        held, money = view.session, view.session.participation
        return common.SessionView(
            session_id=held.session_id,
            status=SESSION_STATUSES[held.status],
            ruleset=rules_fields(view.ruleset),
            game_name=self._names[view.ruleset.id],
            jurisdiction=rules_fields(view.jurisdiction),
            currency=held.currency,
            player=held.player,
            regulator_session_id=held.regulator_session_id,
            regulator_participation_id=held.regulator_participation_id,
            test_register=held.test_register,
            participation_id=held.participation_id,
            participation_ended=money.ended,
            balance_minor=money.balance_minor,
            bought_minor=money.bought_minor,
            staked_minor=money.staked_minor,
            returned_minor=money.returned_minor,
            paid_out_minor=money.paid_out_minor,
            net_position_minor=money.net_position_minor,
            elapsed_ms=view.elapsed_ms,
            open_time=time_fields(held.open_ms),
            close_time=time_fields(held.close_ms),
            next_stage_no=held.stage_no + 1,
            next_purchase_no=held.purchase_no + 1,
            largest_ante_minor=view.largest_ante_minor,
            purchase_left_minor=view.purchase_left_minor,
            operator_reference=held.operator_reference,
            open_round=None if view.open_round is None else round_message(view.open_round),
            limits=_limits(held.limits),
            loss_left_minor=view.room.loss_left_minor,
            stake_left_minor=view.room.stake_left_minor,
            time_left_ms=view.time_left_ms,
            inactive_time=None if held.status is SessionStatus.CLOSED else time_fields(view.inactive_ms),
        )


def _limits(limits: SessionLimits) -> Any:
    if limits == NO_LIMITS:
        return None
    return {
        "loss_minor": limits.loss_minor,
        "stake_minor": limits.stake_minor,
        "duration_ms": limits.duration_ms,
    }


# --- fields put together as bytes -------------------------------------------------------------------------------------


def tag_of(message: Descriptor, field: str) -> bytes:
    """The tag of a field of bytes, text or message (Protocol Buffers encoding: number << 3 | 2)."""
    return _varint(message.fields_by_name[field].number << 3 | 2)


def field_bytes(tag: bytes, content: bytes) -> bytes:
    """A field of a serialized message."""
    return b"".join((tag, _varint(len(content)), content))


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


_STATEMENTS: Final[Mapping[str, bytes]] = {
    "StartRound": tag_of(play.StartRoundResponse.DESCRIPTOR, "opening"),
    "Act": tag_of(play.ActResponse.DESCRIPTOR, "final"),
    **{
        method: tag_of(session.DESCRIPTOR.message_types_by_name[f"{method}Response"], "statement")
        for method in _SESSION_RESPONSES
    },
    **{
        method: tag_of(admin.DESCRIPTOR.message_types_by_name[f"{method}Response"], "statement")
        for method in (
            *("SetSwitch", "AddCertificate", "RemoveCertificate", "ClearGuard"),
            *("ReportMalfunction", "ResumeRound"),
        )
    },
}


def reply_bytes(method: str, reply: Reply) -> bytes:
    """The response as sent: the stored bytes, and the envelope behind them in its field.

    Serialized messages joined end to end are one message (Protocol Buffers encoding, "Last One Wins"), so the stored
    bytes travel untouched: a repeat is byte for byte the first answer.
    """
    return reply.body + field_bytes(_STATEMENTS[method], reply.envelope) if reply.envelope else reply.body
