"""The operator's wallet: the seam that every wallet stands behind, and the embedded one of demo and development.

What it implements: ARCHITECTURE 2.3 (the wallet is called at purchase and at the end of a participation, never in a
round) and 2.17 (stable ids, unknown is a state), RULEBOOK R-2.

What every wallet behind the seam promises. A transaction id never changes over retries and means one movement for ever:
the same id with the same values is answered as the first time, with any other value it is a conflict. A rollback of a
debit that the wallet does not know leaves a tombstone, and the debit that arrives later takes no money. What the wallet
did not answer is raised as WalletUnavailableError: it may have happened, and the same call with the same id settles it.
A cancelled call is as unknown as an unanswered one.

Refuses: amounts that are no whole numbers of minor units, a balance below zero, to open accounts from the game's side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum, unique
from functools import partial
from typing import Final, Protocol

from rgs.clients import AMOUNT_MINOR_MAX, OwnThread, check_amount
from rgs.core.errors import (
    IdempotencyConflictError,
    InsufficientFundsError,
    InvalidFieldError,
    TransactionRolledBackError,
    WalletRefusedError,
    WalletUnavailableError,
)
from rgs.core.ids import check_name, check_reference, check_ulid
from rgs.core.money import parse_currency
from rgs.store.wallet import Movement, WalletEntry, WalletStore


@unique
class Leg(StrEnum):
    """What a movement is for: PURCHASE and PAYOUT in the participation model, BET and RETURN in seamless mode."""

    PURCHASE = "purchase"
    PAYOUT = "payout"
    BET = "bet"
    RETURN = "return"


@unique
class TransactionStatus(StrEnum):
    """Where a transaction stands."""

    ACCEPTED = "accepted"
    """The money moved, with this call."""
    DUPLICATE = "duplicate"
    """The money moved once, with an earlier call of this id; this one moved nothing."""
    ROLLED_BACK = "rolled_back"
    """The debit is undone, or will be refused should it still arrive."""
    REFUSED = "refused"
    """The debit was refused for good. Only `get_transaction` says so; `debit` raises."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The wallet's answer. `balance_after_minor` is that of the first answer; None only where there is no account."""

    transaction_id: str
    status: TransactionStatus
    balance_after_minor: int | None
    wallet_reference: str
    """The wallet's own name of its entry, for people and for reconciliation."""


@dataclass(frozen=True, slots=True)
class Balance:
    """What an account holds now, in minor units."""

    operator: str
    player: str
    currency: str
    balance_minor: int


class Wallet(Protocol):
    """An operator's wallet. `reference` is our id of the participation, for people; it is part of what a retry repeats.

    In seamless mode (`leg` BET, RETURN) `reference` is our id of the session, and `round_reference` that of the round;
    a movement of the participation model has none. Both are part of what a retry repeats, too.

    Every method may raise WalletUnavailableError, after which nothing is known of the call, and InvalidFieldError or
    FormatError for values that are none.
    """

    async def debit(
        self,
        *,
        operator: str,
        player: str,
        currency: str,
        amount_minor: int,
        transaction_id: str,
        reference: str,
        leg: Leg = Leg.PURCHASE,
        round_reference: str = "",
        session_token: str = "",
    ) -> Receipt:
        """Take `amount_minor` (> 0) from the player: ACCEPTED or DUPLICATE. `session_token` is the operator's own, no
        part of what a retry repeats.

        Errors, the first that applies: IdempotencyConflictError, TransactionRolledBackError, WalletRefusedError,
        InsufficientFundsError. Each of the last three is final for this id: it never takes money afterwards.
        """
        ...

    async def credit(
        self,
        *,
        operator: str,
        player: str,
        currency: str,
        amount_minor: int,
        transaction_id: str,
        reference: str,
        leg: Leg = Leg.PAYOUT,
        round_reference: str = "",
    ) -> Receipt:
        """Give `amount_minor` (>= 0) to the player: ACCEPTED or DUPLICATE.

        IdempotencyConflictError, or WalletRefusedError, which is not final: a credit is owed until it lands.
        """
        ...

    async def rollback(
        self,
        *,
        operator: str,
        player: str,
        currency: str,
        amount_minor: int,
        transaction_id: str,
        reference: str,
        leg: Leg = Leg.PURCHASE,
        round_reference: str = "",
    ) -> Receipt:
        """Undo the debit of these very values, arrived or not: ROLLED_BACK, however often it is sent.

        IdempotencyConflictError if the id stands for other values or for a credit.
        """
        ...

    async def get_transaction(self, *, operator: str, player: str, transaction_id: str) -> Receipt | None:
        """Where a transaction stands: ACCEPTED, REFUSED or ROLLED_BACK; None if the wallet knows of none.

        None says nothing of a call that is still on its way: only a rollback makes that final. IdempotencyConflictError
        if the transaction is another player's.
        """
        ...

    async def get_balance(self, *, operator: str, player: str, currency: str) -> Balance:
        """The balance now; WalletRefusedError if there is no such account."""
        ...

    async def close(self) -> None:
        """Finish what was begun and let go."""
        ...


