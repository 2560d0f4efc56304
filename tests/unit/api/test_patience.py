"""Clients that keep the server waiting, and connections that no gRPC library would make: each is ended or bounded, and
others go on. The times are the test's: nothing waits for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from rgs.api import endpoint
from rgs.api.calls import ServerStream
from rgs.api.quotas import PartyLimits
from rgs.core.rounds import RoundStatus
from rgs.service.callers import Caller, Role
from rgs.service.play.notices import Notice
from rgs.store.changes import Change
from rgs.v1 import play_pb2, table_pb2
from tests.support.api import frames
from tests.support.api.client import refused
from tests.support.api.harness import (
    Small,
    authority,
    channel_of,
    operator_certificate,
    other_certificate,
    reason_in,
    server_certificate,
    small,
    status_in,
    versions,
)
from tests.support.api.views import ROUND_ID, SESSION_ID
from tests.support.store.shelf import session
from tests.support.waiting import until
from tests.unit.api.test_calls import ACT, act

LARGE = play_pb2.ActResponse(final=b"x" * 30_000).SerializeToString()
LIMITS = PartyLimits(stall_s=60, idle_s=3_600)
OP1 = Caller("op1", Role.OPERATOR, "demo")


async def large(_caller: Caller, _message: Any) -> bytes:
    return LARGE


async def unread(harness: Small) -> Any:
    """A stream that was asked until its answers filled everything between the two sides. Its client does not write any
    more: a write that the end of the stream cuts off would end it with what gRPC says of that.
    """
    stream = harness.stream()
    for nth in range(500):  # some 20 KB: they find room on the way, whether the server reads them or not
        await asyncio.wait_for(stream.write(act(nth)), 20)
    await until_stuck(harness)
    return stream


async def until_stuck(harness: Small) -> None:
    """Until the one stream waits for its client to read, at a hundred looks one after the other."""
    polls = 0

    def is_stuck() -> bool:
        nonlocal polls
        writes = any(stream.writes_s is not None for stream in harness.calls.streams._open)
        polls = polls + 1 if writes else 0
        return polls > 100

    await until(is_stuck)


async def read_out(call: Any) -> tuple[int, grpc.aio.AioRpcError]:
    """How many answers there still are, and with what the stream ends."""
    answers = 0
    while True:
        try:
            assert await call.read() is not grpc.aio.EOF
        except grpc.aio.AioRpcError as error:
            return answers, error
        answers += 1


# --- who does not read ------------------------------------------------------------------------------------------------


async def test_a_stream_that_is_not_read_is_ended_and_says_so() -> None:
    async with small(Act=large, limits=LIMITS) as harness:
        stream = await unread(harness)
        harness.calls.streams.poll(59.9)
        await asyncio.sleep(0.05)
        assert harness.calls.under_way == 1
        harness.calls.streams.poll(60.0)
        await asyncio.wait_for(harness.calls.finished(), 20)
        answers, error = await read_out(stream)
        assert answers
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert reason_in(status_in(error)) == "STREAM_STALLED"
        stream.cancel()
    assert harness.logs == []


async def test_who_does_not_read_the_end_either_holds_his_place_until_his_connection_ends() -> None:
    async with small(Act=large, limits=LIMITS) as harness:
        stream = await unread(harness)
        harness.calls.streams.poll(100.0)
        await asyncio.wait_for(harness.calls.finished(), 20)
        one = harness.calls.quotas.of(OP1)
        await asyncio.sleep(0.05)
        assert (one.streams, one.calls) == (1, 0)  # its end waits to be read
        harness.calls.streams.poll(900.0)
        stream.cancel()
        await until(lambda: one.streams == 0)
        assert not harness.calls.streams._open
    assert harness.logs == []


async def test_a_notice_that_is_not_read_ends_the_stream_too() -> None:
    async with small(Act=large, limits=LIMITS) as harness:
        stream = harness.stream()
        play = play_pb2.PlayRequest(act=play_pb2.ActRequest(session_id=SESSION_ID, request_id="r"))
        await stream.write(play)
        assert (await stream.read()).WhichOneof("response") == "act"
        (held,) = harness.calls.streams._open
        await until(lambda: held.reads_s is not None)
        stuck = 0

        def report_until_stuck() -> bool:
            nonlocal stuck
            harness.notices.emit(Notice(SESSION_ID, ROUND_ID, RoundStatus.OPEN, "x" * 30_000, "", ""))
            stuck = stuck + 1 if held.writes_s is not None else 0
            return stuck > 40

        await until(report_until_stuck)
        harness.calls.streams.poll(100.0)
        await until(lambda: held.ending is not None)
        assert held.ending.reason == "STREAM_STALLED"  # type: ignore[union-attr]
        stream.cancel()
        await until(lambda: not harness.calls.streams._open)


async def test_an_update_that_is_not_read_ends_the_stream_too() -> None:
    """Until then it holds one mark, whatever happens to the session, and no commit waits for it."""
    large_update = play_pb2.PlayResponse(request_id="x" * 30_000).SerializeToString()
    async with small(Act=large, limits=LIMITS, update=large_update) as harness:
        stream = harness.stream()
        watch = table_pb2.WatchSession(session_id=SESSION_ID)
        await stream.write(play_pb2.PlayRequest(watch_session=watch))
        assert (await stream.read()).request_id
        (held,) = harness.calls.streams._open
        await until(lambda: held.reads_s is not None)
        stuck = 0

        def change_until_stuck() -> bool:
            nonlocal stuck
            harness.updates.committed(Change(session=session(1, session_id=SESSION_ID)))
            stuck = stuck + 1 if held.writes_s is not None else 0
            return stuck > 40

        await until(change_until_stuck)
        ((mailbox,),) = harness.updates._followers.values()
        assert len(mailbox._marks) <= 1
        harness.calls.streams.poll(100.0)
        await until(lambda: held.ending is not None)
        assert held.ending.reason == "STREAM_STALLED"  # type: ignore[union-attr]
        stream.cancel()
        await until(lambda: not harness.calls.streams._open)
        assert not harness.updates._followers


async def test_a_caller_that_is_denied_gets_no_more_updates() -> None:
    async with small(Act=large, update=play_pb2.PlayResponse(request_id="u").SerializeToString()) as harness:
        stream = harness.stream()
        await stream.write(play_pb2.PlayRequest(watch_session=table_pb2.WatchSession(session_id=SESSION_ID)))
        assert (await stream.read()).request_id == "u"
        harness.parties.rows.clear()
        harness.parties.count += 1
        await harness.gate.refresh()
        harness.updates.committed(Change(session=session(1, session_id=SESSION_ID)))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stream.read()
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_a_download_that_is_not_read_is_ended() -> None:
    async def answers(_caller: Caller, _message: Any) -> AsyncIterator[bytes]:
        for _ in range(1_000):
            yield LARGE

    async with small(limits=LIMITS) as harness:
        download = harness.calls.server_stream(
            "rgs.v1.PlayService/GetRound", ServerStream(play_pb2.GetRoundRequest, answers)
        )
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("down.Load", {"Load": download}),))
        tls = grpc.ssl_server_credentials(
            [(server_certificate().key_pem, server_certificate().certificate_pem)],
            authority().certificate_pem,
            require_client_auth=True,
        )
        port = server.add_secure_port("localhost:0", tls)
        await server.start()
        channel: Any = channel_of(port, operator_certificate())
        call = channel.unary_stream("/down.Load/Load")(b"")
        await until_stuck(harness)
        harness.calls.streams.poll(100.0)
        await asyncio.wait_for(harness.calls.finished(), 20)
        _, error = await read_out(call)
        assert reason_in(status_in(error)) == "STREAM_STALLED"
        await channel.close()
        await server.stop(1)


# --- who does not ask -------------------------------------------------------------------------------------------------


async def test_an_idle_stream_is_ended_and_a_busy_one_is_not() -> None:
    inside, released = asyncio.Event(), asyncio.Event()

    async def answer(caller: Caller, message: Any) -> bytes:
        if message.round_version == 99:
            inside.set()
            await released.wait()
        return await versions(caller, message)

    async with small(Act=answer, limits=LIMITS) as harness:
        streams = harness.calls.streams
        idle, lively, busy = harness.stream(), harness.stream(), harness.stream()
        for stream in (idle, lively, busy):
            await stream.write(act(1))
            assert (await stream.read()).act.round.round_version == 1
        await busy.write(act(99))
        await inside.wait()
        streams.poll(3_000.0)
        await lively.write(act(2))
        assert (await lively.read()).act.round.round_version == 2
        await until(lambda: sorted(held.reads_s or -1.0 for held in streams._open) == [-1.0, -1.0, 3_000.0])
        streams.poll(3_600.0)
        error = await refused(idle.read())
        assert (error.code(), reason_in(status_in(error))) == (grpc.StatusCode.UNAVAILABLE, "STREAM_IDLE")
        streams.poll(6_599.0)
        released.set()
        assert (await busy.read()).act.round.round_version == 99
        await lively.write(act(3))
        assert (await lively.read()).act.round.round_version == 3
        for stream in (lively, busy):
            await stream.done_writing()
            assert await stream.read() is grpc.aio.EOF
        await until(lambda: harness.calls.quotas.of(OP1).streams == 0)


# --- connections ------------------------------------------------------------------------------------------------------


async def test_a_flood_of_pings_is_cut_off(tmp_path: Path) -> None:
    async with small() as harness:
        port = harness.endpoint.port
        async with frames.connected(tmp_path, port, operator_certificate(), authority()) as raw:
            goaways = []

            async def read() -> None:
                goaways.extend([payload async for kind, _, _, payload in raw.reported() if kind == frames.GOAWAY])

            reading = asyncio.create_task(read())
            for _ in range(10):
                raw.send(frames.PING, 0, 0, bytes(8))
                await asyncio.sleep(0.01)
            await asyncio.wait_for(reading, 20)
        assert goaways
        assert int.from_bytes(goaways[-1][4:8]) == frames.ENHANCE_YOUR_CALM
        assert await harness.unary(ACT)(b"") == b""


def with_options(monkeypatch: pytest.MonkeyPatch, **changed_ms: int) -> None:
    """The server's own options, these of them in fewer milliseconds."""
    options = dict(endpoint.OPTIONS)
    changed = {f"grpc.{name.replace('http2_', 'http2.')}": value for name, value in changed_ms.items()}
    assert changed.keys() <= options.keys()
    monkeypatch.setattr("rgs.api.endpoint.OPTIONS", tuple((options | changed).items()))


