"""A copy of a store file that a server may be using (SQLite's online backup): one moment of it, whole."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from rgs.store.changes import StoreRefusedError
from rgs.store.sqlite.store import open_verified


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


def verify_file(path: Path) -> None:
    """StoreRefusedError where SQLite finds the file damaged."""
    with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as db:
        try:
            found = str(db.execute("PRAGMA integrity_check(1)").fetchone()[0])
        except sqlite3.Error as error:
            found = str(error)
    if found != "ok":
        raise StoreRefusedError(f"{path} is damaged: {found[:200]}", path=path)
