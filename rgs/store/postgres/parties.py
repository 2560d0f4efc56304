"""The allow-list in the shared store, over a connection of its own."""

from __future__ import annotations

from typing import Final

import asyncpg

from rgs.store.address import PostgresAddress
from rgs.store.allowed import removable, verify_new
from rgs.store.changes import AllowListChanged, CertificateOff, PartyOn, StoreError, StoreRefusedError
from rgs.store.interface import PartyRow
from rgs.store.postgres.link import LOST, Link
from rgs.store.postgres.reads import PostgresReads
from rgs.store.postgres.schema import reach
from rgs.store.postgres.texts import RECORD_SQL

_ROWS: Final = (
    "SELECT c.fingerprint, c.party, p.role, p.jurisdiction, c.added_ms, c.removed_ms, c.last_ms FROM certificates c"
    " JOIN parties p ON p.party = c.party WHERE c.removed_ms IS NULL OR ? ORDER BY c.added_ms, c.fingerprint"
)
_EVERY: Final = _ROWS.replace("?", "TRUE")
_ADD: Final = "INSERT INTO certificates (fingerprint, party, added_ms, last_ms) VALUES ($1, $2, $3, $4)"


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
                await run.execute(RECORD_SQL[AllowListChanged])  # first: whoever else changes the list waits for it
                verify_new(row, [PartyRow(*known) for known in await run.fetch(_EVERY)])
                await run.execute(RECORD_SQL[PartyOn], row.party, row.role, row.jurisdiction, row.added_ms)
                await run.execute(_ADD, row.fingerprint, row.party, row.added_ms, row.last_ms)
            _verify_told(link)
        except asyncpg.IntegrityConstraintViolationError:
            raise StoreRefusedError(
                f"the store takes no party {row.party} of role {row.role}", party=row.party, role=row.role
            ) from None
        except LOST as error:
            raise StoreError(f"the store broke off ({type(error).__name__}): look at the list again") from None
        finally:
            await link.close()

    async def remove(self, fingerprint: str, removed_ms: int) -> None:
        link = await reach(self._address)
        try:
            async with link.connection.transaction():
                run = link.connection
                await run.execute(RECORD_SQL[AllowListChanged])
                known = [PartyRow(*row) for row in await run.fetch(_EVERY)]
                removable(fingerprint, known, removed_ms)
                await run.execute(RECORD_SQL[CertificateOff], removed_ms, fingerprint)
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
