"""Open a store by its address. Only this file knows which database an address means."""

from __future__ import annotations

from rgs.store.address import PostgresAddress, StoreAddress
from rgs.store.interface import Parties, Store, StoreReads
from rgs.store.parties import SqliteParties
from rgs.store.postgres import recovery, schema
from rgs.store.postgres.parties import PostgresParties
from rgs.store.postgres.reads import PostgresReads
from rgs.store.postgres.store import PostgresStore
from rgs.store.recovery import Import
from rgs.store.sqlite import recovery as sqlite_recovery
from rgs.store.sqlite import store


async def create_store(where: StoreAddress, store_epoch: str) -> None:
    """Make a new, empty store, whole or without a table; StoreRefusedError if there is one."""
    if isinstance(where, PostgresAddress):
        await schema.create(where, store_epoch)
    else:
        store.create_store(where, store_epoch)


async def migrate_store(where: StoreAddress) -> tuple[int, int]:
    """Bring a store to the schema of this version; the schema before and after. StoreRefusedError."""
    return await schema.migrate(where) if isinstance(where, PostgresAddress) else store.migrate_store(where)


async def import_gap(where: StoreAddress, gap: Import) -> None:
    """Bring into a restored store all that only the log has. StoreRefusedError: nothing has changed."""
    if isinstance(where, PostgresAddress):
        await recovery.import_gap(where, gap)
    else:
        sqlite_recovery.import_gap(where, gap)


def overwrite_freed(where: StoreAddress) -> bool:
    """Remove what was deleted from the bytes of the store; StoreRefusedError, StoreError. False for PostgreSQL, whose
    own VACUUM frees the rows.
    """
    if isinstance(where, PostgresAddress):
        return False
    store.rewrite(where)
    return True


async def open_store(where: StoreAddress) -> Store:
    """The store, to serve from. StoreRefusedError where there is none, or one of another schema."""
    return await PostgresStore.open(where) if isinstance(where, PostgresAddress) else store.SqliteStore(where)


async def open_parties(where: StoreAddress) -> Parties:
    """The allow-list, beside a server or in one; StoreRefusedError."""
    if isinstance(where, PostgresAddress):
        await _verify(where)
        return PostgresParties(where)
    return SqliteParties(where)


async def open_reads(where: StoreAddress) -> StoreReads:
    """The store to read from only, beside a server; StoreRefusedError."""
    if isinstance(where, PostgresAddress):
        await _verify(where)
        return PostgresReads(where)
    return store.SqliteReads(store.open_verified(where, read_only=True))


async def _verify(where: PostgresAddress) -> None:
    link = await schema.reach(where)
    try:
        await schema.verify_schema(link, where)
    finally:
        await link.close()
