"""The statements of a table keep their order by row number, whichever instance signs them and whatever its clock says:
in exports, and in the log.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from rgs.core.rounds import RoundStatus
from rgs.core.shards import half_year
from rgs.core.statements import parse_envelope
from rgs.core.tables.machine import State
from rgs.store.address import PostgresAddress
from rgs.store.changes import Change, Draft
from rgs.store.numbers import RowNumbers
from rgs.store.postgres import commits, texts
from rgs.store.postgres.store import PostgresStore
from rgs.tlog.sequencer import Sequencer
from tests.support.clocks import ManualClock
from tests.support.log.sequencing import PREFIX, SIGNER, SUMMER_MS, Logged
from tests.support.store.shelf import address_of, stored, table, ulid
from tests.support.store.table_rows import (
    at_table,
    guarded,
    seat_opened,
    seat_round,
    sitting,
    table_round,
    table_row,
)
from tests.unit.store.test_postgres import nodes

HOUR_MS = 3_600_000
SEATS = (1, 2)
CHAIN = [
    *("table_round", "table_seats", "table_deal", "seat_opening", "seat_opening", "table_final"),
    *("seat_final", "seat_final"),
]
"""What a round of two seats signs, in order."""
ROUNDS = 16


class Hall:
    """One table, played by several processes: who does what is drawn by lot."""

    def __init__(self, stores: Sequence[PostgresStore]) -> None:
        self._stores = stores
        self._lots = random.Random(5)
        self._version = 1

    def _any(self) -> PostgresStore:
        return self._lots.choice(self._stores)

    async def open(self) -> None:
        await self._any().commit(Change(table=table_row()))
        for number in SEATS:
            await self._any().commit(Change(session=at_table(number), sitting=sitting(number)))

    async def step(self, state: State, round_id: str, *kinds: str, **change: Any) -> None:
        self._version += 1
        drafts = tuple(Draft(kind, {"time": "then"}, round_id=round_id) for kind in kinds)
        row = table_row(self._version, state=state, round_id=round_id)
        await self._any().commit(Change(table=row, drafts=drafts, **change))

    async def play(self, number: int) -> None:
        """A whole round."""
        round_ = table_round(number)
        id_ = round_.round_id
        await self.step(State.BETTING, id_)
        await self.step(State.FIXED, id_, "table_round", "table_seats", table_round=round_)
        await self.step(State.OPENING, id_, "table_deal", table_round=replace(round_, version=2))
        for seat_no in SEATS:
            store = self._any()
            read = await store.session(ulid(seat_no))
            assert read is not None
            made = seat_round(seat_no, seat_no, round_, round_no=number, draw_no=number)
            await store.commit(seat_opened(replace(read, version=read.version + 1), made))
        await self.step(State.DECIDING, id_)
        ended = replace(round_, version=3, status=RoundStatus.SETTLED)
        await self.step(State.SETTLING, id_, "table_final", table_round=ended)
        for seat_no in SEATS:
            store = self._any()
            read, seat = await store.session(ulid(seat_no)), await store.seat(ulid(seat_no), id_)
            assert read is not None
            assert seat is not None
            final = Draft("seat_final", {"time": "then"}, round_id=id_, seat_no=seat_no)
            done = replace(seat, version=2, status=RoundStatus.SETTLED, end_ms=9)
            await store.commit(Change(replace(read, version=read.version + 1), done, drafts=(final,)))
        await self.step(State.RESULT, id_)


async def played(folder: Path, look: Callable[[PostgresStore], Coroutine[Any, Any, None]] | None = None) -> None:
    async with nodes(folder, 3) as stores:
        hall = Hall(stores)
        await hall.open()
        for number in range(1, ROUNDS + 1):
            await hall.play(number)
            if look is not None:
                await look(stores[0])


async def kinds_of(folder: Path) -> list[str]:
    return [row.kind for row in await stored(folder) if row.kind != "instance_start"]


@pytest.fixture(autouse=True)
def clocks(postgres_store: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process is an hour behind the one after it: by time alone, all that the first one signs stands before."""

    def numbers(slot: int, now_ms: int, previous: int) -> RowNumbers:
        return RowNumbers(slot, now_ms + slot * HOUR_MS, previous)

    monkeypatch.setattr(commits, "RowNumbers", numbers)


async def test_the_statements_of_a_table_stand_in_their_order(tmp_path: Path) -> None:
    await played(tmp_path)
    assert await kinds_of(tmp_path) == CHAIN * ROUNDS
    signers = {row.instance for row in await stored(tmp_path) if row.kind == "table_deal"}
    assert len(signers) == 3
    ids = [row.id for row in await stored(tmp_path)]
    newest = await table(tmp_path, "SELECT t.last_id, r.last_id FROM tables t JOIN table_rounds r USING (round_id)")
    assert newest[0][0] > newest[0][1] >= max(ids)


