"""The shared store where several processes have it open: sessions that another one moved, leases, duties, counters; and
commits whose end nobody saw.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from rgs.core.statements import Ed25519Signer
from rgs.store.changes import (
    Change,
    Draft,
    NewInstance,
    RequestSeenError,
    SessionRaceError,
    StoreError,
    StoreRefusedError,
    SwitchOff,
    SwitchOn,
)
from rgs.store.opening import create_store, open_store
from rgs.store.postgres.link import Link
from rgs.store.postgres.store import PostgresStore
from tests.support.store.shelf import (
    NAME,
    NODE_KEY,
    address_of,
    answer,
    applied,
    change_by_hand,
    open_shelf,
    opened,
    operation,
    session,
    start_instance,
    started,
    stored,
    table,
    ulid,
)
from tests.unit.store.test_turn import NEXT, turning

DAY_MS = 86_400_000


@asynccontextmanager
async def nodes(folder: Path, count: int) -> AsyncIterator[list[PostgresStore]]:
    """Processes over one store, each with an instance of a node of its own."""
    async with AsyncExitStack() as opened_stores:
        found = []
        for number in range(1, count + 1):
            store = await PostgresStore.open(address_of(folder))  # type: ignore[arg-type]
            opened_stores.push_async_callback(store.close)
            await store.start_instance(
                NewInstance(
                    instance=f"node-{number}-b1-w0",
                    node=f"node-{number}",
                    boot_no=1,
                    worker=0,
                    start_ms=1000,
                    start=Draft("instance_start", {"draws_in_flight_max": "8", "time": "then"}),
                    node_signer=NODE_KEY,
                    signer=Ed25519Signer.from_seed(bytes([number]) * 32),
                )
            )
            found.append(store)
        yield found


# --- two processes ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("postgres_store")
async def test_of_two_nodes_that_move_a_session_one_wins_and_the_other_reads_again(tmp_path: Path) -> None:
    async with nodes(tmp_path, 4) as stores:
        await stores[0].commit(opened(session(1)))
        for turn in range(10):
            read = [await store.session(ulid(1)) for store in stores]
            changes = [
                Change(replace(one, version=one.version + 1), answer=answer(100 * turn + number))
                for number, one in enumerate(read)
                if one is not None
            ]
            outcomes = await asyncio.gather(
                *(store.commit(change) for store, change in zip(stores, changes, strict=True)), return_exceptions=True
            )
            assert sorted(type(outcome).__name__ for outcome in outcomes) == [*["SessionRaceError"] * 3, "tuple"]
        assert [one.version for one in [await store.session(ulid(1)) for store in stores] if one] == [11] * 4
    assert len(await table(tmp_path, "SELECT request_id FROM answers")) == 10


@pytest.mark.usefixtures("postgres_store")
async def test_what_is_in_memory_may_be_old_and_does_no_harm(tmp_path: Path) -> None:
    async with nodes(tmp_path, 2) as (one, two):
        await one.commit(opened(session(1)))
        await two.commit(Change(session(1, version=2, player="bert"), answer=answer(1)))
        old, new = await one.session(ulid(1), fresh=False), await one.session(ulid(1))
        assert old is not None
        assert new is not None
        assert (old.version, new.version) == (1, 2)
        with pytest.raises(SessionRaceError):
            await one.commit(Change(replace(old, version=2), answer=answer(2)))
        assert await one.session(ulid(1), fresh=False) == new, "a commit that fails is forgotten"


@pytest.mark.usefixtures("postgres_store")
async def test_one_request_at_two_nodes_takes_effect_once(tmp_path: Path) -> None:
    async with nodes(tmp_path, 2) as (one, two):
        await one.commit(Change(answer=answer(1)))
        with pytest.raises(RequestSeenError):
            await two.commit(Change(session(1), answer=answer(1)))
        await one.commit(Change(session(2), operation=operation(1, ulid(2))))
        for number, status in ((3, "pending"), (4, "done")):
            # Two operations of one request, in sessions of their own; done or not.
            with pytest.raises(SessionRaceError):
                await two.commit(
                    Change(session(3), operation=replace(operation(number, ulid(3)), request_id="request-1"))
                )
            await one.commit(
                Change(session(2, version=number - 1), operation=replace(operation(1, ulid(2)), status=status))
            )
        failed = replace(operation(9, ulid(9), "failed"), request_id="request-7")
        await one.commit(Change(session(9), operation=failed))
        await two.commit(Change(session(8), operation=replace(operation(8, ulid(8)), request_id="request-7")))


@pytest.mark.usefixtures("postgres_store")
async def test_statements_keep_the_order_of_instances_and_sessions_over_nodes(tmp_path: Path) -> None:
    async with nodes(tmp_path, 3) as stores:
        await stores[0].commit(opened(session(1)))
        for number in range(1, 13):
            store = stores[number % 3]
            read = await store.session(ulid(1))
            assert read is not None
            draft = Draft("round_final", {"time": "then"}, round_id=ulid(number), seat_no=1)
            await store.commit(Change(replace(read, version=read.version + 1), drafts=(draft,)))
    rows = await stored(tmp_path)
    assert [row.link_no for row in rows if row.link_no] == list(range(1, 14))
    for number in (1, 2, 3):
        own = [row.statement_no for row in rows if row.instance == f"node-{number}-b1-w0"]
        assert own == list(range(1, len(own) + 1))
    assert len({row.id for row in rows}) == len(rows)


# --- leases, duties, counters -----------------------------------------------------------------------------------------


def lost(name: str, statement_no: int = 1, draw_no: int = 0) -> Change:
    numbers = {"instance": name, "last_draw_no": str(draw_no), "last_statement_no": str(statement_no)}
    return Change(drafts=(Draft("instance_lost", {"lost": numbers, "time": "then"}),), ends=(name, 5000))


@pytest.mark.usefixtures("postgres_store")
async def test_an_instance_is_lost_when_its_lease_is_over_and_commits_nothing_more(tmp_path: Path) -> None:
    async with nodes(tmp_path, 2) as (one, two):
        await one.commit(opened(session(1)))
        assert await two.lapsed_instances() == []
        with pytest.raises(StoreError, match="lease"):
            await two.commit(lost("node-1-b1-w0", 2))
        assert await one.renew_lease("node-1-b1-w0", -1)
        assert [row.instance for row in await two.lapsed_instances()] == ["node-1-b1-w0"]
        with pytest.raises(StoreError, match="has committed since"):
            await two.commit(lost("node-1-b1-w0", 1))
        await two.commit(lost("node-1-b1-w0", 2))
        assert await two.lapsed_instances() == []
        assert not await one.renew_lease("node-1-b1-w0", 10_000)
        with pytest.raises(StoreError):
            await one.commit(opened(session(2)))
        assert await two.session(ulid(2)) is None


@pytest.mark.usefixtures("postgres_store")
async def test_a_worker_that_begins_anew_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as before, open_shelf(tmp_path, started=False) as after:
        await start_instance(after, "node-1-b2-w0", boot_no=2)
        assert [row.instance for row in await after.lapsed_instances()] == [NAME]
        await after.commit(lost(NAME))
        with pytest.raises(StoreError):
            await before.commit(opened(session(1)))


@pytest.mark.usefixtures("postgres_store")
async def test_a_duty_has_one_leader_until_he_goes(tmp_path: Path) -> None:
    async with nodes(tmp_path, 2) as (one, two):
        assert await one.lead("events")
        assert await one.lead("events")
        assert not await two.lead("events")
        assert await two.lead("answers")
        await change_by_hand(
            tmp_path,
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        )
        assert not await one.lead("answers") or not await two.lead("answers")
        await one.close()
        await two.lead("events")
        assert await two.lead("events")


@pytest.mark.usefixtures("postgres_store")
@pytest.mark.parametrize("leads", [False, True])
async def test_what_one_node_tells_all_hear(tmp_path: Path, leads: bool) -> None:
    """Also where it leads before it listens, over the same connection."""
    heard: asyncio.Queue[str] = asyncio.Queue()
    async with nodes(tmp_path, 2) as (one, two):
        assert not leads or await two.lead("log")
        await two.listen(heard.put_nowait)
        await one.emit("switches")
        assert await asyncio.wait_for(heard.get(), 5) == "switches"


@pytest.mark.usefixtures("either_store")
async def test_the_counter_of_switches_rises_with_the_switch(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        assert await store.changes("switches") == 0
        await store.commit(Change(records=(SwitchOff("game", "uth", "WATCHED", "admin-1", 1),)))
        assert await store.changes("switches") == 1
        await store.commit(Change(records=(SwitchOn("game", "uth"),)))
        with pytest.raises(Exception):  # noqa: B017, PT011 - the switch does not exist, in either database's words
            await store.commit(Change(records=(SwitchOff("house", "", "WATCHED", "admin-1", 1),)))
        assert await store.changes("switches") == 2


@pytest.mark.usefixtures("either_store")
async def test_a_file_leads_and_a_database_can_be_led(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        assert await store.lead("events")
        assert await store.renew_lease(NAME, 1000)
        assert await store.lapsed_instances() == []
        await store.listen(lambda _: None)
        await store.emit("nothing")


# --- answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("either_store")
async def test_answers_live_for_the_window_and_over_midnight(tmp_path: Path) -> None:
    today = 20_000 * DAY_MS
    async with open_shelf(tmp_path) as store:
        await store.forget_answers(today, 0)
        times = {1: today - 1, 2: today, 3: today + DAY_MS - 1, 4: today + DAY_MS}
        for number, time_ms in times.items():
            await store.commit(Change(answer=replace(answer(number), time_ms=time_ms)))

        async def kept() -> list[int]:
            return [number for number in times if await store.answer("op-1", "Act", f"request-{number}") is not None]

        assert await kept() == [1, 2, 3, 4]
        assert await store.forget_answers(today, today) >= 1
        assert await kept() == [2, 3, 4]
        while await store.forget_answers(today, today + DAY_MS):
            pass
        assert await kept() == [4]


@pytest.mark.usefixtures("postgres_store")
async def test_a_retry_over_midnight_finds_its_answer_and_has_no_second_effect(tmp_path: Path) -> None:
    """The keys of two days do not know of one another; the session's version does."""
    midnight = 20_000 * DAY_MS
    async with nodes(tmp_path, 2) as (one, two):
        await one.make_days(midnight)
        await one.commit(opened(session(1)))
        read = [await store.session(ulid(1)) for store in (one, two)]
        changes = [started(found, number) for number, found in enumerate(read, start=1) if found is not None]
        for number, (change, time_ms) in enumerate(zip(changes, (midnight - 1, midnight), strict=True), start=1):
            assert change.round is not None
            change.round = replace(change.round, instance=f"node-{number}-b1-w0")
            change.answer = replace(answer(5), time_ms=time_ms)
        await one.commit(changes[0])
        with pytest.raises(SessionRaceError):
            await two.commit(changes[1])
        found = await two.answer("op-1", "Act", "request-5")
        assert found is not None
        assert found.time_ms == midnight - 1
    partitions = await table(tmp_path, "SELECT DISTINCT tableoid::regclass::text FROM answers")
    assert partitions == [("answers_20241003",)]


