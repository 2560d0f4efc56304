"""Totals are read from a key on, of one game where one is named, and never the same row twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from rgs.store.interface import DayTotalsKey, TotalsFilter, TotalsKey
from tests.support.store.shelf import change_by_hand, open_shelf

DAYS = ("2026-11-20", "2026-11-21")
GAMES = ("casino-holdem", "uth-solo")
FILTERS = {
    "all": TotalsFilter("2026-01-01", "2026-12-31"),
    "of an operator": TotalsFilter("2026-01-01", "2026-12-31", operator="op-1"),
    "of a player": TotalsFilter("2026-01-01", "2026-12-31", operator="op-1", player="anna"),
}


async def filled(folder: Path) -> None:
    for day in DAYS:
        for operator in ("op-1", "op-2"):
            for game in GAMES:
                key = f"'{day}', '{operator}', 'anna', '{game}', 'EUR'"
                await change_by_hand(
                    folder,
                    "INSERT INTO totals (day, operator, player, game, currency, rounds, staked_minor, returned_minor,"  # noqa: S608
                    f" void_rounds, void_minor) VALUES ({key}, 1, 2, 3, 0, 0)",
                )
                await change_by_hand(
                    folder,
                    "INSERT INTO day_totals (operator, day, game, currency, worker, rounds, staked_minor,"  # noqa: S608
                    f" returned_minor, void_rounds, void_minor) VALUES ('{operator}', '{day}', '{game}', 'EUR', 'w0',"
                    " 1, 2, 3, 0, 0)",
                )


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("game", ["", *GAMES])
async def test_each_page_goes_on_behind_the_one_before(tmp_path: Path, name: str, game: str) -> None:
    async with open_shelf(tmp_path) as store:
        await filled(tmp_path)
        given = FILTERS[name]
        wanted = TotalsFilter(given.first_day, given.last_day, operator=given.operator, player=given.player, game=game)
        operators = ("op-1", "op-2") if name == "all" else ("op-1",)
        expected = [
            (day, operator, one) for day in DAYS for operator in operators for one in GAMES if game in ("", one)
        ]
        found: list[tuple[str, str, str]] = []
        after = TotalsKey()
        for _ in range(len(expected) + 1):
            page = await store.totals(wanted, after=after, limit=1)
            found += [(row.key.day, row.key.operator, row.key.game) for row in page]
            if not page:
                break
            after = page[-1].key
        assert found == expected


async def test_the_totals_of_days_are_read_from_the_beginning(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await filled(tmp_path)
        rows = await store.day_totals("op-1", "2026-01-01", "2026-12-31", after=DayTotalsKey(), limit=9)
        assert [(row.key.day, row.key.game) for row in rows] == [(day, game) for day in DAYS for game in GAMES]
        (last,) = await store.day_totals("op-1", "2026-01-01", "2026-12-31", after=rows[-2].key, limit=9)
        assert last == rows[-1]
