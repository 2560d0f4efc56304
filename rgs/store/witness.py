"""A witness's file: one row an origin, the largest tree that was cosigned and the note that says so (C2SP
tlog-witness).

The row is compared and replaced in one immediate transaction, which is on the disk before the block is left. So two
requests at once, or a crash, never make two cosignatures that contradict each other. A tree that is smaller than the
one of its row is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from rgs.core.errors import UnavailableError
from rgs.core.tlog.witness import SeenTree
from rgs.store.wallet import SqliteFile

APPLICATION_ID: Final = 1380406094
"""'RGSN' (notary) in ASCII, in the header of the file."""

_SCHEMA: Final = (
    """CREATE TABLE seen (
        origin TEXT NOT NULL PRIMARY KEY,
        size INTEGER NOT NULL CHECK (size >= 0),
        root BLOB NOT NULL CHECK (length(root) = 32),
        note BLOB NOT NULL
    ) STRICT, WITHOUT ROWID""",
    """CREATE TRIGGER seen_never_shrinks BEFORE UPDATE ON seen
        WHEN NEW.size < OLD.size OR NEW.origin <> OLD.origin OR (NEW.size = OLD.size AND NEW.root <> OLD.root)
        BEGIN SELECT RAISE(ABORT, 'a witness does not go back'); END""",
    """CREATE TRIGGER seen_never_forgets BEFORE DELETE ON seen
        BEGIN SELECT RAISE(ABORT, 'a witness does not forget'); END""",
)

Decide = Callable[[SeenTree], tuple[SeenTree, bytes]]
"""From the row as it is to the row as it will be, and its note; raises to leave it as it is."""


class WitnessStore:
    """The rows of one witness. Thread-safe and blocking, as `SqliteFile` is."""

    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(path, APPLICATION_ID, _SCHEMA, unavailable=UnavailableError)

    def advance(self, origin: str, decide: Decide) -> None:
        """Compare and persist in one step: nothing may be answered before this has returned."""
        with self._file.transaction() as db:
            row = db.execute("SELECT size, root FROM seen WHERE origin = ?", (origin,)).fetchone()
            after, note = decide(SeenTree() if row is None else SeenTree(*row))
            db.execute(
                "INSERT INTO seen (origin, size, root, note) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (origin) DO UPDATE SET size = excluded.size, root = excluded.root, note = excluded.note",
                (origin, after.size, after.root, note),
            )

    def notes(self) -> dict[str, bytes]:
        """Origin -> the newest note that was cosigned."""
        with self._file.snapshot() as db:
            return dict(db.execute("SELECT origin, note FROM seen").fetchall())

    def close(self) -> None:
        self._file.close()
