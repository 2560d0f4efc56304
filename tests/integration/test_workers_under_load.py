"""`rgs serve --workers` as processes, under load: a rolling restart, and a worker that is killed.

Clients repeat what was not answered, with the same request ids, as docs/integration.md tells them to; nothing else is
forgiven. At the end every round that was begun is settled, and all of it replays.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import grpc
import pytest

from rgs.node.clock import SystemClock
from rgs.node.config import load_config
from rgs.node.home import ensure_home
from rgs.store.address import PostgresAddress
from rgs.v1 import play_pb2, report_pb2, session_pb2
from rgs.v1.report_pb2_grpc import ReportServiceStub
from tests.support.api.cluster import OPEN, Table, exported, kinds, new_database, reason_of
from tests.support.api.harness import entropy
from tests.support.process.workers import served_by_workers
from tests.support.service.harness import read_statement
from tests.support.store.postgres import QUICK, one_server
from tests.support.waiting import until

pytestmark = pytest.mark.slow

WORKERS = 2
CLIENTS = 6
PAUSE_S = 0.03
"""Between two requests of a client: the machine has to begin processes, too."""


class Client:
    """Plays round after round; what is not answered is asked again, anywhere, under the same id."""

    def __init__(self, channels: list[grpc.aio.Channel], number: int) -> None:
        self.table = Table(channels, f"player-{number}")
        self._at = number
        self.rounds = 0
        self.refused: Counter[str] = Counter()

    async def ask(self, method: str, message: Any) -> Any:
        """The answer; after UNAVAILABLE, and what gRPC cancelled, the same request again, at another connection."""
        table = self.table
        await asyncio.sleep(PAUSE_S)
        for _ in range(100):
            stubs = table.plays if method in {"StartRound", "Act"} else table.sessions
            try:
                return await getattr(stubs[self._at % len(stubs)], method)(message, timeout=10)
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.CANCELLED:  # gRPC cut it off as the server went
                    self.refused["CANCELLED"] += 1
                elif error.code() is grpc.StatusCode.UNAVAILABLE:
                    self.refused[reason_of(error)] += 1
                else:
                    raise
            self._at += 1
            await asyncio.sleep(0.05)
        raise AssertionError("never answered")

    async def play(self, done: asyncio.Event) -> None:
        """Unary calls, with a look in between that must find what was answered before."""
        table = self.table
        while not done.is_set():
            table.take(await self.ask("StartRound", table.starting()))
            while table.round.status == OPEN:
                seen = table.round.round_version
                message = session_pb2.GetSessionRequest(session_id=table.session.session_id)
                found = await self.ask("GetSession", message)
                assert found.session.open_round.round_version == seen, "what was answered is everywhere"
                table.take(await self.ask("Act", table.acting()))
            self.rounds += 1

    async def stream(self, done: asyncio.Event) -> None:
        """The same on a stream; when it ends, what was not answered is asked again on another one."""
        table, play = self.table, None
        while not done.is_set() or table.round.status == OPEN:
            if table.round is not None and table.round.status == OPEN:
                request = play_pb2.PlayRequest(act=table.acting())
            else:
                request = play_pb2.PlayRequest(start_round=table.starting())
            answer = None
            await asyncio.sleep(PAUSE_S)
            while answer is None:
                play = table.plays[self._at % len(table.plays)].Play() if play is None else play
                answer = await self._answer_on(play, request)
                if answer is None:
                    self._at, play = self._at + 1, None
                    await asyncio.sleep(0.05)
            table.take(answer)
            self.rounds += table.round.status != OPEN

    async def _answer_on(self, play: Any, request: play_pb2.PlayRequest) -> Any:
        """The answer to one request; None where the stream has ended without it, or it is to be asked again."""
        try:
            await play.write(request)
            while (answer := await play.read()) is not grpc.aio.EOF and answer.WhichOneof("response") == "update":
                pass  # after a repeat the stream cannot know what it missed
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            answer = grpc.aio.EOF
        if answer is grpc.aio.EOF:
            code, details = await play.code(), await play.details()
            # The second is what this client library says of a message that it could not write any more.
            assert code == grpc.StatusCode.UNAVAILABLE or details == "Internal error from Core", (code, details)
            self.refused["stream"] += 1
            return None
        if answer.WhichOneof("response") == "error":
            assert answer.error.code == grpc.StatusCode.UNAVAILABLE.value[0], answer
            self.refused["in band"] += 1
            return None
        return getattr(answer, answer.WhichOneof("response"))


class Follower:
    """Takes the operator's finals as they come, and goes on behind the last one wherever the stream ended."""

    def __init__(self, channels: list[grpc.aio.Channel]) -> None:
        self._stubs: list[Any] = [ReportServiceStub(channel) for channel in channels]
        self.finals: list[report_pb2.WatchFinalsResponse] = []
        self.breaks = 0

    async def follow(self) -> None:
        """Until cancelled."""
        while True:
            token = self.finals[-1].resume_token if self.finals else ""
            stub = self._stubs[self.breaks % len(self._stubs)]
            try:
                async for final in stub.WatchFinals(report_pb2.WatchFinalsRequest(follow=True, resume_token=token)):
                    self.finals.append(final)
            except grpc.aio.AioRpcError as error:
                if error.code() not in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}:
                    raise
            self.breaks += 1
            await asyncio.sleep(0.05)


