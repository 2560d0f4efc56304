"""A front before the platform's wallet, for the game server to call: it passes bytes on, and makes faults on order."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import grpc

LOST_REPLY: Final = "lost reply"
"""The wallet has done it, and nobody hears of it."""
LOST_REQUEST: Final = "lost request"
"""The wallet never hears of it."""
PASS_ON_S: Final = 10.0


class FaultyWallet(grpc.GenericRpcHandler):
    """`faults`: what happens to the next call of a method; a method that is in `away` always loses its request."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.faults: dict[str, str] = {}
        self.away: set[str] = set()
        self.seen: Counter[str] = Counter()
        """Calls that came, by method."""
        self._lock = threading.Lock()
        self._server: grpc.Server | None = None
        self._channel: grpc.Channel | None = None

    def start(self, wallet: str, tls: Path) -> None:
        """Listen, and pass on to the wallet."""
        ca = (tls / "ca.pem").read_bytes()
        key, chain = (tls / "peers.key").read_bytes(), (tls / "peers.pem").read_bytes()
        self._channel = grpc.secure_channel(wallet, grpc.ssl_channel_credentials(ca, key, chain))
        self._server = grpc.server(ThreadPoolExecutor(8), handlers=[self])
        own = [((tls / "server.key").read_bytes(), (tls / "server.pem").read_bytes())]
        credentials = grpc.ssl_server_credentials(own, ca, require_client_auth=True)
        self._server.add_secure_port(self.address, credentials)
        self._server.start()

    def stop(self) -> None:
        """End it."""
        if self._server is not None:
            self._server.stop(None).wait()
        if self._channel is not None:
            self._channel.close()

    def service(self, handler_call_details: Any) -> Any:
        """Every method, in bytes."""
        path: str = handler_call_details.method

        def answer(request: bytes, context: Any) -> bytes:
            return self._answer(path, request, context)

        return grpc.unary_unary_rpc_method_handler(answer)

    def _answer(self, path: str, request: bytes, context: Any) -> bytes:
        method = path.rpartition("/")[2]
        with self._lock:
            self.seen[method] += 1
            fault = LOST_REQUEST if method in self.away else self.faults.pop(method, "")
        if fault == LOST_REQUEST:
            context.abort(grpc.StatusCode.UNAVAILABLE, "lost")
        assert self._channel is not None
        pass_on: Any = self._channel.unary_unary(path)
        found = b""
        try:
            found = pass_on(request, timeout=PASS_ON_S)
        except grpc.RpcError as error:
            context.set_trailing_metadata(error.trailing_metadata())
            context.abort(error.code(), error.details())
        if fault == LOST_REPLY:
            context.abort(grpc.StatusCode.UNAVAILABLE, "lost")
        return found
