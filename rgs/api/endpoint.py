"""The gRPC server: one port, mutual TLS always, limits, health, reflection, an orderly end (ARCHITECTURE section 3).

Clients need a certificate of the CA. Messages above MESSAGE_BYTES_MAX are refused. Only workers of the same node may
share the port. The end: health says NOT_SERVING, waiting streams end, no new calls are taken, those under way are
answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import grpc

from rgs.api import health as health_service
from rgs.api.calls import Calls, ClientStream, Duplex, Methods, ServerStream, Unary
from rgs.api.health import Health
from rgs.api.listening import not_listening
from rgs.core.errors import UnavailableError

MESSAGE_BYTES_MAX: Final = 64 * 1024
"""Largest request."""
HEADERS_BYTES_MAX: Final = 64 * 1024
"""Headers of one call as HTTP/2 counts them, with 32 bytes more for each. gRPC itself refuses more."""
CALLS_MAX: Final = 8_192
"""Calls and open streams of all clients together; more are refused with RESOURCE_EXHAUSTED."""

CANCEL_S: Final = 1.0
"""Seconds that a cancelled call gets for its end, even if the grace is shorter."""

OPTIONS: Final[tuple[tuple[str, int], ...]] = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    # One limit instead of gRPC's two, between which it refuses at random. It lies far above our own
    # (`rgs.api.auth.verify_metadata`), so that a caller gets our error, which says what is too much.
    ("grpc.max_metadata_size", HEADERS_BYTES_MAX),
    ("grpc.absolute_max_metadata_size", HEADERS_BYTES_MAX),
    ("grpc.max_concurrent_streams", 1_024),
    # A stream may send 64 KiB ahead of what was read, at any speed of the line: requests are small, and a client that
    # does not read its answers must not fill our memory.
    ("grpc.http2.bdp_probe", 0),
    # A connection without a call for half an hour is closed; clients open it again by themselves. Connections have no
    # largest age: callers are admitted at every call and message.
    ("grpc.max_connection_idle_ms", 1_800_000),
    # A client that vanished is noticed within about 90 seconds. Clients may ping every ten seconds; a client that
    # pings too early more than twice is disconnected.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.ping_timeout_ms", 20_000),  # the longer of the two timeouts counts; this one is 60 s by default
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.http2.max_ping_strikes", 2),
)


@dataclass(frozen=True, slots=True)
class Tls:
    """The files of the server's TLS, PEM: its key and certificate chain, and the CAs of client certificates."""

    key: bytes = field(repr=False)
    chain: bytes
    client_ca: bytes


def _verify_free(listen: str) -> None:
    """UnavailableError, InvalidFieldError if it is not free. Checked first: gRPC would write lines of its own."""
    host, _, port = listen.rpartition(":")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as gRPC does
            probe.bind(address)
    except OSError as error:
        raise not_listening(error, "cannot listen on", field="listen", listen=listen) from None


def _wrapped(
    calls: Calls, name: str, method: Unary[Any] | ServerStream[Any] | ClientStream[Any] | Duplex
) -> grpc.RpcMethodHandler[Any, Any]:
    if isinstance(method, Unary):
        return calls.unary(name, method)
    if isinstance(method, Duplex):
        return method.handler(calls, name)
    return calls.server_stream(name, method) if isinstance(method, ServerStream) else calls.client_stream(name, method)


class Endpoint:
    """The services on a port. `services` holds the methods by full service name."""

    def __init__(
        self,
        *,
        listen: str,
        shared: bool = False,
        tls: Tls,
        calls: Calls,
        services: Mapping[str, Methods],
        with_reflection: bool,
    ) -> None:
        """`shared`: other workers listen on the port too (SO_REUSEPORT); their supervisor keeps it."""
        self._calls = calls
        self.health = Health(services, calls)
        options = (*OPTIONS, ("grpc.so_reuseport", int(shared)))
        self._server = grpc.aio.server(options=options, maximum_concurrent_rpcs=CALLS_MAX)
        for service, methods in services.items():
            handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
                method: _wrapped(calls, f"{service}/{method}", answer) for method, answer in methods.items()
            }
            self._add(service, handlers)
        self._add(health_service.SERVICE, self.health.handlers())
        if with_reflection:
            from rgs.api import reflection  # noqa: PLC0415 - with what it needs a fiftieth of the start

            answering = reflection.handler([*services, health_service.SERVICE])
            for service in reflection.SERVICES:
                self._add(service, {reflection.METHOD: answering})
        credentials = grpc.ssl_server_credentials([(tls.key, tls.chain)], tls.client_ca, require_client_auth=True)
        if not shared:
            _verify_free(listen)
        try:
            self.port = self._server.add_secure_port(listen, credentials)
        except RuntimeError:  # taken since `_verify_free`, or since the supervisor bound it
            why = f"cannot listen on {listen}: it cannot be bound"
            raise UnavailableError(why, field="listen", value=listen) from None

    async def start(self) -> None:
        """Take calls."""
        await self._server.start()

    async def stop(self, grace_s: float) -> None:
        """Take no more calls, and answer those under way. After `grace_s` seconds they are cancelled."""
        self.health.drain()
        self._calls.drain()
        await self._server.stop(grace_s)
        # By our own count: gRPC's `stop` does not wait for all calls (issue 37239).
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._calls.finished(), max(grace_s, CANCEL_S))

    def _add(self, service: str, handlers: Mapping[str, grpc.RpcMethodHandler[Any, Any]]) -> None:
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, dict(handlers)),))
