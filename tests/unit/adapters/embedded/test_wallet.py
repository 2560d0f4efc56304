"""The embedded wallet keeps what the seam promises: stable ids, tombstones, final refusals, unknown as a state."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rgs.adapters.embedded.wallet import EmbeddedWallet
from rgs.core.errors import (
    FormatError,
    IdempotencyConflictError,
    InsufficientFundsError,
    InvalidFieldError,
    RgsError,
    TransactionRolledBackError,
    WalletRefusedError,
    WalletUnavailableError,
)
from rgs.ports.amounts import AMOUNT_MINOR_MAX
from rgs.ports.wallet import Balance, Receipt, TransactionStatus, Transfer, Wallet
from rgs.store.wallet import WalletStore
from tests.support.adapters.books import give, make_wallet, move, requested_by, ulid

ACCOUNT = {"operator": "op", "player": "anna", "currency": "EUR"}


@pytest.fixture
async def book(tmp_path: Path) -> AsyncIterator[tuple[EmbeddedWallet, WalletStore]]:
    wallet, store = make_wallet(tmp_path / "wallet.sqlite")
    await wallet.open_account(**ACCOUNT, balance_minor=1000)
    yield wallet, store
    if not store_is_closed(store):
        store.verify()
    await wallet.close()


def store_is_closed(store: WalletStore) -> bool:
    return store._file._closed


@pytest.fixture
def wallet(book: tuple[EmbeddedWallet, WalletStore]) -> EmbeddedWallet:
    return book[0]


@pytest.fixture
def store(book: tuple[EmbeddedWallet, WalletStore]) -> WalletStore:
    return book[1]


async def balance(wallet: Wallet, player: str = "anna") -> int:
    return (await wallet.get_balance(operator="op", player=player, currency="EUR")).balance_minor


async def test_debit_and_credit_move_money_once(wallet: EmbeddedWallet) -> None:
    assert await wallet.debit(move(1, 300)) == Receipt(ulid(1), TransactionStatus.ACCEPTED, 700, "2")
    assert await wallet.credit(give(2, 50)) == Receipt(ulid(2), TransactionStatus.ACCEPTED, 750, "3")
    # A repeat gives the first answer, though the balance has moved on.
    assert await wallet.debit(move(1, 300)) == Receipt(ulid(1), TransactionStatus.DUPLICATE, 700, "2")
    assert await wallet.credit(give(2, 50)) == Receipt(ulid(2), TransactionStatus.DUPLICATE, 750, "3")
    assert await wallet.get_balance(**ACCOUNT) == Balance("op", "anna", "EUR", 750)


async def test_a_credit_of_nothing_is_entered(wallet: EmbeddedWallet, store: WalletStore) -> None:
    await wallet.credit(give(1, 0))
    assert [(row.kind, row.transfer_minor) for row in store.rows()] == [("opening", 1000), ("credit", 0)]


OTHER: list[dict[str, Any]] = [
    {"player": "bert"},
    {"currency": "USD"},
    {"amount_minor": 301},
    {"reference": "another"},
]


@pytest.mark.parametrize("other", OTHER, ids=str)
@pytest.mark.parametrize("method", ["debit", "credit", "rollback"])
async def test_an_id_with_other_data_is_a_conflict(wallet: EmbeddedWallet, method: str, other: dict[str, Any]) -> None:
    first = requested_by(method, move(1, 300))
    await getattr(wallet, method)(first)
    before = await balance(wallet)
    with pytest.raises(IdempotencyConflictError):
        await getattr(wallet, method)(replace(first, **other))
    assert await balance(wallet) == before


@pytest.mark.parametrize(
    ("first", "second"),
    [("debit", "credit"), ("credit", "debit"), ("credit", "rollback"), ("rollback", "credit")],
)
async def test_an_id_with_another_meaning_is_a_conflict(wallet: EmbeddedWallet, first: str, second: str) -> None:
    await getattr(wallet, first)(requested_by(first, move(1)))
    before = await balance(wallet)
    with pytest.raises(IdempotencyConflictError):
        await getattr(wallet, second)(requested_by(second, move(1)))
    assert await balance(wallet) == before


async def test_a_rollback_must_restate_the_debit(wallet: EmbeddedWallet) -> None:
    await wallet.debit(move(1, 300))
    with pytest.raises(IdempotencyConflictError):
        await wallet.rollback(move(1, 299))
    assert await balance(wallet) == 700


async def test_operators_do_not_share_ids(wallet: EmbeddedWallet) -> None:
    await wallet.open_account(operator="other", player="anna", currency="EUR", balance_minor=10)
    await wallet.debit(move(1, 300))
    receipt = await wallet.debit(move(1, 10, operator="other"))
    assert (receipt.status, receipt.balance_after_minor) == (TransactionStatus.ACCEPTED, 0)


async def test_a_rollback_returns_the_debit_once(wallet: EmbeddedWallet) -> None:
    await wallet.debit(move(1, 300))
    first = await wallet.rollback(move(1, 300))
    assert first == Receipt(ulid(1), TransactionStatus.ROLLED_BACK, 1000, "3")
    assert await wallet.rollback(move(1, 300)) == first
    assert await balance(wallet) == 1000


async def test_a_debit_after_its_rollback_takes_nothing(wallet: EmbeddedWallet) -> None:
    await wallet.debit(move(1, 300))
    await wallet.rollback(move(1, 300))
    with pytest.raises(TransactionRolledBackError) as refused:
        await wallet.debit(move(1, 300))
    assert refused.value.metadata == {"transaction_id": ulid(1)}
    assert await balance(wallet) == 1000


async def test_a_rollback_that_overtakes_its_debit_leaves_a_tombstone(
    wallet: EmbeddedWallet, store: WalletStore
) -> None:
    receipt = await wallet.rollback(move(1, 300))
    assert receipt == Receipt(ulid(1), TransactionStatus.ROLLED_BACK, 1000, "2")
    with pytest.raises(TransactionRolledBackError):
        await wallet.debit(move(1, 300))
    assert await wallet.rollback(move(1, 300)) == receipt
    assert await balance(wallet) == 1000
    assert [(row.kind, row.amount_minor, row.transfer_minor) for row in store.rows()][1:] == [("rollback", 300, 0)]


async def test_a_late_debit_with_other_data_is_still_a_conflict(wallet: EmbeddedWallet) -> None:
    await wallet.rollback(move(1, 300))
    with pytest.raises(IdempotencyConflictError):
        await wallet.debit(move(1, 200))


async def test_insufficient_funds_are_final_for_the_id(wallet: EmbeddedWallet) -> None:
    with pytest.raises(InsufficientFundsError) as refused:
        await wallet.debit(move(1, 1001))
    assert refused.value.metadata == {"limit": "1000", "value": "1001"}
    await wallet.credit(give(2, 5000))
    with pytest.raises(InsufficientFundsError) as again:  # a late copy takes nothing, and hears what the first heard
        await wallet.debit(move(1, 1001))
    assert again.value.metadata == refused.value.metadata
    assert (await wallet.debit(move(3, 1001))).status is TransactionStatus.ACCEPTED


async def test_the_last_minor_unit_can_be_taken(wallet: EmbeddedWallet) -> None:
    assert (await wallet.debit(move(1, 1000))).balance_after_minor == 0
    with pytest.raises(InsufficientFundsError):
        await wallet.debit(move(2, 1))


async def test_a_refused_debit_can_be_rolled_back_and_returns_nothing(wallet: EmbeddedWallet) -> None:
    with pytest.raises(InsufficientFundsError):
        await wallet.debit(move(1, 1001))
    assert (await wallet.rollback(move(1, 1001))).balance_after_minor == 1000


async def test_an_unknown_account_refuses_a_debit_for_good(wallet: EmbeddedWallet) -> None:
    with pytest.raises(WalletRefusedError) as refused:
        await wallet.debit(move(1, player="bert"))
    assert refused.value.metadata["refusal"] == "ACCOUNT_UNKNOWN"
    await wallet.open_account(operator="op", player="bert", currency="EUR", balance_minor=500)
    with pytest.raises(WalletRefusedError):
        await wallet.debit(move(1, player="bert"))
    assert await balance(wallet, "bert") == 500
    assert (await wallet.rollback(move(3, player="carl"))).balance_after_minor is None


async def test_a_credit_is_owed_until_it_lands(wallet: EmbeddedWallet) -> None:
    with pytest.raises(WalletRefusedError):
        await wallet.credit(give(1, player="bert"))
    await wallet.open_account(operator="op", player="bert", currency="EUR", balance_minor=0)
    assert (await wallet.credit(give(1, player="bert"))).status is TransactionStatus.ACCEPTED
    assert await balance(wallet, "bert") == 100


async def test_a_balance_stays_inside_its_bound(wallet: EmbeddedWallet) -> None:
    with pytest.raises(WalletRefusedError) as refused:
        await wallet.credit(give(1, AMOUNT_MINOR_MAX - 999))
    assert refused.value.metadata["refusal"] == "BALANCE_ABOVE_MAXIMUM"
    assert (await wallet.credit(give(2, AMOUNT_MINOR_MAX - 1000))).balance_after_minor == AMOUNT_MINOR_MAX


async def test_get_transaction_tells_where_it_stands(wallet: EmbeddedWallet) -> None:
    async def status(number: int) -> str | None:
        receipt = await wallet.get_transaction(operator="op", player="anna", transaction_id=ulid(number))
        return None if receipt is None else receipt.status.value

    await wallet.debit(move(1))
    await wallet.credit(give(2))
    await wallet.debit(move(3))
    await wallet.rollback(move(3))
    with pytest.raises(InsufficientFundsError):
        await wallet.debit(move(4, 10_000))
    assert [await status(number) for number in (1, 2, 3, 4, 5)] == [
        "accepted",
        "accepted",
        "rolled_back",
        "refused",
        None,
    ]
    with pytest.raises(IdempotencyConflictError):
        await wallet.get_transaction(operator="op", player="bert", transaction_id=ulid(1))


async def test_an_account_is_opened_once(wallet: EmbeddedWallet) -> None:
    await wallet.debit(move(1, 300))
    assert (await wallet.open_account(**ACCOUNT, balance_minor=1000)).balance_minor == 700
    with pytest.raises(IdempotencyConflictError):
        await wallet.open_account(**ACCOUNT, balance_minor=999)
    with pytest.raises(WalletRefusedError):
        await wallet.get_balance(operator="op", player="anna", currency="USD")


NO_VALUES: list[tuple[dict[str, Any], type[RgsError]]] = [
    ({"amount_minor": 0}, InvalidFieldError),
    ({"amount_minor": -1}, InvalidFieldError),
    ({"amount_minor": True}, InvalidFieldError),
    ({"amount_minor": 1.0}, InvalidFieldError),
    ({"amount_minor": "1"}, InvalidFieldError),
    ({"amount_minor": AMOUNT_MINOR_MAX + 1}, InvalidFieldError),
    ({"operator": "Op"}, InvalidFieldError),
    ({"player": ""}, InvalidFieldError),
    ({"player": "a b"}, InvalidFieldError),
    ({"reference": "x" * 65}, InvalidFieldError),
    ({"currency": "eur"}, FormatError),
    ({"transaction_id": "1"}, InvalidFieldError),
    ({"transaction_id": ulid(1).lower()}, InvalidFieldError),
]


@pytest.mark.parametrize(("bad", "error"), NO_VALUES, ids=str)
@pytest.mark.parametrize("method", ["debit", "rollback"])
async def test_what_is_no_value_is_refused(
    wallet: EmbeddedWallet, store: WalletStore, method: str, bad: dict[str, Any], error: type[RgsError]
) -> None:
    with pytest.raises(error):
        await getattr(wallet, method)(replace(move(1), **bad))
    assert len(list(store.rows())) == 1


async def test_a_held_file_is_unavailable_and_the_same_call_settles_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rgs.store.wallet.BUSY_TIMEOUT_S", 0.01)
    path = tmp_path / "wallet.sqlite"
    wallet, _ = make_wallet(path)
    await wallet.open_account(**ACCOUNT, balance_minor=1000)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(WalletUnavailableError):
        await wallet.debit(move(1))
    other.close()
    assert (await wallet.debit(move(1))).status is TransactionStatus.ACCEPTED
    await wallet.close()


async def test_a_full_disk_is_unavailable_and_undone(wallet: EmbeddedWallet, store: WalletStore) -> None:
    db = store._file._db
    db.execute("PRAGMA max_page_count = 1")  # SQLite takes the present size for the bound
    number = 1
    with contextlib.suppress(WalletUnavailableError):
        while number < 2000:
            await wallet.credit(give(number))
            number += 1
    assert 1 < number < 2000
    assert await balance(wallet) == 1000 + 100 * (number - 1)
    store.verify()
    db.execute("PRAGMA max_page_count = 1073741823")
    assert (await wallet.credit(give(number))).status is TransactionStatus.ACCEPTED


async def test_a_lost_commit_is_unknown_and_the_same_call_settles_it(
    wallet: EmbeddedWallet, store: WalletStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    class LosesAnswers:
        """Commits, and then says that it could not."""

        def __init__(self, db: sqlite3.Connection) -> None:
            self.db = db

        def execute(self, query: str, *values: Any) -> sqlite3.Cursor:
            answer = self.db.execute(query, *values)
            if query == "COMMIT":
                raise sqlite3.OperationalError("disk I/O error")
            return answer

        def __getattr__(self, name: str) -> Any:
            return getattr(self.db, name)

    with monkeypatch.context() as patched:
        patched.setattr(store._file, "_db", LosesAnswers(store._file._db))
        with pytest.raises(WalletUnavailableError):
            await wallet.debit(move(1))
    assert (await wallet.debit(move(1))).status is TransactionStatus.DUPLICATE
    assert await balance(wallet) == 900


async def test_the_event_loop_does_not_wait_for_the_file_and_a_cancelled_call_is_unknown(
    wallet: EmbeddedWallet, store: WalletStore
) -> None:
    with store._file._lock:  # as if a call before it waited for the disk
        begun = asyncio.create_task(wallet.debit(move(1)))
        queued = asyncio.create_task(wallet.debit(move(2)))
        for _ in range(500):
            await asyncio.sleep(0.001)  # the loop goes on
        assert not begun.done()
        begun.cancel()
        queued.cancel()
        with pytest.raises(asyncio.CancelledError):
            await begun
    # The one that was begun happened all the same, the one that waited behind it did not; the same calls settle both.
    assert (await wallet.debit(move(1))).status is TransactionStatus.DUPLICATE
    assert (await wallet.debit(move(2))).status is TransactionStatus.ACCEPTED
    assert await balance(wallet) == 800


async def test_many_at_once_are_taken_one_by_one(wallet: EmbeddedWallet) -> None:
    async def attempt(call: Transfer) -> bool:
        try:
            return (await wallet.debit(call)).status is TransactionStatus.ACCEPTED
        except InsufficientFundsError:
            return False

    accepted = await asyncio.gather(*(attempt(move(number, 300)) for number in [*range(1, 9), *range(1, 9)]))
    assert sum(accepted) == 3
    assert await balance(wallet) == 100


async def test_a_closed_wallet_is_unavailable(wallet: EmbeddedWallet, store: WalletStore) -> None:
    await wallet.close()
    with pytest.raises(WalletUnavailableError):
        await wallet.debit(move(1))
    with pytest.raises(WalletUnavailableError), store.transaction(0):
        pass
    with pytest.raises(WalletUnavailableError):
        next(store.rows())
