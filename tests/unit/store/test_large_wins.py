"""A large win is left to be told of by the commit that ends its round, from the amount that the setting names on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rgs.core.rounds import RoundStatus
from rgs.store.changes import Change, Draft, LargeWin, LargeWinReported, OvertakenError
from tests.support.store.shelf import dealt, open_shelf, opened, session, started


@pytest.mark.parametrize(
    ("setting_minor", "won_minor", "reported"),
    [(0, 5_000, False), (500, 499, False), (500, 500, True), (1, 1, True), (1, 0, False), (1, -200, False)],
)
async def test_what_is_large_is_what_the_setting_says(
    tmp_path: Path, setting_minor: int, won_minor: int, reported: bool
) -> None:
    async with open_shelf(tmp_path) as store:
        store.large_win_minor = setting_minor
        made = session(1)
        await store.commit(opened(made))
        begun = started(await store.session(made.session_id), 1)
        await store.commit(begun)
        assert await store.large_wins(10) == [], "not before its round has ended"
        round_ = replace(
            dealt(made, 1),
            version=2,
            status=RoundStatus.SETTLED,
            end_ms=9_000,
            staked_minor=200,
            returned_minor=200 + won_minor,
        )
        there = await store.session(made.session_id)
        after = replace(there, version=there.version + 1, open_round_id="")
        final = Draft("round_final", {"time": "then"}, round_id=round_.round_id, seat_no=1)
        await store.commit(Change(session=after, round=round_, drafts=(final,)))
        expected = [LargeWin(round_.round_id, made.session_id, won_minor, 9_000)] if reported else []
        assert await store.large_wins(10) == expected
        assert await store.large_wins(0) == []
        if reported:
            await store.commit(Change(records=(LargeWinReported(round_.round_id),)))
        with pytest.raises(OvertakenError):
            await store.commit(Change(records=(LargeWinReported(round_.round_id),)))  # a second time, or for nothing
        assert await store.large_wins(10) == []
