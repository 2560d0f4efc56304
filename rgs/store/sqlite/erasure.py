"""Remove what an erasure leaves in the free pages of a store file and in its write-ahead log (docs/keys.md, 6).

SQLite keeps the bytes of deleted rows, and of earlier states of changed ones, until their place is used again.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from rgs.store.changes import StoreError
from rgs.store.sqlite.store import connect, holding, verify_schema


def rewrite(path: Path) -> None:
    """Write the file anew, with its rows and nothing else. StoreRefusedError where a server holds it. StoreError where
    the disk has no room for it twice: then nothing has changed, and it may be done again.
    """
    with holding(path), closing(connect(path)) as db:
        verify_schema(db, path)
        try:
            db.execute("VACUUM")
            busy, _, _ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.Error as error:
            raise StoreError(f"{path.name} cannot be written anew: {error}", file=path.name) from error
        if busy:
            raise StoreError(f"{path.name} is being read: its write-ahead log cannot be emptied", file=path.name)
