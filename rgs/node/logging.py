"""The technical log: one JSON line for each event in a file, and short lines on stderr while the server starts.

It is for those who run the node; signed statements are the record. After the start, lines are buffered: a line of level
warning or above writes the buffer through, and so does a line one second after the last flush. Buffered lines are lost
if the process is killed or the disk is full: the log never stops the game.

Values that may hold a secret are withheld: fields with a name in DENIED, bytes, objects that are not plain data, and
messages of exceptions that are not ours.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import sys
import threading
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TextIO

import structlog

from rgs.core.clock import Clock
from rgs.core.errors import RgsError
from rgs.core.times import format_time
from rng.errors import RngError

DENIED: Final = frozenset({"salt", "transcript", "deck", "seed", "key", "kek", "private"})
"""A field is withheld if its name has one of these words, or its plural: `salt`, `node_keys`; but not `keyid`."""
WITHHELD: Final = "[withheld]"
FLUSH_AFTER_MS: Final = 1000
BUFFER_BYTES: Final = 1 << 16
DEPTH_MAX: Final = 6
FRAMES_MAX: Final = 20
TEMPLATE_MAX: Final = 200
LIBRARY_LINES_MAX: Final = 20
"""Lines of libraries between two flushes; further ones are only counted. gRPC has one for every vanished client."""

Event = MutableMapping[str, Any]


class LogFile:
    """The file (mode 0600, appended to) with its buffer. The methods are structlog's levels."""

    def __init__(self, path: Path, clock: Clock, people: TextIO | None) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "w", BUFFER_BYTES, "ascii")
        self._clock = clock
        self._flushed_ms = clock.running_ms()
        self._lock = threading.Lock()
        self.people = people

    def debug(self, line: str) -> None:
        """Write one line. After the start it waits for `flush`, a warning, or a line 1 s after the last flush."""
        self.write(line, urgent=False)

    info = msg = debug

    def warning(self, line: str) -> None:
        """Write one line, through to the operating system."""
        self.write(line, urgent=True)

    error = critical = warning

    def flush(self) -> None:
        """Write the buffer through."""
        with self._lock:
            self._flush()

    def close(self) -> None:
        """Write the buffer through and close. Later lines are dropped."""
        with self._lock, contextlib.suppress(OSError):
            self._file.close()

    def write(self, line: str, *, urgent: bool) -> None:
        """Write one line; an urgent one through to the operating system."""
        with self._lock:
            if self._file.closed:
                return
            try:  # noqa: SIM105 - this is on the path of every call
                self._file.write(line + "\n")
            except OSError:  # the disk is full
                pass
            now_ms = self._clock.running_ms()
            if urgent or self.people is not None or now_ms - self._flushed_ms >= FLUSH_AFTER_MS:
                self._flush()
                self._flushed_ms = now_ms

    def _flush(self) -> None:
        if not self._file.closed:
            with contextlib.suppress(OSError):
                self._file.flush()


