"""The operator's wallet: the seam that every wallet stands behind, its words and its receipts.

What it implements: ARCHITECTURE 2.3 (the wallet is called at purchase and at the end of a participation, never in a
round) and 2.17 (stable ids, unknown is a state), RULEBOOK R-2.

What every wallet behind the seam promises. A transaction id never changes over retries and means one movement for ever:
the same id with the same values is answered as the first time, with any other value it is a conflict. A rollback of a
debit that the wallet does not know leaves a tombstone, and the debit that arrives later takes no money. What the wallet
did not answer is raised as WalletUnavailableError: it may have happened, and the same call with the same id settles it.
A cancelled call is as unknown as an unanswered one.

Refuses: a reference that its purpose does not allow. The embedded default is `rgs.adapters.embedded.wallet`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Final, Protocol

from rgs.core.errors import (
    InvalidFieldError,
)
from rgs.core.ids import check_reference


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


DEBIT_LEGS: Final = (Leg.PURCHASE, Leg.BET)
CREDIT_LEGS: Final = (Leg.PAYOUT, Leg.RETURN)


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
