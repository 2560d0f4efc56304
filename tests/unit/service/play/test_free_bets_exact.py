"""The limits of a grant to the unit, whose free bets are seen, and what a page of them says of the next."""

from __future__ import annotations

import pytest

from rgs.core.errors import InvalidFieldError, NotFoundError
from rgs.service.callers import Caller, Role
from tests.support.service.guests import DAY_MS, Guest
from tests.support.service.harness import OPERATOR, ServiceHarness

OTHER = Caller("op-2", Role.OPERATOR, "demo")


async def test_a_grant_lasts_for_a_year_and_a_day_at_most(harness: ServiceHarness) -> None:
    anna, now_ms = Guest(harness), harness.clock.now_ms()
    for expires_ms in (now_ms + 1, now_ms + 366 * DAY_MS):
        (grant,) = await anna.grant(expires_ms=expires_ms)
        assert (grant.granted_ms, grant.expires_ms) == (now_ms, expires_ms)
    for wrong in (now_ms, now_ms + 366 * DAY_MS + 1):
        with pytest.raises(InvalidFieldError) as refused:
            await anna.grant(expires_ms=wrong)
        assert refused.value.field == "expiry_time"


async def test_a_request_grants_a_hundred_at_most(harness: ServiceHarness) -> None:
    anna = Guest(harness)
    assert [grant.nth for grant in await anna.grant(100)] == list(range(1, 101))
    with pytest.raises(InvalidFieldError) as refused:
        await anna.grant(101)
    assert (refused.value.field, refused.value.metadata["limit"]) == ("count", "100")


async def test_the_last_page_names_no_next_one_though_it_is_full(harness: ServiceHarness) -> None:
    anna = Guest(harness)
    granted = sorted(grant.grant_id for grant in await anna.grant(4))
    list_open = harness.services.free_bets.list_open
    first, token = await list_open(OPERATOR, anna.name, 2, "")
    second, end = await list_open(OPERATOR, anna.name, 2, token)
    assert [grant.grant_id for grant in (*first, *second)] == granted
    assert (token != "", end) == (True, "")


async def test_a_free_bet_that_has_expired_is_listed_no_more(harness: ServiceHarness) -> None:
    anna = Guest(harness)
    (grant,) = await anna.grant()
    harness.clock.tick(DAY_MS - 1)
    assert await anna.open_grants() == [grant.grant_id]
    harness.clock.tick()
    assert await anna.open_grants() == []


async def test_another_operator_sees_and_takes_none(harness: ServiceHarness) -> None:
    anna = Guest(harness)
    (grant,) = await anna.grant()
    free_bets = harness.services.free_bets
    assert await free_bets.list_open(OTHER, anna.name, 0, "") == ([], "")
    with pytest.raises(NotFoundError) as refused:
        await free_bets.cancel(OTHER, harness.request_id(), grant.grant_id)
    assert (refused.value.field, refused.value.metadata["kind"]) == ("grant_id", "free_bet")
    assert await anna.open_grants() == [grant.grant_id]


async def test_a_player_plays_no_free_bet_of_another_player(harness: ServiceHarness) -> None:
    anna, bert = Guest(harness), Guest(harness, name="bert")
    (grant,) = await anna.grant()
    await bert.sit()
    for grant_id in (grant.grant_id, "01K4ZQ7M2J8T5V9X3B6C1D0EFZ"):
        with pytest.raises(NotFoundError) as refused:
            await bert.start_free(grant_id)
        assert (refused.value.field, refused.value.metadata) == ("free_bet", {"kind": "free_bet", "grant_id": grant_id})
    assert await anna.open_grants() == [grant.grant_id]
