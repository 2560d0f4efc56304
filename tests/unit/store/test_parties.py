"""The allow-list: who is allowed, that a removed certificate stays denied, and that a running server notices."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
import pytest_asyncio

from rgs.core.errors import CertificateKnownError, InvalidFieldError, LastAdminError, NotFoundError
from rgs.store.allowed import links_key
from rgs.store.changes import AllowListChanged, CertificateOff, Change, StoreError, StoreRefusedError
from rgs.store.interface import Parties, PartyRow
from rgs.store.opening import open_parties, open_reads
from rgs.store.parties import SqliteParties
from rgs.store.sqlite.store import connect, create_store
from tests.support.store.shelf import address_of, open_shelf, ulid

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
    with pytest.raises(CertificateKnownError, match=r"was removed from the allow-list at 1970-01-01T00:00:03\.000Z"):
        await parties.add(ANNA)
    assert await parties.allowed() == []
    assert (await parties.all())[0].removed_ms == 3000


async def test_a_certificate_that_is_allowed_is_not_added_twice(parties: Parties) -> None:
    await parties.add(ANNA)
    with pytest.raises(CertificateKnownError, match=r"is in the allow-list since 1970-01-01T00:00:01\.000Z"):
        await parties.add(ANNA)
    assert (await parties.allowed(), await parties.changes()) == ([ANNA], 1)


def admin(nth: int, last_ms: int | None = 9_000, party: str = "") -> PartyRow:
    return PartyRow(f"{nth:02x}" * 32, party or f"admin-{nth}", "admin", "", 1000, None, last_ms)


@pytest.mark.parametrize(
    "others",
    [
        [],
        [ANNA, AUDIT],
        [admin(2, last_ms=3_000)],
        [admin(2, last_ms=2_999), admin(3, last_ms=None)],
    ],
    ids=["nobody else", "no other admin", "ends at this moment", "ended or unknown"],
)
async def test_the_last_certificate_of_an_admin_stays(parties: Parties, others: list[PartyRow]) -> None:
    for row in (admin(1), *others):
        await parties.add(row)
    before = await parties.allowed(), await parties.changes()
    with pytest.raises(LastAdminError) as caught:
        await parties.remove(admin(1).fingerprint, 3_000)
    assert caught.value.metadata["fingerprint"] == admin(1).fingerprint
    assert (await parties.allowed(), await parties.changes()) == before


async def test_the_commit_that_removes_a_certificate_leaves_an_admin_whatever_was_seen_before(
    tmp_path: Path, parties: Parties
) -> None:
    """Two admins remove each other, or one's certificate ends between the look and the commit."""
    operator = PartyRow("ee" * 32, "op-2", "operator", "demo", 1000, None, 9_000)
    for row in (admin(1), admin(2), admin(3, last_ms=3_000), admin(4, last_ms=None), operator):
        await parties.add(row)

    def removal(nth: int) -> Change:
        return Change(records=(AllowListChanged(), CertificateOff(3_000, admin(nth).fingerprint)))

    async with open_shelf(tmp_path) as store:
        await store.commit(removal(2))
        before = await parties.allowed(), await parties.changes()
        with pytest.raises(StoreError):
            await store.commit(removal(1))
    assert (await parties.allowed(), await parties.changes()) == before
    assert admin(1) in before[0]


async def test_one_admin_of_two_may_go_and_the_other_may_not(parties: Parties) -> None:
    for row in (admin(1), admin(2), admin(3, last_ms=None)):
        await parties.add(row)
    await parties.remove(admin(3, last_ms=None).fingerprint, 3_000)
    await parties.remove(admin(1).fingerprint, 3_000)
    with pytest.raises(LastAdminError):
        await parties.remove(admin(2).fingerprint, 3_000)
    await parties.add(admin(4, party="admin-2"))  # the same admin's next certificate
    await parties.remove(admin(2).fingerprint, 4_000)
    assert [row.fingerprint for row in await parties.allowed()] == [admin(4).fingerprint]


async def test_two_who_remove_each_other_at_once_leave_one(tmp_path: Path, parties: Parties) -> None:
    for row in (admin(1), admin(2)):
        await parties.add(row)
    other = await open_parties(address_of(tmp_path))
    done = await asyncio.gather(
        parties.remove(admin(1).fingerprint, 3_000), other.remove(admin(2).fingerprint, 3_000), return_exceptions=True
    )
    await other.close()
    assert sorted(type(result).__name__ for result in done) == ["LastAdminError", "NoneType"]
    assert len(await parties.allowed()) == 1


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
    with pytest.raises(InvalidFieldError, match="operator in jurisdiction demo") as caught:
        await parties.add(other)
    assert caught.value.field == "party"
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


async def test_links_of_an_operator_are_kept(parties: Parties, tmp_path: Path) -> None:
    await parties.add(ANNA)
    await parties.add(AUDIT)
    changes = await parties.changes()
    reads = await open_reads(address_of(tmp_path))
    try:
        assert await reads.meta(links_key("op-1")) == ""
        for links in ("one", "two"):
            await parties.set_links("op-1", links)
            assert await reads.meta(links_key("op-1")) == links
        for other in ("audit-1", "op-2"):
            with pytest.raises(NotFoundError, match=f"^no operator {other} is in the allow-list$"):
                await parties.set_links(other, "three")
            assert await reads.meta(links_key(other)) == ""
        await parties.remove(ANNA.fingerprint, 3000)
        with pytest.raises(NotFoundError):
            await parties.set_links("op-1", "three")
    finally:
        await reads.close()
    assert await parties.changes() == changes + 3, "what was refused has changed nothing"