class Log:
    """The log of this process. Made once; every `structlog.get_logger()` writes into it."""

    def __init__(self, path: Path, level: str, clock: Clock, *, people: TextIO | None = sys.stderr) -> None:
        """`level` is the lowest level written: debug, info, warning, error. `people` gets short lines until `quiet`."""
        self._clock = clock
        self._takes_info = level in {"debug", "info"}
        self._out = LogFile(path, clock, people)
        structlog.configure(
            processors=[
                structlog.contextvars.merge_contextvars,
                structlog.processors.add_log_level,
                _describe_exception,
                self._stamp,
                withhold,
                self._emit_text,
                render,
            ],
            wrapper_class=structlog.make_filtering_bound_logger(level),
            logger_factory=lambda *_: self._out,
            cache_logger_on_first_use=False,
        )
        self._bridge = _Bridge()
        root = logging.getLogger()
        root.addHandler(self._bridge)
        # Libraries use the standard logging; their lines below warning are not wanted.
        self._root_level = root.level
        root.setLevel(logging.WARNING)

    def quiet(self) -> None:
        """End the lines for people: the start is over."""
        self._out.people = None

    def line(self, text: str) -> None:
        """Write a finished line at level info, for lines that come with every call.

        Nothing is withheld here: the caller must leave secrets out (`rgs.api.access`).
        """
        if self._takes_info:
            self._out.write(text, urgent=False)

    def flush(self) -> None:
        """Write the buffer through; to be called about once a second."""
        self._bridge.report_left_out()
        self._out.flush()

    def close(self) -> None:
        """Write the buffer through, close the file, and restore the standard library's logging."""
        root = logging.getLogger()
        root.removeHandler(self._bridge)
        root.setLevel(self._root_level)
        self._out.close()
        structlog.reset_defaults()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _stamp(self, _logger: object, _method: str, event: Event) -> Event:
        event["time"] = format_time(self._clock.now_ms())
        return event

    def _emit_text(self, _logger: object, _method: str, event: Event) -> Event:
        if self._out.people is not None:
            fields = " ".join(f"{name}={_printable(value)}" for name, value in event.items() if name not in _HEAD)
            print(f"rgs: {event.get('event', '')} {fields}".rstrip(), file=self._out.people, flush=True)
        return event


_HEAD: Final = ("time", "level", "event")


def withhold(_logger: object, _method: str, event: Event) -> Event:
    """Replace values that may hold a secret, at every depth."""
    return {name: _clean(name, value, 0) for name, value in event.items()}


def render(_logger: object, _method: str, event: Event) -> str:
    """The event as one line of ASCII JSON: time, level and event first."""
    head = {name: event[name] for name in _HEAD if name in event}
    return json.dumps({**head, **event}, ensure_ascii=True, separators=(",", ":"))


def is_denied(name: str) -> bool:
    """Whether a field of this name is withheld."""
    return any(word in DENIED or word.removesuffix("s") in DENIED for word in name.lower().replace("-", "_").split("_"))


def _clean(name: str, value: object, depth: int) -> object:
    if is_denied(name) or depth > DEPTH_MAX:
        return WITHHELD
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str | Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(inner): _clean(str(inner), item, depth + 1) for inner, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean("", item, depth + 1) for item in value]
    return WITHHELD  # bytes, and objects whose text may hold anything


def _describe_exception(_logger: object, _method: str, event: Event) -> Event:
    """Describe an exception by type and place; its message is added only for our own errors."""
    given = event.pop("exc_info", None)
    error = sys.exc_info()[1] if given is True else given[1] if isinstance(given, tuple) else given
    if isinstance(error, BaseException):
        event["error"] = type(error).__name__
        if isinstance(error, RgsError | RngError):
            event["reason"] = error.reason
            event["message"] = error.message if isinstance(error, RgsError) else error.detail
        event["frames"] = _frames(error.__traceback__)
    return event


def _frames(trace: TracebackType | None) -> list[str]:
    frames: list[str] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append(f"{Path(code.co_filename).name}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return frames[-FRAMES_MAX:]


def _printable(value: object) -> str:
    text = str(value)
    return text if text.isprintable() else json.dumps(text)


class _Bridge(logging.Handler):
    """Passes on records of the standard library's logging: the logger, and the first line of the message's template.

    The values are left out, because they may hold anything.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lines = 0

    def report_left_out(self) -> None:
        """Log how many lines were left out, and start counting again."""
        lines, self._lines = self._lines, 0
        if lines > LIBRARY_LINES_MAX:
            structlog.get_logger().warning("library_lines_left_out", count=lines - LIBRARY_LINES_MAX)

    def emit(self, record: logging.LogRecord) -> None:
        self._lines += 1
        if self._lines > LIBRARY_LINES_MAX:
            return
        logger = structlog.get_logger()
        write = logger.error if record.levelno >= logging.ERROR else logger.warning
        template = record.msg.split("\n", 1)[0][:TEMPLATE_MAX] if isinstance(record.msg, str) else WITHHELD
        write("library", library=record.name, template=template, exc_info=record.exc_info)
