"""In which order a lookup tells what it finds: rounds in play page by page, and operators by their names."""

from __future__ import annotations

from rgs.core.times import format_date
from rgs.service.callers import Caller, Role
from rgs.service.support.lookup import MatchKind, Wanted
from tests.support.service.harness import OPERATOR, ServiceHarness
from tests.support.service.player import Player
from tests.support.store.shelf import change_by_hand
from tests.unit.service.support.test_lookup import ALL, MINE, known_operators
from tests.unit.service.support.test_lookup_pages import pages


async def test_pages_of_rounds_with_one_code_end(harness: ServiceHarness) -> None:
    players = [Player(harness, name=f"player-{number}") for number in range(4)]
    for player in players:
        await player.sit()
        await player.start()
    for player in players[:2]:
        await player.finish_round()
    await change_by_hand(harness.folder, "UPDATE rounds SET game_code = '#12:00:00'")
    wanted = Wanted("#12:00:00", date=format_date(harness.clock.now_ms()))

    async def find(size: int, token: str) -> object:
        return await harness.services.support.find(MINE, wanted, size, token)

    (whole,) = await pages(find, 50, 1)  # type: ignore[arg-type]
    names = [match.player for match in whole]
    assert names[:2] == ["player-3", "player-2"], "those in play come first"
    assert sorted(names) == [f"player-{number}" for number in range(4)]
    for size in (1, 2, 3):
        found = await pages(find, size, 4)  # type: ignore[arg-type]
        assert [match for page in found for match in page] == whole


async def test_a_player_of_several_operators_is_told_by_their_names(harness: ServiceHarness) -> None:
    await known_operators(harness, "op-2", OPERATOR.party, "op-3")
    for caller in (Caller("op-2", Role.OPERATOR, "demo"), OPERATOR):
        await Player(harness, caller=caller).sit()
    found, _ = await harness.services.support.find(ALL, Wanted("anna"), 0, "")
    assert [(match.kind, match.operator) for match in found] == [
        (MatchKind.PLAYER, "op-1"),
        (MatchKind.PLAYER, "op-2"),
    ]
    assert await harness.store.operators() == ["op-1", "op-2", "op-3"]
