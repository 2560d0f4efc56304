"""Migrations beside running nodes: expand steps while software of the schema before lives, every other step refused."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import asyncpg
import pytest

from rgs.store.address import PostgresAddress
from rgs.store.changes import Change, Draft, NewInstance, StoreRefusedError
from rgs.store.interface import Store
from rgs.store.migrations import index_name, parse_step, steps
from rgs.store.opening import migrate_store, older_instances, open_store
from rgs.store.postgres import migrating
from tests.support.store.shelf import (
    INSTANCE_KEY,
    NAME,
    NODE_KEY,
    address_of,
    change_by_hand,
    open_shelf,
    opened,
    session,
    start_instance,
    table,
)

KNOWN = steps("postgres")[-1].version
EXPAND = (
    "-- expand: for a test.\nALTER TABLE sessions ADD COLUMN extra BIGINT NOT NULL DEFAULT 7;\n-- concurrently\n"
    "CREATE INDEX sessions_extra ON sessions (currency, id);\n"
)
CONTRACT = "-- contract: for a test.\nALTER TABLE sessions DROP COLUMN extra;\n"
LATE = "node-1-b2-w0"

pytestmark = [
    pytest.mark.usefixtures("either_store"),
    pytest.mark.parametrize("either_store", ["postgres"], indirect=True),
]
Plant = Callable[..., None]


@pytest.fixture
def plant(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Plant:
    """The software of a later version, with these migrations behind the newest."""
    genuine = resources.files("rgs.store.migrations")

    def planted(*scripts: str) -> None:
        folder = tmp_path_factory.mktemp("migrations")
        shutil.copytree(str(genuine.joinpath("postgres")), folder / "postgres")
        for number, script in enumerate(scripts, KNOWN + 1):
            (folder / "postgres" / f"{number:04}.sql").write_text(script, "ascii")
        monkeypatch.setattr("rgs.store.migrations.resources.files", lambda _: folder)

    return planted


async def versions(folder: Path) -> dict[str, str]:
    query = "SELECT key, value FROM meta WHERE key IN ('schema', 'expanded')"
    return {row[0]: row[1] for row in await table(folder, query)}


async def begin(store: Store) -> None:
    """An instance of another node."""
    start = Draft("instance_start", {"draws_in_flight_max": "8", "time": "then"})
    await store.start_instance(
        NewInstance(
            instance="node-2-b1-w0",
            node="node-2",
            boot_no=1,
            worker=0,
            start_ms=1,
            start=start,
            node_signer=NODE_KEY,
            signer=INSTANCE_KEY,
        )
    )


def end(instance: str) -> Change:
    return Change(drafts=(Draft("instance_end", {"time": "then"}),), ends=(instance, 5000))


async def test_both_versions_run_until_the_older_one_has_ended(
    tmp_path: Path, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = address_of(tmp_path)
    async with open_shelf(tmp_path) as older, open_shelf(tmp_path, started=False) as late:
        await older.commit(opened(session(1)))
        assert not older.beside_older
        plant(EXPAND)
        with pytest.raises(StoreRefusedError, match="rgs migrate"):
            await open_store(where)
        assert await migrate_store(where) == (KNOWN, KNOWN + 1)
        assert await versions(tmp_path) == {"schema": str(KNOWN), "expanded": str(KNOWN + 1)}
        assert await older_instances(where) == [NAME]
        await older.commit(opened(session(2)))
        async with open_shelf(tmp_path, started=False) as newer:
            assert newer.beside_older
            await begin(newer)
            await newer.commit(opened(session(3)))
            assert await older_instances(where) == [NAME]
            assert await migrate_store(where) == (KNOWN + 1, KNOWN + 1)
            assert (await versions(tmp_path))["schema"] == str(KNOWN), "the older one lives"
            await older.commit(end(NAME))
            assert await migrate_store(where) == (KNOWN + 1, KNOWN + 1)
            assert (await versions(tmp_path))["schema"] == str(KNOWN + 1)
            assert await older_instances(where) == []
            await newer.commit(opened(session(4)))
        async with open_shelf(tmp_path, started=False) as alone:
            assert not alone.beside_older
        monkeypatch.undo()  # the older software again: shut out
        with pytest.raises(StoreRefusedError, match=f"schema {KNOWN + 1}, this version knows {KNOWN} at most"):
            await start_instance(late, LATE, boot_no=2)
    assert await table(tmp_path, "SELECT DISTINCT extra FROM sessions") == [(7,)]
    assert await table(tmp_path, "SELECT indisvalid FROM pg_index WHERE indexrelid = 'sessions_extra'::regclass") == [
        (True,)
    ]


async def test_an_older_node_may_begin_again_while_both_run(
    tmp_path: Path, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_shelf(tmp_path) as older:
        plant(EXPAND)
        await migrate_store(address_of(tmp_path))
        await older.commit(end(NAME))
        monkeypatch.undo()
        async with open_shelf(tmp_path, started=False) as again:
            assert not again.beside_older, "what is newer reads what it writes"
            await begin(again)
            await again.commit(opened(session(1)))
            rows = await table(tmp_path, "SELECT instance, schema_no FROM instances WHERE alive = 1")
            assert rows == [("node-2-b1-w0", KNOWN)]


async def test_a_contract_step_and_a_second_expand_step_need_that_the_older_one_has_ended(
    tmp_path: Path, plant: Plant
) -> None:
    """N and N-1 run together, never N-2."""
    where = address_of(tmp_path)
    async with open_shelf(tmp_path) as older:
        plant(EXPAND, EXPAND.replace("extra", "more"), CONTRACT)
        with pytest.raises(StoreRefusedError, match=f"{NAME}, started .* stop these nodes"):
            await migrate_store(where)
        assert await versions(tmp_path) == {"schema": str(KNOWN), "expanded": str(KNOWN + 1)}
        await older.commit(opened(session(1)))
        await older.commit(end(NAME))
        assert await migrate_store(where) == (KNOWN + 1, KNOWN + 3)
    assert (await versions(tmp_path))["schema"] == str(KNOWN + 3)


async def test_an_expand_step_that_was_interrupted_is_done_again(tmp_path: Path, plant: Plant) -> None:
    where = address_of(tmp_path)
    async with open_shelf(tmp_path) as older:
        for number in (1, 2):
            await older.commit(opened(session(number)))
        # The index is made, the rest fails.
        plant(EXPAND.replace("-- concurrently", "INSERT INTO nowhere VALUES (1);\n-- concurrently"))
        with pytest.raises(asyncpg.UndefinedTableError):
            await migrate_store(where)
        assert await versions(tmp_path) == {"schema": str(KNOWN)}
        await older.commit(opened(session(3)))
        # An index that could not be finished stays behind, invalid.
        unique = EXPAND.replace("CREATE INDEX sessions_extra", "CREATE UNIQUE INDEX sessions_other").replace(
            "(currency, id)", "(currency)"
        )
        plant(unique)
        with pytest.raises(asyncpg.UniqueViolationError):
            await migrate_store(where)
        await change_by_hand(tmp_path, "UPDATE sessions SET currency = 'X' || id")
        assert await migrate_store(where) == (KNOWN, KNOWN + 1)
    rows = await table(
        tmp_path, "SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE NOT i.indisvalid"
    )
    assert rows == [(0,)]


async def test_a_table_that_is_held_delays_the_step_and_no_commit(
    tmp_path: Path, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "LOCK_MS", 50)
    monkeypatch.setattr(migrating, "GAP_S", 0.05)
    where = address_of(tmp_path)
    async with open_shelf(tmp_path) as older:
        plant(EXPAND.partition("-- concurrently")[0])
        assert isinstance(where, PostgresAddress)
        holder = await asyncpg.connect(where.url)
        await holder.execute("BEGIN")
        await holder.execute("SELECT count(*) FROM sessions")
        running = asyncio.create_task(migrate_store(where))
        for number in range(1, 6):
            await older.commit(opened(session(number)))
            await asyncio.sleep(0.05)
        assert not running.done()
        await holder.execute("COMMIT")
        await holder.close()
        assert await running == (KNOWN, KNOWN + 1)


async def test_it_gives_up_and_says_why(tmp_path: Path, plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("LOCK_MS", 20), ("GAP_S", 0.01), ("TRIES_MAX", 3)):
        monkeypatch.setattr(migrating, name, value)
    where = address_of(tmp_path)
    async with open_shelf(tmp_path):
        plant(EXPAND.partition("-- concurrently")[0])
        assert isinstance(where, PostgresAddress)
        holder = await asyncpg.connect(where.url)
        await holder.execute("BEGIN; SELECT count(*) FROM sessions")
        with pytest.raises(StoreRefusedError, match="did not get its locks in 3 tries of 20 ms"):
            await migrate_store(where)
        await holder.close()
    assert await versions(tmp_path) == {"schema": str(KNOWN)}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("CREATE TABLE extra (n BIGINT);", "the first line declares"),
        ("-- expand:\nCREATE TABLE extra (n BIGINT);", "the first line declares"),
        ("-- expand: x\n-- concurrently\nDROP TABLE sessions;", "only indexes stand behind"),
    ],
)
def test_a_file_that_does_not_say_what_it_is(text: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        parse_step(KNOWN + 1, text)


def test_every_step_from_schema_12_on_declares_what_it_is() -> None:
    for kind in ("sqlite", "postgres"):
        for step in steps(kind):
            if step.version > 11:
                assert step.script.startswith(("-- expand: ", "-- contract: "))
    assert [index_name(index) for step in steps("postgres") for index in step.indexes][:1] == [
        "sessions_by_regulator_session"
    ]
