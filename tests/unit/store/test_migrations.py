"""Schemas: forward only, whole or not at all, with the data that is there; and that no other schema is opened."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from rgs.cli.migrate import command
from rgs.core.rounds import RoundStatus
from rgs.store.changes import Change, Draft, StoreError, StoreRefusedError
from rgs.store.migrations import steps
from rgs.store.opening import create_store, migrate_store, open_parties, open_reads, open_store
from rgs.store.rows import ROUNDS, SESSIONS
from rgs.store.tables import Table
from tests.support.store.shelf import (
    DATABASES,
    NAME,
    address_of,
    change_by_hand,
    dealt,
    open_shelf,
    opened,
    session,
    start_instance,
    stored,
    table,
    ulid,
)
from tests.support.store.table_rows import TABLE, seated, table_row


def newest(kind: str) -> int:
    return steps(kind)[-1].version


NEXT = "-- contract: for a test.\nCREATE TABLE extra (n BIGINT);\nINSERT INTO extra SELECT version FROM sessions;\n"
BROKEN = NEXT + "INSERT INTO nowhere VALUES (1);\n"  # noqa: S608

pytestmark = pytest.mark.usefixtures("either_store")
Plant = Callable[[str], None]


@pytest.fixture
def plant(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Plant:
    """A version whose newest migration is this script."""
    genuine = resources.files("rgs.store.migrations")

    def planted(script: str) -> None:
        folder = tmp_path_factory.mktemp("migrations")
        for kind in ("sqlite", "postgres"):
            shutil.copytree(str(genuine.joinpath(kind)), folder / kind)
            (folder / kind / f"{newest(kind) + 1:04}.sql").write_text(script, "ascii")
        monkeypatch.setattr("rgs.store.migrations.resources.files", lambda _: folder)

    return planted


def test_steps_are_read_by_the_folder_that_the_package_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a measured server it compares each file as it is read; a plain path of the same name would not."""
    read: list[str] = []

    class Watched(type(tmp_path)):  # type: ignore[misc] # of this system's kind
        def open(self, *arguments: Any, **named: Any) -> Any:
            read.append(self.name)
            return super().open(*arguments, **named)

    shutil.copytree(str(resources.files("rgs.store.migrations").joinpath("sqlite")), tmp_path / "sqlite")
    monkeypatch.setattr("rgs.store.migrations.resources.files", lambda _: Watched(tmp_path))
    assert [f"{step.version:04}.sql" for step in steps("sqlite")] == read
    assert read


async def with_data(folder: Path) -> None:
    async with open_shelf(folder) as store:
        for number in (1, 2, 3):
            await store.commit(opened(session(number)))
    if folder in DATABASES:  # a store that was let go of without a word keeps its lease
        await change_by_hand(folder, "UPDATE instances SET lease_ms = 0")


async def test_a_store_is_brought_up_with_its_data(tmp_path: Path, either_store: str, plant: Plant) -> None:
    await with_data(tmp_path)
    before, known = await stored(tmp_path), newest(either_store)
    plant(NEXT)
    for opening in (open_store, open_reads, open_parties):
        with pytest.raises(StoreRefusedError, match="rgs migrate"):
            await opening(address_of(tmp_path))
    assert await migrate_store(address_of(tmp_path)) == (known, known + 1)
    assert await migrate_store(address_of(tmp_path)) == (known + 1, known + 1)
    assert await table(tmp_path, "SELECT n FROM extra") == [(1,), (1,), (1,)]
    assert await stored(tmp_path) == before
    async with open_shelf(tmp_path, started=False) as store:
        assert await store.session(ulid(3)) is not None


async def test_a_migration_that_fails_changes_nothing(tmp_path: Path, either_store: str, plant: Plant) -> None:
    await with_data(tmp_path)
    known = str(newest(either_store))
    plant(BROKEN)
    with pytest.raises(Exception, match="nowhere"):
        await migrate_store(address_of(tmp_path))
    assert await table(tmp_path, "SELECT value FROM meta WHERE key = 'schema'") == [(known,)]
    with pytest.raises(Exception, match="extra"):
        await table(tmp_path, "SELECT n FROM extra")


