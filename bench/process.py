"""The server under test as a process of its own, and its measurements.

`read` returns CPU seconds of all threads of that process, its memory, and the counts of its store's writer. `rest`
waits until the work that calls have left behind (stage reports, a late commit) is done, so that it counts for them.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from bench.figures import BenchError

START_TIMEOUT_S: Final = 60.0
REST_POLL_S: Final = 0.15
REST_CPU_S: Final = 0.006
"""A server that used less CPU between two readings, and has nothing queued, is at rest. Over PostgreSQL it uses up to
4 ms in that time with nothing to do."""
REST_POLLS_MAX: Final = 800


@dataclass(frozen=True, slots=True)
class Reading:
    """Counts since the start of the process; `queued` (whether stage reports wait) and `rss_bytes` are of now."""

    cpu_s: float
    groups: int
    changes: int
    queued: int = 0
    rss_bytes: int = 0
    tree_cpu_s: float = 0.0
    """Of the process and its children."""
    threads: Mapping[str, str] = field(default_factory=dict)
    """The names of Python's threads, by their numbers in the system."""

    def __sub__(self, before: Reading) -> Reading:
        return Reading(
            self.cpu_s - before.cpu_s,
            self.groups - before.groups,
            self.changes - before.changes,
            tree_cpu_s=self.tree_cpu_s - before.tree_cpu_s,
        )


class Subject:
    """The running process: `address` of the server, `echo_address` of the empty echo beside it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.address = ""
        self.echo_address = ""

    @classmethod
    async def start(cls, home: Path, *, streams_max: int = 0) -> Self:
        """Serve a home. BenchError if the process does not come up. `streams_max` lifts the server's own limits of open
        streams; 0 leaves them.
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.subject", str(home), str(streams_max),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        subject = cls(process)
        try:
            ready = await asyncio.wait_for(subject._line(), START_TIMEOUT_S)
        except BaseException:
            await subject.stop()
            raise
        subject.address, subject.echo_address = str(ready["address"]), str(ready["echo_address"])
        return subject

    @property
    def process_id(self) -> int:
        """The process id."""
        return self._process.pid

    async def read(self) -> Reading:
        """The counts now."""
        return await self._ask(b"read\n")

    async def rest(self) -> Reading:
        """The counts once the server is at rest."""
        before = await self._ask(b"look\n")
        for _ in range(REST_POLLS_MAX):
            await asyncio.sleep(REST_POLL_S)
            now = await self.read()
            if not now.queued and now.cpu_s - before.cpu_s < REST_CPU_S:
                return now
            before = now
        raise BenchError("the server under test does not come to rest")

    async def stop(self) -> None:
        """Close the control pipe, which ends the process in order; kill it if it does not end."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), START_TIMEOUT_S)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    async def _ask(self, line: bytes) -> Reading:
        if self._process.stdin is None:
            raise BenchError("the server under test has no control pipe")
        self._process.stdin.write(line)
        return Reading(**await self._line())

    async def _line(self) -> dict[str, Any]:
        if self._process.stdout is None:
            raise BenchError("the server under test has no control pipe")
        line = await self._process.stdout.readline()
        if not line:
            raise BenchError("the server under test has ended; its output is above")
        answer: dict[str, Any] = json.loads(line)
        return answer