IGNORED = {
    "at a step": ("LOCK_TABLES", "greatest(last_id,", "greatest(0,"),
    "at a step, of the seats": ("LOCK_TABLES", "SELECT r.last_id", "SELECT 0::bigint"),
    "at a seat": ("FOLLOW_TABLES", "max(last_id)", "max(0)"),
    "when a step is taken": ("VERSIONED_ROWS", "last_id = n.last_id", "last_id = 0 * n.last_id"),
    "when a seat is opened": ("SEATS_SIGNED", "greatest(t.last_id, $3)", "least(0, $3::bigint)"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", IGNORED)
async def test_the_order_breaks_where_a_row_number_is_ignored(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted, in one place."""
    which, old, new = IGNORED[name]
    genuine: Any = getattr(texts, which)
    if which == "VERSIONED_ROWS":
        planted: Any = tuple((*row[:3], row[3].replace(old, new)) for row in genuine)
    else:
        planted = genuine.replace(old, new)
    assert planted != genuine
    monkeypatch.setattr(texts, which, planted)
    await played(tmp_path)
    assert await kinds_of(tmp_path) != CHAIN * ROUNDS


async def test_what_is_guarded_by_a_table_follows_its_steps(tmp_path: Path) -> None:
    event = Draft("event", {"code": "X", "time": "then"})
    async with nodes(tmp_path, 2) as (behind, ahead):
        await ahead.commit(Change(table=table_row()))
        await ahead.commit(Change(table=table_row(2), drafts=(event,)))
        await behind.commit(guarded(2, drafts=(event,)))
    events = [row.instance for row in await stored(tmp_path) if row.kind == "event"]
    assert events == ["node-2-b1-w0", "node-1-b1-w0"]


async def test_seats_read_once_a_group_for_their_tables_and_lock_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted. A step that another process is taking meanwhile does not hold them up."""
    requested: list[tuple[str, Any]] = []
    genuine = commits._fetch

    async def fetch(link: Any, text: str, *values: Any) -> Any:
        if text in {texts.LOCK_TABLES, texts.HOLD_TABLES, texts.FOLLOW_TABLES}:
            requested.append((text, values[0]))
        return await genuine(link, text, *values)

    async with nodes(tmp_path, 1) as (store,):
        for name in ("a", "b"):
            await store.commit(Change(table=table_row(table_id=name), table_round=table_round(1, name, round_id=name)))
        monkeypatch.setattr(commits, "_fetch", fetch)
        where = address_of(tmp_path)
        assert isinstance(where, PostgresAddress)
        other = await asyncpg.connect(where.url)
        changes = [
            seat_opened(at_table(number, name), seat_round(number, number, table_round(1, name, round_id=name)))
            for number, name in enumerate("abab", 1)
        ]
        try:
            async with other.transaction():
                await other.execute("SELECT 1 FROM tables FOR UPDATE")
                outcomes = await asyncio.wait_for(store.apply(changes), 5)
        finally:
            await other.close()
        assert [type(one) for one in outcomes] == [tuple] * 4
        assert requested == [(texts.FOLLOW_TABLES, ["a", "b"])]


async def test_seats_of_two_tables_are_opened_by_all_at_once(tmp_path: Path) -> None:
    """No group waits for another one in a circle, and the greatest row number is kept, whoever commits last."""
    count = 60
    async with nodes(tmp_path, 3) as stores:
        for name in ("a", "b"):
            row = table_row(table_id=name, round_id=name)
            await stores[0].commit(Change(table=row, table_round=table_round(1, name, round_id=name)))
        works = []
        for number in range(1, count + 1):
            name = "ab"[number % 2]
            made = seat_round(number, number, table_round(1, name, round_id=name), draw_no=number % 2 + 1)
            works.append(stores[number % 3].commit(seat_opened(at_table(number, name), made)))
        await asyncio.gather(*works)
    newest = "SELECT round_id, max(id) FROM statements WHERE seat_no > 0 GROUP BY round_id ORDER BY round_id"
    kept = "SELECT round_id, last_id, seats_ms FROM table_rounds ORDER BY round_id"
    for (_, highest), (_, last_id, seats_ms) in zip(
        await table(tmp_path, newest), await table(tmp_path, kept), strict=True
    ):
        assert last_id >= highest
        assert seats_ms in {1000 + count, 1000 + count - 1}


async def test_the_log_has_the_order_of_the_row_numbers(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("log")
    made: list[Sequencer] = []

    async def look(store: PostgresStore) -> None:
        if not made:
            clock = ManualClock(SUMMER_MS)
            options: dict[str, Any] = {"clock": clock, "folder": folder, "prefix": PREFIX, "signer": SIGNER}
            made.append(Sequencer(store=store, delay_ms=60_000, **options))
        await made[0].work()

    await played(tmp_path, look)
    await made[0]._let_go()
    kinds = [
        json.loads(parse_envelope(entry).payload)["kind"] for entry in Logged(folder / half_year(SUMMER_MS)).entries
    ]
    assert [kind for kind in kinds if kind != "instance_start"] == CHAIN * ROUNDS
