"""The import of a gap into a store file, in one transaction (rgs.store.recovery)."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Final

from rgs.store.changes import StoreRefusedError
from rgs.store.interface import RECOVERING
from rgs.store.recovery import MARK, Import, shared_rows
from rgs.store.rows import INSERT_ARTIFACT, REPORTS, ROUNDS, SESSIONS, STATEMENTS
from rgs.store.sqlite.store import connect, holding, transaction, verify_schema

_INSERT_INSTANCE: Final = (
    "INSERT INTO instances (instance, node, boot_no, worker, alive, statement_no, draw_no, start_ms, end_ms)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (instance) DO UPDATE SET alive = min(alive, excluded.alive),"
    " statement_no = excluded.statement_no, draw_no = max(draw_no, excluded.draw_no), end_ms = excluded.end_ms"
)

_INSERT_SESSION: Final = SESSIONS.insert_behind("reference_slot")


def import_gap(path: Path, gap: Import) -> None:
    """Insert the whole gap and mark the store. StoreRefusedError where a server holds it or a row is there already:
    then nothing has changed.
    """
    with holding(path), contextlib.closing(connect(path)) as db:
        verify_schema(db, path)
        try:
            with transaction(db):
                for text, rows in (
                    (_INSERT_INSTANCE, gap.instance_rows()),
                    (_INSERT_SESSION, [(None, *SESSIONS.row(one)) for one in gap.new_sessions.values()]),
                    (ROUNDS.insert, [ROUNDS.row(one) for one in gap.new_rounds.values()]),
                    *shared_rows(gap),
                    (STATEMENTS.insert, gap.statements),
                    (INSERT_ARTIFACT, [*gap.artifacts]),
                    (REPORTS.insert, gap.report_rows()),
                ):
                    db.executemany(text, rows)
                db.execute(MARK, (RECOVERING,))
        except sqlite3.IntegrityError as error:
            raise StoreRefusedError(
                f"the store has rows of its own where the log has others ({error}): nothing was imported", path=path
            ) from None
