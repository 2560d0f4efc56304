"""Servers and clients in one process, over mutual TLS: an endpoint over answers of our choice, or the whole server."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock, patch

import grpc
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from structlog.testing import capture_logs

import rgs.node.server
from rgs.api import catalog, play
from rgs.api.auth import Gate
from rgs.api.calls import Calls, Duplex, Unary
from rgs.api.endpoint import Endpoint, Tls
from rgs.api.quotas import PartyLimits
from rgs.integrity.manifest import Manifest, make_manifest
from rgs.node.clock import SystemClock
from rgs.node.config import Config, load_config
from rgs.node.home import ensure_home
from rgs.node.pki import (
    Issued,
    fingerprint_of,
    issue_client,
    issue_server,
    last_ms_of,
    load_issued,
    make_development_ca,
)
from rgs.node.server import Server
from rgs.node.tls_identity import read_certificate
from rgs.service.callers import Caller, Role
from rgs.service.play.notices import Notices
from rgs.service.play.updates import Updates
from rgs.store.address import PostgresAddress
from rgs.store.interface import Parties, PartyRow
from rgs.store.opening import open_parties
from rgs.v1 import catalog_pb2, play_pb2
from rng.entropy import EntropySource
from tests.support.api.views import ENCODER
from tests.support.clocks import ShiftedClock

HOUR_MS = 3_600_000


def entropy() -> EntropySource:
    """One for each process: a source serves the process that made it, and mutants are judged in forks."""
    return _entropy_of(os.getpid())


@cache
def _entropy_of(_pid: int) -> EntropySource:
    return EntropySource()


@cache
def manifest() -> Manifest:
    return make_manifest()


# --- an endpoint alone ------------------------------------------------------------------------------------------------


class AllowList:
    def __init__(self, rows: list[PartyRow]) -> None:
        self.rows = rows
        self.count = 0

    async def changes(self) -> int:
        return self.count

    async def allowed(self) -> list[PartyRow]:
        return self.rows


@cache
def authority() -> Issued:
    return make_development_ca(entropy().read, SystemClock().now_ms())


@cache
def server_certificate() -> Issued:
    return issue_server(authority(), ["localhost", "127.0.0.1"], entropy().read, SystemClock().now_ms())


@cache
def operator_certificate() -> Issued:
    return issue_client(authority(), Role.OPERATOR, "op1", entropy().read, SystemClock().now_ms())


@cache
def other_certificate() -> Issued:
    return issue_client(authority(), Role.OPERATOR, "op2", entropy().read, SystemClock().now_ms())


Answer = Callable[[Caller, Any], Awaitable[bytes]]


@dataclass
class Small:
    """An endpoint with the play service, its methods answered by functions of the test, and the catalog's ListGames."""

    endpoint: Endpoint
    calls: Calls
    gate: Gate
    parties: AllowList
    clock: ShiftedClock
    channel: grpc.aio.Channel
    notices: Notices
    updates: Updates
    logs: list[Any] = field(default_factory=list)

    def unary(self, path: str) -> Any:
        """Bytes in, bytes out."""
        return self.channel.unary_unary(path)

    def stream(self) -> Any:
        return self.channel.stream_stream(
            f"/{play.STREAM_NAME}",
            request_serializer=_as_bytes,
            response_deserializer=play_pb2.PlayResponse.FromString,
        )()


def _as_bytes(request: Any) -> bytes:
    return request if isinstance(request, bytes) else request.SerializeToString()


async def nothing(_caller: Caller, _message: Any) -> bytes:
    return b""


async def versions(_caller: Caller, message: Any) -> bytes:
    """An answer by which the request is known again."""
    response = play_pb2.ActResponse()
    response.round.round_version = message.round_version
    return response.SerializeToString()


def methods(**answers: Answer) -> dict[str, Unary[Any]]:
    kinds = {
        "StartRound": play_pb2.StartRoundRequest,
        "Act": play_pb2.ActRequest,
        "GetRound": play_pb2.GetRoundRequest,
    }
    return {name: Unary(kind, answers.get(name, nothing)) for name, kind in kinds.items()}


@contextlib.asynccontextmanager
async def small(
    *,
    grace_s: float = 5,
    limits: PartyLimits = PartyLimits(),  # noqa: B008
    update: bytes = b"",
    **answers: Answer,
) -> AsyncIterator[Small]:
    """`update` is what every update looks like."""
    rows = [
        PartyRow(fingerprint_of(issued.certificate), party, "operator", "demo", 0, None)
        for party, issued in (("op1", operator_certificate()), ("op2", other_certificate()))
    ]
    parties, clock = AllowList(rows), ShiftedClock()
    gate = Gate(parties, clock, read_certificate)
    await gate.refresh()
    calls, notices = Calls(gate, clock, ENCODER.act, limits=limits), Notices()
    session = AsyncMock(return_value=(Mock(open_round=Mock(), **{"session.version": 1}), b""))
    updates, unary = Updates(store=Mock(), session=session, view=Mock()), methods(**answers)

    def stream(calls: Calls) -> play.PlayStream:
        return play.PlayStream(calls, unary, notices, updates, lambda _: update)

    tls = Tls(server_certificate().key_pem, server_certificate().certificate_pem, authority().certificate_pem)
    endpoint = Endpoint(
        listen="127.0.0.1:0",
        tls=tls,
        calls=calls,
        services={
            play.SERVICE: {**unary, play.STREAM: Duplex(lambda calls, _: stream(calls).method())},
            catalog.SERVICE: {"ListGames": Unary(catalog_pb2.ListGamesRequest, nothing)},
        },
        with_reflection=True,
    )
    with capture_logs() as logs:
        await endpoint.start()
        channel = channel_of(endpoint.port, operator_certificate())
        try:
            yield Small(endpoint, calls, gate, parties, clock, channel, notices, updates, logs)
        finally:
            await channel.close()
            await endpoint.stop(grace_s)


