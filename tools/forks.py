"""Runs one process for each mutant, with limits. Both ways of planting use it (`tools.planting`)."""

from __future__ import annotations

import mmap
import os
import resource
import select
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import hypothesis

from tools.mutations import Mutant

IDLE_S: Final = 60  # almost without CPU time: it waits for ever. An endless computation meets the CPU limit.
IDLE_TICKS: Final = 5
MORE_MEMORY: Final = 2 << 30
KILLED: Final = "killed"
SURVIVED: Final = "survived"
TIMEOUT: Final = "timeout"
UNSUITED: Final = "unsuited"  # not for the first way of planting
IMPORT: Final = ""  # stands in the map for the code that runs before any test
STATUS: Final = {SURVIVED: 0, KILLED: 1, UNSUITED: 75}
ENDED: Final = {status: how for how, status in STATUS.items()}
OPTIONS: Final = (
    *("-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov", "-o", "timeout=0", "--hypothesis-seed=0"),
    *("-o", "addopts=--import-mode=importlib", "-W", "ignore::pytest.PytestAssertRewriteWarning"),
    *("-m", "not slow_exhaustive"),
)


@dataclass(frozen=True)
class Tests:
    """Test files of a group, a word in names of tests to leave out, and whether a separate process makes the map."""

    files: list[str]
    without: str = ""
    apart: bool = False

    def options(self, base: Path) -> list[str]:
        """Pytest's arguments, without the files."""
        return [*OPTIONS, "--basetemp", str(base), *(["-k", f"not {self.without}"] if self.without else [])]


@dataclass(frozen=True)
class Verdict:
    """How a mutant ended, and the test (or test file) in which it ended, or ""."""

    outcome: str
    test: str = ""


@dataclass
class Map:
    """The result of a run without mutants: the tests' CPU seconds, and the lines that each test covers."""

    cost: dict[str, float] = field(default_factory=dict)
    covering: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    """Third-party modules that the tests import."""

    def tests_of(self, mutant: Mutant, mutants: Iterable[Mutant]) -> list[str]:
        """Tests that reach the mutant's lines, or else its function's lines; cheap ones first."""
        lines: Iterable[int] = range(mutant.line, mutant.last_line + 1)
        found = self._covering(mutant.path, lines) - {IMPORT}
        if not found:
            same = [each for each in mutants if (each.path, each.function) == (mutant.path, mutant.function)]
            lines = {line for each in same for line in range(each.line, each.last_line + 1)}
            found = self._covering(mutant.path, lines) - {IMPORT}
        return sorted(found, key=lambda test: (self.cost[test], test))

    def near(self, path: str, files: Sequence[str]) -> tuple[list[str], list[str]]:
        """Test files in two parts: the three with the most tests that reach the file, and the others."""
        reaching = {test for (file, _), tests in self.covering.items() if file == path for test in tests}
        counts = Counter(test.partition("::")[0] for test in reaching - {IMPORT})
        first = [file for file, _ in counts.most_common(3)]
        return first, [file for file in files if file not in first]

    def at_import(self, mutant: Mutant) -> bool:
        """Whether its function ran while the tests were collected, so that its result may have been kept."""
        return any(IMPORT in self.covering.get((mutant.path, n), ()) for n in range(mutant.line, mutant.last_line + 1))

    def _covering(self, path: str, lines: Iterable[int]) -> set[str]:
        return {test for line in lines for test in self.covering.get((path, line), ())}


# --- one process for each mutant ---------------------------------------------------------------------------------


def fork(job: Callable[[], int], cpu_s: float) -> int:
    """Start a silent job in its own process group, with limits on CPU time and memory. Returns the process id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        quiet = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(quiet, descriptor)
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        bound_cpu(cpu_s)
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MORE_MEMORY,) * 2)
        os._exit(job())
    except BaseException:  # noqa: BLE001 - the engine's own failure; what tests raise has been caught
        os._exit(70)


def bound_cpu(cpu_s: float) -> None:
    """End this process (SIGXCPU) when it has used this many CPU seconds."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s) + 1, resource.RLIM_INFINITY))


def cpu_ticks(pid: int) -> int:
    """The CPU time of a process and of the children it waited for, in the kernel's hundredths of a second."""
    return sum(map(int, Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[11:15]))


Job = Callable[[Callable[[int], None]], int]
"""A function that returns a status. It gets another function to call with a number; the number outlives the job."""


def run_all(jobs: Sequence[tuple[Job, float]], workers: int, ended: Callable[[int, str, int], None]) -> None:
    """Run each (job, CPU seconds) in a fork, `workers` at a time. Calls `ended` for each with its index, how it ended,
    and the last number that it gave (0 if none).
    """
    marks = mmap.mmap(-1, 4 * len(jobs) + 4)
    running: dict[int, tuple[int, int]] = {}  # pidfd -> index, pid
    seen: dict[int, tuple[int, float]] = {}  # pidfd -> CPU time, and when it was read
    waiting = iter(enumerate(jobs))
    while True:
        while len(running) < workers and (following := next(waiting, None)):
            index, (job, cpu_s) = following
            pid = fork(partial(job, partial(_mark, marks, index)), cpu_s)
            running[os.pidfd_open(pid)] = index, pid
        if not running:
            return
        ready, _, _ = select.select(list(running), [], [], 5.0)
        now = time.monotonic()
        for pidfd, (_, pid) in running.items():
            ticks = cpu_ticks(pid)
            if pidfd not in seen or ticks > seen[pidfd][0] + IDLE_TICKS:
                seen[pidfd] = ticks, now
        idle = [pidfd for pidfd in running if now - seen[pidfd][1] > IDLE_S]
        for pidfd in {*ready, *idle}:
            index, pid = running.pop(pidfd)
            del seen[pidfd]
            os.close(pidfd)
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # with its children
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            if code == 70:
                raise SystemExit(f"planting failed: job {index}")
            how = TIMEOUT if code in (-signal.SIGXCPU, -signal.SIGKILL) else ENDED.get(code, KILLED)
            ended(index, how, int.from_bytes(marks[4 * index : 4 * index + 4]))


def _mark(marks: mmap.mmap, index: int, number: int) -> None:
    marks[4 * index : 4 * index + 4] = number.to_bytes(4)


def load_profile() -> None:
    """Use no database, no shrinking and no clock: one counterexample is enough, and each run finds the same."""
    hypothesis.settings.register_profile(
        "mutants",
        parent=hypothesis.settings(),
        database=None,
        deadline=None,
        derandomize=False,  # the seed is given on the command line
        phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.load_profile("mutants")


def limit(found: Map, tests: Iterable[str]) -> float:
    """The limit of CPU seconds for these tests: ten times what they took without a mutant, plus a few."""
    return 3 + 10 * sum(found.cost[test] for test in tests)


def own_packages(root: Path) -> set[str]:
    """The packages below the root. Each fork imports them anew."""
    return {path.parent.name for path in root.glob("*/*.py")} | {"conftest", "__main__"}