# --- commits whose end nobody saw -------------------------------------------------------------------------------------


def once(store: PostgresStore, monkeypatch: pytest.MonkeyPatch, act: Callable[[Any], Any]) -> None:
    """At the next COMMIT of the writer: `act` on the connection, and it is lost."""
    genuine = asyncpg.Connection.execute
    link = store._commits._link
    assert link is not None
    mine = link.connection

    async def execute(self: Any, query: str, *values: Any, **how: Any) -> str:
        if self is mine and query == "COMMIT":
            await act(lambda: genuine(self, "COMMIT"))
            self.terminate()
            raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
        return await genuine(self, query, *values, **how)

    monkeypatch.setattr(asyncpg.Connection, "execute", execute)


async def lands(commit: Callable[[], Any]) -> None:
    await commit()


async def is_lost(_commit: Callable[[], Any]) -> None:
    """The server rolls back when it sees the connection gone."""


@pytest.mark.usefixtures("postgres_store")
@pytest.mark.parametrize(("act", "landed"), [(lands, True), (is_lost, False)])
@pytest.mark.parametrize("signs", [True, False])
async def test_a_commit_whose_end_nobody_saw_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[Any], Any], landed: bool, signs: bool
) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(opened(session(1)))
        change = Change(session(1, version=2, link_no=1), answer=answer(1))
        if signs:
            change.drafts = (Draft("round_final", {"time": "then"}, round_id=ulid(7), seat_no=1),)
        change.discard = Draft("discarded_draw", {"draw_no": "1", "time": "then"})
        once(store, monkeypatch, act)
        (outcome,) = await applied(store, [change])
        assert isinstance(outcome, tuple if landed else StoreError)
        assert (await store.answer("op-1", "Act", "request-1") is not None) is landed
        assert store.draws_owed == (0 if landed else 1)
        await store.commit(opened(session(2)))
    rows = await stored(tmp_path)
    assert [row.statement_no for row in rows] == list(range(1, len(rows) + 1))
    assert ("discarded_draw" in [row.kind for row in rows]) is not landed


