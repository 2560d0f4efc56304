"""The allow-list in the shared store, over a connection of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from rgs.store.address import PostgresAddress
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
from rgs.store.changes import AllowListChanged, CertificateOff, CertificateOn, MetaSet, PartyOn, StoreError
from rgs.store.interface import Parties, PartyRow
from rgs.store.postgres.link import LOST
from rgs.store.postgres.reads import PostgresReads
from rgs.store.postgres.schema import reach
from rgs.store.postgres.texts import RECORD_SQL, postgres_text


class PostgresParties(Parties):
    """The allow-list. Reads are tried again during a promotion; changes are made once, or refused."""

    def __init__(self, address: PostgresAddress) -> None:
        self._address = address
        self._reads = PostgresReads(address)

    async def changes(self) -> int:
        return int(await self._reads.meta("parties") or 0)

    async def add(self, row: PartyRow) -> None:
        try:
            async with self._changing() as (run, known):
                verify_new(row, known)
                verify_scope(row.role, row.operator, known)
                await run.execute(RECORD_SQL[PartyOn], *party_of(row))
                if not (await run.execute(RECORD_SQL[CertificateOn], *certificate_of(row))).endswith(" 1"):
                    raise refused_party(row)
        except asyncpg.IntegrityConstraintViolationError:
            raise refused_party(row) from None

    async def remove(self, fingerprint: str, removed_ms: int) -> None:
        async with self._changing() as (run, known):
            removable(fingerprint, known, removed_ms)
            await run.execute(RECORD_SQL[CertificateOff], removed_ms, fingerprint)

    async def set_links(self, party: str, links: str) -> None:
        async with self._changing() as (run, known):
            verify_operator(party, known)
            await run.execute(RECORD_SQL[MetaSet], links_key(party), links)

    @asynccontextmanager
    async def _changing(self) -> AsyncIterator[tuple[asyncpg.Connection[Any], list[PartyRow]]]:
        """One transaction over the list as it stands now. StoreError where nobody knows whether it was committed."""
        link = await reach(self._address)
        run = link.connection
        try:
            async with run.transaction():
                await run.execute(RECORD_SQL[AllowListChanged])  # first: whoever else changes the list waits for it
                yield run, [PartyRow(*row) for row in await run.fetch(postgres_text(SELECT_CERTIFICATES), True)]
            if link.warned:
                raise StoreError("it is not known whether the store committed: look at the list again")
        except LOST as error:
            raise StoreError(f"the store did not answer ({type(error).__name__}): look at the list again") from None
        finally:
            await link.close()

    async def close(self) -> None:
        await self._reads.close()

    async def _listed(self, *, removed_too: bool) -> list[PartyRow]:
        return [PartyRow(*row) for row in await self._reads.ask(SELECT_CERTIFICATES, removed_too)]
