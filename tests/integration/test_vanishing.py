"""Clients that vanish between a request and its answer: the connection is cut under the call, before its commit and
after it. Nothing is half done, nothing stays held, and the same request id tells what happened.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message

from rgs.store.sqlite.store import SqliteStore
from rgs.v1 import play_pb2, session_pb2
from tests.integration.test_attack_wire import PLAY, SESSION, Recorder
from tests.support.api.client import request_id
from tests.support.api.harness import channel_of
from tests.support.api.wired import STREAM, Wire, certificate, wired
from tests.support.service.oracles import verify_books
from tests.support.waiting import until

STEPS = ("OpenSession", "BuyParticipation", "StartRound", "Act", "EndParticipation", "CloseSession")


class Cable:
    """Carries a client's connection to the server, until it is cut."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._ends: list[asyncio.StreamWriter] = []
        self.port = 0

    async def start(self) -> asyncio.Server:
        server = await asyncio.start_server(self._connect, "localhost", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    def cut(self) -> None:
        """As a process that is killed, or a wire that is torn."""
        for end in self._ends:
            end.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("localhost", self._server_port)
        self._ends += [writer, far_writer]
        await asyncio.gather(self._carry(reader, far_writer), self._carry(far_reader, writer))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65_536):
                writer.write(data)


@asynccontextmanager
async def cable(wire: Wire) -> AsyncIterator[tuple[Cable, grpc.aio.Channel]]:
    carried = Cable(wire.endpoint.port)
    server = await carried.start()
    channel = channel_of(carried.port, certificate("op-1"))
    try:
        yield carried, channel
    finally:
        await channel.close()
        carried.cut()
        server.close()


async def say(channel: Any, method: str, request: Any, *, on_stream: bool) -> None:
    """One request, whatever becomes of it."""
    with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
        if on_stream:
            field = {"StartRound": "start_round", "Act": "act"}[method.split("/")[1]]
            call = channel.stream_stream(f"/{STREAM}")()
            await call.write(play_pb2.PlayRequest(**{field: request}).SerializeToString())
            await call.read()
        else:
            await channel.unary_unary(f"/{method}")(request.SerializeToString())


async def life_up_to(anna: Recorder, step: str) -> tuple[str, Message]:
    """Everything before a step; its method and request."""
    if step == "OpenSession":
        return f"{SESSION}{step}", anna.open_request()
    opened = await anna.say(f"{SESSION}OpenSession", anna.open_request(), session_pb2.OpenSessionResponse)
    anna.session_id = opened.session.session_id
    if step == "BuyParticipation":
        return f"{SESSION}{step}", anna.buy_request()
    await anna.say(f"{SESSION}BuyParticipation", anna.buy_request(), session_pb2.BuyParticipationResponse)
    anna.wire.harness.clock.tick(1_500)
    if step == "StartRound":
        return f"{PLAY}{step}", anna.start_request()
    await anna.deal()
    if step == "Act":
        return f"{PLAY}{step}", anna.act_request(1)
    await anna.decide(1, 1, 7)
    ids = {"request_id": request_id(), "session_id": anna.session_id}
    if step == "EndParticipation":
        return f"{SESSION}{step}", session_pb2.EndParticipationRequest(**ids)
    ending = session_pb2.EndParticipationRequest(**ids)
    await anna.say(f"{SESSION}EndParticipation", ending, session_pb2.EndParticipationResponse)
    return f"{SESSION}{step}", session_pb2.CloseSessionRequest(request_id=request_id(), session_id=anna.session_id)


async def rest_of_life(anna: Recorder, step: str, answer: bytes) -> None:
    """Everything behind the step that was answered with these bytes."""
    position = STEPS.index(step)
    if step == "OpenSession":
        anna.session_id = session_pb2.OpenSessionResponse.FromString(answer).session.session_id
        await anna.say(f"{SESSION}BuyParticipation", anna.buy_request(), session_pb2.BuyParticipationResponse)
    if step == "StartRound":
        anna.seen(play_pb2.StartRoundResponse.FromString(answer))
    elif position < 2:
        await anna.deal()
    if step == "Act":
        anna.seen(play_pb2.ActResponse.FromString(answer))
        await anna.decide(1, 7)
    elif position < 3:
        await anna.decide(1, 1, 7)
    if position < 4:
        await anna.leave()
    elif position == 4:
        closing_ = session_pb2.CloseSessionRequest(request_id=request_id(), session_id=anna.session_id)
        await anna.say(f"{SESSION}CloseSession", closing_, session_pb2.CloseSessionResponse)


