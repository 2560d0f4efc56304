"""Standard error of a process that serves, bounded: what a stranger can make gRPC write there is counted, not written.

gRPC writes a line for every TLS handshake that fails, and whoever reaches the port makes them fail as fast as he likes.
So file descriptor 2 is a pipe while the server serves. At its other end a process of its own reads: failed handshakes
are counted by TLS's reason, of gRPC's other lines LINES_MAX a second are passed on and the rest is counted, everything
else is passed on as it came. The server tells the numbers in its log (`handshakes_failed`, `stderr_lines_left_out`).

A process, not a thread: what a dying server says last still arrives, and a thread of gRPC that writes while it holds
the interpreter's lock waits for nobody who needs that lock. It is forked before gRPC is there, ends with the last
writer, and holds nothing else of the server's open. Refuses to lose a line in silence: where the reader has gone, the
server writes to its own standard error again, and says so.
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
from types import TracebackType
from typing import Final, Self

import structlog

LINES_MAX: Final = 20
"""Lines of gRPC's that are passed on in a second."""
TELL_S: Final = 10.0
"""Between two lines of the log, at least."""
REASONS_MAX: Final = 16
"""Reasons of TLS that are told apart; all others are one."""
_LEFT_OUT: Final = ""
"""The name, among the reasons, of lines that were not passed on."""
_OTHER: Final = "OTHER"
_READ_BYTES: Final = 1 << 16
_WAIT_S: Final = 1.0
_END_S: Final = 2.0
"""What the reader is given to come to its end; a child of the server that still writes holds it longer."""
_OF_GRPC: Final = re.compile(rb"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w.-]+:\d+\] ")
_HANDSHAKE: Final = re.compile(
    rb"Handshake failed with (?:fatal )?error (SSL_[A-Z_]{1,40})(?:.*OPENSSL_internal:([A-Z0-9_]{1,60}))?"
)
_STDERR: Final = 2


class BoundedStderr:
    """Bounds file descriptor 2 within its context. To be entered before there is any thread."""

    def __init__(self) -> None:
        self._told: Counter[str] = Counter()
        self._counted: Counter[str] = Counter()
        self._told_s = -TELL_S
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Write to the standard error again that there was, and tell the log the rest. Once; while there is a log."""
        if self._pid < 0:
            return
        sys.stderr.flush()
        os.dup2(self._real, _STDERR)
        last_s = time.monotonic() + _END_S
        while self._pid >= 0 and (left_s := last_s - time.monotonic()) > 0:
            select.select([self._counts], [], [], left_s)
            self._read()
        self._tell()
        if self._pid >= 0:  # somebody else writes there still, and it ends with him
            os.close(self._counts)
            self._pid = -1
        os.close(self._real)

    def look(self) -> None:
        """To be called about once a second: tell the log what was counted."""
        if self._pid < 0:
            return
        self._read()
        if self._pid < 0:
            os.dup2(self._real, _STDERR)
            os.close(self._real)
            structlog.get_logger().error("stderr_reader_ended")
        if time.monotonic() - self._told_s >= TELL_S:
            self._tell()

    def _read(self) -> None:
        """Take what the reader has counted: each line holds all sums since it began."""
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

    def _tell(self) -> None:
        new = self._counted - self._told
        if not new:
            return
        self._told, self._told_s = self._counted, time.monotonic()
        left_out = new.pop(_LEFT_OUT, 0)
        if new:
            reasons = [f"{reason} {count}" for reason, count in new.most_common()]
            structlog.get_logger().warning("handshakes_failed", count=new.total(), reasons=reasons)
        if left_out:
            structlog.get_logger().warning("stderr_lines_left_out", count=left_out)


def _read_to_the_end(lines: int, counts: int) -> None:
    """The reader's whole life. Does not return."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # it ends behind the server, whoever is told to end
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
    """Reads `lines` to their end, passes on to `out` what is to be, and tells `counts` the sums, a JSON object a line:
    reason -> failed handshakes, and under the empty name the lines that were left out.
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
        """Until nobody can write any more."""
        rest, told_s, data = b"", 0.0, b" "
        while data:
            wait_s = max(0.0, told_s + _WAIT_S - time.monotonic()) if self._is_new else None
            if select.select([self._lines], [], [], wait_s)[0]:
                data = os.read(self._lines, _READ_BYTES)
                *whole, rest = (rest + data).split(b"\n")
                self._take([line + b"\n" for line in whole])
                if len(rest) > _READ_BYTES or not data:
                    self._take([rest])
                    rest = b""
            if self._is_new and time.monotonic() - told_s >= _WAIT_S:
                self._tell()
                told_s = time.monotonic()
        os.set_blocking(self._counts, True)
        self._tell()

    def _take(self, lines: list[bytes]) -> None:
        passed = b"".join([line for line in lines if self._is_passed(line)])
        while passed:
            try:
                passed = passed[os.write(self._out, passed) :]
            except OSError:  # whoever read it has gone
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

    def _tell(self) -> None:
        with contextlib.suppress(OSError):  # nobody reads just now: the sums come again
            os.write(self._counts, json.dumps(self._sums).encode("ascii") + b"\n")
        self._is_new = False
