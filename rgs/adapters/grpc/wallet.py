"""The operator's wallet over gRPC: `rgs.wallet.v1.WalletService` behind the port `Wallet`.

It implements ARCHITECTURE 2.17 (stable ids, unknown is a state). Each call is sent once, with an attempt id of its own;
the operation repeats it with the same transaction id. Only a refusal in REFUSALS, under its code and for its method, is
a refusal. An answer that contradicts the request (another transaction, player, currency or amount, a balance below
zero, a status that the method does not have) is unknown and reported, never a success.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.message import Message
from grpc import StatusCode

from rgs.adapters.grpc.peer import (
    OnContradiction,
    Peer,
    PeerContract,
    PeerSettings,
    RefusalRow,
    RefusedError,
    log_contradiction,
)
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
from rgs.ports.wallet import (
    Balance,
    Receipt,
    TransactionStatus,
    Transfer,
    TransferPurpose,
    Wallet,
    check_credit,
    check_debit,
)
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
        "The transaction id stands for another transfer.",
        frozenset({"Debit", "Credit", "Rollback", "GetTransaction"}),
    ),
    "TRANSACTION_ROLLED_BACK": RefusalRow(
        _STATE, "The debit was rolled back, before or after it arrived; it takes no money.", frozenset({"Debit"})
    ),
    "INSUFFICIENT_FUNDS": RefusalRow(_STATE, "The account does not cover the debit.", frozenset({"Debit"})),
    "LIMIT_REACHED": RefusalRow(_STATE, "A limit of the player's, or the operator's for him.", frozenset({"Debit"})),
    "PLAYER_BLOCKED": RefusalRow(_STATE, "The player may not stake: excluded, closed, locked.", frozenset({"Debit"})),
    "TOKEN_EXPIRED": RefusalRow(_STATE, "The session token is no longer valid.", frozenset({"Debit"})),
    "FREE_BET_UNKNOWN": RefusalRow(
        _STATE, "The operator has not granted this free bet, or another debit of it stands.", frozenset({"Debit"})
    ),
    "ACCOUNT_UNKNOWN": RefusalRow(StatusCode.NOT_FOUND, "The operator has no such player.", _MOVING),
    "CURRENCY_MISMATCH": RefusalRow(_STATE, "The player's account is in another currency.", _MOVING),
    "BALANCE_ABOVE_MAXIMUM": RefusalRow(
        _STATE, "The balance would be more than the wallet can hold.", frozenset({"Credit"})
    ),
    TRANSACTION_UNKNOWN: RefusalRow(
        StatusCode.NOT_FOUND, "The wallet has no transaction of this id.", frozenset({"GetTransaction"})
    ),
}
"""All refusals of the contract. A reason under another code, or from another method, is unknown."""
CONTRACT: Final = PeerContract(DOMAIN, REFUSALS, WalletUnavailableError)

_ERROR_OF: Final[Mapping[str, type[RgsError]]] = {
    "TRANSACTION_CONFLICT": IdempotencyConflictError,
    "TRANSACTION_ROLLED_BACK": TransactionRolledBackError,
    "INSUFFICIENT_FUNDS": InsufficientFundsError,
}
_Statuses = frozenset[pb.TransactionStatus.ValueType]
_PURPOSES: Final[Mapping[TransferPurpose, pb.TransferPurpose.ValueType]] = {
    TransferPurpose.PURCHASE: pb.TRANSFER_PURPOSE_PURCHASE,
    TransferPurpose.PAYOUT: pb.TRANSFER_PURPOSE_PAYOUT,
    TransferPurpose.BET: pb.TRANSFER_PURPOSE_BET,
    TransferPurpose.RETURN: pb.TRANSFER_PURPOSE_RETURN,
    TransferPurpose.FREE_BET: pb.TRANSFER_PURPOSE_FREE_BET,
    TransferPurpose.FREE_BET_RETURN: pb.TRANSFER_PURPOSE_FREE_BET_RETURN,
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


class GrpcWallet(Peer):
    """One operator's wallet. `new_id` makes ULIDs for attempts, `now_ms` is a monotonic clock.

    It is made and used in one event loop. `name` is what logs and metrics call the peer, e.g. "wallet of op-1".
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
        super().__init__(name, settings, CONTRACT, now_ms=now_ms, on_contradiction=on_contradiction)
        self._new_id = new_id
        self._stub: WalletServiceAsyncStub = WalletServiceStub(self.channel)

    async def debit(self, transfer: Transfer, *, session_token: str = "") -> Receipt:
        """As in `Wallet`."""
        message = _message(check_debit(transfer))
        request = pb.DebitRequest(attempt_id=self._new_id(), transfer=message, session_token=session_token)
        return await self._move(self._stub.Debit, "Debit", request, _MOVED)

    async def credit(self, transfer: Transfer) -> Receipt:
        """As in `Wallet`."""
        request = pb.CreditRequest(attempt_id=self._new_id(), transfer=_message(check_credit(transfer)))
        return await self._move(self._stub.Credit, "Credit", request, _MOVED)

    async def rollback(self, transfer: Transfer) -> Receipt:
        """As in `Wallet`."""
        request = pb.RollbackRequest(attempt_id=self._new_id(), transfer=_message(check_debit(transfer)))
        return await self._move(self._stub.Rollback, "Rollback", request, _UNDONE)

    async def get_transaction(self, *, operator: str, player: str, transaction_id: str) -> Receipt | None:
        """As in `Wallet`."""
        request = pb.GetTransactionRequest(
            operator=check_name(operator, "operator"),
            player=check_reference(player, "player"),
            transaction_id=check_ulid(transaction_id, "transaction_id"),
        )

        def judge(response: pb.GetTransactionResponse) -> str:
            receipt = response.receipt
            return _differing(receipt, request, "transaction_id", "player") or disbelieved(receipt, _STANDS)

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

    async def _move(self, method: Any, name: str, request: Any, statuses: _Statuses) -> Receipt:
        """Send a debit, credit or rollback. The receipt must repeat the request and have one of `statuses`."""
        repeated = ("transaction_id", "player", "currency", "amount_minor")

        def judge(response: Any) -> str:
            return _differing(response.receipt, request.transfer, *repeated) or disbelieved(response.receipt, statuses)

        response = await self._call(method, name, request, judge, request.transfer.transaction_id)
        return _receipt(response.receipt)

    async def _call(
        self, method: Any, name: str, request: Message, judge: Callable[[Any], str], transaction_id: str
    ) -> Any:
        try:
            return await self.call(method, name, request, judge, transaction_id=transaction_id)
        except RefusedError as refused:
            raise _refusal(refused, transaction_id) from None


