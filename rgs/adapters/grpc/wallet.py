"""The operator's wallet over gRPC: `rgs.wallet.v1.WalletService` behind the seam `Wallet`.

What it implements: ARCHITECTURE 2.17. One attempt a call, with an attempt id of its own; the transaction id is the
caller's and never changes. Only a refusal that stands in REFUSALS, under its code and for its method, is a refusal. An
answer that contradicts the request (another transaction, player, currency or amount, a balance below zero, a status
that the method does not have) is unknown, and told of: never a success.

Refuses to send what the contract does not allow, and to repeat a call by itself: who repeats is the affair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.message import Message
from grpc import StatusCode

from rgs.adapters.grpc.peer import OnContradiction, Peer, PeerSettings, RefusalRow, RefusedError, log_contradiction
from rgs.core.errors import (
    IdempotencyConflictError,
    InsufficientFundsError,
    RgsError,
    TransactionRolledBackError,
    WalletRefusedError,
    WalletUnavailableError,
)
from rgs.core.ids import check_name, check_reference, check_ulid
from rgs.core.money import parse_currency
from rgs.ports.amounts import check_amount
from rgs.ports.readings import CircuitReading
from rgs.ports.wallet import CREDIT_LEGS, DEBIT_LEGS, Balance, Leg, Receipt, TransactionStatus, Wallet, format_reference
from rgs.wallet.v1 import wallet_pb2 as pb
from rgs.wallet.v1.wallet_pb2_grpc import WalletServiceStub

if TYPE_CHECKING:  # the typed stubs know it, the generated code does not
    from rgs.wallet.v1.wallet_pb2_grpc import WalletServiceAsyncStub

DOMAIN: Final = "rgs.wallet.v1"
WALLET_REFERENCE_MAX: Final = 64
TRANSACTION_UNKNOWN: Final = "TRANSACTION_UNKNOWN"

_STATE: Final = StatusCode.FAILED_PRECONDITION
_MOVING: Final = frozenset({"Debit", "Credit", "GetBalance"})

REFUSALS: Final[Mapping[str, RefusalRow]] = {
    "INVALID_FIELD": RefusalRow(StatusCode.INVALID_ARGUMENT, "A field is missing, malformed or outside its limit."),
    "TRANSACTION_CONFLICT": RefusalRow(
        StatusCode.ALREADY_EXISTS,
        "The transaction id stands for another movement.",
        frozenset({"Debit", "Credit", "Rollback", "GetTransaction"}),
    ),
    "TRANSACTION_ROLLED_BACK": RefusalRow(
        _STATE, "The debit was rolled back, before or after it arrived; it takes no money.", frozenset({"Debit"})
    ),
    "INSUFFICIENT_FUNDS": RefusalRow(_STATE, "The account does not cover the debit.", frozenset({"Debit"})),
    "LIMIT_REACHED": RefusalRow(_STATE, "A limit of the player's, or the operator's for him.", frozenset({"Debit"})),
    "PLAYER_BLOCKED": RefusalRow(_STATE, "The player may not stake: excluded, closed, locked.", frozenset({"Debit"})),
    "TOKEN_EXPIRED": RefusalRow(_STATE, "The session token is no longer valid.", frozenset({"Debit"})),
    "ACCOUNT_UNKNOWN": RefusalRow(StatusCode.NOT_FOUND, "The operator has no such player.", _MOVING),
    "CURRENCY_MISMATCH": RefusalRow(_STATE, "The player's account is in another currency.", _MOVING),
    "BALANCE_ABOVE_MAXIMUM": RefusalRow(
        _STATE, "The balance would be more than the wallet can hold.", frozenset({"Credit"})
    ),
    TRANSACTION_UNKNOWN: RefusalRow(
        StatusCode.NOT_FOUND, "The wallet has no transaction of this id.", frozenset({"GetTransaction"})
    ),
}
"""The whole table. A reason under another code, or from another method, is no refusal but unknown."""

_ERROR_OF: Final[Mapping[str, type[RgsError]]] = {
    "TRANSACTION_CONFLICT": IdempotencyConflictError,
    "TRANSACTION_ROLLED_BACK": TransactionRolledBackError,
    "INSUFFICIENT_FUNDS": InsufficientFundsError,
}
_LEGS: Final[Mapping[Leg, pb.Leg.ValueType]] = {
    Leg.PURCHASE: pb.LEG_PURCHASE,
    Leg.PAYOUT: pb.LEG_PAYOUT,
    Leg.BET: pb.LEG_BET,
    Leg.RETURN: pb.LEG_RETURN,
}
_STATUSES: Final = {
    pb.TRANSACTION_STATUS_ACCEPTED: TransactionStatus.ACCEPTED,
    pb.TRANSACTION_STATUS_DUPLICATE: TransactionStatus.DUPLICATE,
    pb.TRANSACTION_STATUS_ROLLED_BACK: TransactionStatus.ROLLED_BACK,
    pb.TRANSACTION_STATUS_REFUSED: TransactionStatus.REFUSED,
}
_MOVED: Final = frozenset({pb.TRANSACTION_STATUS_ACCEPTED, pb.TRANSACTION_STATUS_DUPLICATE})
_UNDONE: Final = frozenset({pb.TRANSACTION_STATUS_ROLLED_BACK})
_STANDS: Final = frozenset(_STATUSES) - {pb.TRANSACTION_STATUS_DUPLICATE}


class GrpcWallet:
    """One operator's wallet. `new_id` makes ULIDs for attempts, `now_ms` is a clock that nobody sets.

    Made and used in one event loop. `name` is what logs and metrics call the peer, e.g. "wallet of op-1".
    """

    def __init__(
        self,
        name: str,
        settings: PeerSettings,
        *,
        new_id: Callable[[], str],
        now_ms: Callable[[], int],
        on_contradiction: OnContradiction = log_contradiction,
    ) -> None:
        self._new_id = new_id
        self._peer = Peer(
            name,
            settings,
            domain=DOMAIN,
            refusals=REFUSALS,
            unavailable=WalletUnavailableError,
            now_ms=now_ms,
            on_contradiction=on_contradiction,
        )
        self._stub: WalletServiceAsyncStub = WalletServiceStub(self._peer.channel)

    def reading(self) -> CircuitReading:
        """State of the circuit, calls in flight and unknown."""
        return self._peer.reading()

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
        """As in `Wallet`."""
        check_amount(amount_minor, "amount_minor", 1)
        format_reference(DEBIT_LEGS, leg, reference, round_reference)
        movement = _movement(operator, player, currency, amount_minor, transaction_id, reference, leg, round_reference)
        request = pb.DebitRequest(attempt_id=self._new_id(), movement=movement, session_token=session_token)
        response = await self._call(self._stub.Debit, "Debit", request, _agreeing(movement, _MOVED), transaction_id)
        return _receipt(response.receipt)

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
        """As in `Wallet`."""
        check_amount(amount_minor, "amount_minor", 0)
        format_reference(CREDIT_LEGS, leg, reference, round_reference)
        movement = _movement(operator, player, currency, amount_minor, transaction_id, reference, leg, round_reference)
        request = pb.CreditRequest(attempt_id=self._new_id(), movement=movement)
        response = await self._call(self._stub.Credit, "Credit", request, _agreeing(movement, _MOVED), transaction_id)
        return _receipt(response.receipt)

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
        check_amount(amount_minor, "amount_minor", 1)
        format_reference(DEBIT_LEGS, leg, reference, round_reference)
        movement = _movement(operator, player, currency, amount_minor, transaction_id, reference, leg, round_reference)
        request = pb.RollbackRequest(attempt_id=self._new_id(), movement=movement)
        judge = _agreeing(movement, _UNDONE)
        response = await self._call(self._stub.Rollback, "Rollback", request, judge, transaction_id)
        return _receipt(response.receipt)

    async def get_transaction(self, *, operator: str, player: str, transaction_id: str) -> Receipt | None:
        """As in `Wallet`."""
        request = pb.GetTransactionRequest(
            operator=check_name(operator, "operator"),
            player=check_reference(player, "player"),
            transaction_id=check_ulid(transaction_id, "transaction_id"),
        )

        def judge(response: pb.GetTransactionResponse) -> str:
            return _differing(response.receipt, request, "transaction_id", "player") or _judged(
                response.receipt, _STANDS
            )

        try:
            response = await self._call(self._stub.GetTransaction, "GetTransaction", request, judge, transaction_id)
        except WalletRefusedError as error:
            if error.metadata["refusal"] == TRANSACTION_UNKNOWN:
                return None
            raise
        return _receipt(response.receipt)

    async def get_balance(self, *, operator: str, player: str, currency: str) -> Balance:
        """As in `Wallet`."""
        request = pb.GetBalanceRequest(
            operator=check_name(operator, "operator"),
            player=check_reference(player, "player"),
            currency=parse_currency(currency),
        )

        def judge(response: pb.GetBalanceResponse) -> str:
            return (
                "balance_minor" if response.balance_minor < 0 else _differing(response, request, "player", "currency")
            )

        response = await self._call(self._stub.GetBalance, "GetBalance", request, judge, "")
        return Balance(operator, player, currency, response.balance_minor)

    async def close(self) -> None:
        """Let calls under way end, and close the channel."""
        await self._peer.close()

    async def _call(
        self, method: Any, name: str, request: Message, judge: Callable[[Any], str], transaction_id: str
    ) -> Any:
        try:
            return await self._peer.call(method, name, request, judge, transaction_id=transaction_id)
        except RefusedError as refused:
            raise _refusal(refused, transaction_id) from None


class RoutedWallet:
    """Every operator's wallet behind one seam: by the operator of the call, `otherwise` where none is named for it.

    WalletRefusedError `OPERATOR_UNKNOWN` where there is no wallet at all: nothing was sent.
    """

    def __init__(self, wallets: Mapping[str, Wallet], otherwise: Wallet | None = None) -> None:
        self._wallets = dict(wallets)
        self._otherwise = otherwise

    async def debit(self, **movement: Any) -> Receipt:
        return await self._of(movement["operator"]).debit(**movement)

    async def credit(self, **movement: Any) -> Receipt:
        return await self._of(movement["operator"]).credit(**movement)

    async def rollback(self, **movement: Any) -> Receipt:
        return await self._of(movement["operator"]).rollback(**movement)

    async def get_transaction(self, *, operator: str, player: str, transaction_id: str) -> Receipt | None:
        wallet = self._of(operator)
        return await wallet.get_transaction(operator=operator, player=player, transaction_id=transaction_id)

    async def get_balance(self, *, operator: str, player: str, currency: str) -> Balance:
        return await self._of(operator).get_balance(operator=operator, player=player, currency=currency)

    async def close(self) -> None:
        """Close all of them."""
        for wallet in (*self._wallets.values(), *([self._otherwise] if self._otherwise else [])):
            await wallet.close()

    def _of(self, operator: str) -> Wallet:
        wallet = self._wallets.get(operator, self._otherwise)
        if wallet is None:
            raise WalletRefusedError(f"no wallet is set for {operator}", refusal="OPERATOR_UNKNOWN", operator=operator)
        return wallet


def _movement(
    operator: str,
    player: str,
    currency: str,
    amount_minor: int,
    transaction_id: str,
    reference: str,
    leg: Leg,
    round_reference: str,
) -> pb.Movement:
    return pb.Movement(
        transaction_id=check_ulid(transaction_id, "transaction_id"),
        operator=check_name(operator, "operator"),
        player=check_reference(player, "player"),
        currency=parse_currency(currency),
        amount_minor=amount_minor,
        reference=check_reference(reference, "reference"),
        leg=_LEGS[leg],
        round_reference=round_reference,
    )


def _agreeing(movement: pb.Movement, statuses: frozenset[pb.TransactionStatus.ValueType]) -> Callable[[Any], str]:
    """What of a response's receipt is not as the movement has it, or cannot be; "" if all is well."""

    def judge(response: Any) -> str:
        receipt: pb.Receipt = response.receipt
        named = _differing(receipt, movement, "transaction_id", "player", "currency", "amount_minor")
        return named or _judged(receipt, statuses)

    return judge


