"""The allow-list: who is allowed, that a removed certificate stays denied, and that a running server notices."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rgs.core.errors import NotFoundError
from rgs.store.changes import StoreRefusedError
from rgs.store.parties import Parties, PartyRow
from rgs.store.sqlite import connect, create_store
from tests.unit.store.shelf import ulid

ANNA = PartyRow("aa" * 32, "op-1", "operator", "demo", 1000, None)
SECOND = PartyRow("bb" * 32, "op-1", "operator", "demo", 2000, None)
AUDIT = PartyRow("cc" * 32, "audit-1", "auditor", "", 1500, None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    create_store(tmp_path / "rgs.db", ulid(0))
    return tmp_path / "rgs.db"


@pytest.fixture
def parties(path: Path) -> Iterator[Parties]:
    with closing(Parties(path)) as opened:
        yield opened


def test_certificates_are_allowed_until_they_are_removed(parties: Parties) -> None:
    assert (parties.allowed(), parties.all(), parties.changes()) == ([], [], 0)
    for row in (SECOND, AUDIT, ANNA):
        parties.add(row)
    assert parties.allowed() == [ANNA, AUDIT, SECOND]
    assert parties.changes() == 3
    parties.remove(ANNA.fingerprint, 3000)
    assert parties.allowed() == [AUDIT, SECOND]
    assert parties.all() == [PartyRow("aa" * 32, "op-1", "operator", "demo", 1000, 3000), AUDIT, SECOND]
    assert parties.changes() == 4


def test_a_removed_certificate_never_comes_back(parties: Parties) -> None:
    parties.add(ANNA)
    parties.remove(ANNA.fingerprint, 3000)
    with pytest.raises(NotFoundError):
        parties.remove(ANNA.fingerprint, 4000)
    with pytest.raises(StoreRefusedError, match="is or was"):
        parties.add(ANNA)
    assert parties.allowed() == []
    assert parties.all()[0].removed_ms == 3000


def test_what_is_not_there_cannot_be_removed(parties: Parties) -> None:
    before = parties.changes()
    with pytest.raises(NotFoundError):
        parties.remove("dd" * 32, 1000)
    assert parties.changes() == before
    parties.add(ANNA)
    assert parties.allowed() == [ANNA]


@pytest.mark.parametrize(
    "other",
    [
        PartyRow("dd" * 32, "op-1", "admin", "demo", 1000, None),
        PartyRow("dd" * 32, "op-1", "operator", "it-adm", 1000, None),
    ],
)
def test_a_party_keeps_role_and_jurisdiction(parties: Parties, other: PartyRow) -> None:
    parties.add(ANNA)
    with pytest.raises(StoreRefusedError, match="operator in jurisdiction demo"):
        parties.add(other)
    assert parties.all() == [ANNA]
    assert parties.changes() == 1
    parties.add(SECOND)


def test_only_the_known_roles_exist(parties: Parties) -> None:
    with pytest.raises(StoreRefusedError):
        parties.add(PartyRow("dd" * 32, "op-9", "owner", "", 1000, None))
    assert parties.all() == []


def test_another_connection_sees_the_change(path: Path, parties: Parties) -> None:
    with closing(Parties(path)) as server:
        before = server.changes()
        parties.add(ANNA)
        assert server.changes() == before + 1
        assert server.allowed() == [ANNA]


@pytest.mark.parametrize("what", ["missing", "no database", "empty", "newer"])
def test_another_file_is_refused(tmp_path: Path, what: str) -> None:
    path = tmp_path / "other.db"
    if what == "no database":
        path.write_bytes(b"no database " * 100)
    elif what == "empty":
        path.touch()
    elif what == "newer":
        create_store(path, ulid(0))
        with closing(connect(path)) as connection:
            connection.execute("UPDATE meta SET value = '2' WHERE key = 'schema'")
    with pytest.raises(StoreRefusedError):
        Parties(path)


@pytest.mark.parametrize("step", ["add", "remove"])
def test_a_failure_in_the_middle_leaves_no_transaction(parties: Parties, step: str) -> None:
    parties.add(ANNA)
    parties._db.execute("CREATE TRIGGER broken BEFORE UPDATE ON meta BEGIN SELECT RAISE(ABORT, 'broken'); END")
    with pytest.raises((sqlite3.Error, StoreRefusedError)):
        parties.add(SECOND) if step == "add" else parties.remove(ANNA.fingerprint, 5000)
    parties._db.execute("DROP TRIGGER broken")
    assert parties.allowed() == [ANNA]
    parties.add(AUDIT)
