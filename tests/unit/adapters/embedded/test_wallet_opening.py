"""The first balance of an account in the embedded wallet."""

from __future__ import annotations

from pathlib import Path

from rgs.ports.wallet import Balance
from tests.support.adapters.books import make_wallet

ACCOUNT = {"operator": "op", "player": "anna", "currency": "EUR"}


async def test_an_account_may_begin_with_nothing(tmp_path: Path) -> None:
    wallet, _ = make_wallet(tmp_path / "wallet.sqlite")
    for _ in range(2):
        opened = await wallet.open_account(**ACCOUNT, balance_minor=0)
        assert opened == Balance("op", "anna", "EUR", 0) == await wallet.get_balance(**ACCOUNT)
    await wallet.close()


async def test_the_book_names_the_first_balance_what_it_is(tmp_path: Path) -> None:
    wallet, store = make_wallet(tmp_path / "wallet.sqlite")
    await wallet.open_account(**ACCOUNT, balance_minor=7)
    (row,) = store.rows()
    assert (row.kind, row.reference, row.amount_minor, row.transaction_id) == ("opening", "opening", 7, None)
    await wallet.close()
