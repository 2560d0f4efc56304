"""What moves ended rounds from the store into files: which sessions may go, the writing of a part, the deletion.

A session goes whole, after its close: openings, finals, transfers, free bets, and the rows of its rounds. Its own row,
the links that open, pay and close it, private blocks, operations, answers, totals and the list of finals stay. The
format is that of `rgs.store.archive`.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Final

from rgs.core.rounds import Round
from rgs.core.statements import ExportLine, format_line
from rgs.store.archive import (
    FORMAT,
    INDEX_FILE,
    INDEX_SCHEMA,
    INSERT_LINE,
    INSERT_ROUND,
    MOVED_KINDS,
    STATEMENTS_FILE,
    Bounds,
    archived_row,
    round_digest,
)
from rgs.store.changes import StoreRefusedError
from rgs.store.queries import Queries
from rgs.store.statement_reads import StatementRow
from rgs.store.tables import ROW_MAX

NO_ROUNDS: Final = "no_rounds"
STAYS: Final = {
    "table": "played at a table of players",
    "open": "not closed",
    "young": "closed after the date",
    "operation": "money is on its way",
    "report": "a report to the regulator is queued or held",
    "deck": "a round has a deck that was never revealed",
    "large_win": "a large win is not signed yet",
    "unread": "the lists of finals or the watch over returns have not read it",
    "newest": "it has the newest statement of an instance",
}
"""Why a session with rounds stays in the store."""
DUE: Final = """
    SELECT o.session_id, o.open_ms, o.rounds, o.link_no, CASE
    WHEN NOT EXISTS (SELECT 1 FROM rounds r WHERE r.session_id = o.session_id) THEN 'no_rounds'
    WHEN o.table_id <> '' THEN 'table'
    WHEN o.status <> 'closed' OR o.open_round_id <> '' THEN 'open'
    WHEN o.close_ms >= ? THEN 'young'
    WHEN o.pending_operation <> ''
    OR EXISTS (SELECT 1 FROM operations p WHERE p.session_id = o.session_id AND p.status = 'pending'
    AND p.kind <> 'credit')
    OR EXISTS (SELECT 1 FROM operations p WHERE p.session_id = o.session_id AND p.status = 'pending'
    AND p.kind = 'credit') THEN 'operation'
    WHEN EXISTS (SELECT 1 FROM stage_reports p WHERE p.session_id = o.session_id)
    OR EXISTS (SELECT 1 FROM held_reports h WHERE h.kind = 'stages' AND h.subject = o.session_id) THEN 'report'
    WHEN EXISTS (SELECT 1 FROM large_wins w WHERE w.session_id = o.session_id) THEN 'large_win'
    WHEN COALESCE((SELECT s.id FROM statements s WHERE s.session_id = o.session_id AND s.link_no = o.link_no
    AND s.link_no > 0), ?) >= ?
    OR EXISTS (SELECT 1 FROM returns_late w JOIN rounds r ON r.round_id = w.round_id
    WHERE r.session_id = o.session_id) THEN 'unread'
    ELSE '' END FROM sessions o WHERE o.session_id > ? AND o.session_id < ? ORDER BY o.session_id LIMIT ?
"""
FIRST_UNREAD: Final = """
    SELECT min(first_id) FROM (
    SELECT (SELECT s.id FROM statements s WHERE s.instance = i.instance
    AND s.statement_no = COALESCE(r.statement_no, 0) + 1) AS first_id
    FROM instances i LEFT JOIN finals_read r ON r.instance = i.instance
    WHERE i.statement_no > COALESCE(r.statement_no, 0)
    UNION ALL SELECT (SELECT s.id FROM statements s WHERE s.instance = i.instance
    AND s.statement_no = COALESCE(r.statement_no, 0) + 1) AS first_id
    FROM instances i LEFT JOIN returns_read r ON r.instance = i.instance
    WHERE i.statement_no > COALESCE(r.statement_no, 0)
    ) AS unread
"""
"""An instance's rows rise with its numbers: what lies below the first unread row of every instance is read."""
NEWEST: Final = """
    SELECT (SELECT s.session_id FROM statements s WHERE s.instance = i.instance AND s.statement_no = i.statement_no)
    FROM instances i
"""
HAS_DECK: Final = "SELECT 1 FROM rounds WHERE session_id = ? AND (status = 'open' OR sealed <> x'') LIMIT 1"
DROP_STATEMENTS: Final = (
    "DELETE FROM statements WHERE session_id = ? AND link_no > 0"
    " AND kind IN ('round_opening', 'round_final', 'transfer', 'free_bet')"
)
DROP_ROUNDS: Final = "DELETE FROM rounds WHERE session_id = ?"
_WORK: Final = """
    CREATE TABLE work (id INTEGER PRIMARY KEY, kind TEXT, instance TEXT, statement_no INTEGER, session_id TEXT,
    link_no INTEGER, round_id TEXT, hash BLOB, envelope BLOB)
"""
_BOUNDS: Final = """
    SELECT min(l.id), max(l.id), min(l.session_id), max(l.session_id), count(*), count(DISTINCT l.session_id),
    (SELECT min(round_id) FROM rounds), (SELECT max(round_id) FROM rounds), (SELECT count(*) FROM rounds) FROM lines l
"""
_FAST: Final = ("journal_mode = OFF", "synchronous = OFF", "cache_size = -65536")
"""Of files that nobody knows yet: they are made durable once, at their end."""


