"""The shared store while its database dies: two servers, one of them synchronous, killed, promoted, frozen, cancelled.

What was acknowledged is there, what was not is whole or absent, and a request that is sent again has one effect.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from rgs.store.address import PostgresAddress
from rgs.store.changes import (
    Change,
    Draft,
    RequestSeenError,
    SessionRaceError,
    StoreAwayError,
    StoreError,
    StoreUnknownError,
)
from rgs.store.opening import create_store
from rgs.store.postgres.reads import PostgresReads
from rgs.store.postgres.store import PostgresStore
from tests.support.store.postgres import Server, pair_url, start_pair
from tests.support.store.shelf import answer, opened, session, start_instance, ulid

pytestmark = pytest.mark.slow

PLAYERS = 8
ROUNDS = 40


@pytest.fixture
def pair() -> Iterator[tuple[Server, Server]]:
    with start_pair() as servers:
        yield servers


@asynccontextmanager
async def open_at(url: str, sessions: int = 1) -> AsyncIterator[PostgresStore]:
    """A new store with an instance and open sessions."""
    await create_store(PostgresAddress(url), ulid(0))
    store = await PostgresStore.open(PostgresAddress(url))
    try:
        await start_instance(store)
        for number in range(1, sessions + 1):
            await store.commit(opened(session(number)))
        yield store
    finally:
        await store.close()


async def step(store: PostgresStore, number: int, request: int) -> Change:
    """The next statement of a session, as the answer to a request."""
    read = await store.session(ulid(number))
    assert read is not None
    draft = Draft("round_final", {"time": "then"}, round_id=ulid(50_000 + request), seat_no=1)
    return Change(replace(read, version=read.version + 1), drafts=(draft,), answer=answer(request))


async def insist(store: PostgresStore, number: int, request: int) -> None:
    """A client: send the request until it is answered."""
    for _ in range(300):
        try:
            if await store.answer("op-1", "Act", f"request-{request}") is None:
                await store.commit(await step(store, number, request))
            return
        except RequestSeenError:
            return
        except (StoreError, SessionRaceError):
            await asyncio.sleep(0.05)
    raise AssertionError("the store did not come back")


async def verify_whole(store: PostgresStore, acknowledged: set[int], expected: int) -> None:
    """No gap in any order; every acknowledged request once, with its answer."""
    numbers: Counter[str] = Counter()
    links: Counter[str] = Counter()
    rounds: Counter[str] = Counter()
    async for row in store.statements_in_order():
        numbers[row.instance] += 1
        assert row.statement_no == numbers[row.instance]
        if row.link_no:
            links[row.session_id] += 1
            assert row.link_no == links[row.session_id]
        if row.kind == "round_final":
            rounds[row.round_id] += 1
    assert set(rounds.values()) <= {1}
    for request in acknowledged:
        assert rounds[ulid(50_000 + request)] == 1
        stored = await store.answer("op-1", "Act", f"request-{request}")
        assert stored is not None
        assert stored.envelope
    assert len(rounds) == expected


async def test_the_primary_is_killed_under_load_and_nothing_acknowledged_is_lost(pair: tuple[Server, Server]) -> None:
    primary, standby = pair
    acknowledged: set[int] = set()
    enough = asyncio.Event()

    async def play(store: PostgresStore, number: int) -> None:
        for stage in range(ROUNDS):
            request = 1000 * number + stage
            await insist(store, number, request)
            acknowledged.add(request)
            if len(acknowledged) > PLAYERS * ROUNDS // 3:
                enough.set()

    async def fail_over() -> None:
        await enough.wait()
        await asyncio.to_thread(primary.kill)
        await asyncio.sleep(0.3)
        await asyncio.to_thread(standby.promote)

    async with open_at(pair_url(primary, standby), PLAYERS) as store:
        await asyncio.gather(fail_over(), *(play(store, number) for number in range(1, PLAYERS + 1)))
        await verify_whole(store, acknowledged, PLAYERS * ROUNDS)
    # The standby alone holds it all: another process over it sees the same.
    other = await PostgresStore.open(PostgresAddress(standby.url()))
    await verify_whole(other, acknowledged, PLAYERS * ROUNDS)
    await other.close()


async def cancel_waiting_commit(url: str) -> None:
    """What an impatient operator does to a commit that waits for its standby."""
    connection = await asyncpg.connect(url)
    query = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query = 'COMMIT'"
    while not await connection.fetch(query):  # noqa: ASYNC110 - the server sets no event
        await asyncio.sleep(0.02)
    await connection.close()


async def test_a_commit_that_gave_up_waiting_for_its_standby_is_unknown_until_it_is_replicated(
    pair: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    primary, standby = pair
    async with open_at(pair_url(primary, standby)) as store:
        monkeypatch.setattr("rgs.store.writer.COMMIT_WAIT_S", 1.0)
        standby.freeze()
        try:
            committing = asyncio.create_task(store.commit(await step(store, 1, 1)))
            await cancel_waiting_commit(primary.url())
            with pytest.raises(StoreUnknownError):
                await committing
            with pytest.raises(StoreError):
                await store.answer("op-1", "Act", "request-1")  # it is visible there, and not replicated
        finally:
            standby.thaw()
        await insist(store, 1, 1)
        await insist(store, 1, 2)
        await verify_whole(store, {1, 2}, 2)


async def test_a_database_that_does_not_answer_fails_calls_fast_and_comes_back_without_a_restart(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_at(server.url(), 3) as store:
        monkeypatch.setattr("rgs.store.writer.COMMIT_WAIT_S", 0.5)
        changes = [await step(store, number, number) for number in (1, 2, 3)]
        changes[2].discard = Draft("discarded_draw", {"draw_no": "1", "time": "then"})
        server.freeze()
        try:
            with pytest.raises(StoreUnknownError):
                await store.commit(changes[0])
            for name in ("writer.COMMIT_WAIT_S", "postgres.reads.READ_S"):
                monkeypatch.setattr(f"rgs.store.{name}", 60.0)
            async with asyncio.timeout(20):  # nobody waits for a writer that is stuck
                with pytest.raises(StoreError):
                    await store.commit(changes[1])
                with pytest.raises(StoreError):
                    await store.commit(changes[2])
                with pytest.raises(StoreError):
                    await store.session(ulid(1))
            assert store.draws_owed == 1
        finally:
            server.thaw()
        await insist(store, 1, 1)
        await insist(store, 2, 2)
        assert store.draws_owed == 0
        await verify_whole(store, {1, 2}, 2)


async def test_a_database_that_is_restarted_is_found_again(server: Server) -> None:
    async with open_at(server.url()) as store:
        await insist(store, 1, 1)
        server.stop()
        for work in (store.commit(await_nothing()), store.session(ulid(1))):
            with pytest.raises(StoreError):
                await work
        server.start()
        await insist(store, 1, 2)
        await verify_whole(store, {1, 2}, 2)


async def test_a_store_is_opened_and_read_though_its_first_host_has_no_power(server: Server) -> None:
    """Planted: a host that takes connections and says nothing. A new process, and a stream, have one try each."""
    with socket.create_server(("127.0.0.1", 0)) as dark:
        url = server.url().replace("@", f"@127.0.0.1:{dark.getsockname()[1]},")
        async with open_at(url) as store:
            await insist(store, 1, 1)
            await verify_whole(store, {1}, 1)
    server.stop()
    with pytest.raises(StoreAwayError):
        await PostgresStore.open(PostgresAddress(server.url()))
    reads = PostgresReads(PostgresAddress(server.url()))
    with pytest.raises(StoreError):
        await anext(aiter(reads.statements_in_order()))


def await_nothing() -> Any:
    """A change that needs no read before it."""
    return Change(drafts=(Draft("event", {"code": "GUARD_CLOSED", "time": "then"}),))
