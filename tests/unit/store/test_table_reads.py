"""What is read of tables: rows in their order, pages that are bounded and complete, questions with a yes or a no; and
no query walks over a table, in either database.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core.games.types import Phase
from rgs.core.rounds import RoundStatus
from rgs.core.tables.machine import State, Table
from rgs.core.tables.rows import TableRound, TableRow
from rgs.core.tables.seating import Sitting
from rgs.core.tables.windows import Window, WindowEnd
from rgs.store import table_rows, tables
from rgs.store.changes import Change, Draft, PlayerErased
from rgs.store.table_records import BoxReserved, ChatErased, ChatMessage, PlayerBarred, SeatsFixed
from rgs.store.table_rows import SITTINGS, TABLE_ROUNDS, TABLES
from tests.support.store.declared import columns_by_table
from tests.support.store.shelf import change_by_hand, open_shelf, ulid
from tests.support.store.table_rows import (
    RESERVED,
    TABLE,
    at_table,
    seat_opened,
    seat_round,
    seated,
    sitting,
    table_round,
    table_row,
)
from tests.unit.store.test_reads import empty

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
NUMBERS = st.integers(1, 1 << 60)
STRATEGIES: dict[object, st.SearchStrategy[Any]] = {
    str: TEXTS,
    int: NUMBERS,
    bool: st.booleans(),
    bytes: st.binary(max_size=40),
    State: st.sampled_from(State),
    Phase | None: st.none() | st.sampled_from(Phase),
    State | None: st.none() | st.sampled_from(State),
    RoundStatus: st.sampled_from(RoundStatus),
    tuple[Window, ...]: st.lists(
        st.builds(Window, st.sampled_from(Phase), NUMBERS, NUMBERS, st.sampled_from(WindowEnd)), max_size=3
    ).map(tuple),
    tuple[tuple[str, int], ...]: st.lists(st.tuples(TEXTS, NUMBERS), max_size=4).map(tuple),
}


def any_of(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Any value of a dataclass: every field from its own strategy, so that two columns changed over are seen."""
    hints = get_type_hints(kind)
    return st.builds(kind, **{field.name: STRATEGIES[hints[field.name]] for field in fields(kind)})


STRATEGIES[Table] = any_of(Table)


@given(st.data())
@pytest.mark.parametrize("kind", [TABLES, TABLE_ROUNDS, SITTINGS], ids=lambda kind: kind.name)
def test_a_row_comes_back_and_moves_by_one_version(kind: tables.Table[Any], data: st.DataObject) -> None:
    types: dict[str, type[Any]] = {"tables": TableRow, "table_rounds": TableRound, "sittings": Sitting}
    first, second = (data.draw(any_of(types[kind.name])) for _ in range(2))
    fixed = {column.name for column in kind.columns} - {column.name for column in kind.changing}
    with closing(empty()) as connection:
        connection.execute(kind.insert, kind.row(first))
        assert kind.read(connection.execute(kind.select).fetchone()) == first
        if kind is TABLES:
            version = first.table.version + 1
            moved = replace(second, table=replace(second.table, table_id=first.table.table_id, version=version))
        else:
            moved = replace(second, **{name: getattr(first, name) for name in fixed}, version=first.version + 1)
        update = kind.update(is_versioned=True)
        assert connection.execute(update, kind.change(moved)).rowcount == 1
        assert kind.read(connection.execute(kind.select).fetchone()) == moved
        assert connection.execute(update, kind.change(moved)).rowcount == 0, "not one version below"


ELSEWHERE = {
    ("sqlite", "table_rounds"): {"seats_ms"},
    ("postgres", "table_rounds"): {"seats_ms", "last_id"},
    ("postgres", "tables"): {"last_id"},
}
"""Columns that no value of a row has."""
ROWS = [value for value in vars(table_rows).values() if isinstance(value, tables.Table)]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("of", ROWS, ids=lambda of: of.name)
def test_every_field_of_a_row_has_its_column_in_both_schemas(kind: str, of: tables.Table[Any]) -> None:
    columns = {column.name for column in of.columns}
    assert columns | ELSEWHERE.get((kind, of.name), set()) == columns_by_table(kind)[of.name]