@dataclass(frozen=True, slots=True)
class SessionToArchive:
    """A session; `why` is a key of STAYS or NO_ROUNDS, empty where it may be archived."""

    session_id: str
    open_ms: int
    rounds: int
    link_no: int
    why: str


@dataclass(frozen=True, slots=True)
class Horizon:
    """What a run asks once: the first row that not every reader has read, and the sessions with the newest statement
    of an instance. Both only move on.
    """

    first_unread: int
    newest: frozenset[str]


class ArchivingReads(Queries):
    """The queries, once for both databases."""

    async def archive_horizon(self) -> Horizon:
        """How far sessions may be archived now."""
        (first,) = await self._row(FIRST_UNREAD)
        newest = frozenset(row[0] for row in await self._rows(NEWEST) if row[0])
        return Horizon(ROW_MAX if first is None else first, newest)

    async def sessions_to_archive(
        self, horizon: Horizon, after: str, before: str, closed_before_ms: int, limit: int
    ) -> list[SessionToArchive]:
        """Sessions by their ids between two, and which of them may be archived."""
        values = (closed_before_ms, ROW_MAX, horizon.first_unread, after, before, limit)
        found = [SessionToArchive(*row) for row in await self._rows(DUE, *values)]
        return [replace(one, why=await self._kept(horizon, one.session_id)) if not one.why else one for one in found]

    async def _kept(self, horizon: Horizon, session_id: str) -> str:
        if session_id in horizon.newest:
            return "newest"
        return "" if await self._row(HAS_DECK, session_id) is None else "deck"


def verify_dropped(session_id: str, expected: tuple[int, int], found: tuple[int, int]) -> None:
    """StoreRefusedError unless all rows of a session were deleted, or there were none any more."""
    if found not in (expected, (0, 0)):
        raise StoreRefusedError(
            f"the store has {found[0]} statements and {found[1]} rounds of session {session_id}, its archive"
            f" {expected[0]} and {expected[1]}: nothing was deleted",
            session_id=session_id,
            value=f"{found[0]}, {found[1]}",
            limit=f"{expected[0]}, {expected[1]}",
        )


class PartWriter:
    """Writes a part into a new folder: rows in any order, then `finish`. Memory does not grow with the part."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._work_path = folder / "work.db"
        self._work, self._index = self._made(self._work_path), self._made(folder / INDEX_FILE)
        self._work.execute(_WORK)
        for text in INDEX_SCHEMA:
            self._index.execute(text)
        self._work.execute("BEGIN")
        self._index.execute("BEGIN")

    @staticmethod
    def _made(path: Path) -> sqlite3.Connection:
        path.touch(mode=0o600, exist_ok=False)
        db = sqlite3.connect(path, isolation_level=None)
        for setting in _FAST:
            db.execute("PRAGMA " + setting)
        return db

    def add(self, row: StatementRow) -> None:
        """A link of a session, or the start of an instance."""
        values = (row.id, row.kind, row.instance, row.statement_no, row.session_id, row.link_no, row.round_id)
        self._work.execute("INSERT INTO work VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*values, row.hash, row.envelope))

    def add_round(self, number: int, round_: Round) -> None:
        """The row of a round."""
        row = archived_row(round_)
        self._index.execute(INSERT_ROUND, (number, round_digest(row), *row))

    def finish(self, head: Iterable[ExportLine]) -> Bounds:
        """Write the statements in commit order behind the lines that say what the file holds; all is durable then."""
        digest = sha256()
        path = self._folder / STATEMENTS_FILE
        path.touch(mode=0o600, exist_ok=False)
        with path.open("wb") as file:

            def write(data: bytes) -> None:
                digest.update(data)
                digest.update(b"\n")
                file.write(data)
                file.write(b"\n")

            for line in head:
                write(format_line(line))
            for *values, hash_, envelope in self._work.execute("SELECT * FROM work ORDER BY id"):
                data = format_line(ExportLine(envelope, None))
                if values[1] in MOVED_KINDS:
                    seat_no = 1 if values[1].startswith("round_") else 0
                    self._index.execute(INSERT_LINE, (*values, seat_no, hash_, file.tell(), len(data)))
                write(data)
            file.flush()
            os.fsync(file.fileno())
        bounds = self._bounds(digest.hexdigest())
        self._index.executemany("INSERT INTO meta VALUES (?, ?)", [("format", FORMAT), ("bounds", bounds.format())])
        self._index.execute("COMMIT")
        self.close()
        self._work_path.unlink()
        with (self._folder / INDEX_FILE).open("rb") as index:
            os.fsync(index.fileno())
        return bounds

    def _bounds(self, digest: str) -> Bounds:
        with closing(self._index.execute(_BOUNDS)) as found:
            low, high, first, last, statements, sessions, first_round, last_round, rounds = found.fetchone()
        text = "SELECT instance, min(statement_no), max(statement_no) FROM lines GROUP BY instance"
        instances: dict[str, Sequence[int]] = {name: (least, most) for name, least, most in self._index.execute(text)}
        counts = (statements, rounds, sessions)
        return Bounds((low, high), (first_round, last_round), (first, last), instances, *counts, digest)

    def close(self) -> None:
        self._work.close()
        self._index.close()
