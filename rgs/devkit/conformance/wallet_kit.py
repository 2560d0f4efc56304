"""Helpers of the wallet checks: calls, transfers under new ids, and the demands on receipts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from rgs.devkit.conformance.kit import Answered, ContractCaller, demand, demand_accepted
from rgs.wallet.v1 import wallet_pb2 as pb

AMOUNT_MINOR: Final = 100
PARALLEL: Final = 8

ACCEPTED = pb.TRANSACTION_STATUS_ACCEPTED
DUPLICATE = pb.TRANSACTION_STATUS_DUPLICATE
ROLLED_BACK = pb.TRANSACTION_STATUS_ROLLED_BACK
REFUSED = pb.TRANSACTION_STATUS_REFUSED


@dataclass(frozen=True, slots=True)
class WalletKit:
    """The wallet under test, and the values to test it with. `new_id` makes ULIDs."""

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

    def movement(self, leg: pb.Leg.ValueType = pb.LEG_PURCHASE, **changed: Any) -> pb.Movement:
        """A transfer of AMOUNT_MINOR under a new id, with these fields changed."""
        fields: dict[str, Any] = {
            "transaction_id": self.new_id(),
            "operator": self.operator,
            "player": self.player,
            "currency": self.currency,
            "amount_minor": AMOUNT_MINOR,
            "reference": self.new_id(),
            "leg": leg,
        }
        return pb.Movement(**{**fields, **changed})

    async def debit(self, movement: pb.Movement, *, token: str | None = None, attempt_id: str = "") -> Answered:
        token = self.token if token is None else token
        request = pb.DebitRequest(attempt_id=attempt_id or self.new_id(), movement=movement, session_token=token)
        return await self.caller.call(self.stub.Debit, request)

    async def credit(self, movement: pb.Movement) -> Answered:
        request = pb.CreditRequest(attempt_id=self.new_id(), movement=movement)
        return await self.caller.call(self.stub.Credit, request)

    async def rollback(self, movement: pb.Movement) -> Answered:
        request = pb.RollbackRequest(attempt_id=self.new_id(), movement=movement)
        return await self.caller.call(self.stub.Rollback, request)

    async def stands(self, movement: pb.Movement, player: str = "") -> Answered:
        request = pb.GetTransactionRequest(
            operator=self.operator, player=player or self.player, transaction_id=movement.transaction_id
        )
        return await self.caller.call(self.stub.GetTransaction, request)

    async def told_balance(self, player: str = "", currency: str = "") -> Answered:
        request = pb.GetBalanceRequest(
            operator=self.operator, player=player or self.player, currency=currency or self.currency
        )
        return await self.caller.call(self.stub.GetBalance, request)

    async def balance(self) -> int:
        """The player's balance. CheckFailedError if the call is refused."""
        minor: int = demand_accepted(await self.told_balance()).balance_minor
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

    async def taken(self, **changed: Any) -> pb.Movement:
        """Debit the player. Returns the transfer, which was accepted."""
        movement = self.movement(**changed)
        receipt_of(await self.debit(movement), movement, ACCEPTED)
        return movement


def changed(movement: pb.Movement, **fields: Any) -> pb.Movement:
    """The transfer with other values."""
    other = pb.Movement()
    other.CopyFrom(movement)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def receipt_of(answered: Answered, movement: pb.Movement, *statuses: int) -> pb.Receipt:
    """The receipt. CheckFailedError unless it has such a status and repeats the values of the transfer."""
    receipt: pb.Receipt = demand_accepted(answered).receipt
    names = " or ".join(pb.TransactionStatus.Name(status) for status in statuses)  # type: ignore[arg-type]
    demand(receipt.status in statuses, f"expected {names}, got status {receipt.status}")
    for name in ("transaction_id", "player", "currency", "amount_minor"):
        told, asked = getattr(receipt, name), getattr(movement, name)
        demand(told == asked, f"the receipt says {name} {told}, the request said {asked}")
    return receipt
