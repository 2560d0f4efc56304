"""The page's end of the bridge: a connection, which outlives its sockets, and who watches what.

Each message to the page has a number. A connection keeps its last messages, so that a page that comes back gets what it
missed; where that is gone, or where a page reads too slowly, it gets `restart` and asks for whole views again.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Any, Final

from aiohttp import WSCloseCode, web

KEPT_MESSAGES: Final = 256
KEPT_BYTES: Final = 1024 * 1024
KEPT_S: Final = 60.0
SEQ_PER_MS: Final = 100
"""Numbers begin at the time of the connection, and rise more slowly than it."""
CONNECTIONS_MAX: Final = 8
"""Connections of one player: devices and tabs."""

CLOSE_EXCLUDED: Final = 4001
CLOSE_FRAME: Final = 4002
CLOSE_SIGNED_OUT: Final = 4003
CLOSE_REPLACED: Final = 4004
CLOSE_TOO_MANY: Final = 4008


def body_of(message: Mapping[str, Any]) -> str:
    """A message as text, without its number."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


class Connection:
    """One page of one player."""

    def __init__(self, account_id: int, name: str) -> None:
        self.account_id = account_id
        self.name = name
        self.socket: web.WebSocketResponse | None = None
        self.token_sha256 = b""
        self.checked_s = time.monotonic()
        """When the sign-in was looked at last without a frame."""
        self.closed_s = time.monotonic()
        """When the last socket went."""
        self.is_watching_lobby = False
        self.tables: set[str] = set()
        self.sessions: set[str] = set()
        self._kept: deque[tuple[int, str, float]] = deque()
        self._bytes = 0
        # Above every number of an earlier process: what a page has of that is never taken for one of these.
        self._first = time.time_ns() // 1_000_000 * SEQ_PER_MS
        self._last = self._first
        self._sent = self._first
        self._wake = asyncio.Event()

    def push(self, message: Mapping[str, Any]) -> None:
        """Send a message."""
        self.push_body(body_of(message))

    def push_body(self, body: str) -> None:
        """Send a message that is text already. Nobody waits for the page: a slow one is told to restart."""
        self._append(body)
        if self._is_full():
            unsent = self._drop()
            if unsent:
                self._kept.clear()
                self._bytes = 0
                self._sent = self._last
                self._append('{"type":"restart"}')
        self._wake.set()

    def _append(self, body: str) -> None:
        self._last += 1
        text = f'{{"seq":{self._last},{body[1:]}'
        self._kept.append((self._last, text, time.monotonic()))
        self._bytes += len(text)

    def _is_full(self) -> bool:
        oldest_s = self._kept[0][2]
        return (
            len(self._kept) > KEPT_MESSAGES or self._bytes > KEPT_BYTES or time.monotonic() - oldest_s > KEPT_S
        ) and len(self._kept) > 1

    def _drop(self) -> bool:
        """Drop the oldest messages; whether one of them was not sent to a page that is here."""
        while self._is_full():
            number, text, _ = self._kept.popleft()
            self._bytes -= len(text)
            if number > self._sent and self.socket is not None:
                return True
        return False

    def resume(self, after: int) -> None:
        """Go on behind the last message that the page has. A gap, or a number that is not ours, is a restart."""
        first = self._kept[0][0] if self._kept else self._last + 1
        after = after or self._first  # a page that has nothing yet
        if first - 1 <= after <= self._last:
            self._sent = after
        else:
            self._sent = self._last
            self._append('{"type":"restart"}')
        self._wake.set()

    async def write(self, socket: web.WebSocketResponse) -> None:
        """Write to the socket what it has not got, until this is cancelled or the socket ends."""
        while not socket.closed and self.socket is socket:
            self._wake.clear()
            while (unsent := self._next()) is not None and self.socket is socket:
                try:
                    await socket.send_str(unsent[1])
                except ConnectionError:
                    return
                self._sent = max(self._sent, unsent[0])
            await self._wake.wait()

    def _next(self) -> tuple[int, str] | None:
        if not self._kept or self._kept[-1][0] <= self._sent:
            return None
        first = self._kept[0][0]
        number, text, _ = self._kept[max(0, self._sent + 1 - first)]
        return number, text

    async def close(self, code: int, reason: str) -> None:
        """Close the socket, if there is one."""
        socket = self.socket
        if socket is not None:
            self._wake.set()
            await asyncio.sleep(0)  # the writer sends what was pushed before
            await socket.close(code=code, message=reason.encode())


class Hub:
    """All connections of this process."""

    def __init__(self) -> None:
        self._connections: dict[tuple[int, str], Connection] = {}
        self._tables: defaultdict[str, set[Connection]] = defaultdict(set)
        self._sessions: defaultdict[str, set[Connection]] = defaultdict(set)

    def connection(self, account_id: int, name: str) -> tuple[Connection, list[Connection]]:
        """The connection of this name, made anew if there is none, and those that have to go for it."""
        key = (account_id, name)
        gone: list[Connection] = []
        if key not in self._connections:
            others = sorted(self.of_account(account_id), key=lambda one: (one.socket is not None, one.closed_s))
            gone = others[: max(0, len(others) + 1 - CONNECTIONS_MAX)]
            self._connections[key] = Connection(account_id, name)
        return self._connections[key], gone

    def find(self, account_id: int, name: str) -> Connection | None:
        """The connection of this name."""
        return self._connections.get((account_id, name))

    def all(self) -> list[Connection]:
        """All connections."""
        return list(self._connections.values())

    def of_account(self, account_id: int) -> list[Connection]:
        """The connections of one player."""
        return [one for one in self._connections.values() if one.account_id == account_id]

    def forget(self, connection: Connection) -> None:
        """Drop a connection."""
        self._connections.pop((connection.account_id, connection.name), None)
        for table in list(connection.tables):
            self.leave_table(connection, table)
        for session_id in list(connection.sessions):
            self.leave_session(connection, session_id)

    def watch_table(self, connection: Connection, table: str) -> bool:
        """Whether this is the first connection that watches the table."""
        connection.tables.add(table)
        self._tables[table].add(connection)
        return len(self._tables[table]) == 1

    def leave_table(self, connection: Connection, table: str) -> bool:
        """Whether nobody watches the table any more."""
        connection.tables.discard(table)
        self._tables[table].discard(connection)
        is_last = not self._tables[table]
        if is_last:
            del self._tables[table]
        return is_last

    def watch_session(self, connection: Connection, session_id: str) -> bool:
        """Whether this is the first connection that hears of the session."""
        connection.sessions.add(session_id)
        self._sessions[session_id].add(connection)
        return len(self._sessions[session_id]) == 1

    def leave_session(self, connection: Connection, session_id: str) -> bool:
        """Whether nobody hears of the session any more."""
        connection.sessions.discard(session_id)
        self._sessions[session_id].discard(connection)
        is_last = not self._sessions[session_id]
        if is_last:
            del self._sessions[session_id]
        return is_last

    def watchers(self, table: str) -> Iterable[Connection]:
        """Who watches a table."""
        return tuple(self._tables.get(table, ()))

    def listeners(self, session_id: str) -> Iterable[Connection]:
        """Who hears of a session."""
        return tuple(self._sessions.get(session_id, ()))

    def watched_tables(self) -> list[str]:
        """All tables that somebody watches."""
        return list(self._tables)

    def watched_sessions(self) -> list[str]:
        """All sessions that somebody hears of."""
        return list(self._sessions)


CLOSE_GOING_AWAY: Final = WSCloseCode.GOING_AWAY
