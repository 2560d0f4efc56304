"""A store with something played in it, for what multiplies it."""

from __future__ import annotations

from tests.support.service.harness import ServiceHarness
from tests.support.service.player import Player


async def play_two_rounds(harness: ServiceHarness) -> None:
    """Two settled rounds; one session is closed, one stays open."""
    for name in ("anna", "bert"):
        player = Player(harness, name=name)
        await player.send(player.opening())
        await player.send(player.purchase(100_000))
        await player.send(player.starting())
        await player.send(player.decision("play_4x"))
        if name == "anna":
            await player.send(player.ending())
            await player.send(player.closing())
