"""Limits what is written to standard error while the server serves, so that strangers cannot flood it.

gRPC writes a line for every failed TLS handshake, and everybody who reaches the port can cause them. So file descriptor
2 is a pipe while the server serves, and a second process reads it: it counts failed handshakes by TLS's reason, passes
on LINES_MAX other lines of gRPC a second and counts the rest, and passes on everything else unchanged. The server logs
the numbers (`handshakes_failed`, `stderr_lines_left_out`).

The reader is a process, not a thread: the last words of a dying server still arrive, and a thread of gRPC that writes
while it holds the interpreter's lock cannot block the reader. It is forked before gRPC is loaded, ends with the last
writer, and holds no other descriptor of the server. If it ends early, the server writes to its own standard error again
and logs that.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import sys
import time
from collections import Counter
from typing import Final, Self

import structlog

LINES_MAX: Final = 20
"""Lines of gRPC that are passed on in a second."""
REPORT_S: Final = 10.0
"""Shortest time between two lines in the log."""
REASONS_MAX: Final = 16
"""Reasons of TLS that are counted separately; all others are counted together."""
_LEFT_OUT: Final = ""
"""The key, among the reasons, for lines that were not passed on."""
_OTHER: Final = "OTHER"
_READ_BYTES: Final = 1 << 16
_WAIT_S: Final = 1.0
_END_S: Final = 2.0
"""Time that the reader gets to end; a child of the server that still writes keeps it longer."""
_OF_GRPC: Final = re.compile(rb"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w.-]+:\d+\] ")
_HANDSHAKE: Final = re.compile(
    rb"Handshake failed with (?:fatal )?error (SSL_[A-Z_]{1,40})(?:.*OPENSSL_internal:([A-Z0-9_]{1,60}))?"
)
_STDERR: Final = 2


class BoundedStderr:
    """Limits file descriptor 2 within its context. To be entered before any thread is started."""

    def __init__(self) -> None:
        self._reported: Counter[str] = Counter()
        self._counted: Counter[str] = Counter()
        self._reported_s = -REPORT_S
        self._rest = b""
        self._real = self._counts = self._pid = -1

    def __enter__(self) -> Self:
        sys.stderr.flush()
        lines, written = os.pipe()
        self._counts, counted = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            _read_to_the_end(lines, counted)
        self._real = os.dup(_STDERR)
        os.dup2(written, _STDERR)
        for descriptor in (lines, written, counted):
            os.close(descriptor)
        os.set_blocking(self._counts, False)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Restore standard error, and log the last counts. To be called once, before the log is closed."""
        if self._pid < 0:
            return
        sys.stderr.flush()
        os.dup2(self._real, _STDERR)
        last_s = time.monotonic() + _END_S
        while self._pid >= 0 and (left_s := last_s - time.monotonic()) > 0:
            select.select([self._counts], [], [], left_s)
            self._read()
        self._emit()
        if self._pid >= 0:  # another process still writes there; the reader ends with it
            os.close(self._counts)
            self._pid = -1
        os.close(self._real)

    def poll(self) -> None:
        """Log the counts. To be called about once a second."""
        if self._pid < 0:
            return
        self._read()
        if self._pid < 0:
            os.dup2(self._real, _STDERR)
            os.close(self._real)
            structlog.get_logger().error("stderr_reader_ended")
        if time.monotonic() - self._reported_s >= REPORT_S:
            self._emit()

    def _read(self) -> None:
        """Read the counts of the reader: each line holds all sums since its start."""
        while True:
            try:
                data = os.read(self._counts, _READ_BYTES)
            except BlockingIOError:
                return
            if not data:
                os.close(self._counts)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(self._pid, 0)
                self._pid = -1
                return
            *lines, self._rest = (self._rest + data).split(b"\n")
            if lines:
                self._counted = Counter(json.loads(lines[-1]))

    def _emit(self) -> None:
        new = self._counted - self._reported
        if not new:
            return
        self._reported, self._reported_s = self._counted, time.monotonic()
        left_out = new.pop(_LEFT_OUT, 0)
        if new:
            reasons = [f"{reason} {count}" for reason, count in new.most_common()]
            structlog.get_logger().warning("handshakes_failed", count=new.total(), reasons=reasons)
        if left_out:
            structlog.get_logger().warning("stderr_lines_left_out", count=left_out)


def _read_to_the_end(lines: int, counts: int) -> None:
    """Run the reader in the forked process. Does not return."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # it ends after the server
        kept = {_STDERR, lines, counts}
        for descriptor in set(range(_highest())) - kept:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        StderrReader(lines, counts, _STDERR).run()
    finally:
        os._exit(0)


def _highest() -> int:
    """One more than the highest descriptor that may be open."""
    try:
        return max(map(int, os.listdir("/proc/self/fd"))) + 1  # noqa: PTH208
    except OSError:
        return os.sysconf("SC_OPEN_MAX")


class StderrReader:
    """Reads `lines` to the end, passes lines on to `out`, and writes the sums to `counts`, a JSON object a line:
    reason -> failed handshakes, and under the empty key the lines that were left out.
    """

    def __init__(self, lines: int, counts: int, out: int) -> None:
        self._lines = lines
        self._counts = counts
        self._out = out
        self._sums: Counter[str] = Counter()
        self._is_new = False
        self._second = 0
        self._passed = 0
        os.set_blocking(counts, False)

    def run(self) -> None:
        """Read until no process can write any more."""
        rest, reported_s, data = b"", 0.0, b" "
        while data:
            wait_s = max(0.0, reported_s + _WAIT_S - time.monotonic()) if self._is_new else None
            if select.select([self._lines], [], [], wait_s)[0]:
                data = os.read(self._lines, _READ_BYTES)
                *whole, rest = (rest + data).split(b"\n")
                self._take([line + b"\n" for line in whole])
                if len(rest) > _READ_BYTES or not data:
                    self._take([rest])
                    rest = b""
            if self._is_new and time.monotonic() - reported_s >= _WAIT_S:
                self._emit()
                reported_s = time.monotonic()
        os.set_blocking(self._counts, True)
        self._emit()

    def _take(self, lines: list[bytes]) -> None:
        passed = b"".join([line for line in lines if self._is_passed(line)])
        while passed:
            try:
                passed = passed[os.write(self._out, passed) :]
            except OSError:  # nobody reads it any more
                return

    def _is_passed(self, line: bytes) -> bool:
        if _OF_GRPC.match(line) is None:
            return True
        if (found := _HANDSHAKE.search(line)) is not None:
            reason = (found[2] or found[1]).decode("ascii")
            known = reason in self._sums or len(self._sums) < REASONS_MAX
            self._sums[reason if known else _OTHER] += 1
            self._is_new = True
            return False
        if (second := int(time.monotonic())) != self._second:
            self._second, self._passed = second, 0
        self._passed += 1
        if self._passed <= LINES_MAX:
            return True
        self._sums[_LEFT_OUT] += 1
        self._is_new = True
        return False

    def _emit(self) -> None:
        with contextlib.suppress(OSError):  # the pipe is full: the sums come again
            os.write(self._counts, json.dumps(self._sums).encode("ascii") + b"\n")
        self._is_new = False
