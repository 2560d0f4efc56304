"""What is told of each call that has ended, with a trace and without: its ids, its reason, and how long it took."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Any

import grpc
import pytest

from rgs.adapters.grpc.peer import Peer, PeerCall, PeerContract, PeerSettings
from rgs.core.errors import WalletUnavailableError
from rgs.observe.traces import CURRENT, Span, SpanKind, Tracer
from rgs.wallet.v1 import wallet_pb2 as pb
from tests.support.api.harness import authority, operator_certificate
from tests.unit.adapters.grpc.test_peer_reading import DOMAIN, INFO, REFUSALS, STATE, failed, status_of

ANSWER = pb.DebitResponse(receipt=pb.Receipt(player="anna"))
CALLER = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"


class Watched:
    """A peer whose calls and spans are kept. `answer` is what it gives, or raises."""

    def __init__(self) -> None:
        own = operator_certificate()
        settings = PeerSettings("localhost:1", authority().certificate_pem, own.certificate_pem, own.key_pem)
        self.peer = Peer("wallet", settings, PeerContract(DOMAIN, REFUSALS, WalletUnavailableError), now_ms=lambda: 0)
        self.calls: list[PeerCall] = []
        self.spans: list[Span] = []
        self.metadata: list[Any] = []
        self.answer: Any = ANSWER
        self.wrong = ""
        self.peer.on_call = self.calls.append

    async def _answer(self, _request: Any, timeout: float, metadata: Any = None) -> Any:  # noqa: ASYNC109
        assert timeout == 3.0
        self.metadata.append(metadata)
        await asyncio.sleep(0.01)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    async def debit(self) -> Any:
        request = pb.DebitRequest(attempt_id="attempt-1")
        return await self.peer.call(self._answer, "Debit", request, lambda _: self.wrong, transaction_id="t-1")

    def trace(self) -> None:
        """Trace what this task does from here on."""
        self.peer.tracer = Tracer(bytes(24), lambda: 5, lambda: 0.0, self.spans.append)
        self.peer.tracer.enter(CALLER)


@pytest.fixture
async def watched() -> Any:
    made = Watched()
    before = CURRENT.set(None)
    yield made
    CURRENT.reset(before)
    await made.peer.close()


ENDS: list[tuple[Any, str, str]] = [
    (ANSWER, "", "OK"),
    (ANSWER, "player", "CONTRADICTION"),
    (None, "", "CONTRADICTION"),
    (failed(STATE, status_of(STATE, INFO)), "", "NO_FUNDS"),
    (failed(STATE, None), "", "FAILED_PRECONDITION"),
    (failed(grpc.StatusCode.UNAVAILABLE, None), "", "UNAVAILABLE"),
    (asyncio.CancelledError(), "", "CANCELLED"),
]


@pytest.mark.parametrize("is_traced", [False, True])
@pytest.mark.parametrize(("answer", "wrong", "reason"), ENDS, ids=[f"{row[2]}-{row[1]}" for row in ENDS])
async def test_each_end_of_a_call_is_told_by_its_reason(
    watched: Watched, *, answer: Any, wrong: str, reason: str, is_traced: bool
) -> None:
    watched.answer, watched.wrong = answer, wrong
    if is_traced:
        watched.trace()
    if reason == "OK":
        assert await watched.debit() == ANSWER
    else:
        with pytest.raises(Exception, match=r"no|wallet") as caught:
            await watched.debit()
        assert isinstance(caught.value, WalletUnavailableError) == (reason != "NO_FUNDS")
    (call,) = watched.calls
    assert 0.005 < call.passed_s < 60
    assert call == PeerCall("wallet", "Debit", "t-1", "attempt-1", reason, call.passed_s)
    assert watched.peer.reasons == {("Debit", reason): 1}
    assert {name: sum(times.counts) for name, times in watched.peer.times.items()} == {"Debit": 1}
    assert watched.peer.times["Debit"].total == call.passed_s
    if not is_traced:
        assert watched.metadata == [None]
        return
    (span,) = watched.spans
    assert (span.name, span.kind, span.reason) == ("Debit", SpanKind.CLIENT, reason)
    assert span.attributes == {"rgs.peer": "wallet", "rgs.transaction_id": "t-1"}
    assert watched.metadata == [(("traceparent", f"00-{'a' * 32}-{span.context.span_id}-01"),)]


async def test_an_answer_and_a_refusal_keep_the_circuit_closed_and_silence_opens_it(watched: Watched) -> None:
    for answer in (ANSWER, failed(STATE, status_of(STATE, INFO))):
        watched.answer = answer
        for _ in range(6):
            with pytest.raises(Exception, match="no") if answer is not ANSWER else nullcontext():
                await watched.debit()
        assert (watched.peer.reading().unknown, watched.peer.reading().state) == (0, "closed")
    assert watched.peer.reasons == {("Debit", "OK"): 6, ("Debit", "NO_FUNDS"): 6}
    watched.answer = failed(grpc.StatusCode.UNAVAILABLE, None)
    for _ in range(6):
        with pytest.raises(WalletUnavailableError):
            await watched.debit()
    assert watched.peer.reading().state == "open"
    assert watched.peer.reasons["Debit", "UNAVAILABLE"] == 5
    assert watched.peer.reasons["Debit", "NOT_SENT"] == 1
    assert (len(watched.metadata), sum(watched.peer.times["Debit"].counts)) == (17, 18)


async def test_a_tracer_that_is_not_within_a_traced_call_adds_nothing(watched: Watched) -> None:
    watched.peer.tracer = Tracer(bytes(24), lambda: 5, lambda: 0.0, watched.spans.append)
    assert await watched.debit() == ANSWER
    watched.answer = failed(STATE, status_of(STATE, INFO))
    with pytest.raises(Exception, match="no"):
        await watched.debit()
    assert (watched.spans, watched.metadata) == ([], [None, None])


async def test_a_caller_who_is_cancelled_is_told_as_such(watched: Watched) -> None:
    watched.answer = ANSWER
    task = asyncio.create_task(watched.debit())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [call.reason for call in watched.calls] == ["CANCELLED"]


async def test_a_closed_peer_sends_nothing_and_says_so(watched: Watched) -> None:
    await watched.peer.close()
    with pytest.raises(WalletUnavailableError, match="wallet is closed") as caught:
        await watched.debit()
    assert caught.value.metadata == {"code": "CANCELLED"}
    assert (watched.metadata, watched.peer.reasons) == ([], {("Debit", "CANCELLED"): 1})
