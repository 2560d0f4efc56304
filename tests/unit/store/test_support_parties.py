"""Parties of the role support in the allow-list: whose players they may look up, kept for good."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from rgs.core.errors import InvalidFieldError, NotFoundError
from rgs.store.interface import Parties, PartyRow
from rgs.store.opening import open_parties
from rgs.store.sqlite.store import connect, create_store
from tests.support.store.shelf import address_of, ulid

ANNA = PartyRow("aa" * 32, "op-1", "operator", "demo", 1000, None)
MINE = PartyRow("bb" * 32, "desk-1", "support", "", 2000, None, None, "op-1")
ALL = PartyRow("cc" * 32, "desk-2", "support", "", 3000, None)


@pytest_asyncio.fixture
async def parties(either_store: str, tmp_path: Path) -> AsyncIterator[Parties]:
    if either_store == "sqlite":
        create_store(tmp_path / "rgs.db", ulid(0))
    opened = await open_parties(address_of(tmp_path))
    yield opened
    await opened.close()


async def test_a_party_keeps_whose_players_it_looks_up(parties: Parties) -> None:
    for row in (ANNA, MINE, ALL):
        await parties.add(row)
    assert await parties.allowed() == [ANNA, MINE, ALL]
    await parties.add(replace(MINE, fingerprint="dd" * 32))
    for row, other in ((MINE, ""), (ALL, "op-1")):
        second = replace(row, fingerprint="ee" * 32, operator=other)
        with pytest.raises(InvalidFieldError, match=f"looks up players of {row.operator or 'all operators'}"):
            await parties.add(second)


async def test_only_support_names_an_operator_and_only_a_known_one(parties: Parties) -> None:
    await parties.add(ANNA)
    for role in ("auditor", "admin", "lab", "regulator"):
        with pytest.raises(InvalidFieldError, match="only the role support names an operator"):
            await parties.add(replace(MINE, role=role))
    with pytest.raises(NotFoundError) as caught:
        await parties.add(replace(MINE, operator="op-2"))
    assert caught.value.field == "operator"
    assert await parties.allowed() == [ANNA]


def test_the_schema_itself_takes_no_operator_for_another_role(tmp_path: Path) -> None:
    create_store(tmp_path / "rgs.db", ulid(0))
    insert = "INSERT INTO parties (party, role, added_ms, operator) VALUES ('x', ?, 1, 'op-1')"
    with closing(connect(tmp_path / "rgs.db")) as db:
        db.execute(insert, ("support",))
        for role in ("operator", "auditor", "regulator", "lab", "admin"):
            with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
                db.execute(insert, (role,))
