"""System calls of a played call, from two tables that `strace -c` writes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bench.counted import PLAYERS, WAVES
from bench.syscalls import RUNS, a_call, main, table

SUMMARY = """\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 61.20    0.004021           3      1234           pwrite64
 38.80    0.002549          20       120        17 futex
------ ----------- ----------- --------- --------- ----------------
100.00    0.006570           4      1354        17 total
"""


def test_a_table_is_read_with_and_without_errors() -> None:
    assert table(SUMMARY) == {"pwrite64": 1234, "futex": 120}


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(ValueError, match="wrote no table"):
        table("strace: ptrace(PTRACE_SEIZE, 1): Operation not permitted\n")


def test_start_and_end_fall_out() -> None:
    calls = PLAYERS * WAVES * (RUNS[1] - RUNS[0]) * 2
    fewer = Counter({"pwrite64": 100, "execve": 1, "openat": 500})
    more = Counter({"pwrite64": 100 + 3 * calls, "execve": 1, "openat": 500 + calls // 2, "read": 4 * calls})
    assert list(a_call(fewer, more).items()) == [("read", 4.0), ("pwrite64", 3.0), ("openat", 0.5)]


def test_without_strace_it_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.which", lambda _name: None)
    monkeypatch.setattr("sys.argv", ["bench.syscalls", "--folder", str(tmp_path)])
    assert main() == 2
    assert "strace is not installed" in capsys.readouterr().err
