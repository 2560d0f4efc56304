"""The embedded wallet pays a free bet once, and knows it by all of its values; books of version 1 are brought along."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rgs.adapters.embedded.wallet import CAMPAIGN_MINOR
from rgs.core.errors import IdempotencyConflictError, InsufficientFundsError, WalletRefusedError
from rgs.ports.wallet import TransactionStatus, Transfer, TransferPurpose
from rgs.store.changes import StoreRefusedError
from rgs.store.wallet import WalletStore
from tests.support.adapters.books import make_wallet, move, ulid

GRANT, OTHER = f"spring:{ulid(701)}", f"spring:{ulid(702)}"
ADDED = ("free_bet", "played_by")


def bet(number: int, free_bet: str = GRANT, **other: Any) -> Transfer:
    """The debit of a free bet, for a round of its own."""
    made = replace(
        move(number), purpose=TransferPurpose.FREE_BET, round_reference=ulid(800 + number), free_bet=free_bet
    )
    return replace(made, **other)


async def refusal(wallet: Any, transfer: Transfer) -> str:
    with pytest.raises(WalletRefusedError) as refused:
        await wallet.debit(transfer)
    return refused.value.metadata["refusal"]


async def test_a_free_bet_is_paid_while_no_other_debit_of_it_stands(tmp_path: Path) -> None:
    wallet, store = make_wallet(tmp_path / "wallet.sqlite")
    assert (await wallet.debit(bet(1))).status is TransactionStatus.ACCEPTED
    assert (await wallet.debit(bet(1))).status is TransactionStatus.DUPLICATE
    assert await refusal(wallet, bet(2)) == "FREE_BET_UNKNOWN"
    assert (await wallet.debit(bet(3, OTHER))).status is TransactionStatus.ACCEPTED
    assert (await wallet.debit(bet(4, operator="op-2"))).status is TransactionStatus.ACCEPTED
    await wallet.rollback(bet(1))
    assert await refusal(wallet, bet(2)) == "FREE_BET_UNKNOWN"  # for good, with the same reason
    assert (await wallet.debit(bet(5))).status is TransactionStatus.ACCEPTED
    assert await refusal(wallet, bet(6)) == "FREE_BET_UNKNOWN"
    store.verify()
    await wallet.close()


async def test_a_refusal_or_a_tombstone_uses_no_free_bet_up(tmp_path: Path) -> None:
    wallet, _ = make_wallet(tmp_path / "wallet.sqlite")
    await wallet.rollback(bet(1))
    for _ in range(2):
        with pytest.raises(InsufficientFundsError):
            await wallet.debit(bet(2, amount_minor=CAMPAIGN_MINOR + 1))
    assert (await wallet.debit(bet(3))).status is TransactionStatus.ACCEPTED
    await wallet.close()


async def test_what_goes_back_makes_no_free_bet_good_again(tmp_path: Path) -> None:
    wallet, _ = make_wallet(tmp_path / "wallet.sqlite")
    await wallet.debit(bet(1))
    await wallet.credit(replace(bet(2), purpose=TransferPurpose.FREE_BET_RETURN, round_reference=ulid(801)))
    assert await refusal(wallet, bet(3)) == "FREE_BET_UNKNOWN"
    await wallet.close()


@pytest.mark.parametrize("other", [{"free_bet": OTHER}, {"player": "bert"}], ids=["free bet", "player"])
async def test_another_free_bet_or_player_under_the_same_id_is_a_conflict(
    tmp_path: Path, other: dict[str, Any]
) -> None:
    wallet, _ = make_wallet(tmp_path / "wallet.sqlite")
    await wallet.debit(bet(1))
    for call in (wallet.debit, wallet.rollback):
        with pytest.raises(IdempotencyConflictError):
            await call(replace(bet(1), **other))
    await wallet.close()


async def test_the_debit_of_a_free_bet_is_its_players(tmp_path: Path) -> None:
    wallet, store = make_wallet(tmp_path / "wallet.sqlite")
    await wallet.debit(bet(1))
    found = await wallet.get_transaction(operator="op", player="anna", transaction_id=ulid(1))
    assert found is not None
    assert found.status is TransactionStatus.ACCEPTED
    with pytest.raises(IdempotencyConflictError):
        await wallet.get_transaction(operator="op", player="bert", transaction_id=ulid(1))
    rows = [(row.kind, row.player, row.free_bet, row.played_by) for row in store.rows()]
    assert rows == [("opening", "campaign:spring", "", ""), ("debit", "campaign:spring", GRANT, "anna")]
    await wallet.close()


async def test_a_player_whose_name_looks_like_a_campaign_gets_no_account_by_a_purchase(tmp_path: Path) -> None:
    wallet, store = make_wallet(tmp_path / "wallet.sqlite")
    assert await refusal(wallet, move(1, player="campaign:mine")) == "ACCOUNT_UNKNOWN"
    assert [row.kind for row in store.rows()] == ["refused_debit"]
    await wallet.close()


# --- a book of version 1 ----------------------------------------------------------------------------------------------


def outside(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


def made_old(path: Path) -> None:
    """The file as version 1 had it: without what version 2 has added."""
    outside(
        path,
        "DROP INDEX transactions_free_bet",
        *(f"ALTER TABLE transactions DROP COLUMN {name}" for name in ADDED),
        "PRAGMA user_version = 1",
    )


def shape(path: Path) -> tuple[list[Any], set[Any], int]:
    with closing(sqlite3.connect(path)) as db:
        columns = db.execute("SELECT name, type, \"notnull\", dflt_value FROM pragma_table_info('transactions')")
        others = db.execute("SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
        return columns.fetchall(), set(others), db.execute("PRAGMA user_version").fetchone()[0]


async def test_a_book_of_version_1_is_brought_to_version_2(tmp_path: Path) -> None:
    path = tmp_path / "wallet.sqlite"
    wallet, _ = make_wallet(path)
    await wallet.open_account(operator="op", player="anna", currency="EUR", balance_minor=1_000)
    await wallet.debit(move(1))
    await wallet.debit(bet(2))
    await wallet.close()
    whole = shape(path)
    made_old(path)
    assert len(shape(path)[0]) == len(whole[0]) - len(ADDED)
    wallet, store = make_wallet(path)
    assert (sorted(shape(path)[0]), *shape(path)[1:]) == (sorted(whole[0]), *whole[1:])
    store.verify()
    assert [(row.kind, row.free_bet, row.played_by) for row in store.rows()][-1] == ("debit", "", "")
    assert (await wallet.debit(move(1))).status is TransactionStatus.DUPLICATE
    # Nobody knows any more for which free bet the old debit was, and who played it: whoever asks for it may have it.
    found = await wallet.get_transaction(operator="op", player="anna", transaction_id=ulid(2))
    assert found is not None
    assert found.status is TransactionStatus.ACCEPTED
    with pytest.raises(IdempotencyConflictError):
        await wallet.rollback(bet(2, "summer:x"))
    assert (await wallet.debit(bet(2))).status is TransactionStatus.DUPLICATE
    assert (await wallet.rollback(bet(2))).status is TransactionStatus.ROLLED_BACK
    assert (await wallet.debit(bet(3))).status is TransactionStatus.ACCEPTED
    assert await refusal(wallet, bet(4)) == "FREE_BET_UNKNOWN"
    await wallet.close()
    WalletStore(path).close()


@pytest.mark.parametrize("version", [0, 3])
def test_a_book_of_any_other_version_is_left_as_it_is(tmp_path: Path, version: int) -> None:
    path = tmp_path / "wallet.sqlite"
    WalletStore(path).close()
    outside(path, f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    with pytest.raises(StoreRefusedError):
        WalletStore(path)
    assert path.read_bytes() == before
