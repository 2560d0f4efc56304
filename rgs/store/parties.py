"""The allow-list: parties with their roles, and the fingerprints of their certificates (ARCHITECTURE section 3).

Changed by `rgs party …` while a server runs; the server notices by a counter. Removing a certificate keeps its row,
with the time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from rgs.store.allowed import removable, verify_new
from rgs.store.changes import AllowListChanged, CertificateOff, StoreRefusedError
from rgs.store.interface import PartyRow
from rgs.store.rows import RECORD_SQL
from rgs.store.sqlite.store import connect, verify_schema

_ROWS: Final = """
    SELECT c.fingerprint, c.party, p.role, p.jurisdiction, c.added_ms, c.removed_ms, c.last_ms FROM certificates c
    JOIN parties p ON p.party = c.party WHERE c.removed_ms IS NULL OR ? ORDER BY c.added_ms, c.fingerprint
"""
_ADD_PARTY: Final = "INSERT INTO parties (party, role, jurisdiction, added_ms) VALUES (?, ?, ?, ?)"


class SqliteParties:
    """The allow-list over a connection of its own."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise StoreRefusedError(f"there is no store at {path}: run `rgs init` first", path=path)
        with ExitStack() as opened:
            try:
                self._db = connect(path)
                opened.callback(self._db.close)
            except sqlite3.Error as error:
                raise StoreRefusedError(f"{path} cannot be opened ({type(error).__name__})", path=path) from None
            verify_schema(self._db, path)
            opened.pop_all()

    async def changes(self) -> int:
        """Rises with every change of the list."""
        row = self._db.execute("SELECT value FROM meta WHERE key = 'parties'").fetchone()
        return int(row[0])

    async def allowed(self) -> list[PartyRow]:
        """The certificates that are allowed now."""
        return self._rows(removed_too=False)

    async def all(self) -> list[PartyRow]:
        """All certificates that were ever allowed."""
        return self._rows(removed_too=True)

    async def add(self, row: PartyRow) -> None:
        """Allow a certificate; what `verify_new` raises."""
        try:
            with self._transaction():
                known = self._rows(removed_too=True)
                verify_new(row, known)
                if all(other.party != row.party for other in known):
                    self._db.execute(_ADD_PARTY, (row.party, row.role, row.jurisdiction, row.added_ms))
                self._db.execute(
                    "INSERT INTO certificates (fingerprint, party, added_ms, last_ms) VALUES (?, ?, ?, ?)",
                    (row.fingerprint, row.party, row.added_ms, row.last_ms),
                )
                self._db.execute(RECORD_SQL[AllowListChanged])
        except sqlite3.IntegrityError:
            raise StoreRefusedError(
                f"the store takes no party {row.party} of role {row.role}", party=row.party, role=row.role
            ) from None

    async def remove(self, fingerprint: str, removed_ms: int) -> None:
        """Deny a certificate from now on; what `removable` raises."""
        with self._transaction():
            removable(fingerprint, self._rows(removed_too=True), removed_ms)
            self._db.execute(RECORD_SQL[CertificateOff], (removed_ms, fingerprint))
            self._db.execute(RECORD_SQL[AllowListChanged])

    async def close(self) -> None:
        self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Committed when the block is left, undone by any exception."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _rows(self, *, removed_too: bool) -> list[PartyRow]:
        return [PartyRow(*row) for row in self._db.execute(_ROWS, (removed_too,))]