@pytest.mark.parametrize("when", ["before the commit", "after the commit"])
@pytest.mark.parametrize(
    ("step", "on_stream"), [*((step, False) for step in STEPS), ("StartRound", True), ("Act", True)]
)
async def test_a_connection_that_is_cut_under_a_call(
    tmp_path: Path, step: str, on_stream: bool, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with wired(tmp_path) as wire, cable(wire) as (carried, channel):
        anna = Recorder(wire)
        method, request = await life_up_to(anna, step)
        store, calls = wire.harness.store, wire.calls
        with monkeypatch.context() as patched, closing(sqlite3.connect(tmp_path / "rgs.db")) as lock:
            if when == "before the commit":
                lock.execute("BEGIN IMMEDIATE")
                saying = asyncio.create_task(say(channel, method, request, on_stream=on_stream))
                await until(lambda: store.writer._committing)
            else:
                committed = asyncio.Event()
                commit = SqliteStore.commit

                async def commit_and_hold(self: Any, change: Any) -> Any:
                    signed = await commit(self, change)
                    committed.set()
                    await asyncio.Event().wait()
                    return signed

                patched.setattr(SqliteStore, "commit", commit_and_hold)
                saying = asyncio.create_task(say(channel, method, request, on_stream=on_stream))
                await asyncio.wait_for(committed.wait(), 20)
            assert calls.under_way == 1
            carried.cut()
            await asyncio.wait_for(calls.finished(), 20)  # the call has gone, its commit may still wait
            lock.rollback()
            saying.cancel()
            await asyncio.gather(saying, return_exceptions=True)
        await until(lambda: not store.writer._committing)
        await wire.tick()  # what an operation had left is continued
        answer = await wire.ask("op-1", method, request)
        assert await wire.ask("op-1", method, request) == answer
        await rest_of_life(anna, step, answer)
        await wire.harness.settle()
        await until(lambda: all(one.calls == one.streams == 0 for one in calls.quotas._accounts.values()))
        assert wire.faults == []
    summary = verify_books(tmp_path)
    assert (summary.sessions, summary.rounds_verified, summary.draws_discarded) == (1, 1, 0)


async def test_a_crowd_that_vanishes_leaves_the_others_their_server(tmp_path: Path) -> None:
    """Twenty-four connections with a start under way each are cut at once; then all of it is asked again."""
    async with wired(tmp_path) as wire, cable(wire) as (carried, _):
        players = [Recorder(wire, f"player-{nth}") for nth in range(24)]
        for player in players:
            await player.sit()
        wire.harness.clock.tick(1_500)
        starts = [player.start_request() for player in players]
        channels = [channel_of(carried.port, certificate("op-1")) for _ in players]
        await asyncio.gather(*(channel.channel_ready() for channel in channels))
        with closing(sqlite3.connect(tmp_path / "rgs.db")) as lock:
            lock.execute("BEGIN IMMEDIATE")
            saying = [
                asyncio.create_task(say(channel, f"{PLAY}StartRound", start, on_stream=nth % 2 == 0))
                for nth, (channel, start) in enumerate(zip(channels, starts, strict=True))
            ]
            await until(lambda: wire.calls.under_way == len(players))
            carried.cut()
            await asyncio.wait_for(wire.calls.finished(), 20)
            lock.rollback()
        for task in saying:
            task.cancel()
        await asyncio.gather(*saying, return_exceptions=True)
        for channel in channels:
            await channel.close()
        for player, start in zip(players, starts, strict=True):
            answer = await wire.ask("op-1", f"{PLAY}StartRound", start)
            assert await wire.ask("op-1", f"{PLAY}StartRound", start) == answer
            await rest_of_life(player, "StartRound", answer)
        await wire.harness.settle()
        assert wire.faults == []
    summary = verify_books(tmp_path)
    assert (summary.sessions, summary.rounds_verified) == (24, 24)
