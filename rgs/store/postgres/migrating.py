"""`rgs migrate` on the shared store: whole where nobody uses it, step by step beside its nodes (docs/upgrades.md).

Without a running lease all steps are one transaction. Beside running leases only an expand step is made, and only over
a store that no software of a still older schema may use: indexes first, without stopping writers, then the rest in one
transaction that waits for a lock no longer than LOCK_MS at a time, so that calls are held up no longer. From then on
software of both schemas may run. When no instance of the older one lives any more, the next run shuts it out. An
interrupted run is done again: what it has made is found. One run at a time; another one waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import asyncpg

from rgs.store.address import PostgresAddress
from rgs.store.changes import StoreRefusedError
from rgs.store.migrations import Migration, index_name, steps, verify_version
from rgs.store.postgres import texts
from rgs.store.postgres.link import Link
from rgs.store.postgres.schema import (
    EXPANDED,
    KIND,
    SCHEMA,
    apply_steps,
    found_version,
    reach,
    set_version,
    verify_unheld,
)

LOCK_MS: Final = 500
"""A migration waits for a lock so long, then lets the others go first and tries again."""
TRIES_MAX: Final = 120
GAP_S: Final = 0.5
_LOCK_TIMEOUT: Final = "SELECT set_config('lock_timeout', $1, true)"
_TRY_LOCK: Final = "SELECT pg_try_advisory_lock(hashtext('rgs migrate'))"
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext('rgs schema'))"
_IS_INVALID: Final = """
    SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid)
"""
_OLDER: Final = """
    SELECT instance FROM instances WHERE alive = 1 AND schema_no < $1
    AND lease_ms >= (extract(epoch FROM clock_timestamp()) * 1000)::bigint ORDER BY instance
"""
_IS_HELD: Final = """
    SELECT EXISTS (SELECT FROM instances WHERE alive = 1
    AND lease_ms >= (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
"""
_FIRST_NUMBERED: Final = 12
"""The schema from which on an instance's row says what software runs it."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The two numbers of a store, and whether a lease in it runs."""

    schema: int
    expanded: int
    is_held: bool


async def migrate(address: PostgresAddress) -> tuple[int, int]:
    """Bring the store to this version's schema; the newest schema before and after. StoreRefusedError where a step
    needs that nodes are stopped first: the steps before it stay made.
    """
    link = await reach(address)
    try:
        async with _alone(link):
            before = 0
            while True:
                found = await _found(link, address)
                before = before or found.expanded
                known = steps(KIND)
                todo = [step for step in known if step.version > found.expanded]
                if not todo and found.schema == found.expanded:
                    return before, found.expanded
                if not found.is_held:
                    await _whole(link, address, todo)
                elif found.schema < found.expanded:
                    if not await _shut_out(link, found.expanded) and todo:
                        await verify_unheld(link, address)  # names who lives
                    elif not todo:
                        return before, found.expanded
                elif todo[0].is_expand:
                    await _expand(link, todo[0])
                else:
                    await _whole(link, address, todo[:1])  # is refused, and names who lives
    finally:
        await link.close()


async def older_instances(address: PostgresAddress) -> list[str]:
    """The living instances whose software keeps the store open to an older schema; empty if there is none."""
    link = await reach(address)
    try:
        expanded = await found_version(link.connection, EXPANDED)
        if expanded <= await found_version(link.connection):
            return []
        return [row[0] for row in await link.connection.fetch(_OLDER, expanded)]
    finally:
        await link.close()


@asynccontextmanager
async def _alone(link: Link) -> AsyncIterator[None]:
    """While the connection lives, no other run does anything. It waits without a transaction: an index that is made
    beside writers waits for every transaction.
    """
    while not await link.connection.fetchval(_TRY_LOCK):  # noqa: ASYNC110 - the database tells nobody of a free lock
        await asyncio.sleep(GAP_S)
    yield


async def _found(link: Link, address: PostgresAddress) -> _Found:
    schema = await found_version(link.connection)
    if not schema:
        raise StoreRefusedError(f"there is no store at {address}: run `rgs init` first", address=str(address))
    known = steps(KIND)
    if not known[0].version <= schema <= known[-1].version:
        verify_version(schema, KIND, str(address))
    expanded = max(schema, await found_version(link.connection, EXPANDED))
    if expanded > known[-1].version:
        raise StoreRefusedError(
            f"the store has been expanded to schema {expanded}, this version knows {known[-1].version} at most: use the"
            " version that expanded it",
            value=expanded,
            limit=known[-1].version,
        )
    return _Found(schema, expanded, await link.connection.fetchval(_IS_HELD))


async def _whole(link: Link, address: PostgresAddress, todo: list[Migration]) -> None:
    """All steps in one transaction, while no instance can begin. StoreRefusedError if a lease runs."""
    async with link.connection.transaction():
        await link.connection.execute(_LOCK)
        await verify_unheld(link, address)
        await apply_steps(link, todo)
        await set_version(link, SCHEMA, steps(KIND)[-1].version if not todo else todo[-1].version)


async def _expand(link: Link, step: Migration) -> None:
    """An expand step beside running nodes."""
    for index in step.indexes:
        if await link.connection.fetchval(_IS_INVALID, index_name(index)):  # a run before was interrupted in it
            await link.connection.execute("DROP INDEX CONCURRENTLY " + index_name(index))
        await link.connection.execute(index.replace("INDEX", "INDEX CONCURRENTLY IF NOT EXISTS", 1))
    for attempt in range(TRIES_MAX):
        try:
            async with link.connection.transaction():
                await link.connection.execute(_LOCK_TIMEOUT, str(LOCK_MS))
                await link.connection.execute(step.script)
                await set_version(link, EXPANDED, step.version)
            return
        except asyncpg.LockNotAvailableError:
            if attempt + 1 == TRIES_MAX:
                raise StoreRefusedError(
                    f"migration {step.version} did not get its locks in {TRIES_MAX} tries of {LOCK_MS} ms: something"
                    " holds a table for long; look for it in pg_stat_activity, and run `rgs migrate` again",
                    limit=TRIES_MAX,
                ) from None
            await asyncio.sleep(GAP_S)


async def _shut_out(link: Link, version: int) -> bool:
    """Let no older software begin any more, unless an instance of it lives; whether that was done."""
    async with link.connection.transaction():
        await link.connection.execute(texts.LOCK_SLOTS)
        if version >= _FIRST_NUMBERED and await link.connection.fetch(_OLDER, version):
            return False
        await set_version(link, SCHEMA, version)
        return True
