"""Launches in the store: used once, found by token and request, forgotten and erased; on both databases."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from rgs.core.rounds import RoundStatus
from rgs.core.sessions import Mode, Session
from rgs.store.changes import Change, Draft, PlayerErased, SessionRaceError
from rgs.store.interface import TotalsFilter, TotalsKey
from rgs.store.launches import Launch, LaunchesForgotten, LaunchRedeemed, LaunchTokenReplaced
from tests.support.store.shelf import NAME, dealt, open_shelf, opened, session, ulid

pytestmark = pytest.mark.usefixtures("either_store")


def launch(number: int, **changes: object) -> Launch:
    made = Launch(
        launch_id=ulid(number),
        operator="op-1",
        player=f"p-{number}",
        request_id=f"request-{number}",
        digest=b"digest",
        token_hash=number.to_bytes(32, "big"),
        content='{"game":"uth-solo"}',
        sealed=b"sealed",
        created_ms=1_000 * number,
        expire_ms=1_000 * number + 60_000,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


async def test_a_launch_opens_one_session(tmp_path: Path) -> None:
    one = launch(1)
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(records=(one,)))
        assert await store.launch_of_token(one.token_hash) == one
        assert await store.launch_of_request("op-1", "request-1") == one
        assert await store.launch_of_request("op-2", "request-1") is None
        tries = [
            replace(opened(session(number)), records=(LaunchRedeemed(ulid(number), one.launch_id, one.token_hash),))
            for number in (5, 6, 7)
        ]
        done = await asyncio.gather(*(store.commit(change) for change in tries), return_exceptions=True)
        refused = [outcome for outcome in done if isinstance(outcome, SessionRaceError)]
        assert len(refused) == 2
        used = await store.launch_of_token(one.token_hash)
        assert used is not None
        assert used.session_id in {ulid(5), ulid(6), ulid(7)}
        assert used.sealed == b""
        there = [number for number in (5, 6, 7) if await store.session(ulid(number)) is not None]
        assert [ulid(number) for number in there] == [used.session_id]


async def test_a_replaced_token_opens_nothing(tmp_path: Path) -> None:
    one, fresh = launch(1), b"\xff" * 32
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(records=(one,)))
        await store.commit(Change(records=(LaunchTokenReplaced(fresh, one.launch_id),)))
        assert await store.launch_of_token(one.token_hash) is None
        assert await store.launch_of_token(fresh) == replace(one, token_hash=fresh)
        with pytest.raises(SessionRaceError):
            await store.commit(Change(records=(LaunchRedeemed(ulid(5), one.launch_id, one.token_hash),)))
        await store.commit(Change(records=(LaunchRedeemed(ulid(5), one.launch_id, fresh),)))
        with pytest.raises(SessionRaceError):
            await store.commit(Change(records=(LaunchTokenReplaced(one.token_hash, one.launch_id),)))


async def test_a_request_makes_one_launch(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(records=(launch(1),)))
        with pytest.raises(SessionRaceError):
            await store.commit(Change(records=(launch(2, request_id="request-1"),)))
        await store.commit(Change(records=(launch(2, request_id="request-1", operator="op-2"),)))


async def test_launches_are_forgotten_by_their_time_and_with_their_player(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(records=tuple(launch(number) for number in range(1, 6))))
        assert await store.forget_launches(1_000) == 0
        assert await store.forget_launches(3_000) == 2
        await store.commit(Change(records=(PlayerErased("op-1", "p-4"),)))
        left = [await store.launch_of_request("op-1", f"request-{number}") for number in range(1, 6)]
        assert [one and one.player for one in left] == [None, None, "p-3", None, "p-5"]
        await store.commit(Change(records=(LaunchesForgotten(4_999),)))
        assert await store.launch_of_request("op-1", "request-3") is None
        assert await store.launch_of_request("op-1", "request-5") == launch(5)


async def test_play_money_is_in_no_total(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        store.large_win_minor = 1

        async def moved(session_id: str, version: int) -> Session:
            found = await store.session(session_id)
            assert found is not None
            after: Session = replace(found, version=version)
            return after

        for number, mode in ((1, Mode.REAL), (2, Mode.DEMO)):
            made = session(number, mode=mode)
            await store.commit(opened(made))
            round_ = replace(dealt(made, number), version=1)

            def draft(kind: str, round_id: str = round_.round_id) -> tuple[Draft, ...]:
                return (Draft(kind, {"time": "then"}, round_id=round_id, seat_no=1),)

            await store.commit(
                Change(
                    session=await moved(ulid(number), 2), round=round_, drafts=draft("round_opening"), draw_no=number
                )
            )
            ended = replace(
                round_, version=2, status=RoundStatus.SETTLED, end_ms=9_000, staked_minor=200, returned_minor=600
            )
            await store.commit(Change(session=await moved(ulid(number), 3), round=ended, drafts=draft("round_final")))
        totals = await store.totals(TotalsFilter("1970-01-01", "1970-01-02"), after=TotalsKey(), limit=9)
        assert [(row.rounds, row.staked_minor, row.returned_minor) for row in totals] == [(1, 200, 600)]
        counted = [row.round_id for row in await store.rounds_to_count(NAME, 0, 99) if row.opening]
        assert counted == [ulid(10_001)]  # the monitoring of returns reads no round with play money
        assert [win.session_id for win in await store.large_wins(9)] == [ulid(1)]
