"""What moves ended rounds from the store into files: which sessions may go, the writing of a part, the deletion.

A session goes whole, after its close: openings, finals, transfers, free bets, and the rows of its rounds. Its own row,
the links that open, pay and close it, private blocks, operations, answers, totals and the list of finals stay. What the
seats of a table's round share stays until the last of them goes. The format is that of `rgs.store.archive`.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Final

from rgs.core.rounds import Round
from rgs.core.statements import ExportLine, format_line
from rgs.core.tables.rows import TableRound
from rgs.core.tables.tree import path_nodes
from rgs.store.archive import (
    FORMAT,
    INDEX_FILE,
    INDEX_SCHEMA,
    INSERT_LINE,
    INSERT_ROUND,
    INSERT_TABLE_ROUND,
    MOVED_KINDS,
    OF_ALL_SEATS,
    STATEMENTS_FILE,
    Bounds,
    archived_row,
    row_digest,
)
from rgs.store.changes import StoreRefusedError
from rgs.store.queries import Queries
from rgs.store.statement_reads import StatementRow
from rgs.store.table_rows import TABLE_ROUNDS
from rgs.store.tables import ROW_MAX

NO_ROUNDS: Final = "no_rounds"
STAYS: Final = {
    "open": "not closed",
    "young": "closed after the date",
    "operation": "money is on its way",
    "report": "a report to the regulator is queued or held",
    "deck": "a round has a deck that was never revealed",
    "large_win": "a large win is not signed yet",
    "unread": "the lists of finals or the watch over returns have not read it",
    "table": "it has a seat in the newest round of a table",
    "newest": "it has the newest statement of an instance",
}
"""Why a session with rounds stays in the store."""
DUE: Final = """
    SELECT o.session_id, o.open_ms, o.rounds, o.link_no, o.table_id, CASE
    WHEN NOT EXISTS (SELECT 1 FROM rounds r WHERE r.session_id = o.session_id) THEN 'no_rounds'
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
    WHEN o.table_id <> '' AND EXISTS (SELECT 1 FROM tables t JOIN rounds r ON r.round_id = t.round_id
    AND r.session_id = o.session_id AND r.table_id <> '' WHERE t.table_id = o.table_id) THEN 'table'
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
    SELECT (SELECT s.session_id FROM statements s WHERE s.instance = i.instance AND s.statement_no = i.statement_no),
    (SELECT s.round_id FROM statements s WHERE s.instance = i.instance AND s.statement_no = i.statement_no)
    FROM instances i
"""
HAS_DECK: Final = "SELECT 1 FROM rounds WHERE session_id = ? AND (status = 'open' OR sealed <> x'') LIMIT 1"
HAS_TABLE_DECK: Final = """
    SELECT 1 FROM rounds r WHERE r.session_id = ? AND r.table_id <> '' AND COALESCE((SELECT 1 FROM table_rounds t
    WHERE t.round_id = r.round_id AND (t.status = 'open' OR t.sealed <> x'')), 0) = 1 LIMIT 1
"""
PLAYED_ONE_OF: Final = """
    SELECT 1 FROM rounds WHERE session_id = ? AND table_id <> '' AND round_id IN (SELECT value FROM json_each(?))
    LIMIT 1
"""
HAS_MORE_SEATS: Final = "SELECT 1 FROM rounds WHERE round_id = ? ORDER BY seat_no LIMIT 1 OFFSET ?"
DROP_STATEMENTS: Final = (
    "DELETE FROM statements WHERE session_id = ? AND link_no > 0"
    " AND kind IN ('round_opening', 'round_final', 'seat_opening', 'seat_final', 'transfer', 'free_bet')"
)
DROP_ROUNDS: Final = "DELETE FROM rounds WHERE session_id = ?"
DROP_SHARED: Final = (
    "DELETE FROM statements WHERE hash = ? AND kind IN ('table_round', 'table_seats', 'table_deal', 'table_final')"
)
DROP_TABLE_ROUND: Final = """
    DELETE FROM table_rounds WHERE round_id = ? AND status <> 'open' AND sealed = x''
    AND NOT EXISTS (SELECT 1 FROM rounds r WHERE r.round_id = table_rounds.round_id)