def _differing(told: Message, asked: Message, *names: str) -> str:
    return next((name for name in names if getattr(told, name) != getattr(asked, name)), "")


def _judged(receipt: pb.Receipt, statuses: frozenset[pb.TransactionStatus.ValueType]) -> str:
    if receipt.status not in statuses:
        return "status"
    has_balance = receipt.HasField("balance_after_minor")
    if receipt.balance_after_minor < 0 or (not has_balance and receipt.status in _MOVED):
        return "balance_after_minor"
    return "wallet_reference" if len(receipt.wallet_reference) > WALLET_REFERENCE_MAX else ""


def _receipt(receipt: pb.Receipt) -> Receipt:
    balance = receipt.balance_after_minor if receipt.HasField("balance_after_minor") else None
    return Receipt(receipt.transaction_id, _STATUSES[receipt.status], balance, receipt.wallet_reference)


def _refusal(refused: RefusedError, transaction_id: str) -> RgsError:
    told = {key: refused.metadata[key] for key in ("limit", "value") if key in refused.metadata}
    field = refused.metadata.get("field")
    error = _ERROR_OF.get(refused.reason, WalletRefusedError)
    if error is WalletRefusedError:
        told["refusal"] = refused.reason
    return error(refused.message, field=field, **{"transaction_id": transaction_id, **told})
