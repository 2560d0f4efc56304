"""rgs.v1.FreeBetService over `rgs.service.play.free_bets`."""

from __future__ import annotations

from typing import Final

from rgs.api.calls import Methods, Unary
from rgs.api.mapping import same_fields, time_fields
from rgs.api.pages import paged
from rgs.api.parsing import parse_grant_free_bets
from rgs.core.free_bets import Grant, GrantStatus
from rgs.service.callers import Caller
from rgs.service.play.free_bets import FreeBets
from rgs.v1 import free_bet_pb2 as pb

SERVICE = pb.DESCRIPTOR.services_by_name["FreeBetService"].full_name
_STATUSES: Final = {status: pb.FreeBetStatus.Value(f"FREE_BET_STATUS_{status.name}") for status in GrantStatus}


def free_bet_methods(free_bets: FreeBets) -> Methods:
    """The methods of the service."""

    async def grant(caller: Caller, message: pb.GrantFreeBetsRequest) -> bytes:
        grants = await free_bets.grant(caller, parse_grant_free_bets(message))
        return pb.GrantFreeBetsResponse(free_bets=map(_free_bet, grants)).SerializeToString()

    async def list_free_bets(caller: Caller, message: pb.ListFreeBetsRequest) -> pb.ListFreeBetsResponse:
        grants, token = await free_bets.list_open(caller, message.player, message.page_size, message.page_token)
        return pb.ListFreeBetsResponse(free_bets=map(_free_bet, grants), next_page_token=token)

    async def cancel(caller: Caller, message: pb.CancelFreeBetRequest) -> bytes:
        grant = await free_bets.cancel(caller, message.request_id, message.grant_id)
        return pb.CancelFreeBetResponse(free_bet=_free_bet(grant)).SerializeToString()

    return {
        "GrantFreeBets": Unary(pb.GrantFreeBetsRequest, grant),
        "ListFreeBets": paged(pb.ListFreeBetsRequest, list_free_bets),
        "CancelFreeBet": Unary(pb.CancelFreeBetRequest, cancel),
    }


def _free_bet(grant: Grant) -> pb.FreeBet:
    return pb.FreeBet(
        **same_fields(grant, "grant_id", "player", "currency", "campaign", "stake_minor", "round_id"),
        game=grant.ruleset_id,
        grant_time=time_fields(grant.granted_ms),
        expiry_time=time_fields(grant.expires_ms),
        status=_STATUSES[grant.status],
    )
