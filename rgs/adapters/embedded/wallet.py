"""The embedded wallet of demo and development, behind the port `rgs.ports.wallet`.

It works over a `WalletStore`; docs/embedded-books.md describes the rows. Amounts are whole minor units, and no
balance falls below zero. Play cannot open accounts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from rgs.adapters.embedded.own_thread import OwnThread
from rgs.core.errors import (
    IdempotencyConflictError,
    InsufficientFundsError,
    TransactionRolledBackError,
    WalletRefusedError,
    WalletUnavailableError,
)
from rgs.core.ids import check_name, check_reference, check_ulid
from rgs.core.money import parse_currency
from rgs.ports.amounts import AMOUNT_MINOR_MAX, check_amount
from rgs.ports.wallet import Balance, Receipt, TransactionStatus, Transfer, check_credit, check_debit
from rgs.store.wallet import EnteredTransfer, WalletEntry, WalletStore, WalletTransaction

CAMPAIGN_MINOR: Final = 10**12
"""What the account of a campaign is opened with, at its first free bet."""
_CAMPAIGN: Final = "campaign:"
"""Accounts of campaigns begin so."""


class EmbeddedWallet:
    """The wallet of demo and development over a `WalletStore`, with a durable book of its own for reconciliation.

    A thread of its own writes to the disk, so that the event loop never waits for it, and takes the messages one by one
    in their order. `now_ms` is the injected clock, for the times in the book.
    """

    def __init__(self, store: WalletStore, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._now_ms = now_ms
        self._thread = OwnThread("wallet", WalletUnavailableError)

    async def open_account(self, *, operator: str, player: str, currency: str, balance_minor: int) -> Balance:
        """Open an account with a first balance, as an operator would; return the balance now.

        A repeat changes nothing; with another first balance it is an IdempotencyConflictError.
        """
        check_name(operator, "operator")
        check_reference(player, "player")
        check_amount(balance_minor, "balance_minor", 0)
        opening = EnteredTransfer(operator, player, parse_currency(currency), balance_minor, "", "opening")
        return await self._thread.run(partial(self._open_account, opening))

    async def debit(self, transfer: Transfer, *, session_token: str = "") -> Receipt:  # noqa: ARG002 - it needs no token
        """As in `Wallet`. A refusal is kept, so that no late copy can succeed.

        It knows no grants of free bets and pays every one, but once: not while another debit of it stands.
        """
        return await self._thread.run(partial(self._debit, entered_of(check_debit(transfer))))

    async def credit(self, transfer: Transfer) -> Receipt:
        """As in `Wallet`. A credit of 0 is entered like any other."""
        return await self._thread.run(partial(self._credit, entered_of(check_credit(transfer))))

    async def rollback(self, transfer: Transfer) -> Receipt:
        """As in `Wallet`."""
        return await self._thread.run(partial(self._rollback, entered_of(check_debit(transfer))))

    async def get_transaction(self, *, operator: str, player: str, transaction_id: str) -> Receipt | None:
        """As in `Wallet`."""
        check_ulid(transaction_id, "transaction_id")
        return await self._thread.run(partial(self._get_transaction, operator, player, transaction_id))

    async def get_balance(self, *, operator: str, player: str, currency: str) -> Balance:
        """As in `Wallet`."""
        return await self._thread.run(partial(self._get_balance, operator, player, currency))

    async def close(self) -> None:
        """Let running calls end, then end the thread and close the store."""
        await self._thread.close()
        self._store.close()

    # --- the rules, each in one transaction on the wallet's thread ------------------------------------------------

    def _open_account(self, opening: EnteredTransfer) -> Balance:
        account = (opening.operator, opening.player, opening.currency)
        with self._store.transaction(self._now_ms()) as book:
            first = book.opening_of(*account)
            if first is None:
                book.add_account(*account)
                book.append("opening", opening, opening.amount_minor)
            elif first.amount_minor != opening.amount_minor:
                raise IdempotencyConflictError(
                    f"the account was opened with {first.amount_minor}, not {opening.amount_minor}",
                    field="balance_minor",
                    limit=first.amount_minor,
                    value=opening.amount_minor,
                )
            return Balance(*account, _balance(book, *account))

    def _debit(self, transfer: EnteredTransfer) -> Receipt:
        status = TransactionStatus.DUPLICATE
        with self._store.transaction(self._now_ms()) as book:
            first, rollback = book.entries_of(transfer.operator, transfer.transaction_id)
            _verify_same(transfer, first, "debit", "refused_debit")
            _verify_same(transfer, rollback, "rollback")
            if rollback is not None:
                raise TransactionRolledBackError(
                    f"debit {transfer.transaction_id} was rolled back", transaction_id=transfer.transaction_id
                )
            if first is None:
                account = (transfer.operator, transfer.player, transfer.currency)
                if transfer.played_by and book.opening_of(*account) is None:
                    book.add_account(*account)
                    opening = EnteredTransfer(*account, CAMPAIGN_MINOR, "", "opening")
                    book.append("opening", opening, CAMPAIGN_MINOR)
                balance = book.balance(*account)
                is_used = bool(transfer.free_bet) and book.free_bet_stands(transfer.operator, transfer.free_bet)
                if balance is not None and balance >= transfer.amount_minor and not is_used:
                    first = book.append("debit", transfer, -transfer.amount_minor)
                    status = TransactionStatus.ACCEPTED
                else:
                    first = book.append("refused_debit", transfer, 0)
        if first.kind == "refused_debit":  # the entry above had to be committed before this is raised
            raise _refused_debit(first)
        return _receipt(first, status)

    def _credit(self, transfer: EnteredTransfer) -> Receipt:
        with self._store.transaction(self._now_ms()) as book:
            first, rollback = book.entries_of(transfer.operator, transfer.transaction_id)
            _verify_same(transfer, first, "credit")
            _verify_same(transfer, rollback)
            if first is not None:
                return _receipt(first, TransactionStatus.DUPLICATE)
            balance = _balance(book, transfer.operator, transfer.player, transfer.currency)
            if balance + transfer.amount_minor > AMOUNT_MINOR_MAX:
                raise WalletRefusedError(
                    f"with {transfer.amount_minor} more the balance would exceed {AMOUNT_MINOR_MAX}",
                    refusal="BALANCE_ABOVE_MAXIMUM",
                    limit=AMOUNT_MINOR_MAX,
                    value=transfer.amount_minor,
                )
            return _receipt(book.append("credit", transfer, transfer.amount_minor), TransactionStatus.ACCEPTED)

    def _rollback(self, transfer: EnteredTransfer) -> Receipt:
        with self._store.transaction(self._now_ms()) as book:
            first, rollback = book.entries_of(transfer.operator, transfer.transaction_id)
            _verify_same(transfer, first, "debit", "refused_debit")
            _verify_same(transfer, rollback, "rollback")
            if rollback is None:
                stands = first is not None and first.kind == "debit"
                rollback = book.append("rollback", transfer, transfer.amount_minor if stands else 0)
        return _receipt(rollback, TransactionStatus.ROLLED_BACK)

    def _get_transaction(self, operator: str, player: str, transaction_id: str) -> Receipt | None:
        with self._store.transaction(self._now_ms()) as book:
            first, rollback = book.entries_of(operator, transaction_id)
        entry = rollback or first
        if entry is None:
            return None
        owner = entry.played_by if entry.player.startswith(_CAMPAIGN) else entry.player
        if owner not in ("", player):  # a book of version 1 does not name the player of a free bet
            raise _conflict(transaction_id)
        return _receipt(entry, _STATUS_OF[entry.kind])

    def _get_balance(self, operator: str, player: str, currency: str) -> Balance:
        with self._store.transaction(self._now_ms()) as book:
            return Balance(operator, player, currency, _balance(book, operator, player, currency))


_STATUS_OF: Final = {
    "debit": TransactionStatus.ACCEPTED,
    "credit": TransactionStatus.ACCEPTED,
    "refused_debit": TransactionStatus.REFUSED,
    "rollback": TransactionStatus.ROLLED_BACK,
}


def entered_of(transfer: Transfer) -> EnteredTransfer:
    """What the book keeps of a transfer. A free bet is on the account of its campaign."""
    campaign = transfer.free_bet.partition(":")[0]
    return EnteredTransfer(
        transfer.operator,
        _CAMPAIGN + campaign if campaign else transfer.player,
        transfer.currency,
        transfer.amount_minor,
        transfer.transaction_id,
        transfer.row_reference,
        transfer.free_bet,
        transfer.player if campaign else "",
    )


def _balance(book: WalletTransaction, operator: str, player: str, currency: str) -> int:
    """The account's balance; WalletRefusedError if there is no such account."""
    balance = book.balance(operator, player, currency)
    if balance is None:
        raise _no_account(operator, player, currency)
    return balance


