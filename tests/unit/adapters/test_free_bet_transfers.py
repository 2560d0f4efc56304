"""Transfers of a campaign: which fields they need, which account they are entered on, and how a wallet is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rgs.adapters.embedded.wallet import CAMPAIGN_MINOR
from rgs.core.errors import IdempotencyConflictError, InvalidFieldError
from rgs.ports.wallet import Receipt, TransactionStatus, Transfer, TransferPurpose, check_credit, check_debit
from tests.support.adapters.books import give, make_wallet, move, ulid

ROUND, GRANT = ulid(700), f"spring:{ulid(701)}"
LONG = "x" * 100


def free_bet(number: int = 1, **other: Any) -> Transfer:
    """The debit of a free bet."""
    made = replace(move(number), purpose=TransferPurpose.FREE_BET, round_reference=ROUND, free_bet=GRANT)
    return replace(made, **other)


def back(number: int = 2, **other: Any) -> Transfer:
    """What goes back to the campaign."""
    return free_bet(number, purpose=TransferPurpose.FREE_BET_RETURN, **other)


@pytest.mark.parametrize(("check", "transfer"), [(check_debit, free_bet()), (check_credit, back())])
def test_a_transfer_of_a_campaign_names_its_grant_and_its_round(
    check: Callable[[Transfer], Transfer], transfer: Transfer
) -> None:
    assert check(transfer) is transfer
    for field in ("free_bet", "round_reference"):
        for wrong in ("", "a b"):
            other: dict[str, Any] = {field: wrong}
            with pytest.raises(InvalidFieldError) as refused:
                check(replace(transfer, **other))
            assert refused.value.field == field


@pytest.mark.parametrize(
    ("check", "purpose"),
    [
        (check_debit, TransferPurpose.PURCHASE),
        (check_debit, TransferPurpose.BET),
        (check_credit, TransferPurpose.PAYOUT),
        (check_credit, TransferPurpose.RETURN),
    ],
)
def test_the_player_s_own_money_belongs_to_no_grant(
    check: Callable[[Transfer], Transfer], purpose: TransferPurpose
) -> None:
    round_reference = ROUND if purpose in {TransferPurpose.BET, TransferPurpose.RETURN} else ""
    own = replace(move(1), purpose=purpose, round_reference=round_reference)
    assert check(own) is own
    with pytest.raises(InvalidFieldError, match=f"a {purpose} belongs to no free bet") as refused:
        check(replace(own, free_bet=LONG))
    assert (refused.value.field, refused.value.metadata) == ("free_bet", {"value": LONG[:80]})


async def test_a_free_bet_is_on_the_account_of_its_campaign(tmp_path: Path) -> None:
    """It is opened with the first free bet, and the player's own account stays as it is."""
    wallet, store = make_wallet(tmp_path / "wallet.sqlite")
    await wallet.open_account(operator="op", player="anna", currency="EUR", balance_minor=1000)
    receipt = await wallet.debit(free_bet())
    assert (receipt.status, receipt.balance_after_minor) == (TransactionStatus.ACCEPTED, CAMPAIGN_MINOR - 100)
    assert (await wallet.credit(back(amount_minor=40))).balance_after_minor == CAMPAIGN_MINOR - 60
    assert (
        await wallet.debit(free_bet(3, player="bert", free_bet=f"spring:{ulid(702)}"))
    ).balance_after_minor == CAMPAIGN_MINOR - 160
    assert [(row.kind, row.player, row.amount_minor) for row in store.rows()] == [
        ("opening", "anna", 1000),
        ("opening", "campaign:spring", CAMPAIGN_MINOR),
        ("debit", "campaign:spring", 100),
        ("credit", "campaign:spring", 40),
        ("debit", "campaign:spring", 100),
    ]
    assert (await wallet.get_balance(operator="op", player="anna", currency="EUR")).balance_minor == 1000
    store.verify()
    await wallet.close()


async def test_a_free_bet_is_found_by_its_id_for_the_player_who_played_it(tmp_path: Path) -> None:
    wallet, _ = make_wallet(tmp_path / "wallet.sqlite")
    await wallet.open_account(operator="op", player="anna", currency="EUR", balance_minor=1000)
    debited = await wallet.debit(free_bet())
    await wallet.credit(give(5))
    found = await wallet.get_transaction(operator="op", player="anna", transaction_id=ulid(1))
    assert (
        found == debited == Receipt(ulid(1), TransactionStatus.ACCEPTED, CAMPAIGN_MINOR - 100, debited.wallet_reference)
    )
    with pytest.raises(IdempotencyConflictError):
        await wallet.get_transaction(operator="op", player="bert", transaction_id=ulid(5))
    with pytest.raises(IdempotencyConflictError):
        await wallet.debit(free_bet(free_bet=f"summer:{ulid(701)}"))
    await wallet.close()
