"""No query of tables walks over a table or sorts a page, in either database; and each of their indexes is used."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import astuple
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from rgs.store.address import PostgresAddress
from rgs.store.changes import Change, Record
from rgs.store.postgres.store import PostgresStore
from rgs.store.postgres.texts import postgres_text
from rgs.store.sqlite.store import SqliteStore, connect
from rgs.store.table_reads import TableReads
from rgs.store.table_records import (
    BarEnded,
    BetsStand,
    BoxReleased,
    BoxReserved,
    ChatErased,
    PlayerBarred,
    ReservationsLapsed,
    SeatsFixed,
    SeatsLost,
    SeatsStand,
    SeatTraced,
    SittingEnded,
    TableConfigKept,
)
from rgs.store.table_rows import ERASE_TABLE_SQL, TABLE_SQL
from tests.support.store.shelf import address_of, change_by_hand, open_shelf, table, ulid
from tests.support.store.table_rows import RESERVED, TABLE, at_table, seat_opened, seat_round, table_round, table_row
from tests.unit.store.test_reads import scans
from tests.unit.store.test_table_reads import an_evening, line


async def read_all(store: Any) -> None:
    """Every method of `TableReads` once."""
    named: dict[str, Callable[[], Any]] = {
        "table": lambda: store.table(TABLE),
        "tables": lambda: store.tables("", 9),
        "table_versions": lambda: store.table_versions([TABLE]),
        "due_tables": lambda: store.due_tables(9, 9),
        "sitting": lambda: store.sitting(ulid(1)),
        "sitting_of": lambda: store.sitting_of(TABLE, "op-1", "player-1"),
        "sittings": lambda: store.sittings(TABLE, "", 9),
        "boxes": lambda: store.boxes(TABLE),
        "box_marks": lambda: store.box_marks([TABLE]),
        "devices": lambda: store.devices([ulid(1)]),
        "sittings_of_player": lambda: store.sittings_of_player("op-1", "player-1"),
        "count_sittings": lambda: store.count_sittings(TABLE, 9),
        "cut_sittings": lambda: store.cut_sittings(TABLE, (0, ""), 9),
        "fixed_sittings": lambda: store.fixed_sittings(TABLE, 0, 9),
        "has_sittings": lambda: store.has_sittings(TABLE),
        "has_bets": lambda: store.has_bets(TABLE),
        "has_unopened": lambda: store.has_unopened(TABLE),
        "has_undecided": lambda: store.has_undecided(ulid(1), ["preflop", "flop"]),
        "has_unfinished": lambda: store.has_unfinished(ulid(1)),
        "open_seats": lambda: store.open_seats(ulid(1), 0, 9),
        "seat_traces": lambda: store.seat_traces(ulid(1)),
        "seats_of_round": lambda: store.seats_of_round(ulid(1), 0, 9),
        "seats_of_operator": lambda: store.seats_of_operator(ulid(1), "op-1", 0, 9),
        "sessions_by_id": lambda: store.sessions_by_id([ulid(1), ulid(2)]),
        "newest_seat_ms": lambda: store.newest_seat_ms(ulid(1)),
        "newest_chat_ms": lambda: store.newest_chat_ms("op-1", "player-1"),
        "seat": lambda: store.seat(ulid(1), ulid(1)),
        "last_seat": lambda: store.last_seat(ulid(1)),
        "table_round": lambda: store.table_round(ulid(1)),
        "bars": lambda: store.bars(TABLE, 9),
        "is_barred": lambda: store.is_barred(TABLE, "op-1", "player-1"),
        "reservations": lambda: store.reservations(TABLE),
        "chat": lambda: store.chat(TABLE, "", 9),
        "chat_after": lambda: store.chat_after(ulid(1), 9),
        "chat_message": lambda: store.chat_message(ulid(1)),
        "reserved_breaks": lambda: store.reserved_breaks(TABLE, "", 9),
    }
    assert set(named) == {name for name in vars(TableReads) if not name.startswith("_")}
    for ask in named.values():
        await ask()
    await store.chat(TABLE, ulid(1), 9)


async def write_all(store: Any) -> None:
    """Every record and every row of tables once."""
    await store.commit(Change(table=table_row(), table_round=table_round(1)))
    await store.commit(Change(table=table_row(2), table_round=table_round(1, version=2)))
    await an_evening(store)
    await store.commit(Change(sitting=(await store.sitting(ulid(5))).taken_over()))
    assert {type(record) for record in RECORDS} == set(TABLE_SQL)
    for record in RECORDS:
        await store.commit(Change(records=(record,)))
    await store.forget_chat(1)


RECORDS: tuple[Record, ...] = (
    BetsStand(TABLE, 1), SeatsStand(0, table_round(1).round_id), SeatsFixed(TABLE), SeatsLost(TABLE, 1),
    SittingEnded(ulid(1), RESERVED), TableConfigKept("00", TABLE, 1, b"{}"),
    PlayerBarred(TABLE, "op-1", "player-9", "X", "a", 1), BarEnded(TABLE, "op-1", "player-9"),
    BoxReserved(TABLE, 1, "op-1", "player-1", 0), BoxReleased(TABLE, 1), ReservationsLapsed(TABLE, 1), line(1),
    ChatErased(ulid(1)), SeatTraced("", ulid(1), ulid(1)),
)  # fmt: skip


async def planned(folder: Path) -> list[str]:
    """The texts that SQLite was requested, with their values."""
    texts: set[str] = set()
    async with open_shelf(folder) as store:
        assert isinstance(store, SqliteStore)
        store._reader.set_trace_callback(texts.add)
        store._db.set_trace_callback(texts.add)
        await write_all(store)
        await read_all(store)
        for text in ERASE_TABLE_SQL:
            store._db.execute(text, ("op-1", "player-9"))
        store._reader.set_trace_callback(None)
        store._db.set_trace_callback(None)
    return sorted(text for text in texts if re.match(r"\s*(SELECT|UPDATE|DELETE)", text))


async def test_no_query_of_tables_scans_and_no_page_is_sorted(tmp_path: Path) -> None:
    texts = await planned(tmp_path)
    assert len(texts) >= 50
    assert scans(tmp_path, texts) == {}
    assert await sorts(tmp_path, texts) == []


async def test_the_statements_of_a_seat_are_found_without_those_of_the_others(tmp_path: Path) -> None:
    texts: list[str] = []
    async with open_shelf(tmp_path) as store:
        assert isinstance(store, SqliteStore)
        store._reader.set_trace_callback(texts.append)
        await store.round_envelopes(ulid(1), 7)
        store._reader.set_trace_callback(None)
    (text,) = texts
    with closing(connect(tmp_path / "rgs.db")) as db:
        ((*_, plan),) = db.execute(f"EXPLAIN QUERY PLAN {text}").fetchall()
    assert plan.endswith("USING INDEX statements_by_round (round_id=? AND seat_no>? AND seat_no<?)")


@pytest.mark.parametrize(
    "dropped",
    [
        "tables_due", "sittings_by_box", "sittings_of_table", "sittings_with_bets", "sittings_fixed",
        "rounds_seat_of", "rounds_seats_of_operator",
        "rounds_open_seats", "sessions_reserved", "chat_of_table", "chat_by_time", "chat_of_player",
        "table_bars_of", "box_reservations_of",
    ],
)  # fmt: skip
async def test_each_index_has_its_query(tmp_path: Path, dropped: str) -> None:
    """Planted: a schema without it. Then something is walked or sorted, or its own query takes another way."""
    texts = await planned(tmp_path)

    async def plans() -> list[list[tuple[Any, ...]]]:
        return [await table(tmp_path, "EXPLAIN QUERY PLAN " + text) for text in texts]

    before = await plans()
    await change_by_hand(tmp_path, "DROP INDEX " + dropped)
    assert await plans() != before


@pytest.mark.usefixtures("postgres_store")
async def test_no_query_of_tables_scans_in_postgresql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk over a table costs more than anything: it is planned only where there is no other way."""
    requested: dict[str, tuple[Any, ...]] = {}
    genuine = PostgresStore.ask

    async def ask(self: PostgresStore, query: str, *values: Any) -> Any:
        requested[postgres_text(query)] = values
        return await genuine(self, query, *values)

    monkeypatch.setattr(PostgresStore, "ask", ask)
    async with open_shelf(tmp_path) as store:
        await write_all(store)
        requested.clear()
        await read_all(store)
    assert len(requested) > 30
    where = address_of(tmp_path)
    assert isinstance(where, PostgresAddress)
    connection = await asyncpg.connect(where.url)
    try:
        for setting in ("enable_seqscan", "enable_sort", "enable_bitmapscan"):
            await connection.execute("SET " + setting + " = off")
        bad = {}
        records = {postgres_text(TABLE_SQL[type(record)]): astuple(record) for record in RECORDS}
        erased = {postgres_text(text): ("op-1", "player-9") for text in ERASE_TABLE_SQL}
        for text, values in (requested | records | erased).items():
            steps = [row[0] for row in await connection.fetch("EXPLAIN " + text, *values)]
            # Breaks are few, and are sorted, as is old chat of which a page is dropped.
            walks = "Seq Scan" if "UNION ALL" in text or "DELETE" in text else "Seq Scan|Sort"
            whole = [
                step for step, below in zip(steps, [*steps[1:], ""], strict=True)
                if re.search(r"Index (Only )?Scan using (?!tables_due)", step) and "Index Cond" not in below
            ]  # fmt: skip
            if whole or any(re.search(walks, step) for step in steps):
                bad[text] = steps
        assert bad == {}
    finally:
        await connection.close()


