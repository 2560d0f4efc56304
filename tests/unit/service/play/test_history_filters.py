"""Rounds by days, game and game code: what is found, in which order, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from rgs.core.errors import InvalidFieldError
from rgs.core.times import format_date
from rgs.service.callers import Caller, Role
from rgs.service.play.history import CODE_DAYS_MAX, RoundsFilter
from tests.support.service.harness import OPERATOR, ServiceHarness
from tests.support.service.player import Player

DAY_MS = 86_400_000


async def played(harness: ServiceHarness) -> list[str]:
    """Three days with a round of anna and one of bert in each game; the days."""
    days, begun_ms = [], harness.clock.now_ms()
    for number in range(3):
        harness.clock.time_ms = begun_ms + number * DAY_MS
        days.append(format_date(harness.clock.now_ms()))
        for name in ("anna", "bert"):
            for game in ("uth-solo", "casino-holdem"):
                player = Player(harness, name=name, game=game)
                await player.sit()
                await player.play()
                await player.leave()
                harness.clock.tick(2_000)
    return days


async def found(harness: ServiceHarness, size: int = 50, caller: Caller = OPERATOR, **wanted: Any) -> list[Any]:
    """All pages."""
    rounds: list[Any] = []
    token = ""
    while True:
        page, token = await harness.history.list_rounds(caller, RoundsFilter(**wanted), size, token)
        rounds += [(line.round.player, line.round.ruleset_id, format_date(line.round.end_ms)) for line in page]
        if not token:
            return rounds


async def test_every_filter_gives_what_a_look_at_all_gives(harness: ServiceHarness) -> None:
    days = await played(harness)
    everything = await found(harness, player="anna")
    assert len(everything) == 6
    for first in ("", *days):
        for last in ("", *days):
            for game in ("", "uth-solo", "casino-holdem", "uth-online"):
                if first and last and last < first:
                    continue
                expected = [
                    line for line in everything if (first or "0") <= line[2] <= (last or "9") and game in ("", line[1])
                ]
                for size in (1, 2, 50):
                    assert (
                        await found(harness, size, player="anna", first_day=first, last_day=last, game=game) == expected
                    )


async def test_a_code_is_found_of_all_players_and_of_one(harness: ServiceHarness) -> None:
    days = await played(harness)
    (line, *_), _ = await harness.history.list_rounds(OPERATOR, RoundsFilter("anna", game="uth-solo"), 1, "")
    span: dict[str, Any] = {"game_code": line.round.game_code, "first_day": days[0], "last_day": days[-1]}
    assert await found(harness, **span) == [("anna", "uth-solo", day) for day in reversed(days)]
    assert await found(harness, 1, **span) == [("anna", "uth-solo", day) for day in reversed(days)]
    assert await found(harness, **{**span, "first_day": days[1], "last_day": days[1]}) == [
        ("anna", "uth-solo", days[1])
    ]
    assert len(await found(harness, **span, player="anna")) == 3
    assert await found(harness, **span, player="bert") == []
    assert await found(harness, **span, game="casino-holdem") == []
    other = Caller("op-2", Role.OPERATOR, "demo")
    assert await found(harness, caller=other, **span) == []


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (RoundsFilter(), "player"),
        (RoundsFilter(game="uth-solo"), "player"),
        (RoundsFilter("anna", first_day="2026-13-01"), "first_day"),
        (RoundsFilter("anna", last_day="yesterday"), "last_day"),
        (RoundsFilter("anna", first_day="2026-02-02", last_day="2026-02-01"), "last_day"),
        (RoundsFilter("anna", game="a b"), "game"),
        (RoundsFilter("a b", game_code="#12:00:00", first_day="2026-02-02", last_day="2026-02-02"), "player"),
        (RoundsFilter(game_code="12:00:00", first_day="2026-02-02", last_day="2026-02-02"), "game_code"),
        (RoundsFilter(game_code="#12:00:00"), "first_day"),
        (RoundsFilter(game_code="#12:00:00", first_day="2026-02-02"), "last_day"),
        (RoundsFilter("anna", game_code="#12:00:00", last_day="2026-02-02"), "first_day"),
        (RoundsFilter(game_code="#12:00:00", first_day="2026-02-01", last_day="2026-03-04"), "last_day"),
    ],
)
async def test_what_cannot_be_looked_for_is_refused(harness: ServiceHarness, wanted: RoundsFilter, field: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        await harness.history.list_rounds(OPERATOR, wanted, 0, "")
    assert caught.value.field == field


async def test_as_many_days_as_are_allowed_are_looked_at(harness: ServiceHarness) -> None:
    wanted = RoundsFilter(game_code="#12:00:00", first_day="2026-03-01", last_day="2026-03-31")
    assert CODE_DAYS_MAX == 31
    assert await harness.history.list_rounds(OPERATOR, wanted, 0, "") == ((), "")
