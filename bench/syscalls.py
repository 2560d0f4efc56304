"""Which system calls a played call makes: `python -m bench.syscalls`. It needs `strace` (Debian's package).

The play of `bench.counted`, without gRPC, runs under `strace -f -c` twice: the second time with more runs. What is more
in the second is theirs: start, warm-up and end fall out. All threads are counted, background work included. What gRPC
calls to read and write its connections is not in these figures.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter as Tally
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from unittest.mock import patch

from bench import counted
from bench.counted import PLAYERS, WAVES, Counter, _Part

RUNS: Final = (2, 12)
"""Runs of each way of play in the two processes."""
_LINE: Final = re.compile(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)")
"""% time, seconds, usecs/call, calls, errors (may be empty), system call."""


class Uncounted(Counter):
    """Plays, and counts nothing itself: what counts would make system calls of its own."""

    @asynccontextmanager
    async def _counted(self, _part: _Part) -> AsyncIterator[None]:
        yield


def table(summary: str) -> Tally[str]:
    """Calls by name, from the table that `strace -c` writes. ValueError if there is none."""
    found = Tally({name: int(calls) for calls, name in map(_cells, summary.splitlines()) if name != "total"})
    if not found:
        raise ValueError(f"strace wrote no table of system calls, but {summary[:200]!r}")
    return found


def _cells(line: str) -> tuple[str, str]:
    match = _LINE.fullmatch(line.rstrip())
    return (match[1], match[2]) if match else ("0", "total")


def a_call(fewer: Tally[str], more: Tally[str]) -> dict[str, float]:
    """System calls a played call, the most frequent first, those below 0.005 left out."""
    calls = PLAYERS * WAVES * (RUNS[1] - RUNS[0]) * 2
    each = {name: (more[name] - fewer[name]) / calls for name in more}
    return {name: value for name, value in sorted(each.items(), key=lambda item: -item[1]) if value >= 0.005}


def _traced(runs: int, folder: Path) -> Tally[str]:
    summary = folder / f"strace-{runs}.txt"
    command = ["strace", "-f", "-c", "-o", str(summary), sys.executable, "-m", "bench.syscalls"]
    subprocess.run([*command, "--play", str(runs), "--folder", str(folder)], check=True)
    return table(summary.read_text("utf-8"))


def main() -> int:
    """Print the figures; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.syscalls", description="Count the system calls of a play.")
    parser.add_argument("--folder", type=Path, default=Path("var"), help="where the store is made")
    parser.add_argument("--play", type=int, metavar="RUNS", help="play only, with so many runs; count nothing")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="syscalls-", dir=arguments.folder) as folder:
        if arguments.play is not None:
            with patch.object(counted, "RUNS", arguments.play):
                counted.measure(Path(folder) / "home", Uncounted)
            return 0
        if shutil.which("strace") is None:
            print("bench.syscalls: strace is not installed (Debian: apt install strace)", file=sys.stderr)
            return 2
        fewer, more = (_traced(runs, Path(folder)) for runs in RUNS)
    found = a_call(fewer, more)
    print(f"{'system calls a played call':28} {sum(found.values()):8.2f}")
    for name, value in found.items():
        print(f"{name:28} {value:8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
