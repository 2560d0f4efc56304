"""The id of a payout bears the time of the participation; reconciliation asks for the credit, and for the end at the
regulator, behind the session's last round all the same.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from rgs.core.reconcile.classes import BreakClass
from tests.support.service.harness import open_harness
from tests.support.service.player import Player
from tests.support.service.reconciling import Day, Row, day_of

MINUTE_MS = 60_000


async def _play(folder: Path) -> None:
    async with open_harness(folder) as harness:
        anna = Player(harness)
        await anna.sit()
        for _ in range(3):
            harness.clock.tick(20 * MINUTE_MS)
            await anna.play()
        harness.clock.tick(MINUTE_MS)
        await anna.leave()
        await harness.settle()


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Day:
    folder = tmp_path_factory.mktemp("payout")
    asyncio.run(_play(folder))
    return day_of(folder, folder / "day")


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
