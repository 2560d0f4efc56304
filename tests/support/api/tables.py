"""Views of tables for tests without a store, and `Hall`: tables, seats and versions that a test moves by hand."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from rgs.core.errors import NotFoundError
from rgs.core.games.types import Phase
from rgs.core.sessions import SessionStatus
from rgs.core.tables.machine import State
from rgs.core.tables.views import BoxView, ChatLine, SeatView, TableView
from rgs.core.views import SessionView
from rgs.service.callers import Caller, Role
from rgs.service.tables.feed import Elsewhere, Feed
from rgs.service.tables.mailbox import Mailbox, Parcel
from rgs.service.tables.signals import Signals
from rgs.store.table_records import ChatMessage
from tests.support.api.views import ROUND_ID, START_MS, session_view
from tests.support.clocks import NOW_MS, ManualClock

TABLE = "lugano-1"
OP1, OP2 = Caller("op1", Role.OPERATOR, "demo"), Caller("op2", Role.OPERATOR, "demo")


def session_id(nth: int) -> str:
    return f"01{nth:024d}"


def table_view(**changes: Any) -> TableView:
    """A table that takes bets, with nothing of a round yet."""
    view = TableView(
        table_id=TABLE,
        version=1,
        state=State.BETTING,
        paused_from=None,
        phase=None,
        round_id=ROUND_ID,
        table_round_no=0,
        game_code="",
        open_ms=START_MS,
        amber_ms=0,
        deadline_ms=START_MS + 20_000,
        time_ms=START_MS + 1,
        hole_cards=(),
        board=(),
        dealer_cards=(),
        dealer_hand=None,
        player_hand=None,
        dealer_qualifies=False,
        boxes=(),
        players_at_least=0,
        commitment=b"",
        malfunction_code="",
        table_round=b"",
        table_deal=b"",
        table_final=b"",
    )
    return replace(view, **changes)


def seat_view(nth: int = 1, **changes: Any) -> SeatView:
    view = SeatView(session_id(nth), TABLE, 0, 1, 1, (("ante", 100),), 100, None, "RS-1", "RP-1")
    return replace(view, **changes)


def chat_message(nth: int, operator: str = "op1", table_id: str = TABLE, time_ms: int = NOW_MS) -> ChatMessage:
    return ChatMessage(f"01{nth:024d}", table_id, time_ms, operator, f"player-{nth}", f"nick {nth}", f"line {nth}", "")


class Hall:
    """What the store would hold: tables by name, seats by session, each with its operator; and what was read."""

    def __init__(
        self,
        *,
        elsewhere: bool = False,
        encode: Callable[[TableView], bytes] | None = None,
        encode_line: Callable[[ChatLine], bytes] | None = None,
    ) -> None:
        self.tables: dict[str, TableView] = {TABLE: table_view()}
        self.operators: dict[str, set[str]] = {}
        """Of a table; without an entry both play there."""
        self.seats: dict[str, tuple[str, SessionView, SeatView]] = {}
        self.chat: list[ChatMessage] = []
        self.marks: dict[str, frozenset[tuple[str, int, int]]] = {}
        """Who sits at the boxes of a table, with versions."""
        self.reads: Counter[str] = Counter()
        self.failing: Exception | None = None
        self.held = asyncio.Event()
        """Cleared: reads of tables wait."""
        self.held.set()
        self.encoded: list[tuple[str, int]] = []
        self.signals = Signals()
        self.feed = Feed(
            signals=self.signals,
            table=self.table,
            seat=self.seat,
            versions=self.versions,
            encode=encode or self.encode,
            encode_line=encode_line or self.encode_line,
            clock=ManualClock(),
            elsewhere=Elsewhere(self.lines, self.boxes, self.devices) if elsewhere else None,
        )

    # --- what the feed reads ------------------------------------------------------------------------------------------

    async def table(self, caller: Caller, table_id: str) -> TableView:
        self.reads["table"] += 1
        view = self.tables.get(table_id)
        await self.held.wait()
        await asyncio.sleep(0)
        if self.failing is not None:
            raise self.failing
        if view is None or caller.party not in self.operators.get(table_id, {"op1", "op2"}):
            raise NotFoundError(f"no table {table_id}", kind="table")
        return replace(view, boxes=(BoxView(1, nickname=f"seen by {caller.party}"),))

    async def seat(self, caller: Caller, wanted: str) -> tuple[SessionView, SeatView]:
        self.reads["seat"] += 1
        await asyncio.sleep(0)
        if self.failing is not None:
            raise self.failing
        found = self.seats.get(wanted)
        if found is None or found[0] != caller.party:
            raise NotFoundError("no such session", kind="session")
        return found[1:]

    async def versions(self, table_ids: Sequence[str]) -> dict[str, int]:
        self.reads["versions"] += 1
        await asyncio.sleep(0)
        return {table_id: self.tables[table_id].version for table_id in table_ids if table_id in self.tables}

    async def boxes(self, table_ids: Sequence[str]) -> dict[str, frozenset[tuple[str, int, int]]]:
        self.reads["boxes"] += 1
        return {table_id: self.marks[table_id] for table_id in table_ids if table_id in self.marks}

    async def devices(self, session_ids: Sequence[str]) -> dict[str, int]:
        self.reads["devices"] += len(session_ids)
        return {one: self.seats[one][2].device_no for one in session_ids if not self.seats[one][2].ended}

    async def lines(self, after: str) -> list[ChatMessage]:
        return [message for message in reversed(self.chat) if message.message_id > after]

    def encode(self, view: TableView) -> bytes:
        self.encoded.append((view.table_id, view.version))
        return f"{view.table_id} {view.version} {view.boxes[0].nickname}".encode()

    def encode_line(self, line: ChatLine) -> bytes:
        self.encoded.append((line.message_id, 0))
        return f"{line.text} {line.player}".encode()

    # --- what happens there -------------------------------------------------------------------------------------------

    def sit(self, nth: int, operator: str = "op1", **changes: Any) -> str:
        """A session with a seat at the table."""
        session = session_view(session_id=session_id(nth), operator=operator, table_id=TABLE)
        self.seats[session_id(nth)] = (operator, session, seat_view(nth, **changes))
        return session_id(nth)

    def close(self, wanted: str) -> None:
        operator, session, seat = self.seats[wanted]
        closed = replace(session.session, status=SessionStatus.CLOSED, close_ms=START_MS + 9)
        self.seats[wanted] = (operator, replace(session, session=closed), replace(seat, ended="CLOSED"))

    def step(self, state: State = State.DECIDING, table_id: str = TABLE, *, quiet: bool = False, **changes: Any) -> int:
        """The table takes a step. `quiet`: in another process."""
        before = self.tables[table_id]
        phase = Phase.FLOP if state is State.DECIDING else None
        changes = {"phase": phase, "time_ms": before.time_ms + 1, **changes}
        view = replace(before, version=before.version + 1, state=state, **changes)
        self.tables[table_id] = view
        if not quiet:
            self.signals.moved(table_id, view.version)
        return view.version


async def settle() -> None:
    """Let the tasks of this loop do what they can."""
    for _ in range(40):
        await asyncio.sleep(0)


def all_of(mailbox: Mailbox) -> list[Parcel]:
    """Everything that waits for a stream."""
    taken = []
    while (parcel := mailbox.take()) is not None:
        taken.append(parcel)
    return taken


def version_in(parcel: Parcel | None) -> int:
    """Of a view as the hall encodes it."""
    assert isinstance(parcel, bytes)
    return int(parcel.split()[1])
