"""Schemas: forward only, whole or not at all, with the data that is there; and that no other schema is opened."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from rgs.cli.migrate import command
from rgs.store.changes import StoreRefusedError
from rgs.store.migrations import steps
from rgs.store.opening import migrate_store, open_parties, open_reads, open_store
from tests.unit.store.shelf import address_of, change_by_hand, open_shelf, opened, session, stored, table, ulid

NEXT = "CREATE TABLE extra (n BIGINT);\nINSERT INTO extra SELECT version FROM sessions;\n"
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
            (folder / kind / f"{len(steps(kind)) + 1:04}.sql").write_text(script, "ascii")
        monkeypatch.setattr("rgs.store.migrations.resources.files", lambda _: folder)

    return planted


async def with_data(folder: Path) -> None:
    async with open_shelf(folder) as store:
        for number in (1, 2, 3):
            await store.commit(opened(session(number)))


async def test_a_store_is_brought_up_with_its_data(tmp_path: Path, either_store: str, plant: Plant) -> None:
    await with_data(tmp_path)
    before, known = await stored(tmp_path), len(steps(either_store))
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
    known = str(len(steps(either_store)))
    plant(BROKEN)
    with pytest.raises(Exception, match="nowhere"):
        await migrate_store(address_of(tmp_path))
    assert await table(tmp_path, "SELECT value FROM meta WHERE key = 'schema'") == [(known,)]
    with pytest.raises(Exception, match="extra"):
        await table(tmp_path, "SELECT n FROM extra")


async def test_a_newer_store_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    await with_data(tmp_path)
    await change_by_hand(tmp_path, "UPDATE meta SET value = '99' WHERE key = 'schema'")
    for work in (open_store, open_reads, migrate_store):
        with pytest.raises(StoreRefusedError, match="schema 99"):
            await work(address_of(tmp_path))


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
