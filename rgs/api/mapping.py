"""Turns views of the core into messages of the contract (protos/rgs/v1/common.proto). Their bytes are kept as answers.

This is on the play path: each message is built in one construction, and the signed statement is appended to the stored
bytes without parsing them. A card that is not in a view cannot be in a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import lru_cache
from itertools import starmap
from typing import Any, Final

from google.protobuf.descriptor import Descriptor

from rgs.core.card_texts import CATEGORY_TEXTS, texts_of
from rgs.core.games.types import Action, BetResult, BetSettlement, LegalAction, Outcome, Phase
from rgs.core.hands import HandValue
from rgs.core.jurisdictions import Jurisdiction
from rgs.core.limits import SessionLimits
from rgs.core.rounds import RoundStatus, TakenAction
from rgs.core.rulesets import Ruleset
from rgs.core.sessions import Funding, Mode, SessionStatus
from rgs.core.views import DecidingRow, PendingOperation, RoundView, SessionView
from rgs.service.callers import Reply
from rgs.service.play.catalog import GameEntry
from rgs.v1 import admin_pb2 as admin
from rgs.v1 import common_pb2 as common
from rgs.v1 import play_pb2 as play
from rgs.v1 import session_pb2 as session

# --- words ------------------------------------------------------------------------------------------------------------

PHASES: Final = {phase.value: common.Phase.Value(f"PHASE_{phase.name}") for phase in Phase}
ACTIONS: Final = {action.value: common.Action.Value(f"ACTION_{action.name}") for action in Action}
DECIDED_BY: Final = {by: common.DecidedBy.Value(f"DECIDED_BY_{by.upper()}") for by in ("player", "timer", "rule")}
OUTCOMES: Final = {outcome: common.Outcome.Value(f"OUTCOME_{outcome.name}") for outcome in Outcome}
RESULTS: Final = {result.value: common.BetResult.Value(f"BET_RESULT_{result.name}") for result in BetResult}
ROUND_STATUSES: Final = {status: common.RoundStatus.Value(f"ROUND_STATUS_{status.name}") for status in RoundStatus}
SESSION_STATUSES: Final = {
    status: common.SessionStatus.Value(f"SESSION_STATUS_{status.name}") for status in SessionStatus
}
MODES: Final = {mode: common.Mode.Value(f"MODE_{mode.name}") for mode in Mode}
MODE_OF: Final = {int(number): mode for mode, number in MODES.items()}
FUNDINGS: Final = {funding: common.Funding.Value(f"FUNDING_{funding.name}") for funding in Funding}
PROGRESS_NAMES: Final = ("begun", "unknown", "paid", "undoing")
"""The names of an operation's stages, by number."""
_PROGRESS: Final = tuple(
    common.OperationProgress.Value(f"OPERATION_PROGRESS_{name.upper()}") for name in PROGRESS_NAMES
)
ACTION_OF: Final[Mapping[int, Action]] = {ACTIONS[action.value]: action for action in Action}
"""The actions that a request may name: the enum of the contract without UNSPECIFIED."""


# A message inside a message is given as the mapping of its fields: it is built in place, where a message object would
# be copied. The stubs do not have this form, hence `Any`; a wrong name raises. Parts that occur often (a bet, a legal
# action, the lasting part of a session) are serialized once and joined to the rest: serialized parts of a message,
# joined end to end, are the message (Protocol Buffers encoding, "Last One Wins").


