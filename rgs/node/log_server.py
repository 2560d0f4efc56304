"""A read-only web server for logs (C2SP tlog-tiles), on the standard library.

Only file names that a log can have are looked up, so that no path leads out of it. With TLS, checkpoints, hash tiles
and artifacts are open; entries need a client certificate of an auditing role on the allow-list. Entry bundles are
compressed for clients that accept gzip. Methods are GET and HEAD. Slow clients are disconnected.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final, Self

from cryptography import x509

from rgs.core.errors import FormatError, RgsError
from rgs.core.tlog.tiles import CHECKPOINT_PATH, COSIGNED_PATH, parse_tile_path
from rgs.node.config import Config
from rgs.node.pki import fingerprint_of
from rgs.node.stores import allow_list
from rgs.service.callers import Role
from rgs.store.address import StoreAddress
from rgs.tlog.directory import ARTIFACTS

TIMEOUT_S: Final = 10.0
"""A client that is silent for so long, or has not sent its whole request by then, is disconnected."""
POLL_S: Final = 0.5
"""Seconds between two searches for such clients."""
CONNECTIONS_MAX: Final = 64
REFRESH_S: Final = 5.0
"""Largest age of the allow-list in memory."""
AUDIT_ROLES: Final = frozenset({Role.AUDITOR, Role.REGULATOR, Role.LAB, Role.ADMIN})
_HALF_YEAR: Final = re.compile(r"[0-9]{4}h[12]", re.ASCII)
_ARTIFACT: Final = re.compile(ARTIFACTS + r"/[0-9a-f]{64}", re.ASCII)
_CHECKPOINTS: Final = (CHECKPOINT_PATH, COSIGNED_PATH)
_TEXT: Final = "text/plain; charset=utf-8"
_BYTES: Final = "application/octet-stream"
_BRIEF: Final = "public, max-age=1"
_FOREVER: Final = "max-age=31536000, immutable"
_GZIP: Final = 16 + zlib.MAX_WBITS


class EntryReaders:
    """Decides which client certificates may read entries, by the allow-list, which is read again every REFRESH_S."""

    def __init__(self, store: StoreAddress) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._fingerprints: frozenset[str] = frozenset()
        self._read_s = -REFRESH_S

    def __call__(self, certificate: bytes | None) -> bool:
        """Whether this DER certificate, which TLS has verified, may read entries."""
        if certificate is None:
            return False
        with self._lock:
            if time.monotonic() - self._read_s >= REFRESH_S:
                self._fingerprints = asyncio.run(self._read())
                self._read_s = time.monotonic()
            return fingerprint_of(x509.load_der_x509_certificate(certificate)) in self._fingerprints

    async def _read(self) -> frozenset[str]:
        async with allow_list(self._store) as parties:
            return frozenset(row.fingerprint for row in await parties.allowed() if row.role in AUDIT_ROLES)


def tls_context(config: Config) -> ssl.SSLContext:
    """TLS 1.2 or newer with the node's own certificate; clients may show a certificate of its CAs."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(config.tls / "server.pem", config.tls / "server.key")
    context.load_verify_locations(config.ca)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


