"""The import of what the log has and a restored store has not, in one transaction (docs/keys.md). A store file only.

From the import until the recovery is signed the store is marked; a server refuses a marked store. Refuses a store that
a server holds, and rows that are there already. A database is restored to a point in time by its own means.
"""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rgs.core.rounds import Round
from rgs.core.sessions import Session
from rgs.store.changes import DayCount, StageReport, StoreRefusedError
from rgs.store.interface import RECOVERING
from rgs.store.rows import (
    INSERT_DAY,
    INSERT_REPORT,
    INSERT_ROUND,
    INSERT_SESSION,
    INSERT_TOTALS,
    UPDATE_ROUND,
    UPDATE_SESSION,
    day_row,
    report_insert,
    round_insert,
    round_update,
    session_insert,
    session_update,
    totals_row,
)
from rgs.store.sqlite import INSERT_ARTIFACT, INSERT_STATEMENT, connect, holding, verify_schema

_INSERT_INSTANCE: Final = (
    "INSERT INTO instances (instance, node, boot_no, worker, alive, statement_no, draw_no, start_ms, end_ms)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (instance) DO UPDATE SET alive = min(alive, excluded.alive),"
    " statement_no = excluded.statement_no, draw_no = max(draw_no, excluded.draw_no), end_ms = excluded.end_ms"
)
_END_AFFAIRS: Final = (
    "UPDATE affairs SET status = CASE kind WHEN ? THEN 'done' ELSE 'undone' END"
    " WHERE session_id = ? AND status = 'pending' AND kind <> 'return'"
)
_MARK: Final = "INSERT OR REPLACE INTO meta (key, value) SELECT ?, value FROM meta WHERE key = 'store_epoch'"


@dataclass(slots=True)
class InstanceState:
    """How an instance stands behind the gap."""

    node: str
    boot_no: int
    worker: int
    start_ms: int
    statement_no: int
    draw_no: int
    end_ms: int = 0
    """0 where nothing says that it has ended."""


@dataclass(slots=True)
class Import:
    """All rows of a gap: sessions and rounds as they stand behind it."""

    instances: dict[str, InstanceState] = field(default_factory=dict)
    statements: list[tuple[Any, ...]] = field(default_factory=list)
    """Rows of the table, in the order of the log."""
    artifacts: list[tuple[str, str, bytes]] = field(default_factory=list)
    new_sessions: dict[str, Session] = field(default_factory=dict)
    sessions: dict[str, Session] = field(default_factory=dict)
    new_rounds: dict[str, Round] = field(default_factory=dict)
    rounds: dict[str, Round] = field(default_factory=dict)
    ended: list[tuple[Round, str]] = field(default_factory=list)
    """Rounds that end in the gap, with their currency."""
    reports: list[tuple[StageReport, str]] = field(default_factory=list)
    days: list[DayCount] = field(default_factory=list)
    affairs: list[tuple[str, str]] = field(default_factory=list)
    """(kind of affair that its first link ends, session)."""


def import_gap(path: Path, gap: Import) -> None:
    """Put it all in and mark the store; StoreRefusedError, and nothing has changed."""
    with holding(path), contextlib.closing(connect(path)) as db:
        verify_schema(db, path)
        db.execute("BEGIN IMMEDIATE")
        try:
            for text, rows in _rows_of(gap):
                db.executemany(text, rows)
            db.execute(_MARK, (RECOVERING,))
            db.execute("COMMIT")
        except sqlite3.IntegrityError as error:
            db.execute("ROLLBACK")
            raise StoreRefusedError(
                f"the store has rows of its own where the log has others ({error}): nothing was imported", path=path
            ) from None


def _rows_of(gap: Import) -> list[tuple[str, list[tuple[Any, ...]]]]:
    instances = [
        (name, one.node, one.boot_no, one.worker, int(not one.end_ms), one.statement_no, one.draw_no, one.start_ms,
         one.end_ms) for name, one in gap.instances.items()
    ]  # fmt: skip
    return [
        (_INSERT_INSTANCE, instances),
        (_END_AFFAIRS, list(gap.affairs)),
        (INSERT_SESSION, [session_insert(one, one.link_no, one.link_hash) for one in gap.new_sessions.values()]),
        (UPDATE_SESSION, [session_update(one, one.link_no, one.link_hash) for one in gap.sessions.values()]),
        (INSERT_ROUND, [round_insert(one, one.opening_hash) for one in gap.new_rounds.values()]),
        (UPDATE_ROUND, [round_update(one) for one in gap.rounds.values()]),
        (INSERT_STATEMENT, gap.statements),
        (INSERT_ARTIFACT, [*gap.artifacts]),
        (INSERT_TOTALS, [totals_row(ended, currency) for ended, currency in gap.ended]),
        (INSERT_REPORT, [report_insert(report, final) for report, final in gap.reports]),
        (INSERT_DAY, [day_row(count) for count in gap.days]),
    ]
