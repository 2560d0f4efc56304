"""The services behind the wire: every one over mutual TLS in this process, with a certificate for every role.

`Wire` puts the endpoint of the product before a `ServiceHarness`, so that `tests.support.service.oracles` can read what
is left. Nothing happens in the background but what a test asks of `tick`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from functools import cache
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.message import DecodeError, Message
from google.rpc.status_pb2 import Status

from rgs.api import audit, play, reconciliation, report, table
from rgs.api.auth import Gate
from rgs.api.calls import Calls, Methods
from rgs.api.endpoint import Endpoint, Tls
from rgs.api.mapping import Encoder
from rgs.api.quotas import PartyLimits
from rgs.api.table_mapping import TableEncoder
from rgs.cli.reconcile_job import JobInputs, run_job
from rgs.core.tlog.note import ED25519, format_vkey, note_key
from rgs.node.clock import SystemClock
from rgs.node.pki import Issued, fingerprint_of, issue_client, last_ms_of
from rgs.node.tls_identity import read_certificate
from rgs.node.wiring import feed_of, methods_of
from rgs.service.audit.log import PublicLog
from rgs.service.callers import Role
from rgs.service.game_catalog import GameCatalog
from rgs.service.play.catalog import Catalog
from rgs.service.reconciliation.files import Shelf
from rgs.service.reconciliation.reports import ReconciliationReports
from rgs.service.reconciliation.runs import ReconciliationRuns
from rgs.service.reconciliation.submissions import Submissions
from rgs.store.interface import PartyRow
from rgs.store.sqlite.store import connect
from rgs.v1 import (
    admin_pb2,
    audit_pb2,
    catalog_pb2,
    history_pb2,
    play_pb2,
    reconciliation_pb2,
    report_pb2,
    session_pb2,
    support_pb2,
    table_pb2,
)
from tests.support.api.harness import authority, channel_of, entropy, reason_in, server_certificate
from tests.support.clocks import NOW_MS, ManualClock
from tests.support.service.harness import NODE_KEY, ServiceHarness, key_bundle
from tests.support.waiting import at_once

DAY_MS = 86_400_000
PARTIES = {
    "op-1": Role.OPERATOR,
    "op-2": Role.OPERATOR,
    "auditor-1": Role.AUDITOR,
    "regulator-1": Role.REGULATOR,
    "lab-1": Role.LAB,
    "support-1": Role.SUPPORT,
    "admin-1": Role.ADMIN,
    "admin-2": Role.ADMIN,
}
STRANGER = "stranger"
"""Has a certificate of the authority that stands in no list."""
MODULES = (
    catalog_pb2,
    session_pb2,
    play_pb2,
    history_pb2,
    report_pb2,
    support_pb2,
    audit_pb2,
    admin_pb2,
    reconciliation_pb2,
    table_pb2,
)
SERVICES = [
    module.DESCRIPTOR.services_by_name[name] for module in MODULES for name in module.DESCRIPTOR.services_by_name
]
REQUESTS: dict[str, Any] = {
    f"{service.full_name}/{method.name}": method.input_type for service in SERVICES for method in service.methods
}
"""Every method of the contract and the descriptor of its request."""
STREAM = play.STREAM_NAME
FOLLOWED: dict[str, Any] = {
    f"{audit.SERVICE}/StreamEntries": audit_pb2.StreamEntriesRequest,
    f"{report.SERVICE}/WatchFinals": report_pb2.WatchFinalsRequest,
}
WATCH = f"{table.SERVICE}/Watch"
WATCHED = {WATCH, f"{table.SERVICE}/WatchSeat", f"{table.SERVICE}/WatchLobby"}
TAKES_STREAM, GIVES_STREAM = (
    {
        f"{service.full_name}/{method.name}"
        for service in SERVICES
        for method in service.methods
        if getattr(method, flag)
    }
    for flag in ("client_streaming", "server_streaming")
)


def now_ms() -> int:
    """Where the clock of a wired harness stands: certificates are valid, and the keys of the server known already."""
    return max(SystemClock().now_ms(), NOW_MS)


@cache
def certificate(party: str) -> Issued:
    role = PARTIES.get(party, Role.OPERATOR)
    return issue_client(authority(), role, party, entropy().read, SystemClock().now_ms() - 10 * DAY_MS)


def vkey_of(origin: str) -> str:
    """The verifier key of a shard of the server's log."""
    return format_vkey(note_key(origin, ED25519, NODE_KEY))


