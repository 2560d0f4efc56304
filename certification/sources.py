"""Where a log is read from: a folder, or an HTTP address. Bytes and time are bounded; redirects are not followed.

A log may compress what it serves, asked or not (C2SP tlog-tiles): gzip is read within the same bounds.

A missing file is an answer (None): the log is not whole. SourceError where the source does not answer, breaks off in
the middle of a file, or takes longer than FILE_S for one: that says nothing against the log.
"""

from __future__ import annotations

import argparse
import http.client
import ssl
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

TIMEOUT_S: Final = 30.0
"""For each answer of the network."""
FILE_S: Final = 300.0
"""For a whole file, however it drips: the longest is 16 MiB."""
_STEP_BYTES: Final = 1 << 16
_GONE: Final = frozenset({404, 410})


class SourceError(Exception):
    """The log cannot be read. This says nothing about its content."""


class LogSource(Protocol):
    """Files of a log by their paths."""

    def read(self, path: str, limit: int) -> bytes | None:
        """The whole file, None where there is none; SourceError if it is longer than `limit` or cannot be read."""
        ...


class Folder:
    """A log as a folder of files."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise SourceError(f"{folder} is not a folder")
        self._folder = folder

    def read(self, path: str, limit: int) -> bytes | None:
        try:
            with (self._folder / path).open("rb") as file:
                data = file.read(limit + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise SourceError(f"{path}: {error.strerror}") from error
        return _bounded(path, data, limit)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """None: the redirect is an error."""


class Web:
    """A log behind an http or https address."""

    def __init__(
        self,
        url: str,
        timeout_s: float = TIMEOUT_S,
        tls: ssl.SSLContext | None = None,
        *,
        file_s: float = FILE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url.rstrip("/")
        self._timeout_s = timeout_s
        self._file_s = file_s
        self._clock = clock
        self._opener = urllib.request.build_opener(_NoRedirect(), urllib.request.HTTPSHandler(context=tls))

    def read(self, path: str, limit: int) -> bytes | None:
        try:
            requested = urllib.request.Request(f"{self._url}/{path}", headers={"Accept-Encoding": "gzip, identity"})  # noqa: S310 - http or https: `open_source`
            with self._opener.open(requested, timeout=self._timeout_s) as response:
                if response.status != http.client.OK:
                    raise SourceError(f"{path}: HTTP status {response.status}")
                coding = response.headers.get("Content-Encoding", "identity").strip().lower()
                data = self._whole(response, path, limit if coding == "identity" else _packed_max(limit))
        except urllib.error.HTTPError as error:
            with error:
                if error.code in _GONE:
                    return None
            raise SourceError(f"{path}: HTTP status {error.code}") from None
        except (OSError, http.client.HTTPException) as error:
            raise SourceError(f"{self._url}/{path}: {ascii(str(getattr(error, 'reason', error)))[1:-1]}") from None
        return _bounded(path, _decoded(path, data, coding, limit), limit)

    def _whole(self, response: http.client.HTTPResponse, path: str, limit: int) -> bytes:
        """What is answered, at most one byte more than `limit`."""
        data, announced, began = bytearray(), response.length, self._clock()
        while len(data) <= limit and len(data) != announced:
            step = response.read1(min(_STEP_BYTES, limit + 1 - len(data)))
            if not step:
                if announced is not None:
                    raise SourceError(f"{path}: the answer ends after {len(data)} of {announced} bytes")
                break
            data += step
            if self._clock() - began > self._file_s:
                raise SourceError(f"{path}: {len(data)} bytes in {self._file_s:.0f} s, and no end")
        return bytes(data)


def add_tls_options(parser: argparse.ArgumentParser) -> None:
    """The options of https: a server may guard the entries of its log by certificate."""
    parser.add_argument("--tls-ca", type=Path, metavar="FILE", help="whom https trusts, instead of the system's")
    parser.add_argument("--tls-cert", type=Path, metavar="FILE", help="your certificate, where entries are guarded")
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="its key")


def open_source(place: str, options: argparse.Namespace | None = None) -> LogSource:
    """The source that a command line names; `options` are those of `add_tls_options`. SourceError."""
    if urlsplit(place).scheme not in {"http", "https"}:
        return Folder(Path(place))
    if options is None:
        return Web(place)
    try:
        tls = ssl.create_default_context(cafile=options.tls_ca)
        if options.tls_cert is not None:
            tls.load_cert_chain(options.tls_cert, options.tls_key)
    except OSError as error:  # ssl.SSLError is one
        raise SourceError(f"--tls-ca, --tls-cert, --tls-key: {error.strerror or error}") from None
    return Web(place, tls=tls)


def _decoded(path: str, data: bytes, coding: str, limit: int) -> bytes:
    """The content of an answer, `limit` and one byte at most; SourceError where it is cut or in another coding."""
    if coding == "identity":
        return data
    if coding != "gzip":
        raise SourceError(f"{path}: content encoding {ascii(coding)[:40]}")
    reader = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        content = reader.decompress(_bounded(path, data, _packed_max(limit)), limit + 1)
    except zlib.error as error:
        raise SourceError(f"{path}: {error}") from None
    if len(content) <= limit and not (reader.eof and not reader.unused_data):
        raise SourceError(f"{path}: the compressed answer is cut, or goes on behind its end")
    return content


def _packed_max(limit: int) -> int:
    """So long are that many bytes in gzip at most: hashes are longer than they were."""
    return limit + (limit >> 8) + 64


def _bounded(path: str, data: bytes, limit: int) -> bytes:
    if len(data) > limit:
        raise SourceError(f"{path} is longer than {limit} bytes")
    return data
