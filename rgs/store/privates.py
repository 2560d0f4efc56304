"""Sealed private blocks beside the log, in a small database in its folder, outside the shards that are served.

After a restored backup they tell whose the sessions of the gap are and which requests opened them (docs/keys.md 5). The
newest PRIVATES_MAX blocks are kept, whatever their age. Without the key-encryption key the file shows only sizes.

Thread-safe. Calls block: they wait for the disk.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rgs.store.changes import StoreError
from rgs.store.wallet import SqliteFile

PRIVATES_FILE: Final = "privates.db"
PRIVATES_MAX: Final = 2_000_000
"""About 1 GB: two years of a thousand sessions a day."""
APPLICATION_ID: Final = 1380406096
"""'RGSP' in ASCII."""
_SCHEMA: Final = (
    """
    CREATE TABLE privates (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      instance TEXT NOT NULL,
      statement_no INTEGER NOT NULL,
      session_id TEXT NOT NULL,
      sealed BLOB NOT NULL,
      UNIQUE (instance, statement_no)
    )
    """,
    "CREATE INDEX privates_of_session ON privates (session_id)",
)
_INSERT: Final = (
    "INSERT INTO privates (instance, statement_no, session_id, sealed) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
_DROP_OLD: Final = "DELETE FROM privates WHERE id <= (SELECT max(id) FROM privates) - ?"
_SELECT: Final = "SELECT sealed FROM privates WHERE instance = ? AND statement_no = ?"
_OVERWRITE: Final = "PRAGMA secure_delete = ON"
_ERASE: Final = "DELETE FROM privates WHERE session_id = ?"


@dataclass(frozen=True, slots=True)
class SealedPrivate:
    """The sealed private block of one statement."""

    instance: str
    statement_no: int
    session_id: str
    sealed: bytes


class SealedPrivates:
    """The open file. Errors of the disk are StoreError."""

    def __init__(self, path: Path, *, kept_max: int = PRIVATES_MAX) -> None:
        self._kept_max = kept_max
        self._file = SqliteFile(path, APPLICATION_ID, _SCHEMA, unavailable=StoreError, journal="truncate")

    def add(self, blocks: Iterable[SealedPrivate]) -> None:
        """Keep the blocks, durable on return. Those that are there already stay as they are; the oldest are dropped."""
        rows = [(one.instance, one.statement_no, one.session_id, one.sealed) for one in blocks]
        if rows:
            with self._file.transaction() as db:
                db.executemany(_INSERT, rows)
                db.execute(_DROP_OLD, (self._kept_max,))

    def find(self, instance: str, statement_no: int) -> bytes | None:
        """The sealed block of a statement; None where it was never kept, or was dropped."""
        with self._file.transaction() as db:
            row = db.execute(_SELECT, (instance, statement_no)).fetchone()
        return None if row is None else bytes(row[0])

    def erase(self, session_ids: Iterable[str]) -> int:
        """Remove the blocks of these sessions and overwrite their bytes; how many there were."""
        with self._file.transaction() as db:
            db.execute(_OVERWRITE)
            return sum(db.execute(_ERASE, (session_id,)).rowcount for session_id in session_ids)

    def close(self) -> None:
        self._file.close()
