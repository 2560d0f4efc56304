"""The witness over HTTP/1.1: `POST /add-checkpoint` and `GET /<hex SHA-256 of the origin>/checkpoint`.

A small server with strict limits: one request a connection, a head of at most 8 KiB, a body of a stated length, a time
limit for the whole request and the handshake of TLS, a limit of connections. Answers are signed, so plain HTTP costs
only privacy. Chunked bodies and all other paths are refused.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from http import HTTPStatus
from typing import Final

import structlog

from rgs.core.errors import FormatError, UnavailableError
from rgs.core.tlog.witness import REQUEST_BYTES_MAX, SIZE_TYPE, STALE, WitnessRefusalError
from rgs.tlog.witness.witness import Witness

HEAD_BYTES_MAX: Final = 8_192
CONNECTIONS_MAX: Final = 256
REQUEST_S: Final = 10.0
"""For a whole request, from connecting to the last byte of the answer."""
ADD: Final = "/add-checkpoint"

_TEXT: Final = "text/plain; charset=utf-8"
_LINE: Final = re.compile(r"(GET|POST) (/[!-~]{0,200}) HTTP/1\.[01]")
_MONITORING: Final = re.compile(r"/([0-9a-f]{64})/checkpoint")
_LENGTH: Final = re.compile(r"[0-9]{1,9}")


class _RefusedError(Exception):
    """The request ends here: status and text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


HttpAnswer = tuple[int, str, bytes]
"""Status, content type, body."""


class WitnessServer:
    """One listening socket before one witness."""

    def __init__(
        self,
        witness: Witness,
        host: str,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        request_s: float = REQUEST_S,
    ) -> None:
        """`tls` None: plain HTTP."""
        self._witness = witness
        self._tls = tls
        self._address = (host, port)
        self._request_s = request_s
        self._server: asyncio.Server | None = None
        self._connections = 0
        self._log = structlog.get_logger("rgs.tlog.witness")

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._server is not None  # noqa: S101  # `start` has returned
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self) -> None:
        handshake_s = None if self._tls is None else self._request_s
        self._server = await asyncio.start_server(
            self._serve, *self._address, limit=HEAD_BYTES_MAX, ssl=self._tls, ssl_handshake_timeout=handshake_s
        )

    async def stop(self) -> None:
        """Stop listening. Requests that are being answered get their answers."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            async with asyncio.timeout(self._request_s):
                answer = await self._answer(reader)
                writer.write(_format(answer))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, OSError):
            pass  # a client that is too slow, or gone, gets no answer
        finally:
            self._connections -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> HttpAnswer:
        try:
            if self._connections > CONNECTIONS_MAX:
                raise _RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections")
            method, path, body = await read_request(reader)
            return await self._route(method, path, body)
        except _RefusedError as error:
            return error.status, _TEXT, f"{error}\n".encode()
        except WitnessRefusalError as error:
            self._log.info("witness.refused", status=error.status, why=error.message)
            if error.status == STALE:
                return STALE, SIZE_TYPE, b"%d\n" % (error.size or 0)
            return error.status, _TEXT, f"{error.message}\n".encode()
        except FormatError as error:
            return HTTPStatus.BAD_REQUEST, _TEXT, f"{error.message}\n".encode()
        except UnavailableError:
            self._log.exception("witness.store")
            return HTTPStatus.SERVICE_UNAVAILABLE, _TEXT, b"the witness cannot store its answer\n"

    async def _route(self, method: str, path: str, body: bytes) -> HttpAnswer:
        monitored = _MONITORING.fullmatch(path)
        if path == ADD and method == "POST":
            line = await asyncio.to_thread(self._witness.add_checkpoint, body)
            self._log.info("witness.cosigned", bytes=len(body))
            return HTTPStatus.OK, _TEXT, line.encode()
        if monitored is not None and method == "GET":
            note = await asyncio.to_thread(self._witness.checkpoint, monitored[1])
            if note is not None:
                return HTTPStatus.OK, _TEXT, note
        elif monitored is not None or path == ADD:
            raise _RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, f"no {method} here")
        raise _RefusedError(HTTPStatus.NOT_FOUND, "there is nothing here")


async def read_request(reader: asyncio.StreamReader) -> tuple[str, str, bytes]:
    """Method, path and body of a request; _RefusedError for any other form."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        raise _RefusedError(HTTPStatus.BAD_REQUEST, f"the head must end within {HEAD_BYTES_MAX} bytes") from None
    line, *fields = head[:-4].decode("latin-1").split("\r\n")
    requested = _LINE.fullmatch(line)
    if requested is None:
        raise _RefusedError(HTTPStatus.BAD_REQUEST, "the request line must be GET or POST")
    named = [(name.lower(), value.strip()) for name, _, value in (field.partition(":") for field in fields)]
    lengths = [value for name, value in named if name == "content-length"]
    if any(name == "transfer-encoding" for name, _ in named) or len(lengths) > 1:
        raise _RefusedError(HTTPStatus.BAD_REQUEST, "a body has one Content-Length and no Transfer-Encoding")
    if lengths and _LENGTH.fullmatch(lengths[0]) is None:
        raise _RefusedError(HTTPStatus.BAD_REQUEST, "Content-Length must be a number of bytes")
    length = int(lengths[0]) if lengths else 0
    if length > REQUEST_BYTES_MAX:
        raise _RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body is at most {REQUEST_BYTES_MAX} bytes")
    try:
        body = await reader.readexactly(length)
    except asyncio.IncompleteReadError:
        raise _RefusedError(HTTPStatus.BAD_REQUEST, "the body ends before its length") from None
    return requested[1], requested[2], body


def _format(answer: HttpAnswer) -> bytes:
    status, kind, body = answer
    head = (
        f"HTTP/1.1 {int(status)} {HTTPStatus(status).phrase}\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body
