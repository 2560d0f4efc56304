"""The allow-list: parties with their roles, and the fingerprints of their certificates (ARCHITECTURE section 3).

`rgs party …` changes it while a server runs; the server notices by a counter. A removed certificate keeps its row.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from rgs.store.allowed import SELECT_CERTIFICATES, certificate_of, refused_party, removable, verify_new
from rgs.store.changes import AllowListChanged, CertificateOff, CertificateOn, PartyOn
from rgs.store.interface import Parties, PartyRow
from rgs.store.rows import RECORD_SQL
from rgs.store.sqlite.store import open_verified, transaction


class SqliteParties(Parties):
    """The allow-list over a connection of its own."""

    def __init__(self, path: Path) -> None:
        self._db = open_verified(path)

    async def changes(self) -> int:
        row = self._db.execute("SELECT value FROM meta WHERE key = 'parties'").fetchone()
        return int(row[0])

    async def add(self, row: PartyRow) -> None:
        try:
            with transaction(self._db):
                verify_new(row, await self.all())
                self._db.execute(RECORD_SQL[PartyOn], (row.party, row.role, row.jurisdiction, row.added_ms))
                if self._db.execute(RECORD_SQL[CertificateOn], certificate_of(row)).rowcount != 1:
                    raise refused_party(row)
                self._db.execute(RECORD_SQL[AllowListChanged])
        except sqlite3.IntegrityError:
            raise refused_party(row) from None

    async def remove(self, fingerprint: str, removed_ms: int) -> None:
        with transaction(self._db):
            removable(fingerprint, await self.all(), removed_ms)
            self._db.execute(RECORD_SQL[CertificateOff], (removed_ms, fingerprint))
            self._db.execute(RECORD_SQL[AllowListChanged])

    async def close(self) -> None:
        self._db.close()

    async def _listed(self, *, removed_too: bool) -> list[PartyRow]:
        return [PartyRow(*row) for row in self._db.execute(SELECT_CERTIFICATES, (removed_too,))]
