"""What is read from the main store: single rows on the play path, pages everywhere else, streams for exports.

Every query rides on an index; a page is bounded by its caller's limit. Refuses to write.
"""

from __future__ import annotations

import sqlite3
from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from rgs.core.rounds import Round
from rgs.core.sessions import Session
from rgs.store.changes import (
    Answer,
    LargeWin,
    LatchSet,
    SwitchOff,
    VoidProposal,
)
from rgs.store.interface import ROW_MAX, InstanceRow, StatementRow, TotalsFilter, TotalsKey, TotalsRow
from rgs.store.outbox import OutboxReads
from rgs.store.returns import ReturnsReads
from rgs.store.rows import SELECT_ROUND, SELECT_SESSION, round_from, session_from

_SESSION_BY_ID: Final = SELECT_SESSION + "WHERE session_id = ?"
_ROUND_BY_ID: Final = SELECT_ROUND + "WHERE round_id = ? AND seat_no = 1"
_ANSWER: Final = (
    "SELECT a.party, a.method, a.request_id, a.digest, a.body, a.time_ms, COALESCE(s.envelope, x'') FROM answers a"
    " LEFT JOIN statements s ON s.instance = a.instance AND s.statement_no = a.statement_no"
    " WHERE a.request_id = ? AND a.method = ? AND a.party = ?"
)
_STATEMENT: Final = (
    "SELECT s.id, s.kind, s.instance, s.statement_no, s.session_id, s.link_no, s.round_id, s.hash, s.envelope,"
    " p.private"
    " FROM statements s LEFT JOIN privates p ON p.instance = s.instance AND p.statement_no = s.statement_no "
)


_SELECT_TOTALS: Final = (
    "SELECT day, operator, player, game, currency, rounds, staked_minor, returned_minor, void_rounds, void_minor"
    " FROM totals "
)
_TOTALS: Final = (
    _SELECT_TOTALS + "INDEXED BY totals_by_day WHERE day BETWEEN ? AND ?"
    " AND (day, operator, player, game, currency) > (?, ?, ?, ?, ?) AND (? = '' OR game = ?)"
    " ORDER BY day, operator, player, game, currency LIMIT ?"
)
_TOTALS_OF_OPERATOR: Final = (
    _SELECT_TOTALS + "WHERE operator = ? AND day BETWEEN ? AND ? AND (day, player, game, currency) > (?, ?, ?, ?)"
    " AND (? = '' OR game = ?) ORDER BY day, player, game, currency LIMIT ?"
)
_TOTALS_OF_PLAYER: Final = (
    _SELECT_TOTALS + "INDEXED BY totals_by_player WHERE operator = ? AND player = ? AND day BETWEEN ? AND ?"
    " AND (day, game, currency) > (?, ?, ?) AND (? = '' OR game = ?) ORDER BY day, game, currency LIMIT ?"
)


def _statement_from(row: Any) -> StatementRow:
    id_, kind, instance, statement_no, session_id, link_no, round_id, hash_, envelope, private = row
    return StatementRow(
        id_, kind, instance, statement_no, session_id, link_no, round_id, hash_, envelope, private or b""
    )


def instance_from(row: Any) -> InstanceRow:
    """The instance of a row of its columns, in the order of InstanceRow."""
    instance, node, boot_no, worker, alive, statement_no, draw_no, start_ms = row
    return InstanceRow(instance, node, boot_no, worker, bool(alive), statement_no, draw_no, start_ms)


