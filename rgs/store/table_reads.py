"""What is read of tables that players share: their state, who sits there, their rounds, their chat.

A table may have a million seats. So every query uses an index and is bounded: pages by their caller's limit, questions
by the first row that answers them.

Seats of ended rounds may be archived, some of a round or all (docs/retention.md).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import ClassVar, Final

from rgs.core.rounds import Round, RoundStatus
from rgs.core.sessions import Session
from rgs.core.tables.rows import TableRound, TableRow
from rgs.core.tables.seating import BoxReservation, Sitting
from rgs.store.archived_reads import ArchivedReads
from rgs.store.rows import ROUNDS, SESSIONS
from rgs.store.table_records import ChatMessage, PlayerBarred
from rgs.store.table_rows import BARS, CHAT, RESERVATIONS, SITTINGS, TABLE_ROUNDS, TABLES
from rgs.store.tables import ROW_MAX, listed

_RESERVED_BREAKS: Final = """
    SELECT s.session_id COLLATE BINARY AS session_id, s.reserved_minor, COALESCE(p.reserved_minor, 0) FROM sessions s
    LEFT JOIN sittings p ON p.session_id = s.session_id AND p.table_id = ?1
    WHERE s.table_id = ?1 AND s.reserved_minor > 0 AND s.session_id COLLATE BINARY > ?2
    AND s.reserved_minor <> COALESCE(p.reserved_minor, 0)
    UNION ALL
    SELECT p.session_id COLLATE BINARY, s.reserved_minor, p.reserved_minor FROM sittings p
    JOIN sessions s ON s.session_id = p.session_id
    WHERE p.table_id = ?1 AND p.reserved_minor > 0 AND p.session_id COLLATE BINARY > ?2 AND s.reserved_minor = 0
    ORDER BY session_id LIMIT ?3