class LogServer(ThreadingHTTPServer):
    """Serves the logs in the folder `root`, or the one log that `root` is, until it is closed."""

    daemon_threads = True
    request_queue_size = CONNECTIONS_MAX

    def __init__(
        self,
        root: Path,
        listen: str,
        tls: ssl.SSLContext | None,
        may_read_entries: Callable[[bytes | None], bool] | None,
    ) -> None:
        """`may_read_entries` is called with the client's DER certificate; None: everybody may."""
        host, _, port = listen.rpartition(":")
        host = host.strip("[]")
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.root = root
        self.tls = tls
        self.may_read_entries = may_read_entries
        self._free = threading.BoundedSemaphore(CONNECTIONS_MAX)
        self.asking: dict[socket.socket, float] = {}
        """Connections without a whole request yet -> since when, by the monotonic clock."""
        super().__init__((host, int(port)), LogRequests)

    @property
    def port(self) -> int:
        """The port that is served."""
        return int(self.server_address[1])

    def get_request(self) -> tuple[socket.socket, object]:
        """Accept a connection. Its own thread does the handshake, so that no client keeps the others waiting."""
        connection, address = super().get_request()
        connection.settimeout(TIMEOUT_S)
        if self.tls is not None:
            connection = self.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def process_request(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        """Wait for a free place, then serve the connection in its own thread."""
        while not self._free.acquire(timeout=POLL_S):
            self.service_actions()
        self.asking[request] = time.monotonic()
        super().process_request(request, client_address)

    def process_request_thread(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.asking.pop(request, None)
            self._free.release()

    def service_actions(self) -> None:
        """Disconnect clients that take too long for a request: a byte now and then must not hold a place."""
        for connection, since in list(self.asking.items()):
            if time.monotonic() - since > TIMEOUT_S:
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(connection, socket.SHUT_RDWR)  # below TLS, whose state its thread owns

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that went away or do not speak TLS."""

    def __enter__(self) -> Self:
        return self

    def find(self, path: str) -> tuple[Path, str] | None:
        """The file of a request's path and its name in the log; None if a log has no such name."""
        name = path.removeprefix("/")
        folder = self.root
        if not (folder / CHECKPOINT_PATH).is_file():
            half_year, _, name = name.partition("/")
            if _HALF_YEAR.fullmatch(half_year) is None:
                return None
            folder /= half_year
        if name not in _CHECKPOINTS and _ARTIFACT.fullmatch(name) is None:
            try:
                parse_tile_path(name)
            except FormatError:
                return None
        return (folder / name, name) if path.startswith("/") else None


class LogRequests(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version = "rgs-log"
    sys_version = ""
    timeout = TIMEOUT_S
    server: LogServer

    def setup(self) -> None:
        if isinstance(self.request, ssl.SSLSocket):
            self.request.do_handshake()
        super().setup()

    def handle_one_request(self) -> None:
        """Handle one request. Its time limit counts from the connection, or from the answer before."""
        self.server.asking.setdefault(self.connection, time.monotonic())
        super().handle_one_request()

    def do_GET(self) -> None:
        """A file of a log."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """As for GET, without the content."""
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        self.server.asking.pop(self.connection, None)
        status, content, kind, cache = self._found()
        self.send_response(status)
        if kind == _BYTES and self.path.rpartition("/tile/entries/")[1]:
            self.send_header("Vary", "Accept-Encoding")
            if _takes_gzip(self.headers.get_all("Accept-Encoding", [])):
                self.send_header("Content-Encoding", "gzip")
                content = zlib.compress(content, level=1, wbits=_GZIP)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", cache)
        self.send_header("X-Content-Type-Options", "nosniff")
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            self.send_header("Connection", "close")  # an unread body must not be taken for the next request
        self.end_headers()
        if with_body:
            self.wfile.write(content)

    def _found(self) -> tuple[HTTPStatus, bytes, str, str]:
        """Status, content, content type and caching of the answer."""
        found = self.server.find(self.path)
        if found is None:
            return HTTPStatus.NOT_FOUND, b"a log has no file of this name\n", _TEXT, "no-store"
        file, name = found
        is_guarded = self.server.may_read_entries is not None and name.startswith("tile/entries/")
        try:
            if is_guarded and not self._may_read():
                return HTTPStatus.FORBIDDEN, b"entries need the client certificate of an auditor\n", _TEXT, "no-store"
            content = file.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            # The file may come soon, so the answer must not be cached.
            return HTTPStatus.NOT_FOUND, b"the log does not have this file yet\n", _TEXT, "no-store"
        except (OSError, RgsError):
            return HTTPStatus.SERVICE_UNAVAILABLE, b"the log cannot be read now\n", _TEXT, "no-store"
        if name in _CHECKPOINTS:
            return HTTPStatus.OK, content, _TEXT, _BRIEF
        return HTTPStatus.OK, content, _BYTES, ("private, " if is_guarded else "public, ") + _FOREVER

    def _may_read(self) -> bool:
        certificate = self.connection.getpeercert(True) if isinstance(self.connection, ssl.SSLSocket) else None
        may_read = self.server.may_read_entries
        return may_read is None or may_read(certificate)

    def log_message(self, *_values: object) -> None:
        """Readers of a public log are not logged."""


def _takes_gzip(accepted: list[str]) -> bool:
    """Whether the values of Accept-Encoding name gzip with a weight above 0."""
    for coding in ",".join(accepted).lower().split(","):
        name, _, weight = coding.replace(" ", "").partition(";")
        if name == "gzip":
            return weight.rstrip("0.") != "q="
    return False
