"""What a page may ask for over its socket: each type checks, calls the game server, and gives the answer's value.

Whoever calls has authorised the message: the cookie is valid, and the player is not excluded. Each command that names a
session checks that it is the player's own.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from typing import Any, Final

from rgs.v1 import play_pb2, session_pb2, table_pb2

from . import fields
from .accounts import now_ms
from .connections import Connection
from .errors import PlatformError, invalid
from .feeds import Feeds, own_line
from .free_bets import FreeBets, Stakes
from .launches import Launches
from .protection import Protection
from .reality import RealityChecks
from .rgs_client import Rgs, as_json, message_of, own_request_id
from .sessions import Sessions
from .store.accounts import Account
from .store.play import PlayRows, PlaySession, Seat

Handler = Callable[["Commands", Connection, Account, dict[str, Any]], Awaitable[Any]]
AMOUNT_MAX: Final = fields.AMOUNT_MAX
HTTP_NOT_FOUND: Final = 404


class Commands:
    """The types of messages by name."""

    def __init__(
        self,
        rgs: Rgs,
        rows: PlayRows,
        sessions: Sessions,
        feeds: Feeds,
        launches: Launches,
        protection: Protection,
        checks: RealityChecks,
        stakes: Stakes,
        free_bets: FreeBets,
    ) -> None:
        self._rgs = rgs
        self._rows = rows
        self._sessions = sessions
        self._feeds = feeds
        self._launches = launches
        self._protection = protection
        self._checks = checks
        self._stakes = stakes
        self._free_bets = free_bets

    # --- sessions ---

    async def redeem(self, connection: Connection, account: Account, body: dict[str, Any]) -> Any:
        opened, answer = await self._launches.redeem(account, fields.text(body, "launch", 1, 200), body["id"])
        self._feeds.listen(connection, opened.session_id, is_seat=bool(opened.table))
        return answer

    async def list_sessions(self, connection: Connection, account: Account, _body: dict[str, Any]) -> Any:
        request = session_pb2.ListSessionsRequest(player=account.player, open_only=True, page_size=50)
        listed = await self._rgs.call(self._rgs.sessions.ListSessions, request)
        found = []
        for view in listed.sessions:
            session = await self._sessions.own(account, view.session_id)
            found.append(await self._whole(connection, session))
        return {"sessions": found}

    async def get(self, connection: Connection, account: Account, body: dict[str, Any]) -> Any:
        return await self._whole(connection, await self._own(account, body))

    async def _whole(self, connection: Connection, session: PlaySession) -> dict[str, Any]:
        """The whole view of a session, and what happens there from now on."""
        self._feeds.listen(connection, session.session_id, is_seat=bool(session.table))
        if session.table:
            at_table = table_pb2.GetTableRequest(table=session.table, session_id=session.session_id)
            view = await self._rgs.call(self._rgs.tables.GetTable, at_table)
            await self._sessions.note(view.session)
            await self._checks.remind(connection, session)
            return self._feeds.shown(as_json(view), connection.sessions)
        alone = session_pb2.GetSessionRequest(session_id=session.session_id)
        found = await self._rgs.call(self._rgs.sessions.GetSession, alone)
        await self._sessions.note(found.session)
        await self._checks.remind(connection, session)
        return as_json(found)

    async def buy(self, connection: Connection, account: Account, body: dict[str, Any]) -> Any:
        request = self._request(session_pb2.BuyParticipationRequest, account, body, "purchase_no", "amount_minor")
        return await self._of_session(connection, account, body, self._rgs.sessions.BuyParticipation, request)

    async def end(self, connection: Connection, account: Account, body: dict[str, Any]) -> Any:
        request = self._request(session_pb2.EndParticipationRequest, account, body)
        return await self._of_session(connection, account, body, self._rgs.sessions.EndParticipation, request)

    async def close(self, connection: Connection, account: Account, body: dict[str, Any]) -> Any:
        request = self._request(session_pb2.CloseSessionRequest, account, body)
        answer = await self._of_session(connection, account, body, self._rgs.sessions.CloseSession, request)
        await self._rows.drop_seat(request.session_id)
        return answer

    # --- rounds that are played alone ---

    async def start(self, connection: Connection, account: Account, body: dict[str, Any]) -> Any:
        session = await self._own(account, body)
        request = self._request(play_pb2.StartRoundRequest, account, body, "round_no", "bets", "free_bet")
        await self._verify_may_stake(connection, account, session, request.bets, is_free=bool(request.free_bet))
        if request.free_bet:
            await self._free_bets.make_known(account.player, request.free_bet)
        answer = await self._feeds.play.ask("start_round", request)
        await self._protection.note_time(account)
        return await self._reported(connection, session.session_id, answer)

    async def act(self, connection: Connection, account: Account, body: dict[str, Any]) -> Any:
        session = await self._own(account, body)
        request = self._request(play_pb2.ActRequest, account, body, "round_id", "round_version", "action")
        answer = await self._feeds.play.ask("act", request)
        await self._protection.note_time(account)
        return await self._reported(connection, session.session_id, answer)

    async def round(self, _connection: Connection, account: Account, body: dict[str, Any]) -> Any:
        session = await self._own(account, body)
        request = message_of(play_pb2.GetRoundRequest, _picked(body, "session_id", "round_id"))
        request.session_id = session.session_id
        return as_json(await self._rgs.call(self._rgs.play.GetRound, request))

    # --- tables ---

    async def lobby(self, connection: Connection, _account: Account, _body: dict[str, Any]) -> Any:
        return {"tables": self._feeds.watch_lobby(connection)}

    async def lobby_off(self, connection: Connection, _account: Account, _body: dict[str, Any]) -> Any:
        connection.is_watching_lobby = False
        return {}

    async def watch(self, connection: Connection, account: Account, body: dict[str, Any]) -> Any:
        session_id = ""
        if body.get("session_id"):
            session_id = (await self._own(account, body)).session_id
        return await self._feeds.watch_table(connection, fields.text(body, "table", 1, 64), session_id)

    async def unwatch(self, connection: Connection, _account: Account, body: dict[str, Any]) -> Any:
        self._feeds.leave_table(connection, fields.text(body, "table", 1, 64))
        return {}

    async def join(self, connection: Connection, account: Account, body: dict[str, Any]) -> Any:
        session = await self._own(account, body)
        request = self._request(table_pb2.JoinRequest, account, body, "box")
        request.nickname = account.nickname
        self._feeds.listen(connection, session.session_id, is_seat=True)
        answer = await self._feeds.watch.ask("join", request)
        await self._keep_seat(connection, account, session, answer.seat)
        return await self._reported(connection, session.session_id, answer)

    async def leave(self, connection: Connection, account: Account, body: dict[str, Any]) -> Any:
        session = await self._own(account, body)
        request = self._request(table_pb2.LeaveRequest, account, body, "device_no")
        answer = await self._feeds.watch.ask("leave", request)
        await self._rows.drop_seat(session.session_id)
        return await self._reported(connection, session.session_id, answer)

    async def bets(self, connection: Connection, account: Account, body: dict[str, Any]) -> Any:
        session = await self._own(account, body)
        names = ("device_no", "round_id", "seat_version", "bets")
        request = self._request(table_pb2.PlaceBetsRequest, account, body, *names)
        if request.bets:
            await self._verify_may_stake(connection, account, session, request.bets)
        answer = await self._feeds.watch.ask("place_bets", request)
        await self._keep_seat(connection, account, session, answer.seat)
        await self._protection.note_time(account)
        return await self._reported(connection, session.session_id, answer)

    async def decide(self, connection: Connection, account: Account, body: dict[str, Any]) -> Any:
        session = await self._own(account, body)
        names = ("device_no", "round_id", "round_version", "action")
        request = self._request(table_pb2.DecideRequest, account, body, *names)
        answer = await self._feeds.watch.ask("decide", request)
        await self._protection.note_time(account)
        return await self._reported(connection, session.session_id, answer)

    async def say(self, _connection: Connection, account: Account, body: dict[str, Any]) -> Any:
        await self._own(account, body)
        if account.muted_until_ms > now_ms():
            metadata = {"muted_until_ms": account.muted_until_ms}
            raise PlatformError("CHAT_MUTED", "a moderator has muted you in the chat", 403, metadata)
        fields.text(body, "text", 1, 200)
        answer = await self._feeds.watch.ask("say", self._request(table_pb2.SayRequest, account, body, "text"))
        return own_line(as_json(answer.line), account.player)

    async def messages(self, _connection: Connection, account: Account, body: dict[str, Any]) -> Any:
        table, token = fields.text(body, "table", 1, 64), fields.text(body, "page_token", 0, 400, "")
        return await self._feeds.lines(table, token, account.player)

    async def hidden(self, connection: Connection, account: Account, _body: dict[str, Any]) -> Any:
        await self.take_back(account.account_id, connection.name)
        return {}

    async def take_back(self, account_id: int, connection: str) -> None:
        """Take back the open bets of the seats that a connection holds, if no other device holds them now.

        Each seat is tried. PlatformError if one of them may still have open bets: try again.
        """
        seats = [seat for seat in await self._rows.seats(connection) if seat.account_id == account_id]
        failed: PlatformError | None = None
        for seat in seats:
            try:
                await self.take_back_seat(seat)
            except PlatformError as error:
                failed = error
        if failed is not None:
            raise failed

    async def take_back_seat(self, seat: Seat) -> None:
        """Take back the bets of one seat, if the betting window is open and the device still has the seat."""
        request = table_pb2.GetTableRequest(table=seat.table, session_id=seat.session_id)
        try:
            found = await self._rgs.call(self._rgs.tables.GetTable, request)
        except PlatformError as error:
            if error.status != HTTP_NOT_FOUND:
                raise
            await self._rows.drop_seat(seat.session_id)  # no such session or table any more: there is no seat
            return
        if found.seat.device_no != seat.device_no:
            await self._rows.drop_seat(seat.session_id)
            return
        if not found.seat.bets or table_pb2.TABLE_STATE_BETTING not in (found.table.state, found.table.paused_from):
            return
        version = found.seat.seat_version
        back = table_pb2.PlaceBetsRequest(
            request_id=own_request_id(seat.account_id, f"back:{seat.session_id}:{found.table.round_id}:{version}"),
            session_id=seat.session_id,
            device_no=seat.device_no,
            round_id=found.table.round_id,
            seat_version=version,
        )
        answer = await self._rgs.call(self._rgs.tables.PlaceBets, back)
        await self._sessions.note(answer.session)
        self._feeds.report_session(seat.session_id, as_json(answer.session))

    # --- reality check ---

    async def reality_check_seen(self, connection: Connection, account: Account, body: dict[str, Any]) -> Any:
        await self._checks.confirm(connection, await self._own(account, body))
        return {}

    async def _verify_may_stake(
        self, connection: Connection, account: Account, session: PlaySession, bets: Any, *, is_free: bool = False
    ) -> None:
        """Limits of the day, and the reality check."""
        if await self._checks.remind(connection, session):
            raise PlatformError("REALITY_CHECK", "see the reality check before the next round", 409)
        if session.mode == "real":
            amount_minor = await self._stakes.of(session.game, bets, is_free=is_free)
            await self._protection.verify_may_stake(account, session.currency, amount_minor)

    # --- what all share ---

    async def _own(self, account: Account, body: dict[str, Any]) -> PlaySession:
        return await self._sessions.own(account, fields.text(body, "session_id", 1, 64))

    def _request(self, kind: Any, account: Account, body: dict[str, Any], *names: str) -> Any:
        """The request of the contract with the fields of the page, under the player's own request id."""
        request = message_of(kind, _picked(body, "session_id", *names))
        request.request_id = own_request_id(account.account_id, body["id"])
        return request

    async def _of_session(
        self, connection: Connection, account: Account, body: dict[str, Any], method: Any, request: Any
    ) -> Any:
        session = await self._own(account, body)
        return await self._reported(connection, session.session_id, await self._rgs.call(method, request))

    async def _keep_seat(self, connection: Connection, account: Account, session: PlaySession, view: Any) -> None:
        seat = Seat(session.session_id, account.account_id, connection.name, session.table, view.device_no)
        await self._rows.keep_seat(seat)

    async def _reported(self, connection: Connection, session_id: str, answer: Any) -> dict[str, Any]:
        """Note what the answer says, and tell the player's other pages."""
        await self._sessions.note(answer.session)
        found = as_json(answer)
        self._feeds.listen(connection, session_id)
        self._feeds.report_session(session_id, found["session"], but=connection)
        if "round" in found:
            self._feeds.report_round(session_id, found["round"], but=connection)
        return found


