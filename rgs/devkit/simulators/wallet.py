"""A simulated operator's wallet: `rgs.wallet.v1.WalletService` over the embedded wallet and a plan of faults.

The embedded wallet keeps an honest book; every false answer is made here. An account opens at its first use with a
balance in one currency, except for players whose pseudonym begins with `unknown`. A session token that begins with
`expired` counts as expired.

The book allows one row for a transaction id. A second effect of the same id (`double_entry`, `late_debit`) is entered
with DOUBLED as the first character of the id; the exported statement has the id itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from rgs.adapters.embedded.wallet import EmbeddedWallet, entered_of
from rgs.adapters.grpc.wallet import DOMAIN, REFUSALS, TRANSACTION_UNKNOWN, WALLET_REFERENCE_MAX
from rgs.core import errors
from rgs.core.times import parse_time
from rgs.devkit.simulators.faults import Call, Fault, Faults
from rgs.devkit.simulators.serving import SimulatedMethod, Simulator, WireError, copied
from rgs.ports.amounts import AMOUNT_MINOR_MAX
from rgs.ports.wallet import Receipt, TransactionStatus, Transfer, TransferPurpose, check_credit, check_debit
from rgs.store.wallet import WalletEntry, WalletStore
from rgs.wallet.v1 import wallet_pb2 as pb

DOUBLED: Final = "7"
"""First character of the id of a second effect: no ULID of today begins with it."""
UNKNOWN: Final = "unknown"
EXPIRED: Final = "expired"
_ROUND_MINOR: Final = 100
_STANDING: Final = (TransactionStatus.ACCEPTED, TransactionStatus.DUPLICATE)

_PURPOSES: Final = {pb.TransferPurpose.Value(f"TRANSFER_PURPOSE_{one.name}"): one for one in TransferPurpose}
_REASON_OF: Final[tuple[tuple[type[errors.RgsError], str], ...]] = (
    (errors.IdempotencyConflictError, "TRANSACTION_CONFLICT"),
    (errors.TransactionRolledBackError, "TRANSACTION_ROLLED_BACK"),
    (errors.InsufficientFundsError, "INSUFFICIENT_FUNDS"),
    (errors.InvalidFieldError, "INVALID_FIELD"),
    (errors.FormatError, "INVALID_FIELD"),
)


class SimulatedWallet(Simulator):
    """The wallet. A new account gets `opening_minor` in `currency`; `now_ms` is the injected clock."""

    service = "rgs.wallet.v1.WalletService"
    domain = DOMAIN
    refusals = REFUSALS

    def __init__(
        self, path: Path, now_ms: Callable[[], int], faults: Faults, *, opening_minor: int, currency: str = "EUR"
    ) -> None:
        self._now_ms = now_ms
        self._opening_minor = opening_minor
        self._currency = currency
        self._skewed: dict[str, int] = {}
        """Transaction id -> by how much the entered amount differs from the requested one."""
        self._spent: dict[str, str] = {}
        """Free bet -> the transaction id of its first debit, whatever has become of it."""
        super().__init__(path, faults)

    def _open(self) -> None:
        self.store = WalletStore(self._path)
        self._book = EmbeddedWallet(self.store, self._now_ms)

    def _forget(self) -> None:
        self._skewed.clear()
        self._spent.clear()

    async def close(self) -> None:
        await self._book.close()

    def methods(self) -> Mapping[str, SimulatedMethod]:
        return {
            "Debit": SimulatedMethod(pb.DebitRequest, self._moves(pb.DebitResponse, check_debit, self._debit)),
            "Credit": SimulatedMethod(pb.CreditRequest, self._moves(pb.CreditResponse, check_credit, self._credit)),
            "Rollback": SimulatedMethod(
                pb.RollbackRequest, self._moves(pb.RollbackResponse, check_debit, self._rollback)
            ),
            "GetTransaction": SimulatedMethod(pb.GetTransactionRequest, self._get_transaction),
            "GetBalance": SimulatedMethod(pb.GetBalanceRequest, self._get_balance),
        }

    def subject(self, request: Any) -> str:
        """The transaction id of a message that moves money."""
        return request.transfer.transaction_id if hasattr(request, "transfer") else ""

    # --- the methods --------------------------------------------------------------------------------------------------

    def _moves(
        self,
        response: type[Message],
        check: Callable[[Transfer], Transfer],
        move: Callable[[Any, Call, Transfer], Awaitable[Receipt]],
    ) -> Callable[[Any, Call], Awaitable[Message]]:
        """The function that answers a message that moves money: `move` finds the receipt."""

        async def answer(request: Any, call: Call) -> Message:
            requested = await self._requested(request.transfer, call, check)
            receipt = await move(request, call, requested)
            return response(receipt=self._receipt(request.transfer, receipt, call))

        return answer

    async def _debit(self, request: pb.DebitRequest, call: Call, requested: Transfer) -> Receipt:
        transfer = request.transfer
        known, undone = await self._entries(transfer)
        self._refuse_retry(call, transfer, known or undone)
        if self._hides_conflict(call, known, requested):
            return self._as_repeat(known)
        expired = request.session_token.startswith(EXPIRED)
        if expired and (known is None or self._commit_if_due(call, Fault.TOKEN_FIRST, transfer)):
            raise WireError("TOKEN_EXPIRED", "the session token has expired")
        if transfer.amount_minor == 0 and self._commit_if_due(call, Fault.ZERO_TAKEN, transfer):
            balance = await self._book.get_balance(**_account(transfer))
            return Receipt(transfer.transaction_id, TransactionStatus.ACCEPTED, balance.balance_minor, "0")
        if Fault.NOT_FINAL in call.faults and known is None and undone is None and transfer.currency == self._currency:
            balance = await self._book.get_balance(**_account(transfer))
            is_uncovered = balance.balance_minor < transfer.amount_minor <= AMOUNT_MINOR_MAX
            if is_uncovered and self._commit_if_due(call, Fault.NOT_FINAL, transfer):  # no entry: it may succeed later
                raise WireError("INSUFFICIENT_FUNDS", "the account does not cover the debit")
        if transfer.free_bet:
            first = self._spent.setdefault(transfer.free_bet, transfer.transaction_id)
            if first != transfer.transaction_id and self._commit_if_due(call, Fault.FREE_BET_SPENT, transfer):
                raise WireError("FREE_BET_UNKNOWN", "this free bet was used before")
            if known is None and Fault.FREE_BET_TWICE in call.faults and await self._stands(transfer):
                self.faults.commit(call, Fault.FREE_BET_TWICE, transfer.transaction_id)
                return await self._again(self._book.debit, requested)
        if undone is None and self._doubles(call, known, requested, "debit"):
            return await self._again(self._book.debit, requested)
        try:
            return await self._book.debit(requested)
        except errors.TransactionRolledBackError:
            if not self._commit_if_due(call, Fault.LATE_DEBIT, transfer):
                raise
            return await self._again(self._book.debit, requested)

    async def _credit(self, request: pb.CreditRequest, call: Call, requested: Transfer) -> Receipt:
        transfer = request.transfer
        known, undone = await self._entries(transfer)
        self._refuse_retry(call, transfer, known or undone)
        if transfer.amount_minor == 0 and self._commit_if_due(call, Fault.ZERO_REFUSED, transfer):
            raise WireError("INVALID_FIELD", "a credit of 0", {"field": "amount_minor"})
        if self._hides_conflict(call, known, requested):
            return self._as_repeat(known)
        if self._doubles(call, known, requested, "credit"):
            return await self._again(self._book.credit, requested)
        return await self._book.credit(requested)

    async def _rollback(self, request: pb.RollbackRequest, call: Call, requested: Transfer) -> Receipt:
        transfer = request.transfer
        known, undone = await self._entries(transfer)
        if undone is not None:
            self._refuse_retry(call, transfer, undone)
        if self._hides_conflict(call, undone or known, requested):
            return replace(self._as_repeat(undone or known), status=TransactionStatus.ROLLED_BACK)
        new = known is None and undone is None and transfer.amount_minor > 0
        if new and self._commit_if_due(call, Fault.ROLLBACK_REFUSED, transfer):
            raise WireError(TRANSACTION_UNKNOWN, "there is no such debit")
        if new and self._commit_if_due(call, Fault.NO_TOMBSTONE, transfer):
            balance = await self._book.get_balance(**_account(transfer))
            return Receipt(transfer.transaction_id, TransactionStatus.ROLLED_BACK, balance.balance_minor, "0")
        return await self._book.rollback(requested)

    async def _get_transaction(self, request: pb.GetTransactionRequest, call: Call) -> pb.GetTransactionResponse:
        named = {"operator": request.operator, "player": request.player, "transaction_id": request.transaction_id}
        receipt = await self._book.get_transaction(**named)
        known, undone = await self._entries(request)
        entry = undone or known
        if receipt is not None and self.faults.commit_if_due(call, Fault.FORGETFUL, request.transaction_id):
            receipt = None
        if receipt is None or entry is None:
            raise WireError(TRANSACTION_UNKNOWN, "there is no such transaction")
        amount_minor = entry.amount_minor - self._skewed.get(request.transaction_id, 0)
        transfer = pb.Transfer(
            transaction_id=request.transaction_id,
            player=entry.played_by or entry.player,
            currency=entry.currency,
            amount_minor=amount_minor,
        )
        result = self._receipt(transfer, receipt, call)
        result.entry_time.FromMilliseconds(parse_time(entry.recorded_time))
        return pb.GetTransactionResponse(receipt=result)

    async def _get_balance(self, request: pb.GetBalanceRequest, call: Call) -> pb.GetBalanceResponse:
        await self._open_account(request.operator, request.player)
        balance = await self._book.get_balance(**_account(request))
        more = int(self.faults.commit_if_due(call, Fault.WRONG_BALANCE, request.player))
        return pb.GetBalanceResponse(
            player=balance.player, currency=balance.currency, balance_minor=balance.balance_minor + more
        )

    # --- what they share ----------------------------------------------------------------------------------------------

    async def _requested(self, transfer: pb.Transfer, call: Call, check: Callable[[Transfer], Transfer]) -> Transfer:
        """Open the account if need be. Returns the keywords for the book; a fault may change the amount."""
        await self._open_account(transfer.operator, transfer.player)
        purpose = _PURPOSES.get(transfer.purpose)
        if purpose is None:
            raise errors.InvalidFieldError("unknown purpose", field="purpose", value=transfer.purpose)
        requested = copied(Transfer, transfer, purpose=purpose)
        if transfer.amount_minor > 0:  # the book refuses any other, unless a fault accepts it
            check(requested)
        if transfer.transaction_id not in self._skewed and transfer.amount_minor > 0:
            rest_minor = transfer.amount_minor % _ROUND_MINOR
            if self._commit_if_due(call, Fault.WRONG_AMOUNT, transfer):
                self._skewed[transfer.transaction_id] = 1
            elif rest_minor and self._commit_if_due(call, Fault.ROUNDED, transfer):
                self._skewed[transfer.transaction_id] = -rest_minor
        return replace(requested, amount_minor=transfer.amount_minor + self._skewed.get(transfer.transaction_id, 0))

    async def _open_account(self, operator: str, player: str) -> None:
        if player.startswith(UNKNOWN):
            return
        account = {"operator": operator, "player": player, "currency": self._currency}
        try:
            await self._book.get_balance(**account)
        except errors.WalletRefusedError:
            await self._book.open_account(**account, balance_minor=self._opening_minor)

    async def _entries(self, request: Any) -> tuple[WalletEntry | None, WalletEntry | None]:
        """The book's entries of a transaction: the first one, and the rollback."""
        transfer = getattr(request, "transfer", request)

        def poll() -> tuple[WalletEntry | None, WalletEntry | None]:
            with self.store.transaction(self._now_ms()) as book:
                return book.entries_of(transfer.operator, transfer.transaction_id)

        return await asyncio.to_thread(poll)

    async def _stands(self, transfer: pb.Transfer) -> bool:
        """Whether a debit of its free bet stands."""

        def poll() -> bool:
            with self.store.transaction(self._now_ms()) as book:
                return book.free_bet_stands(transfer.operator, transfer.free_bet)

        return await asyncio.to_thread(poll)

    async def _again(self, move: Callable[..., Any], requested: Transfer) -> Receipt:
        """Move the money once more, under the doubled id; the answer does not show it.

        The book pays a free bet once, so the second one is another of the campaign.
        """
        doubled = DOUBLED + requested.transaction_id[1:]
        other = f"{requested.free_bet.partition(':')[0]}:{doubled}" if requested.free_bet else ""
        receipt: Receipt = await move(replace(requested, transaction_id=doubled, free_bet=other))
        return replace(receipt, transaction_id=requested.transaction_id)

    def _refuse_retry(self, call: Call, transfer: pb.Transfer, known: WalletEntry | None) -> None:
        if known is not None and self._commit_if_due(call, Fault.CONFLICTING_RETRY, transfer):
            raise WireError("TRANSACTION_CONFLICT", "the transaction id belongs to another transfer")

    def _hides_conflict(self, call: Call, known: WalletEntry | None, requested: Transfer) -> bool:
        """Whether a known id with other values is answered as a repeat."""
        is_conflict = known is not None and known.transfer != entered_of(requested)
        return is_conflict and self.faults.commit_if_due(call, Fault.NO_CONFLICT, requested.transaction_id)

    def _doubles(self, call: Call, known: WalletEntry | None, requested: Transfer, kind: str) -> bool:
        """Whether a repeat with the same values moves the money again."""
        is_repeat = known is not None and known.kind == kind and known.transfer == entered_of(requested)
        return is_repeat and self.faults.commit_if_due(call, Fault.DOUBLE_ENTRY, requested.transaction_id)

    def _as_repeat(self, known: WalletEntry | None) -> Receipt:
        assert known is not None  # noqa: S101 - checked by `_hides_conflict`
        balance_minor = known.balance_after_minor or 0
        return Receipt(known.transaction_id or "", TransactionStatus.DUPLICATE, balance_minor, str(known.entry_no))

    def _receipt(self, transfer: pb.Transfer, receipt: Receipt, call: Call) -> pb.Receipt:
        more = int(self._commit_if_due(call, Fault.WRONG_ECHO, transfer))
        is_bare = receipt.status in _STANDING and self._commit_if_due(call, Fault.NO_BALANCE, transfer)
        is_long = self._commit_if_due(call, Fault.LONG_REFERENCE, transfer)
        reference = receipt.wallet_reference
        time = Timestamp()
        time.FromMilliseconds(self._now_ms())
        return pb.Receipt(
            transaction_id=receipt.transaction_id,
            status=pb.TransactionStatus.Value(f"TRANSACTION_STATUS_{receipt.status.name}"),
            player=transfer.player,
            currency=transfer.currency,
            amount_minor=transfer.amount_minor + more,
            balance_after_minor=None if is_bare else receipt.balance_after_minor,
            wallet_reference=reference.rjust(WALLET_REFERENCE_MAX + 1, "0") if is_long else reference,
            entry_time=time,
        )

    def _commit_if_due(self, call: Call, fault: Fault, transfer: pb.Transfer) -> bool:
        return self.faults.commit_if_due(call, fault, transfer.transaction_id)

    def _reason(self, error: errors.RgsError, request: Any) -> str:
        if isinstance(error, errors.WalletRefusedError):
            transfer = getattr(request, "transfer", request)
            refusal = error.metadata["refusal"]
            has_account = refusal == "ACCOUNT_UNKNOWN" and not transfer.player.startswith(UNKNOWN)
            return "CURRENCY_MISMATCH" if has_account else refusal
        return next((reason for kind, reason in _REASON_OF if isinstance(error, kind)), "")


def _account(named: pb.Transfer | pb.GetBalanceRequest) -> dict[str, str]:
    return {"operator": named.operator, "player": named.player, "currency": named.currency}
