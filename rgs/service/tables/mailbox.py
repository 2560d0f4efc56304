"""What waits for one stream that watches tables and seats (`rgs.service.tables.feed` fills it).

Nobody waits for a slow stream. Its mailbox holds the newest view of each table, a mark for each seat that changed, and
a few lines of chat: who reads slowly skips versions, and each view is whole. A seat is read when its mark is taken, in
the stream's own task.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Final

from rgs.core.tables.views import TableView
from rgs.service.callers import Caller

LINES_MAX: Final = 32
"""Lines of chat that wait for one stream; of more the oldest are dropped."""
STATEMENTS: Final = ("table_round", "table_deal", "table_final")
"""The fields of a view that a stream carries once a round."""


@dataclass(frozen=True, slots=True)
class SeatMark:
    """The seat of a session has changed: read it now."""

    session_id: str


@dataclass(frozen=True, slots=True)
class TableLost:
    """The operator's players may not play at the table any more: nothing more comes of it."""

    table_id: str


Parcel = bytes | SeatMark | TableLost
"""What a stream takes out of its mailbox: an encoded view or line, or one of the two above."""


class Mailbox:
    """What waits for one stream of a caller. It is bounded by what the stream watches."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.tables: set[str] = set()
        """Tables whose views and lines are wanted."""
        self.sessions: dict[str, str] = {}
        """Sessions whose seats are wanted -> their tables."""
        self._sessions_at: dict[str, dict[str, None]] = {}
        """The same by table."""
        self._ready: dict[str, bytes | TableLost] = {}
        """By table or message, the one that waits longest first."""
        self._marks: dict[str, None] = {}
        self._lines: deque[str] = deque()
        self._newest: dict[str, tuple[int, int]] = {}
        """Version and time of the newest view that was put in or given, by table."""
        self._waiting: dict[str, TableView] = {}
        """The views that `_ready` has encoded, by table."""
        self._carried: dict[str, tuple[str, frozenset[str]]] = {}
        """The round of the newest view that was taken, and its statements that the stream has carried, by table."""
        self._filled = asyncio.Event()

    async def wait(self) -> None:
        """Return once there is something to take."""
        await self._filled.wait()

    def take(self) -> Parcel | None:
        """The next parcel, None for an empty mailbox. Views and lines come before seats."""
        if self._ready:
            key = next(iter(self._ready))
            if self._lines and self._lines[0] == key:
                self._lines.popleft()
            if key in self._waiting:
                self.carry(self._waiting.pop(key))
            return self._ready.pop(key)
        if self._marks:
            session_id = next(iter(self._marks))
            del self._marks[session_id]
            return SeatMark(session_id)
        self._filled.clear()
        return None

    # --- what the stream gets otherwise, or wants no more -------------------------------------------------------------

    def given(self, view: TableView) -> bool:
        """Whether the stream may be given this view now: False if a newer one waits, or was taken."""
        if not self._is_newest(view):
            return False
        self._ready.pop(view.table_id, None)
        self._waiting.pop(view.table_id, None)
        return True

    def carry(self, view: TableView) -> None:
        """Note that the stream carries this view: its statements need not be sent again."""
        carried = frozenset(name for name in STATEMENTS if getattr(view, name)) | self.carried(view)
        self._carried[view.table_id] = (view.round_id, carried)

    def carried(self, view: TableView) -> frozenset[str]:
        """The statements of the view's round that the stream has carried."""
        round_id, names = self._carried.get(view.table_id, ("", frozenset()))
        return names if round_id == view.round_id else frozenset()

    def is_at(self, table_id: str) -> bool:
        """Whether the stream wants anything of the table."""
        return table_id in self.tables or table_id in self._sessions_at

    def add_session(self, session_id: str, table_id: str) -> None:
        """Want a seat."""
        self.sessions[session_id] = table_id
        self._sessions_at.setdefault(table_id, {})[session_id] = None

    def drop_session(self, session_id: str) -> str | None:
        """Want a seat no more; its table, None if it was not wanted."""
        table_id = self.sessions.pop(session_id, None)
        if table_id is not None:
            self._marks.pop(session_id, None)
            here = self._sessions_at[table_id]
            del here[session_id]
            if not here:
                del self._sessions_at[table_id]
        return table_id

    def drop_table(self, table_id: str) -> None:
        """Want the views of a table no more."""
        self.tables.discard(table_id)
        for kept in (self._ready, self._waiting, self._newest, self._carried):
            kept.pop(table_id, None)

    # --- what the feed puts in ----------------------------------------------------------------------------------------

    def put(self, view: TableView, encoded: bytes) -> None:
        """The view of a table that is wanted, in place of the one that waits."""
        if self._is_newest(view):
            self._ready[view.table_id], self._waiting[view.table_id] = encoded, view
            self._filled.set()

    def put_line(self, message_id: str, encoded: bytes) -> None:
        """A line of chat, in place of the same line where it waits: it may have been erased meanwhile."""
        if message_id not in self._ready:
            if len(self._lines) == LINES_MAX:
                del self._ready[self._lines.popleft()]
            self._lines.append(message_id)
        self._ready[message_id] = encoded
        self._filled.set()

    def put_lost(self, table_id: str) -> None:
        """Nothing more comes of a table that was wanted."""
        self.drop_table(table_id)
        self._ready[table_id] = TableLost(table_id)
        self._filled.set()

    def mark(self, session_id: str) -> None:
        """The seat of a session that is wanted has changed."""
        self._marks[session_id] = None
        self._filled.set()

    def mark_all_at(self, table_id: str) -> None:
        """So have all seats at a table."""
        for session_id in self._sessions_at.get(table_id, ()):
            self.mark(session_id)

    def _is_newest(self, view: TableView) -> bool:
        made = (view.version, view.time_ms)
        if made < self._newest.get(view.table_id, made):
            return False
        self._newest[view.table_id] = made
        return True
