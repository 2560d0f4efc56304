"""Bets are offered by the balance that the wallet told last, and decided by the wallet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import InsufficientFundsError, WalletRefusedError, WalletUnavailableError
from rgs.ports.wallet import Transfer, TransferPurpose
from rgs.store.address import PostgresAddress
from tests.support.clocks import ManualClock
from tests.support.service.harness import ServiceHarness
from tests.support.service.player import Player
from tests.support.service.seamless import BRITISH, PACE_MS, Better, opened, verify_seamless
from tests.unit.service.money.test_refused import database, living

__all__ = ["database"]

DEAREST = 6
"""Ante, blind and four antes: what a round can cost in antes."""


async def pay_in(harness: ServiceHarness, player: Player, amount_minor: int, number: int = 1) -> None:
    """Something else than the game gives the player money."""
    transaction_id = f"01K4ZQ6A0B1C2D3E4F5G6H7J{number:02}"
    await harness.wallet.credit(
        Transfer(BRITISH.party, player.name, "GBP", amount_minor, transaction_id, "elsewhere", TransferPurpose.PAYOUT)
    )


def offered(player: Player) -> dict[str, bool]:
    return {action: available for action, _, available in player.round["legal_actions"]}


async def test_no_more_is_offered_than_the_wallet_told(tmp_path: Path) -> None:
    async with opened(tmp_path, account_minor=1_000) as harness:
        anna = Better(harness)
        await anna.open()
        assert anna.session["largest_ante_minor"] == 1_000 // DEAREST - 1_000 // DEAREST % 2 == 166
        view = await anna.view()
        assert (view.session.wallet_balance_minor, view.session.wallet_balance_ms) == (1_000, harness.clock.now_ms())
        await anna.start(300)
        view = await anna.view()
        assert (view.session.wallet_balance_minor, view.session.wallet_balance_ms) == (400, harness.clock.now_ms())
        assert offered(anna) == {"check": True, "play_3x": False, "play_4x": False}
        assert view.open_round is not None
        legal = {action.action.value: action for action in view.open_round.legal_actions}
        assert (legal["play_4x"].reason, legal["check"].reason) == ("INSUFFICIENT_BALANCE", None)
        with pytest.raises(InsufficientFundsError):  # asked for all the same: the wallet decides
            await anna.act("play_4x")
        await pay_in(harness, anna, 2_000)
        await anna.act("play_4x")
        assert anna.round["status"] == "settled"
        await anna.close()
        await harness.settle()


async def test_a_stale_balance_refuses_no_round(tmp_path: Path) -> None:
    async with opened(tmp_path, account_minor=100) as harness:
        anna = Better(harness)
        await anna.open()
        assert anna.session["largest_ante_minor"] == 16
        await pay_in(harness, anna, 5_000)
        await anna.start(400)
        view = await anna.view()
        assert view.session.wallet_balance_minor == 4_300
        await anna.finish_round(lambda legal: "check" if "check" in legal else "fold")


async def test_what_a_round_has_just_returned_is_offered(tmp_path: Path) -> None:
    """The answer to the last decision comes before the credit: it counts what it returns."""
    async with opened(tmp_path, account_minor=6_000) as harness:
        anna = Better(harness)
        await anna.open()
        returned = 0
        for _ in range(60):
            await anna.start(100)
            before = (await anna.view()).session.wallet_balance_minor
            await anna.act("play_4x")
            returned = anna.round["returned_minor"]
            after = before - 400 + returned
            view = await anna.view()
            assert view.session.wallet_balance_minor == after == await anna.balance()
            assert anna.session["largest_ante_minor"] == view.largest_ante_minor == min(50_000, after // 6 // 2 * 2)
            if returned:
                break
            await pay_in(harness, anna, 600, number=view.session.rounds)
        assert returned
        await anna.close()


async def test_a_credit_that_is_repeated_tells_nothing_new(tmp_path: Path) -> None:
    async with opened(tmp_path, account_minor=10_000) as harness:
        anna = Better(harness)
        await anna.open()
        await anna.start(100)
        harness.wallet_script.plan("credit", "after")
        await anna.finish_round(lambda legal: "check" if "check" in legal else "fold")
        result = (await anna.view()).session
        assert result.wallet_balance_minor == 9_800
        await pay_in(harness, anna, 5)
        harness.clock.tick(60_000)
        await harness.settle()
        now = (await anna.view()).session
        assert (now.wallet_balance_minor, now.wallet_balance_ms) == (9_800, result.wallet_balance_ms)
        assert await harness.store.round_credit(anna.session_id) is None


@pytest.mark.parametrize(
    "error", [WalletRefusedError("no", refusal="ACCOUNT_UNKNOWN"), WalletUnavailableError("silent")]
)
async def test_a_wallet_that_tells_none_leaves_the_offer_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def reports_none(**_: Any) -> Any:
        raise error

    async with opened(tmp_path) as harness:
        monkeypatch.setattr(harness.wallet, "get_balance", reports_none)
        anna = Better(harness)
        await anna.open()
        view = await anna.view()
        assert view.session.wallet_balance_ms == 0
        assert view.largest_ante_minor == view.ruleset.limits["ante"].max_minor


async def test_a_participation_has_none(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    await anna.play()
    view, _ = await harness.sessions.get(anna.caller, anna.session_id)
    assert view.session.wallet_balance_ms == 0


async def test_it_is_kept_with_the_session(tmp_path: Path, database: PostgresAddress | None) -> None:
    clock = ManualClock()
    async with living(tmp_path, database, clock) as harness:
        anna = Better(harness)
        await anna.open()
        await anna.play(100)
        await anna.start(100)
        result = (await anna.view()).session
        assert (result.wallet_balance_minor, result.wallet_balance_ms) == (await anna.balance(), clock.now_ms())
        known = await harness.store.session(anna.session_id, fresh=False)
        assert known == result, "what this process has in memory is what the store has"
    async with living(tmp_path, database, clock) as harness:
        anna.harness = harness
        assert (await anna.view()).session == result
        await anna.finish_round(lambda legal: "check" if "check" in legal else "fold")
        clock.tick(PACE_MS)
        await anna.close()
        await harness.settle()
    if database is None:
        verify_seamless(tmp_path)