def time_fields(time_ms: int) -> Any:
    """Milliseconds since 1970 as a Timestamp; None for 0, which means "not yet" in rows."""
    if not time_ms:
        return None
    return {"seconds": time_ms // 1000, "nanos": time_ms % 1000 * 1_000_000}


def same_fields(source: object, *names: str) -> Any:
    """Fields of a message that have the names and values of attributes of `source`."""
    return {name: getattr(source, name) for name in names}


def rules_fields(rules: Ruleset | Jurisdiction) -> Any:
    """A ruleset or jurisdiction as a RulesRef."""
    return {"id": rules.id, "version": str(rules.version), "sha256": rules.sha256}


# --- fields put together as bytes -------------------------------------------------------------------------------------


def tag_of(message: Descriptor, field: str) -> bytes:
    """The tag of a field of bytes, text or message (Protocol Buffers encoding: number << 3 | 2)."""
    return _varint(message.fields_by_name[field].number << 3 | 2)


def field_bytes(tag: bytes, content: bytes) -> bytes:
    """A field of a serialized message."""
    return tag + _varint(len(content)) + content


@lru_cache(maxsize=8192)  # lengths and tags: the same some thousand again and again
def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


_VIEW: Final = common.RoundView.DESCRIPTOR
_BETS: Final = tag_of(_VIEW, "bets")
_LEGAL_ACTIONS: Final = tag_of(_VIEW, "legal_actions")
_ACTIONS_TAKEN: Final = tag_of(_VIEW, "actions")
_SETTLEMENT: Final = tag_of(_VIEW, "settlement")
_PLAYER_HAND: Final = tag_of(_VIEW, "player_hand")
_DEALER_HAND: Final = tag_of(_VIEW, "dealer_hand")
_PARTS_MAX: Final = 4096
"""Serialized parts of each kind that are kept; each has some ten bytes."""


# --- rounds -----------------------------------------------------------------------------------------------------------


def round_message(view: RoundView) -> common.RoundView:
    """The player's view of a round, as a message."""
    return common.RoundView.FromString(round_bytes(view))


def round_bytes(view: RoundView) -> bytes:
    """The player's view of a round, serialized. A void round returns its stakes in full (ARCHITECTURE 2.20)."""
    settled = view.settlement
    staked_minor = sum([amount for _, amount in view.bets])
    if settled is not None:
        returned_minor = settled.returned_minor
    else:
        returned_minor = staked_minor if view.status is RoundStatus.VOID else 0
    single = common.RoundView(
        round_id=view.round_id,
        game_code=view.game_code,
        round_no=view.round_no,
        round_version=view.round_version,
        status=ROUND_STATUSES[view.status],
        phase=PHASES[view.phase],
        hole_cards=view.hole_cards,
        dealer_cards=view.dealer_cards,
        board=view.board,
        staked_minor=staked_minor,
        returned_minor=returned_minor,
        start_time=time_fields(view.start_ms),
        end_time=time_fields(view.end_ms) if view.end_ms else None,
        deadline=time_fields(view.deadline_ms) if view.deadline_ms else None,
        commitment=view.commitment,
        actions_hash=view.actions_hash,
    )
    if view.grant_id:
        single.grant_id, single.granted_minor = view.grant_id, view.granted_minor
        single.reclaimed_minor = view.reclaimed_minor
    if view.malfunction_code:
        single.paused, single.malfunction_code = True, view.malfunction_code
    parts = [single.SerializeToString()]
    parts += starmap(_bet, view.bets)
    parts += map(_legal, view.legal_actions)
    parts += map(_taken, view.actions)
    if view.player_hand is not None:
        parts.append(_hand(_PLAYER_HAND, view.player_hand))
    if settled is not None:
        parts.append(_hand(_DEALER_HAND, settled.dealer_hand))
        parts.append(_outcome(settled.outcome, settled.dealer_qualifies))
        for bet, row in zip(settled.bets, view.rows, strict=True):
            parts.append(field_bytes(_SETTLEMENT, _settled(bet) + _row(row)))
    return b"".join(parts)


@lru_cache(maxsize=_PARTS_MAX)
def _bet(bet: str, amount_minor: int) -> bytes:
    return field_bytes(_BETS, common.Bet(bet=bet, amount_minor=amount_minor).SerializeToString())


@lru_cache(maxsize=_PARTS_MAX)
def _legal(legal: LegalAction) -> bytes:
    message = common.LegalAction(
        action=ACTIONS[legal.action.value],
        cost_minor=legal.cost_minor,
        available=legal.available,
        reason=legal.reason or "",
    )
    return field_bytes(_LEGAL_ACTIONS, message.SerializeToString())


def _taken(action: TakenAction) -> bytes:
    message = common.TakenAction(
        phase=PHASES[action.phase],
        action=ACTIONS[action.action],
        amount_minor=action.amount_minor,
        time=time_fields(action.time_ms),
        by=DECIDED_BY[action.by],
    )
    return field_bytes(_ACTIONS_TAKEN, message.SerializeToString())


@lru_cache(maxsize=_PARTS_MAX)
def _settled(bet: BetSettlement) -> bytes:
    message = common.SettledBet(
        bet=bet.bet,
        stake_minor=bet.stake_minor,
        returned_minor=bet.returned_minor,
        result=RESULTS[bet.result.value],
    )
    return message.SerializeToString()


def _row(row: DecidingRow | None) -> bytes:
    """The rest of a settled bet: its cards differ from round to round."""
    return b"" if row is None else common.SettledBet(row=row.category, cards=row.cards).SerializeToString()


@lru_cache(maxsize=_PARTS_MAX)
def _outcome(outcome: Outcome, dealer_qualifies: bool) -> bytes:
    return common.RoundView(outcome=OUTCOMES[outcome], dealer_qualifies=dealer_qualifies).SerializeToString()


def _hand(tag: bytes, hand: HandValue) -> bytes:
    message = common.Hand(category=CATEGORY_TEXTS[hand.category], cards=texts_of(hand.best5))
    return field_bytes(tag, message.SerializeToString())


NO_LIMITS: Final = SessionLimits()


# --- sessions and answers ---------------------------------------------------------------------------------------------

_SESSION_METHODS: Final = ("OpenSession", "BuyParticipation", "EndParticipation", "CloseSession")
_HAS_ROUND: Final = {"StartRound": True, "Act": True, **dict.fromkeys(_SESSION_METHODS, False)}
_SESSION: Final = tag_of(play.ActResponse.DESCRIPTOR, "session")
_ROUND: Final = tag_of(play.ActResponse.DESCRIPTOR, "round")
"""Session and round are fields 1 and 2 of every response that has them (a test compares)."""
SESSIONS_KEPT_MAX: Final = 10_000
"""Sessions whose lasting part is kept; each has some hundred bytes."""


class Encoder:
    """The `Encode` of the services: (method, session, round) -> bytes of the response, without its statement."""

    def __init__(self, games: Iterable[GameEntry]) -> None:
        self._names = {entry.ruleset.id: entry.name for entry in games}
        self._kept: dict[tuple[object, ...], bytes] = {}

    def __call__(self, method: str, view: SessionView, round_: RoundView | None) -> bytes:
        if _HAS_ROUND[method] is (round_ is None):
            raise KeyError(method)
        session = field_bytes(_SESSION, self.session_bytes(view))
        return session if round_ is None else session + field_bytes(_ROUND, round_bytes(round_))

    def act(self, view: SessionView, round_: RoundView) -> play.ActResponse:
        """The answer to a decision; ROUND_CHANGED carries it, too."""
        return play.ActResponse.FromString(self("Act", view, round_))

    def session(self, view: SessionView) -> common.SessionView:
        """The whole session, as a message."""
        return common.SessionView.FromString(self.session_bytes(view))

    def session_bytes(self, view: SessionView) -> bytes:
        """The whole session, serialized: first the lasting part, then the changing one."""
        held, money, headroom = view.session, view.session.participation, view.headroom
        moving = common.SessionView(
            status=SESSION_STATUSES[held.status],
            balance_minor=money.balance_minor,
            bought_minor=money.bought_minor,
            staked_minor=money.staked_minor,
            returned_minor=money.returned_minor,
            net_position_minor=money.net_position_minor,
            elapsed_ms=view.elapsed_ms,
            next_round_no=held.round_no + 1,
            next_purchase_no=held.purchase_no + 1,
            largest_ante_minor=view.largest_ante_minor,
            purchase_left_minor=view.purchase_left_minor,
            loss_left_minor=headroom.loss_left_minor,
            stake_left_minor=headroom.stake_left_minor,
            time_left_ms=view.time_left_ms,
            reserved_minor=held.reserved_minor,
            session_version=held.version,
            inactive_time=None if held.status is SessionStatus.CLOSED else time_fields(view.inactive_ms),
        )
        if view.next_start_ms:
            moving.next_start_time.FromMilliseconds(view.next_start_ms)
        if money.ended:
            moving.participation_ended, moving.paid_out_minor = True, money.paid_out_minor
        if held.wallet_balance_ms:
            moving.wallet_balance_minor = held.wallet_balance_minor
            moving.wallet_balance_time.FromMilliseconds(held.wallet_balance_ms)
        if held.close_ms:
            moving.close_time.FromMilliseconds(held.close_ms)
        if view.pending is not None:
            moving.pending.CopyFrom(_pending(view.pending))
        if view.open_round is not None:
            moving.open_round.CopyFrom(round_message(view.open_round))
        return self._lasting(view) + moving.SerializeToString()

    def _lasting(self, view: SessionView) -> bytes:
        held = view.session
        # What changes with the regulator's ids, and with the erasure of the player.
        key = (held.session_id, held.player, held.regulator_session_id, held.regulator_participation_id, held.limits)
        lasting = self._kept.get(key)
        if lasting is None:
            lasting = common.SessionView(
                session_id=held.session_id,
                ruleset=rules_fields(view.ruleset),
                game_name=self._names[view.ruleset.id],
                jurisdiction=rules_fields(view.jurisdiction),
                currency=held.currency,
                player=held.player,
                regulator_session_id=held.regulator_session_id,
                regulator_participation_id=held.regulator_participation_id,
                test_regulator=held.test_regulator,
                participation_id=held.participation_id,
                open_time=time_fields(held.open_ms),
                operator_reference=held.operator_reference,
                limits=_limits(held.limits),
                funding=FUNDINGS[held.funding],
                table=held.table_id,
                mode=MODES[held.mode],
                bet_limits=[
                    common.BetLimit(bet=bet, min_minor=one.min_minor, max_minor=one.max_minor)
                    for bet, one in held.bet_limits
                ],
                language=held.language,
                return_url=held.return_url,
            ).SerializeToString()
            if len(self._kept) >= SESSIONS_KEPT_MAX:
                self._kept.clear()
            self._kept[key] = lasting
        return lasting


def _pending(operation: PendingOperation) -> common.PendingOperation:
    return common.PendingOperation(
        **same_fields(operation, "kind", "request_id", "amount_minor", "attempts"),
        progress=_PROGRESS[operation.progress],
        since_time=time_fields(operation.since_ms),
        last_reason=operation.reason,
    )


def _limits(limits: SessionLimits) -> Any:
    return None if limits == NO_LIMITS else asdict(limits)


# --- the statement behind an answer ----------------------------------------------------------------------------------

_STATEMENTS: Final[Mapping[str, bytes]] = {
    "StartRound": tag_of(play.StartRoundResponse.DESCRIPTOR, "opening"),
    "Act": tag_of(play.ActResponse.DESCRIPTOR, "final"),
    **{
        method: tag_of(session.DESCRIPTOR.message_types_by_name[f"{method}Response"], "statement")
        for method in _SESSION_METHODS
    },
    **{
        method: tag_of(admin.DESCRIPTOR.message_types_by_name[f"{method}Response"], "statement")
        for method in (
            *("SetSwitch", "AddCertificate", "RemoveCertificate", "ClearGuard"),
            *("ReportMalfunction", "ResumeRound", "ReleaseReports"),
        )
    },
}


def reply_bytes(method: str, reply: Reply) -> bytes:
    """The response: the stored bytes, followed by the envelope in its field.

    Serialized messages joined end to end are one message (Protocol Buffers encoding, "Last One Wins"). So the stored
    bytes stay unchanged, and a repeat gets exactly the first answer.
    """
    return reply.body + field_bytes(_STATEMENTS[method], reply.envelope) if reply.envelope else reply.body