async def test_a_rolling_restart_and_a_killed_worker_lose_nothing(tmp_path: Path) -> None:
    with one_server(QUICK) as postgres:
        await new_database(postgres.url(), "load")
        home = tmp_path / "home"
        ensure_home(home, None, entropy().read, SystemClock().now_ms(), PostgresAddress(postgres.url("load")))
        config = load_config(home)
        with served_by_workers(config, tmp_path / "said.txt", WORKERS) as service:
            await service.until_serving(WORKERS)
            channels = [service.channel() for _ in range(4 * WORKERS)]
            clients = [Client(channels, number) for number in range(CLIENTS)]
            for client in clients:
                await client.table.sit()
            follower = Follower(channels)
            following = asyncio.create_task(follower.follow())
            done = asyncio.Event()
            crowd = [
                asyncio.create_task(client.stream(done) if number % 3 == 0 else client.play(done))
                for number, client in enumerate(clients)
            ]
            service.process.send_signal(signal.SIGHUP)
            await service.until_serving(2 * WORKERS)
            rolled: Counter[str] = sum((client.refused for client in clients), Counter())
            await asyncio.sleep(0.5)
            os.kill(dict(service.serving())[1], signal.SIGKILL)
            await service.until_serving(2 * WORKERS + 1)
            await asyncio.sleep(0.5)
            done.set()
            await asyncio.gather(*crowd)
            assert min(client.rounds for client in clients) >= 3, [client.rounds for client in clients]
            played = sum(client.rounds for client in clients)
            await until(lambda: len(follower.finals) >= played)
            following.cancel()
            for client in clients:
                await client.table.leave(0)
            for channel in channels:
                await channel.close()
            service.process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(service.process.wait, 30) == 0, service.log.read_text()
        assert [number for number, _ in service.serving()][WORKERS:] == [0, 1, 1]
        bodies = await exported(config, tmp_path)
        found = kinds(bodies)
        assert found["round_opening"] == found["round_final"] == sum(client.rounds for client in clients)
        finals = [read_statement(final.statement.envelope) for final in follower.finals]
        assert sorted(body["round_id"] for body in finals) == sorted(
            body["round_id"] for body in bodies if body["kind"] == "round_final"
        )
        assert [final.final_no for final in follower.finals] == list(range(1, played + 1))
        assert [body["lost"]["instance"] for body in bodies if body["kind"] == "instance_lost"] == ["node1-b2-w1"]
        assert found["instance_start"] == 2 * WORKERS + 1
    assert sum(rolled.values()) > 0, "nobody noticed the restart: the test shows nothing"
    assert follower.breaks > 0, "nothing has broken the stream of finals: the test shows nothing"
