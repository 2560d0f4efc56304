"""Pages of a lookup end: each begins behind the one before it, in every list, and there are only so many of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from rgs.service.callers import Caller, Role
from rgs.service.support.lookup import Wanted
from tests.support.service.harness import OPERATOR, ServiceHarness
from tests.support.service.player import Player
from tests.support.store.shelf import change_by_hand

MINE = Caller("helpdesk-1", Role.SUPPORT, "", OPERATOR.party)
Read = Callable[[int, str], Awaitable[tuple[Any, str]]]


async def pages(read: Read, size: int, most: int) -> list[list[Any]]:
    """All pages, of which there may be so many."""
    found: list[list[Any]] = []
    token = ""
    while not found or token:
        assert len(found) < most, "the pages do not end"
        page, token = await read(size, token)
        found.append(list(page))
    return found


async def test_pages_of_two_lists_of_sessions_end(harness: ServiceHarness) -> None:
    players = [Player(harness, name=f"player-{number}") for number in range(3)]
    for player in players:
        await player.sit()
    named = "regulator_session_id = 'M000000000000001', regulator_participation_id = 'M000000000000001'"
    await change_by_hand(harness.folder, f"UPDATE sessions SET {named}")  # noqa: S608

    async def find(size: int, token: str) -> tuple[Any, str]:
        return await harness.services.support.find(MINE, Wanted("M000000000000001"), size, token)

    (whole,) = await pages(find, 50, 1)
    assert len(whole) == 6
    assert [match.session_id for match in whole[:3]] == [match.session_id for match in whole[3:]]
    for size in (1, 2, 4, 6):
        found = await pages(find, size, 6 // size + 1)
        assert [match for page in found for match in page] == whole
        assert [len(page) for page in found[:-1]] == [size] * (len(found) - 1)


async def test_pages_of_transfers_end_with_the_last_link(harness: ServiceHarness) -> None:
    anna = Player(harness)
    await anna.sit()
    await anna.buy(500)
    await anna.leave()

    async def transfers(size: int, token: str) -> tuple[Any, str]:
        found, following = await harness.services.support.session(MINE, anna.session_id, size, token)
        return found.transfers, following

    (whole,) = await pages(transfers, 50, 1)
    assert [one.kind for one in whole] == ["purchase", "purchase", "payout"]
    for size in (1, 2, 5):
        assert [one for page in await pages(transfers, size, 5) for one in page] == whole


async def test_pages_of_a_player_s_sessions_and_rounds_end(harness: ServiceHarness) -> None:
    for _ in range(2):
        anna = Player(harness)
        await anna.sit()
        for _ in range(2):
            await anna.play()

    async def sessions(size: int, token: str) -> tuple[Any, str]:
        return await harness.services.support.sessions(
            MINE, "", "anna", open_only=False, page_size=size, page_token=token
        )

    async def rounds(size: int, token: str) -> tuple[Any, str]:
        return await harness.services.support.rounds(
            MINE, session_id="", operator="", player="anna", page_size=size, page_token=token
        )

    for read, count in ((sessions, 2), (rounds, 4)):
        (whole,) = await pages(read, 50, 1)
        assert len(whole) == count
        for size in (1, 2, 4):
            assert [one for page in await pages(read, size, count) for one in page] == whole
