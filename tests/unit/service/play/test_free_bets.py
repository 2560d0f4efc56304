"""Free bets: a campaign pays ante and blind, the player gets what they win, and every account adds up to the cent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import (
    FreeBetRefusedError,
    FundingModeError,
    IdempotencyConflictError,
    InsufficientBalanceError,
    InvalidFieldError,
    JurisdictionError,
    NotFoundError,
    RgsError,
    StakeAboveMaximumError,
    TableOnlyError,
    TransactionRolledBackError,
    WalletRefusedError,
    WalletUnavailableError,
)
from rgs.core.free_bets import GrantStatus
from rgs.core.sessions import Funding
from rgs.service.callers import Caller, Role
from tests.support.service.admins import void
from tests.support.service.guests import DAY_MS, STAKE, Guest, links_of, verify_campaign
from tests.support.service.harness import OPERATOR, open_harness

GRANTED = 2 * STAKE


@asynccontextmanager
async def a_guest(folder: Path, *, game: str = "uth-solo", **options: Any) -> AsyncIterator[Guest]:
    async with open_harness(folder, **options) as harness:
        anna = Guest(harness, game=game)
        await anna.open()
        await anna.buy(10_000)
        yield anna


async def test_the_campaign_pays_and_the_player_gets_what_is_won(tmp_path: Path) -> None:
    async with a_guest(tmp_path) as anna:
        grants = await anna.grant(12)
        won = own = 0
        for grant in grants:
            before = anna.balance_minor
            await anna.play_free(grant.grant_id)
            opening, final = links_of(tmp_path, "round_opening")[-1], links_of(tmp_path, "round_final")[-1]
            assert int(opening["balance_before_minor"]) == before + GRANTED
            back = {bet["bet"]: bet for bet in final["settlement"]}
            reclaimed = sum(int(back[bet]["stake_minor"]) for bet in ("ante", "blind") if back[bet]["result"] != "lose")
            assert int(links_of(tmp_path, "free_bet")[-1]["amount_minor"]) == reclaimed
            staked = int(final["staked_minor"]) - GRANTED
            returned = int(final["returned_minor"]) - reclaimed
            assert anna.balance_minor == before - staked + returned
            own, won = own + staked, won + returned
        assert (anna.session["staked_minor"], anna.session["returned_minor"]) == (own, won)
        await anna.send(anna.ending())
        await anna.send(anna.closing())
        assert await anna.open_grants() == []
    (end,) = links_of(tmp_path, "participation_end")
    bought, staked, returned, paid_out = (
        int(end[f"{name}_minor"]) for name in ("bought", "staked", "returned", "paid_out")
    )
    assert (staked, returned, paid_out) == (own, won, bought - own + won)
    verify_campaign(tmp_path, rounds=12)


async def test_a_granted_stake_is_never_paid_out(tmp_path: Path) -> None:
    """Whoever folds always loses nothing and gets nothing: the stakes were never his."""
    async with a_guest(tmp_path, game="casino-holdem") as anna:
        for grant in await anna.grant(6):
            await anna.start_free(grant.grant_id)
            await anna.finish_round(lambda legal: "fold")
        assert (anna.balance_minor, anna.session["staked_minor"]) == (10_000, 0)
    assert [int(one["amount_minor"]) for one in links_of(tmp_path, "free_bet")] == [STAKE, 0] * 6
    verify_campaign(tmp_path, rounds=6)


async def test_own_rounds_stand_between_free_ones(tmp_path: Path) -> None:
    async with a_guest(tmp_path) as anna:
        for grant in await anna.grant(3):
            await anna.play(STAKE, trips=50)
            await anna.start_free(grant.grant_id, trips=50)
            await anna.finish_round()
        await anna.send(anna.ending())
    verify_campaign(tmp_path, rounds=3)


async def test_side_bets_and_decisions_are_the_players_own_money(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        anna = Guest(harness)
        await anna.open()
        await anna.buy(450)
        first, second, third = await anna.grant(3)
        with pytest.raises(InsufficientBalanceError):
            await anna.start_free(first.grant_id, trips=460)
        await anna.start_free(second.grant_id, trips=100)
        offered = {legal[0]: legal[2] for legal in anna.round["legal_actions"]}
        assert offered == {"play_4x": False, "play_3x": True, "check": True}
        await anna.act("play_3x")
        assert anna.session["staked_minor"] == 400
        assert await anna.open_grants() == sorted([first.grant_id, third.grant_id])
    verify_campaign(tmp_path, rounds=1)


async def test_a_free_bet_pays_once(tmp_path: Path) -> None:
    async with a_guest(tmp_path) as anna:
        (grant,) = await anna.grant()
        await anna.play_free(grant.grant_id)
        with pytest.raises(FreeBetRefusedError, match="it is used"):
            await anna.start_free(grant.grant_id)


async def test_two_sessions_of_a_player_cannot_play_one_free_bet(tmp_path: Path) -> None:
    async with a_guest(tmp_path) as anna:
        (grant,) = await anna.grant()
        bert = Guest(anna.harness)
        await bert.open()
        await bert.buy(1_000)
        ends = await asyncio.gather(
            anna.start_free(grant.grant_id), bert.start_free(grant.grant_id), return_exceptions=True
        )
        assert [type(end) for end in ends if end is not None] == [FreeBetRefusedError]
    assert len(links_of(tmp_path, "free_bet")) == 1


@pytest.mark.parametrize(
    ("changed", "ante", "why"),
    [
        ({}, 2 * STAKE, "pays an ante of 100, not of 200"),
        ({"game": "casino-holdem"}, STAKE, "is for casino-holdem in EUR"),
        ({"expires_ms": 0}, STAKE, "has expired"),
    ],
)
async def test_a_free_bet_for_something_else_is_refused(
    tmp_path: Path, changed: dict[str, Any], ante: int, why: str
) -> None:
    async with a_guest(tmp_path) as anna:
        if "expires_ms" in changed:
            changed = {"expires_ms": anna.harness.clock.now_ms() + 1}
        (grant,) = await anna.grant(**changed)
        with pytest.raises(FreeBetRefusedError, match=why):
            await anna.start_free(grant.grant_id, ante)
        assert anna.balance_minor == 10_000
    assert links_of(tmp_path, "free_bet") == []


async def test_another_players_free_bet_does_not_exist(tmp_path: Path) -> None:
    async with a_guest(tmp_path) as anna:
        (grant,) = await Guest(anna.harness, name="bert").grant()
        with pytest.raises(NotFoundError):
            await anna.start_free(grant.grant_id)
        stranger = Caller("op-2", Role.OPERATOR, "demo")
        with pytest.raises(NotFoundError):
            await anna.harness.services.free_bets.cancel(stranger, anna.harness.request_id(), grant.grant_id)


@pytest.mark.parametrize("outcome", [WalletRefusedError("no", refusal="FREE_BET_UNKNOWN"), None])
async def test_a_free_bet_that_the_wallet_does_not_pay_stays_open(tmp_path: Path, outcome: RgsError | None) -> None:
    async with a_guest(tmp_path) as anna:
        (grant,) = await anna.grant()
        if outcome is None:
            anna.harness.wallet_script.plan("debit", "before")
            with pytest.raises(WalletUnavailableError):
                await anna.start_free(grant.grant_id)
            assert await anna.open_grants() == []
            anna.harness.clock.tick(600_000)
            await anna.harness.sessions.recover()
        else:
            anna.harness.wallet_script.plan("debit", outcome)
            with pytest.raises(WalletRefusedError):
                await anna.start_free(grant.grant_id)
        assert await anna.open_grants() == [grant.grant_id]
        anna.session["next_round_no"] = 1
        await anna.play_free(grant.grant_id)
    verify_campaign(tmp_path, rounds=1)


async def test_a_lost_answer_of_the_wallet_costs_the_campaign_once(tmp_path: Path) -> None:
    async with a_guest(tmp_path) as anna:
        (grant,) = await anna.grant()
        request = replace(anna.starting(STAKE), free_bet=grant.grant_id)
        anna.harness.wallet_script.plan("debit", "after")
        with pytest.raises(WalletUnavailableError):
            await anna.send(request)
        reply = await anna.send(request)
        assert await anna.harness.send(request, anna.caller) == reply
        anna.harness.wallet_script.plan("credit", "after", "before")
        await anna.finish_round()
        anna.harness.clock.tick(600_000)
        await anna.harness.sessions.recover()
    verify_campaign(tmp_path, rounds=1)


async def test_a_round_that_ends_by_rule_gives_back_to_the_campaign(tmp_path: Path) -> None:
    async with a_guest(tmp_path) as anna:
        (grant,) = await anna.grant()
        await anna.start_free(grant.grant_id)
        anna.harness.clock.tick(3 * DAY_MS)
        await anna.harness.services.interruptions.finish_due()
        await anna.harness.sessions.recover()
        assert (await anna.view()).session.balance_minor == 10_000
    verify_campaign(tmp_path, rounds=1)


async def test_a_void_round_gives_another_free_bet(tmp_path: Path) -> None:
    async with a_guest(tmp_path) as anna:
        (grant,) = await anna.grant()
        await anna.start_free(grant.grant_id, trips=50)
        await void(anna.harness, anna.round["round_id"])
        await anna.harness.sessions.recover()
        view = await anna.view()
        assert (view.session.balance_minor, view.session.participation.net_position_minor) == (10_000, 0)
        (renewed,) = await anna.open_grants()
        assert renewed != grant.grant_id
        anna.session["next_round_no"] = view.session.round_no + 1
        await anna.play_free(renewed)
    assert [int(one["amount_minor"]) for one in links_of(tmp_path, "free_bet")][:2] == [GRANTED, GRANTED]
    verify_campaign(tmp_path, rounds=2)


async def test_a_repeat_grants_nothing_more(tmp_path: Path) -> None:
    async with a_guest(tmp_path) as anna:
        request = anna.granting(3)
        grant = anna.harness.services.free_bets.grant
        first = await grant(OPERATOR, request)
        anna.harness.clock.tick(400 * DAY_MS)
        assert await grant(OPERATOR, request) == first
        with pytest.raises(IdempotencyConflictError):
            await grant(OPERATOR, replace(request, stake_minor=200))
        both = await asyncio.gather(*[grant(OPERATOR, again) for again in [anna.granting(2)] * 2])
        assert both[0] == both[1]


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"game": "uth-online"}, TableOnlyError),
        ({"game": "none"}, RgsError),
        ({"stake_minor": 10**8}, StakeAboveMaximumError),
        ({"campaign": "Spring 1"}, InvalidFieldError),
        ({"count": 0}, InvalidFieldError),
        ({"count": 101}, InvalidFieldError),
        ({"expires_ms": 1}, InvalidFieldError),
        ({"expires_ms": 1 << 60}, InvalidFieldError),
        ({"currency": "XXX"}, RgsError),
        ({"player": "no one"}, InvalidFieldError),
    ],
)
async def test_a_grant_that_nobody_could_play_is_refused(
    tmp_path: Path, changed: dict[str, Any], error: type[RgsError]
) -> None:
    async with a_guest(tmp_path) as anna:
        with pytest.raises(error):
            await anna.grant(**changed)
        assert await anna.open_grants() == []


async def test_where_free_bets_are_not_allowed_none_is_granted(tmp_path: Path) -> None:
    british = Caller("op-gb", Role.OPERATOR, "gb-ukgc")
    async with open_harness(tmp_path, fundings={"op-s": Funding.SEAMLESS}) as harness:
        anna = Guest(harness, caller=british)
        with pytest.raises(JurisdictionError):
            await anna.grant(currency="GBP")
        with pytest.raises(FundingModeError):
            await Guest(harness, caller=Caller("op-s", Role.OPERATOR, "demo")).grant()


async def test_a_free_bet_is_taken_back(tmp_path: Path) -> None:
    async with a_guest(tmp_path) as anna:
        first, second = await anna.grant(2)
        cancel = anna.harness.services.free_bets.cancel
        for _ in range(2):
            taken = await cancel(OPERATOR, anna.harness.request_id(), first.grant_id)
            assert taken.status is GrantStatus.CANCELLED
        with pytest.raises(FreeBetRefusedError, match="cancelled"):
            await anna.start_free(first.grant_id)
        await anna.play_free(second.grant_id)
        with pytest.raises(FreeBetRefusedError, match="was used in round"):
            await cancel(OPERATOR, anna.harness.request_id(), second.grant_id)


async def test_pages_of_free_bets_follow_each_other(tmp_path: Path) -> None:
    async with a_guest(tmp_path) as anna:
        granted = [grant.grant_id for grant in await anna.grant(5)]
        found: list[str] = []
        token = ""
        while True:
            page, token = await anna.harness.services.free_bets.list_open(OPERATOR, anna.name, 2, token)
            found += [grant.grant_id for grant in page]
            if not token:
                break
        assert found == sorted(granted)


async def test_a_start_that_was_rolled_back_says_so(tmp_path: Path) -> None:
    """The debit may have arrived: it is undone, and the free bet is open again."""
    async with a_guest(tmp_path) as anna:
        (grant,) = await anna.grant()
        request = replace(anna.starting(STAKE), free_bet=grant.grant_id)
        anna.harness.wallet_script.plan("debit", "after")
        with pytest.raises(WalletUnavailableError):
            await anna.send(request)
        anna.harness.services.availability.close_guard("store", "TEST", anna.harness.clock.now_ms())
        await anna.harness.sessions.recover()
        anna.harness.services.availability.open_guard("store")
        with pytest.raises(TransactionRolledBackError):
            await anna.send(request)
        assert await anna.open_grants() == [grant.grant_id]
    verify_campaign(tmp_path, rounds=0)