"""
DROPS: Final = (DROP_STATEMENTS, DROP_ROUNDS, DROP_SHARED, DROP_TABLE_ROUND)
_WORK: Final = """
    CREATE TABLE work (id INTEGER PRIMARY KEY, kind TEXT, instance TEXT, statement_no INTEGER, session_id TEXT,
    link_no INTEGER, round_id TEXT, hash BLOB, envelope BLOB)
"""
_BOUNDS: Final = """
    SELECT min(l.id), max(l.id), min(l.session_id) FILTER (WHERE l.link_no > 0), max(l.session_id), count(*),
    count(DISTINCT l.session_id) FILTER (WHERE l.link_no > 0),
    (SELECT min(round_id) FROM rounds), (SELECT max(round_id) FROM rounds), (SELECT count(*) FROM rounds),
    (SELECT count(*) FROM table_rounds) FROM lines l
"""
_SEATED: Final = """
    SELECT round_id, count(*) FROM rounds WHERE table_id <> '' AND round_id > ? GROUP BY round_id ORDER BY round_id
    LIMIT ?
"""
_HELD: Final = """
    SELECT min(statement_no), max(statement_no) FROM (
    SELECT statement_no, statement_no - row_number() OVER (ORDER BY statement_no) AS held FROM work
    WHERE instance = ? AND kind <> 'instance_start') GROUP BY held ORDER BY held
