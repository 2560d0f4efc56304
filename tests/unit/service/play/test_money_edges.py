"""Edges of money in play: a free bet that expires while the wallet is silent, a receipt without a balance."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from rgs.core.errors import InvalidFieldError, TransactionRolledBackError, WalletUnavailableError
from rgs.ports.wallet import Receipt, TransactionStatus
from rgs.service.play.history import RoundsFilter
from rgs.service.play.seamless import Seamless
from tests.support.service.guests import DAY_MS, STAKE, Guest, verify_campaign
from tests.support.service.harness import OPERATOR, ServiceHarness


async def test_a_free_bet_that_expires_while_the_wallet_is_silent_is_not_played(harness: ServiceHarness) -> None:
    """The campaign's debit has arrived: it is rolled back."""
    anna = Guest(harness)
    await anna.sit()
    (grant,) = await anna.grant()
    request = replace(anna.starting(STAKE), free_bet=grant.grant_id)
    harness.wallet_script.plan("debit", "after")
    with pytest.raises(WalletUnavailableError):
        await anna.send(request)
    harness.clock.tick(DAY_MS)
    with pytest.raises(TransactionRolledBackError, match="given up \\(FREE_BET_REFUSED\\) and its debit rolled back"):
        await anna.send(request)
    await harness.settle()
    session = (await anna.view()).session
    assert (session.round_no, session.pending_operation) == (0, "")
    verify_campaign(harness.folder, rounds=0)


def test_a_receipt_without_a_balance_says_nothing_of_one() -> None:
    seamless: Any = object.__new__(Seamless)
    seamless.clock = SimpleNamespace(now_ms=lambda: 7)
    reported: list[tuple[int, ...]] = []

    def session(*, is_seamless: bool) -> Any:
        def note(*given: int) -> str:
            reported.append(given)
            return "reported"

        return SimpleNamespace(is_seamless=is_seamless, last_ms=9, reported=note)

    spoken, silent = [Receipt("t", TransactionStatus.ACCEPTED, balance, "w") for balance in (5, None)]
    bets, participation = session(is_seamless=True), session(is_seamless=False)
    assert seamless._reported(bets, spoken) == "reported"
    assert reported == [(5, 9)]
    assert seamless._reported(bets, silent) is bets
    assert seamless._reported(participation, spoken) is participation
    assert len(reported) == 1


async def test_a_reference_that_is_none_is_named(harness: ServiceHarness) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        await harness.history.list_rounds(OPERATOR, RoundsFilter(operator_reference="a b"), 0, "")
    assert refused.value.field == "operator_reference"
