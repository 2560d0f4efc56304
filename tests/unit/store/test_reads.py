"""Reads: rows come back as they were, pages are bounded and complete, and no query of the play path or a list scans."""

from __future__ import annotations

import gc
import re
import sqlite3
import weakref
from collections.abc import Iterable
from contextlib import closing
from dataclasses import field, fields, make_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core.games.types import Action, Phase, StakeLimits
from rgs.core.ledger import Participation
from rgs.core.limits import SessionLimits
from rgs.core.rounds import Round, RoundStatus, TakenAction
from rgs.core.sessions import Funding, Mode, Session, SessionStatus
from rgs.store import returns, rows
from rgs.store.changes import Change, Draft
from rgs.store.interface import INSTANCES, DayTotalsKey, StatementRow
from rgs.store.rows import ROUNDS, SESSIONS, UPDATE_ROUND, UPDATE_SESSION
from rgs.store.sqlite.store import UPDATE_ROUND_WITHIN, UPDATE_SESSION_WITHIN, SqliteStore, connect
from rgs.store.tables import Table
from tests.support.service.harness import open_harness
from tests.support.service.player import Player
from tests.support.store.declared import columns_by_table
from tests.support.store.shelf import dealt, open_shelf, opened, operation, session, started, ulid
from tests.support.store.support_reads import read_for_support

# --- rows -------------------------------------------------------------------------------------------------------------

SCHEMA = Path(__file__).parents[3] / "rgs" / "store" / "migrations" / "sqlite"
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
NUMBERS = st.integers(0, (1 << 62))
STRATEGIES: dict[object, st.SearchStrategy[Any]] = {
    str: TEXTS,
    int: NUMBERS,
    bool: st.booleans(),
    bytes: st.binary(max_size=40),
    Funding: st.sampled_from(Funding),
    Mode: st.sampled_from(Mode),
    tuple[tuple[str, StakeLimits], ...]: st.lists(
        st.tuples(TEXTS, st.builds(StakeLimits, NUMBERS, NUMBERS)), max_size=3
    ).map(tuple),
    SessionStatus: st.sampled_from(SessionStatus),
    RoundStatus: st.sampled_from(RoundStatus),
    Participation: st.builds(
        Participation,
        bought_minor=st.just(1 << 60),
        staked_minor=st.integers(0, 1 << 59),
        returned_minor=st.integers(0, 1 << 59),
        paid_out_minor=st.just(0),
        ended=st.just(False),
    ),
    tuple[tuple[str, int], ...]: st.lists(st.tuples(TEXTS, NUMBERS), max_size=4).map(tuple),
    tuple[TakenAction, ...]: st.lists(
        st.builds(TakenAction, st.sampled_from(Phase), st.sampled_from(Action), NUMBERS, NUMBERS, TEXTS, TEXTS, TEXTS),
        max_size=4,
    ).map(tuple),
}


STRATEGIES[SessionLimits] = st.builds(SessionLimits, NUMBERS, NUMBERS, NUMBERS)