class ThreadJob:
    """A run in a thread, which nobody can kill; it holds the lock as a process would."""

    def __init__(self, running: asyncio.Future[int], lock: int) -> None:
        self._running = running
        running.add_done_callback(lambda _: os.close(lock))

    async def wait(self) -> int:
        return await self._running

    def kill(self) -> None:
        pass


class Wire:
    """A harness and its endpoint; one channel a party."""

    def __init__(self, folder: Path, *, limits: PartyLimits = PartyLimits(), **options: Any) -> None:  # noqa: B008
        encoder = Encoder(Catalog(GameCatalog()).list())
        options = {"clock": ManualClock(now_ms()), **options}
        options = {"encode": encoder, "table_encode": TableEncoder(encoder), **options}
        self.harness = ServiceHarness(folder, **options)
        for party, role in PARTIES.items():
            at_once(self._allow(party, role))
        self.faults: list[str] = []
        services = self.harness.services
        gate = Gate(self.harness.parties, self.harness.clock, read_certificate)
        at_once(gate.refresh())
        services.certificates.refresh = gate.refresh
        self.gate = gate
        self.calls = Calls(gate, self.harness.clock, encoder.act, self.faults.append, limits=limits)
        log = PublicLog(audit=services.audit, folder=folder / "log", vkey_of=vkey_of)
        feed = feed_of(services.tables, self.harness.store, self.harness.clock, shared=False)
        methods = {**methods_of(services, encoder, log, feed), reconciliation.SERVICE: self._reconciliations(folder)}
        self.endpoint = Endpoint(
            listen="127.0.0.1:0",
            tls=Tls(server_certificate().key_pem, server_certificate().certificate_pem, authority().certificate_pem),
            calls=self.calls,
            services=methods,
            with_reflection=False,
        )
        self._channels: dict[str, grpc.aio.Channel] = {}

    def _reconciliations(self, folder: Path) -> Methods:
        """Of this server, with runs in a thread."""
        shelf, clock = Shelf(folder / "reconciliation"), self.harness.clock
        path = folder / "rgs.db"

        async def begin(run: Path, lock: int, memory_mb: int) -> ThreadJob:
            inputs = JobInputs(path, folder / "regulator.db", key_bundle(), NODE_KEY, clock.now_ms(), memory_mb)
            return ThreadJob(asyncio.get_running_loop().run_in_executor(None, run_job, inputs, run), os.dup(lock))

        self.runs = ReconciliationRuns(shelf, clock, begin, memory_mb=512)
        submissions = Submissions(shelf, clock, rows_max=1_000)
        return reconciliation.reconciliation_methods(submissions, self.runs, ReconciliationReports(shelf, clock))

    async def start(self) -> None:
        await self.runs.start()
        await self.harness.start()
        await self.endpoint.start()

    async def stop(self) -> None:
        while self._channels:
            await self._channels.popitem()[1].close()
        await self.endpoint.stop(5)
        await self.runs.stop()
        await self.harness.stop()

    def channel(self, party: str = "op-1") -> grpc.aio.Channel:
        if party not in self._channels:
            self._channels[party] = channel_of(self.endpoint.port, certificate(party))
        return self._channels[party]

    async def call(self, party: str, method: str, data: bytes) -> tuple[Status, list[bytes]]:
        """How a call ended and what it answered. Every refusal is told in full, or came from gRPC itself."""
        channel: Any = self.channel(party)
        got: list[bytes] = []
        call: Any
        if method in TAKES_STREAM & GIVES_STREAM:
            call = channel.stream_stream(f"/{method}")()
        elif method in TAKES_STREAM:
            call = channel.stream_unary(f"/{method}")(iter([data]))
        elif method in GIVES_STREAM:
            call = channel.unary_stream(f"/{method}")(data)
        else:
            call = channel.unary_unary(f"/{method}")(data)
        try:
            if method in TAKES_STREAM & GIVES_STREAM:
                await call.write(data)
            if method == STREAM:
                await call.done_writing()
            if method in GIVES_STREAM:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_follows_s(method, data)):
                        while (part := await call.read()) is not grpc.aio.EOF:
                            got.append(part)
                call.cancel()
            else:
                got.append(await call)
        except grpc.aio.AioRpcError as error:
            result = dict(error.trailing_metadata()).get("grpc-status-details-bin")
            return _reported(error, result), got
        return Status(), got

    async def ask(self, party: str, method: str, message: Message) -> bytes:
        """The answer of a call that has to be let through."""
        status, got = await self.call(party, method, message.SerializeToString())
        assert not status.code, status
        return got[0] if got else b""

    async def tick(self, milliseconds: int = 1_000) -> None:
        """What the server does in the background, once."""
        services = self.harness.services
        self.harness.clock.tick(milliseconds)
        await services.monitor.poll()
        await services.interruptions.finish_due()
        await self.harness.settle()
        await services.events.flush(everything=True)

    async def _allow(self, party: str, role: Role) -> None:
        issued = certificate(party).certificate
        fingerprint = fingerprint_of(issued)
        jurisdiction = "demo" if role is Role.OPERATOR else ""
        if fingerprint not in {row.fingerprint for row in await self.harness.parties.all()}:
            await self.harness.parties.add(
                PartyRow(fingerprint, party, role.value, jurisdiction, now_ms() - DAY_MS, None, last_ms_of(issued))
            )