"""


class TableReads(ArchivedReads):
    """The queries, once for both databases."""

    _clock_sql: ClassVar[str] = "NULL"
    """The database's own clock in milliseconds, as a column of a query."""

    # --- tables ---------------------------------------------------------------------------------------------------

    async def table(self, table_id: str) -> tuple[TableRow, int | None] | None:
        """The table, and the database's clock in milliseconds when it was read; None where the database is a file."""
        query = "".join(["SELECT ", listed(TABLES.columns), ", ", self._clock_sql, " FROM tables WHERE table_id = ?"])
        row = await self._row(query, table_id)
        return None if row is None else (TABLES.read(row), row[-1])

    async def tables(self, after: str, limit: int) -> list[TableRow]:
        """Tables in the order of their ids, above `after`."""
        return await self._found(TABLES, "WHERE table_id > ? ORDER BY table_id LIMIT ?", after, limit)

    async def table_versions(self, table_ids: Sequence[str]) -> dict[str, int]:
        """The versions of those that exist."""
        query = "SELECT table_id, version FROM tables WHERE table_id IN (SELECT value FROM json_each(?))"
        return {row[0]: row[1] for row in await self._rows(query, json.dumps(list(table_ids)))}

    async def due_tables(self, before_ms: int, limit: int) -> list[tuple[str, int]]:
        """(id, due time) of the tables that were to be looked at by `before_ms`, oldest first."""
        query = "SELECT table_id, due_ms FROM tables WHERE due_ms > 0 AND due_ms <= ? ORDER BY due_ms, table_id LIMIT ?"
        return [(row[0], row[1]) for row in await self._rows(query, before_ms, limit)]

    # --- who sits there -------------------------------------------------------------------------------------------

    async def sitting(self, session_id: str) -> Sitting | None:
        """The seat of a session, None where it sits at no table."""
        return await self._first(SITTINGS, "WHERE session_id = ?", session_id)

    async def sitting_of(self, table_id: str, operator: str, player: str) -> Sitting | None:
        """The seat of a player at a table."""
        return await self._first(
            SITTINGS, "WHERE table_id = ? AND operator = ? AND player = ?", table_id, operator, player
        )

    async def sittings(self, table_id: str, after: str, limit: int) -> list[Sitting]:
        """All who sit at a table, in the order of their sessions, above the session `after`."""
        where = "WHERE table_id = ? AND session_id COLLATE BINARY > ? ORDER BY session_id COLLATE BINARY LIMIT ?"
        return await self._found(SITTINGS, where, table_id, after, limit)

    async def boxes(self, table_id: str) -> list[Sitting]:
        """Who sits at a box, in the order of the boxes."""
        return await self._found(SITTINGS, "WHERE table_id = ? AND box > 0 ORDER BY box", table_id)

    async def box_marks(self, table_ids: Sequence[str]) -> dict[str, frozenset[tuple[str, int, int]]]:
        """By table who sits at its boxes: (session, version of the seat, version of the session). Tables at whose boxes
        nobody sits are left out.
        """
        query = (
            "SELECT p.table_id, p.session_id, p.version, s.version FROM sittings p"
            " JOIN sessions s ON s.session_id = p.session_id"
            " WHERE p.table_id IN (SELECT value FROM json_each(?)) AND p.box > 0"
        )
        found: dict[str, set[tuple[str, int, int]]] = {}
        for table_id, *mark in await self._rows(query, json.dumps(list(table_ids))):
            found.setdefault(table_id, set()).add((mark[0], mark[1], mark[2]))
        return {table_id: frozenset(marks) for table_id, marks in found.items()}

    async def devices(self, session_ids: Sequence[str]) -> dict[str, int]:
        """The device that plays each of these sessions' seats now; those without a seat are left out."""
        query = "SELECT session_id, device_no FROM sittings WHERE session_id IN (SELECT value FROM json_each(?))"
        return {row[0]: row[1] for row in await self._rows(query, json.dumps(list(session_ids)))}

    async def sittings_of_player(self, operator: str, player: str) -> list[Sitting]:
        """The seats of a player at all tables, in the order of the places."""
        return await self._found(SITTINGS, "WHERE operator = ? AND player = ? ORDER BY place_no", operator, player)

    async def count_sittings(self, table_id: str, most: int) -> int:
        """How many sit at a table, or `most` if there are more."""
        query = "SELECT count(*) FROM (SELECT 1 FROM sittings WHERE table_id = ? LIMIT ?) AS found"
        return int((await self._row(query, table_id, most))[0])

    async def cut_sittings(self, table_id: str, after: tuple[int, str], limit: int) -> list[Sitting]:
        """The seats with bets, in the order in which `SeatsFixed` numbers them, above (box, session id)."""
        where = (
            "WHERE table_id = ? AND reserved_minor > 0 AND (box, session_id COLLATE BINARY) > (?, ?)"
            " ORDER BY box, session_id COLLATE BINARY LIMIT ?"
        )
        return await self._found(SITTINGS, where, table_id, *after, limit)

    async def fixed_sittings(self, table_id: str, after: int, limit: int) -> list[Sitting]:
        """The seats that are to be opened, by their number in the round, above `after`."""
        where = "WHERE table_id = ? AND seat_no > 0 AND seat_no > ? ORDER BY seat_no LIMIT ?"
        return await self._found(SITTINGS, where, table_id, after, limit)

    async def has_sittings(self, table_id: str) -> bool:
        """Whether anybody sits at the table."""
        return await self._row("SELECT 1 FROM sittings WHERE table_id = ? LIMIT 1", table_id) is not None

    async def has_bets(self, table_id: str) -> bool:
        """Whether anything is reserved at the table."""
        query = "SELECT 1 FROM sittings WHERE table_id = ? AND reserved_minor > 0 LIMIT 1"
        return await self._row(query, table_id) is not None

    async def has_unopened(self, table_id: str) -> bool:
        """Whether a seat of the round has no opening."""
        query = "SELECT 1 FROM sittings WHERE table_id = ? AND seat_no > 0 LIMIT 1"
        return await self._row(query, table_id) is not None

    async def sessions_by_id(self, session_ids: Sequence[str], *, fresh: bool = True) -> dict[str, Session]:  # noqa: ARG002
        """Those of the sessions that exist, by their ids. A copy of this process may be old, unless it is `fresh`."""
        where = "WHERE session_id IN (SELECT value FROM json_each(?))"
        return {one.session_id: one for one in await self._found(SESSIONS, where, json.dumps(list(session_ids)))}

    # --- seats of a round -----------------------------------------------------------------------------------------

    async def has_undecided(self, round_id: str, phases: Sequence[str]) -> bool:
        """Whether an open seat of the round stands in one of these phases."""
        if not phases:
            return False
        query = "".join(
            [
                "SELECT 1 FROM rounds WHERE round_id = ? AND status = 'open' AND table_id <> '' AND phase IN (",
                ", ".join("?" * len(phases)),
                ") LIMIT 1",
            ]
        )
        return await self._row(query, round_id, *phases) is not None

    async def has_unfinished(self, round_id: str) -> bool:
        """Whether an open seat of the round is left."""
        query = "SELECT 1 FROM rounds WHERE round_id = ? AND status = 'open' AND table_id <> '' LIMIT 1"
        return await self._row(query, round_id) is not None

    async def open_seats(self, round_id: str, after: int, limit: int) -> list[Round]:
        """The open seats of a round by number, above `after`."""
        where = "WHERE round_id = ? AND seat_no > ? AND status = 'open' ORDER BY seat_no LIMIT ?"
        return await self._found(ROUNDS, where, round_id, after, limit)

    async def seat_traces(self, round_id: str) -> dict[str, str]:
        """The `traceparent` of the last decision for each open seat of a round, by session, as `SeatTraced` kept it."""
        query = (
            "SELECT session_id, traceparent FROM rounds"
            " WHERE round_id = ? AND status = 'open' AND table_id <> '' AND traceparent IS NOT NULL"
        )
        return {row[0]: row[1] for row in await self._rows(query, round_id)}

    async def seats_of_round(self, round_id: str, after: int, limit: int) -> list[Round]:
        """All seats of a round by number, above `after`."""
        where = "WHERE round_id = ? AND seat_no > ? ORDER BY seat_no LIMIT ?"
        return await self._with_moved_seats(
            await self._found(ROUNDS, where, round_id, after, limit), round_id, after, limit
        )

    async def seats_of_operator(self, round_id: str, operator: str, after: int, limit: int) -> list[Round]:
        """The seats of an operator's players in a round of a table, by number, above `after`."""
        where = "WHERE round_id = ? AND operator = ? AND seat_no > ? AND table_id <> '' ORDER BY seat_no LIMIT ?"
        return await self._with_moved_seats(
            await self._found(ROUNDS, where, round_id, operator, after, limit), round_id, after, limit, operator
        )

    async def _with_moved_seats(
        self, seats: list[Round], round_id: str, after: int, limit: int, operator: str = ""
    ) -> list[Round]:
        """Seats of a round, and those of them that are archived. None is while one is open; solo play has one seat."""
        if self.archive is None or any(one.status is RoundStatus.OPEN or not one.table_id for one in seats):
            return seats
        archive = await self._archive_of(round_id)
        if archive is None:
            return seats
        moved = await self._with_players(await archive.seats_of_round(round_id, after, limit, operator))
        found = {one.seat_no: one for one in (*moved, *seats)}
        return [found[number] for number in sorted(found)][:limit]

    async def seat(self, session_id: str, round_id: str) -> Round | None:
        """The seat of a session in a round of a table."""
        where = "WHERE session_id = ? AND round_id = ? AND table_id <> ''"
        found = await self._first(ROUNDS, where, session_id, round_id)
        archive = await self._archive_of(round_id) if found is None else None
        moved = await archive.seat(session_id, round_id) if archive is not None else None
        return found if moved is None else (await self._with_players([moved]))[0]

    async def last_seat(self, session_id: str) -> Round | None:
        """The newest round of a session."""
        found = await self._first(ROUNDS, "WHERE session_id = ? ORDER BY round_no DESC LIMIT 1", session_id)
        if found is not None or self.archive is None:
            return found
        is_closed = "SELECT 1 FROM sessions WHERE session_id = ? AND status = 'closed' AND rounds > 0"
        if await self._row(is_closed, session_id) is None:
            return None  # it has not played yet
        moved = await self.archive.rounds_of_session(session_id, ROW_MAX, 1)
        return (await self._with_players([moved[0][1]]))[0] if moved else None

    async def table_round(self, round_id: str) -> TableRound | None:
        """The round of a table; archived after the last of its seats."""
        found = await self._first(TABLE_ROUNDS, "WHERE round_id = ?", round_id)
        return found if found is not None or self.archive is None else await self.archive.table_round(round_id)

    # --- bars, reservations, chat ---------------------------------------------------------------------------------

    async def bars(self, table_id: str, limit: int) -> list[PlayerBarred]:
        """Who may not sit at the table, by operator and player."""
        return await self._found(BARS, "WHERE table_id = ? ORDER BY operator, player LIMIT ?", table_id, limit)

    async def is_barred(self, table_id: str, operator: str, player: str) -> bool:
        query = "SELECT 1 FROM table_bars WHERE table_id = ? AND operator = ? AND player = ?"
        return await self._row(query, table_id, operator, player) is not None

    async def reservations(self, table_id: str) -> list[BoxReservation]:
        """The boxes that are held for players, in the order of the boxes."""
        return await self._found(RESERVATIONS, "WHERE table_id = ? ORDER BY box", table_id)

    async def chat(self, table_id: str, before: str, limit: int) -> list[ChatMessage]:
        """Lines of a table's chat, newest first, below the line `before` (empty: from the newest)."""
        if not before:
            where = "WHERE table_id = ? ORDER BY message_id DESC LIMIT ?"
            return await self._found(CHAT, where, table_id, limit)
        where = "WHERE table_id = ? AND message_id < ? ORDER BY message_id DESC LIMIT ?"
        return await self._found(CHAT, where, table_id, before, limit)

    async def chat_after(self, after: str, limit: int) -> list[ChatMessage]:
        """The newest lines of all tables' chats above the line `after`, newest first."""
        return await self._found(CHAT, "WHERE message_id > ? ORDER BY message_id DESC LIMIT ?", after, limit)

    async def chat_message(self, message_id: str) -> ChatMessage | None:
        return await self._first(CHAT, "WHERE message_id = ?", message_id)

    async def newest_chat_ms(self, operator: str, player: str) -> int:
        """When the player wrote the newest line that is kept, in milliseconds; 0: none."""
        where = "WHERE operator = ? AND player = ? ORDER BY message_id DESC LIMIT 1"
        message = await self._first(CHAT, where, operator, player)
        return 0 if message is None else message.time_ms

    # --- checks ---------------------------------------------------------------------------------------------------

    async def reserved_breaks(self, table_id: str, after: str, limit: int) -> list[tuple[str, int, int]]:
        """(session id, reserved by the session, reserved by its seat) where they differ, above the session `after`.

        A session that does not sit at the table counts with 0 for its seat.
        """
        rows = await self._rows(_RESERVED_BREAKS, table_id, after, limit)
        return [(row[0], row[1], row[2]) for row in rows]

    async def newest_seat_ms(self, round_id: str) -> int:
        """The time of the newest `seat_opening` or `seat_final` of the round; 0 if there is none."""
        row = await self._row("SELECT seats_ms FROM table_rounds WHERE round_id = ?", round_id)
        return 0 if row is None else int(row[0])
