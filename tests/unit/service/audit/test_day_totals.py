"""An operator's own totals: by day, game and currency, equal to a scan of all rounds, and nobody else's."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import InvalidFieldError
from rgs.core.times import format_date
from rgs.service.callers import Caller, Role
from rgs.store.interface import DayTotalsRow
from tests.support.service.harness import OPERATOR, ServiceHarness, open_harness
from tests.support.service.oracles import table
from tests.support.service.player import Player
from tests.unit.service.audit.test_totals import lived

OTHER = Caller("op-2", Role.OPERATOR, "demo")
Key = tuple[str, ...]


def scan(folder: Path, operator: str) -> dict[Key, list[int]]:
    """The same from every ended round of the store, one by one."""
    sums: dict[Key, list[int]] = defaultdict(lambda: [0] * 5)
    query = (
        "SELECT r.end_ms, r.ruleset_id, s.currency, r.status, r.staked_minor, r.returned_minor FROM rounds r"  # noqa: S608
        f" JOIN sessions s ON s.session_id = r.session_id WHERE r.operator = '{operator}' AND r.end_ms > 0"
    )
    for end_ms, game, currency, status, staked_minor, returned_minor in table(folder, query):
        row = sums[format_date(end_ms), game, currency]
        added = [0, 0, 0, 1, staked_minor] if status == "void" else [1, staked_minor, returned_minor, 0, 0]
        row[:] = [old + new for old, new in zip(row, added, strict=True)]
    return dict(sums)


def sums_of(rows: list[DayTotalsRow]) -> dict[Key, list[int]]:
    return {
        (row.key.day, row.key.game, row.key.currency): [
            row.rounds, row.staked_minor, row.returned_minor, row.void_rounds, row.void_minor,
        ]
        for row in rows
    }  # fmt: skip


async def pages(harness: ServiceHarness, operator: str, size: int = 0, **wanted: Any) -> list[DayTotalsRow]:
    rows: list[DayTotalsRow] = []
    token = ""
    given = {"first_day": "", "last_day": "", "game": "", "currency": "", **wanted}
    while True:
        page, token = await harness.services.reports.list_day_totals(
            operator, **given, page_size=size, page_token=token
        )
        rows += page
        if not token:
            return rows


async def test_totals_are_those_of_a_scan_whatever_the_filter_and_the_page(
    tmp_path: Path, harness: ServiceHarness
) -> None:
    days = await lived(harness)
    bert = Player(harness, name="carl")  # a second player in a row of the first
    await bert.sit()
    await bert.play()
    for operator in ("op-1", "op-2"):
        expected = scan(tmp_path, operator)
        assert len(expected) >= 3
        everything = await pages(harness, operator)
        assert sums_of(everything) == expected
        assert list(sums_of(everything)) == sorted(expected)
        for size in (1, 2, 200):
            assert await pages(harness, operator, size) == everything
        for day in days:
            of_day = [row for row in everything if row.key.day >= day]
            assert await pages(harness, operator, 1, first_day=day) == of_day
            of_day = [row for row in everything if row.key.day == day]
            assert await pages(harness, operator, first_day=day, last_day=day) == of_day
        for game in ("uth-solo", "casino-holdem", "uth-online"):
            of_game = [row for row in everything if row.key.game == game]
            assert await pages(harness, operator, 1, game=game) == of_game
        assert await pages(harness, operator, currency="EUR") == everything
        assert await pages(harness, operator, currency="GBP") == []
    assert await pages(harness, "op-3") == []


async def test_totals_go_on_over_a_restart_and_outlive_the_player(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as first:
        anna = Player(first)
        await anna.sit()
        await anna.play()
        await anna.leave()
        clock = first.clock
    async with open_harness(tmp_path, clock=clock) as second:
        bert = Player(second, name="bert")
        await bert.sit()
        await bert.play()
        expected = scan(tmp_path, "op-1")
        assert sums_of(await pages(second, "op-1")) == expected
        workers = table(tmp_path, "SELECT worker FROM day_totals")
        assert workers == [("node-1-w0",)], "a restart adds no row"


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"first_day": "2026-13-01"}, "first_day"),
        ({"last_day": "yesterday"}, "last_day"),
        ({"first_day": "2026-02-02", "last_day": "2026-02-01"}, "last_day"),
        ({"game": "a b"}, "game"),
    ],
)
async def test_a_filter_that_cannot_be_is_refused(harness: ServiceHarness, wanted: Any, field: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        await pages(harness, OPERATOR.party, **wanted)
    assert caught.value.field == field
