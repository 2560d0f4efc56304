"""The server under test: `python -m bench.subject HOME` serves a home, and an empty unary echo beside it, until its
input ends.

The server is put together and run as `rgs serve` does: same loop, log, settings and collector. The echo is the
yardstick: a second gRPC server on the same event loop, with the same credentials and options and none of our code
behind it. Each line of input is answered with one JSON line, a `bench.process.Reading`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from pathlib import Path
from typing import Final

import grpc.aio
import uvloop
from google.protobuf.empty_pb2 import Empty

from rgs.api.endpoint import CALLS_MAX, OPTIONS
from rgs.cli.files import read_whole
from rgs.clock import SystemClock
from rgs.config import Config, load_config
from rgs.logging import Log
from rgs.manifest import Manifest, make_manifest
from rgs.server import Server
from rgs.store.sqlite import SqliteStore

HOST: Final = "127.0.0.1"
ECHO_SERVICE: Final = "bench.Echo"
ECHO_METHOD: Final = f"/{ECHO_SERVICE}/Echo"


async def run(config: Config, manifest: Manifest) -> None:
    """Serve until the input ends."""
    server = Server(config, manifest)
    await server.start()
    try:
        store = next(one for one in gc.get_objects() if type(one) is SqliteStore)
        echo, port = _echo_server(config)
        await echo.start()
        gc.collect()
        gc.freeze()
        _tell({"address": f"{HOST}:{server.port}", "echo_address": f"{HOST}:{port}"})
        lines = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        while await lines.readline():
            _tell(
                {
                    "cpu_s": time.process_time(),
                    "groups": store.writer.groups,
                    "changes": store.writer.changes,
                    "queued": len(await store.reports(1)),
                }
            )
        await echo.stop(grace=None)
    finally:
        await server.stop()


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


def _tell(document: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def main() -> None:
    """One home, one life."""
    # One party is the whole load here: its messages are counted as ever, but it must not reach a limit of a share.
    config = load_config(Path(sys.argv[1]), {"listen": f"{HOST}:0", "party_messages_per_s": 1_000_000})
    with (
        Log(config.log, config.log_level, SystemClock(), people=None),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(run(config, make_manifest()))


if __name__ == "__main__":
    main()