def _picked(body: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The fields of the contract. The page sends nothing else: `id`, `type` and `n` are the bridge's."""
    for name in body:
        if name not in (*names, "id", "type", "n"):
            raise invalid(str(name)[:80], f"this message has no such field; it has {', '.join(names)}")
    return {name: body[name] for name in names if name in body}


STORED: Final[Mapping[str, Handler]] = {
    "redeem": Commands.redeem,
    "buy": Commands.buy,
    "end": Commands.end,
    "close": Commands.close,
    "start": Commands.start,
    "act": Commands.act,
    "join": Commands.join,
    "leave": Commands.leave,
    "bets": Commands.bets,
    "decide": Commands.decide,
    "say": Commands.say,
}
"""Types that change something: their requests are stored before they are sent."""
READING: Final[Mapping[str, Handler]] = {
    "sessions": Commands.list_sessions,
    "get": Commands.get,
    "round": Commands.round,
    "lobby": Commands.lobby,
    "lobby_off": Commands.lobby_off,
    "watch": Commands.watch,
    "unwatch": Commands.unwatch,
    "messages": Commands.messages,
    "hidden": Commands.hidden,
    "reality_check_seen": Commands.reality_check_seen,
}


def content_of(body: Mapping[str, Any]) -> str:
    """The hash of what a repeat under the same id must say again. What players write is not kept for that."""
    said = json.dumps({name: body[name] for name in body if name not in ("id", "n")}, sort_keys=True)
    return sha256(said.encode()).hexdigest()
