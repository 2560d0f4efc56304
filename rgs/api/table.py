"""rgs.v1.TableService over `rgs.service.tables`: the lobby, one table, and what players do at tables.

The streams `Watch` and `WatchSeat` are in `rgs.api.table_watch`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from rgs.api.calls import Methods, ServerStream, Unary
from rgs.api.mapping import Encoder
from rgs.api.pages import paged
from rgs.api.parsing import parse_decide, parse_join, parse_leave, parse_place_bets, parse_say
from rgs.api.table_mapping import entry_message, line_message, seat_message, table_message
from rgs.api.table_watch import watch_methods
from rgs.core.errors import NotFoundError
from rgs.core.ids import check_name, check_ulid
from rgs.service.callers import Caller, Role
from rgs.service.tables.chat import Chat
from rgs.service.tables.feed import Feed
from rgs.service.tables.lobby import Lobby
from rgs.service.tables.seats import Seats
from rgs.service.tables.views import TableViews
from rgs.v1 import table_pb2 as pb

SERVICE = pb.DESCRIPTOR.services_by_name["TableService"].full_name


def table_methods(
    *, seats: Seats, views: TableViews, lobby: Lobby, chat: Chat, feed: Feed, encoder: Encoder
) -> Methods:
    """The methods of the service."""
    play = _play(seats, chat)
    return {**_lobby(lobby), **_reads(views, chat, encoder), **play, **watch_methods(SERVICE, play, feed)}


def _lobby(lobby: Lobby) -> Methods:
    async def list_tables(caller: Caller, message: pb.ListTablesRequest) -> pb.ListTablesResponse:
        entries, token = await lobby.list(caller, message.page_size, message.page_token)
        return pb.ListTablesResponse(tables=map(entry_message, entries), next_page_token=token)

    async def watch_lobby(caller: Caller, _message: pb.WatchLobbyRequest) -> AsyncIterator[bytes | None]:
        async for entries in lobby.changes(caller):
            if entries is None:
                yield None
            else:
                yield pb.WatchLobbyResponse(tables=map(entry_message, entries)).SerializeToString()

    return {
        "ListTables": paged(pb.ListTablesRequest, list_tables),
        "WatchLobby": ServerStream(pb.WatchLobbyRequest, watch_lobby),
    }


def _reads(views: TableViews, chat: Chat, encoder: Encoder) -> Methods:
    async def get_table(caller: Caller, message: pb.GetTableRequest) -> bytes:
        response = pb.GetTableResponse()
        if message.session_id:
            session, seat = await views.seat(caller, _own_session(caller, message.session_id))
            if seat.table_id != message.table:
                raise NotFoundError(
                    "the session is not at this table", kind="session", field="session_id", value=message.session_id
                )
            response.seat.CopyFrom(seat_message(seat))
            response.session.CopyFrom(encoder.session(session))
        view = await views.table(caller, check_name(message.table, "table"))
        response.table.CopyFrom(table_message(view))
        return response.SerializeToString()

    async def list_messages(caller: Caller, message: pb.ListMessagesRequest) -> pb.ListMessagesResponse:
        table_id = check_name(message.table, "table")
        lines, token = await chat.list(caller, table_id, message.page_size, message.page_token)
        return pb.ListMessagesResponse(lines=map(line_message, lines), next_page_token=token)

    return {
        "GetTable": Unary(pb.GetTableRequest, get_table),
        "ListMessages": paged(pb.ListMessagesRequest, list_messages),
    }


def _own_session(caller: Caller, session_id: str) -> str:
    """The id of a session that may be the caller's. NotFoundError for a caller that has none."""
    check_ulid(session_id, "session_id")
    if caller.role is not Role.OPERATOR:
        raise NotFoundError("the caller has no such session", kind="session", field="session_id", value=session_id)
    return session_id


def _play(seats: Seats, chat: Chat) -> dict[str, Unary[Any]]:
    async def join(caller: Caller, message: pb.JoinRequest) -> bytes:
        return (await seats.join(caller, parse_join(message))).body

    async def leave(caller: Caller, message: pb.LeaveRequest) -> bytes:
        return (await seats.leave(caller, parse_leave(message))).body

    async def place_bets(caller: Caller, message: pb.PlaceBetsRequest) -> bytes:
        return (await seats.place_bets(caller, parse_place_bets(message))).body

    async def decide(caller: Caller, message: pb.DecideRequest) -> bytes:
        return (await seats.decide(caller, parse_decide(message))).body

    async def say(caller: Caller, message: pb.SayRequest) -> bytes:
        line = await chat.say(caller, parse_say(message))
        return pb.SayResponse(line=line_message(line)).SerializeToString()

    return {
        "Join": Unary(pb.JoinRequest, join),
        "Leave": Unary(pb.LeaveRequest, leave),
        "PlaceBets": Unary(pb.PlaceBetsRequest, place_bets),
        "Decide": Unary(pb.DecideRequest, decide),
        "Say": Unary(pb.SayRequest, say),
    }
