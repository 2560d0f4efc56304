"""What a peer may answer, and what the clients make of it: refusals that the contract knows, and unknown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from grpc_status.rpc_status import to_status

from rgs.adapters.grpc.peer import PeerSettings
from rgs.adapters.grpc.regulator import ALIGNMENT_RUNNING
from rgs.adapters.grpc.regulator import REFUSALS as REJECTIONS
from rgs.adapters.grpc.wallet import DOMAIN, REFUSALS, GrpcWallet, RoutedWallet
from rgs.core.errors import (
    IdempotencyConflictError,
    InsufficientFundsError,
    RgsError,
    TransactionRolledBackError,
    WalletRefusedError,
    WalletUnavailableError,
)
from rgs.ports.regulator import Rejection
from rgs.ports.wallet import Balance, Receipt, TransactionStatus, Wallet
from rgs.wallet.v1 import wallet_pb2 as pb
from tests.support.adapters.books import NOW_MS, give, make_wallet, move, requested_by, ulid
from tests.support.api.harness import authority, operator_certificate, server_certificate

Answer = Callable[[bytes, grpc.aio.ServicerContext[Any, Any]], Awaitable[bytes]]
REQUESTS = {
    "Debit": pb.DebitRequest,
    "Credit": pb.CreditRequest,
    "Rollback": pb.RollbackRequest,
    "GetTransaction": pb.GetTransactionRequest,
    "GetBalance": pb.GetBalanceRequest,
}


@asynccontextmanager
async def answering(answer: Answer, **other: Any) -> AsyncIterator[tuple[GrpcWallet, list[Any]]]:
    """A wallet client whose every call is answered by this function; what it told of contradictions."""
    server = grpc.aio.server()
    handlers: dict[str, Any] = {name: grpc.unary_unary_rpc_method_handler(answer) for name in REQUESTS}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("rgs.wallet.v1.WalletService", handlers),))
    own, client = server_certificate(), operator_certificate()
    pair = [(own.key_pem, own.certificate_pem)]
    credentials = grpc.ssl_server_credentials(pair, authority().certificate_pem, require_client_auth=True)
    port = server.add_secure_port("localhost:0", credentials)
    await server.start()
    settings = PeerSettings(
        f"localhost:{port}", authority().certificate_pem, client.certificate_pem, client.key_pem, **other
    )
    attempts = iter(range(1, 1_000_000))
    reported: list[Any] = []
    wallet = GrpcWallet(
        "wallet",
        settings,
        new_id=lambda: ulid(next(attempts)),
        now_ms=lambda: NOW_MS,
        on_contradiction=lambda *what: reported.append(what),
    )
    try:
        yield wallet, reported
    finally:
        await wallet.close()
        await server.stop(0)


def failing(code: grpc.StatusCode, *infos: ErrorInfo, reported: grpc.StatusCode | None = None) -> Answer:
    """Fails with a code and these infos; `told` is the code in the status, where it is another."""

    async def answer(_request: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
        if not infos:
            await context.abort(code, "no")
        status = Status(code=(reported or code).value[0], message="no")
        for info in infos:
            packed = AnyMessage()
            packed.Pack(info)
            status.details.append(packed)
        trailing = to_status(status).trailing_metadata
        await context.abort(code, "no", trailing_metadata=trailing or ())
        raise AssertionError

    return answer


async def call(wallet: Wallet, method: str) -> Any:
    if method == "GetTransaction":
        return await wallet.get_transaction(operator="op", player="anna", transaction_id=ulid(1))
    if method == "GetBalance":
        return await wallet.get_balance(operator="op", player="anna", currency="EUR")
    return await getattr(wallet, method.lower())(requested_by(method, move(1)))


ERRORS = {
    "TRANSACTION_CONFLICT": IdempotencyConflictError,
    "TRANSACTION_ROLLED_BACK": TransactionRolledBackError,
    "INSUFFICIENT_FUNDS": InsufficientFundsError,
}


@pytest.mark.parametrize("reason", REFUSALS)
async def test_a_reason_of_the_contract_is_a_refusal_from_its_methods_only(reason: str) -> None:
    row = REFUSALS[reason]
    async with answering(failing(row.code, ErrorInfo(reason=reason, domain=DOMAIN))) as (wallet, _):
        for method in REQUESTS:
            if row.methods and method not in row.methods:
                with pytest.raises(WalletUnavailableError):
                    await call(wallet, method)
            elif reason == "TRANSACTION_UNKNOWN":
                assert await call(wallet, method) is None
            else:
                error: type[RgsError] = ERRORS.get(reason, WalletRefusedError)
                with pytest.raises(error) as refused:
                    await call(wallet, method)
                assert type(refused.value) is error
                assert refused.value.metadata.get("refusal", reason) == reason


INFO = ErrorInfo(reason="INSUFFICIENT_FUNDS", domain=DOMAIN)
STATE = grpc.StatusCode.FAILED_PRECONDITION
UNKNOWN: list[tuple[str, Answer]] = [
    *((code.name, failing(code)) for code in grpc.StatusCode if code is not grpc.StatusCode.OK),
    *(
        (f"{code.name} with a known reason", failing(code, INFO))
        for code in grpc.StatusCode
        if code not in (grpc.StatusCode.OK, STATE)
    ),
    ("unknown reason", failing(STATE, ErrorInfo(reason="NO_MOOD", domain=DOMAIN))),
    ("another domain", failing(STATE, ErrorInfo(reason="INSUFFICIENT_FUNDS", domain="rgs.v1"))),
    ("two infos", failing(STATE, INFO, INFO)),
]


@pytest.mark.parametrize(("_what", "answer"), UNKNOWN, ids=[row[0] for row in UNKNOWN])
async def test_everything_else_is_unknown(_what: str, answer: Answer) -> None:
    async with answering(answer) as (wallet, reported):
        with pytest.raises(WalletUnavailableError):
            await call(wallet, "Debit")
        assert wallet.reading().unknown == 1
        assert reported == []


GOOD: dict[str, Any] = {
    "transaction_id": ulid(1),
    "status": pb.TRANSACTION_STATUS_ACCEPTED,
    "player": "anna",
    "currency": "EUR",
    "amount_minor": 100,
    "balance_after_minor": 900,
    "wallet_reference": "w-1",
}
WRONG: list[tuple[str, dict[str, Any]]] = [
    ("transaction_id", {"transaction_id": ulid(2)}),
    ("player", {"player": "bert"}),
    ("currency", {"currency": "USD"}),
    ("amount_minor", {"amount_minor": 99}),
    ("status", {"status": pb.TRANSACTION_STATUS_UNSPECIFIED}),
    ("status", {"status": pb.TRANSACTION_STATUS_ROLLED_BACK}),
    ("status", {"status": pb.TRANSACTION_STATUS_REFUSED}),
    ("status", {"status": 99}),
    ("balance_after_minor", {"balance_after_minor": -1}),
    ("balance_after_minor", {"balance_after_minor": None}),
    ("wallet_reference", {"wallet_reference": "w" * 65}),
]


def saying(**fields: Any) -> Answer:
    async def answer(_request: bytes, _context: Any) -> bytes:
        return pb.DebitResponse(receipt=pb.Receipt(**fields)).SerializeToString()

    return answer


async def test_a_good_answer_is_believed() -> None:
    async with answering(saying(**GOOD)) as (wallet, reported):
        receipt = await wallet.debit(move(1))
        assert receipt == Receipt(ulid(1), TransactionStatus.ACCEPTED, 900, "w-1")
        assert reported == []


@pytest.mark.parametrize(("what", "fields"), WRONG)
@pytest.mark.parametrize("method", ["Debit", "Credit"])
async def test_an_answer_that_contradicts_the_request_is_unknown(
    what: str, fields: dict[str, Any], method: str
) -> None:
    async with answering(saying(**{**GOOD, **fields})) as (wallet, reported):
        with pytest.raises(WalletUnavailableError) as unknown:
            await call(wallet, method)
        assert unknown.value.metadata == {"contradiction": what}
        assert reported == [("wallet", method, ulid(1), what)]


async def test_bytes_that_are_no_message_are_unknown() -> None:
    async def garbage(_request: bytes, _context: Any) -> bytes:
        return b"\xff\xff\xff"

    async with answering(garbage) as (wallet, reported):
        with pytest.raises(WalletUnavailableError):
            await wallet.debit(move(1))
        assert reported == [("wallet", "Debit", ulid(1), "message")]


async def test_an_empty_answer_is_unknown_for_every_method() -> None:
    async def nothing(_request: bytes, _context: Any) -> bytes:
        return b""

    async with answering(nothing) as (wallet, reported):
        for method in REQUESTS:
            with pytest.raises(WalletUnavailableError):
                await call(wallet, method)
        assert len(reported) == len(REQUESTS)


async def test_attempts_have_ids_of_their_own_and_the_transaction_keeps_its() -> None:
    seen: list[pb.DebitRequest] = []

    async def answer(request: bytes, _context: Any) -> bytes:
        seen.append(pb.DebitRequest.FromString(request))
        return pb.DebitResponse(receipt=pb.Receipt(**GOOD)).SerializeToString()

    async with answering(answer) as (wallet, _):
        for _ in range(3):
            await wallet.debit(move(1))
    assert len({request.attempt_id for request in seen}) == 3
    assert len({request.transfer.SerializeToString() for request in seen}) == 1


async def test_a_call_ends_at_its_deadline_and_grpc_repeats_nothing() -> None:
    calls: list[float | None] = []

    async def silent(_request: bytes, context: Any) -> bytes:
        calls.append(context.time_remaining())
        await asyncio.sleep(30)
        return b""

    async with answering(silent, deadline_ms=200) as (wallet, _):
        await wallet.channel.channel_ready()
        with pytest.raises(WalletUnavailableError) as unknown:
            await wallet.debit(move(1))
        assert unknown.value.metadata == {"code": "DEADLINE_EXCEEDED"}
    assert len(calls) == 1
    assert calls[0] is not None
    assert calls[0] <= 0.25


async def test_a_silent_peer_is_not_asked_for_a_while() -> None:
    calls: list[bytes] = []

    async def down(request: bytes, context: Any) -> bytes:
        calls.append(request)
        await context.abort(grpc.StatusCode.UNAVAILABLE, "down")
        raise AssertionError

    async with answering(down, failures_max=2) as (wallet, _):
        for _ in range(5):
            with pytest.raises(WalletUnavailableError):
                await wallet.debit(move(1))
        assert len(calls) == 2
        assert wallet.reading().turned_away == 3


async def test_a_closed_client_is_unavailable() -> None:
    async with answering(saying(**GOOD)) as (wallet, _):
        pass
    with pytest.raises(WalletUnavailableError):
        await wallet.debit(move(1))


async def test_each_operator_has_a_wallet_of_its_own(tmp_path: Any) -> None:
    books = {name: make_wallet(tmp_path / f"{name}.sqlite")[0] for name in ("op", "op-2")}
    for name, book in books.items():
        await book.open_account(operator=name, player="anna", currency="EUR", balance_minor=1_000)
    routed = RoutedWallet(books)
    await routed.debit(move(1))
    await routed.credit(give(2, operator="op-2"))
    await routed.rollback(move(1))
    assert await routed.get_balance(operator="op-2", player="anna", currency="EUR") == Balance(
        "op-2", "anna", "EUR", 1_100
    )
    receipt = await routed.get_transaction(operator="op", player="anna", transaction_id=ulid(1))
    assert receipt is not None
    assert receipt.status is TransactionStatus.ROLLED_BACK
    with pytest.raises(WalletRefusedError) as refused:
        await routed.debit(move(3, operator="op-3"))
    assert refused.value.metadata["refusal"] == "OPERATOR_UNKNOWN"
    await routed.close()


def test_the_regulators_table_is_that_of_the_seam() -> None:
    assert set(REJECTIONS) == {*Rejection, ALIGNMENT_RUNNING}
