"""After an admin has accepted a clock that was set: what is told of idleness goes by the same reckoning as what is
decided by it, the time limit of a session goes by the signed times, and no word is taken against the database.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from rgs.core.clock import APART_MS
from rgs.core.errors import ClocksDifferError, DurationLimitError
from rgs.core.limits import SessionLimits
from rgs.service.timekeeping import SET_KEY
from tests.support.service.guards import ADMIN, DAY_MS, UnsealedDeck, cleared, clearing, guard, poll
from tests.support.service.harness import ServiceHarness
from tests.support.service.player import Player

FINISH_MS = 600_000


async def set_forward(harness: ServiceHarness, by_ms: int) -> None:
    """The machine's clock is set, its database's with it, and an admin accepts it."""
    harness.clock.jump(by_ms)
    harness.clock.database_ahead_ms += by_ms
    await poll(harness)
    assert await cleared(harness) == "OPEN"


@pytest.mark.parametrize("ahead_ms", [3_600_000, -3_600_000])
async def test_a_word_against_the_database_is_refused_and_changes_nothing(opened: UnsealedDeck, ahead_ms: int) -> None:
    async with opened() as harness:
        is_file = await harness.store.clock_ms() is None
        await poll(harness)
        harness.clock.jump(-ahead_ms)
        await poll(harness)
        if is_file:  # nobody else knows the time
            assert await cleared(harness) == "OPEN"
            return
        before = await harness.store.events("", before=0, limit=20)
        order = clearing()
        with pytest.raises(ClocksDifferError, match="ahead of" if ahead_ms > 0 else "behind") as caught:
            await harness.services.admin.clear_guard(order, "clock", "CLOCK_SET_RIGHT")
        assert caught.value.metadata == {"guard": "clock", "value": str(abs(ahead_ms)), "limit": str(APART_MS)}
        assert (guard(harness).closed, guard(harness).latched) == (True, True)
        assert [latch.guard for latch in await harness.store.latches("node-1")] == ["clock"]
        assert await harness.store.meta(SET_KEY) == ""
        assert await harness.store.events("", before=0, limit=20) == before
        # It is no stored answer either: the same order takes effect when the clocks agree.
        harness.clock.database_ahead_ms = -ahead_ms
        await harness.services.admin.clear_guard(order, "clock", "CLOCK_SET_RIGHT")
        assert not guard(harness).closed


async def test_what_is_told_of_an_open_round_counts_no_clock_that_was_set(opened: UnsealedDeck) -> None:
    async with opened() as harness:
        anna = Player(harness)
        await anna.sit()
        await anna.start()
        harness.clock.tick(60_000)
        await set_forward(harness, 10 * DAY_MS)
        for passed_ms in (0, 5_000):
            harness.clock.tick(passed_ms)
            ((found,), _) = await harness.sessions.list_open_rounds(ADMIN, 0, "")
            assert found.idle_ms == passed_ms
            assert found.finish_ms - harness.clock.now_ms() == FINISH_MS - found.idle_ms


async def test_a_view_offers_what_may_be_started_after_a_clock_was_set(opened: UnsealedDeck) -> None:
    """The inactivity of a session begins anew with an admin's word; its view says so."""
    async with opened() as harness:
        anna = Player(harness)
        await anna.sit()
        inactivity_ms = harness.books.jurisdictions["demo"].inactivity_ms
        offered = (await anna.view()).largest_ante_minor
        await set_forward(harness, 10 * DAY_MS)
        set_ms = harness.clock.now_ms()
        view = await anna.view()
        assert (view.largest_ante_minor, view.inactive_ms) == (offered, set_ms + inactivity_ms)
        harness.clock.tick(inactivity_ms + 1)
        assert (await anna.view()).largest_ante_minor == 0
        harness.clock.tick(-1)
        await anna.start()


async def test_the_time_limit_of_a_session_goes_by_the_signed_times(opened: UnsealedDeck) -> None:
    """An auditor compares the start of a round with the opening of its session and knows no admin's word: a session
    whose clock was set forward meanwhile ends early, and its players can open another.
    """
    async with opened() as harness:
        anna = Player(harness)
        await anna.send(replace(anna.opening(), limits=SessionLimits(duration_ms=3_600_000)))
        await anna.buy(10_000)
        harness.clock.jump(2 * 3_600_000)
        assert (await anna.view()).time_left_ms == 3_600_000, "no time that is not trusted counts"
        harness.clock.database_ahead_ms = 2 * 3_600_000
        await poll(harness)
        assert await cleared(harness) == "OPEN"
        assert (await anna.view()).time_left_ms == 0
        with pytest.raises(DurationLimitError):
            await anna.start()
        await anna.leave()
        again = Player(harness)
        await again.send(replace(again.opening(), limits=SessionLimits(duration_ms=3_600_000)))
        await again.buy(10_000)
        await again.start()
        await again.finish_round()
        await again.leave()
