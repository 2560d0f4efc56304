"""A purchase whose debit stands and of which the central system knows goes only forward (docs/money.md, stage `paid`),
whatever the wallet answers to a repeat.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import InsufficientFundsError, RgsError, WalletRefusedError, WalletUnavailableError
from tests.house import ACCOUNT_MINOR, House, Player
from tests.oracles import verify_books

REFUSALS = [
    WalletRefusedError("no", refusal="TOKEN_EXPIRED"),
    WalletRefusedError("no", refusal="LIMIT_REACHED"),
    InsufficientFundsError("no", limit=1),
]


async def bought_unheard(house: House, anna: Player) -> Any:
    """The central system has entered the purchase, and its answer was lost."""
    await anna.open()
    request = anna.purchase(5_000)
    house.central_script.plan("buy_participation", "after")
    with pytest.raises(RgsError):
        await anna.send(request)
    return request


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.metadata.get("refusal", refusal.reason))
async def test_a_refusal_of_a_repeat_does_not_end_a_purchase_that_is_paid(
    tmp_path: Path, house: House, anna: Player, refusal: RgsError
) -> None:
    request = await bought_unheard(house, anna)
    house.wallet_script.plan("debit", *[refusal] * 3)
    await anna.send(request)
    assert (anna.session["bought_minor"], await house.balance()) == (5_000, ACCOUNT_MINOR - 5_000)
    await anna.leave()
    await house.settle()
    verify_books(tmp_path)
    assert await house.balance() == ACCOUNT_MINOR


async def test_nor_does_a_wallet_that_has_forgotten_the_debit_and_refuses_it(
    tmp_path: Path, house: House, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It contradicts itself: the purchase waits, also beyond the time after which others are rolled back."""

    async def forgotten(**_: Any) -> None:
        return None

    request = await bought_unheard(house, anna)
    house.wallet_script.plan("debit", *[REFUSALS[0]] * 2)
    with monkeypatch.context() as forgetful:
        forgetful.setattr(house.wallet, "get_transaction", forgotten)
        for pause_ms in (0, 600_000):
            house.clock.tick(pause_ms)
            with pytest.raises(WalletUnavailableError, match="WALLET_REFUSED"):
                await anna.send(request)
        assert house.wallet_script.count("rollback") == 0
    await anna.send(request)
    await anna.leave()
    await house.settle()
    verify_books(tmp_path)
    assert await house.balance() == ACCOUNT_MINOR
