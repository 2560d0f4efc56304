"""The server under test: `python -m bench.subject HOME STREAMS` serves a home, and the yardsticks beside it, until its
input ends.

The server runs as under `rgs serve`: same loop, log with its line for each call, settings and collector. The yardsticks
are a second gRPC server on the same event loop, with the same credentials and options: an empty echo and an echo of our
message sizes, without our code, and the floor (`bench.floor`), each also as a stream. Each line of input is answered
with one JSON line, a `bench.process.Reading`. The watch over returns looks every five seconds; before it answers a line
`look`, the server looks once more, so that a window pays for its own rounds.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import grpc.aio
import uvloop
from google.protobuf.empty_pb2 import Empty
from google.protobuf.wrappers_pb2 import BytesValue

from bench.database import server_cpu_s
from bench.floor import RESPONSE_BYTES, Floor
from rgs.api.endpoint import CALLS_MAX, OPTIONS
from rgs.integrity.manifest import Manifest, make_manifest
from rgs.node.clock import SystemClock
from rgs.node.config import Config, load_config
from rgs.node.files import read_whole
from rgs.node.logging import Log
from rgs.node.server import Server, schedule
from rgs.service.admin.monitoring import Monitoring
from rgs.store.address import StoreAddress
from rgs.store.interface import Store
from rgs.store.opening import open_store

HOST: Final = "127.0.0.1"
LOOK: Final = b"look\n"
ECHO_SERVICE: Final = "bench.Echo"
ECHO_METHOD: Final = f"/{ECHO_SERVICE}/Echo"
SIZED: Final = "Sized"
FLOOR: Final = "Floor"
YARDSTICKS: Final = (SIZED, FLOOR)
"""Methods of our message sizes; with `Stream` behind the name as a stream."""
FLUSH_S: Final = 1.0


async def run(config: Config, manifest: Manifest, log: Log) -> None:
    """Serve until the input ends."""
    opened: list[Store] = []

    async def open_and_report(where: StoreAddress) -> Store:
        opened.append(await open_store(where))
        return opened[-1]

    looking, look = asyncio.Lock(), Monitoring.poll

    async def look_alone(monitoring: Monitoring) -> int:
        async with looking:  # two looks at once: the store would refuse one of them, and close its guard
            return await look(monitoring)

    server = Server(config, manifest, log=log)
    with patch("rgs.node.server.open_store", open_and_report), patch.object(Monitoring, "poll", look_alone):
        await server.start()
        poll = server.services.monitoring.poll
    try:
        (store,) = opened
        for left in config.home.glob("floor.*"):  # of a server that served this home before
            left.unlink()
        floor = await Floor.open(config.home / "floor.db")
        echo, port = _echo_server(config, floor)
        await echo.start()
        flushing = asyncio.create_task(_flush(log))
        gc.collect()
        gc.freeze()
        _emit({"address": f"{HOST}:{server.port}", "echo_address": f"{HOST}:{port}"})
        lines = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        while line := await lines.readline():
            if line == LOOK:
                await poll()
            _emit(
                {
                    "cpu_s": time.process_time(),
                    "tree_cpu_s": server_cpu_s(os.getpid()),
                    "rss_bytes": rss_bytes(),
                    "groups": store.writer.groups,
                    "changes": store.writer.changes,
                    "queued": len(await store.reports(1)),
                    "threads": {str(thread.native_id): thread.name for thread in threading.enumerate()},
                }
            )
        flushing.cancel()
        await echo.stop(grace=None)
        await floor.close()
    finally:
        await server.stop()


def rss_bytes() -> int:
    """The resident memory of this process, with its code and shared pages."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


async def _flush(log: Log) -> None:
    """As `rgs serve` does once a second."""
    while True:
        await asyncio.sleep(FLUSH_S)
        log.flush()


def _echo_server(config: Config, floor: Floor) -> tuple[grpc.aio.Server, int]:
    async def echo(request: Empty, _context: grpc.aio.ServicerContext[Empty, Empty]) -> Empty:
        return request

    method: Any = grpc.unary_unary_rpc_method_handler(
        echo, request_deserializer=Empty.FromString, response_serializer=Empty.SerializeToString
    )
    answer = BytesValue(value=bytes(RESPONSE_BYTES))

    async def sized(_request: BytesValue, _context: object) -> BytesValue:
        return answer

    async def floored(request: BytesValue, _context: object) -> BytesValue:
        return BytesValue(value=await floor.call(request.value))

    methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {"Echo": method}
    for name, step in ((SIZED, sized), (FLOOR, floored)):
        methods[name] = grpc.unary_unary_rpc_method_handler(
            step, request_deserializer=BytesValue.FromString, response_serializer=BytesValue.SerializeToString
        )
        methods[f"{name}Stream"] = grpc.stream_stream_rpc_method_handler(
            _streamed(step), request_deserializer=BytesValue.FromString,
            response_serializer=BytesValue.SerializeToString,
        )  # fmt: skip
    server = grpc.aio.server(options=OPTIONS, maximum_concurrent_rpcs=CALLS_MAX)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(ECHO_SERVICE, methods),))
    key = read_whole(config.tls / "server.key", "server key", secret=True)
    chain = read_whole(config.tls / "server.pem", "server certificate")
    client_ca = read_whole(config.ca, "client authorities")
    credentials = grpc.ssl_server_credentials([(key, chain)], client_ca, require_client_auth=True)
    return server, server.add_secure_port(f"{HOST}:0", credentials)


def _streamed(step: Callable[[BytesValue, object], Awaitable[BytesValue]]) -> Callable[..., Awaitable[None]]:
    async def converse(_requests: object, context: Any) -> None:
        while (request := await context.read()) is not grpc.aio.EOF:
            await context.write(await step(request, context))

    return converse


def _emit(document: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Serve the home of the command line; more open streams than the product takes, if a number of them follows."""
    home, streams_max = Path(sys.argv[1]), int(sys.argv[2])
    # One party makes the whole load here: its messages are counted as usual, but its limit must not be reached.
    settings: dict[str, str | int] = {"listen": f"{HOST}:0", "party_messages_per_s": 1_000_000}
    if streams_max:
        settings["party_streams_max"] = streams_max
    config = load_config(home, settings)
    schedule(config)
    with (
        patch("rgs.api.endpoint.CALLS_MAX", max(CALLS_MAX, streams_max)),
        Log(config.log, config.logging_level, SystemClock(), people=None) as log,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(run(config, make_manifest(), log))


if __name__ == "__main__":
    main()