def _verify_same(transfer: EnteredTransfer, entry: WalletEntry | None, *kinds: str) -> None:
    if entry is None:
        return
    # A row of version 1 names the account of a campaign, and neither the free bet nor the player.
    known = transfer if entry.played_by else replace(transfer, free_bet="", played_by="")
    if entry.kind not in kinds or entry.transfer != known:
        raise _conflict(transfer.transaction_id)


def _receipt(entry: WalletEntry, status: TransactionStatus) -> Receipt:
    return Receipt(entry.transaction_id or "", status, entry.balance_after_minor, str(entry.entry_no))


def _conflict(transaction_id: str) -> IdempotencyConflictError:
    return IdempotencyConflictError(
        f"transaction {transaction_id} stands for another transfer", transaction_id=transaction_id
    )


def _refused_debit(entry: WalletEntry) -> InsufficientFundsError | WalletRefusedError:
    """Why it was refused: the row says so by the balance."""
    if entry.balance_after_minor is None:
        return _no_account(entry.operator, entry.player, entry.currency)
    if entry.balance_after_minor >= entry.amount_minor:
        return WalletRefusedError(
            f"another debit of {entry.free_bet} stands",
            refusal="FREE_BET_UNKNOWN",
            transaction_id=entry.transaction_id or "",
        )
    return InsufficientFundsError(
        f"the account held {entry.balance_after_minor}, the debit is {entry.amount_minor}",
        field="amount_minor",
        limit=entry.balance_after_minor,
        value=entry.amount_minor,
    )


def _no_account(operator: str, player: str, currency: str) -> WalletRefusedError:
    return WalletRefusedError(
        f"{operator} has no account of {player} in {currency}",
        refusal="ACCOUNT_UNKNOWN",
        operator=operator,
        player=player,
        currency=currency,
    )
