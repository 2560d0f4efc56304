"""What monitoring counts: open rounds and sessions, tables by state, the longest wait, and totals of whole days."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rgs.core.rounds import RoundStatus
from rgs.core.sessions import SessionStatus
from rgs.core.tables.machine import State
from rgs.store.changes import Change
from rgs.store.counts import GameTotals, OpenRounds
from rgs.store.rows import DayTotalsAdded, TotalsAdded, day_totals_rows
from tests.support.store.shelf import change_by_hand, dealt, open_shelf, opened, session, started, ulid
from tests.support.store.table_rows import table_row

pytestmark = pytest.mark.usefixtures("either_store")


async def test_an_empty_store_counts_nothing(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        assert await store.count_open_rounds() == []
        assert await store.count_open_sessions() == 0
        assert await store.count_tables() == {}
        assert await store.oldest_due_ms() == 0
        assert await store.game_totals("op-1", "0001-01-01", "9999-12-31") == []


async def test_open_rounds_are_counted_by_game_with_the_time_of_the_oldest(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        for number, game in enumerate(("uth-solo", "casino-holdem", "uth-solo", "uth-solo"), 1):
            await store.commit(opened(session(number, ruleset_id=game)))
            await store.commit(started(await store.session(ulid(number)), number))
        first, second = [await store.session(ulid(number)) for number in (1, 2)]
        over = replace(dealt(replace(first, round_no=0), 1), status=RoundStatus.SETTLED, end_ms=9_000, version=2)
        await store.commit(Change(replace(first, version=first.version + 1), round=over))
        await store.commit(Change(replace(second, version=second.version + 1, status=SessionStatus.CLOSED)))
        assert await store.count_open_rounds() == [
            OpenRounds("casino-holdem", 1, 2002),
            OpenRounds("uth-solo", 2, 2003),
        ]
        assert await store.count_open_sessions() == 3


async def test_tables_are_counted_by_state_with_the_time_of_the_longest_wait(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        for table_id, state, due_ms in (
            ("t-1", State.BETTING, 5_000),
            ("t-2", State.IDLE, 0),
            ("t-3", State.BETTING, 4_000),
        ):
            await store.commit(Change(table=table_row(table_id=table_id, state=state, due_ms=due_ms)))
        assert await store.count_tables() == {"betting": 2, "idle": 1}
        assert await store.oldest_due_ms() == 4_000


async def test_totals_are_those_of_one_operator_and_of_whole_days(tmp_path: Path) -> None:
    """The last day is left out; games and currencies are told apart, workers are not."""
    rows = [
        ("op-1", "2026-11-20", "uth-solo", "EUR", "w0", 1),
        ("op-1", "2026-11-21", "uth-solo", "EUR", "w0", 10),
        ("op-1", "2026-11-21", "uth-solo", "EUR", "w1", 100),
        ("op-1", "2026-11-21", "uth-solo", "CHF", "w0", 1_000),
        ("op-1", "2026-11-22", "uth-solo", "EUR", "w0", 10_000),
        ("op-2", "2026-11-21", "uth-solo", "EUR", "w0", 100_000),
    ]
    async with open_shelf(tmp_path) as store:
        for operator, day, game, currency, worker, factor in rows:
            values = ", ".join(str(number * factor) for number in (2, 3, 4, 5, 6))
            await change_by_hand(
                tmp_path,
                "INSERT INTO day_totals (operator, day, game, currency, worker, rounds, staked_minor, returned_minor,"  # noqa: S608
                f" void_rounds, void_minor) VALUES ('{operator}', '{day}', '{game}', '{currency}', '{worker}',"
                f" {values})",
            )
        assert await store.game_totals("op-1", "2026-11-21", "2026-11-22") == [
            GameTotals("uth-solo", "CHF", 2_000, 3_000, 4_000, 5_000, 6_000),
            GameTotals("uth-solo", "EUR", 220, 330, 440, 550, 660),
        ]


def test_what_is_added_to_a_day_is_the_sum_over_players_and_has_void_rounds_apart() -> None:
    key = ("2026-11-21", "op-1", "anna", "uth-solo", "EUR")
    played = TotalsAdded(*key, 1, 200, 50)
    void = TotalsAdded(*key, void_rounds=1, void_minor=300)
    assert (played.void_rounds, played.void_minor, void.rounds, void.staked_minor, void.returned_minor) == (0,) * 5
    others = TotalsAdded("2026-11-21", "op-1", "bert", "uth-solo", "EUR", 1, 20, 5)
    assert day_totals_rows([played, void, others], "w0") == [
        DayTotalsAdded("op-1", "2026-11-21", "uth-solo", "EUR", "w0", 2, 220, 55, 1, 300)
    ]