@pytest.mark.usefixtures("postgres_store")
async def test_a_warning_of_the_server_makes_a_commit_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a server that warns at every first COMMIT of a connection, and has committed."""
    warned: list[Link] = []
    genuine = asyncpg.Connection.execute

    async with open_shelf(tmp_path) as store:

        async def execute(self: Any, query: str, *values: Any, **how: Any) -> str:
            link = store._commits._link
            if query == "COMMIT" and link is not None and link.connection is self and not warned:
                warned.append(link)
                await genuine(self, "DO $$BEGIN RAISE WARNING 'canceling wait for synchronous replication'; END$$")
            return await genuine(self, query, *values, **how)

        monkeypatch.setattr(asyncpg.Connection, "execute", execute)
        await store.commit(opened(session(1)))
        assert len(warned) == 1
        assert not warned[0].is_open, "the connection is dropped"
        assert await store.session(ulid(1)) is not None
        await store.commit(opened(session(2)))
    assert [row.statement_no for row in await stored(tmp_path)] == [1, 2, 3]


@pytest.mark.usefixtures("postgres_store")
async def test_a_turn_whose_end_nobody_saw_is_looked_for_by_the_instance_that_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_shelf(tmp_path) as store:
        once(store, monkeypatch, lands)
        (outcome,) = await applied(store, [turning()])
        assert isinstance(outcome, tuple)
        (signed,) = await store.commit(opened(session(1)))
        assert (signed.instance, signed.statement_no) == (NEXT, 3)


# --- opening ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("postgres_store")
async def test_a_store_that_was_never_used_is_made_anew_and_no_other(tmp_path: Path) -> None:
    await create_store(address_of(tmp_path), ulid(77))
    async with open_shelf(tmp_path) as store:
        assert await store.meta("store_epoch") == ulid(77)
    with pytest.raises(StoreRefusedError, match="already"):
        await create_store(address_of(tmp_path), ulid(78))


@pytest.mark.usefixtures("postgres_store")
@pytest.mark.parametrize(("value", "what"), [("99", "at most"), ("0", "rgs init")])
async def test_another_schema_is_refused(tmp_path: Path, value: str, what: str) -> None:
    await change_by_hand(tmp_path, f"UPDATE meta SET value = '{value}' WHERE key = 'schema'")  # noqa: S608
    with pytest.raises(StoreRefusedError, match=what):
        await open_store(address_of(tmp_path))


@pytest.mark.usefixtures("postgres_store")
async def test_a_database_that_tells_too_early_is_refused(tmp_path: Path) -> None:
    name = str(address_of(tmp_path)).rpartition("/")[2]
    await change_by_hand(tmp_path, 'ALTER DATABASE "' + name + "\" SET synchronous_commit = 'off'")
    with pytest.raises(StoreRefusedError, match="synchronous_commit"):
        await open_store(address_of(tmp_path))
