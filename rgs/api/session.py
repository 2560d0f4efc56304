"""rgs.v1.SessionService over `rgs.service.play.sessions`."""

from __future__ import annotations

from rgs.api.calls import Methods, Unary
from rgs.api.launches import parse_create_launch, parse_open_session
from rgs.api.mapping import Encoder, reply_bytes, same_fields, time_fields
from rgs.api.pages import paged
from rgs.api.parsing import parse_buy_participation, parse_close_session, parse_end_participation
from rgs.core.rounds import staked_so_far
from rgs.service.callers import Caller
from rgs.service.play.launches import Launches
from rgs.service.play.sessions import OpenRound, Sessions
from rgs.v1 import session_pb2 as pb

SERVICE = pb.DESCRIPTOR.services_by_name["SessionService"].full_name


def session_methods(sessions: Sessions, launches: Launches, encoder: Encoder) -> Methods:
    """The methods of the service."""

    async def create_launch(caller: Caller, message: pb.CreateLaunchRequest) -> bytes:
        token, expire_ms = await launches.create(caller, parse_create_launch(message))
        return pb.CreateLaunchResponse(launch_token=token, expire_time=time_fields(expire_ms)).SerializeToString()

    async def open_session(caller: Caller, message: pb.OpenSessionRequest) -> bytes:
        return reply_bytes("OpenSession", await sessions.open(caller, parse_open_session(message)))

    async def get_session(caller: Caller, message: pb.GetSessionRequest) -> bytes:
        view, opening = await sessions.get(caller, message.session_id)
        return pb.GetSessionResponse(session=encoder.session(view), opening=opening).SerializeToString()

    async def buy_participation(caller: Caller, message: pb.BuyParticipationRequest) -> bytes:
        return reply_bytes("BuyParticipation", await sessions.buy(caller, parse_buy_participation(message)))

    async def end_participation(caller: Caller, message: pb.EndParticipationRequest) -> bytes:
        reply = await sessions.end_participation(caller, parse_end_participation(message))
        return reply_bytes("EndParticipation", reply)

    async def close_session(caller: Caller, message: pb.CloseSessionRequest) -> bytes:
        return reply_bytes("CloseSession", await sessions.close(caller, parse_close_session(message)))

    async def list_sessions(caller: Caller, message: pb.ListSessionsRequest) -> pb.ListSessionsResponse:
        views, token = await sessions.list(
            caller,
            message.player,
            message.open_only,
            message.page_size,
            message.page_token,
            message.operator_reference,
        )
        return pb.ListSessionsResponse(sessions=map(encoder.session, views), next_page_token=token)

    async def list_open_rounds(caller: Caller, message: pb.ListOpenRoundsRequest) -> pb.ListOpenRoundsResponse:
        rounds, token = await sessions.list_open_rounds(caller, message.page_size, message.page_token)
        return pb.ListOpenRoundsResponse(rounds=map(_open_round, rounds), next_page_token=token)

    return {
        "CreateLaunch": Unary(pb.CreateLaunchRequest, create_launch),
        "OpenSession": Unary(pb.OpenSessionRequest, open_session),
        "GetSession": Unary(pb.GetSessionRequest, get_session),
        "BuyParticipation": Unary(pb.BuyParticipationRequest, buy_participation),
        "EndParticipation": Unary(pb.EndParticipationRequest, end_participation),
        "CloseSession": Unary(pb.CloseSessionRequest, close_session),
        "ListSessions": paged(pb.ListSessionsRequest, list_sessions),
        "ListOpenRounds": paged(pb.ListOpenRoundsRequest, list_open_rounds),
    }


def _open_round(found: OpenRound) -> pb.OpenRound:
    round_ = found.round
    return pb.OpenRound(
        **same_fields(round_, "round_id", "session_id", "operator", "player", "game_code", "malfunction_code"),
        **same_fields(found.session, "regulator_session_id", "regulator_participation_id"),
        game=round_.ruleset_id,
        start_time=time_fields(round_.start_ms),
        idle_ms=found.idle_ms,
        finish_time=time_fields(found.finish_ms),
        paused=bool(round_.malfunction),
        staked_minor=staked_so_far(round_),
    )
