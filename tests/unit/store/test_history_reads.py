"""Lists of rounds by player, game, code and session, and references that belong to one session; in both databases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from rgs.core.sessions import SessionStatus
from rgs.store.address import PostgresAddress
from rgs.store.changes import Change, ReferenceFreed, SessionRaceError, StoreError
from rgs.store.interface import DayTotalsKey
from rgs.store.opening import migrate_store
from rgs.store.postgres.texts import postgres_text
from rgs.store.recovery import Import
from rgs.store.rows import SESSIONS
from rgs.store.sqlite.recovery import import_gap as import_into_file
from tests.support.store.shelf import (
    address_of,
    applied,
    change_by_hand,
    open_shelf,
    opened,
    session,
    started,
    table,
    ulid,
)
from tests.unit.store.test_migrations import newest, old_store

pytestmark = pytest.mark.usefixtures("either_store")
BEFORE = (1 << 62, 0)


async def ended(store: Any, number: int, end_ms: int, **fields: Any) -> None:
    """A round of the session that ended then; its draw has the session's number."""
    read = await store.session(ulid(number))
    change = started(read, number)
    assert change.round is not None
    change.round = replace(change.round, end_ms=end_ms, **fields)
    await store.commit(change)


async def an_evening(store: Any) -> None:
    """Rounds of two players and another operator's, in two games, with two codes."""
    for number, (player, operator, end_ms, game, code) in enumerate(
        (
            ("anna", "op-1", 900, "uth-solo", "#12:00:00"),
            ("anna", "op-1", 700, "casino-holdem", "#12:00:00"),
            ("anna", "op-1", 900, "uth-solo", "#13:00:00"),
            ("anna", "op-1", 0, "uth-solo", "#12:00:00"),
            ("bert", "op-1", 800, "uth-solo", "#12:00:00"),
            ("anna", "op-2", 800, "uth-solo", "#12:00:00"),
        ),
        1,
    ):
        await store.commit(opened(session(number, player=player, operator=operator)))
        await ended(store, number, end_ms, ruleset_id=game, game_code=code)


def draws(rows: list[Any]) -> list[int]:
    return [round_.draw_no for _, round_ in rows]


