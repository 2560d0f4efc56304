"""Whole rounds at tables, from the first bet to the settled seats; an auditor replays what they leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from rgs.core.tables.machine import State
from tests.support.service.harness import ServiceHarness, open_harness, read_statement
from tests.support.service.oracles import replay, stored_statements, verify_books
from tests.support.service.tables import ALWAYS, Evening

TABLES = [("uth-online", 5), ("uth-seven-box", 7), ("uth-lugano", 3)]


@pytest.mark.parametrize(("table_id", "players"), TABLES)
async def test_rounds_are_played_replayed_and_booked(tmp_path: Path, table_id: str, players: int) -> None:
    async with open_harness(tmp_path) as harness:
        evening = await Evening(harness, table_id, hours=ALWAYS).open()
        sitters = await evening.seated(*(f"player-{number}" for number in range(players)))
        for _ in range(2):
            await evening.until(State.IDLE, State.BETTING)
            for sitter in sitters:
                await sitter.look()
                await sitter.bet(ante=1_000, trips=500)
            await evening.until(State.DECIDING)
            await sitters[0].decide("play_4x")
            await sitters[1].decide("check")
            await evening.until(State.RESULT)
            assert len((await evening.view()).dealer_cards) == 2
        for sitter in sitters:
            await sitter.look()
            assert sitter.seat["round"]["status"] == "settled"
            await sitter.leave()
            await sitter.end()
        await harness.settle()
        assert await evening.until(State.IDLE) is State.IDLE
        assert await harness.store.reserved_breaks(table_id, "", 10) == []
    summary = replay(tmp_path)
    assert (summary.rounds_verified, summary.rounds_open, summary.statements["seat_final"]) == (2, 0, 2 * players)
    verify_books(tmp_path)


async def test_who_is_silent_checks_and_folds_at_the_end_of_each_window(harness: ServiceHarness) -> None:
    """T-2: check, check, fold, each dated by the end of its window; a stake is never added."""
    evening = await Evening(harness, "uth-online").open()
    (sitter,) = await evening.seated("player-1")
    await sitter.bet(ante=1_000)
    await evening.until(State.RESULT)
    final = next(row for row in stored_statements(harness.folder) if row.kind == "table_final")
    windows = read_statement(final.envelope)["windows"]
    seat = read_statement(next(row for row in stored_statements(harness.folder) if row.kind == "seat_final").envelope)
    taken = [(one["phase"], one["action"], one["by"], one["amount_minor"], one["time"]) for one in seat["actions"]]
    actions = ("check", "check", "fold")
    assert taken == [
        (window["phase"], action, "timer", "0", window["close_time"])
        for window, action in zip(windows, actions, strict=True)
    ]
    assert (seat["staked_minor"], [window["end"] for window in windows]) == ("2000", ["time"] * 3)
    await sitter.look()
    assert [action["by"] for action in sitter.seat["round"]["actions"]] == ["timer"] * 3


async def test_windows_end_early_when_everybody_has_decided(harness: ServiceHarness) -> None:
    evening = await Evening(harness, "uth-seven-box").open()
    sitters = await evening.seated("player-1", "player-2")
    for sitter in sitters:
        await sitter.bet(ante=1_000)
    await evening.until(State.DECIDING)
    opened_ms = harness.clock.time_ms
    for sitter in sitters:
        harness.clock.tick(100)
        await sitter.decide("play_3x")
    await harness.tables.dealer.stop()
    assert await evening.until(State.RESULT, most=1) is State.RESULT
    assert harness.clock.time_ms == opened_ms + 200
    final = next(row for row in stored_statements(harness.folder) if row.kind == "table_final")
    assert [window["end"] for window in read_statement(final.envelope)["windows"]] == ["decided"] * 3


async def test_no_window_ends_early_where_the_configuration_forbids_it(harness: ServiceHarness) -> None:
    evening = await Evening(harness, "uth-seven-box", early_close=False).open()
    (sitter,) = await evening.seated("player-1")
    await sitter.bet(ante=1_000)
    await evening.until(State.DECIDING)
    await sitter.decide("play_4x")
    await harness.tables.dealer.stop()
    await evening.look()
    row = await evening.row()
    assert (row.table.state, row.table.phase) == (State.DECIDING, "preflop")


async def test_an_idle_table_commits_nothing(harness: ServiceHarness) -> None:
    evening = await Evening(harness, "uth-online").open()
    await evening.seated("player-1")
    before = harness.store.writer.changes
    for _ in range(50):
        harness.clock.tick(60_000)
        assert await harness.tables.dealer.poll() == 0
    assert harness.store.writer.changes == before


async def test_a_table_follows_its_hours_and_finishes_the_running_round(harness: ServiceHarness) -> None:
    """The table closes while bets are placed: the round is played to its end."""
    days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
    hours = {"zone": "UTC", "spans": [{"days": days, "opens": "00:00", "closes": "23:59"}]}
    evening = await Evening(harness, "uth-online", hours=hours).open()
    closes_ms = evening.config.hours.next_change_ms(harness.clock.time_ms)
    assert closes_ms is not None
    harness.clock.time_ms = closes_ms - 5_000
    await evening.look()
    (sitter,) = await evening.seated("player-1")
    assert await evening.state() is State.IDLE
    await sitter.bet(ante=1_000)
    assert await evening.until(State.SHUT, most=20) is State.SHUT
    await sitter.look()
    assert sitter.seat["round"]["status"] == "settled"
    assert await evening.until(State.IDLE, most=1) is State.IDLE