def test_both_schemas_have_the_same_tables_and_columns() -> None:
    sqlite, postgres = (columns_by_table(kind) for kind in ("sqlite", "postgres"))
    ours = {name for name in sqlite if name not in {"instances", "sessions"}}
    assert ours == {name for name in postgres if name not in {"instances", "sessions", "answers_other"}}
    made = {"tables", "table_rounds", "sittings", "table_configs", "table_bars", "box_reservations", "chat"}
    assert made < ours
    for name in made:
        assert sqlite[name] == postgres[name] - {"last_id"}
    assert {"table_id", "reserved_minor"} < sqlite["sessions"] & postgres["sessions"]
    assert {"table_id", "phase", "path"} < sqlite["rounds"] & postgres["rounds"]


# --- tables -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("either_store")
async def test_tables_come_in_the_order_of_bytes_page_by_page(tmp_path: Path) -> None:
    ids = ["b", "a-b", "ab", "a-", "a1", "a"]
    async with open_shelf(tmp_path) as store:
        for number, table_id in enumerate(ids, 1):
            await store.commit(Change(table=table_row(table_id=table_id, due_ms=0 if number == 3 else 100 - number)))
        found: list[str] = []
        while page := await store.tables(found[-1] if found else "", 4):
            found += [row.table.table_id for row in page]
        assert found == sorted(ids)
        await store.commit(Change(table=table_row(2, table_id="a", due_ms=5)))
        assert await store.table_versions(ids[2:]) == {"ab": 1, "a-": 1, "a1": 1, "a": 2}
        assert await store.table_versions([]) == {}
        assert await store.due_tables(98, 10) == [("a", 5), ("a1", 95), ("a-", 96), ("a-b", 98)]
        assert await store.due_tables(97, 2) == [("a", 5), ("a1", 95)]
        assert await store.due_tables(4, 10) == []


@pytest.mark.usefixtures("either_store")
async def test_where_nothing_is_due_by_time(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(table=table_row(due_ms=0)))
        assert await store.due_tables(1 << 62, 10) == []


@pytest.mark.usefixtures("either_store")
async def test_a_table_is_read_with_the_clock_of_its_database(tmp_path: Path, either_store: str) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(table=table_row()))
        before_ms, (_, read_ms), after_ms = await store.clock_ms(), await store.table(TABLE), await store.clock_ms()
        if either_store == "sqlite":
            assert (before_ms, read_ms, after_ms) == (None, None, None)
        else:
            assert before_ms <= read_ms <= after_ms


# --- who sits there ---------------------------------------------------------------------------------------------------


async def an_evening(store: Any) -> None:
    """Five who sit at a table, three of them with bets; one at another table."""
    for number, box, has_bets in ((3, 0, True), (1, 7, True), (5, 0, False), (2, 4, True), (4, 6, False)):
        await store.commit(seated(number, box=box, bets=has_bets))
    await store.commit(seated(6, bets=True, box=1, table_id="sala-piccola"))
    await store.commit(Change(sitting=sitting(7, "sala-piccola", player="player-3", place_no=2)))


@pytest.mark.usefixtures("either_store")
async def test_who_sits_at_a_table(tmp_path: Path) -> None:
    def numbers(found: list[Sitting]) -> list[str]:
        return [one.nickname.removeprefix("Nick ") for one in found]

    async with open_shelf(tmp_path) as store:
        assert not await store.has_sittings(TABLE)
        await an_evening(store)
        assert await store.has_sittings(TABLE)
        assert not await store.has_sittings("nowhere")
        assert await store.sitting_of(TABLE, "op-1", "player-3") == await store.sitting(ulid(3))
        assert await store.sitting_of("sala-piccola", "op-1", "player-3") == await store.sitting(ulid(7))
        assert await store.sitting_of(TABLE, "op-2", "player-3") is None
        assert numbers(await store.sittings(TABLE, "", 10)) == ["1", "2", "3", "4", "5"]
        assert numbers(await store.sittings(TABLE, ulid(2), 2)) == ["3", "4"]
        assert numbers(await store.boxes(TABLE)) == ["2", "4", "1"]
        marks = {(ulid(number), 1, 1) for number in (1, 2, 4)}
        assert await store.box_marks([TABLE, "nowhere"]) == {TABLE: frozenset(marks)}
        assert await store.devices([ulid(2), ulid(3), ulid(99)]) == {ulid(2): 1, ulid(3): 1}
        assert numbers(await store.sittings_of_player("op-1", "player-3")) == ["3", "7"]
        assert await store.sittings_of_player("op-2", "player-3") == []
        assert [await store.count_sittings(TABLE, most) for most in (3, 5, 9)] == [3, 5, 5]
        assert await store.count_sittings("nowhere", 9) == 0
        assert numbers(await store.cut_sittings(TABLE, (0, ""), 10)) == ["3", "2", "1"]
        assert numbers(await store.cut_sittings(TABLE, (0, ulid(3)), 1)) == ["2"]
        assert numbers(await store.cut_sittings(TABLE, (4, ulid(2)), 9)) == ["1"]
        assert await store.has_bets(TABLE)
        assert not await store.has_unopened(TABLE)
        assert await store.fixed_sittings(TABLE, 0, 10) == []
        await store.commit(Change(records=(SeatsFixed(TABLE),)))
        assert await store.has_unopened(TABLE)
        assert not await store.has_unopened("sala-piccola")
        assert numbers(await store.fixed_sittings(TABLE, 0, 2)) == ["3", "2"]
        assert numbers(await store.fixed_sittings(TABLE, 2, 2)) == ["1"]
        for number in (1, 2, 3):
            seat = await store.sitting(ulid(number))
            await store.commit(Change(sitting=seat.opened(1)))
        assert not await store.has_unopened(TABLE)
        assert not await store.has_bets(TABLE)
        assert await store.has_bets("sala-piccola")