def any_of(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Any value of a dataclass: every field from its own strategy, so that two columns changed over are seen."""
    hints = get_type_hints(kind)
    return st.builds(kind, **{field.name: STRATEGIES[hints[field.name]] for field in fields(kind)})


@cache
def _made() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    for step in sorted(SCHEMA.glob("*.sql")):
        connection.executescript(step.read_text("ascii"))
    return connection


def empty() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    _made().backup(connection)
    return connection


@given(any_of(Session), any_of(Session), NUMBERS, TEXTS)
def test_a_session_comes_back(first: Session, second: Session, link_no: int, link_hash: str) -> None:
    first, second = (
        replace(
            one,
            wallet_balance_minor=0,  # the wallet's three are BalanceReported's
            wallet_credited_minor=0,
            wallet_balance_ms=0,
            reserved_minor=one.reserved_minor % (1 << 58),  # the balance covers it
        )
        for one in (first, second)
    )
    connection = empty()
    first = replace(first, link_no=link_no, link_hash=link_hash)
    connection.execute(SESSIONS.insert, SESSIONS.row(first))
    assert SESSIONS.read(connection.execute(SESSIONS.select).fetchone()) == first
    # What an update does not carry was fixed with the session.
    fixed = (
        "session_id",
        "operator",
        "player",
        "operator_reference",
        "ruleset_id",
        "jurisdiction_id",
        "currency",
        "open_ms",
        "limits",
        "funding",
        "table_id",
        "mode",
        "bet_limits",
        "language",
        "return_url",
    )
    second = replace(second, **{name: getattr(first, name) for name in fixed})
    connection.execute(UPDATE_SESSION, SESSIONS.change(second))
    assert SESSIONS.read(connection.execute(SESSIONS.select).fetchone()) == second
    connection.close()


@given(any_of(Round), any_of(Round))
def test_a_round_comes_back(first: Round, second: Round) -> None:
    connection = empty()
    first = replace(first, version=3)
    connection.execute(ROUNDS.insert, ROUNDS.row(first))
    assert ROUNDS.read(connection.execute(ROUNDS.select).fetchone()) == first
    moving = ("sealed", "status", "actions", "end_ms", "staked_minor", "returned_minor", "phase")
    moved = replace(first, version=4, **{name: getattr(second, name) for name in moving})
    assert connection.execute(UPDATE_ROUND, ROUNDS.change(moved)).rowcount == 1
    assert ROUNDS.read(connection.execute(ROUNDS.select).fetchone()) == moved
    assert connection.execute(UPDATE_ROUND, ROUNDS.change(moved)).rowcount == 0, "not one version below"
    connection.close()


TABLES: tuple[Table[Any], ...] = (
    *(value for value in vars(rows).values() if isinstance(value, Table)),
    INSTANCES,
    returns.TALLIES,
)
ELSEWHERE = {
    "instances": {"end_ms", "slot", "last_id", "lease_ms", "schema_no"},
    "regulator_days": {"aligned"},
    "rounds": {"id", "traceparent"},
    "sessions": {"id", "last_id", "reference_slot"},
}
"""Columns of the schema that no value of a row has."""


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_field_of_a_row_has_its_column_in_both_schemas(kind: str, table: Table[Any]) -> None:
    declared = columns_by_table(kind)[table.name]
    assert {column.name for column in table.columns} <= declared
    assert declared - {column.name for column in table.columns} <= ELSEWHERE.get(table.name, {"id"})


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_field_without_a_column_is_seen(kind: str) -> None:
    """Planted: a session with one field more."""
    widened = make_dataclass("Widened", [("invented_ms", int, field(default=0))], bases=(Session,), frozen=True)
    columns = {column.name for column in Table("sessions", widened, prefixes={"limits": "limit_"}).columns}
    assert columns - columns_by_table(kind)["sessions"] == {"invented_ms"}


# --- pages ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("either_store")
@pytest.mark.parametrize("operator", ["", "op-1"])
async def test_rounds_in_play_come_oldest_first_each_on_one_page(tmp_path: Path, operator: str) -> None:
    async with open_shelf(tmp_path) as store:
        for number in (1, 2, 3):
            made = session(number)
            await store.commit(opened(made))
            await store.commit(started(replace(made, link_no=1), number))
        found, after = [], 0
        for _ in range(4):
            rows = await store.open_rounds(operator, after=after, limit=1)
            found += [round_.session_id for _, round_ in rows]
            after = rows[-1][0] if rows else after
        assert found == [ulid(1), ulid(2), ulid(3)]


@pytest.mark.usefixtures("either_store")
async def test_sessions_come_newest_first_page_by_page(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        for number in range(1, 10):
            player, operator = ("bert" if number % 3 == 0 else "anna"), ("op-2" if number == 5 else "op-1")
            status = SessionStatus.CLOSED if number % 2 == 0 else SessionStatus.OPEN
            await store.commit(Change(session(number, player=player, operator=operator, status=status)))

        async def pages(player: str, *, open_only: bool) -> list[int]:
            found: list[int] = []
            before = 0
            while True:
                rows = await store.sessions_of("op-1", player, open_only=open_only, before=before, limit=2)
                found += [one.open_ms - 1000 for _, one in rows]
                if len(rows) < 2:
                    return found
                before = rows[-1][0]

        assert await pages("", open_only=False) == [9, 8, 7, 6, 4, 3, 2, 1]
        assert await pages("", open_only=True) == [9, 7, 3, 1]
        assert await pages("anna", open_only=False) == [8, 7, 4, 2, 1]
        assert await pages("bert", open_only=True) == [9, 3]
        assert await pages("carl", open_only=False) == []


@pytest.mark.usefixtures("either_store")
async def test_ended_rounds_come_last_ended_first_page_by_page(tmp_path: Path) -> None:
    ends = {1: 900, 2: 700, 3: 900, 4: 0, 5: 800, 6: 900}
    async with open_shelf(tmp_path) as store:
        for number, end_ms in ends.items():
            await store.commit(opened(session(number, player="bert" if number == 6 else "anna")))
            read = await store.session(ulid(number))
            assert read is not None
            change = started(read, number)
            assert change.round is not None
            change.round = replace(change.round, end_ms=end_ms, start_ms=100 * number)
            await store.commit(change)
        found: list[int] = []
        before = (1 << 62, 0)
        while rows := await store.rounds_ended("op-1", "anna", before=before, limit=2):
            found += [round_.draw_no for _, round_ in rows]
            before = (rows[-1][1].end_ms, rows[-1][0])
        assert found == [3, 1, 5, 2]
        began = await store.rounds_started("op-1", "anna", 200, 400, 10)
        assert [round_.draw_no for round_ in began] == [2, 3, 4]
        assert len(await store.rounds_started("op-1", "anna", 200, 400, 2)) == 2
        assert await store.rounds_started("op-2", "anna", 0, 1 << 62, 10) == []


@pytest.mark.usefixtures("either_store")
async def test_statements_by_hash_instance_session_and_round(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(opened(session(1)))
        read = await store.session(ulid(1))
        assert read is not None
        (opening,) = await store.commit(started(read, 1))
        read = await store.session(ulid(1))
        assert read is not None
        round_id = dealt(session(1), 1).round_id
        final = Change(
            replace(read, version=read.version + 1),
            drafts=(Draft("round_final", {"time": "then"}, round_id=round_id, seat_no=1),),
        )
        (ending,) = await store.commit(final)

        found = await store.statement_of_hash(opening.hash)
        assert found is not None
        assert (found.kind, found.envelope, found.round_id, found.link_no) == (
            "round_opening", opening.envelope, round_id, 2,
        )  # fmt: skip
        assert await store.statement_of_hash(b"x" * 32) is None

        def names(rows: list[StatementRow]) -> list[int]:
            return [row.statement_no for row in rows]

        assert names(await store.statements_of_instance(found.instance, 2, 3, 10)) == [2, 3]
        assert names(await store.statements_of_instance(found.instance, 1, 9, 2)) == [1, 2]
        assert names(await store.statements_of_instance("node-2-b1-w0", 1, 9, 2)) == []
        assert names(await store.statements_of_session(ulid(1), 0, 10)) == [2, 3, 4]
        assert names(await store.statements_of_session(ulid(1), 1, 1)) == [3]
        both = await store.statements_of_round(round_id, 0, 10)
        assert [row.envelope for row in both] == [opening.envelope, ending.envelope]
        assert await store.statements_of_round(round_id, both[0].id, 10) == both[1:]
        assert await store.round_envelopes(round_id) == (opening.envelope, ending.envelope)
        assert await store.round_envelopes(ulid(9)) == (b"", b"")
        assert await store.any_session_open()


@pytest.mark.usefixtures("either_store")
async def test_pending_operations_come_oldest_first_page_by_page(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        for number in (3, 1, 5, 2, 4):
            await store.commit(Change(session(number), operation=operation(number, ulid(number))))
        await store.commit(Change(session(2, version=2), operation=operation(2, ulid(2), "failed")))
        found: list[str] = []
        while page := await store.pending_operations(2, found[-1] if found else ""):
            found += [one.operation_id for one in page]
        assert found == [operation(number, "").operation_id for number in (1, 3, 4, 5)]


async def test_statements_are_streamed_in_order_one_row_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive: weakref.WeakSet[Any] = weakref.WeakSet()

    class Row(StatementRow):
        """With room for a weak reference."""

        __slots__ = ("__weakref__",)

        def __init__(self, *columns: Any) -> None:
            super().__init__(*columns)
            alive.add(self)

        def __hash__(self) -> int:
            return id(self)

    async with open_shelf(tmp_path) as store:
        for number in range(1, 41):
            await store.commit(opened(session(number)))
        monkeypatch.setattr("rgs.store.interface.StatementRow", Row)
        seen, most = [], 0
        async for row in store.statements_in_order():
            seen.append(row.statement_no)
            most = max(most, len(alive))
        assert seen == list(range(1, 42))
        assert most <= 2
        del row
        gc.collect()
        assert [row.statement_no async for row in store.statements_in_order(39)] == [40, 41]


# --- plans ------------------------------------------------------------------------------------------------------------


def written(folder: Path, sql: str) -> set[str]:
    """The tables and indexes that a statement writes, by what its program opens for that."""
    with closing(connect(folder / "rgs.db", read_only=True)) as connection:
        names = dict(connection.execute("SELECT rootpage, name FROM sqlite_schema"))
        program = connection.execute("EXPLAIN " + sql, (0,) * len(set(re.findall(r"\?\d+", sql)))).fetchall()
        return {names[step[3]] for step in program if step[1] == "OpenWrite"}


async def test_a_decision_writes_no_index_but_the_keys(tmp_path: Path) -> None:
    async with open_shelf(tmp_path):
        assert written(tmp_path, UPDATE_SESSION_WITHIN) == {"sessions", "sqlite_autoindex_sessions_1"}
        assert written(tmp_path, UPDATE_ROUND_WITHIN) == {"rounds", "sqlite_autoindex_rounds_1"}
        assert written(tmp_path, UPDATE_SESSION) > {"sessions_not_closed", "sessions_not_closed_of"}
        assert written(tmp_path, UPDATE_ROUND) > {"rounds_open", "rounds_open_of"}


def test_the_shorter_updates_take_the_same_values() -> None:
    """Every column has the number that it has in the whole update; what stays is compared instead."""
    for whole, within, kept in (
        (UPDATE_SESSION, UPDATE_SESSION_WITHIN, {"status"}),
        (UPDATE_ROUND, UPDATE_ROUND_WITHIN, {"status", "end_ms"}),
    ):
        numbers, found = (dict(re.findall(r"(\w+) = (\?\d+)", text)) for text in (whole, within))
        assert found == numbers
        assert {name for name in numbers if name in within.split(" WHERE ")[1].split()} >= kept
        assert kept.isdisjoint(re.findall(r"(\w+) = ", within.split(" WHERE ")[0]))


async def test_a_players_open_sessions_are_found_past_all_closed_ones(tmp_path: Path) -> None:
    query = "WHERE operator = ? AND player = ? AND id < ? AND status <> 'closed' ORDER BY id DESC LIMIT ?"
    async with open_shelf(tmp_path):
        with closing(connect(tmp_path / "rgs.db", read_only=True)) as connection:
            (step,) = connection.execute("EXPLAIN QUERY PLAN " + SESSIONS.select + query, ("", "", 0, 0))
        assert "USING INDEX sessions_not_closed_of (operator=? AND player=? AND id<?)" in step[3]


STANDING = {
    # What is in the table is what is under way: rows that wait, processes that ran.
    r"SCAN stage_reports",
    r"SCAN (instances|parties)",
    r"SCAN operations USING INDEX operations_pending",
    # Processes that ran, rulesets that were played, rounds that were passed over.
    r"SCAN [il]",
    r"SCAN returns(_late)?",
    # An export reads all there is.
    r"SEARCH s USING INTEGER PRIMARY KEY \(rowid>\?\)",
    # As many rows as its limit says (`count_sittings`); the seats that are numbered (`SeatsFixed`).
    r"SCAN (found|cut|\(subquery-\d+\))",
    # The ids handed in with the query.
    r"SCAN json_each VIRTUAL TABLE INDEX \d+:",
}


WALK = re.compile(r"SCAN .*|SEARCH \w+ USING (INTEGER )?PRIMARY KEY \(\w+[<>]\?\)")
"""A table or a whole index, from end to end or from some key on."""


def scans(folder: Path, statements: Iterable[str]) -> dict[str, list[str]]:
    """The statements whose plans walk, with the steps. Its own connection keeps no plan of an older schema."""
    found: dict[str, list[str]] = {}
    with closing(connect(folder / "rgs.db", read_only=True)) as connection:
        for sql in statements:
            steps = [row[3] for row in connection.execute("EXPLAIN QUERY PLAN " + sql)]
            walks = [step for step in steps if WALK.fullmatch(step)]
            if any(not any(re.fullmatch(known, step) for known in STANDING) for step in walks):
                found[sql] = steps
    return found


def has_plan(sql: str) -> bool:
    return sql.split(maxsplit=1)[0] in ("SELECT", "UPDATE", "DELETE", "INSERT")


async def read_everything(store: SqliteStore) -> None:
    """Every method of the reads once."""
    await store.session(ulid(1))
    await store.round(ulid(1))
    await store.answer("op-1", "Act", "x")
    await store.pending_operation(ulid(1))
    await store.operation_of_request("op-1", "Act", "x")
    await store.pending_operations(10)
    assert (await store.reports(10), await store.reports_of(ulid(1), 10)) == ([], [])
    for player, is_open in (("", False), ("", True), ("anna", False), ("anna", True)):
        await store.sessions_of("op-1", player, open_only=is_open, before=0, limit=10)
    for game in ("", "uth-solo"):
        await store.rounds_ended("op-1", "anna", game=game, first_ms=1, before=(1, 1), limit=10)
    await store.rounds_with_code("op-1", "#12:00:00", "", "", first_ms=1, before=(1, 1), limit=10)
    await store.rounds_of_session(ulid(1), before_no=9, limit=10)
    await store.rounds_started("op-1", "anna", 0, 1, 10)
    await store.sessions_with("op-1", "ref", before=0, limit=10)
    await store.session_of_reference("op-1", "ref")
    await store.session_versions([ulid(1), ulid(2)])
    await read_for_support(store)
    await store.day_totals("op-1", "2026-01-01", "2026-12-31", after=DayTotalsKey(), limit=10)
    await store.unlisted(10)
    await store.statements_to_list("i", 0, 9, 10)
    await store.newest_final("op-1")
    await store.final_mark("op-1", 1)
    await store.finals("op-1", 0, 10)
    await store.statement_of_hash(bytes(32))
    await store.statements_of_instance("i", 1, 2, 10)
    await store.statements_of_session(ulid(1), 0, 10)
    await store.statements_of_round(ulid(1), 0, 10)
    await store.round_envelopes(ulid(1))
    async for _ in store.statements_in_order(5):
        pass
    await store.instances(alive_only=True)
    await store.previous_boot("node-1", 0)
    await store.meta("schema")
    await store.tallies()
    await store.unread_instances(10)
    await store.rounds_to_count("i", 0, 10)
    await store.late_rounds(10)
    await store.passed_over()


async def test_no_query_of_a_life_or_a_list_scans(tmp_path: Path) -> None:
    """Reads and writes as they are made, each explained."""
    reported: set[str] = set()
    async with open_harness(tmp_path) as harness:
        harness.store._reader.set_trace_callback(reported.add)
        harness.store._db.set_trace_callback(reported.add)
        player = Player(harness)
        await player.sit()
        await player.play()
        await player.leave()
        await harness.settle()
        await harness.services.monitoring.poll()
        await read_everything(harness.store)
        harness.store._reader.set_trace_callback(None)
        harness.store._db.set_trace_callback(None)
        shapes = {re.sub(r"'[^']*'|x'[0-9A-F]*'|\b\d+\b", "?", sql): sql for sql in reported if has_plan(sql)}
        assert len(shapes) > 30
        assert scans(tmp_path, shapes.values()) == {}


@pytest.mark.parametrize(
    "dropped",
    [
        ("sessions_by_operator", "sessions_by_player", "sessions_not_closed"),
        ("rounds_by_player_end", "rounds_by_player_start", "rounds_by_player_game_end"),
        ("rounds_by_code_end", "rounds_by_player_end", "rounds_by_player_start", "rounds_by_player_game_end"),
        ("sessions_by_reference", "sessions_by_operator", "sessions_by_player", "sessions_not_closed"),
        ("statements_by_hash",),
        ("statements_by_round",),
        ("statements_by_session",),
        ("answers_by_request",),
    ],
)
async def test_the_oracle_misses_an_index(tmp_path: Path, dropped: tuple[str, ...]) -> None:
    reported: set[str] = set()
    async with open_shelf(tmp_path) as store:
        store._reader.set_trace_callback(reported.add)
        await read_everything(store)
        store._reader.set_trace_callback(None)
        assert scans(tmp_path, reported) == {}
        for index in dropped:
            store._db.execute("DROP INDEX " + index)
        assert scans(tmp_path, reported) != {}