class Reads(OutboxReads, ReturnsReads):
    """The queries, once for both databases; how one is asked is theirs."""

    @abstractmethod
    def _stream(self, query: str, *values: Any) -> AsyncIterator[Any]:
        """Rows of a long answer, a few in memory at a time."""

    async def changes(self, key: str) -> int:
        """A counter of changes, `switches` or `parties`: it rises in the commit that changes one of them."""
        return int(await self.meta(key) or 0)

    async def meta(self, key: str) -> str:
        """A value of the store's own: `schema`, `store_epoch`, `parties` (a counter of changes)."""
        row = await self._row("SELECT value FROM meta WHERE key = ?", key)
        return "" if row is None else str(row[0])

    async def clock_ms(self) -> int | None:
        """The database's own clock; None where the database is a file."""
        return None

    async def newest_envelope(self) -> bytes:
        """The newest statement's, by row number; empty in an empty store."""
        row = await self._row("SELECT envelope FROM statements ORDER BY id DESC LIMIT 1")
        return b"" if row is None else bytes(row[0])

    # --- the play path --------------------------------------------------------------------------------------------

    # Nothing is kept in memory here: what is read is always fresh.

    async def session(self, session_id: str, *, fresh: bool = True) -> Session | None:  # noqa: ARG002
        row = await self._row(_SESSION_BY_ID, session_id)
        return None if row is None else session_from(row)

    async def round(self, round_id: str, *, fresh: bool = True) -> Round | None:  # noqa: ARG002
        row = await self._row(_ROUND_BY_ID, round_id)
        return None if row is None else round_from(row)

    async def answer(self, party: str, method: str, request_id: str) -> Answer | None:
        """The stored answer of a request, its signed statement with it."""
        row = await self._row(_ANSWER, request_id, method, party)
        return None if row is None else Answer(*row)

    async def session_token(self, session_id: str) -> bytes:
        """The sealed token of a session, empty where it has none."""
        row = await self._row("SELECT sealed FROM session_tokens WHERE session_id = ?", session_id)
        return b"" if row is None else bytes(row[0])

    # --- rounds in play, admins, totals ---------------------------------------------------------------------------

    async def open_rounds(self, operator: str, *, after: int, limit: int) -> list[tuple[int, Round]]:
        """Rounds in play, oldest first, above row `after`; those of all operators for an empty name."""
        if operator:
            query = SELECT_ROUND + "WHERE status = 'open' AND operator = ? AND id > ? ORDER BY id LIMIT ?"
            rows = await self._rows(query, operator, after, limit)
        else:
            query = SELECT_ROUND + "WHERE status = 'open' AND id > ? ORDER BY id LIMIT ?"
            rows = await self._rows(query, after, limit)
        return [(row[-1], round_from(row)) for row in rows]

    async def void_proposal(self, round_id: str) -> VoidProposal | None:
        query = "SELECT round_id, reason, party, time_ms FROM voids WHERE round_id = ?"
        row = await self._row(query, round_id)
        return None if row is None else VoidProposal(*row)

    async def switches(self) -> list[SwitchOff]:
        """Everything that is disabled."""
        query = "SELECT scope, subject, reason, party, time_ms FROM switches ORDER BY scope, subject"
        return [SwitchOff(*row) for row in await self._rows(query)]

    async def latches(self, node: str) -> list[LatchSet]:
        """The latched guards of a node."""
        query = "SELECT node, guard, code, time_ms FROM latches WHERE node = ? ORDER BY guard"
        return [LatchSet(*row) for row in await self._rows(query, node)]

    async def events(self, code: str, *, before: int, limit: int) -> list[StatementRow]:
        """Signed events, newest first, below row `before` (0: from the newest). Filtered by code where one is given."""
        query = _STATEMENT + "WHERE s.kind = 'event' AND s.code = ? AND s.id < ? ORDER BY s.id DESC LIMIT ?"
        values: tuple[Any, ...] = (code, before or ROW_MAX, limit)
        if not code:
            query = _STATEMENT + "WHERE s.kind = 'event' AND s.id < ? ORDER BY s.id DESC LIMIT ?"
            values = (before or ROW_MAX, limit)
        return [_statement_from(row) for row in await self._rows(query, *values)]

    async def large_wins(self, limit: int) -> list[LargeWin]:
        """Large wins whose event is not signed yet."""
        query = "SELECT round_id, session_id, won_minor, end_ms FROM large_wins LIMIT ?"
        return [LargeWin(*row) for row in await self._rows(query, limit)]

    async def totals(self, wanted: TotalsFilter, *, after: TotalsKey, limit: int) -> list[TotalsRow]:
        """Running totals by (day, operator, player, game, currency), behind the row `after`."""
        days, rest = (wanted.first_day, wanted.last_day), (after.day, after.operator, after.player, after.game)
        values: tuple[Any, ...]
        if wanted.player:
            query = _TOTALS_OF_PLAYER
            values = (wanted.operator, wanted.player, *days, after.day, after.game, after.currency)
        elif wanted.operator:
            query = _TOTALS_OF_OPERATOR
            values = (wanted.operator, *days, after.day, after.player, after.game, after.currency)
        else:
            query, values = _TOTALS, (*days, *rest, after.currency)
        rows = await self._rows(query, *values, wanted.game, wanted.game, limit)
        return [TotalsRow(TotalsKey(*row[:5]), *row[5:]) for row in rows]

    # --- lists ----------------------------------------------------------------------------------------------------

    async def sessions_of(
        self, operator: str, player: str, *, open_only: bool, before: int, limit: int
    ) -> list[tuple[int, Session]]:
        """An operator's sessions, newest first, with row numbers; those below row `before` (0: from the newest)."""
        if player and open_only:
            where = "WHERE operator = ? AND player = ? AND id < ? AND status <> 'closed'"
        elif player:
            where = "WHERE operator = ? AND player = ? AND id < ?"
        elif open_only:
            where = "WHERE operator = ? AND id < ? AND status <> 'closed'"
        else:
            where = "WHERE operator = ? AND id < ?"
        query = SELECT_SESSION + where + " ORDER BY id DESC LIMIT ?"
        before = before or ROW_MAX
        values = (operator, player, before, limit) if player else (operator, before, limit)
        return [(row[-1], session_from(row)) for row in await self._rows(query, *values)]

    async def rounds_ended(
        self, operator: str, player: str, *, before: tuple[int, int], limit: int
    ) -> list[tuple[int, Round]]:
        """A player's ended rounds, last ended first, below (end time, row number)."""
        query = (
            SELECT_ROUND
            + "WHERE operator = ? AND player = ? AND end_ms > 0 AND (end_ms, id) < (?, ?)"
            + " ORDER BY end_ms DESC, id DESC LIMIT ?"
        )
        rows = await self._rows(query, operator, player, *before, limit)
        return [(row[-1], round_from(row)) for row in rows]

    async def rounds_started(self, operator: str, player: str, first_ms: int, last_ms: int, limit: int) -> list[Round]:
        """A player's rounds that started within the two times, ends included."""
        query = (
            SELECT_ROUND + "WHERE operator = ? AND player = ? AND start_ms BETWEEN ? AND ? ORDER BY start_ms LIMIT ?"
        )
        return [round_from(row) for row in await self._rows(query, operator, player, first_ms, last_ms, limit)]

    async def any_session_open(self) -> bool:
        """Whether a chain of some session has not come to its session_close."""
        query = "SELECT 1 FROM sessions WHERE status <> 'closed' AND link_no > 0 LIMIT 1"
        return await self._row(query) is not None

    # --- statements -----------------------------------------------------------------------------------------------

    async def statement_of_hash(self, hash_: bytes) -> StatementRow | None:
        row = await self._row(_STATEMENT + "WHERE s.hash = ?", hash_)
        return None if row is None else _statement_from(row)

    async def statements_of_instance(
        self, instance: str, first_no: int, last_no: int, limit: int
    ) -> list[StatementRow]:
        query = _STATEMENT + "WHERE s.instance = ? AND s.statement_no BETWEEN ? AND ? ORDER BY s.statement_no LIMIT ?"
        return [_statement_from(row) for row in await self._rows(query, instance, first_no, last_no, limit)]

    async def statements_of_session(self, session_id: str, after_link: int, limit: int) -> list[StatementRow]:
        query = _STATEMENT + "WHERE s.session_id = ? AND s.link_no > ? AND s.link_no > 0 ORDER BY s.link_no LIMIT ?"
        return [_statement_from(row) for row in await self._rows(query, session_id, after_link, limit)]

    async def statements_of_round(self, round_id: str, after_id: int, limit: int) -> list[StatementRow]:
        query = _STATEMENT + "WHERE s.round_id = ? AND s.seat_no > 0 AND s.id > ? ORDER BY s.id LIMIT ?"
        return [_statement_from(row) for row in await self._rows(query, round_id, after_id, limit)]

    async def round_envelopes(self, round_id: str) -> tuple[bytes, bytes]:
        """The signed opening and final of a round; empty where not signed yet."""
        # The last condition is its index's.
        query = "SELECT kind, envelope FROM statements WHERE round_id = ? AND seat_no = 1 AND seat_no > 0"
        found = dict(await self._rows(query, round_id))
        return found.get("round_opening", b""), found.get("round_final", b"")

    async def statements_in_order(self, after_id: int = 0) -> AsyncIterator[StatementRow]:
        """All statements in commit order: a stream, one row in memory at a time."""
        async for row in self._stream(_STATEMENT + "WHERE s.id > ? ORDER BY s.id", after_id):
            yield _statement_from(row)

    async def artifact(self, sha256: str) -> bytes | None:
        """The content of an artifact by its hex SHA-256."""
        row = await self._row("SELECT content FROM artifacts WHERE sha256 = ?", sha256)
        return None if row is None else bytes(row[0])

    # --- instances ------------------------------------------------------------------------------------------------

    async def instances(self, *, alive_only: bool) -> list[InstanceRow]:
        query = (
            "SELECT instance, node, boot_no, worker, alive, statement_no, draw_no, start_ms FROM instances"
            " WHERE alive >= ? ORDER BY start_ms, instance"
        )
        rows = await self._rows(query, int(alive_only))
        return [instance_from(row) for row in rows]

    async def start_of(self, instance: str) -> bytes:
        """The envelope of its statement 1."""
        query = "SELECT envelope FROM statements WHERE instance = ? AND statement_no = 1"
        envelope: bytes = (await self._row(query, instance))[0]
        return envelope

    async def previous_boot(self, node: str, worker: int) -> InstanceRow | None:
        """The newest instance of a node's worker."""
        query = (
            "SELECT instance, node, boot_no, worker, alive, statement_no, draw_no, start_ms FROM instances"
            " WHERE node = ? AND worker = ? ORDER BY boot_no DESC LIMIT 1"
        )
        row = await self._row(query, node, worker)
        return None if row is None else instance_from(row)


class SqliteReads(Reads):
    """Queries over one read-only connection."""

    def __init__(self, reader: sqlite3.Connection) -> None:
        self._reader = reader

    async def _rows(self, query: str, *values: Any) -> Sequence[Any]:
        return self._reader.execute(query, values).fetchall()

    async def _stream(self, query: str, *values: Any) -> AsyncIterator[Any]:
        for row in self._reader.execute(query, values):
            yield row

    async def close(self) -> None:
        self._reader.close()
