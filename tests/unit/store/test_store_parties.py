"""The allow-list: who is allowed, that a removed certificate stays denied, and that a running server notices."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
import pytest_asyncio

from rgs.core.errors import NotFoundError
from rgs.store.changes import StoreRefusedError
from rgs.store.interface import Parties, PartyRow
from rgs.store.opening import open_parties
from rgs.store.parties import SqliteParties
from rgs.store.sqlite import connect, create_store
from tests.unit.store.shelf import address_of, ulid

ANNA = PartyRow("aa" * 32, "op-1", "operator", "demo", 1000, None)
SECOND = PartyRow("bb" * 32, "op-1", "operator", "demo", 2000, None)
AUDIT = PartyRow("cc" * 32, "audit-1", "auditor", "", 1500, None)


@pytest_asyncio.fixture
async def parties(either_store: str, tmp_path: Path) -> AsyncIterator[Parties]:
    if either_store == "sqlite":
        create_store(tmp_path / "rgs.db", ulid(0))
    opened = await open_parties(address_of(tmp_path))
    yield opened
    await opened.close()


async def test_certificates_are_allowed_until_they_are_removed(parties: Parties) -> None:
    assert (await parties.allowed(), await parties.all(), await parties.changes()) == ([], [], 0)
    for row in (SECOND, AUDIT, ANNA):
        await parties.add(row)
    assert await parties.allowed() == [ANNA, AUDIT, SECOND]
    assert await parties.changes() == 3
    await parties.remove(ANNA.fingerprint, 3000)
    assert await parties.allowed() == [AUDIT, SECOND]
    assert await parties.all() == [PartyRow("aa" * 32, "op-1", "operator", "demo", 1000, 3000), AUDIT, SECOND]
    assert await parties.changes() == 4


async def test_a_removed_certificate_never_comes_back(parties: Parties) -> None:
    await parties.add(ANNA)
    await parties.remove(ANNA.fingerprint, 3000)
    with pytest.raises(NotFoundError):
        await parties.remove(ANNA.fingerprint, 4000)
    with pytest.raises(StoreRefusedError, match="is or was"):
        await parties.add(ANNA)
    assert await parties.allowed() == []
    assert (await parties.all())[0].removed_ms == 3000


async def test_what_is_not_there_cannot_be_removed(parties: Parties) -> None:
    before = await parties.changes()
    with pytest.raises(NotFoundError):
        await parties.remove("dd" * 32, 1000)
    assert await parties.changes() == before
    await parties.add(ANNA)
    assert await parties.allowed() == [ANNA]


@pytest.mark.parametrize(
    "other",
    [
        PartyRow("dd" * 32, "op-1", "admin", "demo", 1000, None),
        PartyRow("dd" * 32, "op-1", "operator", "it-adm", 1000, None),
    ],
)
async def test_a_party_keeps_role_and_jurisdiction(parties: Parties, other: PartyRow) -> None:
    await parties.add(ANNA)
    with pytest.raises(StoreRefusedError, match="operator in jurisdiction demo"):
        await parties.add(other)
    assert await parties.all() == [ANNA]
    assert await parties.changes() == 1
    await parties.add(SECOND)


async def test_only_the_known_roles_exist(parties: Parties) -> None:
    with pytest.raises(StoreRefusedError):
        await parties.add(PartyRow("dd" * 32, "op-9", "owner", "", 1000, None))
    assert await parties.all() == []


async def test_another_connection_sees_the_change(tmp_path: Path, parties: Parties) -> None:
    server = await open_parties(address_of(tmp_path))
    before = await server.changes()
    await parties.add(ANNA)
    assert await server.changes() == before + 1
    assert await server.allowed() == [ANNA]
    await server.close()


@pytest.mark.parametrize("what", ["missing", "no database", "empty", "newer"])
async def test_another_file_is_refused(tmp_path: Path, what: str) -> None:
    path = tmp_path / "other.db"
    if what == "no database":
        path.write_bytes(b"no database " * 100)
    elif what == "empty":
        path.touch()
    elif what == "newer":
        create_store(path, ulid(0))
        with closing(connect(path)) as connection:
            connection.execute("UPDATE meta SET value = '99' WHERE key = 'schema'")
    with pytest.raises(StoreRefusedError):
        SqliteParties(path)


@pytest.mark.parametrize("step", ["add", "remove"])
async def test_a_failure_in_the_middle_leaves_no_transaction(tmp_path: Path, step: str) -> None:
    create_store(tmp_path / "rgs.db", ulid(0))
    parties = SqliteParties(tmp_path / "rgs.db")
    await parties.add(ANNA)
    parties._db.execute("CREATE TRIGGER broken BEFORE UPDATE ON meta BEGIN SELECT RAISE(ABORT, 'broken'); END")
    with pytest.raises((sqlite3.Error, StoreRefusedError)):
        await parties.add(SECOND) if step == "add" else await parties.remove(ANNA.fingerprint, 5000)
    parties._db.execute("DROP TRIGGER broken")
    assert await parties.allowed() == [ANNA]
    await parties.add(AUDIT)
    await parties.close()
