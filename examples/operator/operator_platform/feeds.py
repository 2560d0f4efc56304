"""What the game server says unasked, brought to the pages that want it: tables, seats, chat, rounds, the lobby.

The game server shows an operator more than a player may see: the session ids of all its players, and who wrote a line.
Each page gets its own player's only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any, Final

import grpc

from rgs.v1 import common_pb2, play_pb2, session_pb2, table_pb2

from .connections import Connection, Hub, body_of
from .errors import PlatformError
from .rgs_client import Rgs, as_json
from .sessions import Sessions
from .store.play import PlayRows
from .streams import SharedStream, play_stream, watch_stream

LOBBY_PAUSE_S: Final = 2.0

log = logging.getLogger(__name__)


class Feeds:
    """The streams of this process and their readers."""

    def __init__(self, rgs: Rgs, hub: Hub, sessions: Sessions, rows: PlayRows) -> None:
        self._rgs = rgs
        self._hub = hub
        self._sessions = sessions
        self._rows = rows
        self._versions: dict[str, int] = {}
        self._lobby: dict[str, dict[str, Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.hidden: set[str] = set()
        """Ids of lines that staff has hidden."""
        self.play: SharedStream = play_stream(rgs, self._on_play)
        self.watch: SharedStream = watch_stream(rgs, self._on_watch, self._watched)

    async def run(self) -> None:
        """Read until this is cancelled."""
        self.hidden = await self._rows.hidden_lines()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.play.run())
            group.create_task(self.watch.run())
            group.create_task(self._read_lobby())

    # --- who watches what ---

    async def watch_table(self, connection: Connection, table: str, session_id: str) -> dict[str, Any]:
        """The table now, and from now on."""
        view = await self._rgs.call(
            self._rgs.tables.GetTable, table_pb2.GetTableRequest(table=table, session_id=session_id)
        )
        if self._hub.watch_table(connection, table):
            self._versions[table] = view.table.version
            self.watch.send("watch_table", table_pb2.WatchTable(table=table, after_version=view.table.version))
        if session_id:
            self.listen(connection, session_id, is_seat=True)
        return self.shown(as_json(view), {session_id} if session_id else set())

    def leave_table(self, connection: Connection, table: str) -> None:
        """Watch the table no more."""
        if table in connection.tables and self._hub.leave_table(connection, table):
            self.watch.send("leave_table", table_pb2.WatchTable(table=table))

    def listen(self, connection: Connection, session_id: str, *, is_seat: bool = False) -> None:
        """Bring what happens in a session to this page."""
        is_first = self._hub.watch_session(connection, session_id)
        if is_first and is_seat:
            self.watch.send("watch_session", table_pb2.WatchSession(session_id=session_id))

    def watch_lobby(self, connection: Connection) -> list[dict[str, Any]]:
        """The lobby now, and from now on."""
        connection.is_watching_lobby = True
        return list(self._lobby.values())

    def forget(self, connection: Connection) -> None:
        """A connection is gone for good."""
        for table in list(connection.tables):
            self.leave_table(connection, table)
        for session_id in list(connection.sessions):
            if self._hub.leave_session(connection, session_id):
                self.watch.send("leave_session", table_pb2.WatchSession(session_id=session_id))
        self._hub.forget(connection)

    def _watched(self) -> Iterator[Any]:
        for table in self._hub.watched_tables():
            after = table_pb2.WatchTable(table=table, after_version=self._versions.get(table, 0))
            yield table_pb2.WatchRequest(watch_table=after)
        for session_id in self._hub.watched_sessions():
            yield table_pb2.WatchRequest(watch_session=table_pb2.WatchSession(session_id=session_id))

    # --- what comes ---

    def _on_watch(self, kind: str, message: Any) -> None:
        if kind == "table":
            self._versions[message.table] = message.version
            view = as_json(message)
            if not message.boxes:
                body = body_of({"type": "table", "value": view})
                for connection in self._hub.watchers(message.table):
                    connection.push_body(body)
            else:
                for connection in self._hub.watchers(message.table):
                    connection.push({"type": "table", "value": self._own_boxes(view, connection.sessions)})
        elif kind == "seat":
            value = as_json(message)
            for connection in self._hub.listeners(message.session_id):
                connection.push({"type": "seat", "value": value})
            if message.round.status in (common_pb2.ROUND_STATUS_SETTLED, common_pb2.ROUND_STATUS_VOID):
                self._later(self._refresh(message.session_id))
        elif kind == "line":
            self._later(self._push_line(message))
        elif kind == "error":
            log.info("the watch stream refused something: %s", message.message)

    def _on_play(self, kind: str, message: Any) -> None:
        if kind == "notice":
            self._later(self._push_round(message.session_id, message.round_id))

    async def _push_line(self, line: Any) -> None:
        if line.message_id in self.hidden:
            return
        for connection in self._hub.watchers(line.table):
            player = await self._sessions.player_of(connection.account_id)
            connection.push({"type": "line", "value": own_line(as_json(line), player)})

    async def _refresh(self, session_id: str) -> None:
        """The session beside a seat that has moved: balance, net position, limits."""
        request = session_pb2.GetSessionRequest(session_id=session_id)
        view = (await self._rgs.call(self._rgs.sessions.GetSession, request)).session
        await self._sessions.note(view)
        self.report_session(session_id, as_json(view))

    async def _push_round(self, session_id: str, round_id: str) -> None:
        """A round was paused, resumed or ended without its player."""
        await self._refresh(session_id)
        request = play_pb2.GetRoundRequest(session_id=session_id, round_id=round_id)
        found = await self._rgs.call(self._rgs.play.GetRound, request)
        for connection in self._hub.listeners(session_id):
            connection.push({"type": "round", "session_id": session_id, "value": as_json(found.round)})

    def report_session(self, session_id: str, view: dict[str, Any], but: Connection | None = None) -> None:
        """Push a session to those who hear of it."""
        for connection in self._hub.listeners(session_id):
            if connection is not but:
                connection.push({"type": "session", "value": view})

    def report_round(self, session_id: str, view: dict[str, Any], but: Connection | None) -> None:
        """Push a round to the player's other pages."""
        for connection in self._hub.listeners(session_id):
            if connection is not but:
                connection.push({"type": "round", "session_id": session_id, "value": view})

    # --- what a player may see ---

    def shown(self, answer: dict[str, Any], own: set[str]) -> dict[str, Any]:
        """An answer with a table, without the session ids of others."""
        if "table" in answer:
            answer["table"] = self._own_boxes(answer["table"], own)
        return answer

    def _own_boxes(self, view: dict[str, Any], own: set[str]) -> dict[str, Any]:
        if "boxes" not in view:
            return view
        boxes = [
            box if box.get("session_id", "") in own else {name: box[name] for name in box if name != "session_id"}
            for box in view["boxes"]
        ]
        return {**view, "boxes": boxes}

    async def lines(self, table: str, page_token: str, player: str) -> dict[str, Any]:
        """The newest lines of a chat, without those that are hidden."""
        request = table_pb2.ListMessagesRequest(table=table, page_token=page_token)
        found = as_json(await self._rgs.call(self._rgs.tables.ListMessages, request))
        lines = [own_line(line, player) for line in found.get("lines", []) if line["message_id"] not in self.hidden]
        return {**found, "lines": lines}

    async def hide(self, message_id: str, staff: str, time_ms: int) -> None:
        """Hide a line from all pages."""
        await self._rows.hide_line(message_id, staff, time_ms)
        self.hidden.add(message_id)
        body = body_of({"type": "line_hidden", "message_id": message_id})
        for connection in self._hub.all():
            if connection.tables:
                connection.push_body(body)

    # --- the lobby ---

    async def _read_lobby(self) -> None:
        while True:
            try:
                async for response in self._rgs.tables.WatchLobby(table_pb2.WatchLobbyRequest()):
                    self._push_lobby([as_json(entry) for entry in response.tables])
            except grpc.aio.AioRpcError as error:
                log.info("the lobby's stream ended: %s", error.code().name)
            await asyncio.sleep(LOBBY_PAUSE_S)

    def _push_lobby(self, entries: list[dict[str, Any]]) -> None:
        self._lobby.update({entry["table"]: entry for entry in entries})
        body = body_of({"type": "lobby", "value": entries})
        for connection in self._hub.all():
            if connection.is_watching_lobby:
                connection.push_body(body)

    def _later(self, work: Any) -> None:
        task = asyncio.create_task(self._logged(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _logged(self, work: Any) -> None:
        try:
            await work
        except PlatformError as error:
            log.info("a view could not be read: %s", error.reason)


def own_line(line: dict[str, Any], player: str) -> dict[str, Any]:
    """A line of chat as its reader may see it."""
    shown = {name: line[name] for name in line if name not in ("player", "operator", "is_own")}
    if line.get("player") == player:
        shown["is_own"] = True
    return shown