# --- rounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("either_store")
async def test_the_seats_of_a_round(tmp_path: Path) -> None:
    round_ = table_round(1)
    async with open_shelf(tmp_path) as store:
        for number in (1, 2, 3, 4):
            seat = seat_round(number, 5 - number, round_, phase="flop" if number == 1 else "preflop")
            await store.commit(seat_opened(at_table(number), seat))
        id_ = round_.round_id

        async def undecided(*phases: str) -> bool:
            found: bool = await store.has_undecided(id_, phases)
            return found

        assert [await undecided("preflop"), await undecided("flop"), await undecided("river")] == [True, True, False]
        assert [await undecided(), await undecided("river", "flop")] == [False, True]
        assert not await store.has_undecided(ulid(1), ["preflop"])
        last = await store.seat(ulid(1), id_)
        assert (last.seat_no, last.path, last.table_id, last.phase) == (4, b"p" * 64, TABLE, "flop")
        assert await store.last_seat(ulid(1)) == last
        assert await store.seat(ulid(1), ulid(1)) is None
        assert await store.last_seat(ulid(9)) is None
        assert [one.seat_no for one in await store.seats_of_round(id_, 0, 10)] == [1, 2, 3, 4]
        assert [one.seat_no for one in await store.seats_of_round(id_, 1, 2)] == [2, 3]
        assert [one.seat_no for one in await store.seats_of_operator(id_, "op-1", 1, 2)] == [2, 3]
        assert await store.seats_of_operator(id_, "op-2", 0, 9) == []
        for number in (3, 1):
            session, seat = await store.session(ulid(number)), await store.seat(ulid(number), id_)
            ended = replace(seat, version=2, status=RoundStatus.SETTLED, phase="showdown", end_ms=9)
            final = Draft("seat_final", {"time": "then"}, round_id=id_, seat_no=seat.seat_no)
            await store.commit(Change(replace(session, version=2), ended, drafts=(final,)))
        assert [one.seat_no for one in await store.open_seats(id_, 0, 10)] == [1, 3]
        assert [one.seat_no for one in await store.open_seats(id_, 1, 10)] == [3]
        assert [one.seat_no for one in await store.open_seats(id_, 0, 1)] == [1]
        assert not await undecided("flop", "showdown")
        assert await store.has_unfinished(id_)
        assert not await store.has_unfinished(ulid(1))
        envelopes = [await store.round_envelopes(id_, seat_no) for seat_no in (1, 2, 3, 4, 5)]
        assert [(bool(one), bool(two)) for one, two in envelopes] == [
            (True, False), (True, True), (True, False), (True, True), (False, False),
        ]  # fmt: skip
        assert await store.round_envelopes(id_) == envelopes[0]
        statements = await store.statements_of_round(id_, 0, 10)
        assert [one.kind for one in statements] == ["seat_opening"] * 4 + ["seat_final"] * 2
        assert envelopes[1] == (statements[2].envelope, statements[4].envelope)