async def test_a_connection_that_gives_no_sign_of_life_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_options(monkeypatch, keepalive_time_ms=1_000, keepalive_timeout_ms=2_000, http2_ping_timeout_ms=2_000)
    async with (
        small() as harness,
        frames.connected(tmp_path, harness.endpoint.port, operator_certificate(), authority()) as dead,
        frames.connected(tmp_path, harness.endpoint.port, operator_certificate(), authority()) as alive,
    ):

        async def answering() -> int:
            pings = 0
            async for kind, flags, _, payload in alive.reported():
                if kind == frames.PING and not flags & frames.ACK:
                    pings += 1
                    alive.send(frames.PING, frames.ACK, 0, payload)
            return pings

        stays = asyncio.create_task(answering())
        requested = [flags & frames.ACK async for kind, flags, _, _ in dead.reported() if kind == frames.PING]
        assert 0 in requested  # it was asked, and then its connection ended
        assert not stays.done()
        stays.cancel()


async def test_a_connection_without_a_call_is_closed_after_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_options(monkeypatch, max_connection_idle_ms=1_000)
    async with (
        small() as harness,
        frames.connected(tmp_path, harness.endpoint.port, operator_certificate(), authority()) as raw,
    ):
        assert frames.GOAWAY in [kind async for kind, _, _, _ in raw.reported()]
        assert await harness.unary(ACT)(b"") == b""