@pytest.mark.parametrize("is_planted", [False, True])
@pytest.mark.usefixtures("either_store")
async def test_an_operator_of_many_reads_its_seats_only(
    tmp_path: Path, either_store: str, is_planted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A round of 2,000 seats, ten of them the operator's: both reads take its index. Planted: there is none."""
    requested: dict[str, tuple[Any, ...]] = {}
    reads = PostgresStore if either_store == "postgres" else SqliteStore
    genuine = reads._rows

    async def rows(self: Any, query: str, *values: Any) -> Any:
        requested[query] = values
        return await genuine(self, query, *values)

    async with open_shelf(tmp_path) as store:
        changes = []
        for number in range(1, 2001):
            operator = "op-1" if number % 200 else "op-2"
            seat = seat_round(number, number, table_round(1), operator=operator)
            changes.append(seat_opened(at_table(number, operator=operator), seat))
        await asyncio.gather(*(store.commit(change) for change in changes))
        await change_by_hand(tmp_path, "DROP INDEX rounds_seats_of_operator" if is_planted else "SELECT 1")
        await change_by_hand(tmp_path, "ANALYZE")
        monkeypatch.setattr(reads, "_rows", rows)
        id_ = table_round(1).round_id
        assert len(await store.seats_of_operator(id_, "op-2", 0, 99)) == 10
        assert len(await store.statements_of_operator(id_, "op-2", 0, 99)) == 10
    assert len(requested) == 2
    for query, values in requested.items():
        plan = "\n".join(await plan_of(tmp_path, query, values))
        assert ("rounds_seats_of_operator" in plan) is not is_planted, plan
        assert not re.search("SCAN [rs]|Seq Scan on (rounds|statements)", plan) or is_planted, plan


async def plan_of(folder: Path, query: str, values: tuple[Any, ...]) -> list[str]:
    where = address_of(folder)
    if isinstance(where, Path):
        with closing(connect(where, read_only=True)) as reader:
            return [row[3] for row in reader.execute("EXPLAIN QUERY PLAN " + query, values)]
    connection = await asyncpg.connect(where.url)
    try:
        return [row[0] for row in await connection.fetch("EXPLAIN " + postgres_text(query), *values)]
    finally:
        await connection.close()


async def sorts(folder: Path, texts: list[str]) -> list[str]:
    """The texts for which SQLite sorts rows."""
    found = []
    for text in texts:
        steps = [step[3] for step in await table(folder, "EXPLAIN QUERY PLAN " + text)]
        if any("TEMP B-TREE" in step for step in steps):
            found.append(text)
    return found
