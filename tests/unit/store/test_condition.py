"""What a database says of its condition: its standby, its archive, its transactions and connections."""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg
import pytest

from rgs.store.address import PostgresAddress
from rgs.store.condition import Condition
from rgs.store.postgres.reads import PostgresReads
from tests.support.store.postgres import Server, one_server, start_pair
from tests.support.store.shelf import DATABASES, open_shelf
from tests.support.waiting import until


async def condition_of(server: Server, user: str = "rgs") -> Condition:
    reads = PostgresReads(PostgresAddress(server.url().replace("//rgs@", f"//{user}@")))
    try:
        found = await reads.condition()
        assert found is not None
        return found
    finally:
        await reads.close()


@pytest.mark.slow
async def test_a_standby_that_is_lost_is_seen() -> None:
    with start_pair() as (primary, standby):

        async def standbys() -> int:
            return (await condition_of(primary)).standbys_sync

        await until(standbys)
        found = await condition_of(primary)
        assert (found.is_whole, found.waits_for_standby, found.standbys) == (True, True, 1)
        assert 0 <= found.replay_lag_s < 60
        standby.kill()

        async def is_alone() -> bool:
            return not await standbys()

        await until(is_alone)
        found = await condition_of(primary)
        assert (found.waits_for_standby, found.standbys) == (True, 0)


@pytest.mark.slow
async def test_an_archive_that_fails_is_seen() -> None:
    with one_server({"archive_mode": "on", "archive_command": "/bin/false"}) as server:
        before = await condition_of(server)
        assert (before.archives, before.archive_failing, before.waits_for_standby) == (True, False, False)
        connection = await asyncpg.connect(server.url())
        try:
            await connection.execute("CREATE TABLE x (y int)")
            await connection.execute("SELECT pg_switch_wal()")

            async def fails() -> bool:
                found = await condition_of(server)
                return found.archive_failing and found.archive_failures > 0

            await until(fails)
        finally:
            await connection.close()


@pytest.mark.usefixtures("postgres_store")
async def test_transactions_connections_and_size(tmp_path: Path) -> None:
    reads = PostgresReads(DATABASES[tmp_path])
    connection = await asyncpg.connect(DATABASES[tmp_path].url)
    try:
        before = await reads.condition()
        assert before is not None
        async with connection.transaction():
            await connection.fetchval("SELECT 1")
            await asyncio.sleep(0.3)
            found = await reads.condition()
        assert found is not None
        assert found.oldest_transaction_s >= 0.3
        assert 2 <= found.connections <= found.connections_max
        assert found.bytes > 1_000_000
        assert not found.archives
    finally:
        await connection.close()
        await reads.close()


async def test_a_login_that_may_not_see_others_says_so() -> None:
    with one_server() as server:
        connection = await asyncpg.connect(server.url())
        await connection.execute("CREATE ROLE small LOGIN")
        assert not (await condition_of(server, "small")).is_whole
        await connection.execute("GRANT pg_monitor TO small")
        assert (await condition_of(server, "small")).is_whole
        await connection.close()


async def test_a_file_has_none(tmp_path: Path) -> None:
    async with open_shelf(tmp_path, started=False) as store:
        assert await store.condition() is None
