"""The main store: who may open it, and that only one process may."""

from __future__ import annotations

import asyncio
import fcntl
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rgs.store import opening
from rgs.store.changes import (
    Change,
    StoreRefusedError,
)
from rgs.store.migrations import Migration, steps
from rgs.store.sqlite import store as sqlite_store
from rgs.store.sqlite.copying import copy_store, rewrite
from rgs.store.sqlite.store import SqliteStore, connect, create_store, migrate_store, open_verified
from tests.support.store.shelf import discarded, open_shelf, session, ulid

# --- opening ----------------------------------------------------------------------------------------------------------


def test_a_store_is_not_made_over_another(tmp_path: Path) -> None:
    create_store(tmp_path / "rgs.db", ulid(0))
    before = (tmp_path / "rgs.db").read_bytes()
    with pytest.raises(StoreRefusedError, match="already"):
        create_store(tmp_path / "rgs.db", ulid(1))
    assert (tmp_path / "rgs.db").read_bytes() == before
    assert (tmp_path / "rgs.db").stat().st_mode & 0o777 == 0o600


def test_a_store_is_made_whole_or_without_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_store, "steps", lambda kind: [*steps(kind), Migration(99, "CREATE TABLE meta (again);")])
    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        create_store(tmp_path / "rgs.db", ulid(0))
    with closing(connect(tmp_path / "rgs.db", read_only=True)) as reader:
        assert list(reader.execute("SELECT name FROM sqlite_master")) == []
    with pytest.raises(StoreRefusedError):
        SqliteStore(tmp_path / "rgs.db")


def test_there_must_be_a_store(tmp_path: Path) -> None:
    with pytest.raises(StoreRefusedError, match="no store"):
        SqliteStore(tmp_path / "rgs.db")
    assert list(tmp_path.iterdir()) == []


def foreign(path: Path, what: str) -> None:
    if what == "no database":
        path.write_bytes(b"this is a text file" * 100)
    elif what == "empty":
        path.touch()
    else:
        create_store(path, ulid(0))
        with closing(connect(path)) as connection:
            query = "UPDATE meta SET value = '99'" if what == "newer" else "DELETE FROM meta"
            connection.execute(query + " WHERE key = 'schema'")


@pytest.mark.parametrize("what", ["no database", "empty", "newer", "no schema"])
def test_another_schema_is_refused_and_the_lock_let_go(tmp_path: Path, what: str) -> None:
    path = tmp_path / "rgs.db"
    foreign(path, what)
    with pytest.raises(StoreRefusedError):
        SqliteStore(path)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


async def test_a_second_process_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    async with open_shelf(tmp_path):
        with pytest.raises(StoreRefusedError, match="in use"):
            SqliteStore(tmp_path / "rgs.db")
    async with open_shelf(tmp_path, started=False):
        pass


async def test_the_lock_is_what_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    async with open_shelf(tmp_path), open_shelf(tmp_path, started=False):
        pass


async def test_a_commit_is_on_the_disk_and_the_reader_cannot_write(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        assert store._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert store._db.execute("PRAGMA synchronous").fetchone() == (2,)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            store._reader.execute("DELETE FROM meta")
        assert (await store.meta("store_epoch"), await store.meta("nothing")) == (ulid(0), "")


def numbers_of(db: sqlite3.Connection) -> tuple[int, int]:
    """(bytes of a page, pages of the log between two checkpoints)."""
    (page_bytes,) = db.execute("PRAGMA page_size").fetchone()
    (pages,) = db.execute("PRAGMA wal_autocheckpoint").fetchone()
    return page_bytes, pages


async def test_a_new_store_has_small_pages_and_a_long_log(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        assert numbers_of(store._db) == (2048, 8192)


async def test_a_store_with_other_pages_keeps_them_and_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rgs.db"
    with monkeypatch.context() as before:
        before.setattr(sqlite_store, "PAGE_SIZE", "PRAGMA page_size = 4096")  # SQLite's own, as versions before took it
        create_store(path, ulid(0))
    async with open_shelf(tmp_path) as store:
        assert numbers_of(store._db) == (4096, 8192)
        await store.commit(Change(session=session(1)))
    rewrite(path)
    copy_store(path, tmp_path / "copy.db")
    async with open_shelf(tmp_path, started=False) as store:
        assert await store.session(ulid(1)) == session(1)
        assert numbers_of(store._db) == (4096, 8192)
        assert store._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    with closing(connect(tmp_path / "copy.db")) as copy:
        assert numbers_of(copy) == (4096, 8192)


def test_a_new_store_makes_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "a" / "home" / "rgs.db"
    create_store(path, ulid(0))
    assert path.stat().st_mode & 0o777 == 0o600


async def test_draws_of_a_group_that_is_stuck_are_owed_beside_those_that_wait(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        store._owe(Change(draw_no=1, discard=discarded(1)))
        store._owe(Change(draw_no=2))  # nothing of it is to be signed
        assert store.draws_owed == 1
        waiting = asyncio.get_running_loop().create_future()
        store.writer._group = [(Change(draw_no=number), waiting) for number in (3, 4, 0)]
        assert store.draws_owed == 1
        store.writer.is_stuck = True
        assert store.draws_owed == 3
        store.writer._group, store.writer.is_stuck = [], False
        store._owed.clear()


def test_a_store_that_is_refused_is_let_go_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_store(tmp_path / "rgs.db", ulid(0))
    with closing(connect(tmp_path / "rgs.db")) as db:
        db.execute("UPDATE meta SET value = '7' WHERE key = 'schema'")
    opened: list[sqlite3.Connection] = []

    def kept(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
        opened.append(connect(path, read_only=read_only))
        return opened[-1]

    monkeypatch.setattr("rgs.store.sqlite.store.connect", kept)
    with pytest.raises(StoreRefusedError, match="schema 7"):
        SqliteStore(tmp_path / "rgs.db")
    assert opened
    for connection in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")


def test_a_store_is_brought_up_over_several_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, known = tmp_path / "rgs.db", steps("sqlite")
    create_store(path, ulid(0))
    last = known[-1].version
    more = [Migration(last + number, f"CREATE TABLE extra_{number} (n);") for number in (1, 2, 3)]
    monkeypatch.setattr("rgs.store.sqlite.store.steps", lambda _: [*known, *more])
    assert migrate_store(path) == (last, last + 3)
    with closing(connect(path, read_only=True)) as db:
        assert db.execute("SELECT count(*) FROM sqlite_master WHERE name LIKE 'extra%'").fetchone() == (3,)


def test_a_store_that_opens_in_part_is_closed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rgs.db"
    create_store(path, ulid(0))
    opened: list[sqlite3.Connection] = []

    def in_part(where: Path, *, read_only: bool = False) -> sqlite3.Connection:
        if read_only:
            raise StoreRefusedError("planned")
        opened.append(open_verified(where))
        return opened[0]

    with monkeypatch.context() as patched:
        patched.setattr(sqlite_store, "open_verified", in_part)
        with pytest.raises(StoreRefusedError, match="planned"):
            SqliteStore(path)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].execute("SELECT 1")


def test_a_file_of_something_else_is_not_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "rgs.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE notes (text)")
    with pytest.raises(StoreRefusedError):
        rewrite(path)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("notes",)]


async def test_a_file_is_made_as_a_store_and_read_without_being_written(tmp_path: Path) -> None:
    path = tmp_path / "rgs.db"
    await opening.create_store(path, ulid(0))
    reads = await opening.open_reads(path)
    assert await reads.meta("store_epoch") == ulid(0)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        await reads._rows("DELETE FROM meta")
    await reads.close()
