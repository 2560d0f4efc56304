"""Who is shown which statements, where a session is gone or not the caller's; and how pages of statements end."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from rgs.core.errors import InvalidFieldError, NotFoundError
from rgs.service.audit.audit import StatementReader
from rgs.service.callers import Caller, Role
from rgs.service.table_statements import counted_seats
from rgs.store.interface import StatementRow

OPERATOR = Caller("op-1", Role.OPERATOR, "demo")
AUDITOR, LAB = Caller("auditor-1", Role.AUDITOR, ""), Caller("lab-1", Role.LAB, "")
SESSION, GONE, OTHERS, ROUND = (f"01K4ZQ7M2J8T5V9X3B6C1D0EF{letter}" for letter in "GHJK")


def row(number: int, kind: str, session_id: str = "") -> StatementRow:
    return StatementRow(number, kind, "i", number, session_id, number, ROUND, b"%032d" % number, b"signed", b"private")


ROWS = [
    row(1, "instance_start"), row(2, "session_open", SESSION), row(3, "session_open", OTHERS), row(4, "event"),
    row(5, "round_opening", SESSION), row(6, "round_opening", GONE), row(7, "event", SESSION), row(8, "artifact"),
]  # fmt: skip


class Kept:
    """As much of a store as the reader asks. It counts how often it is requested for a session."""

    def __init__(self) -> None:
        self.requested: list[str] = []
        self.rows = ROWS

    async def session(self, session_id: str) -> Any:
        self.requested.append(session_id)
        owners = {SESSION: "op-1", OTHERS: "op-2"}
        return SimpleNamespace(operator=owners[session_id]) if session_id in owners else None

    async def statement_of_hash(self, hash_: bytes) -> StatementRow | None:
        return next((each for each in ROWS if each.hash == hash_), None)

    async def statements_of_instance(self, instance: str, first: int, last: int, limit: int) -> list[StatementRow]:
        return [each for each in self.rows if each.instance == instance and first <= each.statement_no <= last][:limit]

    async def table_round(self, round_id: str) -> None:
        """All are rounds of solo play."""

    async def statements_of_round(self, round_id: str, after: int, limit: int) -> list[StatementRow]:
        return [each for each in ROWS if each.round_id == round_id and each.id > after][:limit]


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def reader(kept: Kept) -> StatementReader:
    return StatementReader(store=kept, key_statements=[b"root", b"node"])  # type: ignore[arg-type]


async def listed(reader: StatementReader, caller: Caller, **given: Any) -> list[tuple[int, bytes]]:
    plain = {
        "session_id": "", "round_id": "", "instance": "i", "first_no": 0, "last_no": 0, "page_size": 50,
        "page_token": "",
    }  # fmt: skip
    rows, token = await reader.list_statements(caller, **{**plain, **given})
    assert token == ""
    return [(each.id, each.private) for each in rows]


async def test_each_party_is_shown_what_is_its_own(reader: StatementReader, kept: Kept) -> None:
    everything = [each.id for each in ROWS]
    assert await listed(reader, AUDITOR) == [(number, b"private") for number in everything]
    assert await listed(reader, LAB) == [(number, b"") for number in everything]
    assert kept.requested == []
    assert await listed(reader, OPERATOR) == [(number, b"private") for number in (1, 2, 5, 7, 8)]
    assert kept.requested == [SESSION, OTHERS, GONE], "once each"


async def test_a_range_of_an_instance(reader: StatementReader) -> None:
    assert [number for number, _ in await listed(reader, AUDITOR, first_no=3, last_no=5)] == [3, 4, 5]
    assert [number for number, _ in await listed(reader, AUDITOR, first_no=7)] == [7, 8]
    assert [number for number, _ in await listed(reader, AUDITOR, last_no=2)] == [1, 2]


@pytest.mark.parametrize("given", [{"instance": "i"}, {"round_id": ROUND}])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 8])
async def test_pages_end_with_the_last_statement(reader: StatementReader, size: int, given: dict[str, str]) -> None:
    plain = {"session_id": "", "round_id": "", "instance": "", "first_no": 0, "last_no": 0, "page_size": size}
    pages: list[list[int]] = []
    token = ""
    while not pages or token:
        rows, token = await reader.list_statements(AUDITOR, **{**plain, **given, "page_token": token})  # type: ignore[arg-type]
        pages.append([each.id for each in rows])
    assert pages == [list(range(first, min(first + size, 9))) for first in range(1, 9, size)]


async def test_one_statement_by_hash_number_or_seat(reader: StatementReader) -> None:
    for number in (1, 4, 8):
        by_hash = await reader.get_statement(AUDITOR, hash=b"%032d" % number, instance="", statement_no=0)
        by_number = await reader.get_statement(AUDITOR, hash=b"", instance="i", statement_no=number)
        assert by_hash.id == by_number.id == number
    found = await reader.statement_of_seat(AUDITOR, round_id=ROUND, session_id=GONE, kind="round_opening")
    assert found.id == 6
    for caller, number in ((AUDITOR, 9), (OPERATOR, 3), (OPERATOR, 4), (OPERATOR, 6)):
        with pytest.raises(NotFoundError) as missing:
            await reader.get_statement(caller, hash=b"", instance="i", statement_no=number)
        assert missing.value.metadata == {"instance": "i", "kind": "statement", "statement_no": str(number)}
    with pytest.raises(InvalidFieldError) as error:
        await reader.statement_of_seat(AUDITOR, round_id=ROUND, session_id=GONE, kind="x" * 41)
    limit = "round_opening or round_final or seat_opening or seat_final or table_round or table_deal or table_final"
    assert (error.value.message, error.value.field) == (f"kind is not {limit}", "kind")
    assert error.value.metadata == {"limit": limit, "value": "x" * 40}
    for field in ("round_id", "session_id"):
        ids = {"round_id": ROUND, "session_id": SESSION, field: "x"}
        with pytest.raises(InvalidFieldError) as error:
            await reader.statement_of_seat(AUDITOR, kind="round_final", **ids)
        assert error.value.field == field


def test_key_statements_are_those_that_were_given_last(reader: StatementReader) -> None:
    assert reader.key_statements() == (b"root", b"node")
    reader.take_key_statements([b"root", b"node", b"next"])
    assert reader.key_statements() == (b"root", b"node", b"next")


async def test_the_count_of_seats_is_the_statement_behind_its_round_and_no_other(kept: Kept) -> None:
    """A recovery may have the round without its count, and another statement in its place."""
    store: Any = kept
    counted, other = row(7, "table_seats"), replace(row(7, "table_seats"), round_id="01K4ZQ7M2J8T5V9X3B6C1D0EFX")
    fixed = row(6, "table_round")
    for behind, expected in ((counted, [counted]), (other, []), (row(7, "event"), []), (row(8, "table_seats"), [])):
        kept.rows = [fixed, behind]
        assert await counted_seats(store, fixed) == expected


def test_roles_have_the_names_that_certificates_and_the_allow_list_give_them() -> None:
    """Certificates that are out there name them: `rgs://party/auditor/audit-1`."""
    assert {role.value for role in Role} == {"operator", "auditor", "regulator", "lab", "admin", "support"}
