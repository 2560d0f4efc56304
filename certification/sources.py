"""Where a log is read from: a folder, or its address over HTTP. Bounded in bytes and time; refuses to follow redirects.

A file that is not there is an answer (None): the log is not whole. A source that cannot be asked is none: SourceError.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

TIMEOUT_S: Final = 30.0
_GONE: Final = frozenset({404, 410})


class SourceError(Exception):
    """The log cannot be read, whatever is in it."""


class Source(Protocol):
    """Files of a log by their paths."""

    def read(self, path: str, limit: int) -> bytes | None:
        """The whole file, None where there is none; SourceError if it is longer than `limit` or cannot be read."""
        ...


class Folder:
    """A log as a folder of files."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise SourceError(f"{folder} is no folder")
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

    def __init__(self, url: str, timeout_s: float = TIMEOUT_S) -> None:
        self._url = url.rstrip("/")
        self._timeout_s = timeout_s
        self._opener = urllib.request.build_opener(_NoRedirect())

    def read(self, path: str, limit: int) -> bytes | None:
        try:
            with self._opener.open(f"{self._url}/{path}", timeout=self._timeout_s) as response:
                data: bytes = response.read(limit + 1)
        except urllib.error.HTTPError as error:
            with error:
                if error.code in _GONE:
                    return None
            raise SourceError(f"{path}: HTTP status {error.code}") from None
        except (OSError, http.client.HTTPException) as error:
            raise SourceError(f"{self._url}/{path}: {getattr(error, 'reason', error)}") from None
        return _bounded(path, data, limit)


def open_source(place: str) -> Source:
    """The source that a command line names. SourceError."""
    scheme = urlsplit(place).scheme
    return Web(place) if scheme in {"http", "https"} else Folder(Path(place))


def _bounded(path: str, data: bytes, limit: int) -> bytes:
    if len(data) > limit:
        raise SourceError(f"{path} is longer than {limit} bytes")
    return data
