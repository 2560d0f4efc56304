"""Transfers of the operator's wallet, each once in effect however often it is sent (ARCHITECTURE 2.17).

A debit without an answer is looked up by its id before it is sent again. If the wallet reports a conflict over an id
that only we make, the transaction is looked up as well. Silence is never a failure. A refused credit or rollback stays
owed.
"""

from __future__ import annotations

import hashlib
import json
from typing import Final

from rgs.core import errors
from rgs.core.ids import payout_id
from rgs.core.sessions import Session
from rgs.core.statements import format_canonical
from rgs.ports.wallet import Receipt, TransactionStatus, Transfer, TransferPurpose, Wallet
from rgs.store.changes import Operation
from rgs.store.interface import Store

GAP_FIRST_MS: Final = 1_000
GAP_LAST_MS: Final = 300_000
"""Between two attempts of recovery: no gap after the first attempt, then GAP_FIRST_MS, doubling up to this."""
AHEAD_MS: Final = 5_000
"""How far a time that another process has stored may be ahead of our clock."""
GAP_MAX_MS: Final = GAP_LAST_MS * 5 // 4
"""The longest that `gap_ms` gives."""
_STANDS: Final = frozenset({TransactionStatus.ACCEPTED, TransactionStatus.DUPLICATE})
_GONE: Final = frozenset({TransactionStatus.ROLLED_BACK, TransactionStatus.REFUSED})


def payout_detail(participation_id: str) -> str:
    """The detail of an end: the id of its credit. It is not the operation's own id, because an end that the regulator
    has refused is begun again as another operation.
    """
    return format_canonical({"transaction_id": payout_id(participation_id)}).decode("ascii")


def transaction_of(operation: Operation) -> str:
    """The transaction id of the operation at the wallet: its own id; for an end, the id of the payout. An end without
    a detail, begun by an earlier version, uses its own id.
    """
    if operation.kind == "end" and operation.detail:
        return str(json.loads(operation.detail)["transaction_id"])
    return operation.operation_id


def transfer_of(
    operation: Operation,
    session: Session,
    purpose: TransferPurpose,
    amount_minor: int,
    reference: str,
    round_reference: str = "",
) -> Transfer:
    """The transfer of an operation, the same at every attempt."""
    return Transfer(
        operator=session.operator,
        player=session.player,
        currency=session.currency,
        amount_minor=amount_minor,
        transaction_id=transaction_of(operation),
        reference=reference,
        purpose=purpose,
        round_reference=round_reference,
    )


def gap_ms(name: str, attempts: int) -> int:
    """How long to wait after so many attempts, in milliseconds, a quarter more or less by a hash of `name`: the waits
    of two operations differ, and that of one operation is the same in every process.
    """
    if attempts < 2:
        return 0
    plain = min(GAP_LAST_MS, GAP_FIRST_MS << min(attempts - 2, 20))
    chance = int.from_bytes(hashlib.sha256(f"{name} {attempts}".encode("ascii")).digest()[:4], "big")
    return plain * 3 // 4 + plain * chance // (2 << 32)


async def report_next_attempt(store: Store, error: errors.OperationPendingError, now_ms: int) -> None:
    """Put into the error when the server tries the operation next. It does not help to ask again before."""
    operation = await store.operation(error.metadata["operation_id"])
    wait_ms = GAP_FIRST_MS if operation is None else max(GAP_FIRST_MS, operation.next_ms - now_ms)
    error.metadata["retry_after_ms"] = str(wait_ms)


class Transfers:
    """Calls the wallet so that a repeat has no second effect."""

    def __init__(self, wallet: Wallet) -> None:
        self._wallet = wallet

    async def known(self, transfer: Transfer) -> Receipt | None:
        """The state of the transaction; None if the wallet does not know it: a call may still be on its way.

        UnavailableError, also where the wallet refuses to say: that is no refusal of the transfer.
        """
        try:
            return await self._wallet.get_transaction(
                operator=transfer.operator, player=transfer.player, transaction_id=transfer.transaction_id
            )
        except errors.UnavailableError:
            raise
        except errors.RgsError as error:
            raise errors.WalletUnavailableError(
                f"the wallet does not say what became of {transfer.transaction_id}: GetTransaction is refused with"
                f" {error.metadata.get('refusal', error.reason)}",
                transaction_id=transfer.transaction_id,
                refusal=error.metadata.get("refusal", error.reason),
            ) from None

    async def balance(self, session: Session) -> int:
        """The balance of the player's account now. Any RgsError: it is unknown."""
        result = await self._wallet.get_balance(
            operator=session.operator, player=session.player, currency=session.currency
        )
        return result.balance_minor

    async def debit(self, transfer: Transfer, session_token: str) -> Receipt:
        """Take the money. UnavailableError: it may have been taken. Another RgsError: it was not, and never will be."""
        try:
            return await self._wallet.debit(transfer, session_token=session_token)
        except errors.IdempotencyConflictError as conflict:
            return await self._standing(transfer, conflict)

    async def credit(self, transfer: Transfer) -> Receipt:
        """Give the money. Any RgsError: it is owed."""
        try:
            return await self._wallet.credit(transfer)
        except errors.IdempotencyConflictError as conflict:
            return await self._standing(transfer, conflict)

    async def rollback(self, transfer: Transfer) -> None:
        """Undo the debit, whether it arrived or not. UnavailableError: try again later."""
        try:
            await self._wallet.rollback(transfer)
        except errors.UnavailableError:
            raise
        except errors.RgsError as error:
            known = await self.known(transfer)
            if known is None or known.status not in _GONE:
                raise contradiction(transfer, error) from None

    async def _standing(self, transfer: Transfer, conflict: errors.RgsError) -> Receipt:
        known = await self.known(transfer)
        if known is None or not is_standing(known):
            raise contradiction(transfer, conflict)
        return known


def is_standing(known: Receipt) -> bool:
    """Whether the wallet has entered the transfer."""
    return known.status in _STANDS


def contradiction(transfer: Transfer, error: errors.RgsError) -> errors.WalletUnavailableError:
    """The error for an answer that contradicts an earlier one: it counts as no answer, and the call is repeated."""
    return errors.WalletUnavailableError(
        f"the wallet answers {error.reason} for {transfer.transaction_id}, and does not know that transaction",
        transaction_id=transfer.transaction_id,
        refusal=error.reason,
    )
