"""The first balance of an account in the embedded wallet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import IdempotencyConflictError, RgsError
from rgs.ports.wallet import Balance
from tests.support.adapters.books import make_wallet

ACCOUNT = {"operator": "op", "player": "anna", "currency": "EUR"}


async def test_an_account_may_begin_with_nothing(tmp_path: Path) -> None:
    wallet, _ = make_wallet(tmp_path / "wallet.sqlite")
    for _ in range(2):
        opened = await wallet.open_account(**ACCOUNT, balance_minor=0)
        assert opened == Balance("op", "anna", "EUR", 0) == await wallet.get_balance(**ACCOUNT)
    await wallet.close()


@pytest.mark.parametrize(
    ("field", "value", "facts"),
    [
        ("operator", "A b", {"value": "A b"}),
        ("player", "a b", {"value": "a b"}),
        ("currency", "eur", {"value": "eur"}),
        ("balance_minor", -1, {"limit": "0", "value": "-1"}),
    ],
)
async def test_an_account_that_cannot_be_opened_names_the_field(
    tmp_path: Path, field: str, value: object, facts: dict[str, str]
) -> None:
    wallet, store = make_wallet(tmp_path / "wallet.sqlite")
    account: dict[str, Any] = {**ACCOUNT, "balance_minor": 7, field: value}
    with pytest.raises(RgsError) as refused:
        await wallet.open_account(**account)
    assert (refused.value.field, refused.value.metadata | facts) == (field, refused.value.metadata)
    await wallet.open_account(**ACCOUNT, balance_minor=7)
    with pytest.raises(IdempotencyConflictError, match="the account was opened with 7, not 8") as other:
        await wallet.open_account(**ACCOUNT, balance_minor=8)
    assert (other.value.field, other.value.metadata) == ("balance_minor", {"limit": "7", "value": "8"})
    assert len(list(store.rows())) == 1
    await wallet.close()


async def test_the_book_names_the_first_balance_what_it_is(tmp_path: Path) -> None:
    wallet, store = make_wallet(tmp_path / "wallet.sqlite")
    await wallet.open_account(**ACCOUNT, balance_minor=7)
    (row,) = store.rows()
    assert (row.kind, row.reference, row.amount_minor, row.transaction_id) == ("opening", "opening", 7, None)
    await wallet.close()