def _follows_s(method: str, data: bytes) -> float | None:
    """How long to read a stream that goes on for as long as somebody reads it; None for one that ends."""
    if method in WATCHED:
        return 0.1
    if method in FOLLOWED:
        with contextlib.suppress(DecodeError):
            return 1 if FOLLOWED[method].FromString(data).follow else None
    return None


def _reported(error: grpc.aio.AioRpcError, details: Any) -> Status:
    if details is None:
        return Status(code=error.code().value[0], message=error.details() or "")
    status = Status.FromString(details)
    assert (status.code, status.message) == (error.code().value[0], error.details())
    assert reason_in(status)
    return status


@asynccontextmanager
async def wired(folder: Path, **options: Any) -> AsyncIterator[Wire]:
    wire = Wire(folder, **options)
    await wire.start()
    try:
        yield wire
    finally:
        await wire.stop()


# --- the books as they stand ------------------------------------------------------------------------------------------

Money = dict[str, tuple[Any, ...]]


class Till:
    """Reads every balance of the server over connections of its own."""

    def __init__(self, folder: Path) -> None:
        self._main = connect(folder / "rgs.db", read_only=True)
        self._wallet = connect(folder / "wallet.db", read_only=True)

    def money(self) -> Money:
        """Every balance that a call could change: the session's and, under its player, the wallet's."""
        sessions = self._main.execute(
            "SELECT session_id, bought_minor, staked_minor, returned_minor, paid_out_minor FROM sessions"
        )
        accounts = self._wallet.execute("SELECT operator, player, currency, balance_minor FROM accounts")
        money: Money = {row[0]: tuple(row[1:]) for row in sessions}
        money |= {"/".join(row[:3]): tuple(row[3:]) for row in accounts}
        return money

    def owner(self, key: str) -> str:
        """Whose session or account this is."""
        if "/" in key:
            return key.split("/", maxsplit=1)[0]
        (operator,) = self._main.execute("SELECT operator FROM sessions WHERE session_id = ?", (key,)).fetchone()
        return str(operator)

    def stands(self, session_id: str) -> dict[str, int]:
        """The numbers that a client of this session would name next, less one; 1 as round version without a round."""
        query = """SELECT round_no, purchase_no, coalesce((SELECT json_array_length(actions) + 1 FROM rounds
            WHERE round_id = open_round_id), 1) FROM sessions WHERE session_id = ?"""
        row = self._main.execute(query, (session_id,)).fetchone()
        return dict(zip(("round_no", "purchase_no", "round_version"), row, strict=True))

    def close(self) -> None:
        self._main.close()
        self._wallet.close()


@contextlib.contextmanager
def till(folder: Path) -> Iterator[Till]:
    with closing(Till(folder)) as opened:
        yield opened
