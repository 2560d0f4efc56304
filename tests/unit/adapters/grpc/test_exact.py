"""What the clients over gRPC send, and what they read of an answer, field by field. A stub answers, not a channel."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from rgs.adapters.grpc.peer import DETAILS, PeerSettings
from rgs.adapters.grpc.regulator import GrpcRegulator
from rgs.adapters.grpc.wallet import GrpcWallet
from rgs.core.errors import (
    InsufficientFundsError,
    RegulatorRefusedError,
    RegulatorUnavailableError,
    RgsError,
    WalletRefusedError,
    WalletUnavailableError,
)
from rgs.ports.regulator import (
    DayAlignment,
    DayTotals,
    ParticipationEnd,
    RegulatorParticipation,
    RegulatorReceipt,
    RegulatorSession,
    SessionClose,
)
from rgs.ports.wallet import Balance, Receipt, TransactionStatus, TransferPurpose
from rgs.regulator.v1 import regulator_pb2 as regulator_pb
from rgs.wallet.v1 import wallet_pb2 as wallet_pb
from tests.support.adapters.books import NOW_MS, give, modules, move, opening, purchase, stage, ulid
from tests.support.api.harness import authority, operator_certificate

SESSION, PARTICIPATION = "M" + "0" * 15, "N" + "0" * 15
ATTEMPT, TOKEN = ulid(800), "the token of a session"
NOW = Timestamp(seconds=NOW_MS // 1000, nanos=NOW_MS % 1000 * 1_000_000)


class Stub:
    """Every method gives the same answer, or raises it; `sent` has the requests."""

    def __init__(self, client: Any) -> None:
        self.answer: Message | Exception = Status()
        self.sent: list[Message] = []
        methods = [name for name in vars(client._stub) if name[0].isupper()]
        client._stub = SimpleNamespace(**dict.fromkeys(methods, self._called))

    async def _called(self, request: Message, timeout: float) -> Message:  # noqa: ASYNC109 - as gRPC names it
        assert timeout == 3.0
        self.sent.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def made(kind: Callable[..., Any], reported: list[Any]) -> Any:
    own = operator_certificate()
    settings = PeerSettings("localhost:1", authority().certificate_pem, own.certificate_pem, own.key_pem)
    return kind(
        "peer",
        settings,
        new_id=lambda: ATTEMPT,
        now_ms=lambda: 0,
        on_contradiction=lambda *what: reported.append(what),
    )


@pytest.fixture
def reported() -> list[Any]:
    """What was reported as a contradiction."""
    return []


@pytest.fixture
async def wallet(reported: list[Any]) -> AsyncIterator[tuple[GrpcWallet, Stub]]:
    client = made(GrpcWallet, reported)
    yield client, Stub(client)
    await client.close()


@pytest.fixture
async def regulator(reported: list[Any]) -> AsyncIterator[tuple[GrpcRegulator, Stub]]:
    client = made(GrpcRegulator, reported)
    yield client, Stub(client)
    await client.close()


def refusal(code: grpc.StatusCode, domain: str, reason: str, *details: Message, **facts: str) -> grpc.aio.AioRpcError:
    status = Status(code=code.value[0], message="no")
    for detail in (ErrorInfo(reason=reason, domain=domain, metadata=facts), *details):
        packed = AnyMessage()
        packed.Pack(detail)
        status.details.append(packed)
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata((DETAILS, status.SerializeToString())))


def receipt(**other: Any) -> wallet_pb.Receipt:
    fields = {
        "transaction_id": ulid(1),
        "status": wallet_pb.TRANSACTION_STATUS_ACCEPTED,
        "player": "anna",
        "currency": "EUR",
        "amount_minor": 100,
        "balance_after_minor": 0,
        "wallet_reference": "w" * 64,
    }
    return wallet_pb.Receipt(**{**fields, **other})


# --- the wallet -------------------------------------------------------------------------------------------------------


async def test_a_balance_of_nothing_is_one_and_a_balance_below_is_none(
    wallet: tuple[GrpcWallet, Stub], reported: list[Any]
) -> None:
    client, stub = wallet
    stub.answer = wallet_pb.GetBalanceResponse(player="anna", currency="EUR", balance_minor=0)
    requested = {"operator": "op", "player": "anna", "currency": "EUR"}
    assert await client.get_balance(**requested) == Balance("op", "anna", "EUR", 0)
    assert stub.sent == [wallet_pb.GetBalanceRequest(**requested)]
    for contradicting, field in (
        ({"balance_minor": -1}, "balance_minor"),
        ({"player": "bert"}, "player"),
        ({"currency": "USD"}, "currency"),
    ):
        reported.clear()
        fields: dict[str, Any] = {"player": "anna", "currency": "EUR", **contradicting}
        stub.answer = wallet_pb.GetBalanceResponse(**fields)
        with pytest.raises(WalletUnavailableError) as unknown:
            await client.get_balance(**requested)
        assert unknown.value.metadata == {"contradiction": field}
        assert reported == [("peer", "GetBalance", "", field)]


async def test_an_account_that_is_empty_afterwards_and_the_longest_reference_are_believed(
    wallet: tuple[GrpcWallet, Stub],
) -> None:
    client, stub = wallet
    believed = Receipt(ulid(1), TransactionStatus.ACCEPTED, 0, "w" * 64)
    names: dict[str, Any] = {"operator": "op", "player": "anna", "currency": "EUR", "amount_minor": 100}
    names["transaction_id"] = ulid(1)
    requested_transfer = wallet_pb.Transfer(**names, reference=ulid(900), purpose=wallet_pb.TRANSFER_PURPOSE_PURCHASE)
    back = wallet_pb.Transfer(**names, reference=ulid(900), purpose=wallet_pb.TRANSFER_PURPOSE_PAYOUT)
    stub.answer = wallet_pb.DebitResponse(receipt=receipt())
    assert await client.debit(move(1), session_token=TOKEN) == believed
    stub.answer = wallet_pb.CreditResponse(receipt=receipt())
    assert await client.credit(give(1)) == believed
    stub.answer = wallet_pb.RollbackResponse(receipt=receipt(status=wallet_pb.TRANSACTION_STATUS_ROLLED_BACK))
    assert await client.rollback(move(1)) == replace(believed, status=TransactionStatus.ROLLED_BACK)
    assert stub.sent == [
        wallet_pb.DebitRequest(attempt_id=ATTEMPT, transfer=requested_transfer, session_token=TOKEN),
        wallet_pb.CreditRequest(attempt_id=ATTEMPT, transfer=back),
        wallet_pb.RollbackRequest(attempt_id=ATTEMPT, transfer=requested_transfer),
    ]


@pytest.mark.parametrize(
    ("method", "purpose", "sent"),
    [
        ("debit", TransferPurpose.BET, wallet_pb.TRANSFER_PURPOSE_BET),
        ("credit", TransferPurpose.RETURN, wallet_pb.TRANSFER_PURPOSE_RETURN),
    ],
)
async def test_the_purpose_and_the_round_are_sent(
    wallet: tuple[GrpcWallet, Stub], method: str, purpose: TransferPurpose, sent: int
) -> None:
    client, stub = wallet
    stub.answer = wallet_pb.DebitResponse(receipt=receipt())
    await getattr(client, method)(replace(move(1), purpose=purpose, round_reference=ulid(700)))
    (request,) = stub.sent
    transfer = request.transfer  # type: ignore[attr-defined]
    assert (transfer.purpose, transfer.round_reference) == (sent, ulid(700))


async def test_what_stands_of_a_transaction_is_read_whatever_it_is(wallet: tuple[GrpcWallet, Stub]) -> None:
    client, stub = wallet
    requested = {"operator": "op", "player": "anna", "transaction_id": ulid(1)}
    for name in ("ACCEPTED", "ROLLED_BACK", "REFUSED"):
        status = wallet_pb.TransactionStatus.Value(f"TRANSACTION_STATUS_{name}")
        stub.answer = wallet_pb.GetTransactionResponse(receipt=receipt(status=status))
        assert await client.get_transaction(**requested) == Receipt(ulid(1), TransactionStatus[name], 0, "w" * 64)
    assert stub.sent == [wallet_pb.GetTransactionRequest(**requested)] * 3
    for wrong, field in (
        ({"status": wallet_pb.TRANSACTION_STATUS_DUPLICATE}, "status"),
        ({"player": "bert"}, "player"),
        ({"transaction_id": ulid(2)}, "transaction_id"),
    ):
        other: dict[str, Any] = wrong
        stub.answer = wallet_pb.GetTransactionResponse(receipt=receipt(**other))
        with pytest.raises(WalletUnavailableError) as unknown:
            await client.get_transaction(**requested)
        assert unknown.value.metadata == {"contradiction": field}


async def test_a_refusal_of_the_wallet_keeps_the_facts_that_the_contract_knows(wallet: tuple[GrpcWallet, Stub]) -> None:
    client, stub = wallet
    facts = {"field": "amount_minor", "limit": "40", "value": "100", "mood": "bad"}
    state, known = grpc.StatusCode.FAILED_PRECONDITION, {"transaction_id": ulid(1), "limit": "40", "value": "100"}
    stub.answer = refusal(state, "rgs.wallet.v1", "INSUFFICIENT_FUNDS", **facts)
    with pytest.raises(InsufficientFundsError, match="no") as refused:
        await client.debit(move(1))
    assert (refused.value.field, refused.value.metadata) == ("amount_minor", known)
    stub.answer = refusal(state, "rgs.wallet.v1", "LIMIT_REACHED", **facts)
    with pytest.raises(WalletRefusedError) as limited:
        await client.debit(move(1))
    assert (limited.value.field, limited.value.metadata) == ("amount_minor", {**known, "refusal": "LIMIT_REACHED"})


# --- the regulator ----------------------------------------------------------------------------------------------------

END = ParticipationEnd(ulid(1), SESSION, PARTICIPATION, 7, 3, NOW_MS)
DAY = DayAlignment(ulid(1), "op", "EUR", "2026-11-17", DayTotals(1, 2, 3, 4, 5, 6, 7))
TOTALS = regulator_pb.DayTotals(
    purchases=1, bought_minor=2, stages=3, staked_minor=4, returned_minor=5, ends=6, final_balance_minor=7
)
MODULES = [
    regulator_pb.Module(name="rng", version="1.0.0", sha256="a" * 64, sha1="b" * 40),
    regulator_pb.Module(name="games", version="1.0.0", sha256="c" * 64),
]
STAGE = stage(SESSION, PARTICIPATION, 2, 500, returned_minor=9)
REPORTS: list[tuple[str, tuple[Any, ...], Message]] = [
    ("report_stages", (ulid(1), [STAGE]), regulator_pb.ReportStagesRequest(
        attempt_id=ATTEMPT, transaction_id=ulid(1), stages=[regulator_pb.Stage(
            regulator_session_id=SESSION, regulator_participation_id=PARTICIPATION, stage_no=2, available_minor=500,
            staked_minor=30, returned_minor=9, opening_hash=STAGE.opening_hash, final_hash=STAGE.final_hash,
            end_time=NOW)])),
    ("end_participation", (END,), regulator_pb.EndParticipationRequest(
        attempt_id=ATTEMPT, transaction_id=ulid(1), regulator_session_id=SESSION,
        regulator_participation_id=PARTICIPATION, final_balance_minor=7, rounds=3, end_time=NOW)),
    ("close_session", (SessionClose(ulid(1), SESSION, NOW_MS),), regulator_pb.CloseSessionRequest(
        attempt_id=ATTEMPT, transaction_id=ulid(1), regulator_session_id=SESSION, close_time=NOW)),
    ("align_day", (DAY,), regulator_pb.AlignDayRequest(
        attempt_id=ATTEMPT, transaction_id=ulid(1), operator="op", currency="EUR", day="2026-11-17", totals=TOTALS)),
    ("report_modules", (modules(ulid(1)),), regulator_pb.ReportModulesRequest(
        attempt_id=ATTEMPT, transaction_id=ulid(1), node="node1", modules=MODULES, report_time=NOW)),
]  # fmt: skip


@pytest.mark.parametrize(("method", "message", "request_sent"), REPORTS, ids=[row[0] for row in REPORTS])
async def test_a_report_is_sent_whole_and_its_receipt_must_name_it(
    regulator: tuple[GrpcRegulator, Stub], reported: list[Any], method: str, message: Any, request_sent: Message
) -> None:
    client, stub = regulator
    for test_regulator in (True, False):
        stub.answer = regulator_pb.ReportStagesResponse(transaction_id=ulid(1), test_regulator=test_regulator)
        assert await getattr(client, method)(*message) == RegulatorReceipt(ulid(1), test_regulator)
    assert stub.sent == [request_sent] * 2
    stub.answer = regulator_pb.ReportStagesResponse(transaction_id=ulid(2))
    with pytest.raises(RegulatorUnavailableError) as unknown:
        await getattr(client, method)(*message)
    assert unknown.value.metadata == {"contradiction": "transaction_id"}
    name = "".join(part.capitalize() for part in method.split("_"))
    assert reported == [("peer", name, ulid(1), "transaction_id")]


async def test_an_id_is_taken_where_it_is_one_and_names_its_request(
    regulator: tuple[GrpcRegulator, Stub], reported: list[Any]
) -> None:
    client, stub = regulator
    opened = regulator_pb.OpenSessionRequest(
        attempt_id=ATTEMPT, transaction_id=ulid(1), reference="session-1", operator="op", jurisdiction="demo",
        ruleset="uth-classic", currency="EUR", participation_cap_minor=1000, open_time=NOW,
    )  # fmt: skip
    bought = regulator_pb.BuyParticipationRequest(
        attempt_id=ATTEMPT, transaction_id=ulid(1), regulator_session_id=SESSION, reference="participation-1",
        player="anna", purchase_no=1, amount_minor=500, purchase_time=NOW,
    )  # fmt: skip

    async def both(transaction_id: str, issued: str, *, is_test: bool) -> list[Any]:
        found: list[Any] = []
        answers: list[Message] = [
            regulator_pb.OpenSessionResponse(
                transaction_id=transaction_id, regulator_session_id=issued, test_regulator=is_test
            ),
            regulator_pb.BuyParticipationResponse(
                transaction_id=transaction_id, regulator_participation_id=issued, test_regulator=is_test
            ),
        ]
        calls: list[Callable[[], Awaitable[Any]]] = [
            lambda: client.open_session(opening(ulid(1))),
            lambda: client.buy_participation(purchase(ulid(1), SESSION)),
        ]
        for answer, call in zip(answers, calls, strict=True):
            stub.answer = answer
            try:
                found.append(await call())
            except RegulatorUnavailableError as unknown:
                found.append(unknown.metadata["contradiction"])
        return found

    for is_test in (True, False):
        assert await both(ulid(1), PARTICIPATION, is_test=is_test) == [
            RegulatorSession(PARTICIPATION, is_test),
            RegulatorParticipation(PARTICIPATION, is_test),
        ]
    assert stub.sent == [opened, bought] * 2
    assert await both(ulid(2), PARTICIPATION, is_test=True) == ["transaction_id"] * 2
    assert await both(ulid(1), "m" * 16, is_test=True) == ["regulator_session_id", "regulator_participation_id"]
    assert reported == [
        ("peer", "OpenSession", ulid(1), "transaction_id"),
        ("peer", "BuyParticipation", ulid(1), "transaction_id"),
        ("peer", "OpenSession", ulid(1), "regulator_session_id"),
        ("peer", "BuyParticipation", ulid(1), "regulator_participation_id"),
    ]


async def test_a_further_purchase_has_the_participation_of_the_first(
    regulator: tuple[GrpcRegulator, Stub], reported: list[tuple[str, ...]]
) -> None:
    client, stub = regulator
    stub.answer = regulator_pb.BuyParticipationResponse(
        transaction_id=ulid(1), regulator_participation_id=PARTICIPATION, test_regulator=True
    )
    bought = RegulatorParticipation(PARTICIPATION, test_regulator=True)
    for issued in ("", PARTICIPATION):
        assert await client.buy_participation(purchase(ulid(1), SESSION), issued) == bought
    with pytest.raises(RegulatorUnavailableError) as unknown:
        await client.buy_participation(purchase(ulid(1), SESSION), "N" + "0" * 14 + "1")
    assert unknown.value.metadata == {"contradiction": "regulator_participation_id"}
    assert reported == [("peer", "BuyParticipation", ulid(1), "regulator_participation_id")]


async def test_a_refusal_of_the_regulator_keeps_the_facts_that_the_contract_knows(
    regulator: tuple[GrpcRegulator, Stub],
) -> None:
    client, stub = regulator
    facts = {"field": "stages", "limit": "3", "value": "5", "index": "0", "mood": "bad"}
    stub.answer = refusal(grpc.StatusCode.FAILED_PRECONDITION, "rgs.regulator.v1", "STAGE_GAP", **facts)
    with pytest.raises(RegulatorRefusedError, match="no") as refused:
        await client.report_stages(ulid(1), [STAGE])
    assert refused.value.field == "stages"
    assert refused.value.metadata == {"rejection": "STAGE_GAP", "limit": "3", "value": "5", "index": "0"}


async def test_a_transaction_that_stands_with_other_data_is_reported(
    regulator: tuple[GrpcRegulator, Stub], reported: list[tuple[str, ...]]
) -> None:
    client, stub = regulator
    for code, reason in (
        (grpc.StatusCode.ALREADY_EXISTS, "STAGE_CONFLICT"),
        (grpc.StatusCode.ALREADY_EXISTS, "TRANSACTION_CONFLICT"),
    ):
        stub.answer = refusal(code, "rgs.regulator.v1", reason)
        with pytest.raises(RgsError):
            await client.report_stages(ulid(1), [STAGE])
    assert reported == [("peer", "ReportStages", ulid(1), "TRANSACTION_CONFLICT")]


@pytest.mark.parametrize(("seconds", "known"), [(0, {}), (2, {"retry_after_ms": "2000"})])
async def test_an_alignment_that_runs_means_later(
    regulator: tuple[GrpcRegulator, Stub], seconds: int, known: dict[str, str]
) -> None:
    client, stub = regulator
    wait = [RetryInfo(retry_delay=Duration(seconds=seconds))] if seconds else []
    stub.answer = refusal(grpc.StatusCode.UNAVAILABLE, "rgs.regulator.v1", "ALIGNMENT_RUNNING", *wait)
    with pytest.raises(RegulatorUnavailableError, match="no") as later:
        await client.align_day(DAY)
    assert later.value.metadata == {"rejection": "ALIGNMENT_RUNNING", **known}
    assert client.reading().unknown == 0, "it is an answer"