"""
"""Numbers as ranges: those of one range are as far from their place among all numbers."""
_FAST: Final = ("journal_mode = OFF", "synchronous = OFF", "cache_size = -65536")
"""Of files that nobody knows yet: they are made durable once, at their end."""


@dataclass(frozen=True, slots=True)
class SessionToArchive:
    """A session, empty `table_id` for solo play; `why` is a key of STAYS or NO_ROUNDS, empty where it may be
    archived.
    """

    session_id: str
    open_ms: int
    rounds: int
    link_no: int
    table_id: str
    why: str


@dataclass(frozen=True, slots=True)
class Horizon:
    """What a run asks once: the first row that not every reader has read, and the sessions and the rounds of tables
    with the newest statement of an instance. All only move on.
    """

    first_unread: int
    newest: frozenset[str]
    newest_rounds: frozenset[str]


@dataclass(frozen=True, slots=True)
class Gone:
    """What leaves the store at once, and how much it is: the rounds of a session; or what the seats of a table's round
    have `shared`, by its hashes, once no seat is left.
    """

    name: str
    statements: int
    rounds: int
    shared: tuple[bytes, ...] = ()

    @property
    def steps(self) -> tuple[tuple[str, str | bytes], ...]:
        """The texts that delete it, each with its parameter. The last one deletes rows of rounds."""
        if not self.shared:
            return (DROP_STATEMENTS, self.name), (DROP_ROUNDS, self.name)
        return (*((DROP_SHARED, hash_) for hash_ in self.shared), (DROP_TABLE_ROUND, self.name))


class ArchivingReads(Queries):
    """The queries, once for both databases."""

    async def archive_horizon(self) -> Horizon:
        """How far sessions may be archived now."""
        (first,) = await self._row(FIRST_UNREAD)
        newest = await self._rows(NEWEST)
        sessions = frozenset(session_id for session_id, _ in newest if session_id)
        rounds = frozenset(round_id for session_id, round_id in newest if round_id and not session_id)
        return Horizon(ROW_MAX if first is None else first, sessions, rounds)

    async def sessions_to_archive(
        self, horizon: Horizon, after: str, before: str, closed_before_ms: int, limit: int
    ) -> list[SessionToArchive]:
        """Sessions by their ids between two, and which of them may be archived."""
        values = (closed_before_ms, ROW_MAX, horizon.first_unread, after, before, limit)
        found = [SessionToArchive(*row) for row in await self._rows(DUE, *values)]
        return [replace(one, why=await self._kept(horizon, one)) if not one.why else one for one in found]

    async def _kept(self, horizon: Horizon, session: SessionToArchive) -> str:
        name = session.session_id
        if name in horizon.newest:
            return "newest"
        if await self._row(HAS_DECK, name) is not None:
            return "deck"
        if not session.table_id:
            return ""
        newest = json.dumps(sorted(horizon.newest_rounds))
        if horizon.newest_rounds and await self._row(PLAYED_ONE_OF, name, newest) is not None:
            return "newest"
        return "" if await self._row(HAS_TABLE_DECK, name) is None else "deck"

    async def has_more_seats(self, round_id: str, seats: int) -> bool:
        """Whether the store has more than so many seats of a round."""
        return await self._row(HAS_MORE_SEATS, round_id, seats) is not None


def verify_dropped(gone: Gone, counts: Sequence[int]) -> None:
    """StoreRefusedError unless the steps of a deletion have deleted all, or there was nothing any more."""
    expected, found = (gone.statements, gone.rounds), (sum(counts[:-1]), counts[-1])
    if found not in (expected, (0, 0)):
        what = "what the seats share of round" if gone.shared else "session"
        raise StoreRefusedError(
            f"the store has {found[0]} statements and {found[1]} rounds of {what} {gone.name}, its archive"
            f" {expected[0]} and {expected[1]}: nothing was deleted",
            subject=gone.name,
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
        """A link of a session, what seats share, or the start of an instance."""
        values = (row.id, row.kind, row.instance, row.statement_no, row.session_id, row.link_no, row.round_id)
        self._work.execute("INSERT INTO work VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*values, row.hash, row.envelope))

    def add_round(self, number: int, round_: Round) -> None:
        """The row of a round."""
        row = archived_row(round_)
        self._index.execute(INSERT_ROUND, (number, row_digest(row), *row))

    def add_table_round(self, round_: TableRound) -> None:
        """The row of a table's round of which the last seat is here: what its seats share leaves the store, too."""
        row = TABLE_ROUNDS.row(round_)
        self._index.execute(INSERT_TABLE_ROUND, (row_digest(row), *row))

    def seated_rounds(self, after: str, limit: int) -> list[tuple[str, int]]:
        """The rounds of tables by their ids, above `after`, each with the number of its seats here."""
        return self._index.execute(_SEATED, (after, limit)).fetchall()

    def held(self) -> dict[str, Iterator[tuple[int, int]]]:
        """The statement numbers of the part by instance, as ranges that do not touch."""
        instances = self._work.execute("SELECT DISTINCT instance FROM work").fetchall()
        return {name: self._work.execute(_HELD, (name,)) for (name,) in instances}

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
                kind, session_id, round_id = values[1], values[4], values[6]
                seat_no, nodes = self._seat(kind, session_id, round_id)
                data = format_line(ExportLine(envelope, None, nodes if kind == "seat_opening" else ()))
                if kind in MOVED_KINDS or (kind in OF_ALL_SEATS and self._leaves(round_id)):
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

    def _seat(self, kind: str, session_id: str, round_id: str) -> tuple[int, tuple[bytes, ...]]:
        """The number of the seat that a statement is of, 0 for none, and its path at a table. StoreRefusedError where
        its row is not here.
        """
        if not kind.startswith("seat_"):
            return int(kind.startswith("round_")), ()
        where = "SELECT seat_no, path FROM rounds WHERE session_id = ? AND round_id = ? AND table_id <> ''"
        found = self._index.execute(where, (session_id, round_id)).fetchone()
        if found is None:
            raise StoreRefusedError(
                f"session {session_id} has a {kind} of round {round_id}, and the store has no row of its seat: nothing"
                " of it is moved; examine the store",
                subject=round_id,
            )
        return found[0], path_nodes(found[1])

    def _leaves(self, round_id: str) -> bool:
        found = self._index.execute("SELECT 1 FROM table_rounds WHERE round_id = ?", (round_id,))
        return found.fetchone() is not None

    def _bounds(self, digest: str) -> Bounds:
        with closing(self._index.execute(_BOUNDS)) as found:
            low, high, first, last, statements, sessions, first_round, last_round, rounds, shared = found.fetchone()
        text = "SELECT instance, min(statement_no), max(statement_no) FROM lines GROUP BY instance"
        instances: dict[str, Sequence[int]] = {name: (least, most) for name, least, most in self._index.execute(text)}
        counts = (statements, rounds, sessions)
        return Bounds((low, high), (first_round, last_round), (first, last), instances, *counts, digest, shared)

    def close(self) -> None:
        self._work.close()
        self._index.close()
