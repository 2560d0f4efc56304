"""The allow-list: parties with their roles, and the fingerprints of their certificates (ARCHITECTURE section 3).

`rgs party …` changes it while a server runs; the server notices by a counter. A removed certificate keeps its row.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from rgs.store.allowed import (
    SELECT_CERTIFICATES,
    certificate_of,
    links_key,
    party_of,
    refused_party,
    removable,
    verify_new,
    verify_operator,
    verify_scope,
)
from rgs.store.changes import AllowListChanged, CertificateOff, CertificateOn, MetaSet, PartyOn
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
                verify_scope(row.role, row.operator, await self.all())
                self._db.execute(RECORD_SQL[PartyOn], party_of(row))
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

    async def set_links(self, party: str, links: str) -> None:
        with transaction(self._db):
            verify_operator(party, await self.all())
            self._db.execute(RECORD_SQL[MetaSet], (links_key(party), links))
            self._db.execute(RECORD_SQL[AllowListChanged])

    async def close(self) -> None:
        self._db.close()

    async def _listed(self, *, removed_too: bool) -> list[PartyRow]:
        return [PartyRow(*row) for row in self._db.execute(SELECT_CERTIFICATES, (removed_too,))]
