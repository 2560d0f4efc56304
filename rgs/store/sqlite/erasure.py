"""What an erasure leaves in the free pages of a store file and in its write-ahead log goes, too (docs/keys.md, 6).

SQLite keeps the bytes of deleted rows, and of earlier states of changed ones, until their place is used again. Refuses
a store that a server holds.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from rgs.store.changes import StoreError
from rgs.store.sqlite.store import connect, holding, verify_schema


def rewrite(path: Path) -> None:
    """Write the file anew, with what it holds and nothing else. StoreRefusedError; StoreError where the disk has no
    room for it twice: all is as it was then, and it may be done again.
    """
    with holding(path), closing(connect(path)) as db:
        verify_schema(db, path)
        try:
            db.execute("VACUUM")
            busy, _, _ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.Error as error:
            raise StoreError(f"{path.name} cannot be written anew: {error}", file=path.name) from error
        if busy:
            raise StoreError(f"{path.name} is being read: its log cannot be emptied", file=path.name)