async def test_a_store_of_the_first_release_gets_its_tables(
    tmp_path: Path, either_store: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store of schema 8, with a session, a round in play and an ended one, is one of this version after it."""
    sessions = [session(1, round_no=2, open_round_id=ulid(10_002))]
    rounds = [
        replace(dealt(session(1), 1), status=RoundStatus.SETTLED, end_ms=9),
        replace(dealt(session(1), 2), round_no=2),
    ]
    await old_store(
        tmp_path, either_store, tmp_path_factory.mktemp("eight"), monkeypatch, {SESSIONS: sessions, ROUNDS: rounds}
    )
    assert await migrate_store(address_of(tmp_path)) == (8, newest(either_store))
    async with open_shelf(tmp_path) as store:
        assert await store.session(ulid(1)) == sessions[0]
        assert [one for _, one in await store.open_rounds("", after=0, limit=9)] == [rounds[1]]
        assert await store.round(rounds[0].round_id) == rounds[0]
        assert not await store.has_unfinished(rounds[1].round_id)
        await store.commit(Change(session=replace(sessions[0], version=2), round=replace(rounds[1], version=2)))
        await store.commit(Change(table=table_row()))
        await store.commit(seated(2, bets=True))
        assert await store.reserved_breaks(TABLE, "", 9) == []
        with pytest.raises(StoreError):
            await store.commit(Change(session=replace(sessions[0], version=3, reserved_minor=1001)))
    assert await table(tmp_path, "SELECT value FROM meta WHERE key = 'schema'") == [(str(newest(either_store)),)]


async def old_store(
    folder: Path, kind: str, scripts: Path, monkeypatch: pytest.MonkeyPatch, rows: dict[Table[Any], list[Any]]
) -> None:
    """A store as version 0.1.0 made it, with these rows in the columns that it knew."""
    genuine = resources.files("rgs.store.migrations")
    for name in ("sqlite", "postgres"):
        (scripts / name).mkdir()
        shutil.copy(str(genuine.joinpath(name, "0008.sql")), scripts / name)
    with monkeypatch.context() as patched:
        patched.setattr("rgs.store.migrations.resources.files", lambda _: scripts)
        if kind == "postgres":
            await change_by_hand(folder, "DROP SCHEMA public CASCADE")
            await change_by_hand(folder, "CREATE SCHEMA public")
        await create_store(address_of(folder), ulid(0))
    numbers = count(1)
    for of, values in rows.items():
        known = [at for at, one in enumerate(of.written) if one.name not in LATER[of.name]]
        for value in values:
            row = of.row(value)
            named = {"id": next(numbers), **{of.written[at].name: row[at] for at in known}}
            if kind == "postgres" and of is SESSIONS:
                named["last_id"] = 0
            names, literals = ", ".join(named), ", ".join(literal(one, kind) for one in named.values())
            await change_by_hand(folder, f"INSERT INTO {of.name} ({names}) VALUES ({literals})")  # noqa: S608


LATER = {
    "sessions": {"table_id", "reserved_minor", "mode", "bet_limits", "language", "return_url"},
    "rounds": {"table_id", "phase", "path", "free_bet"},
}
"""Columns that came after schema 8."""


def literal(value: Any, kind: str) -> str:
    if isinstance(value, bytes):
        return f"'\\x{value.hex()}'" if kind == "postgres" else f"x'{value.hex()}'"
    return f"'{value}'" if isinstance(value, str) else str(int(value))


async def test_a_newer_store_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    await with_data(tmp_path)
    await change_by_hand(tmp_path, "UPDATE meta SET value = '99' WHERE key = 'schema'")
    for work in (open_store, open_reads, migrate_store):
        with pytest.raises(StoreRefusedError, match="schema 99"):
            await work(address_of(tmp_path))


async def test_a_store_from_before_the_first_release_is_refused_in_one_line(tmp_path: Path) -> None:
    await with_data(tmp_path)
    await change_by_hand(tmp_path, "UPDATE meta SET value = '7' WHERE key = 'schema'")
    for work in (open_store, open_reads, open_parties, migrate_store):
        with pytest.raises(
            StoreRefusedError, match=r"schema 7, of a version before 0\.1\.0.*use the version"
        ) as refused:
            await work(address_of(tmp_path))
        assert "\n" not in str(refused.value)
    assert await table(tmp_path, "SELECT value FROM meta WHERE key = 'schema'") == [("7",)]


async def test_there_must_be_a_store_to_migrate(tmp_path: Path, either_store: str) -> None:
    if either_store == "postgres":
        await change_by_hand(tmp_path, "DROP TABLE meta")
    with pytest.raises(StoreRefusedError, match="no store"):
        await migrate_store(address_of(tmp_path))


async def test_a_file_that_a_server_holds_is_not_migrated(tmp_path: Path, either_store: str) -> None:
    if either_store == "sqlite":
        async with open_shelf(tmp_path):
            with pytest.raises(StoreRefusedError, match="in use"):
                await migrate_store(address_of(tmp_path))


@pytest.mark.parametrize("either_store", ["postgres"], indirect=True)
async def test_a_database_that_a_node_lives_in_is_not_migrated(
    tmp_path: Path, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = newest("postgres")
    async with open_shelf(tmp_path) as store, open_shelf(tmp_path, started=False) as late:
        await store.commit(opened(session(1)))
        plant(NEXT)
        refusal = f"{NAME}, started [0-9]+ s ago, its lease ends in (60|5[0-9]) s: stop these nodes"
        with pytest.raises(StoreRefusedError, match=refusal) as refused:
            await migrate_store(address_of(tmp_path))
        assert refused.value.metadata["value"] == "1"
        assert await table(tmp_path, "SELECT value FROM meta WHERE key = 'schema'") == [(str(known),)]
        await store.commit(opened(session(2)))  # it serves on
        await store.commit(Change(drafts=(Draft("instance_end", {"time": "then"}),), ends=(NAME, 5000)))
        assert await migrate_store(address_of(tmp_path)) == (known, known + 1)
        monkeypatch.undo()  # a node of the version before, which opened the store in time
        with pytest.raises(StoreRefusedError, match="schema"):
            await start_instance(late, "node-1-b2-w0", boot_no=2)
    assert await table(tmp_path, "SELECT instance FROM instances") == [(NAME,)]


@pytest.mark.parametrize("either_store", ["postgres"], indirect=True)
async def test_a_refused_migration_names_some_and_counts_all(tmp_path: Path, plant: Plant) -> None:
    async with open_shelf(tmp_path) as store:
        await change_by_hand(
            tmp_path,
            "INSERT INTO instances (instance, node, boot_no, worker, alive, statement_no, draw_no, start_ms, slot,"
            " last_id, lease_ms) SELECT 'other-b1-w' || n, 'other', 1, n, 1, 0, 0, 0, n, 0, 9000000000000"
            " FROM generate_series(1, 7) AS n",
        )
        assert await migrate_store(address_of(tmp_path)) == (newest("postgres"),) * 2, "nothing to do, no harm"
        plant(NEXT)
        with pytest.raises(StoreRefusedError, match=r"node-1-b1-w0.*other-b1-w4.*; and 3 more: stop"):
            await migrate_store(address_of(tmp_path))
        assert await store.renew_lease(NAME, 1000)


async def test_the_command_says_what_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def migrated(_where: Any) -> tuple[int, int]:
        return 1, 2

    def run(work: Any) -> Any:
        with pytest.raises(StopIteration) as done:
            work.send(None)
        return done.value.value

    (tmp_path / "rgs.toml").write_text('node = "node1"\n')
    monkeypatch.setattr("rgs.cli.migrate.migrate_store", migrated)
    monkeypatch.setattr("rgs.cli.migrate.asyncio.run", run)
    assert command(tmp_path) == 0
    assert "had schema 1 and has 2" in capsys.readouterr().out
