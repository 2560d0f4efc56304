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

from rgs.core.errors import NotFoundError
from rgs.store.changes import StoreRefusedError
from rgs.store.interface import PartyRow
from rgs.store.sqlite import connect, verify_schema

_COUNT: Final = "UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'parties'"


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
        """Allow a certificate. A party keeps its role and jurisdiction: other ones are refused."""
        try:
            with self._transaction():
                query = "SELECT role, jurisdiction FROM parties WHERE party = ?"
                found = self._db.execute(query, (row.party,)).fetchone()
                if found is None:
                    self._db.execute(
                        "INSERT INTO parties (party, role, jurisdiction, added_ms) VALUES (?, ?, ?, ?)",
                        (row.party, row.role, row.jurisdiction, row.added_ms),
                    )
                elif found != (row.role, row.jurisdiction):
                    raise StoreRefusedError(
                        f"party {row.party} is {found[0]} in jurisdiction {found[1] or '-'} already", party=row.party
                    )
                self._db.execute(
                    "INSERT INTO certificates (fingerprint, party, added_ms) VALUES (?, ?, ?)",
                    (row.fingerprint, row.party, row.added_ms),
                )
                self._db.execute(_COUNT)
        except sqlite3.IntegrityError:
            raise StoreRefusedError(
                "this certificate is or was in the allow-list", fingerprint=row.fingerprint
            ) from None

    async def remove(self, fingerprint: str, removed_ms: int) -> None:
        """Deny a certificate from now on; NotFoundError if it is not allowed."""
        with self._transaction():
            query = "UPDATE certificates SET removed_ms = ? WHERE fingerprint = ? AND removed_ms IS NULL"
            if self._db.execute(query, (removed_ms, fingerprint)).rowcount != 1:
                raise NotFoundError(
                    "no such certificate in the allow-list", kind="certificate", fingerprint=fingerprint
                )
            self._db.execute(_COUNT)

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
        query = (
            "SELECT c.fingerprint, c.party, p.role, p.jurisdiction, c.added_ms, c.removed_ms FROM certificates c"
            " JOIN parties p ON p.party = c.party WHERE c.removed_ms IS NULL OR ? ORDER BY c.added_ms, c.fingerprint"
        )
        return [PartyRow(*row) for row in self._db.execute(query, (removed_too,))]
