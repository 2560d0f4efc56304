"""Make and find the schema of the shared store (`rgs.store.migrations`); `rgs.store.postgres.migrating` changes it.

Software may use a store if its schema lies between two numbers in `meta`: the oldest whose software may still run, and
the newest that the store has been expanded to (docs/upgrades.md). They differ only while nodes are exchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import asyncpg

from rgs.store.address import PostgresAddress
from rgs.store.changes import StoreAwayError, StoreRefusedError
from rgs.store.migrations import Migration, steps, verify_version
from rgs.store.postgres import texts
from rgs.store.postgres.link import LOST, Link, connect_anywhere, verify_durable

KIND: Final = "postgres"
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext('rgs schema'))"
_HAS_META: Final = "SELECT to_regclass('meta') IS NOT NULL"
_VERSION: Final = "SELECT value FROM meta WHERE key = $1"
SCHEMA: Final = "schema"
"""Key of `meta`: the oldest schema whose software may use the store."""
EXPANDED: Final = "expanded"
"""Key of `meta`: the newest schema that the store has been expanded to; less than SCHEMA where it never was beyond."""
HELD_MAX: Final = 5
"""Instances that a refusal names."""
_HELD: Final = """
    WITH clock AS (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms)
    SELECT instance, greatest(now_ms - start_ms, 0) / 1000, (lease_ms - now_ms) / 1000 + 1, count(*) OVER ()
    FROM instances, clock WHERE alive = 1 AND lease_ms >= now_ms ORDER BY instance LIMIT $1
"""
_SET: Final = "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"


async def reach(address: PostgresAddress) -> Link:
    """A connection for one task; StoreAwayError where no server answers."""
    try:
        return await connect_anywhere(address)
    except LOST as error:
        raise StoreAwayError(
            f"no database answers at {address} ({type(error).__name__})", address=str(address)
        ) from None


async def found_version(connection: asyncpg.Connection[Any], key: str = SCHEMA) -> int:
    """The schema of the store in this database by SCHEMA or EXPANDED, 0 if there is none."""
    if not await connection.fetchval(_HAS_META):
        return 0
    value = await connection.fetchval(_VERSION, key)
    return int(value) if value is not None and value.isdecimal() else 0


def known_version() -> int:
    """The schema of this software."""
    return steps(KIND)[-1].version


async def verify_schema(link: Link, address: PostgresAddress) -> bool:
    """StoreRefusedError unless the database holds a store that this version's schema may use; whether the schema before
    may use it, too.
    """
    connection = link.connection
    expanded = await found_version(connection, EXPANDED)
    schema = await found_version(connection)
    verify_version(schema, KIND, str(address), expanded)
    return schema < known_version()


async def verify_unheld(link: Link, address: PostgresAddress) -> None:
    """StoreRefusedError if the lease of an instance in the store still runs. No instance can start from here to the end
    of the open transaction.
    """
    await link.connection.execute(texts.LOCK_SLOTS)
    rows = await link.connection.fetch(_HELD, HELD_MAX)
    if rows:
        named = "; ".join(
            f"{name}, started {age_s} s ago, its lease ends in {left_s} s" for name, age_s, left_s, _ in rows
        )
        more = f"; and {rows[0][3] - len(rows)} more" if rows[0][3] > len(rows) else ""
        raise StoreRefusedError(
            f"the store at {address} is in use by {named}{more}: stop these nodes, wait until the leases of dead ones"
            " have ended, and try again",
            address=str(address),
            value=rows[0][3],
            limit=0,
        )


async def create(address: PostgresAddress, store_epoch: str) -> None:
    """Make a new, empty store in the database, whole or without a table. A store in which no instance ever started is
    used again: an interrupted init left it. StoreRefusedError for any other.
    """
    link = await reach(address)
    try:
        await verify_durable(link)
        async with link.connection.transaction():
            await link.connection.execute(_LOCK)
            if version := await found_version(link.connection):
                verify_version(version, KIND, str(address))
                if await link.connection.fetchval("SELECT EXISTS (SELECT FROM instances)"):
                    raise StoreRefusedError(f"there is a store already at {address}", address=str(address))
                await link.connection.execute("DELETE FROM certificates")
                await link.connection.execute("DELETE FROM parties")
            else:
                await apply_steps(link, steps(KIND))
            for key, value in (("store_epoch", store_epoch), ("parties", "0")):
                await link.connection.execute(_SET, key, value)
    except LOST as error:
        raise StoreRefusedError(
            f"the connection to {address} was lost ({type(error).__name__})", address=str(address)
        ) from None
    finally:
        await link.close()


async def apply_steps(link: Link, todo: Sequence[Migration]) -> None:
    """Within the open transaction: the store is only for software of the newest of these schemas afterwards."""
    for step in todo:
        await link.connection.execute(step.whole)
        await set_version(link, SCHEMA, step.version)


async def set_version(link: Link, key: str, version: int) -> None:
    """`key` is SCHEMA or EXPANDED."""
    await link.connection.execute(_SET, key, str(version))