@pytest.mark.usefixtures("either_store")
async def test_the_statements_of_an_operators_seats(tmp_path: Path) -> None:
    """At a table those of its own seats, in solo play those of its own round; no others are counted."""
    round_ = table_round(1)
    solo = seat_round(9, 1, table_round(2, ""), phase="", path=b"", draw_no=9)
    async with open_shelf(tmp_path) as store:
        for number in range(1, 7):
            operator = f"op-{number % 2 + 1}"
            seat = seat_round(number, number, round_, operator=operator)
            await store.commit(seat_opened(at_table(number, operator=operator), seat))
        await store.commit(seat_opened(at_table(9, ""), solo))

        async def seats(round_id: str, operator: str, after_id: int = 0, limit: int = 9) -> list[int]:
            rows = await store.statements_of_operator(round_id, operator, after_id, limit)
            assert [one.id for one in rows] == sorted(one.id for one in rows)
            return [int(one.session_id[-2:]) for one in rows]

        assert [await seats(round_.round_id, f"op-{number}") for number in (1, 2, 3)] == [[2, 4, 6], [1, 3, 5], []]
        first, *_ = await store.statements_of_operator(round_.round_id, "op-2", 0, 1)
        assert await seats(round_.round_id, "op-2", first.id, 1) == [3]
        assert [await seats(solo.round_id, f"op-{number}") for number in (1, 2)] == [[9], []]


