"""rgs.v1.SupportService over `rgs.service.support`: lookups for support staff. It only reads."""

from __future__ import annotations

from typing import Any, Final

from rgs.api.calls import Methods, Unary
from rgs.api.history import summary_message
from rgs.api.mapping import FUNDINGS, MODES, PROGRESS_NAMES, SESSION_STATUSES, same_fields, time_fields
from rgs.api.pages import paged
from rgs.core.sessions import Session
from rgs.service.callers import Caller
from rgs.service.money.transfers import transaction_of
from rgs.service.support.lookup import Match, MatchKind, SessionFound, Support, Wanted
from rgs.v1 import support_pb2 as pb

SERVICE = pb.DESCRIPTOR.services_by_name["SupportService"].full_name
_KINDS: Final = {kind: pb.SupportMatchKind.Value(f"SUPPORT_MATCH_KIND_{kind.name}") for kind in MatchKind}
_AMOUNTS: Final = ("bought_minor", "staked_minor", "returned_minor", "paid_out_minor", "balance_minor")


def support_methods(support: Support) -> Methods:
    """The methods of the service."""

    async def find(caller: Caller, message: pb.FindRequest) -> pb.FindResponse:
        wanted = Wanted(**same_fields(message, "text", "operator", "date"))
        matches, token = await support.find(caller, wanted, message.page_size, message.page_token)
        return pb.FindResponse(matches=map(_match, matches), next_page_token=token)

    async def get_player(caller: Caller, message: pb.GetPlayerRequest) -> bytes:
        bars, sessions = await support.player(caller, message.operator, message.player)
        return pb.GetPlayerResponse(
            operator=message.operator or caller.operator,
            player=message.player,
            bars=[
                pb.SupportBar(**same_fields(bar, "scope", "table", "reason"), since_time=time_fields(bar.since_ms))
                for bar in bars
            ],
            open_sessions=map(_session, sessions),
        ).SerializeToString()

    async def get_session(caller: Caller, message: pb.GetSupportSessionRequest) -> pb.GetSupportSessionResponse:
        found, token = await support.session(caller, message.session_id, message.page_size, message.page_token)
        return _session_found(found, token)

    async def list_sessions(caller: Caller, message: pb.ListSupportSessionsRequest) -> pb.ListSupportSessionsResponse:
        sessions, token = await support.sessions(
            caller, **same_fields(message, "operator", "player", "open_only", "page_size", "page_token")
        )
        return pb.ListSupportSessionsResponse(sessions=map(_session, sessions), next_page_token=token)

    async def list_rounds(caller: Caller, message: pb.ListSupportRoundsRequest) -> pb.ListSupportRoundsResponse:
        rounds, token = await support.rounds(
            caller, **same_fields(message, "session_id", "operator", "player", "page_size", "page_token")
        )
        return pb.ListSupportRoundsResponse(rounds=map(summary_message, rounds), next_page_token=token)

    async def explain_round(caller: Caller, message: pb.ExplainRoundRequest) -> bytes:
        found = await support.explain(caller, message.round_id, message.session_id)
        return pb.ExplainRoundResponse(
            summary=summary_message(found.summary), **same_fields(found, "sentences", "opening", "final", "session_ids")
        ).SerializeToString()

    return {
        "Find": paged(pb.FindRequest, find),
        "GetPlayer": Unary(pb.GetPlayerRequest, get_player),
        "GetSupportSession": paged(pb.GetSupportSessionRequest, get_session),
        "ListSupportSessions": paged(pb.ListSupportSessionsRequest, list_sessions),
        "ListSupportRounds": paged(pb.ListSupportRoundsRequest, list_rounds),
        "ExplainRound": Unary(pb.ExplainRoundRequest, explain_round),
    }


def _match(match: Match) -> pb.SupportMatch:
    return pb.SupportMatch(
        **same_fields(match, "operator", "player", "session_id", "round_id"),
        kind=_KINDS[match.kind],
        time=time_fields(match.time_ms),
    )


def _session(session: Session) -> pb.SupportSession:
    money: Any = session.participation
    return pb.SupportSession(
        **same_fields(
            session,
            *("session_id", "operator", "player", "operator_reference", "currency", "rounds", "open_round_id"),
            *("regulator_session_id", "regulator_participation_id", "test_regulator"),
        ),
        **same_fields(money, *_AMOUNTS),
        game=session.ruleset_id,
        table=session.table_id,
        mode=MODES[session.mode],
        status=SESSION_STATUSES[session.status],
        funding=FUNDINGS[session.funding],
        open_time=time_fields(session.open_ms),
        last_time=time_fields(session.last_ms),
        close_time=time_fields(session.close_ms),
    )


def _session_found(found: SessionFound, token: str) -> pb.GetSupportSessionResponse:
    wait = found.wait
    return pb.GetSupportSessionResponse(
        session=_session(found.session),
        wait=None
        if wait is None
        else pb.SupportWait(
            **same_fields(wait, "kind", "amount_minor", "attempts"),
            progress=PROGRESS_NAMES[wait.progress],
            transaction_id=transaction_of(wait),
            since_time=time_fields(wait.created_ms),
            next_time=time_fields(wait.next_ms),
            last_reason=wait.reason,
        ),
        transfers=[
            pb.SupportTransfer(
                **same_fields(one, "kind", "amount_minor", "transaction_id", "round_id"), time=time_fields(one.time_ms)
            )
            for one in found.transfers
        ],
        next_page_token=token,
    )
