"""The deletion of archived rounds from a store file (rgs.store.archiving)."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from rgs.store.archiving import DROP_ROUNDS, DROP_STATEMENTS, verify_dropped
from rgs.store.sqlite.store import transaction


def drop(db: sqlite3.Connection, sessions: Sequence[tuple[str, int, int]]) -> None:
    """Delete the rows of (session, statements, rounds) in one transaction. StoreRefusedError: nothing was deleted."""
    with transaction(db):
        for session_id, statements, rounds in sessions:
            found = [db.execute(text, (session_id,)).rowcount for text in (DROP_STATEMENTS, DROP_ROUNDS)]
            verify_dropped(session_id, (statements, rounds), (found[0], found[1]))
