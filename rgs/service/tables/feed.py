"""The fan-out of one process: what streams that watch tables and seats get, and when (docs/tables.md).

A table that moves is read and encoded once for each operator whose streams watch it here; the same bytes go to all of
them. A signal of this process says at once that a table moved. What other processes did is found by `scan`, from the
versions in the store, and by `scan_seats`, from the rows of seats, which change without a step of their table: so no
notice between processes is needed, and none can be lost.

A view is whole, but for the signed statements of the round: a stream carries each of them once, in the first view that
it takes after the signing, whatever it skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final

from rgs.core.clock import Clock
from rgs.core.errors import InvalidFieldError, NotFoundError
from rgs.core.ids import ULID_RANDOM_BYTES, format_ulid
from rgs.core.tables.machine import State
from rgs.core.tables.views import ChatLine, SeatView, TableView
from rgs.core.views import SessionView
from rgs.service.callers import Caller
from rgs.service.tables.chat import line_of
from rgs.service.tables.mailbox import Mailbox
from rgs.service.tables.signals import Signals
from rgs.store.table_records import ChatMessage

TABLES_MAX: Final = 1_024
"""Tables that one stream may watch."""
SESSIONS_MAX: Final = 20_000
"""Sessions whose seats one stream may watch."""
REFRESHES_MAX: Final = 16
"""Views that are read at once."""

DEVICES_MAX: Final = 2_048
"""Seats whose device is looked at in one `scan_seats`; the others have their turn in the next ones."""
LATE_MS: Final = 5_000
"""How far back `scan` looks for lines of chat: so far may the clocks of two processes differ, and a commit take."""

_SEATS_CHANGE: Final = frozenset({State.BETTING, State.DECIDING, State.RESULT, State.PAUSED})
"""States that change the seats of a table: bets may be placed, cards and decisions are there, finals, nothing goes."""


@dataclass(eq=False, repr=False)
class _Topic:
    """A table as one operator's players see it, and who watches it in this process."""

    caller: Caller
    table_id: str
    mailboxes: set[Mailbox] = field(default_factory=set)
    version: int = 0
    """The newest version that is delivered."""
    wanted: int = 0
    """The newest version that is known of."""
    stage: tuple[str, State] | None = None
    """Round and state of the newest view; None until there was one."""
    marked_s: float = -1.0
    """When the seats here were marked last, by the loop's time."""
    is_stale: bool = False
    task: asyncio.Task[None] | None = None


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Reads what other processes write without a step of a table (`rgs.store.table_reads`).

    `lines` those of chat at all tables above a message id, newest first and bounded; `boxes` who sits at the boxes of
    tables, with versions; `devices` which device plays each session's seat.
    """

    lines: Callable[[str], Awaitable[Sequence[ChatMessage]]]
    boxes: Callable[[Sequence[str]], Awaitable[Mapping[str, frozenset[tuple[str, int, int]]]]]
    devices: Callable[[Sequence[str]], Awaitable[Mapping[str, int]]]


class Feed:
    """The fan-out of one process. Streams take a `mailbox`, and say what they want in it."""

    def __init__(
        self,
        *,
        signals: Signals,
        table: Callable[[Caller, str], Awaitable[TableView]],
        seat: Callable[[Caller, str], Awaitable[tuple[SessionView, SeatView]]],
        versions: Callable[[Sequence[str]], Awaitable[Mapping[str, int]]],
        encode: Callable[[TableView], bytes],
        encode_line: Callable[[ChatLine], bytes],
        clock: Clock,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        """`table` and `seat` read for a caller, or raise NotFoundError; `versions` reads those of many tables.
        `elsewhere` reads what other processes write without a step of a table; None: there are none.
        """
        self._table = table
        self.seat = seat
        """Session and seat, as the caller may see them. NotFoundError."""
        self._versions = versions
        self.encode = encode
        """The message of a view."""
        self._encode_line = encode_line
        self._clock = clock
        self._elsewhere = elsewhere
        self._heard: set[str] = set()
        """Lines of the last `LATE_MS` that were delivered."""
        self._boxes: dict[str, frozenset[tuple[str, int, int]]] = {}
        """Who sat at the boxes of each watched table in the last `scan_seats`, with versions."""
        self._devices: dict[str, int] = {}
        """The device of each watched seat as it was read last; the one that was read longest ago first."""
        self._topics: dict[str, dict[str, _Topic]] = {}
        """By table and operator."""
        self._listening: dict[str, set[Mailbox]] = {}
        """By session."""
        self._reading = asyncio.Semaphore(REFRESHES_MAX)
        self._failure: Exception | None = None
        signals.listen(self)

    # --- streams ------------------------------------------------------------------------------------------------------

    @contextmanager
    def mailbox(self, caller: Caller) -> Iterator[Mailbox]:
        """The mailbox of one stream, until the stream ends."""
        mailbox = Mailbox(caller)
        try:
            yield mailbox
        finally:
            for session_id in tuple(mailbox.sessions):
                self.leave_session(mailbox, session_id)
            for table_id in tuple(mailbox.tables):
                self.leave_table(mailbox, table_id)

    async def watch_table(self, mailbox: Mailbox, table_id: str) -> TableView:
        """Put views and lines of the table into the mailbox from now on. The view as it is now; NotFoundError."""
        is_new = table_id not in mailbox.tables
        if is_new:
            _verify_room(len(mailbox.tables), TABLES_MAX, "watch_table", "tables")
        mailbox.tables.add(table_id)
        topic = self._join(mailbox, table_id)
        try:
            view = await self._table(mailbox.caller, table_id)
        except BaseException:
            if is_new:
                self.leave_table(mailbox, table_id)
            raise
        if topic.stage is None:
            topic.version, topic.stage = view.version, _stage_of(view)
            self._mark(topic)  # what happened before is not known
        elif view.version > topic.version:
            self._refresh_soon(topic, view.version)
        return view

    def leave_table(self, mailbox: Mailbox, table_id: str) -> None:
        """Put nothing more of the table into the mailbox, seats aside."""
        mailbox.drop_table(table_id)
        self._leave(mailbox, table_id)

    async def watch_session(self, mailbox: Mailbox, session_id: str) -> tuple[SessionView, SeatView]:
        """Mark the session's seat in the mailbox when it changes. Session and seat as they are now; NotFoundError."""
        if session_id not in mailbox.sessions:
            _verify_room(len(mailbox.sessions), SESSIONS_MAX, "watch_session", "sessions")
        begun_s = asyncio.get_running_loop().time()
        listening = self._listening.setdefault(session_id, set())
        listening.add(mailbox)
        try:
            found = await self.seat(mailbox.caller, session_id)
        except BaseException:
            if session_id not in mailbox.sessions:
                self._stop_listening(mailbox, session_id)
            raise
        table_id = found[1].table_id
        mailbox.add_session(session_id, table_id)
        self._devices.setdefault(session_id, found[1].device_no)  # 0: no seat yet
        if self._join(mailbox, table_id).marked_s >= begun_s:
            mailbox.mark(session_id)  # the table moved while the seat was read
        return found

    def leave_session(self, mailbox: Mailbox, session_id: str) -> None:
        """Mark the seat no more."""
        table_id = mailbox.drop_session(session_id)
        if table_id is not None:
            self._stop_listening(mailbox, session_id)
            self._leave(mailbox, table_id)

    # --- signals of this process --------------------------------------------------------------------------------------

    def moved(self, table_id: str, version: int) -> None:
        """A table has this version, or looks different at it."""
        for topic in self._topics.get(table_id, {}).values():
            if version >= topic.version:
                self._refresh_soon(topic, version)

    def seat_changed(self, session_id: str) -> None:
        """A seat has changed without a step of its table."""
        for mailbox in self._listening.get(session_id, ()):
            mailbox.mark(session_id)

    def said(self, message: ChatMessage) -> None:
        """A line of chat was written or erased."""
        if self._elsewhere is not None:
            self._heard.add(message.message_id)
        for topic in self._topics.get(message.table_id, {}).values():
            readers = [mailbox for mailbox in topic.mailboxes if message.table_id in mailbox.tables]
            if readers:
                encoded = self._encode_line(line_of(topic.caller, message))
                for mailbox in readers:
                    mailbox.put_line(message.message_id, encoded)

    # --- what other processes did -------------------------------------------------------------------------------------

    async def scan(self) -> None:
        """Find the tables that others moved. To be called several times a second; raises what made a view fail."""
        if self._topics:
            for table_id, version in (await self._versions(tuple(self._topics))).items():
                for topic in self._topics.get(table_id, {}).values():
                    if version > topic.version and topic.task is None:
                        self._refresh_soon(topic, version)
            await self._scan_lines()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    async def scan_seats(self) -> None:
        """Find boxes and devices that others changed: no step of a table tells of them. To be called once a second."""
        if self._elsewhere is None or not self._topics:
            return
        watched = tuple(self._topics)
        found = await self._elsewhere.boxes(watched)
        before, self._boxes = self._boxes, {table_id: found.get(table_id, frozenset()) for table_id in watched}
        for table_id, marks in self._boxes.items():
            if marks != before.get(table_id):
                for topic in self._topics.get(table_id, {}).values():
                    self._refresh_soon(topic, topic.version)
        sessions = tuple(islice(self._devices, DEVICES_MAX))
        devices = await self._elsewhere.devices(sessions)
        for session_id in sessions:
            known = self._devices.pop(session_id)
            if session_id in self._listening:
                device_no = devices.get(session_id, 0)
                if device_no != known:
                    self.seat_changed(session_id)
                self._devices[session_id] = device_no

    async def _scan_lines(self) -> None:
        """Deliver lines that other processes have written. The ids of lines begin with their time."""
        if self._elsewhere is None:
            return
        after = format_ulid(max(0, self._clock.now_ms() - LATE_MS), bytes(ULID_RANDOM_BYTES))
        for message in reversed(await self._elsewhere.lines(after)):
            if message.message_id not in self._heard:
                self.said(message)
        self._heard = {message_id for message_id in self._heard if message_id > after}

    # --- views --------------------------------------------------------------------------------------------------------

    def _refresh_soon(self, topic: _Topic, version: int) -> None:
        topic.is_stale, topic.wanted = True, version
        if topic.task is None:
            # For all who watch: not in the trace of whoever moved the table.
            topic.task = asyncio.create_task(self._refresh(topic), context=Context())

    async def _refresh(self, topic: _Topic) -> None:
        """Read and deliver the view until nothing has moved meanwhile. A failure is left to the next `scan`."""
        try:
            while topic.is_stale and topic.mailboxes:
                topic.is_stale = False
                async with self._reading:
                    view = await self._table(topic.caller, topic.table_id)
                self._deliver(topic, view)
        except NotFoundError:
            self._lose(topic)
        except Exception as error:  # noqa: BLE001 - `scan` raises it, and tries again
            topic.version, self._failure = 0, error
        finally:
            topic.task = None

    def _deliver(self, topic: _Topic, view: TableView) -> None:
        """Put a view into the mailboxes, and mark the seats that the step has changed. The view is encoded once for all
        streams that have carried the same statements of the round.
        """
        encoded: dict[frozenset[str], bytes] = {}
        for mailbox in topic.mailboxes:
            if view.table_id in mailbox.tables:
                carried = mailbox.carried(view)
                if carried not in encoded:
                    without: dict[str, Any] = dict.fromkeys(carried, b"")
                    encoded[carried] = self.encode(replace(view, **without))
                mailbox.put(view, encoded[carried])
        if view.version != topic.version and _are_seats_changed(topic.stage, view):
            self._mark(topic)
        topic.version, topic.stage = view.version, _stage_of(view)

    def _lose(self, topic: _Topic) -> None:
        """Say that nothing more comes of the table. Seats that are still there are read on."""
        topic.version = topic.wanted
        self._mark(topic)
        for mailbox in tuple(topic.mailboxes):
            if topic.table_id in mailbox.tables:
                mailbox.put_lost(topic.table_id)
                self._leave(mailbox, topic.table_id)

    def _mark(self, topic: _Topic) -> None:
        topic.marked_s = asyncio.get_running_loop().time()
        for mailbox in topic.mailboxes:
            mailbox.mark_all_at(topic.table_id)

    # --- who is here --------------------------------------------------------------------------------------------------

    def _join(self, mailbox: Mailbox, table_id: str) -> _Topic:
        topics = self._topics.setdefault(table_id, {})
        operator = mailbox.caller.party
        topic = topics.get(operator)
        if topic is None:
            topic = topics[operator] = _Topic(mailbox.caller, table_id)
        topic.mailboxes.add(mailbox)
        return topic

    def _leave(self, mailbox: Mailbox, table_id: str) -> None:
        """Forget the mailbox at a table of which it wants nothing any more, and what nobody watches."""
        topics = self._topics.get(table_id, {})
        topic = topics.get(mailbox.caller.party)
        if topic is None or mailbox.is_at(table_id):
            return
        topic.mailboxes.discard(mailbox)
        if not topic.mailboxes:
            del topics[mailbox.caller.party]
            if not topics:
                del self._topics[table_id]

    def _stop_listening(self, mailbox: Mailbox, session_id: str) -> None:
        listening = self._listening[session_id]
        listening.discard(mailbox)
        if not listening:
            del self._listening[session_id]


def _stage_of(view: TableView) -> tuple[str, State]:
    return view.round_id, view.state


def _are_seats_changed(before: tuple[str, State] | None, view: TableView) -> bool:
    """Whether the steps from `before` to this view change seats: what is placed, dealt, decided by the timer, settled,
    or may be done now. Steps may have been skipped.
    """
    if before is None or view.state in _SEATS_CHANGE:
        return True
    round_id, state = before
    return round_id != view.round_id or state is State.PAUSED


def _verify_room(count: int, limit: int, field: str, what: str) -> None:
    """InvalidFieldError if a stream watches so many already."""
    if count >= limit:
        raise InvalidFieldError(
            f"the stream watches {count} {what}, at most {limit} are allowed: leave one, or open another stream",
            field=field,
            limit=limit,
            value=count + 1,
        )
