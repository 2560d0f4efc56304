"""Standard error of a server: gRPC's lines are bounded and counted, all else arrives, however the server ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rgs.node.stderr import LINES_MAX, REASONS_MAX, StderrReader

ROOT = Path(__file__).resolve().parents[3]
HEAD = b"I1122 18:26:02.763873    5885 "
HANDSHAKE = HEAD + b"ssl_transport_security.cc:2563] Handshake failed with error SSL_ERROR_SSL: error:1000007d:SSL"
REFUSED = HANDSHAKE + b" routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED: certificate has expired\n"
NO_REASON = HEAD + b"ssl_transport_security.cc:2563] Handshake failed with fatal error SSL_ERROR_SYSCALL: none\n"
OTHER = HEAD + b"chttp2_transport.cc:1234] too many pings\n"
TRACE = b'Traceback (most recent call last):\n  File "x"\nI1122 is no line of gRPC\'s\n'


def read(*written: bytes) -> tuple[bytes, dict[str, int]]:
    """(what was passed on, the last sums) of a reader that was given these pieces."""
    lines, to_lines = os.pipe()
    counts, to_counts = os.pipe()
    out, to_out = os.pipe()
    reading = threading.Thread(target=StderrReader(lines, to_counts, to_out).run)
    passed: list[bytes] = []

    def collect() -> None:
        with os.fdopen(out, "rb") as file:
            passed.append(file.read())

    collecting = threading.Thread(target=collect)
    reading.start()
    collecting.start()
    for piece in written:
        os.write(to_lines, piece)
    os.close(to_lines)
    reading.join(20)
    for descriptor in (to_counts, to_out, lines):
        os.close(descriptor)
    collecting.join(20)
    with os.fdopen(counts, "rb") as file:
        return passed[0], json.loads(file.read().splitlines()[-1])


def test_failed_handshakes_are_counted_by_their_reason_and_not_written() -> None:
    passed, sums = read(*[REFUSED] * 700, NO_REASON * 300, TRACE)
    assert passed == TRACE
    assert sums == {"CERTIFICATE_VERIFY_FAILED": 700, "SSL_ERROR_SYSCALL": 300}


def test_other_lines_of_grpc_are_bounded_and_counted() -> None:
    passed, sums = read(OTHER * 1_000)
    count = passed.count(OTHER)
    assert passed == OTHER * count
    assert LINES_MAX <= count <= 10 * LINES_MAX, "it took some seconds at most"
    assert sums == {"": 1_000 - count}


@pytest.mark.parametrize(
    "said", [b"", b"no line feed", TRACE * 5_000, b"x" * 300_000, b"\xff\x00\n", TRACE + b"the last w"]
)
def test_whatever_is_not_grpcs_arrives_as_it_was_written(said: bytes) -> None:
    assert read(said) == (said, {})


def test_a_line_in_pieces_is_one_line() -> None:
    assert read(REFUSED[:40], REFUSED[40:90], REFUSED[90:]) == (b"", {"CERTIFICATE_VERIFY_FAILED": 1})


def test_a_stranger_does_not_choose_how_many_reasons_there_are() -> None:
    line = HANDSHAKE + b" routines:OPENSSL_internal:R%d\n"
    _, sums = read(b"".join([line % nth for nth in range(100)]))
    assert len(sums) == REASONS_MAX + 1
    assert sums["OTHER"] == 100 - REASONS_MAX


# --- around a process -------------------------------------------------------------------------------------------------


def run(script: str) -> tuple[int, list[dict[str, object]], bytes]:
    """(exit status, lines of its log, what came out of its standard error) of a process that is bounded."""
    head = (
        "import os, signal, sys, time, structlog\nfrom rgs.node.stderr import BoundedStderr\n"
        "structlog.configure(processors=[structlog.processors.JSONRenderer()])\n"
    )
    command = [sys.executable, "-c", head + script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_an_orderly_end_tells_the_log_and_leaves_the_standard_error_as_it_was() -> None:
    status, log, said = run(
        f"with BoundedStderr():\n    os.write(2, {REFUSED!r} * 500 + {OTHER!r} * 500 + b'mine\\n')\n"
        f"os.write(2, {REFUSED!r})\n"
        "try:\n    os.waitpid(-1, 0)\nexcept ChildProcessError:\n    os.write(2, b'nobody is left')\n"
    )
    assert status == 0
    handshakes, left_out = log
    assert handshakes == {"event": "handshakes_failed", "count": 500, "reasons": ["CERTIFICATE_VERIFY_FAILED 500"]}
    assert left_out == {"event": "stderr_lines_left_out", "count": 500 - said.count(OTHER)}
    assert said.replace(OTHER, b"") == b"mine\n" + REFUSED + b"nobody is left"


@pytest.mark.parametrize("end", ["os.abort()", "os.kill(os.getpid(), signal.SIGKILL)", "os._exit(7)"])
def test_the_last_words_of_a_process_that_dies_arrive(end: str) -> None:
    status, _, said = run(f"bounded = BoundedStderr().__enter__()\nos.write(2, b'Fatal: last words')\n{end}\n")
    assert said == b"Fatal: last words"
    assert status in (7, -signal.SIGABRT, -signal.SIGKILL)


def test_where_the_reader_has_gone_the_process_writes_to_its_own_standard_error_again() -> None:
    status, log, said = run(
        "with BoundedStderr() as bounded:\n    os.kill(bounded._pid, signal.SIGKILL)\n    time.sleep(2)\n"
        "    bounded.poll()\n    os.write(2, b'heard again')\n    bounded.poll()\n"
    )
    assert (status, said) == (0, b"heard again")
    assert log == [{"event": "stderr_reader_ended"}]


def test_under_a_flood_the_log_has_one_line_in_ten_seconds() -> None:
    _, log, _ = run(
        f"with BoundedStderr() as bounded:\n    for _ in range(25):\n        os.write(2, {REFUSED!r} * 40)\n"
        "        time.sleep(0.1)\n        bounded.poll()\n"
    )
    assert sum(int(str(line["count"])) for line in log) == 1_000
    assert len(log) <= 2, "at once, and the rest at the end"
