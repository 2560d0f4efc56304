"""A simulator on a port of this process, and the real client of it, over mutual TLS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from rgs.adapters.grpc.peer import PeerSettings
from rgs.adapters.grpc.regulator import GrpcRegulator
from rgs.adapters.grpc.wallet import GrpcWallet
from rgs.devkit.simulators.faults import Fault, FaultPlan, Faults, Planned
from rgs.devkit.simulators.regulator import SimulatedRegulator
from rgs.devkit.simulators.serving import ServerTls, SimulatorServer
from rgs.devkit.simulators.wallet import SimulatedWallet
from tests.support.adapters.books import counting_ids, ulid
from tests.support.api.harness import authority, operator_certificate, server_certificate
from tests.support.clocks import ManualClock

HONEST = FaultPlan()
OPENING_MINOR = 100_000
DEADLINE_MS = 2_000


def tls() -> ServerTls:
    server = server_certificate()
    return ServerTls(server.key_pem, server.certificate_pem, authority().certificate_pem)


def settings(port: int, **other: Any) -> PeerSettings:
    own = operator_certificate()
    return PeerSettings(
        **{
            "target": f"localhost:{port}",
            "ca": authority().certificate_pem,
            "certificate": own.certificate_pem,
            "key": own.key_pem,
            "deadline_ms": DEADLINE_MS,
            "failures_max": 1_000,
            **other,
        }
    )


def attempt_ids() -> Callable[[], str]:
    numbers = count(10**9)
    return lambda: ulid(next(numbers))


def always(*faults: Fault) -> FaultPlan:
    return FaultPlan(tuple(Planned(fault) for fault in faults))


def at(method: str, call: int, *faults: Fault) -> FaultPlan:
    return FaultPlan(tuple(Planned(fault, method, call) for fault in faults))


@dataclass
class Running:
    """A simulator, its server, and a client of it."""

    simulator: Any
    server: SimulatorServer
    client: Any
    clock: ManualClock
    lines: list[str] = field(default_factory=list)
    contradictions: list[tuple[str, ...]] = field(default_factory=list)


@asynccontextmanager
async def running_wallet(folder: Path, plan: FaultPlan = HONEST, **options: Any) -> AsyncIterator[Running]:
    clock = ManualClock()
    lines: list[str] = []
    reported: list[tuple[str, ...]] = []
    simulator = SimulatedWallet(
        folder / "wallet.db", clock.now_ms, Faults(plan, lines.append), opening_minor=OPENING_MINOR, currency="EUR"
    )
    server = SimulatorServer(simulator, "localhost:0", tls())
    await server.start()
    client = GrpcWallet(
        "wallet of op",
        settings(server.port, **options),
        new_id=attempt_ids(),
        now_ms=clock.now_ms,
        on_contradiction=lambda *what: reported.append(what),
    )
    try:
        yield Running(simulator, server, client, clock, lines, reported)
    finally:
        await client.close()
        await server.stop()


@asynccontextmanager
async def running_regulator(
    folder: Path, plan: FaultPlan = HONEST, *, counts: bool = False, **options: Any
) -> AsyncIterator[Running]:
    clock = ManualClock()
    lines: list[str] = []
    reported: list[tuple[str, ...]] = []
    simulator = SimulatedRegulator(
        folder / "regulator.db", clock.now_ms, Faults(plan, lines.append), counting_ids(), counts=counts
    )
    server = SimulatorServer(simulator, "localhost:0", tls())
    await server.start()
    client = GrpcRegulator(
        "regulator",
        settings(server.port, **options),
        new_id=attempt_ids(),
        now_ms=clock.now_ms,
        on_contradiction=lambda *what: reported.append(what),
    )
    try:
        yield Running(simulator, server, client, clock, lines, reported)
    finally:
        await client.close()
        await server.stop()
