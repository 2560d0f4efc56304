"""Calls and streams at the wire, over mutual TLS, with answers of the test's choice behind them."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from rgs.api.calls import Calls
from rgs.api.endpoint import MESSAGE_BYTES_MAX
from rgs.core.errors import DeadlineTooShortError, RoundNotOpenError, UnavailableError
from rgs.node.clock import SystemClock
from rgs.node.pki import issue_client
from rgs.service.callers import Caller, Role
from rgs.v1 import play_pb2
from tests.support.api.client import refused
from tests.support.api.harness import (
    HOUR_MS,
    authority,
    channel_of,
    entropy,
    info_in,
    operator_certificate,
    reason_in,
    small,
    status_in,
    versions,
)
from tests.support.api.views import REQUEST_ID, ROUND_ID, SESSION_ID

ACT = "/rgs.v1.PlayService/Act"
REQUEST = play_pb2.ActRequest(request_id=REQUEST_ID, session_id=SESSION_ID, round_id=ROUND_ID, round_version=1)
SECRET = "5a17ba11" * 8


def act(nth: int) -> play_pb2.PlayRequest:
    return play_pb2.PlayRequest(act=play_pb2.ActRequest(request_id=f"r{nth}", round_version=nth))


# --- unary ------------------------------------------------------------------------------------------------------------


async def test_a_call_reaches_its_method_with_its_caller() -> None:
    seen = []

    async def answer(caller: Caller, message: Any) -> bytes:
        seen.append((caller, message))
        return b"\x12\x00"

    async with small(Act=answer) as harness:
        assert await harness.unary(ACT)(REQUEST.SerializeToString()) == b"\x12\x00"  # without a deadline
    assert seen == [(Caller("op1", Role.OPERATOR, "demo"), REQUEST)]


async def test_an_error_of_the_service_is_a_status() -> None:
    async def answer(_caller: Caller, _message: Any) -> bytes:
        raise RoundNotOpenError("the round is settled", round_id=ROUND_ID)

    async with small(Act=answer) as harness:
        error = await refused(harness.unary(ACT)(b""))
    assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
    info = info_in(status_in(error))
    assert (info.reason, dict(info.metadata)) == ("ROUND_NOT_OPEN", {"round_id": ROUND_ID})
    assert harness.logs == []


async def test_a_fault_of_the_service_tells_nothing_of_it() -> None:
    async def answer(_caller: Caller, _message: Any) -> bytes:
        salt = SECRET
        raise RuntimeError(salt)

    async with small(Act=answer) as harness:
        error = await refused(harness.unary(ACT)(REQUEST.SerializeToString()))
        assert await harness.unary("/rgs.v1.PlayService/GetRound")(b"") == b""  # and the server goes on
    info = info_in(status_in(error))
    assert (error.code(), info.reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")
    (line,) = harness.logs
    assert (line["incident"], line["request_id"]) == (info.metadata["incident"], REQUEST_ID)
    assert SECRET not in f"{error} {harness.logs}"


@pytest.mark.parametrize(
    ("data", "reason"), [(b"\xff", "INVALID_FIELD"), (b"\x08\x01", "UNKNOWN_FIELD"), (b"\xf8\x07\x01", "UNKNOWN_FIELD")]
)
async def test_bytes_that_are_not_the_request(data: bytes, reason: str) -> None:
    async with small() as harness:
        error = await refused(harness.unary(ACT)(data))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert reason_in(status_in(error)) == reason


async def test_a_request_that_is_too_large() -> None:
    fits = play_pb2.ActRequest(request_id="x" * (MESSAGE_BYTES_MAX - 4)).SerializeToString()
    assert len(fits) == MESSAGE_BYTES_MAX
    async with small() as harness:
        assert await harness.unary(ACT)(fits) == b""
        error = await refused(harness.unary(ACT)(fits + b"\x12\x00"))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_more_calls_at_once_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rgs.api.endpoint.CALLS_MAX", 2)
    async with small() as harness:
        streams = [harness.stream() for _ in range(2)]
        for stream in streams:
            await stream.write(play_pb2.PlayRequest(get_round=play_pb2.GetRoundRequest()))
            assert (await stream.read()).WhichOneof("response") == "get_round"
        error = await refused(harness.unary(ACT)(b""))
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        await streams[0].done_writing()
        assert await streams[0].read() is grpc.aio.EOF
        assert await harness.unary(ACT)(b"") == b""


async def test_a_method_that_is_none() -> None:
    async with small() as harness:
        error = await refused(harness.unary("/rgs.v1.PlayService/Peek")(b""))
    assert error.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_call_whose_time_is_up_does_nothing() -> None:
    class Call:
        def __init__(self, left_s: float | None) -> None:
            self.left_s = left_s

        def time_remaining(self) -> float | None:
            return self.left_s

    async with small() as harness:
        pem = operator_certificate().certificate_pem
        call: Any
        for call in (Call(None), Call(0.001)):
            assert harness.calls.admit(pem, ACT.removeprefix("/"), call).party == "op1"
        for call in (Call(0.0), Call(-0.5)):
            with pytest.raises(DeadlineTooShortError):
                harness.calls.admit(pem, ACT.removeprefix("/"), call)


async def test_a_deadline_that_passes_while_the_service_works_is_told_by_grpc() -> None:
    released = asyncio.Event()

    async def answer(_caller: Caller, _message: Any) -> bytes:
        await released.wait()
        return b""

    async with small(Act=answer) as harness:
        error = await refused(harness.unary(ACT)(b"", timeout=0.2))
        assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await asyncio.wait_for(harness.calls.finished(), 5)
    assert harness.calls.under_way == 0
    assert harness.logs == []


# --- who --------------------------------------------------------------------------------------------------------------


async def test_without_a_certificate_there_is_no_connection() -> None:
    async with small() as harness:
        channel: Any = channel_of(harness.endpoint.port, None)
        error = await refused(channel.unary_unary(ACT)(b"", timeout=5))
        await channel.close()
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert not error.trailing_metadata()


async def test_a_certificate_that_the_list_does_not_know() -> None:
    stranger = issue_client(authority(), Role.OPERATOR, "op1", entropy().read, SystemClock().now_ms())
    async with small() as harness:
        channel: Any = channel_of(harness.endpoint.port, stranger)
        error = await refused(channel.unary_unary(ACT)(b""))
        await channel.close()
    assert error.code() is grpc.StatusCode.UNAUTHENTICATED
    assert reason_in(status_in(error)) == "CERTIFICATE_NOT_ALLOWED"


async def test_a_removed_or_expired_certificate_on_an_open_connection() -> None:
    async with small() as harness:
        call = harness.unary(ACT)
        assert await call(b"") == b""
        harness.clock.ahead_ms = 366 * 24 * HOUR_MS
        assert (await refused(call(b""))).code() is grpc.StatusCode.UNAUTHENTICATED
        harness.clock.ahead_ms = 0
        assert await call(b"") == b""
        harness.parties.rows, harness.parties.count = [], 1
        await harness.gate.refresh()
        assert (await refused(call(b""))).code() is grpc.StatusCode.UNAUTHENTICATED


# --- the stream -------------------------------------------------------------------------------------------------------


async def test_answers_come_in_the_order_of_the_requests_and_errors_among_them() -> None:
    async def answer(caller: Caller, message: Any) -> bytes:
        await asyncio.sleep(0.02 if message.round_version % 2 else 0)  # the later one would be done first
        if message.round_version == 3:
            raise RoundNotOpenError("no", round_id=ROUND_ID)
        return await versions(caller, message)

    async with small(Act=answer) as harness:
        stream = harness.stream()
        for nth in range(1, 7):
            await stream.write(act(nth))
        await stream.done_writing()
        answers = [answer async for answer in stream]
        assert await stream.code() is grpc.StatusCode.OK
    assert [answer.request_id for answer in answers] == [f"r{nth}" for nth in range(1, 7)]
    assert [answer.act.round.round_version for answer in answers] == [1, 2, 0, 4, 5, 6]
    assert [answer.WhichOneof("response") for answer in answers] == ["act", "act", "error", "act", "act", "act"]
    assert reason_in(answers[2].error) == "ROUND_NOT_OPEN"
    assert answers[2].error.code == grpc.StatusCode.FAILED_PRECONDITION.value[0]


async def test_each_of_the_three_requests_gets_its_own_answer() -> None:
    async def start(_caller: Caller, message: Any) -> bytes:
        return play_pb2.StartRoundResponse(opening=message.request_id.encode()).SerializeToString()

    async def get(_caller: Caller, message: Any) -> bytes:
        return play_pb2.GetRoundResponse(final=message.round_id.encode()).SerializeToString()

    async with small(StartRound=start, Act=versions, GetRound=get) as harness:
        stream = harness.stream()
        answers = []
        for request in (
            play_pb2.PlayRequest(start_round=play_pb2.StartRoundRequest(request_id="s")),
            act(7),
            play_pb2.PlayRequest(get_round=play_pb2.GetRoundRequest(round_id="g")),
        ):
            await stream.write(request)
            answers.append(await stream.read())
        await stream.done_writing()
    acted = play_pb2.ActResponse()
    acted.round.round_version = 7
    expected = [
        play_pb2.PlayResponse(request_id="s", start_round=play_pb2.StartRoundResponse(opening=b"s")),
        play_pb2.PlayResponse(request_id="r7", act=acted),
        play_pb2.PlayResponse(get_round=play_pb2.GetRoundResponse(final=b"g")),
    ]
    assert answers == expected


UNKNOWN = b"\xf8\x07\x01"


@pytest.mark.parametrize(
    ("data", "request_id", "reason"),
    [
        (b"", "", "INVALID_FIELD"),
        (b"\xff", "", "INVALID_FIELD"),
        (UNKNOWN, "", "UNKNOWN_FIELD"),
        (b"\x12\x07\x0a\x02r9" + UNKNOWN, "r9", "UNKNOWN_FIELD"),
        (b"\x1a\x03" + UNKNOWN, "", "UNKNOWN_FIELD"),
    ],
)
async def test_what_is_no_request_is_answered_in_band(data: bytes, request_id: str, reason: str) -> None:
    async with small(Act=versions) as harness:
        stream = harness.stream()
        await stream.write(data)
        result = await stream.read()
        await stream.write(act(5))
        after = await stream.read()
        await stream.done_writing()
    assert (result.request_id, reason_in(result.error)) == (request_id, reason)
    assert result.error.code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert after.act.round.round_version == 5


async def test_a_fault_is_answered_in_band_and_logged() -> None:
    async def answer(_caller: Caller, message: Any) -> bytes:
        raise KeyError(message.round_version)

    async with small(Act=answer) as harness:
        stream = harness.stream()
        await stream.write(act(1))
        result = await stream.read()
        await stream.done_writing()
    assert (result.request_id, reason_in(result.error)) == ("r1", "INTERNAL")
    assert [line["request_id"] for line in harness.logs] == ["r1"]


async def test_a_stream_of_a_caller_who_is_removed_ends_with_his_next_message() -> None:
    async with small(Act=versions) as harness:
        stream = harness.stream()
        await stream.write(act(1))
        assert (await stream.read()).act.round.round_version == 1
        while not harness.calls._waiting:  # noqa: ASYNC110 - the server waits for the next message before the caller is removed
            await asyncio.sleep(0.001)
        harness.parties.rows, harness.parties.count = [], 1
        await harness.gate.refresh()
        await stream.write(act(2))
        answers: list[Any] = []

        async def read_on() -> None:
            while True:
                answers.append(await stream.read())

        error = await refused(read_on())
        # gRPC's client lets the status overtake a message that came just before it, once in a few hundred times.
        assert [(result.request_id, reason_in(result.error)) for result in answers] in (
            [],
            [("r2", "CERTIFICATE_NOT_ALLOWED")],
        )
        assert error.code() is grpc.StatusCode.UNAUTHENTICATED
        assert reason_in(status_in(error)) == "CERTIFICATE_NOT_ALLOWED"


async def test_a_stranger_gets_no_stream() -> None:
    stranger = issue_client(authority(), Role.OPERATOR, "op1", entropy().read, SystemClock().now_ms())
    async with small(Act=versions) as harness:
        channel: Any = channel_of(harness.endpoint.port, stranger)
        stream = channel.stream_stream("/rgs.v1.PlayService/Play")()
        error = await refused(stream.read())
        await channel.close()
    assert error.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_a_client_that_does_not_read_is_not_read_from() -> None:
    taken = 0

    async def answer(_caller: Caller, _message: Any) -> bytes:
        nonlocal taken
        taken += 1
        return play_pb2.ActResponse(final=b"x" * 30_000).SerializeToString()

    async with small(Act=answer) as harness:
        stream = harness.stream()

        async def write() -> None:
            for nth in range(2_000):
                await stream.write(act(nth))

        writing = asyncio.create_task(write())
        before = -1
        while not taken or taken != before:  # until nothing more is taken
            before = taken
            await asyncio.sleep(0.3)
        assert 0 < taken < 1_000
        assert harness.calls.under_way == 1
        for _ in range(100):
            assert (await stream.read()).WhichOneof("response") == "act"
        await asyncio.sleep(0.1)
        assert taken > before
        writing.cancel()
        stream.cancel()
        await asyncio.gather(writing, return_exceptions=True)


async def test_a_client_that_goes_away_is_no_fault() -> None:
    working, released = asyncio.Event(), asyncio.Event()

    async def answer(caller: Caller, message: Any) -> bytes:
        working.set()
        await released.wait()
        return await versions(caller, message)

    async with small(Act=answer) as harness:
        idle, busy = harness.stream(), harness.stream()
        await idle.write(play_pb2.PlayRequest(get_round=play_pb2.GetRoundRequest()))
        assert (await idle.read()).WhichOneof("response") == "get_round"
        await busy.write(act(1))
        await asyncio.wait_for(working.wait(), 5)
        idle.cancel()
        busy.cancel()
        released.set()
        await asyncio.wait_for(harness.calls.finished(), 5)
        await harness.unary("/rgs.v1.PlayService/GetRound")(b"")
    assert harness.logs == []


# --- the end ----------------------------------------------------------------------------------------------------------


async def test_a_draining_server_answers_what_is_under_way_and_ends_what_waits() -> None:
    arrived, released = asyncio.Semaphore(0), asyncio.Event()

    async def answer(caller: Caller, message: Any) -> bytes:
        arrived.release()
        await released.wait()
        return await versions(caller, message)

    async with small(Act=answer) as harness:
        idle, busy = harness.stream(), harness.stream()
        await idle.write(play_pb2.PlayRequest(get_round=play_pb2.GetRoundRequest()))
        assert (await idle.read()).WhichOneof("response") == "get_round"
        await busy.write(act(2))
        unary = asyncio.ensure_future(harness.unary(ACT)(b"\x20\x09"))
        await asyncio.wait_for(asyncio.gather(arrived.acquire(), arrived.acquire()), 5)
        stopping = asyncio.create_task(harness.endpoint.stop(5))
        error = await refused(idle.read())
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert reason_in(status_in(error)) == "UNAVAILABLE"
        assert not stopping.done()
        released.set()
        assert (await busy.read()).act.round.round_version == 2
        error = await refused(busy.read())
        assert reason_in(status_in(error)) == "UNAVAILABLE"
        assert play_pb2.ActResponse.FromString(await unary).round.round_version == 9
        await asyncio.wait_for(stopping, 5)
        assert harness.calls.under_way == 0
        assert (await refused(harness.unary(ACT)(b"", timeout=2))).code() in (
            grpc.StatusCode.UNAVAILABLE,
            grpc.StatusCode.DEADLINE_EXCEEDED,
        )


async def test_what_is_not_answered_within_the_grace_is_cancelled() -> None:
    arrived, cancelled = asyncio.Event(), asyncio.Event()

    async def answer(_caller: Caller, _message: Any) -> bytes:
        arrived.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return b""

    async with small(Act=answer) as harness:
        unary = asyncio.ensure_future(harness.unary(ACT)(b""))
        await asyncio.wait_for(arrived.wait(), 5)
        await asyncio.wait_for(harness.endpoint.stop(0.2), 5)
        assert cancelled.is_set()
        assert harness.calls.under_way == 0
        assert (await refused(unary)).code() in (grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE)


def bare_calls() -> Calls:
    """Nobody calls: what is counted and awaited is the test's."""
    return Calls(Any, Any, Any)  # type: ignore[arg-type]


