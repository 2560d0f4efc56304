"""A day with free bets, in files: clean as it was played, on all three sides, and each planted fault by its name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from rgs.core.reconcile.classes import BreakClass
from tests.support.service.guests import Guest
from tests.support.service.harness import open_harness
from tests.support.service.reconciling import Day, Row, day_of

CAMPAIGN = "campaign:spring"


async def _play(folder: Path) -> None:
    async with open_harness(folder) as harness:
        for name in ("anna", "bert"):
            player = Guest(harness, name=name)
            await player.open()
            await player.buy(10_000)
            for grant in await player.grant(12):
                await player.play()
                await player.play_free(grant.grant_id)
            await harness.settle()
            await player.send(player.ending())
            await player.send(player.closing())
        await harness.settle()


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Day:
    folder = tmp_path_factory.mktemp("free")
    asyncio.run(_play(folder))
    return day_of(folder, folder / "day")


def test_as_it_was_played_it_is_clean(day: Day, tmp_path: Path) -> None:
    done = day.run(tmp_path / "out")
    assert (done.verdict, done.rejected, [result["class"] for result in done.document["breaks"]]) == ("clean", 0, [])
    assert done.document["compared"]["transfers"] == 2 * (2 + 24)


def last(rows: list[Row], kind: str) -> Row:
    return [row for row in rows if row["player"] == CAMPAIGN and row["kind"] == kind and row["amount_minor"] != "0"][-1]


def change_to(kind: str, /, **values: str) -> Callable[[list[Row]], None]:
    def change(rows: list[Row]) -> None:
        last(rows, kind).update(values)

    return change


def without(kind: str) -> Callable[[list[Row]], None]:
    def change(rows: list[Row]) -> None:
        rows.remove(last(rows, kind))

    return change


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (change_to("debit", amount_minor="1", balance_after_minor=""), BreakClass.AMOUNT_DIFFERS),
        (change_to("credit", kind="debit", balance_after_minor=""), BreakClass.DIRECTION_DIFFERS),
        (change_to("debit", reference="X"), BreakClass.CONTENT_DIFFERS),
        (without("debit"), BreakClass.MISSING_DEBIT),
        (without("credit"), BreakClass.MISSING_CREDIT),
    ],
    ids=["amount", "direction", "reference", "not paid", "not given back"],
)
def test_a_fault_of_the_campaign_is_named(
    day: Day, tmp_path: Path, change: Callable[[list[Row]], None], expected: BreakClass
) -> None:
    day.change_wallet(change)
    assert expected in day.breaks(tmp_path / "out")
