"""The operator's wallet: `rgs.wallet.v1.WalletService` over the book of `store/wallet.py` (docs/wallet.md).

Only the game server may call it: mutual TLS, and the caller's certificate must name a node. A debit needs the token
that the platform gave with the session; a player who is excluded gets no new debit. Credits and rollbacks need neither.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc.code_pb2 import ALREADY_EXISTS, FAILED_PRECONDITION, INVALID_ARGUMENT, NOT_FOUND
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from rgs.wallet.v1 import wallet_pb2 as pb

from .store.wallet import Entry, Order, RefusalError, WalletBook

DOMAIN: Final = "rgs.wallet.v1"
MESSAGE_BYTES_MAX: Final = 64 * 1024
AMOUNT_MAX: Final = 10**18 - 1
_ULID: Final = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_REFERENCE: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_DEBITS: Final = (pb.TRANSFER_PURPOSE_PURCHASE, pb.TRANSFER_PURPOSE_BET, pb.TRANSFER_PURPOSE_FREE_BET)
_CREDITS: Final = (pb.TRANSFER_PURPOSE_PAYOUT, pb.TRANSFER_PURPOSE_RETURN, pb.TRANSFER_PURPOSE_FREE_BET_RETURN)
_STATUS_OF: Final = {
    "debit": pb.TRANSACTION_STATUS_ACCEPTED,
    "credit": pb.TRANSACTION_STATUS_ACCEPTED,
    "refused": pb.TRANSACTION_STATUS_REFUSED,
    "rollback": pb.TRANSACTION_STATUS_ROLLED_BACK,
}
_CODES: Final = {
    "INVALID_FIELD": (grpc.StatusCode.INVALID_ARGUMENT, INVALID_ARGUMENT),
    "TRANSACTION_CONFLICT": (grpc.StatusCode.ALREADY_EXISTS, ALREADY_EXISTS),
    "ACCOUNT_UNKNOWN": (grpc.StatusCode.NOT_FOUND, NOT_FOUND),
    "TRANSACTION_UNKNOWN": (grpc.StatusCode.NOT_FOUND, NOT_FOUND),
}
_STATE: Final = (grpc.StatusCode.FAILED_PRECONDITION, FAILED_PRECONDITION)

Refusing = Callable[[str, str], Awaitable[str]]
"""(player, session token) -> why a new debit is refused, or ""."""
Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True, slots=True)
class WalletTls:
    """PEM: key and chain of the wallet's server certificate, and the authority of the game server's."""

    key: bytes
    chain: bytes
    client_ca: bytes

    def __repr__(self) -> str:
        return "WalletTls(...)"


class WalletService:
    """The five calls. `callers` begins the URI of each certificate that may call."""

    def __init__(self, book: WalletBook, operator: str, refusing: Refusing, callers: str = "rgs://node/") -> None:
        self._book = book
        self._operator = operator
        self._refusing = refusing
        self._callers = callers.encode()

    async def debit(self, request: pb.DebitRequest) -> pb.DebitResponse:
        order = self._order(request.transfer, _DEBITS, 1)
        refusal = await self._refusing(order.player, request.session_token)
        entry, is_new = await self._book.debit(order, refusal, _now_ms())
        if entry.kind == "refused":
            raise RefusalError(entry.reason, f"the debit was refused: {entry.reason}")
        return pb.DebitResponse(receipt=_receipt(entry, is_new=is_new))

    async def credit(self, request: pb.CreditRequest) -> pb.CreditResponse:
        entry, is_new = await self._book.credit(self._order(request.transfer, _CREDITS, 0), _now_ms())
        return pb.CreditResponse(receipt=_receipt(entry, is_new=is_new))

    async def rollback(self, request: pb.RollbackRequest) -> pb.RollbackResponse:
        entry = await self._book.rollback(self._order(request.transfer, _DEBITS, 1), _now_ms())
        return pb.RollbackResponse(receipt=_receipt(entry, is_new=True))

    async def get_transaction(self, request: pb.GetTransactionRequest) -> pb.GetTransactionResponse:
        self._verify_operator(request.operator)
        _match(_REFERENCE, "player", request.player)
        _match(_ULID, "transaction_id", request.transaction_id)
        entry = await self._book.find(request.player, request.transaction_id)
        return pb.GetTransactionResponse(receipt=_receipt(entry, is_new=True))

    async def get_balance(self, request: pb.GetBalanceRequest) -> pb.GetBalanceResponse:
        self._verify_operator(request.operator)
        _match(_REFERENCE, "player", request.player)
        _match(_CURRENCY, "currency", request.currency)
        balance = await self._book.balance(request.player, request.currency)
        return pb.GetBalanceResponse(player=request.player, currency=request.currency, balance_minor=balance)

    def serve(self, address: str, tls: WalletTls) -> tuple[grpc.aio.Server, int]:
        """A server that listens, not started yet, and its port."""
        server = grpc.aio.server(
            options=(("grpc.max_receive_message_length", MESSAGE_BYTES_MAX), ("grpc.so_reuseport", 0))
        )
        methods = {
            "Debit": self._method(pb.DebitRequest, self.debit),
            "Credit": self._method(pb.CreditRequest, self.credit),
            "Rollback": self._method(pb.RollbackRequest, self.rollback),
            "GetTransaction": self._method(pb.GetTransactionRequest, self.get_transaction),
            "GetBalance": self._method(pb.GetBalanceRequest, self.get_balance),
        }
        service = f"{DOMAIN}.WalletService"
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
        credentials = grpc.ssl_server_credentials([(tls.key, tls.chain)], tls.client_ca, require_client_auth=True)
        return server, server.add_secure_port(address, credentials)

    def _method(self, request_type: Any, answer: Callable[[Any], Awaitable[Any]]) -> grpc.RpcMethodHandler[Any, Any]:
        async def handle(request: Any, context: Context) -> Any:
            uris = context.auth_context().get("x509_subject_alternative_name", ())
            if not any(uri.startswith(self._callers) for uri in uris):
                await context.abort(grpc.StatusCode.PERMISSION_DENIED, "only the game server may call the wallet")
            try:
                return await answer(request)
            except RefusalError as error:
                await _refuse(context, error)

        return grpc.unary_unary_rpc_method_handler(
            handle,
            request_deserializer=request_type.FromString,
            response_serializer=lambda response: response.SerializeToString(),
        )

    def _verify_operator(self, operator: str) -> None:
        if operator != self._operator:
            raise RefusalError("INVALID_FIELD", f"the wallet is that of operator {self._operator}")

    def _order(self, transfer: pb.Transfer, purposes: tuple[int, int, int], least_minor: int) -> Order:
        """The transfer, checked. `purposes`: without a round, of a round, of a free bet in a round."""
        self._verify_operator(transfer.operator)
        _match(_ULID, "transaction_id", transfer.transaction_id)
        _match(_REFERENCE, "player", transfer.player)
        _match(_CURRENCY, "currency", transfer.currency)
        _match(_REFERENCE, "reference", transfer.reference)
        if not least_minor <= transfer.amount_minor <= AMOUNT_MAX:
            raise RefusalError("INVALID_FIELD", f"amount_minor must be {least_minor} to {AMOUNT_MAX}")
        if transfer.purpose not in purposes:
            raise RefusalError("INVALID_FIELD", "purpose is not one of this message")
        if transfer.purpose != purposes[0]:
            _match(_REFERENCE, "round_reference", transfer.round_reference)
        elif transfer.round_reference:
            raise RefusalError("INVALID_FIELD", "round_reference must be empty for this purpose")
        if transfer.purpose == purposes[2]:
            _match(_REFERENCE, "free_bet", transfer.free_bet)
        elif transfer.free_bet:
            raise RefusalError("INVALID_FIELD", "free_bet must be empty for this purpose")
        return Order(
            transfer.transaction_id,
            transfer.player,
            transfer.currency,
            transfer.amount_minor,
            transfer.reference,
            transfer.purpose,
            transfer.round_reference,
            transfer.free_bet,
        )


def _match(form: re.Pattern[str], name: str, found: str) -> None:
    if not form.fullmatch(found):
        raise RefusalError("INVALID_FIELD", f"{name} is malformed")


def _receipt(entry: Entry, *, is_new: bool) -> pb.Receipt:
    order, seconds = entry.order, entry.time_ms // 1000
    return pb.Receipt(
        transaction_id=order.transaction_id,
        status=_STATUS_OF[entry.kind] if is_new else pb.TRANSACTION_STATUS_DUPLICATE,
        player=order.player,
        currency=order.currency,
        amount_minor=order.amount_minor,
        balance_after_minor=entry.balance_after_minor,
        wallet_reference=str(entry.entry_no),
        entry_time=Timestamp(seconds=seconds, nanos=entry.time_ms % 1000 * 1_000_000),
    )


async def _refuse(context: Context, error: RefusalError) -> NoReturn:
    """End the call with the reason of the contract, and nothing else."""
    code, number = _CODES.get(error.reason, _STATE)
    detail = AnyMessage()
    detail.Pack(ErrorInfo(reason=error.reason, domain=DOMAIN))
    status = Status(code=number, message=str(error), details=[detail])
    trailing = (("grpc-status-details-bin", status.SerializeToString()),)
    await context.abort(code, str(error), trailing)
    raise AssertionError("abort has returned")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
