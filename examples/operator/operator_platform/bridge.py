"""The bridge: one WebSocket for each page (PROTOCOL.md).

Every frame is authorised anew. A request that changes something is stored before it is sent; the same id with the same
content gives the same answer, another content is refused. A page that goes away has three seconds to come back; then
its open bets at tables are taken back.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Coroutine
from typing import Any, Final

from aiohttp import WSMsgType, web

from . import fields
from .accounts import Accounts, hash_of, now_ms, rfc3339, verify_not_excluded
from .commands import READING, STORED, Commands, content_of
from .connections import (
    CLOSE_EXCLUDED,
    CLOSE_FRAME,
    CLOSE_GOING_AWAY,
    CLOSE_REPLACED,
    CLOSE_SIGNED_OUT,
    CLOSE_TOO_MANY,
    KEPT_S,
    Connection,
    Hub,
)
from .errors import PlatformError, invalid
from .feeds import Feeds
from .rates import RateLimit
from .sessions import Sessions
from .store.accounts import Account
from .store.play import PlayRows

FRAME_BYTES_MAX: Final = 8 * 1024
IN_FLIGHT_MAX: Final = 16
ENDS: Final = {"SIGNED_OUT": CLOSE_SIGNED_OUT, "EXCLUDED": CLOSE_EXCLUDED}
CHECK_S: Final = 5.0
"""So often the sign-in of a page is looked at that only listens."""
GRACE_S: Final = 3.0
SWEEP_S: Final = 1.0
HEARTBEAT_S: Final = 20.0

log = logging.getLogger(__name__)


class Bridge:
    """All sockets of this process."""

    def __init__(
        self, accounts: Accounts, hub: Hub, rows: PlayRows, sessions: Sessions, feeds: Feeds, commands: Commands
    ) -> None:
        self._accounts = accounts
        self._hub = hub
        self._rows = rows
        self._sessions = sessions
        self._feeds = feeds
        self._commands = commands
        self._frames = RateLimit("frames", 60, 20 * 60)
        self._players = RateLimit("frames of all pages", 240, 80 * 60)
        self._answers: dict[tuple[int, str], asyncio.Future[Any]] = {}
        """Requests under way, so that a repeat waits for the first."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._gone: set[tuple[int, str]] = set()
        """Pages whose time to come back is over."""
        self._owed: set[tuple[int, str]] = set()
        """Pages that have gone whose open bets are still to be taken back."""
        self._under_way: set[tuple[int, str]] = set()

    # --- sockets ---

    async def serve(self, request: web.Request, token: str) -> web.WebSocketResponse:
        """Serve one socket until it ends."""
        account = await self._accounts.of_token(token)
        name, after = _connection_of(request)
        socket = web.WebSocketResponse(heartbeat=HEARTBEAT_S, max_msg_size=FRAME_BYTES_MAX, compress=False)
        await socket.prepare(request)
        self._sessions.know(account)
        connection, gone = self._hub.connection(account.account_id, name)
        for other in gone:
            self._feeds.forget(other)
            self._owed.add((account.account_id, other.name))
            await other.close(CLOSE_TOO_MANY, "TOO_MANY_CONNECTIONS")
        await connection.close(CLOSE_REPLACED, "REPLACED")
        connection.socket = socket
        connection.token_sha256 = hash_of(token)
        self._gone.discard((account.account_id, name))
        self._owed.discard((account.account_id, name))
        connection.checked_s = time.monotonic()
        connection.resume(after)
        try:
            await self._authorised(connection, token)  # it may have ended while the socket was opened
        except PlatformError as error:
            await connection.close(*_end_of(error))
        writer = asyncio.create_task(connection.write(socket))
        try:
            await self._read(connection, socket, token)
        finally:
            writer.cancel()
            if connection.socket is socket:
                connection.socket = None
                connection.closed_s = time.monotonic()
        return socket

    async def _read(self, connection: Connection, socket: web.WebSocketResponse, token: str) -> None:
        in_flight: set[asyncio.Task[None]] = set()
        due = 1
        async for frame in socket:
            if frame.type is not WSMsgType.TEXT:
                await socket.close(code=CLOSE_FRAME, message=b"TEXT_ONLY")
                return
            try:
                body = fields.parse_object(frame.data, FRAME_BYTES_MAX)
            except PlatformError as error:
                await socket.close(code=CLOSE_FRAME, message=error.reason.encode())
                return
            if body.get("n") != due or type(body["n"]) is not int:
                await socket.close(code=CLOSE_FRAME, message=b"FRAME_NOT_EXPECTED")
                return
            due += 1
            if len(in_flight) >= IN_FLIGHT_MAX:
                await asyncio.wait(in_flight, return_when=asyncio.FIRST_COMPLETED)
            # A task of its own: a request that has begun runs to its end if the socket goes.
            task = asyncio.create_task(self._answer(connection, body, token))
            for kept in (in_flight, self._tasks):
                kept.add(task)
                task.add_done_callback(kept.discard)

    # --- frames ---

    async def _answer(self, connection: Connection, body: dict[str, Any], token: str) -> None:
        """Answer one frame."""
        found = body.get("id")
        re = found if isinstance(found, str) and len(found) <= fields.SHOWN_MAX else ""
        try:
            self._players.take(str(connection.account_id))  # a new connection is no new allowance
            self._frames.take(f"{connection.account_id}:{connection.name}")
            account = await self._authorised(connection, token)
            value = await self._value(connection, account, body)
        except PlatformError as error:
            connection.push({"type": "error", "re": re, **error.as_json()})
            if error.reason in ENDS:
                await connection.close(*_end_of(error))
            return
        except Exception:
            incident = uuid.uuid4().hex[:12]
            log.exception("incident %s", incident)
            failed = PlatformError("INTERNAL", f"the platform has failed; incident {incident}", 500)
            connection.push({"type": "error", "re": re, **failed.as_json()})
            raise
        if body.get("type") == "ping":
            connection.push({"type": "pong", "re": re, "time": value})
        else:
            connection.push({"type": "answer", "re": re, "value": value})

    async def _authorised(self, connection: Connection, token: str) -> Account:
        account = await self._accounts.of_token(token, even_excluded=True)
        if account.account_id != connection.account_id:
            raise PlatformError("SIGNED_OUT", "another player is signed in", 401)
        verify_not_excluded(account)
        return account

    async def _value(self, connection: Connection, account: Account, body: dict[str, Any]) -> Any:
        kind = body.get("type")
        request_id = fields.request_id(body, "id")
        if kind == "ping":
            return rfc3339(now_ms())
        if not isinstance(kind, str) or (kind not in STORED and kind not in READING):
            raise invalid("type", "no such type of message", value=str(kind)[: fields.SHOWN_MAX])
        if kind in READING:
            return await READING[kind](self._commands, connection, account, body)
        if not await self._rows.store_request(account.account_id, request_id, content_of(body), now_ms()):
            raise PlatformError("REQUEST_ID_REUSED", "this id stands for another request", 409)
        key = (account.account_id, request_id)
        if key in self._answers:
            return await asyncio.shield(self._answers[key])
        answer = asyncio.ensure_future(STORED[kind](self._commands, connection, account, body))
        self._answers[key] = answer
        try:
            return await asyncio.shield(answer)
        finally:
            del self._answers[key]

    # --- ends ---

    def excluded(self, account_id: int) -> None:
        """Tell all pages of a player that the player is excluded, and close them."""
        for connection in self._hub.of_account(account_id):
            connection.push({"type": "excluded"})
            self._later(connection.close(CLOSE_EXCLUDED, "EXCLUDED"))

    def signed_out(self, account_id: int, token: str) -> None:
        """Close the pages of a browser that has signed out."""
        for connection in self._hub.of_account(account_id):
            if connection.token_sha256 == hash_of(token):
                self._later(connection.close(CLOSE_SIGNED_OUT, "SIGNED_OUT"))

    def push_all(self, account_id: int, message: dict[str, Any]) -> None:
        """Tell all pages of a player."""
        for connection in self._hub.of_account(account_id):
            connection.push(message)

    async def run(self) -> None:
        """Take back the bets of pages that have gone, and forget their connections; until this is cancelled."""
        # Seats of a process before this one: their pages may come back, as after any break.
        begun = time.monotonic()
        before = {(seat.account_id, seat.connection) for seat in await self._rows.seats()}
        while True:
            await asyncio.sleep(SWEEP_S)
            now = time.monotonic()
            if now - begun > GRACE_S + SWEEP_S:
                self._owed.update(key for key in before if not self._is_here(key))
                before = set()
            for connection in self._hub.all():
                gone_s = 0.0 if connection.socket is not None else now - connection.closed_s
                key = (connection.account_id, connection.name)
                if connection.socket is not None and now - connection.checked_s > CHECK_S:
                    connection.checked_s = now
                    self._later(self._end_if_signed_out(connection))
                if gone_s > GRACE_S and key not in self._gone:
                    self._gone.add(key)
                    self._owed.add(key)
                if gone_s > KEPT_S:
                    self._feeds.forget(connection)
                    self._gone.discard(key)
            for key in self._owed - self._under_way:
                self._under_way.add(key)
                self._later(self._take_back(*key))

    def _is_here(self, key: tuple[int, str]) -> bool:
        found = self._hub.find(*key)
        return found is not None and found.socket is not None

    async def _end_if_signed_out(self, connection: Connection) -> None:
        """Close a page whose sign-in has ended: what happens there is told to nobody else."""
        try:
            account = await self._accounts.of_hash(connection.token_sha256, even_excluded=False)
            if account.account_id != connection.account_id:
                raise PlatformError("SIGNED_OUT", "another player is signed in", 401)
        except PlatformError as error:
            await connection.close(*_end_of(error))

    async def _take_back(self, account_id: int, name: str) -> None:
        """Take back the bets of a page that has gone; if that fails, the next sweep tries again."""
        key = (account_id, name)
        try:
            await self._commands.take_back(account_id, name)
            self._owed.discard(key)
        except PlatformError as error:
            log.info("bets of a page that has gone are not taken back yet: %s", error.reason)
        finally:
            self._under_way.discard(key)

    async def close(self) -> None:
        """Close all sockets. Their pages come back to the next process."""
        for connection in self._hub.all():
            await connection.close(CLOSE_GOING_AWAY, "RESTARTING")

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _end_of(error: PlatformError) -> tuple[int, str]:
    """Code and reason with which a socket is closed whose player may not be here any more."""
    return ENDS[error.reason], error.reason


def _connection_of(request: web.Request) -> tuple[str, int]:
    """Name of the connection, and the number of the last message that the page has."""
    query = dict(request.query)
    fields.check_known(query, "connection", "after")
    return fields.request_id(query, "connection"), fields.number(query, "after", 0, 10**15, 0)
