"""The gRPC server: one port, mutual TLS always, limits, health, reflection, an orderly end (ARCHITECTURE section 3).

Refuses clients without a certificate of the CA, messages above MESSAGE_BYTES_MAX, and to share its port but with the
workers of its own node. Ends in this order: health says NOT_SERVING, waiting streams are told, no new calls, those
under way are answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import grpc
from grpc_reflection.v1alpha import reflection

from rgs.api import health as health_service
from rgs.api.calls import Calls, Download, Methods, Unary, Upload
from rgs.api.health import Health
from rgs.api.play import SERVICE as PLAY_SERVICE
from rgs.api.play import STREAM, PlayStream
from rgs.core.errors import InvalidFieldError
from rgs.service.play.notices import Notices

MESSAGE_BYTES_MAX: Final = 64 * 1024
"""Largest request; the largest that has a meaning is far below a kilobyte."""
HEADERS_BYTES_MAX: Final = 64 * 1024
"""Headers of one call as HTTP/2 counts them, with 32 bytes for each; more are refused by gRPC itself."""
CALLS_MAX: Final = 8_192
"""Calls and open streams of all clients together; more are refused with RESOURCE_EXHAUSTED."""

CANCEL_S: Final = 1.0
"""What a cancelled call is given to come to its end, whatever the grace."""

OPTIONS: Final[tuple[tuple[str, int], ...]] = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    # One limit, not gRPC's two of 8 and 16 KiB between which it refuses at random, and so far above our own
    # (`rgs.api.auth.verify_metadata`) that it is we who tell a caller what is too much.
    ("grpc.max_metadata_size", HEADERS_BYTES_MAX),
    ("grpc.absolute_max_metadata_size", HEADERS_BYTES_MAX),
    ("grpc.max_concurrent_streams", 1_024),
    # What a stream may send ahead of being read stays at 64 KiB, however fast the line: requests are small, and who
    # does not read his answers must not fill our memory with questions.
    ("grpc.http2.bdp_probe", 0),
    # A connection without a call for half an hour is closed; clients open it again by themselves. There is no largest
    # age: who may call is asked at every call and message, however old the connection is.
    ("grpc.max_connection_idle_ms", 1_800_000),
    # Who has gone without a word is noticed within about a minute and a half; clients may ask every ten seconds, and
    # are cut off when they have asked too soon more often than twice.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.ping_timeout_ms", 20_000),  # of the ping itself: the longer of the two counts, and is 60 s by default
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.http2.max_ping_strikes", 2),
)


@dataclass(frozen=True, slots=True)
class Tls:
    """What the TLS of the server needs, PEM: its key and certificate chain, and the CAs of client certificates."""

    key: bytes = field(repr=False)
    chain: bytes
    client_ca: bytes


def _verify_free(listen: str) -> None:
    """InvalidFieldError if nobody can listen there: asked before gRPC is, which says it in lines of its own."""
    host, _, port = listen.rpartition(":")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as gRPC does
            probe.bind(address)
    except OSError as error:
        raise _not_free(listen, error.strerror or type(error).__name__) from None


def _not_free(listen: str, why: str) -> InvalidFieldError:
    return InvalidFieldError(f"cannot listen on {listen}: {why}", field="listen", value=listen)


def _wrapped(
    calls: Calls, name: str, method: Unary[Any] | Download[Any] | Upload[Any]
) -> grpc.RpcMethodHandler[Any, Any]:
    if isinstance(method, Unary):
        return calls.unary(name, method)
    return calls.download(name, method) if isinstance(method, Download) else calls.upload(name, method)


class Endpoint:
    """The services on a port. `services` are the methods by full service name."""

    def __init__(
        self,
        *,
        listen: str,
        shared: bool = False,
        tls: Tls,
        calls: Calls,
        services: Mapping[str, Methods],
        notices: Notices,
        with_reflection: bool,
    ) -> None:
        """`shared`: other workers listen there too (SO_REUSEPORT), and whoever begins them keeps the port."""
        self._calls = calls
        self.health = Health(services, calls)
        options = (*OPTIONS, ("grpc.so_reuseport", int(shared)))
        self._server = grpc.aio.server(options=options, maximum_concurrent_rpcs=CALLS_MAX)
        for service, methods in services.items():
            handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
                method: _wrapped(calls, f"{service}/{method}", answering) for method, answering in methods.items()
            }
            if service == PLAY_SERVICE:
                handlers[STREAM] = PlayStream(calls, methods, notices).method()
            self._add(service, handlers)
        self._add(health_service.SERVICE, self.health.handlers())
        if with_reflection:
            names = (*services, health_service.SERVICE, reflection.SERVICE_NAME)
            reflection.enable_server_reflection(names, self._server)
        credentials = grpc.ssl_server_credentials([(tls.key, tls.chain)], tls.client_ca, require_client_auth=True)
        if not shared:
            _verify_free(listen)
        try:
            self.port = self._server.add_secure_port(listen, credentials)
        except RuntimeError:
            raise _not_free(listen, "it cannot be bound") from None

    async def start(self) -> None:
        """Take calls."""
        await self._server.start()

    async def stop(self, grace_s: float) -> None:
        """Take no more calls, and let those under way be answered: for `grace_s` seconds, then they are cancelled."""
        self.health.drain()
        self._calls.drain()
        await self._server.stop(grace_s)
        # By our own count, for `stop` does not wait for everything that it should (gRPC issue 37239).
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._calls.finished(), max(grace_s, CANCEL_S))

    def _add(self, service: str, handlers: Mapping[str, grpc.RpcMethodHandler[Any, Any]]) -> None:
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, dict(handlers)),))