def channel_of(port: int, client: Issued | None, ca: Issued | None = None) -> grpc.aio.Channel:
    """A channel to `port`; without `client` it has no certificate of its own."""
    trusted = (ca or authority()).certificate_pem
    pair = (client.key_pem, client.certificate_pem) if client else (None, None)
    return grpc.aio.secure_channel(f"localhost:{port}", grpc.ssl_channel_credentials(trusted, *pair))


# --- the whole server -------------------------------------------------------------------------------------------------


class ApiHarness:
    """A home and its server, which may be stopped and started again; parties by the names that `rgs init` gives."""

    def __init__(self, folder: Path, database: PostgresAddress | None = None, **options: object) -> None:
        ensure_home(folder, None, entropy().read, SystemClock().now_ms(), database)
        self.config: Config = load_config(folder, {"listen": "127.0.0.1:0", "drain_s": 5, **options})
        self.clock = ShiftedClock()
        self.server = Server(self.config, manifest(), clock=self.clock)
        self._channels: list[grpc.aio.Channel] = []

    async def start(self) -> None:
        await self.server.start()

    async def restart(self) -> None:
        await self.stop()
        self.server = Server(self.config, manifest(), clock=self.clock)
        await self.start()

    async def stop(self) -> None:
        while self._channels:
            await self._channels.pop().close()
        await self.server.stop()

    async def until_serving(self) -> None:
        """The test has let time pass: the log is late by it, until it has taken what was committed before."""
        availability, watch = self.server.services.availability, self.server.services.monitor
        await watch.poll()
        assert not availability.guard("clock").closed
        async with asyncio.timeout(20):
            while not availability.serving:
                await asyncio.sleep(0.02)
                await watch.poll()

    @property
    def authority(self) -> Issued:
        tls = self.config.tls
        return load_issued((tls / "ca.pem").read_bytes(), (tls / "ca.key").read_bytes())

    def certificate(self, party: str) -> Issued:
        stem = self.config.tls / "clients" / party
        return load_issued(stem.with_suffix(".pem").read_bytes(), stem.with_suffix(".key").read_bytes())

    def issue(self, role: Role, party: str) -> Issued:
        """A certificate of this server's authority, which the allow-list does not know."""
        return issue_client(self.authority, role, party, entropy().read, SystemClock().now_ms())

    async def allow(self, certificate: Issued, role: Role, party: str, jurisdiction: str = "") -> None:
        async with self.parties() as parties:
            fingerprint = fingerprint_of(certificate.certificate)
            last_ms = last_ms_of(certificate.certificate)
            await parties.add(PartyRow(fingerprint, party, role, jurisdiction, self.clock.now_ms(), None, last_ms))

    @contextlib.asynccontextmanager
    async def parties(self) -> AsyncIterator[Parties]:
        parties = await open_parties(self.config.store)
        try:
            yield parties
        finally:
            await parties.close()

    def channel(self, certificate: Issued | str = "demo-operator") -> grpc.aio.Channel:
        client = self.certificate(certificate) if isinstance(certificate, str) else certificate
        channel = channel_of(self.server.port, client, self.authority)
        self._channels.append(channel)
        return channel


@contextlib.asynccontextmanager
async def serving(
    folder: Path, database: PostgresAddress | None = None, **options: object
) -> AsyncIterator[ApiHarness]:
    """The home in this folder, made where there is none, and its server; a new home's store may be in a database. What
    the server does in the background comes round ten times as often as in earnest: tests wait for it.
    """
    harness = ApiHarness(folder / "home", database, **options)
    with patch("rgs.node.server.BACKGROUND_S", min(rgs.node.server.BACKGROUND_S, 0.1)):
        await harness.start()
        try:
            yield harness
        finally:
            await harness.stop()


# --- what a client reads ----------------------------------------------------------------------------------------------


def status_in(error: grpc.aio.AioRpcError) -> Status:
    """The google.rpc.Status of a failed call, which must agree with the call's own code and message."""
    reported = Status.FromString(dict(error.trailing_metadata())["grpc-status-details-bin"])
    assert (reported.code, reported.message) == (error.code().value[0], error.details())
    return reported


def info_in(reported: Status) -> ErrorInfo:
    """The one ErrorInfo."""
    info = ErrorInfo()
    assert [detail.Unpack(info) for detail in reported.details].count(True) == 1
    return info


def reason_in(reported: Status) -> str:
    """The reason of the one ErrorInfo."""
    return info_in(reported).reason
