"""How the answer of a peer over gRPC is read: a refusal is one only where everything about it agrees."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from structlog.testing import capture_logs

from rgs.adapters.grpc.peer import DETAILS, Peer, PeerContract, PeerSettings, RefusalRow
from rgs.core.errors import WalletUnavailableError
from tests.support.api.harness import authority, operator_certificate

DOMAIN = "wallet.example"
STATE, LIMIT = grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.RESOURCE_EXHAUSTED
REFUSALS = {
    "NO_FUNDS": RefusalRow(STATE, "no funds", frozenset({"Debit"})),
    "BUSY": RefusalRow(LIMIT, "later"),
}
INFO = ErrorInfo(reason="NO_FUNDS", domain=DOMAIN, metadata={"left": "7"})


def packed(*details: Any) -> list[AnyMessage]:
    found = []
    for detail in details:
        found.append(AnyMessage())
        found[-1].Pack(detail)
    return found


def failed(code: grpc.StatusCode, status: Status | None, *others: tuple[str, bytes]) -> grpc.aio.AioRpcError:
    trailing = [(DETAILS, status.SerializeToString())] if status is not None else []
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*others, *trailing), "words of gRPC")


@pytest.fixture
async def peer() -> Any:
    client = operator_certificate()
    settings = PeerSettings("localhost:1", authority().certificate_pem, client.certificate_pem, client.key_pem)
    made = Peer(
        "wallet",
        settings,
        PeerContract(DOMAIN, REFUSALS, WalletUnavailableError),
        now_ms=lambda: 0,
    )

    async def raising(error: grpc.aio.AioRpcError, method: str = "Debit") -> BaseException:
        """What a call that ends in this error raises."""

        async def answer(_request: Any, timeout: float) -> Any:  # noqa: ASYNC109 - as gRPC names it
            assert timeout == 3.0
            raise error

        with pytest.raises(Exception) as caught:  # noqa: PT011 - returned to be looked at
            await made.call(answer, method, Status(), lambda _: "")
        return caught.value

    yield raising
    await made.close()


def status_of(code: grpc.StatusCode, *details: Any, message: str = "no") -> Status:
    return Status(code=code.value[0], message=message, details=packed(*details))


async def test_a_refusal_carries_reason_words_facts_and_when_to_ask_again(peer: Any) -> None:
    wait = RetryInfo(retry_delay=Duration(seconds=2, nanos=500_000_000))
    for details in ((INFO, wait), (wait, INFO)):
        refused = await peer(failed(STATE, status_of(STATE, *details), ("x-other", b"1")))
        assert type(refused).__name__ == "RefusedError"
        assert (refused.reason, refused.message, refused.metadata) == ("NO_FUNDS", "no", {"left": "7"})
        assert refused.retry_after_ms == 2_500
    refused = await peer(failed(STATE, status_of(STATE, INFO)))
    assert refused.retry_after_ms == 0


@pytest.mark.parametrize("reported", [code for code in grpc.StatusCode if code is not STATE])
async def test_a_status_of_another_code_than_the_calls_is_no_refusal(peer: Any, reported: grpc.StatusCode) -> None:
    """Planted: the table knows the reason under the call's code, but the peer's own status says another one."""
    unknown = await peer(failed(STATE, status_of(reported, INFO)))
    assert isinstance(unknown, WalletUnavailableError)
    assert unknown.metadata == {"code": "FAILED_PRECONDITION"}
    assert str(unknown) == "wallet did not answer Debit: FAILED_PRECONDITION"


@pytest.mark.parametrize(
    "status",
    [
        None,
        status_of(STATE),
        status_of(STATE, INFO, INFO),
        status_of(STATE, INFO, ErrorInfo(reason="BUSY", domain=DOMAIN)),
        status_of(STATE, ErrorInfo(reason="NO_FUNDS", domain="wallet.exampleX")),
        status_of(STATE, ErrorInfo(reason="NO_MOOD", domain=DOMAIN)),
        status_of(STATE, ErrorInfo(reason="BUSY", domain=DOMAIN)),
    ],
    ids=["nothing", "no info", "twice", "two", "another domain", "unknown", "under another code"],
)
async def test_what_the_contract_does_not_say_like_this_is_unknown(peer: Any, status: Status | None) -> None:
    assert isinstance(await peer(failed(STATE, status)), WalletUnavailableError)


async def test_a_reason_of_another_method_is_unknown_and_one_of_all_methods_is_read_from_each(peer: Any) -> None:
    assert isinstance(await peer(failed(STATE, status_of(STATE, INFO)), "Credit"), WalletUnavailableError)
    busy = status_of(LIMIT, ErrorInfo(reason="BUSY", domain=DOMAIN))
    for method in ("Debit", "Credit"):
        assert (await peer(failed(LIMIT, busy), method)).reason == "BUSY"


async def test_no_more_than_so_much_of_a_peers_words_is_kept(peer: Any) -> None:
    long = ErrorInfo(reason="NO_FUNDS", domain=DOMAIN, metadata={"k" * 201: "v" * 201})
    refused = await peer(failed(STATE, status_of(STATE, long, message="m" * 201)))
    assert refused.message == "m" * 200
    assert refused.metadata == {"k" * 200: "v" * 200}


async def made(**other: Any) -> Peer:
    client = operator_certificate()
    settings = PeerSettings("localhost:1", authority().certificate_pem, client.certificate_pem, client.key_pem, **other)
    return Peer("wallet", settings, PeerContract(DOMAIN, REFUSALS, WalletUnavailableError), now_ms=lambda: 0)


async def test_a_caller_who_is_cancelled_is_cancelled_and_the_call_is_unknown() -> None:
    peer, begun = await made(), asyncio.Event()

    async def waiting(_request: Any, timeout: float) -> Any:  # noqa: ASYNC109 - as gRPC names it
        begun.set()
        await asyncio.sleep(60)

    task: asyncio.Task[Any] = asyncio.create_task(peer.call(waiting, "Debit", Status(), lambda _: ""))
    await begun.wait()
    assert peer.reading().in_flight == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (peer.reading().in_flight, peer.reading().unknown, peer.reading().name) == (0, 1, "wallet")
    await peer.close()


async def test_a_call_that_the_channel_drops_is_unavailable_and_so_is_one_after_the_close() -> None:
    peer = await made()

    async def dropped(_request: Any, timeout: float) -> Any:  # noqa: ASYNC109 - as gRPC names it
        raise asyncio.CancelledError

    for _ in range(2):
        with pytest.raises(WalletUnavailableError, match="wallet is closed") as unknown:
            await peer.call(dropped, "Debit", Status(), lambda _: "")
        assert unknown.value.metadata == {"code": "CANCELLED"}
        await peer.close()
    assert peer.reading().unknown == 1, "behind the close nothing is sent"


async def test_a_contradiction_is_a_line_in_the_log() -> None:
    peer = await made()

    async def answer(_request: Any, timeout: float) -> Any:  # noqa: ASYNC109 - as gRPC names it
        return Status()

    with capture_logs() as lines, pytest.raises(WalletUnavailableError) as unknown:
        await peer.call(answer, "Debit", Status(), lambda _: "player", transaction_id="t-1")
    assert lines == [
        {
            "event": "peer_contradiction",
            "log_level": "error",
            "method": "Debit",
            "peer": "wallet",
            "transaction_id": "t-1",
            "what": "player",
        }
    ]
    assert unknown.value.metadata == {"contradiction": "player"}
    assert peer.reading().unknown == 1
    await peer.close()


@pytest.mark.parametrize(("deadline_ms", "timeout_s"), [(3_000, 3.0), (1, 0.001), (250, 0.25)])
async def test_the_deadline_is_that_of_the_settings(deadline_ms: int, timeout_s: float) -> None:
    peer, seen = await made(deadline_ms=deadline_ms), []

    async def answer(_request: Any, timeout: float) -> Any:  # noqa: ASYNC109 - as gRPC names it
        seen.append(timeout)
        return Status()

    assert await peer.call(answer, "Debit", Status(), lambda _: "") == Status()
    assert seen == [timeout_s]
    assert peer.reading().unknown == 0
    await peer.close()


async def test_a_status_that_is_no_message_is_unknown(peer: Any) -> None:
    assert isinstance(await peer(failed(STATE, None, (DETAILS, b"\xff\xff"))), WalletUnavailableError)