async def test_a_stopping_server_waits_by_its_own_count() -> None:
    async with small() as harness:
        harness.calls.begin()
        harness.calls.begin()
        stopping = asyncio.create_task(harness.endpoint.stop(5))
        for _ in range(2):
            await asyncio.sleep(0.1)
            assert not stopping.done()
            harness.calls.end("x.Service/Method", "OK", 0.0)
        await asyncio.wait_for(stopping, 2)


async def test_nothing_is_finished_while_something_is_under_way() -> None:
    calls = bare_calls()
    await asyncio.wait_for(calls.finished(), 1)
    calls.begin()
    calls.begin()
    calls.end("x.Service/Method", "OK", 0.0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(calls.finished(), 0.05)
    calls.end("x.Service/Method", "OK", 0.0)
    await asyncio.wait_for(calls.finished(), 1)


async def test_a_wait_ends_as_what_ended_it() -> None:
    """With what came, with the cancellation of a client that went away, or told that the server drains."""
    calls = bare_calls()

    async def come() -> str:
        return "come"

    async def waiting() -> int:
        with pytest.raises(UnavailableError):
            await calls.wait_for(asyncio.Event().wait)
        return asyncio.current_task().cancelling()  # type: ignore[union-attr]

    assert await calls.wait_for(come) == "come"
    gone, result = asyncio.create_task(waiting()), asyncio.create_task(waiting())
    await asyncio.sleep(0)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    calls.drain()
    assert await result == 0  # and the task is no longer one that is being cancelled
    with pytest.raises(UnavailableError):
        await calls.wait_for(come)
