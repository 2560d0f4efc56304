"""The port of the metrics: `GET /metrics` over HTTP/1.1, for a monitoring system, and nothing else.

On the machine itself it is HTTP, with a bearer token if one is set; with `metrics_ca` it is mutual TLS. On any other
address it is TLS always, with the server's own certificate, and a start without a token or `metrics_ca` is refused
(`rgs.node.config`). A request is small and gets one answer; slow clients and too many at once are dropped.
"""

from __future__ import annotations

import asyncio
import hmac
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from types import TracebackType
from typing import Final, Self

from rgs.api.listening import not_listening
from rgs.core.errors import InvalidFieldError
from rgs.node.config import Config, is_loopback
from rgs.node.files import read_whole
from rgs.node.metrics.exposition import format_metrics
from rgs.node.metrics.samples import Joined

PATH: Final = "/metrics"
REQUEST_BYTES_MAX: Final = 16 * 1024
TIMEOUT_S: Final = 15.0
"""A connection gets so long in all."""
CONNECTIONS_MAX: Final = 16
TOKEN_CHARACTERS: Final = range(32, 513)
Scrape = Callable[[], Awaitable[Joined]]


def read_token(config: Config) -> bytes:
    """The bearer token; empty if none is set. FileRefusedError, InvalidFieldError."""
    if config.metrics_token is None:
        return b""
    token = read_whole(config.metrics_token, "metrics token", secret=True).strip()
    if len(token) not in TOKEN_CHARACTERS or not all(0x21 <= byte <= 0x7E for byte in token):
        limit = "one line of 32 to 512 characters: letters, digits and signs of ASCII without spaces"
        raise InvalidFieldError(f"the file of metrics_token must hold {limit}", field="metrics_token", limit=limit)
    return token


def tls_of(config: Config) -> ssl.SSLContext | None:
    """TLS 1.2 or newer with the node's own certificate, and clients' certificates if `metrics_ca` is set; None on the
    machine itself without `metrics_ca`. FileRefusedError, InvalidFieldError.
    """
    if config.metrics_ca is None and is_loopback(config.metrics_listen):
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(config.tls / "server.pem", config.tls / "server.key")
    except (OSError, ssl.SSLError):
        raise InvalidFieldError(f"{config.tls} has no certificate of the server with its key", field="tls") from None
    if config.metrics_ca is not None:
        try:
            context.load_verify_locations(cadata=read_whole(config.metrics_ca, "CAs of scrapes").decode("ascii"))
        except (ssl.SSLError, ValueError):
            limit = "PEM certificates"
            raise InvalidFieldError(
                f"{config.metrics_ca} holds no certificates", field="metrics_ca", limit=limit, value=config.metrics_ca
            ) from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


class MetricsEndpoint(AbstractAsyncContextManager["MetricsEndpoint"]):
    """Serves the port within its context. `scrape` reads the samples."""

    def __init__(self, config: Config, scrape: Scrape) -> None:
        """FileRefusedError, InvalidFieldError."""
        self._listen = config.metrics_listen
        self._scrape = scrape
        self._token = read_token(config)
        self._tls = tls_of(config)
        self._server: asyncio.Server | None = None
        self._open = 0
        self.port = 0
        """The port that is served; 0 before."""

    async def __aenter__(self) -> Self:
        host, _, port = self._listen.rpartition(":")
        try:
            self._server = await asyncio.start_server(
                self._serve, host.strip("[]"), int(port), ssl=self._tls, limit=REQUEST_BYTES_MAX
            )
        except OSError as error:
            what = "cannot serve metrics on"
            raise not_listening(error, what, field="metrics_listen", listen=self._listen) from None
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._open >= CONNECTIONS_MAX:
            writer.close()
            return
        self._open += 1
        try:
            async with asyncio.timeout(TIMEOUT_S):
                writer.write(await self._answer(reader))
                await writer.drain()
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
            pass  # a client that is gone, too slow, or sends too much
        finally:
            self._open -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        request, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        method, _, rest = request.partition(" ")
        target = rest.partition(" ")[0].partition("?")[0]
        if self._token and not self._is_admitted(headers.get("authorization", "")):
            return _response(HTTPStatus.UNAUTHORIZED, "WWW-Authenticate: Bearer\r\n")
        if target != PATH:
            return _response(HTTPStatus.NOT_FOUND)
        if method not in {"GET", "HEAD"}:
            return _response(HTTPStatus.METHOD_NOT_ALLOWED, "Allow: GET, HEAD\r\n")
        content_type, body = format_metrics(await self._scrape(), headers.get("accept", ""))
        return _response(HTTPStatus.OK, f"Content-Type: {content_type}\r\n", body, is_head=method == "HEAD")

    def _is_admitted(self, authorization: str) -> bool:
        scheme, _, token = authorization.partition(" ")
        given = token.strip().encode("latin-1")
        return scheme.lower() == "bearer" and hmac.compare_digest(given, self._token)


def _response(status: HTTPStatus, headers: str = "", body: bytes = b"", *, is_head: bool = False) -> bytes:
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n{headers}Content-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode("latin-1") + (b"" if is_head else body)
