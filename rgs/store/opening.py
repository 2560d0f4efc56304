"""Open a store by its address. Only this file knows which database an address means.

What speaks to PostgreSQL is imported where an address means it: a node over SQLite starts without it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from functools import partial
from pathlib import Path

from rgs.store.address import PostgresAddress, StoreAddress
from rgs.store.archive import Archive
from rgs.store.archiving import Gone
from rgs.store.interface import Parties, Store, StoreReads
from rgs.store.parties import SqliteParties
from rgs.store.recovery import Import
from rgs.store.sqlite import copying, store
from rgs.store.sqlite import dropping as sqlite_dropping
from rgs.store.sqlite import recovery as sqlite_recovery


async def create_store(where: StoreAddress, store_epoch: str) -> None:
    """Make a new, empty store, whole or without a table; StoreRefusedError if there is one."""
    if isinstance(where, PostgresAddress):
        from rgs.store.postgres import schema  # noqa: PLC0415 - see above

        await schema.create(where, store_epoch)
    else:
        store.create_store(where, store_epoch)


async def migrate_store(where: StoreAddress) -> tuple[int, int]:
    """Bring a store to the schema of this version, beside nodes where its steps allow that; the schema before and
    after. StoreRefusedError.
    """
    if isinstance(where, PostgresAddress):
        from rgs.store.postgres import migrating  # noqa: PLC0415 - see above

        return await migrating.migrate(where)
    return store.migrate_store(where)


async def older_instances(where: StoreAddress) -> list[str]:
    """The living instances whose software is of the schema before, which a migrated store still takes."""
    if not isinstance(where, PostgresAddress):
        return []
    from rgs.store.postgres import migrating  # noqa: PLC0415 - see above

    return await migrating.older_instances(where)


async def import_gap(where: StoreAddress, gap: Import) -> None:
    """Bring into a restored store all that only the log has. StoreRefusedError: nothing has changed."""
    if isinstance(where, PostgresAddress):
        from rgs.store.postgres import recovery  # noqa: PLC0415 - see above

        await recovery.import_gap(where, gap)
    else:
        sqlite_recovery.import_gap(where, gap)


def overwrite_freed(where: StoreAddress) -> bool:
    """Remove what was deleted from the bytes of the store; StoreRefusedError, StoreError. False for PostgreSQL, whose
    own VACUUM frees the rows.
    """
    if isinstance(where, PostgresAddress):
        return False
    copying.rewrite(where)
    return True


async def open_store(where: StoreAddress) -> Store:
    """The store, to serve from. StoreRefusedError where there is none, or one of another schema."""
    if isinstance(where, PostgresAddress):
        from rgs.store.postgres.store import PostgresStore  # noqa: PLC0415 - see above

        return await PostgresStore.open(where)
    return store.SqliteStore(where)


@contextmanager
def opened_archive(folder: Path | None) -> Iterator[Archive | None]:
    """The archive in a folder while the block runs; None where none is set."""
    archive = None if folder is None else Archive(folder)
    try:
        yield archive
    finally:
        if archive is not None:
            archive.close()


async def open_parties(where: StoreAddress) -> Parties:
    """The allow-list, beside a server or in one; StoreRefusedError."""
    if isinstance(where, PostgresAddress):
        from rgs.store.postgres.parties import PostgresParties  # noqa: PLC0415 - see above

        await _verify(where)
        return PostgresParties(where)
    return SqliteParties(where)


async def open_reads(where: StoreAddress) -> StoreReads:
    """The store to read from only, beside a server; StoreRefusedError."""
    if isinstance(where, PostgresAddress):
        from rgs.store.postgres.reads import PostgresReads  # noqa: PLC0415 - see above

        await _verify(where)
        return PostgresReads(where)
    return store.SqliteReads(store.open_verified(where, read_only=True))


async def _verify(where: PostgresAddress) -> None:
    from rgs.store.postgres import schema  # noqa: PLC0415 - see above

    link = await schema.reach(where)
    try:
        await schema.verify_schema(link, where)
    finally:
        await link.close()


Drop = Callable[[Sequence[Gone]], Awaitable[None]]
"""Deletes what is archived in one transaction."""


@asynccontextmanager
async def dropping(where: StoreAddress) -> AsyncIterator[Drop]:
    """What deletes archived rounds: beside servers in a database, while it holds a file. StoreRefusedError,
    StoreAwayError where a server holds the file.
    """
    if isinstance(where, PostgresAddress):
        from rgs.store.postgres import dropping, link, schema  # noqa: PLC0415 - see above

        await _verify(where)
        reached = await schema.reach(where)
        try:
            await link.verify_durable(reached)
            yield partial(dropping.drop, reached)
        finally:
            await reached.close()
        return
    with store.holding(where), closing(store.open_verified(where)) as db:

        async def drop(gone: Sequence[Gone]) -> None:
            sqlite_dropping.drop(db, gone)

        yield drop