class RoutedWallet:
    """Every operator's wallet behind one port: each call goes to its operator's wallet, or to `otherwise`.

    WalletRefusedError `OPERATOR_UNKNOWN` if there is none: nothing was sent.
    """

    def __init__(self, wallets: Mapping[str, Wallet], otherwise: Wallet | None = None) -> None:
        self._wallets = dict(wallets)
        self._otherwise = otherwise

    async def debit(self, transfer: Transfer, *, session_token: str = "") -> Receipt:
        return await self._of(transfer.operator).debit(transfer, session_token=session_token)

    async def credit(self, transfer: Transfer) -> Receipt:
        return await self._of(transfer.operator).credit(transfer)

    async def rollback(self, transfer: Transfer) -> Receipt:
        return await self._of(transfer.operator).rollback(transfer)

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


def _message(transfer: Transfer) -> pb.Transfer:
    return pb.Transfer(**{**asdict(transfer), "purpose": _PURPOSES[transfer.purpose]})


def _differing(reported: Message, requested: Message, *names: str) -> str:
    return next((name for name in names if getattr(reported, name) != getattr(requested, name)), "")


def disbelieved(receipt: pb.Receipt, statuses: Collection[int]) -> str:
    """The field for which a receipt is not believed: a status that is none of these, no balance where money stands or
    one below zero, a reference that is too long. "" if there is none.
    """
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
    reported = {key: refused.metadata[key] for key in ("limit", "value") if key in refused.metadata}
    field = refused.metadata.get("field")
    error = _ERROR_OF.get(refused.reason, WalletRefusedError)
    if error is WalletRefusedError:
        reported["refusal"] = refused.reason
    return error(refused.message, field=field, **{"transaction_id": transaction_id, **reported})
