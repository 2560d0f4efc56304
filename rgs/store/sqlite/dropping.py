"""The deletion of archived rounds from a store file (rgs.store.archiving)."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from rgs.store.archiving import Gone, verify_dropped
from rgs.store.sqlite.store import transaction


def drop(db: sqlite3.Connection, gone: Sequence[Gone]) -> None:
    """Delete rows in one transaction. StoreRefusedError: nothing was deleted."""
    with transaction(db):
        for one in gone:
            verify_dropped(one, [db.execute(text, (value,)).rowcount for text, value in one.steps])
