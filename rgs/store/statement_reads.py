"""Signed statements as they are read: by hash, number, session, round, and all in order.

Where a store has an archive, statements that were moved there are read as if they were in the store. It is asked only
where the store shows a gap: the first and the last link of a session, and the newest statement of an instance, never
leave the store (docs/retention.md). The seats of a table's round may stand in both.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rgs.store.archive import ArchivedLine
from rgs.store.archived_reads import ArchivedReads
from rgs.store.table_rows import OF_OPERATOR_SEATS
from rgs.store.tables import ROW_MAX


@dataclass(frozen=True, slots=True)
class StatementRow:
    """A statement as stored; `private` is canonical JSON {"block":…,"salt":…}, empty where there is none (any more)."""

    id: int
    kind: str
    instance: str
    statement_no: int
    session_id: str
    link_no: int
    round_id: str
    hash: bytes
    envelope: bytes
    private: bytes


_STATEMENT: Final = (
    "SELECT s.id, s.kind, s.instance, s.statement_no, s.session_id, s.link_no, s.round_id, s.hash, s.envelope,"
    " p.private"
    " FROM statements s LEFT JOIN privates p ON p.instance = s.instance AND p.statement_no = s.statement_no "
)


_SOLO: Final = ("round_opening", "round_final")


def _statement_from(row: Any) -> StatementRow:
    return StatementRow(*(*row[:-1], row[-1] or b""))


class StatementReads(ArchivedReads):
    """The queries, once for both databases."""

    @abstractmethod
    def _stream(self, query: str, *values: Any) -> AsyncIterator[Any]:
        """Rows of a long answer, a few in memory at a time."""

    async def events(self, code: str, *, before: int, limit: int) -> list[StatementRow]:
        """Signed events, newest first, below row `before` (0: from the newest). Filtered by code where one is given."""
        query = _STATEMENT + "WHERE s.kind = 'event' AND s.code = ? AND s.id < ? ORDER BY s.id DESC LIMIT ?"
        values: tuple[Any, ...] = (code, before or ROW_MAX, limit)
        if not code:
            query = _STATEMENT + "WHERE s.kind = 'event' AND s.id < ? ORDER BY s.id DESC LIMIT ?"
            values = (before or ROW_MAX, limit)
        return [_statement_from(row) for row in await self._rows(query, *values)]

    async def statement_of_hash(self, hash_: bytes, *, round_id: str = "") -> StatementRow | None:
        """The statement; an archived one of a round that is named is found without a look into every part."""
        row = await self._row(_STATEMENT + "WHERE s.hash = ?", hash_)
        if row is not None or self.archive is None:
            return None if row is None else _statement_from(row)
        line = await self.archive.statement_of_hash(hash_, round_id)
        return None if line is None else _archived(line)

    async def statements_of_instance(
        self, instance: str, first_no: int, last_no: int, limit: int
    ) -> list[StatementRow]:
        query = _STATEMENT + "WHERE s.instance = ? AND s.statement_no BETWEEN ? AND ? ORDER BY s.statement_no LIMIT ?"
        rows = [_statement_from(row) for row in await self._rows(query, instance, first_no, last_no, limit)]
        if self.archive is None or _follow([row.statement_no for row in rows], first_no, last_no, limit):
            return rows
        moved = await self.archive.statements_of_instance(instance, first_no, last_no, limit)
        found = {row.statement_no: row for row in (*map(_archived, moved), *rows)}
        return [found[number] for number in sorted(found)][:limit]

    async def statements_of_session(self, session_id: str, after_link: int, limit: int) -> list[StatementRow]:
        query = _STATEMENT + "WHERE s.session_id = ? AND s.link_no > ? AND s.link_no > 0 ORDER BY s.link_no LIMIT ?"
        rows = [_statement_from(row) for row in await self._rows(query, session_id, after_link, limit)]
        # The last link of a session is its session_close, which stays: nothing is archived behind the rows.
        if self.archive is None or not rows or rows[-1].link_no == after_link + len(rows):
            return rows
        moved = await self.archive.statements_of_session(session_id, after_link, limit)
        found = {row.link_no: row for row in (*map(_archived, moved), *rows)}
        return [found[number] for number in sorted(found)][:limit]

    async def statements_of_round(self, round_id: str, after_id: int, limit: int) -> list[StatementRow]:
        query = _STATEMENT + "WHERE s.round_id = ? AND s.seat_no > 0 AND s.id > ? ORDER BY s.id LIMIT ?"
        rows = [_statement_from(row) for row in await self._rows(query, round_id, after_id, limit)]
        return await self._with_moved(rows, round_id, after_id, limit)

    async def statements_of_operator(
        self, round_id: str, operator: str, after_id: int, limit: int
    ) -> list[StatementRow]:
        """Those of an operator's seats in a round; the others are not counted."""
        query = _STATEMENT + OF_OPERATOR_SEATS + " AND s.id > ? ORDER BY s.id LIMIT ?"
        values = (*(round_id, operator) * 2, round_id, after_id, limit)
        rows = [_statement_from(row) for row in await self._rows(query, *values)]
        return await self._with_moved(rows, round_id, after_id, limit, operator)

    async def _with_moved(
        self, rows: list[StatementRow], round_id: str, after_id: int, limit: int, operator: str = ""
    ) -> list[StatementRow]:
        """Rows of a round, and what of it is archived: all of a round of solo play, or single seats of a table's."""
        if rows and rows[0].kind in _SOLO:
            return rows
        archive = await self._archive_of(round_id)
        if archive is None:
            return rows
        moved = await archive.statements_of_round(round_id, after_id, limit, operator)
        found = {(row.instance, row.statement_no): row for row in (*map(_archived, moved), *rows)}
        return sorted(found.values(), key=lambda row: row.id)[:limit]

    async def round_envelopes(self, round_id: str, seat_no: int = 1) -> tuple[bytes, bytes]:
        """The signed opening and final of a seat in a round; empty where not signed yet."""
        # The last condition is its index's.
        # As a range: with `=` SQLite takes `> 0` for its partial index, and walks all seats of a table.
        query = (
            "SELECT kind, envelope FROM statements WHERE round_id = ? AND seat_no >= ? AND seat_no <= ? AND seat_no > 0"
        )
        found = dict(await self._rows(query, round_id, seat_no, seat_no))
        if not found and self.archive is not None:
            lines = await self.archive.statements_of_seat(round_id, seat_no)
            found = {line.kind: line.envelope for line in lines}
        opening, final = (
            next((found[kind] for kind in kinds if kind in found), b"")
            for kinds in (("round_opening", "seat_opening"), ("round_final", "seat_final"))
        )
        return opening, final

    async def statements_in_order(self, after_id: int = 0) -> AsyncIterator[StatementRow]:
        """All statements, a bounded number of rows in memory at a time: those of an instance in the order of their
        numbers, those of a session in that of its links.
        """
        rows = self._kept_in_order(after_id)
        if self.archive is not None:
            rows = _merged(rows, self.archive.statements_in_order(after_id))
        async for row in rows:
            yield row

    async def _kept_in_order(self, after_id: int) -> AsyncIterator[StatementRow]:
        async for row in self._stream(_STATEMENT + "WHERE s.id > ? ORDER BY s.id", after_id):
            yield _statement_from(row)


def _follow(numbers: Sequence[int], first: int, last: int, limit: int) -> bool:
    """Whether these are all numbers from the first on, as many as were asked for."""
    return len(numbers) >= min(limit, last - first + 1) and (not numbers or numbers[-1] == first + len(numbers) - 1)


def _archived(line: ArchivedLine) -> StatementRow:
    """As the store had it: what is archived has no private block."""
    return StatementRow(*line[:7], line.hash, line.envelope, b"")


async def _merged(kept: AsyncIterator[StatementRow], moved: AsyncIterator[ArchivedLine]) -> AsyncIterator[StatementRow]:
    """Both by row number. A restored store may have again what was moved: each statement comes once."""
    last: dict[str, int] = {}
    line = await anext(moved, None)
    async for row in kept:
        while line is not None and line.id < row.id:
            if line.statement_no > last.get(line.instance, 0):
                last[line.instance] = line.statement_no
                yield _archived(line)
            line = await anext(moved, None)
        if row.statement_no > last.get(row.instance, 0):
            last[row.instance] = row.statement_no
            yield row
