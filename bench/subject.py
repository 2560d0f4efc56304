"""The server under test: `python -m bench.subject HOME` serves a home, and an empty unary echo beside it, until its
input ends.

The server runs as under `rgs serve`: same loop, log, settings and collector. The echo is the yardstick: a second gRPC
server on the same event loop, with the same credentials and options and without our code. Each line of input is
answered with one JSON line, a `bench.process.Reading`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import sys
import time
from pathlib import Path
from typing import Final
from unittest.mock import patch

import grpc.aio
import uvloop
from google.protobuf.empty_pb2 import Empty

from rgs.api.endpoint import CALLS_MAX, OPTIONS
from rgs.integrity.manifest import Manifest, make_manifest
from rgs.node.clock import SystemClock
from rgs.node.config import Config, load_config
from rgs.node.files import read_whole
from rgs.node.logging import Log
from rgs.node.server import Server, schedule
from rgs.store.address import StoreAddress
from rgs.store.interface import Store
from rgs.store.opening import open_store

HOST: Final = "127.0.0.1"
ECHO_SERVICE: Final = "bench.Echo"
ECHO_METHOD: Final = f"/{ECHO_SERVICE}/Echo"


async def run(config: Config, manifest: Manifest) -> None:
    """Serve until the input ends."""
    opened: list[Store] = []

    async def open_and_report(where: StoreAddress) -> Store:
        opened.append(await open_store(where))
        return opened[-1]

    server = Server(config, manifest)
    with patch("rgs.node.server.open_store", open_and_report):
        await server.start()
    try:
        (store,) = opened
        echo, port = _echo_server(config)
        await echo.start()
        gc.collect()
        gc.freeze()
        _emit({"address": f"{HOST}:{server.port}", "echo_address": f"{HOST}:{port}"})
        lines = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        while await lines.readline():
            _emit(
                {
                    "cpu_s": time.process_time(),
                    "rss_bytes": rss_bytes(),
                    "groups": store.writer.groups,
                    "changes": store.writer.changes,
                    "queued": len(await store.reports(1)),
                }
            )
        await echo.stop(grace=None)
    finally:
        await server.stop()


def rss_bytes() -> int:
    """The resident memory of this process, with its code and shared pages."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def _echo_server(config: Config) -> tuple[grpc.aio.Server, int]:
    async def echo(request: Empty, _context: grpc.aio.ServicerContext[Empty, Empty]) -> Empty:
        return request

    method = grpc.unary_unary_rpc_method_handler(
        echo, request_deserializer=Empty.FromString, response_serializer=Empty.SerializeToString
    )
    server = grpc.aio.server(options=OPTIONS, maximum_concurrent_rpcs=CALLS_MAX)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(ECHO_SERVICE, {"Echo": method}),))
    key = read_whole(config.tls / "server.key", "server key", secret=True)
    chain = read_whole(config.tls / "server.pem", "server certificate")
    client_ca = read_whole(config.ca, "client authorities")
    credentials = grpc.ssl_server_credentials([(key, chain)], client_ca, require_client_auth=True)
    return server, server.add_secure_port(f"{HOST}:0", credentials)


def _emit(document: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Serve the home of the command line."""
    # One party makes the whole load here: its messages are counted as usual, but its limit must not be reached.
    config = load_config(Path(sys.argv[1]), {"listen": f"{HOST}:0", "party_messages_per_s": 1_000_000})
    schedule(config)
    with (
        Log(config.log, config.logging_level, SystemClock(), people=None),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(run(config, make_manifest()))


if __name__ == "__main__":
    main()
