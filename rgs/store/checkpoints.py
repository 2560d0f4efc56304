"""The newest checkpoint of each log, in a small database of its own (ARCHITECTURE 2.15, a standard log): one row an
origin.

A log publishes no signature that it has not swapped in here. So a backup of anything else can be restored without a
second history being signed. A swap from another row than the one that is there is refused, and so are a smaller tree
and another root of the same size.

Thread-safe. Calls block: they wait for the disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rgs.store.changes import StoreError
from rgs.store.wallet import SqliteFile

APPLICATION_ID: Final = 1380406083
"""'RGSC' in ASCII."""
_SCHEMA: Final = (
    """
    CREATE TABLE checkpoints (
      origin TEXT NOT NULL PRIMARY KEY,
      size INTEGER NOT NULL CHECK (size >= 0),
      root BLOB NOT NULL CHECK (length(root) = 32),
      note BLOB NOT NULL
    ) WITHOUT ROWID
    """,
)
_SELECT: Final = "SELECT origin, size, root, note FROM checkpoints WHERE origin = ?"
_INSERT: Final = (
    "INSERT INTO checkpoints (origin, size, root, note) VALUES (?, ?, ?, ?) ON CONFLICT (origin) DO NOTHING"
)
_UPDATE: Final = """
    UPDATE checkpoints SET size = ?1, root = ?2, note = ?3
    WHERE origin = ?4 AND size = ?5 AND root = ?6 AND note = ?7 AND (?1 > size OR (?1 = size AND ?2 = root))
"""


class CheckpointRaceError(Exception):
    """The newest checkpoint is not the one that the caller knew, or the new one does not follow it."""


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """The newest checkpoint: `note` is the signed note of it, with whatever cosignatures are known."""

    origin: str
    size: int
    root: bytes
    note: bytes


class Checkpoints:
    """The open file. Errors of the disk are StoreError."""

    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(path, APPLICATION_ID, _SCHEMA, unavailable=StoreError, journal="truncate")

    def newest(self, origin: str) -> CheckpointRow | None:
        """The row of a log; None if there is none yet."""
        with self._file.transaction() as db:
            row = db.execute(_SELECT, (origin,)).fetchone()
        return None if row is None else CheckpointRow(*row)

    def swap(self, old: CheckpointRow | None, new: CheckpointRow) -> None:
        """Replace `old` (None: there is none) by `new`, durable on return; CheckpointRaceError."""
        with self._file.transaction() as db:
            if old is None:
                done = db.execute(_INSERT, (new.origin, new.size, new.root, new.note))
            else:
                values = (new.size, new.root, new.note, new.origin, old.size, old.root, old.note)
                done = db.execute(_UPDATE, values)
            if done.rowcount != 1:
                raise CheckpointRaceError(
                    f"the newest checkpoint of {new.origin} is not the one that size {new.size} was to follow"
                )

    def close(self) -> None:
        self._file.close()
