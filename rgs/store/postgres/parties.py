"""The allow-list in the shared store, over a connection of its own."""

from __future__ import annotations

from typing import Final

import asyncpg

from rgs.core.errors import NotFoundError
from rgs.store.address import PostgresAddress
from rgs.store.changes import AllowListChanged, CertificateOff, StoreError, StoreRefusedError
from rgs.store.interface import PartyRow
from rgs.store.postgres.link import LOST, Link
from rgs.store.postgres.reads import PostgresReads
from rgs.store.postgres.schema import reach
from rgs.store.postgres.texts import RECORD_SQL

_ROWS: Final = (
    "SELECT c.fingerprint, c.party, p.role, p.jurisdiction, c.added_ms, c.removed_ms FROM certificates c"
    " JOIN parties p ON p.party = c.party WHERE c.removed_ms IS NULL OR ? ORDER BY c.added_ms, c.fingerprint"
)
_PARTY: Final = "SELECT role, jurisdiction FROM parties WHERE party = $1 FOR UPDATE"
_ADD_PARTY: Final = """
    INSERT INTO parties (party, role, jurisdiction, added_ms) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING
"""
_ADD: Final = "INSERT INTO certificates (fingerprint, party, added_ms) VALUES ($1, $2, $3)"


class PostgresParties:
    """The allow-list. Reads are asked again while the database is promoted; changes are made once, or refused."""

    def __init__(self, address: PostgresAddress) -> None:
        self._address = address
        self._reads = PostgresReads(address)

    async def changes(self) -> int:
        return int(await self._reads.meta("parties") or 0)

    async def allowed(self) -> list[PartyRow]:
        return await self._rows(removed_too=False)

    async def all(self) -> list[PartyRow]:
        return await self._rows(removed_too=True)

    async def add(self, row: PartyRow) -> None:
        link = await reach(self._address)
        run = link.connection
        try:
            async with run.transaction():
                await run.execute(_ADD_PARTY, row.party, row.role, row.jurisdiction, row.added_ms)
                ((role, jurisdiction),) = await run.fetch(_PARTY, row.party)
                if (role, jurisdiction) != (row.role, row.jurisdiction):
                    raise StoreRefusedError(
                        f"party {row.party} is {role} in jurisdiction {jurisdiction or '-'} already", party=row.party
                    )
                await run.execute(_ADD, row.fingerprint, row.party, row.added_ms)
                await run.execute(RECORD_SQL[AllowListChanged])
            _verify_told(link)
        except asyncpg.IntegrityConstraintViolationError:
            raise StoreRefusedError(
                "this certificate is or was in the allow-list", fingerprint=row.fingerprint
            ) from None
        except LOST as error:
            raise StoreError(f"the store broke off ({type(error).__name__}): look at the list again") from None
        finally:
            await link.close()

    async def remove(self, fingerprint: str, removed_ms: int) -> None:
        link = await reach(self._address)
        try:
            async with link.connection.transaction():
                done = await link.connection.execute(RECORD_SQL[CertificateOff], removed_ms, fingerprint)
                if not done.endswith(" 1"):
                    raise NotFoundError(
                        "no such certificate in the allow-list", kind="certificate", fingerprint=fingerprint
                    )
                await link.connection.execute(RECORD_SQL[AllowListChanged])
            _verify_told(link)
        except LOST as error:
            raise StoreError(f"the store broke off ({type(error).__name__}): look at the list again") from None
        finally:
            await link.close()

    async def close(self) -> None:
        await self._reads.close()

    async def _rows(self, *, removed_too: bool) -> list[PartyRow]:
        return [PartyRow(*row) for row in await self._reads.ask(_ROWS, removed_too)]


def _verify_told(link: Link) -> None:
    if link.warned:
        raise StoreError("the store does not tell whether it committed: look at the list again")
