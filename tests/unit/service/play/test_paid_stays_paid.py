"""A purchase whose debit stands and of which the regulator knows goes only forward (docs/money.md, stage `paid`),
whatever the wallet answers to a repeat.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import InsufficientFundsError, RgsError, WalletRefusedError, WalletUnavailableError
from tests.support.service.harness import ACCOUNT_MINOR, ServiceHarness
from tests.support.service.oracles import verify_books
from tests.support.service.player import Player

REFUSALS = [
    WalletRefusedError("no", refusal="TOKEN_EXPIRED"),
    WalletRefusedError("no", refusal="LIMIT_REACHED"),
    InsufficientFundsError("no", limit=1),
]


async def bought_unheard(harness: ServiceHarness, anna: Player) -> Any:
    """The regulator has entered the purchase, and its answer was lost."""
    await anna.open()
    request = anna.purchase(5_000)
    harness.regulator_script.plan("buy_participation", "after")
    with pytest.raises(RgsError):
        await anna.send(request)
    return request


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.metadata.get("refusal", refusal.reason))
async def test_a_refusal_of_a_repeat_does_not_end_a_purchase_that_is_paid(
    tmp_path: Path, harness: ServiceHarness, anna: Player, refusal: RgsError
) -> None:
    request = await bought_unheard(harness, anna)
    harness.wallet_script.plan("debit", *[refusal] * 3)
    await anna.send(request)
    assert (anna.session["bought_minor"], await harness.balance()) == (5_000, ACCOUNT_MINOR - 5_000)
    await anna.leave()
    await harness.settle()
    verify_books(tmp_path)
    assert await harness.balance() == ACCOUNT_MINOR


async def test_nor_does_a_wallet_that_has_forgotten_the_debit_and_refuses_it(
    tmp_path: Path, harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It contradicts itself: the purchase waits, also beyond the time after which others are rolled back."""

    async def forgotten(**_: Any) -> None:
        return None

    request = await bought_unheard(harness, anna)
    harness.wallet_script.plan("debit", *[REFUSALS[0]] * 2)
    with monkeypatch.context() as forgetful:
        forgetful.setattr(harness.wallet, "get_transaction", forgotten)
        for pause_ms in (0, 600_000):
            harness.clock.tick(pause_ms)
            with pytest.raises(WalletUnavailableError, match="WALLET_REFUSED"):
                await anna.send(request)
        assert harness.wallet_script.count("rollback") == 0
    await anna.send(request)
    await anna.leave()
    await harness.settle()
    verify_books(tmp_path)
    assert await harness.balance() == ACCOUNT_MINOR
