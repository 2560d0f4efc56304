"""The contract of an operator's wallet: the transfers it is asked for, and the receipts it answers with.

It implements ARCHITECTURE 2.3 (the wallet is called at purchase and at the end of a participation, never in a round),
2.17 (stable ids, unknown is a state) and RULEBOOK R-2.

What every wallet promises:

- A transaction id stands for one transfer for ever. The same id with the same values gets the first answer again; with
  any other value it is a conflict.
- The rollback of a debit that the wallet does not know leaves a tombstone. If that debit arrives later, it takes no
  money.
- A call without an answer raises WalletUnavailableError. The money may have moved; the same call with the same id
  settles it. The same holds for a call that was cancelled.

The embedded default is `rgs.adapters.embedded.wallet`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Final, Protocol

from rgs.core.errors import InvalidFieldError
from rgs.core.ids import check_name, check_reference, check_ulid
from rgs.core.money import parse_currency
from rgs.ports.amounts import check_amount


@unique
class TransferPurpose(StrEnum):
    """What a transfer is for: PURCHASE and PAYOUT in the participation model, BET and RETURN in seamless mode.

    FREE_BET and FREE_BET_RETURN move money of the operator's campaign, never of the player's account.
    """

    PURCHASE = "purchase"
    PAYOUT = "payout"
    BET = "bet"
    RETURN = "return"
    FREE_BET = "free_bet"
    FREE_BET_RETURN = "free_bet_return"


DEBIT_PURPOSES: Final = (TransferPurpose.PURCHASE, TransferPurpose.BET, TransferPurpose.FREE_BET)
CREDIT_PURPOSES: Final = (TransferPurpose.PAYOUT, TransferPurpose.RETURN, TransferPurpose.FREE_BET_RETURN)
CAMPAIGN_PURPOSES: Final = frozenset({TransferPurpose.FREE_BET, TransferPurpose.FREE_BET_RETURN})
"""Paid by a campaign and given back to it."""
_WITHOUT_ROUND: Final = frozenset({TransferPurpose.PURCHASE, TransferPurpose.PAYOUT})


@dataclass(frozen=True, slots=True)
class Transfer:
    """What a wallet is asked for. A retry repeats every field.

    `reference` is our id of the participation. Where the transfer is for a round (every purpose but PURCHASE and
    PAYOUT) it is our id of the session, and `round_reference` is that of the round. `free_bet` is `campaign:grant_id`
    for FREE_BET and FREE_BET_RETURN, else empty.
    """

    operator: str
    player: str
    currency: str
    amount_minor: int
    transaction_id: str
    reference: str
    purpose: TransferPurpose
    round_reference: str = ""
    free_bet: str = ""

    @property
    def row_reference(self) -> str:
        """The reference that a wallet's book shows: `reference`, for a round `session:purpose:round`."""
        return f"{self.reference}:{self.purpose}:{self.round_reference}" if self.round_reference else self.reference


def check_debit(transfer: Transfer) -> Transfer:
    """The transfer if a debit or a rollback may ask for it; InvalidFieldError or FormatError if not."""
    return _check(transfer, DEBIT_PURPOSES, least_minor=1)


def check_credit(transfer: Transfer) -> Transfer:
    """The transfer if a credit may ask for it, an amount of 0 included; InvalidFieldError or FormatError if not."""
    return _check(transfer, CREDIT_PURPOSES, least_minor=0)


def _check(transfer: Transfer, purposes: tuple[TransferPurpose, ...], least_minor: int) -> Transfer:
    """`purposes` are the allowed ones."""
    check_ulid(transfer.transaction_id, "transaction_id")
    check_amount(transfer.amount_minor, "amount_minor", least_minor)
    check_name(transfer.operator, "operator")
    check_reference(transfer.player, "player")
    parse_currency(transfer.currency)
    check_reference(transfer.reference, "reference")
    purpose = transfer.purpose
    if purpose not in purposes:
        raise InvalidFieldError(
            f"purpose {purpose} is not {' or '.join(purposes)}",
            field="purpose",
            value=purpose,
            limit=" ".join(purposes),
        )
    if purpose not in _WITHOUT_ROUND:
        check_reference(transfer.round_reference, "round_reference")
    elif transfer.round_reference:
        value = transfer.round_reference[:80]
        raise InvalidFieldError(f"a {purpose} belongs to no round", field="round_reference", value=value)
    if purpose in CAMPAIGN_PURPOSES:
        check_reference(transfer.free_bet, "free_bet")
    elif transfer.free_bet:
        value = transfer.free_bet[:80]
        raise InvalidFieldError(f"a {purpose} belongs to no free bet", field="free_bet", value=value)
    return transfer


@unique
class TransactionStatus(StrEnum):
    """The state of a transaction."""

    ACCEPTED = "accepted"
    """The money moved, with this call."""
    DUPLICATE = "duplicate"
    """The money moved once, with an earlier call of this id; this one moved nothing."""
    ROLLED_BACK = "rolled_back"
    """The debit is undone, or will be refused should it still arrive."""
    REFUSED = "refused"
    """The debit was refused for good. Only `get_transaction` answers this; `debit` raises."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The wallet's answer. `balance_after_minor` is that of the first answer; None only if there is no account."""

    transaction_id: str
    status: TransactionStatus
    balance_after_minor: int | None
    wallet_reference: str
    """The wallet's own id of its entry, for people and for reconciliation."""


@dataclass(frozen=True, slots=True)
class Balance:
    """What an account holds now, in minor units."""

    operator: str
    player: str
    currency: str
    balance_minor: int


class Wallet(Protocol):
    """An operator's wallet.

    Every method may raise WalletUnavailableError, after which the outcome of the call is unknown, and
    InvalidFieldError or FormatError for a malformed value.
    """

    async def debit(self, transfer: Transfer, *, session_token: str = ...) -> Receipt:
        """Take the amount (> 0) from the player: ACCEPTED or DUPLICATE.

        `session_token` is the operator's own; a retry need not repeat it. Errors, the first that applies:
        IdempotencyConflictError, TransactionRolledBackError, WalletRefusedError, InsufficientFundsError. Each of the
        last three is final for this id: it never takes money afterwards.
        """

    async def credit(self, transfer: Transfer) -> Receipt:
        """Give the amount (>= 0) to the player: ACCEPTED or DUPLICATE.

        IdempotencyConflictError, or WalletRefusedError, which is not final: a credit is owed until it lands.
        """

    async def rollback(self, transfer: Transfer) -> Receipt:
        """Undo the debit with these values, whether it arrived or not: ROLLED_BACK, however often it is sent.

        IdempotencyConflictError if the id stands for other values or for a credit.
        """

    async def get_transaction(self, *, operator: str, player: str, transaction_id: str) -> Receipt | None:
        """The state of a transaction: ACCEPTED, REFUSED or ROLLED_BACK; None if the wallet does not know it.

        After None a call that is still on its way may arrive; only a rollback is final. IdempotencyConflictError if
        the transaction is another player's.
        """

    async def get_balance(self, *, operator: str, player: str, currency: str) -> Balance:
        """The balance now; WalletRefusedError if there is no such account."""

    async def close(self) -> None:
        """Let running calls end and release the resources."""
