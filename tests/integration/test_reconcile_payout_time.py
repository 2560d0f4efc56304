"""The id of a payout bears the time of the participation; reconciliation asks for the credit, and for the end at the
central system, behind the session's last round all the same.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from rgs.core.reconcile.classes import BreakClass
from rgs.store.sqlite.store import SqliteReads, connect
from tests.house import Player, open_house
from tests.reconciling import Day, Row, export_day
from tests.waiting import all_at_once

MINUTE_MS = 60_000


async def _play(folder: Path) -> None:
    async with open_house(folder) as house:
        anna = Player(house)
        await anna.sit()
        for _ in range(3):
            house.clock.tick(20 * MINUTE_MS)
            await anna.play()
        house.clock.tick(MINUTE_MS)
        await anna.leave()
        await house.settle()


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Day:
    folder = tmp_path_factory.mktemp("payout")
    asyncio.run(_play(folder))
    connection = connect(folder / "rgs.db", read_only=True)
    try:
        return export_day(folder, all_at_once(SqliteReads(connection).statements_in_order()), folder / "day")
    finally:
        connection.close()


def earlier(row: Row, name: str) -> None:
    """Half an hour: behind the purchase, before the last round."""
    text = row[name]
    row[name] = (datetime.fromisoformat(text) - timedelta(minutes=30)).isoformat(timespec="milliseconds")[:23] + "Z"


def test_as_it_was_played_it_is_clean(clean: Day, tmp_path: Path) -> None:
    assert clean.run(tmp_path / "out").verdict == "clean"


def test_a_payout_that_is_dated_before_the_last_round_is_named(clean: Day, tmp_path: Path) -> None:
    day = clean.copy(tmp_path / "day")

    def change(rows: list[Row]) -> None:
        (row,) = [row for row in rows if row["kind"] == "credit"]
        earlier(row, "time")

    day.change_wallet(change)
    assert day.breaks(tmp_path / "out") == [BreakClass.TIME_DIFFERS]


def test_an_end_that_is_dated_before_the_last_round_is_named(clean: Day, tmp_path: Path) -> None:
    day = clean.copy(tmp_path / "day")

    def change(rows: list[Row]) -> None:
        (row,) = [row for row in rows if row["kind"] == "end"]
        earlier(row, "time")

    day.change_regulator(change)
    assert day.breaks(tmp_path / "out") == [BreakClass.TIME_DIFFERS]