async def test_rounds_by_game_by_days_and_by_code(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await an_evening(store)

        async def of_player(**more: Any) -> list[int]:
            return draws(await store.rounds_ended("op-1", "anna", **{"before": BEFORE, "limit": 9, **more}))

        assert await of_player() == [3, 1, 2]
        assert await of_player(game="uth-solo") == [3, 1]
        assert await of_player(game="casino-holdem") == [2]
        assert await of_player(game="uth-online") == []
        assert await of_player(first_ms=900) == [3, 1]
        assert await of_player(first_ms=901) == []
        assert await of_player(before=(900, 0)) == [2]

        async def with_code(code: str, player: str = "", game: str = "", **more: Any) -> list[int]:
            span = {"first_ms": 0, "before": BEFORE, "limit": 9, **more}
            return draws(await store.rounds_with_code("op-1", code, player, game, **span))

        assert await with_code("#12:00:00") == [1, 5, 2]
        assert await with_code("#12:00:00", "anna") == [1, 2]
        assert await with_code("#12:00:00", "anna", "uth-solo") == [1]
        assert await with_code("#12:00:00", first_ms=800, before=(900, 0)) == [5]
        assert await with_code("#12:00:00", limit=2) == [1, 5]
        assert await with_code("#14:00:00") == []


async def test_the_rounds_of_a_session_come_newest_first(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(opened(session(1)))
        for draw_no in (1, 2, 3):
            await store.commit(started(await store.session(ulid(1)), draw_no))
        assert draws(await store.rounds_of_session(ulid(1), before_no=1 << 62, limit=2)) == [3, 2]
        assert draws(await store.rounds_of_session(ulid(1), before_no=2, limit=2)) == [1]
        assert await store.rounds_of_session(ulid(2), before_no=9, limit=2) == []


# --- references -------------------------------------------------------------------------------------------------------


async def test_a_reference_belongs_to_one_session_of_an_operator(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(opened(session(1, operator_reference="visit")))
        with pytest.raises(SessionRaceError, match="operator_reference"):
            await store.commit(opened(session(2, operator_reference="visit")))
        await store.commit(opened(session(3, operator_reference="visit", operator="op-2")))
        await store.commit(opened(session(4, operator_reference="")))  # of erased players
        await store.commit(opened(session(5, operator_reference="")))
        assert await store.session_of_reference("op-1", "visit") == ulid(1)
        assert await store.session_of_reference("op-2", "visit") == ulid(3)
        assert await store.session_of_reference("op-3", "visit") == ""
        assert await store.session_of_reference("op-1", "") == ""
        found = await store.sessions_with("op-1", "visit", before=0, limit=9)
        assert [one.session_id for _, one in found] == [ulid(1)]


async def test_one_of_two_sessions_of_a_group_gets_the_reference(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        both = [opened(session(number, operator_reference="visit")) for number in (1, 2)]
        outcomes = await applied(store, both)
        assert [isinstance(outcome, SessionRaceError) for outcome in outcomes] == [False, True]
    assert len(await table(tmp_path, "SELECT 1 FROM sessions")) == 1


async def test_a_session_that_never_opened_gives_its_reference_back(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(opened(session(1, operator_reference="visit")))
        await store.commit(Change(records=(ReferenceFreed(ulid(1)),)))
        assert await store.session_of_reference("op-1", "visit") == ""
        await store.commit(opened(session(2, operator_reference="visit")))
        await store.commit(Change(records=(ReferenceFreed(ulid(2)),)))
        await store.commit(opened(session(3, operator_reference="visit")))
        assert await store.session_of_reference("op-1", "visit") == ulid(3)
        found = await store.sessions_with("op-1", "visit", before=0, limit=9)
        assert [one.session_id for _, one in found] == [ulid(3), ulid(2), ulid(1)]


async def test_a_store_with_repeated_references_is_migrated_with_all_of_them(
    tmp_path: Path, either_store: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [session(number, operator_reference="visit" if number < 6 else "other") for number in range(1, 7)]
    before[0] = replace(before[0], status=SessionStatus.CLOSED)  # refused by the regulator: it has no link
    await old_store(tmp_path, either_store, tmp_path_factory.mktemp("eight"), monkeypatch, {SESSIONS: before})
    for day, player, staked_minor in (("2026-11-21", "anna", 3), ("2026-11-21", "bert", 4), ("2026-11-22", "anna", 5)):
        await change_by_hand(
            tmp_path,
            "INSERT INTO totals (day, operator, player, game, currency, rounds, staked_minor, returned_minor,"  # noqa: S608
            " void_rounds, void_minor)"
            f" VALUES ('{day}', 'op-1', '{player}', 'uth-solo', 'EUR', 1, {staked_minor}, 2, 0, 0)",
        )
    assert await migrate_store(address_of(tmp_path)) == (8, newest(either_store))
    slots = await table(tmp_path, "SELECT reference_slot FROM sessions ORDER BY session_id")
    assert [slot for (slot,) in slots] == [None, 0, 1, 2, 3, 0]
    async with open_shelf(tmp_path, started=False) as store:
        assert await store.session_of_reference("op-1", "visit") == ulid(2)
        found = await store.sessions_with("op-1", "visit", before=0, limit=9)
        assert [one.session_id for _, one in found] == [ulid(number) for number in (5, 4, 3, 2, 1)]
        days = await store.day_totals("op-1", "0001-01-01", "9999-12-31", after=DayTotalsKey(), limit=9)
        assert [(row.key.day, row.rounds, row.staked_minor) for row in days] == [
            ("2026-11-21", 2, 7),
            ("2026-11-22", 1, 5),
        ]


async def test_recovered_sessions_hold_their_reference_unless_another_does(tmp_path: Path, either_store: str) -> None:
    if either_store == "postgres":
        pytest.skip("the same text writes both; a restored database is recovered in tests/integration")
    async with open_shelf(tmp_path) as store:
        await store.commit(opened(session(1, operator_reference="visit")))
    gap = Import(new_sessions={ulid(n): session(n, operator_reference="visit" if n < 4 else "late") for n in (2, 3, 4)})
    where = address_of(tmp_path)
    assert isinstance(where, Path)
    import_into_file(where, gap)
    slots = await table(tmp_path, "SELECT session_id, reference_slot FROM sessions ORDER BY session_id")
    assert slots == [(ulid(1), 0), (ulid(2), None), (ulid(3), None), (ulid(4), 0)]


# --- plans ------------------------------------------------------------------------------------------------------------


async def test_postgres_finds_each_list_by_its_index(tmp_path: Path, either_store: str) -> None:
    if either_store != "postgres":
        pytest.skip("the plans of SQLite: test_reads.py")
    async with open_shelf(tmp_path) as store:
        lists: dict[str, Any] = {
            "rounds_by_player_game_end": lambda: store.rounds_ended(
                "op-1", "anna", game="uth-solo", before=BEFORE, limit=9
            ),
            "rounds_by_code_end": lambda: store.rounds_with_code(
                "op-1", "#12:00:00", "", "", first_ms=1, before=BEFORE, limit=9
            ),
            "sessions_by_reference": lambda: store.session_of_reference("op-1", "visit"),
            "day_totals_pkey": lambda: store.day_totals(
                "op-1", "2026-01-01", "2026-12-31", after=DayTotalsKey(), limit=9
            ),
            "finals_pkey": lambda: store.finals("op-1", 0, 9),
            "statements_pkey": lambda: store.statements_to_list("i", 0, 9, 9),
        }
        where = address_of(tmp_path)
        assert isinstance(where, PostgresAddress)
        connection = await asyncpg.connect(where.url)
        await connection.execute("SET enable_seqscan = off")
        await connection.execute("SET enable_bitmapscan = off")
        for index, ask in lists.items():
            requested: list[tuple[str, tuple[Any, ...]]] = []

            async def note(query: str, *values: Any, requested: Any = requested) -> list[Any]:
                requested.append((query, values))
                return []

            store._rows = note
            await ask()
            ((query, values),) = requested
            plan = await connection.fetch("EXPLAIN " + postgres_text(query), *values)
            text = "\n".join(row[0] for row in plan)
            assert index in text, text
            assert "Seq Scan" not in text, text
        await connection.close()


async def test_the_watch_over_returns_finds_each_session_by_its_key(tmp_path: Path, either_store: str) -> None:
    """An EXISTS of the mode was planned as a scan of all sessions, each time it looked."""
    if either_store != "postgres":
        pytest.skip("the plans of SQLite: test_reads.py")
    async with open_shelf(tmp_path) as store:
        where = address_of(tmp_path)
        assert isinstance(where, PostgresAddress)
        connection = await asyncpg.connect(where.url)
        try:
            requested: list[tuple[str, tuple[Any, ...]]] = []

            async def note(query: str, *values: Any) -> list[Any]:
                requested.append((query, values))
                return []

            store._rows = note
            await store.rounds_to_count("i", 0, 10)
            ((query, values),) = requested
            await connection.execute(
                "INSERT INTO statements SELECT n, 'i', n, 'round_opening', '', '', 0, '', 0, '', ''"
                " FROM generate_series(1, 20000) n"
            )
            await connection.execute("ANALYZE statements")
            await connection.execute("SET enable_seqscan = off")
            plan = "\n".join(row[0] for row in await connection.fetch("EXPLAIN " + postgres_text(query), *values))
            assert "sessions_pkey" in plan, plan
            assert "Seq Scan" not in plan, plan
        finally:
            await connection.close()


async def test_no_other_constraint_is_taken_for_a_reference(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(opened(session(1)))
        with pytest.raises(StoreError):
            await store.commit(Change(session=session(1, operator_reference="other")))
