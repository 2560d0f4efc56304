"""A page of totals that is exactly full and the last one names no next page."""

from __future__ import annotations

from typing import Any

from rgs.service.callers import Caller, Role
from tests.support.service.harness import ServiceHarness
from tests.support.service.player import Player

ANY = {"first_day": "", "last_day": "", "game": "", "currency": ""}


async def test_the_last_day_is_on_a_full_page(harness: ServiceHarness) -> None:
    for game in ("uth-solo", "casino-holdem"):
        player = Player(harness, game=game, name=f"player-of-{game}", caller=Caller("op-1", Role.OPERATOR, "demo"))
        await player.sit()
        await player.play()
        harness.clock.tick(2_000)
    read: Any = harness.services.reports.list_day_totals
    whole, _ = await read("op-1", **ANY, page_size=0, page_token="")
    assert len(whole) == 2
    full, end = await read("op-1", **ANY, page_size=len(whole), page_token="")
    assert (full, end) == (whole, "")
    most, token = await read("op-1", **ANY, page_size=len(whole) - 1, page_token="")
    rest, end = await read("op-1", **ANY, page_size=len(whole) - 1, page_token=token)
    assert (most + rest, end) == (whole, "")
