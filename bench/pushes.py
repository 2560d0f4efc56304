"""What a pushed view costs the server with all of gRPC, over an empty unary echo of the same process.

Many Watch streams of one operator watch one table. An admin's orders raise its version without a round, and each view
goes to every stream. The next order waits until all have it, so that no stream skips one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import grpc.aio

from bench.figures import Figure, ratio
from bench.homes import PARTY, make_home, serving
from rgs.devkit.client import ClientIdentity
from rgs.devkit.shipped_tables import SHIPPED_TABLES, shipped_table
from rgs.node.config import load_config
from rgs.v1 import table_pb2 as pb
from rgs.v1.table_pb2_grpc import TableAdminServiceStub, TableServiceStub

WATCHERS: Final = 1_000
CHANNELS: Final = 4
VIEWS: Final = 20
"""Of each repeat."""
ECHOES: Final = 64
ANSWER_S: Final = 30.0


class _Crowd:
    """Streams that watch a table, and how many have its newest view."""

    def __init__(self, table: str, stubs: Sequence[Any]) -> None:
        self._version = 0
        self._there = 0
        self._all = asyncio.Event()
        request = pb.WatchRequest(watch_table=pb.WatchTable(table=table))
        self._streams: list[Any] = [stubs[number % len(stubs)].Watch() for number in range(WATCHERS)]
        self._tasks = [asyncio.create_task(self._read(stream, request)) for stream in self._streams]

    async def until(self, version: int) -> None:
        """Return once every stream has this version of the table."""
        self._version, self._there = version, 0
        self._all.clear()
        await asyncio.wait_for(self._all.wait(), ANSWER_S)

    def stop(self) -> None:
        for stream in self._streams:
            stream.cancel()
        for task in self._tasks:
            task.cancel()

    async def _read(self, stream: Any, request: pb.WatchRequest) -> None:
        await stream.write(request)
        while True:
            view = (await stream.read()).table
            if view.version >= self._version:
                self._there += 1
                if self._there == WATCHERS:
                    self._all.set()


async def run(folder: Path, repeats: int, emit: Callable[[str], None]) -> list[Figure]:
    """The figure of pushed views."""
    make_home(folder)
    pushed, echoed, kib = [], [], []
    table = SHIPPED_TABLES[0]
    async with serving(folder) as load, _stubs(folder, load.subject.address) as (admin, stubs):
        config = pb.ConfigureTableRequest(request_id=str(uuid4()), config=shipped_table(table), reason="BENCH")
        await admin.ConfigureTable(config)
        alone = (await load.subject.rest()).rss_bytes
        crowd = _Crowd(table, stubs)
        await crowd.until(1)
        view = await stubs[0].GetTable(pb.GetTableRequest(table=table))
        version = view.table.version
        await load.window(load.echoes(ECHOES))
        for repeat in range(repeats):
            emit(f"views to {WATCHERS} streams, repeat {repeat + 1} of {repeats}")
            echoed.append((await load.window(load.echoes(ECHOES))).cpu_per_call_s)
            before = await load.subject.rest()
            for _ in range(VIEWS):
                version += 1
                order = pb.SetTableOpenRequest(request_id=str(uuid4()), table=table, open=True, reason="BENCH")
                await asyncio.gather(crowd.until(version), admin.SetTableOpen(order))
            after = await load.subject.rest()
            pushed.append((after - before).cpu_s / VIEWS / WATCHERS)
            kib.append((after.rss_bytes - alone) / WATCHERS / 1024)
        crowd.stop()
    return [
        ratio("table_push_over_echo_cpu", pushed, echoed),
        Figure("table_push_cpu_us", tuple(one * 1e6 for one in pushed), "us"),
        Figure("table_stream_rss_kib", tuple(kib), "KiB"),
    ]


@asynccontextmanager
async def _stubs(home: Path, address: str) -> AsyncIterator[tuple[Any, list[Any]]]:
    """The admin's service, and the operator's over several connections."""
    config = load_config(home)
    options = (("grpc.use_local_subchannel_pool", 1),)
    parties = ["demo-admin", *[PARTY] * CHANNELS]
    channels = [
        grpc.aio.secure_channel(address, ClientIdentity.of_party(config, party).credentials(), options=options)
        for party in parties
    ]
    try:
        yield TableAdminServiceStub(channels[0]), [TableServiceStub(channel) for channel in channels[1:]]
    finally:
        for channel in channels:
            await channel.close(grace=None)
