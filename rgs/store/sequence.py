"""Which statement has which index in the log: indices have no gaps and never change (ARCHITECTURE 2.12 gap-free orders,
2.15 a standard log).

It is a database of its own: nothing on the play path may wait for the log, and a restored backup of the main store must
not take back an order that was signed. A statement is known by (instance, statement number). The order is durable here
before any file or signature follows from it. A number that is not its instance's next, an index that is not the next,
and a second entry of a statement are refused.

Thread-safe. Calls block: they wait for the disk.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence as Rows
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rgs.store.changes import StoreError
from rgs.store.wallet import BUSY_TIMEOUT_S, SqliteFile

APPLICATION_ID: Final = 1380406099
"""'RGSS' in ASCII."""
_SCHEMA: Final = (
    """
    CREATE TABLE shards (
      shard INTEGER PRIMARY KEY,
      origin TEXT NOT NULL UNIQUE,
      first BLOB NOT NULL -- its first entry, where that is no statement: the last checkpoint of the shard before
    )
    """,
    """
    CREATE TABLE instances (
      id INTEGER PRIMARY KEY,
      instance TEXT NOT NULL UNIQUE,
      statement_no INTEGER NOT NULL -- the last one that has its place
    )
    """,
    """
    CREATE TABLE entries (
      shard INTEGER NOT NULL REFERENCES shards (shard),
      log_index INTEGER NOT NULL CHECK (log_index >= 0),
      instance_id INTEGER REFERENCES instances (id), -- null for a first entry that is no statement
      statement_no INTEGER NOT NULL,
      PRIMARY KEY (shard, log_index),
      UNIQUE (instance_id, statement_no)
    ) WITHOUT ROWID
    """,
)
_LAST_SHARD: Final = "SELECT shard, origin, first FROM shards ORDER BY shard DESC LIMIT 1"
_INSERT_SHARD: Final = "INSERT INTO shards (shard, origin, first) VALUES (?, ?, ?)"
_INSTANCES: Final = "SELECT instance, statement_no FROM instances"
_COUNT: Final = "SELECT COALESCE(max(log_index) + 1, 0) FROM entries WHERE shard = ?"
_INSERT_INSTANCE: Final = "INSERT INTO instances (instance, statement_no) VALUES (?, 0) ON CONFLICT DO NOTHING"
_ADVANCE: Final = "UPDATE instances SET statement_no = ?1 WHERE instance = ?2 AND statement_no = ?1 - 1 RETURNING id"
_INSERT_ENTRY: Final = "INSERT INTO entries (shard, log_index, instance_id, statement_no) VALUES (?, ?, ?, ?)"
_ENTRIES: Final = """
    SELECT COALESCE(i.instance, ''), e.statement_no FROM entries e LEFT JOIN instances i ON i.id = e.instance_id
    WHERE e.shard = ? AND e.log_index BETWEEN ? AND ? ORDER BY e.log_index
"""
_PLACE: Final = """
    SELECT s.origin, e.log_index FROM instances i JOIN entries e ON e.instance_id = i.id
    JOIN shards s ON s.shard = e.shard WHERE i.instance = ? AND e.statement_no = ?
"""

Statement = tuple[str, int]
"""Instance and statement number; an empty instance stands for a first entry that is no statement."""


class SequenceRaceError(Exception):
    """The order has changed since the caller read it, or a statement is not its instance's next one."""


@dataclass(frozen=True, slots=True)
class LogShard:
    """A shard: its number from 1, its origin, its first entry where that is no statement (else empty)."""

    number: int
    origin: str
    first: bytes


class LogOrder:
    """The open file. Errors of the disk are StoreError."""

    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(path, APPLICATION_ID, _SCHEMA, unavailable=StoreError, journal="truncate")

    def shard(self) -> LogShard | None:
        """The newest shard."""
        with self._file.transaction() as db:
            row = db.execute(_LAST_SHARD).fetchone()
        return None if row is None else LogShard(*row)

    def open_shard(self, shard: LogShard) -> None:
        """Begin a shard behind the newest one, with its first entry if it has one; SequenceRaceError."""
        with self._file.transaction() as db:
            row = db.execute(_LAST_SHARD).fetchone()
            if shard.number != (1 if row is None else row[0] + 1):
                raise SequenceRaceError(f"shard {shard.number} is not the next one")
            db.execute(_INSERT_SHARD, (shard.number, shard.origin, shard.first))
            if shard.first:
                db.execute(_INSERT_ENTRY, (shard.number, 0, None, 0))

    def positions(self) -> dict[str, int]:
        """The last statement number of each instance that has its index."""
        with self._file.transaction() as db:
            return dict(db.execute(_INSTANCES).fetchall())

    def count(self, shard: int) -> int:
        """How many entries of a shard have their index: the next index."""
        with self._file.transaction() as db:
            number: int = db.execute(_COUNT, (shard,)).fetchone()[0]
        return number

    def assign(self, shard: int, first: int, statements: Rows[Statement]) -> None:
        """Give the statements the indices from `first` on: all or none, durable on return. SequenceRaceError."""
        with self._file.transaction() as db:
            (next_index,) = db.execute(_COUNT, (shard,)).fetchone()
            newest, *_ = db.execute(_LAST_SHARD).fetchone()
            if (next_index, newest) != (first, shard):
                raise SequenceRaceError(f"{first} is not the next index of shard {shard}")
            for index, (instance, number) in enumerate(statements, first):
                if number == 1:
                    db.execute(_INSERT_INSTANCE, (instance,))
                row = db.execute(_ADVANCE, (number, instance)).fetchone()
                if row is None:
                    raise SequenceRaceError(f"{number} is not the next statement of {instance}")
                db.execute(_INSERT_ENTRY, (shard, index, row[0], number))

    def statements(self, shard: int, first: int, end: int) -> list[Statement]:
        """The statements at the indices `first` to `end` - 1."""
        with self._file.transaction() as db:
            return db.execute(_ENTRIES, (shard, first, end - 1)).fetchall()

    def close(self) -> None:
        self._file.close()


def read_place(path: Path, instance: str, statement_no: int) -> tuple[str, int] | None:
    """Origin and index of a statement, None if it has none yet; another process may write meanwhile. StoreError."""
    if not path.exists():
        return None
    try:
        address = path.resolve().as_uri() + "?mode=ro"
        with closing(sqlite3.connect(address, uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S)) as db:
            row: tuple[str, int] | None = db.execute(_PLACE, (instance, statement_no)).fetchone()
    except sqlite3.Error as error:
        raise StoreError(f"{path.name} cannot be read: {error}", file=path.name) from error
    return row
