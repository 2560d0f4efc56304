"""Movements of the operator's wallet, each once in effect however often it is asked for (ARCHITECTURE 2.17).

A debit that was not answered is asked for by its id before it is sent again; a conflict over an id that only we make is
a wallet that has forgotten what it said, and is asked about as well. Refuses to read silence as a failure, and a
refusal of a credit or of a rollback as its end: both stay owed.
"""

from __future__ import annotations

import hashlib
import json
from typing import Final

from rgs.core.errors import (
    AffairPendingError,
    IdempotencyConflictError,
    RgsError,
    UnavailableError,
    WalletUnavailableError,
)
from rgs.core.ids import payout_id
from rgs.core.sessions import Session
from rgs.core.statements import format_canonical
from rgs.ports.wallet import Leg, Receipt, TransactionStatus, Transfer, Wallet
from rgs.store.changes import Affair
from rgs.store.interface import Store

GAP_FIRST_MS: Final = 1_000
GAP_LAST_MS: Final = 300_000
"""Between two attempts of recovery: none after the first, then doubling up to this."""
AHEAD_MS: Final = 5_000
"""So far a time may be ahead of ours that another process has written down."""
GAP_MAX_MS: Final = GAP_LAST_MS * 5 // 4
"""The longest that `gap_ms` gives."""
_STANDS: Final = frozenset({TransactionStatus.ACCEPTED, TransactionStatus.DUPLICATE})
_GONE: Final = frozenset({TransactionStatus.ROLLED_BACK, TransactionStatus.REFUSED})


def payout_detail(participation_id: str) -> str:
    """The detail of an end: under which id its credit goes. The affair's own is another one, for an end that the
    central system has refused is asked for anew.
    """
    return format_canonical({"transaction_id": payout_id(participation_id)}).decode("ascii")


def transaction_of(affair: Affair) -> str:
    """The id under which the wallet hears of the affair: its own, but of an end that of the payout. An end that an
    earlier version has begun pays under its own.
    """
    if affair.kind == "end" and affair.detail:
        return str(json.loads(affair.detail)["transaction_id"])
    return affair.affair_id


def transfer_of(
    affair: Affair, session: Session, leg: Leg, amount_minor: int, reference: str, round_reference: str = ""
) -> Transfer:
    """What the wallet is asked for the affair, the same at every attempt."""
    return Transfer(
        operator=session.operator,
        player=session.player,
        currency=session.currency,
        amount_minor=amount_minor,
        transaction_id=transaction_of(affair),
        reference=reference,
        leg=leg,
        round_reference=round_reference,
    )


def gap_ms(name: str, attempts: int) -> int:
    """How long to wait after so many attempts, a quarter more or less by a hash of `name`: no two wait alike, and each
    as long in every process.
    """
    if attempts < 2:
        return 0
    plain = min(GAP_LAST_MS, GAP_FIRST_MS << min(attempts - 2, 20))
    chance = int.from_bytes(hashlib.sha256(f"{name} {attempts}".encode("ascii")).digest()[:4], "big")
    return plain * 3 // 4 + plain * chance // (2 << 32)


async def tell_next_attempt(store: Store, error: AffairPendingError, now_ms: int) -> None:
    """Put into the error when the server tries the affair next: not before then does it help to ask again."""
    affair = await store.affair(error.metadata["affair_id"])
    wait_ms = 0 if affair is None else affair.next_ms - now_ms
    error.metadata["retry_after_ms"] = str(max(GAP_FIRST_MS, wait_ms))


class Movements:
    """The wallet, asked so that a repeat does no harm."""

    def __init__(self, wallet: Wallet) -> None:
        self._wallet = wallet

    async def known(self, transfer: Transfer) -> Receipt | None:
        """Where the transaction stands; None where the wallet knows of none, which says nothing of one on its way."""
        return await self._wallet.get_transaction(
            operator=transfer.operator, player=transfer.player, transaction_id=transfer.transaction_id
        )

    async def balance(self, session: Session) -> int:
        """What the player's account holds now. Any RgsError: it is not known."""
        told = await self._wallet.get_balance(
            operator=session.operator, player=session.player, currency=session.currency
        )
        return told.balance_minor

    async def debit(self, transfer: Transfer, session_token: str) -> Receipt:
        """Take the money; only a debit carries the operator's token. UnavailableError: it may have been taken. Another
        RgsError: it was not, and never will be.
        """
        try:
            return await self._wallet.debit(transfer, session_token=session_token)
        except IdempotencyConflictError as conflict:
            return await self._standing(transfer, conflict)

    async def credit(self, transfer: Transfer) -> Receipt:
        """Give the money. Any RgsError: it is owed."""
        try:
            return await self._wallet.credit(transfer)
        except IdempotencyConflictError as conflict:
            return await self._standing(transfer, conflict)

    async def rollback(self, transfer: Transfer) -> None:
        """Undo the debit, arrived or not. UnavailableError: again later, whatever the wallet said."""
        try:
            await self._wallet.rollback(transfer)
        except UnavailableError:
            raise
        except RgsError as error:
            known = await self.known(transfer)
            if known is None or known.status not in _GONE:
                raise contradiction(transfer, error) from None

    async def _standing(self, transfer: Transfer, conflict: RgsError) -> Receipt:
        known = await self.known(transfer)
        if known is None or known.status not in _STANDS:
            raise contradiction(transfer, conflict)
        return known


def is_standing(known: Receipt | None) -> bool:
    """Whether the wallet holds the movement."""
    return known is not None and known.status in _STANDS


def contradiction(transfer: Transfer, error: RgsError) -> WalletUnavailableError:
    """The wallet's answer cannot be true after what it answered before. It is not believed, and asked for again."""
    return WalletUnavailableError(
        f"the wallet answers {error.reason} for {transfer.transaction_id}, and does not know of it",
        transaction_id=transfer.transaction_id,
        refusal=error.reason,
    )
