"""One worker and two: `rgs serve --workers` over PostgreSQL as processes of their own, under a load without a pause.

Each number of workers has a home and a database server; they take turns. 64 players play on streams; each connection
of the load goes to the worker that the kernel chooses. Printed beside the figures: the share of each process of the
server, of the database and of the load generator, which run on the same processors.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc.aio

from bench.database import CpuSeconds, database
from bench.figures import BenchError, Figure, ratio
from bench.homes import PARTY, make_home
from bench.players import Player
from bench.saturation import Saturated, saturate
from bench.shares import below, process_of
from rgs.devkit.client import ClientIdentity
from rgs.node.config import Config, load_config
from tests.support.process.workers import Service

WORKERS: Final = (1, 2)
PLAYERS: Final = 64
CONNECTIONS: Final = 32
START_S: Final = 60.0
STOP_S: Final = 30.0
READY: Final = {"listening", "worker_serves"}
"""What the log says of a server of one process, and of each worker of several."""


@dataclass(frozen=True, slots=True)
class Counts:
    """CPU seconds so far: of every process of the server, of the database, of the load generator."""

    server: Mapping[int, float]
    database_s: float
    load_s: float


@dataclass(frozen=True, slots=True)
class Served:
    """A server, its players, and the CPU seconds of its database."""

    service: Service
    players: list[Player]
    database_s: CpuSeconds

    def look(self) -> Counts:
        pid = self.service.process.pid
        return Counts(
            server={one: process_of(one).cpu_s for one in (pid, *below(pid))},
            database_s=self.database_s(),
            load_s=time.process_time(),
        )

    async def window(self, seconds: float) -> Saturated[Counts]:
        await asyncio.gather(*(player.refill() for player in self.players))
        return await saturate([player.play_streamed for player in self.players], seconds, self.look)


def measure(folder: Path, repeats: int, window_s: float, emit: Callable[[str], None]) -> list[Figure]:
    """The figures; prints the shares of each number of workers."""
    with ExitStack() as opened:
        databases = {workers: opened.enter_context(database()) for workers in WORKERS}
        for workers, (address, _) in databases.items():
            config, _ = make_home(folder / str(workers), address)
            with (config.home / "rgs.toml").open("a", encoding="utf-8") as file:
                file.write("\nparty_messages_per_s = 1000000\n")  # one party makes the whole load
        cpu = {workers: cpu_s for workers, (_, cpu_s) in databases.items()}
        return asyncio.run(_run(folder, cpu, repeats, window_s, emit))


async def _run(
    folder: Path, cpu: Mapping[int, CpuSeconds], repeats: int, window_s: float, emit: Callable[[str], None]
) -> list[Figure]:
    measured: dict[int, list[Saturated[Counts]]] = {workers: [] for workers in WORKERS}
    async with AsyncExitStack() as opened:
        served = {
            workers: await opened.enter_async_context(_serving(load_config(folder / str(workers)), workers, cpu_s))
            for workers, cpu_s in cpu.items()
        }
        for repeat in range(repeats):
            for workers, one in served.items():
                emit(f"{workers} workers, repeat {repeat + 1} of {repeats}")
                measured[workers].append(await one.window(window_s))
        for one in served.values():
            await asyncio.gather(*(player.hang_up() for player in one.players))
    for workers, some in measured.items():
        print(f"{f'workers, {workers}':20} {_line(some)}", flush=True)
    return figures_of(measured)


@asynccontextmanager
async def _serving(config: Config, workers: int, database_s: CpuSeconds) -> AsyncIterator[Served]:
    """The processes, until their orderly end; and players on connections of their own."""
    said = config.home / "said.txt"
    service = Service(config, said, workers)
    try:
        await _until_ready(service, workers)
        credentials = ClientIdentity.of_party(config, PARTY).credentials()
        options = (("grpc.use_local_subchannel_pool", 1),)
        address = f"127.0.0.1:{service.port}"
        channels = [grpc.aio.secure_channel(address, credentials, options=options) for _ in range(CONNECTIONS)]
        try:
            players = [Player(number, channels[number % CONNECTIONS]) for number in range(PLAYERS)]
            await asyncio.gather(*(player.refill() for player in players))
            yield Served(service, players, database_s)
        finally:
            for channel in channels:
                await channel.close(grace=None)
    finally:
        service.process.terminate()
        try:
            await asyncio.to_thread(service.process.wait, STOP_S)
        finally:
            service.process.kill()
            service.process.wait()


async def _until_ready(service: Service, workers: int) -> None:
    deadline = time.monotonic() + START_S
    while sum(line["event"] in READY for line in _lines(service)) < workers:
        if service.process.poll() is not None or time.monotonic() > deadline:
            raise BenchError(f"rgs serve did not come up: {service.log.read_text(encoding='utf-8')[-2000:]}")
        await asyncio.sleep(0.1)


def _lines(service: Service) -> list[dict[str, object]]:
    """What is written of the log; its last line may not be whole yet."""
    path = service.config.log
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.split("\n")[:-1]]


def _line(some: list[Saturated[Counts]]) -> str:
    elapsed_s = sum(one.elapsed_s for one in some)
    processes = sorted((sum(_server_s(one, pid) for one in some) for pid in some[-1].after.server), reverse=True)
    server = ", ".join(f"{used_s / elapsed_s:.0%}" for used_s in processes)
    database_s = sum(one.after.database_s - one.before.database_s for one in some)
    load_s = sum(one.after.load_s - one.before.load_s for one in some)
    return (
        f"processes of the server {server} of a processor, database {database_s / elapsed_s:.0%}, load generator"
        f" {load_s / elapsed_s:.0%}, of {os.cpu_count()} processors"
    )


def _server_s(one: Saturated[Counts], pid: int) -> float:
    return one.after.server.get(pid, 0.0) - one.before.server.get(pid, 0.0)


def figures_of(measured: Mapping[int, list[Saturated[Counts]]]) -> list[Figure]:
    """Of each number of workers, and two over one."""
    figures = []
    rounds: dict[int, list[float]] = {}
    cpu_s: dict[int, list[float]] = {}
    for workers, some in measured.items():
        database_s = [(one.after.database_s - one.before.database_s) / len(one.calls) for one in some]
        server_s = [sum(_server_s(one, pid) for pid in one.after.server) / len(one.calls) for one in some]
        rounds[workers] = [one.rounds_per_s for one in some]
        cpu_s[workers] = [one + other for one, other in zip(server_s, database_s, strict=True)]
        figures += [
            Figure(f"workers_{workers}_rounds_per_s", tuple(rounds[workers]), "1/s"),
            Figure(f"workers_{workers}_server_cpu_us", tuple(1e6 * one for one in server_s), "us"),
            Figure(f"workers_{workers}_database_cpu_us", tuple(1e6 * one for one in database_s), "us"),
        ]
    one, two = WORKERS
    return [
        *figures,
        Figure("workers_2_over_1_rounds", ratio("", rounds[two], rounds[one]).values, "larger is better"),
        ratio("workers_2_over_1_all_cpu", cpu_s[two], cpu_s[one]),
    ]