@pytest.mark.usefixtures("either_store")
async def test_sessions_are_read_at_once_by_their_ids(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        for number in (1, 2, 3):
            await store.commit(Change(session=at_table(number)))
        ids = [ulid(number) for number in (3, 9, 1)]
        found = await store.sessions_by_id(ids)
        assert found == {ulid(number): await store.session(ulid(number)) for number in (3, 1)}
        assert await store.sessions_by_id([]) == {}
        await change_by_hand(tmp_path, f"UPDATE sessions SET player = 'player-8' WHERE session_id = '{ulid(3)}'")  # noqa: S608
        store._memory._fresh.pop(ulid(1))
        fresh, old = await store.sessions_by_id(ids), await store.sessions_by_id(ids, fresh=False)
        assert [one[ulid(3)].player for one in (fresh, old)] == ["player-8", "player-3"]
        assert fresh[ulid(1)] == old[ulid(1)]


@pytest.mark.usefixtures("either_store")
async def test_solo_play_is_no_seat_of_a_table(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        solo = seat_round(1, 1, table_round(1, ""), phase="", path=b"")
        await store.commit(seat_opened(at_table(1, ""), solo))
        assert await store.seat(ulid(1), solo.round_id) is None
        assert not await store.has_unfinished(solo.round_id)
        assert (await store.round(solo.round_id)).table_id == ""


@pytest.mark.usefixtures("either_store")
async def test_a_round_of_a_table_is_found_by_its_id(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        for number in (2, 1, 3):
            await store.commit(Change(table_round=table_round(number)))
        await store.commit(Change(table_round=table_round(9, "sala-piccola")))
        assert await store.table_round(table_round(2).round_id) == table_round(2)
        assert await store.table_round(ulid(2)) is None


@pytest.mark.usefixtures("either_store")
async def test_the_archive_is_not_asked_about_what_is_in_play(tmp_path: Path) -> None:
    round_, unplayed = table_round(1), at_table(9)
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(table_round=round_))
        await store.commit(Change(session=unplayed))
        store.archive = object()  # that can answer nothing
        id_ = round_.round_id
        for seats in (0, 1):
            if seats:
                await store.commit(seat_opened(at_table(1), seat_round(1, 1, round_)))
            assert len(await store.seats_of_round(id_, 0, 9)) == seats
            assert len(await store.seats_of_operator(id_, "op-1", 0, 9)) == seats
            assert len(await store.statements_of_round(id_, 0, 9)) == seats
            assert len(await store.statements_of_operator(id_, "op-1", 0, 9)) == seats
            assert await store.seat(unplayed.session_id, id_) is None
            assert await store.last_seat(unplayed.session_id) is None
        assert await store.table_round(id_) == round_


# --- chat -------------------------------------------------------------------------------------------------------------


def line(number: int, table_id: str = TABLE, player: str = "player-1") -> ChatMessage:
    return ChatMessage(ulid(number), table_id, 1000 + number, "op-1", player, "Nick", f"line {number}", "")


@pytest.mark.usefixtures("either_store")
async def test_chat_comes_newest_first_is_emptied_and_forgotten(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        lines = [line(number) for number in range(1, 6)]
        await store.commit(Change(records=(*lines, line(9, "sala-piccola"))))
        assert await store.chat(TABLE, "", 2) == [lines[4], lines[3]]
        assert await store.chat(TABLE, ulid(4), 9) == [lines[2], lines[1], lines[0]]
        assert await store.chat_after(ulid(3), 2) == [line(9, "sala-piccola"), lines[4]]
        assert await store.chat_message(ulid(9)) == line(9, "sala-piccola")
        assert await store.chat_message(ulid(8)) is None
        await store.commit(Change(records=(ChatErased(ulid(5)),)))
        assert await store.chat_message(ulid(5)) == replace(lines[4], text="", nickname="")
        assert await store.chat_message(ulid(4)) == lines[3]
        assert await store.newest_chat_ms("op-1", "player-1") == 1009
        assert await store.newest_chat_ms("op-2", "player-1") == 0
        assert await store.forget_chat(1003) == 2
        assert await store.forget_chat(1003) == 0
        assert [one.time_ms for one in await store.chat(TABLE, "", 9)] == [1005, 1004, 1003]


@pytest.mark.usefixtures("either_store")
async def test_old_chat_is_forgotten_a_bounded_number_at_a_time(
    tmp_path: Path, either_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"rgs.store.{either_store}.store.FORGOTTEN_MAX", 3)
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(records=tuple(line(number) for number in range(1, 9))))
        assert await store.forget_chat(1008) == 3
        assert (await store.chat(TABLE, "", 9))[-1] == line(4), "the oldest go first"
        assert [await store.forget_chat(1008) for _ in range(3)] == [3, 1, 0]
        assert await store.chat(TABLE, "", 9) == [line(8)]


# --- checks and erasure -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("either_store")
async def test_what_is_reserved_twice_must_agree(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await an_evening(store)
        assert await store.reserved_breaks(TABLE, "", 10) == []
        await change_by_hand(tmp_path, f"UPDATE sittings SET reserved_minor = 7 WHERE session_id = '{ulid(3)}'")  # noqa: S608
        await change_by_hand(tmp_path, f"DELETE FROM sittings WHERE session_id = '{ulid(1)}'")  # noqa: S608
        await change_by_hand(tmp_path, f"UPDATE sessions SET reserved_minor = 0 WHERE session_id = '{ulid(2)}'")  # noqa: S608
        await change_by_hand(tmp_path, f"UPDATE sittings SET reserved_minor = 9 WHERE session_id = '{ulid(5)}'")  # noqa: S608
        found = [(ulid(1), RESERVED, 0), (ulid(2), 0, RESERVED), (ulid(3), RESERVED, 7), (ulid(5), 0, 9)]
        assert await store.reserved_breaks(TABLE, "", 10) == found
        assert await store.reserved_breaks(TABLE, "", 2) == found[:2]
        assert await store.reserved_breaks(TABLE, ulid(2), 10) == found[2:]
        assert await store.reserved_breaks("sala-piccola", "", 10) == []


@pytest.mark.usefixtures("either_store")
async def test_a_seat_at_another_table_covers_nothing(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(seated(1, bets=True))
        await change_by_hand(tmp_path, "UPDATE sittings SET table_id = 'sala-piccola'")
        assert await store.reserved_breaks(TABLE, "", 10) == [(ulid(1), RESERVED, 0)]


@pytest.mark.usefixtures("either_store")
async def test_a_player_is_erased_at_the_tables_too_and_no_other(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        for number in (1, 2):
            player = f"player-{number}"
            records = (
                PlayerBarred(TABLE, "op-1", player, "X", "admin-1", 1),
                PlayerBarred(TABLE, "op-2", player, "X", "admin-1", 1),
                BoxReserved(TABLE, number, "op-1", player, 0),
                line(number, player=player),
            )
            await store.commit(Change(sitting=sitting(number), records=records))
        await store.commit(Change(records=(PlayerErased("op-1", "player-1"),)))
        assert [one.nickname for one in await store.sittings(TABLE, "", 9)] == ["", "Nick 2"]
        assert [(one.operator, one.player) for one in await store.bars(TABLE, 9)] == [
            ("op-1", "player-2"), ("op-2", "player-1"), ("op-2", "player-2"),
        ]  # fmt: skip
        assert [one.player for one in await store.reservations(TABLE)] == ["player-2"]
        assert [one.player for one in await store.chat(TABLE, "", 9)] == ["player-2"]
