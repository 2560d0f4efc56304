"""A day of bets that are debited one by one, in files: clean as it was played, and each planted fault by its name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rgs.core.reconcile.classes import BreakClass
from tests.support.service.reconciling import Day, Row, day_of
from tests.support.service.seamless import Better, opened


async def _play(folder: Path) -> None:
    async with opened(folder) as harness:
        for name in ("anna", "bert"):
            player = Better(harness, name=name)
            await player.open()
            for _ in range(12):
                await player.play()
            await harness.settle()
            await player.close()


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Day:
    folder = tmp_path_factory.mktemp("seamless")
    asyncio.run(_play(folder))
    return day_of(folder, folder / "day")


def found(day: Day, out: Path, **options: Any) -> list[str]:
    """No regulator knows of bets."""
    return day.breaks(out, regulator=None, **options)


def test_as_it_was_played_it_is_clean(day: Day, tmp_path: Path) -> None:
    done = day.run(tmp_path / "out", regulator=None)
    assert (done.verdict, done.rejected) == ("clean", 0)
    assert done.document["compared"]["transfers"] >= 16


def last(rows: list[Row], kind: str) -> Row:
    return [row for row in rows if row["kind"] == kind and row["amount_minor"] != "0"][-1]


def change_to(kind: str, /, **values: str) -> Callable[[list[Row]], None]:
    def change(rows: list[Row]) -> None:
        last(rows, kind).update(values)

    return change


def moved_by(kind: str, hours: int) -> Callable[[list[Row]], None]:
    def change(rows: list[Row]) -> None:
        row = last(rows, kind)
        row["time"] = (datetime.fromisoformat(row["time"]) + timedelta(hours=hours)).isoformat()

    return change


def swapped(rows: list[Row]) -> None:
    """The references of a row of anna and one of bert."""
    rows[0]["reference"], rows[-1]["reference"] = rows[-1]["reference"], rows[0]["reference"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (change_to("debit", kind="credit"), [BreakClass.DIRECTION_DIFFERS]),
        (change_to("debit", operator="op-2"), [BreakClass.OPERATOR_DIFFERS]),
        (change_to("debit", reference="X"), [BreakClass.CONTENT_DIFFERS]),
        (swapped, [BreakClass.CONTENT_DIFFERS] * 2),
        (moved_by("debit", 1), [BreakClass.TIME_DIFFERS]),
        (moved_by("debit", -1), [BreakClass.TIME_DIFFERS]),
        (moved_by("credit", 1), [BreakClass.TIME_DIFFERS]),
        (moved_by("credit", -1), [BreakClass.TIME_DIFFERS]),
        (change_to("debit", balance_after_minor="1"), [BreakClass.BALANCE_DIFFERS]),
    ],
    ids=["direction", "operator", "reference", "swapped", "late", "early", "credit late", "credit early", "balance"],
)
def test_a_fault_in_the_wallet_is_named(
    day: Day, tmp_path: Path, change: Callable[[list[Row]], None], expected: list[str]
) -> None:
    day.change_wallet(change)
    assert found(day, tmp_path / "out") == expected
