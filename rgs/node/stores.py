"""Short uses of a store: opened for one block, and closed at its end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from rgs.store.address import StoreAddress
from rgs.store.interface import Parties, StoreReads
from rgs.store.opening import open_parties, open_reads, opened_archive


@asynccontextmanager
async def reading(where: StoreAddress, archive: Path | None = None) -> AsyncIterator[StoreReads]:
    """The store for reading, with the rounds in the folder of its archive. StoreRefusedError if there is no store, or
    one of another schema.
    """
    reads = await open_reads(where)
    try:
        with opened_archive(archive) as reads.archive:
            yield reads
    finally:
        await reads.close()


@asynccontextmanager
async def allow_list(where: StoreAddress) -> AsyncIterator[Parties]:
    """The store's allow-list."""
    parties = await open_parties(where)
    try:
        yield parties
    finally:
        await parties.close()