class EmbeddedWallet:
    """The wallet of demo and development over a `WalletStore`: durable, with a book that can be read beside ours.

    One thread of its own does the waiting for the disk, so that the event loop never does, and takes the messages one
    by one in the order in which they came. `now_ms` is the injected clock, for the times in the book.
    """

    def __init__(self, store: WalletStore, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._now_ms = now_ms
        self._thread = OwnThread("wallet", WalletUnavailableError)

    async def open_account(self, *, operator: str, player: str, currency: str, balance_minor: int) -> Balance:
        """The operator's side, for demo and development: an account with a first balance; answers the balance now.

        A repeat changes nothing; with another first balance it is an IdempotencyConflictError.
        """
        movement = _checked(operator, player, currency, check_amount(balance_minor, "balance_minor", 0), "", "opening")
        return await self._thread.run(partial(self._open_account, movement))

    async def debit(
        self,
        *,
        operator: str,
        player: str,
        currency: str,
        amount_minor: int,
        transaction_id: str,
        reference: str,
        leg: Leg = Leg.PURCHASE,
        round_reference: str = "",
        session_token: str = "",  # noqa: ARG002 - nobody gives the embedded wallet one to know
    ) -> Receipt:
        """As in `Wallet`. Insufficient funds and an unknown account are kept, so that no late copy can succeed."""
        check_ulid(transaction_id, "transaction_id")
        check_amount(amount_minor, "amount_minor", 1)
        named = format_reference(DEBIT_LEGS, leg, reference, round_reference)
        movement = _checked(operator, player, currency, amount_minor, transaction_id, named)
        return await self._thread.run(partial(self._debit, movement))

    async def credit(
        self,
        *,
        operator: str,
        player: str,
        currency: str,
        amount_minor: int,
        transaction_id: str,
        reference: str,
        leg: Leg = Leg.PAYOUT,
        round_reference: str = "",
    ) -> Receipt:
        """As in `Wallet`. A credit of nothing is entered like any other."""
        check_ulid(transaction_id, "transaction_id")
        check_amount(amount_minor, "amount_minor", 0)
        named = format_reference(CREDIT_LEGS, leg, reference, round_reference)
        movement = _checked(operator, player, currency, amount_minor, transaction_id, named)
        return await self._thread.run(partial(self._credit, movement))

    async def rollback(
        self,
        *,
        operator: str,
        player: str,
        currency: str,
        amount_minor: int,
        transaction_id: str,
        reference: str,
        leg: Leg = Leg.PURCHASE,
        round_reference: str = "",
    ) -> Receipt:
        """As in `Wallet`."""
        check_ulid(transaction_id, "transaction_id")
        check_amount(amount_minor, "amount_minor", 1)
        named = format_reference(DEBIT_LEGS, leg, reference, round_reference)
        movement = _checked(operator, player, currency, amount_minor, transaction_id, named)
        return await self._thread.run(partial(self._rollback, movement))

    async def get_transaction(self, *, operator: str, player: str, transaction_id: str) -> Receipt | None:
        """As in `Wallet`."""
        check_ulid(transaction_id, "transaction_id")
        return await self._thread.run(partial(self._get_transaction, operator, player, transaction_id))

    async def get_balance(self, *, operator: str, player: str, currency: str) -> Balance:
        """As in `Wallet`."""
        return await self._thread.run(partial(self._get_balance, operator, player, currency))

    async def close(self) -> None:
        """Finish what was begun, end the thread and close the store."""
        await self._thread.close()
        self._store.close()

    # --- the rules, each in one transaction on the wallet's thread ------------------------------------------------

    def _open_account(self, movement: Movement) -> Balance:
        account = (movement.operator, movement.player, movement.currency)
        with self._store.transaction(self._now_ms()) as book:
            opening = book.opening_of(*account)
            if opening is None:
                book.add_account(*account)
                book.append("opening", movement, movement.amount_minor)
            elif opening.amount_minor != movement.amount_minor:
                raise IdempotencyConflictError(
                    f"the account was opened with {opening.amount_minor}, not {movement.amount_minor}",
                    field="balance_minor",
                    limit=opening.amount_minor,
                    value=movement.amount_minor,
                )
            return Balance(*account, book.balance(*account) or 0)

    def _debit(self, movement: Movement) -> Receipt:
        status = TransactionStatus.DUPLICATE
        with self._store.transaction(self._now_ms()) as book:
            first, rollback = book.entries_of(movement.operator, movement.transaction_id)
            _verify_same(movement, first, "debit", "refused_debit")
            _verify_same(movement, rollback, "rollback")
            if rollback is not None:
                raise TransactionRolledBackError(
                    f"debit {movement.transaction_id} was rolled back", transaction_id=movement.transaction_id
                )
            if first is None:
                balance = book.balance(movement.operator, movement.player, movement.currency)
                if balance is not None and balance >= movement.amount_minor:
                    first = book.append("debit", movement, -movement.amount_minor)
                    status = TransactionStatus.ACCEPTED
                else:
                    first = book.append("refused_debit", movement, 0)
        if first.kind == "refused_debit":  # kept above, so the transaction had to be committed before this is raised
            raise _refused_debit(first)
        return _receipt(first, status)

    def _credit(self, movement: Movement) -> Receipt:
        with self._store.transaction(self._now_ms()) as book:
            first, rollback = book.entries_of(movement.operator, movement.transaction_id)
            _verify_same(movement, first, "credit")
            _verify_same(movement, rollback)
            if first is not None:
                return _receipt(first, TransactionStatus.DUPLICATE)
            balance = book.balance(movement.operator, movement.player, movement.currency)
            if balance is None:
                raise _no_account(movement.operator, movement.player, movement.currency)
            if balance + movement.amount_minor > AMOUNT_MINOR_MAX:
                raise WalletRefusedError(
                    f"with {movement.amount_minor} more the balance would exceed {AMOUNT_MINOR_MAX}",
                    refusal="BALANCE_ABOVE_MAXIMUM",
                    limit=AMOUNT_MINOR_MAX,
                    value=movement.amount_minor,
                )
            return _receipt(book.append("credit", movement, movement.amount_minor), TransactionStatus.ACCEPTED)

    def _rollback(self, movement: Movement) -> Receipt:
        with self._store.transaction(self._now_ms()) as book:
            first, rollback = book.entries_of(movement.operator, movement.transaction_id)
            _verify_same(movement, first, "debit", "refused_debit")
            _verify_same(movement, rollback, "rollback")
            if rollback is None:
                stands = first is not None and first.kind == "debit"
                rollback = book.append("rollback", movement, movement.amount_minor if stands else 0)
        return _receipt(rollback, TransactionStatus.ROLLED_BACK)

    def _get_transaction(self, operator: str, player: str, transaction_id: str) -> Receipt | None:
        with self._store.transaction(self._now_ms()) as book:
            first, rollback = book.entries_of(operator, transaction_id)
        entry = rollback or first
        if entry is None:
            return None
        if entry.player != player:
            raise _conflict(transaction_id)
        return _receipt(entry, _STATUS_OF[entry.kind])

    def _get_balance(self, operator: str, player: str, currency: str) -> Balance:
        with self._store.transaction(self._now_ms()) as book:
            balance = book.balance(operator, player, currency)
        if balance is None:
            raise _no_account(operator, player, currency)
        return Balance(operator, player, currency, balance)


DEBIT_LEGS: Final = (Leg.PURCHASE, Leg.BET)
CREDIT_LEGS: Final = (Leg.PAYOUT, Leg.RETURN)
_STATUS_OF: Final = {
    "debit": TransactionStatus.ACCEPTED,
    "credit": TransactionStatus.ACCEPTED,
    "refused_debit": TransactionStatus.REFUSED,
    "rollback": TransactionStatus.ROLLED_BACK,
}


def format_reference(legs: tuple[Leg, Leg], leg: Leg, reference: str, round_reference: str) -> str:
    """The `reference` of a row: that of the movement, in seamless mode `session:leg:round`. InvalidFieldError.

    `legs` are those that the message may have: the first without a round, the second with one.
    """
    if leg not in legs:
        raise InvalidFieldError(f"leg {leg} is not {' or '.join(legs)}", field="leg", value=leg, limit=" ".join(legs))
    if leg is legs[0]:
        if round_reference:
            raise InvalidFieldError(f"a {leg} belongs to no round", field="round_reference", value=round_reference[:80])
        return reference
    check_reference(reference, "reference")
    return f"{reference}:{leg}:{check_reference(round_reference, 'round_reference')}"


def _checked(
    operator: str, player: str, currency: str, amount_minor: int, transaction_id: str, reference: str
) -> Movement:
    check_name(operator, "operator")
    check_reference(player, "player")
    check_reference(reference, "reference")
    return Movement(operator, player, parse_currency(currency), amount_minor, transaction_id, reference)


def _verify_same(movement: Movement, entry: WalletEntry | None, *kinds: str) -> None:
    if entry is not None and (entry.kind not in kinds or entry.movement != movement):
        raise _conflict(movement.transaction_id)


def _receipt(entry: WalletEntry, status: TransactionStatus) -> Receipt:
    return Receipt(entry.transaction_id or "", status, entry.balance_after_minor, str(entry.entry_no))


def _conflict(transaction_id: str) -> IdempotencyConflictError:
    return IdempotencyConflictError(
        f"transaction {transaction_id} stands for another movement", transaction_id=transaction_id
    )


def _refused_debit(entry: WalletEntry) -> InsufficientFundsError | WalletRefusedError:
    if entry.balance_after_minor is None:
        return _no_account(entry.operator, entry.player, entry.currency)
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