async def test_who_takes_no_answers_from_his_connection_has_them_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window of nothing: answers cannot be sent and hold their places, which are this party's and not everybody's."""
    monkeypatch.setattr("rgs.api.endpoint.CALLS_MAX", 64)
    async with small(Act=large, limits=PartyLimits(calls_max=16)) as harness:
        one = harness.calls.quotas.of(OP1)
        port = harness.endpoint.port
        async with frames.connected(tmp_path, port, operator_certificate(), authority(), window=0) as raw:
            for nth in range(200):
                raw.call(2 * nth + 1, ACT, b"")
                await raw.drained()
                if nth % 10 == 9:
                    await until(lambda: one.calls == min(16, nth + 1))  # noqa: B023 - awaited in this turn
                    await asyncio.sleep(0.01)
            await until(lambda: harness.calls.under_way == 0)  # the last of them is refused
            channel: Any = channel_of(port, other_certificate())
            for _ in range(20):
                assert await channel.unary_unary(ACT)(b"", timeout=20) == LARGE
            await channel.close()
        await until(lambda: one.calls == 0)
        assert sum(one.refused.values()) > 100
        assert await harness.unary(ACT)(b"") == LARGE


async def test_calls_that_are_reset_at_once_leave_nothing_behind(tmp_path: Path) -> None:
    async with small(Act=versions) as harness:
        one = harness.calls.quotas.of(OP1)
        async with frames.connected(tmp_path, harness.endpoint.port, operator_certificate(), authority()) as raw:
            for nth in range(1_500):
                raw.call(2 * nth + 1, ACT, b"")
                raw.send(frames.RST_STREAM, 0, 2 * nth + 1, frames.CANCEL.to_bytes(4))
                await raw.drained()
        channel: Any = channel_of(harness.endpoint.port, other_certificate())
        assert await channel.unary_unary(ACT)(b"\x20\x05", timeout=20)
        await channel.close()
        await asyncio.wait_for(harness.calls.finished(), 20)
        await until(lambda: one.calls == 0)
    assert harness.logs == []


async def test_what_is_sent_ahead_of_being_read_is_bounded() -> None:
    """64 KiB a stream, whatever the client would like to send: what the server takes in does not grow with it."""
    taken = written = 0

    async def answer(_caller: Caller, _message: Any) -> bytes:
        nonlocal taken
        taken += 1
        return LARGE

    async with small(Act=answer, limits=LIMITS) as harness:
        stream = harness.stream()
        request = play_pb2.PlayRequest(act=play_pb2.ActRequest(round_id="x" * 1_000))

        async def write() -> None:
            nonlocal written
            for _ in range(5_000):
                await stream.write(request)
                written += 1

        writing = asyncio.create_task(write())
        await until_stuck(harness)
        before = -1
        while written != before:  # until the client can send no more either
            before = written
            await asyncio.sleep(0.2)
        ahead_bytes = (written - taken) * len(request.SerializeToString())
        writing.cancel()
        stream.cancel()
        await asyncio.gather(writing, return_exceptions=True)
    assert taken < written
    assert ahead_bytes <= 256 * 1024, ahead_bytes
