"""A store file written once more, whole: as a copy of one moment, while a server may be using it (SQLite's online
backup), or in its place, without what was deleted.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from rgs.store.changes import StoreError, StoreRefusedError
from rgs.store.sqlite.store import connect, holding, open_verified, verify_schema


def copy_store(path: Path, target: Path) -> None:
    """Copy the store into a new file, in one step: a writer goes on meanwhile. StoreRefusedError for a store of another
    schema, a target that exists, and a copy that is damaged.
    """
    if target.exists():
        raise StoreRefusedError(f"{target} exists already and is not overwritten", path=target)
    with contextlib.closing(open_verified(path, read_only=True)) as source:
        target.touch(mode=0o600)
        with contextlib.closing(sqlite3.connect(target, isolation_level=None)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
    verify_file(target)


def rewrite(path: Path) -> None:
    """Write the file anew, with its rows and nothing else: SQLite keeps the bytes of deleted rows, and of earlier
    states of changed ones, until their place is used again (docs/keys.md, 6).

    StoreRefusedError where a server holds it. StoreError where the disk has no room for it twice: then nothing has
    changed, and it may be done again.
    """
    with holding(path), contextlib.closing(connect(path)) as db:
        verify_schema(db, path)
        try:
            db.execute("VACUUM")
            busy, _, _ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.Error as error:
            raise StoreError(f"{path.name} cannot be written anew: {error}", file=path.name) from error
        if busy:
            raise StoreError(f"{path.name} is being read: its write-ahead log cannot be emptied", file=path.name)


def verify_file(path: Path) -> None:
    """StoreRefusedError where SQLite finds the file damaged."""
    with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as db:
        try:
            found = str(db.execute("PRAGMA integrity_check(1)").fetchone()[0])
        except sqlite3.Error as error:
            found = str(error)
    if found != "ok":
        raise StoreRefusedError(f"{path} is damaged: {found[:200]}", path=path)
