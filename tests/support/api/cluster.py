"""Several servers of this process over one PostgreSQL, and a client that speaks to all of them.

`Cluster` is one home with a worker of it per server, each on a port of its own; `Table` is one session that every
server is asked about in turn or at once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import grpc

from certification import replay as certify
from rgs.cli import run
from rgs.core.statements.lines import parse_line
from rgs.devkit.requests import Requests
from rgs.node.clock import SystemClock
from rgs.node.config import Config, load_config
from rgs.node.home import ensure_home
from rgs.node.keyring import read_fingerprint
from rgs.node.pki import load_issued
from rgs.node.server import Server
from rgs.store.address import PostgresAddress
from rgs.v1 import common_pb2, play_pb2, session_pb2
from rgs.v1.play_pb2_grpc import PlayServiceStub
from rgs.v1.session_pb2_grpc import SessionServiceStub
from tests.support.api.client import request_id
from tests.support.api.harness import channel_of, entropy, manifest, reason_in, status_in
from tests.support.process.commands import MANIFEST
from tests.support.service.harness import read_statement


async def new_database(url: str, name: str) -> None:
    """An empty database beside the one of the URL."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(f'CREATE DATABASE "{name}"')
    finally:
        await connection.close()


OPEN = common_pb2.ROUND_STATUS_OPEN


class Cluster:
    """`count` servers, worker 0 to count - 1 of one node."""

    def __init__(self, folder: Path, store: PostgresAddress, count: int) -> None:
        ensure_home(folder, None, entropy().read, SystemClock().now_ms(), store)
        self.config = load_config(folder, {"listen": "127.0.0.1:0", "drain_s": 5, "workers": 1})
        self.servers = [Server(self.config, manifest(), worker=number) for number in range(count)]
        self._channels: list[grpc.aio.Channel] = []

    def channel(self, number: int, party: str = "demo-operator") -> grpc.aio.Channel:
        """A channel to one server."""
        tls = self.config.tls
        authority = load_issued((tls / "ca.pem").read_bytes(), (tls / "ca.key").read_bytes())
        stem = tls / "clients" / party
        client = load_issued(stem.with_suffix(".pem").read_bytes(), stem.with_suffix(".key").read_bytes())
        channel = channel_of(self.servers[number].port, client, authority)
        self._channels.append(channel)
        return channel

    async def restart(self, number: int) -> None:
        """Another process of the same number."""
        await self.servers[number].stop()
        self.servers[number] = Server(self.config, manifest(), worker=number)
        await self.servers[number].start()

    async def stop(self) -> None:
        while self._channels:
            await self._channels.pop().close()
        for server in self.servers:
            await server.stop()


@contextlib.asynccontextmanager
async def cluster(folder: Path, store: PostgresAddress, count: int) -> AsyncIterator[Cluster]:
    """All of them serve."""
    made = Cluster(folder, store, count)
    try:
        for server in made.servers:
            await server.start()
        yield made
    finally:
        await made.stop()


REQUESTS = Requests(request_id)


class Table:
    """One session at several servers. What it was told last, by any of them, is what it knows."""

    def __init__(self, channels: list[grpc.aio.Channel], player: str = "player-1") -> None:
        self.plays: list[Any] = [PlayServiceStub(channel) for channel in channels]
        self.sessions: list[Any] = [SessionServiceStub(channel) for channel in channels]
        self.player = player
        self.session: Any = None
        self.round: Any = None

    async def sit(self, amount_minor: int = 50_000) -> Table:
        """Open at the first server, buy at the last."""
        opened = await self.sessions[0].OpenSession(REQUESTS.open("uth-solo", self.player, "EUR", request_id()))
        self.session = opened.session
        self.session = (await self.sessions[-1].BuyParticipation(self.purchase(amount_minor))).session
        return self

    def purchase(self, amount_minor: int) -> session_pb2.BuyParticipationRequest:
        return REQUESTS.buy(self.session, amount_minor)

    def starting(self) -> play_pb2.StartRoundRequest:
        return REQUESTS.start(self.session, {"ante": 100})

    def acting(self, action: Any = None) -> play_pb2.ActRequest:
        """The cheapest decision that is offered last, or the one given."""
        return REQUESTS.act(self.session, self.round, self.cheapest() if action is None else action)

    def cheapest(self) -> Any:
        """Check while it is free, then fold."""
        legal = {choice.cost_minor: choice.action for choice in reversed(self.round.legal_actions) if choice.available}
        return legal[min(legal)]

    async def start(self, server: int) -> Any:
        return self.take(await self.plays[server].StartRound(self.starting()))

    async def act(self, server: int) -> Any:
        return self.take(await self.plays[server].Act(self.acting()))

    async def get(self, server: int) -> Any:
        """Read where it stands."""
        message = session_pb2.GetSessionRequest(session_id=self.session.session_id)
        answer = await self.sessions[server].GetSession(message)
        self.session = answer.session
        self.round = answer.session.open_round if answer.session.HasField("open_round") else None
        return answer

    def take(self, answer: Any) -> Any:
        self.session, self.round = answer.session, answer.round
        return answer

    async def leave(self, server: int) -> None:
        """End and close."""
        session_id = self.session.session_id
        end = session_pb2.EndParticipationRequest(request_id=request_id(), session_id=session_id)
        await self.sessions[server].EndParticipation(end)
        close = session_pb2.CloseSessionRequest(request_id=request_id(), session_id=session_id)
        await self.sessions[server].CloseSession(close)


def reason_of(error: grpc.aio.AioRpcError) -> str:
    """The stable reason of a refusal; the code's name where the transport itself refused."""
    result = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin")
    return error.code().name if result is None else reason_in(status_in(error))


async def outcome(call: Any) -> Any:
    """The answer of a call, or the reason of its refusal."""
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        return reason_of(error)


async def together(*calls: Any) -> list[Any]:
    """The outcomes of calls made at once."""
    return list(await asyncio.gather(*(outcome(call) for call in calls)))


# --- what is left -----------------------------------------------------------------------------------------------------


async def exported(config: Config, folder: Path) -> list[dict[str, Any]]:
    """Export everything and replay it, without a failure; the statements' bodies. No server runs any more."""
    export = folder / "export.jsonl"
    home = str(config.home)
    assert await asyncio.to_thread(run, ["export", "--home", home, "--out", str(export)], MANIFEST) == 0
    root = read_fingerprint(config.keys)
    assert certify.main([str(export), "--keys", str(config.bundle), "--root", root]) == 0
    bodies = [read_statement(parse_line(line).envelope) for line in export.read_bytes().splitlines()]
    verify_draws(bodies)
    return bodies


def verify_draws(bodies: list[dict[str, Any]]) -> None:
    """Counted by hand: of every instance each draw stands in a round or is discarded, once."""
    draws: defaultdict[str, list[int]] = defaultdict(list)
    for body in bodies:
        if body["kind"] in {"round_opening", "table_deal"}:
            draws[body["deal"]["instance"]].append(int(body["deal"]["draw_no"]))
        if body["kind"] == "discarded_draw":
            draws[body["instance"]].append(int(body["draw_no"]))
    for instance, numbers in draws.items():
        assert sorted(numbers) == list(range(1, len(numbers) + 1)), instance


def kinds(bodies: list[dict[str, Any]]) -> Counter[str]:
    return Counter(body["kind"] for body in bodies)
