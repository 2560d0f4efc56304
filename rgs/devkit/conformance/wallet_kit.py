"""Helpers of the wallet checks: calls, transfers under new ids, and the demands on receipts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from rgs.adapters.grpc.wallet import WALLET_REFERENCE_MAX, disbelieved
from rgs.devkit.conformance.kit import Answered, ContractCaller, demand, demand_accepted, demand_reason
from rgs.wallet.v1 import wallet_pb2 as pb

AMOUNT_MINOR: Final = 100
PARALLEL: Final = 8

ACCEPTED = pb.TRANSACTION_STATUS_ACCEPTED
DUPLICATE = pb.TRANSACTION_STATUS_DUPLICATE
ROLLED_BACK = pb.TRANSACTION_STATUS_ROLLED_BACK
REFUSED = pb.TRANSACTION_STATUS_REFUSED
PAYOUT = pb.TRANSFER_PURPOSE_PAYOUT
_DISBELIEVED: Final = {
    "balance_after_minor": "is missing or below 0",
    "wallet_reference": f"has more than {WALLET_REFERENCE_MAX} characters",
}


@dataclass(frozen=True, slots=True)
class WalletKit:
    """The wallet under test, and the values to test it with. `new_id` makes ULIDs.

    `free_bet` is one that the wallet pays AMOUNT_MINOR for; empty: none is known.
    """

    stub: Any
    caller: ContractCaller
    new_id: Callable[[], str]
    operator: str
    player: str
    currency: str
    second_player: str
    unknown_player: str
    other_currency: str
    token: str = ""
    expired_token: str = ""
    free_bet: str = ""

    def transfer(
        self, purpose: pb.TransferPurpose.ValueType = pb.TRANSFER_PURPOSE_PURCHASE, **changed: Any
    ) -> pb.Transfer:
        """A transfer of AMOUNT_MINOR under a new id, with these fields changed."""
        fields: dict[str, Any] = {
            "transaction_id": self.new_id(),
            "operator": self.operator,
            "player": self.player,
            "currency": self.currency,
            "amount_minor": AMOUNT_MINOR,
            "reference": self.new_id(),
            "purpose": purpose,
        }
        return pb.Transfer(**{**fields, **changed})

    async def debit(self, transfer: pb.Transfer, *, token: str | None = None, attempt_id: str = "") -> Answered:
        token = self.token if token is None else token
        request = pb.DebitRequest(attempt_id=attempt_id or self.new_id(), transfer=transfer, session_token=token)
        return await self.caller.call(self.stub.Debit, "Debit", request)

    async def credit(self, transfer: pb.Transfer) -> Answered:
        request = pb.CreditRequest(attempt_id=self.new_id(), transfer=transfer)
        return await self.caller.call(self.stub.Credit, "Credit", request)

    async def rollback(self, transfer: pb.Transfer) -> Answered:
        request = pb.RollbackRequest(attempt_id=self.new_id(), transfer=transfer)
        return await self.caller.call(self.stub.Rollback, "Rollback", request)

    async def stands(self, transfer: pb.Transfer, player: str = "") -> Answered:
        request = pb.GetTransactionRequest(
            operator=self.operator, player=player or self.player, transaction_id=transfer.transaction_id
        )
        return await self.caller.call(self.stub.GetTransaction, "GetTransaction", request)

    async def reported_balance(self, player: str = "", currency: str = "") -> Answered:
        request = pb.GetBalanceRequest(
            operator=self.operator, player=player or self.player, currency=currency or self.currency
        )
        return await self.caller.call(self.stub.GetBalance, "GetBalance", request)

    async def balance(self) -> int:
        """The player's balance. CheckFailedError if the call is refused."""
        minor: int = demand_accepted(await self.reported_balance()).balance_minor
        return minor

    @asynccontextmanager
    async def moves(self, minor: int) -> AsyncIterator[None]:
        """CheckFailedError unless the block changes the balance by so much."""
        before = await self.balance()
        yield
        await self.demand_moved(before, minor)

    async def demand_moved(self, before_minor: int, moved_minor: int) -> None:
        """CheckFailedError unless the balance has changed by so much since `before_minor`."""
        moved = await self.balance() - before_minor
        demand(moved == moved_minor, f"the balance must change by {moved_minor} minor units, it changed by {moved}")

    async def taken(self, **changed: Any) -> pb.Transfer:
        """Debit the player. Returns the transfer, which was accepted."""
        transfer = self.transfer(**changed)
        receipt_of(await self.debit(transfer), transfer, ACCEPTED)
        return transfer

    async def given(self, purpose: pb.TransferPurpose.ValueType = PAYOUT, **changed: Any) -> pb.Transfer:
        """Credit the player. Returns the transfer, which was accepted."""
        transfer = self.transfer(purpose, **changed)
        receipt_of(await self.credit(transfer), transfer, ACCEPTED)
        return transfer

    async def refused(self) -> pb.Transfer:
        """Try a debit above the balance. Returns the transfer, which was refused."""
        before = await self.balance()
        transfer = self.transfer(amount_minor=before - before % 100 + 100)
        demand_reason(await self.debit(transfer), "INSUFFICIENT_FUNDS")
        return transfer


def changed(transfer: pb.Transfer, **fields: Any) -> pb.Transfer:
    """The transfer with other values."""
    other = pb.Transfer()
    other.CopyFrom(transfer)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def receipt_of(answered: Answered, transfer: pb.Transfer, *statuses: int) -> pb.Receipt:
    """The receipt. CheckFailedError unless it has such a status and repeats the values of the transfer, and the game
    server believes the rest of it.
    """
    receipt: pb.Receipt = demand_accepted(answered).receipt
    names = " or ".join(pb.TransactionStatus.Name(status) for status in statuses)  # type: ignore[arg-type]
    demand(receipt.status in statuses, f"expected {names}, got status {receipt.status}")
    for name in ("transaction_id", "player", "currency", "amount_minor"):
        result, requested = getattr(receipt, name), getattr(transfer, name)
        demand(result == requested, f"the receipt says {name} {result}, the request said {requested}")
    field = disbelieved(receipt, statuses)
    demand(field == "", f"{field} {_DISBELIEVED.get(field)}: the game server does not believe the receipt")
    return receipt
