"""Runs tests with one mutant at a time, in forks, and touches no file: the engine of `tools/mutants.py`.

The tests are collected and run once, which says what each covers and costs; then a fork for each mutant exchanges the
code of one function in place and runs the tests that cover its lines, cheap ones first, until one fails. What acts when
a module is imported (a constant, a default, a function that fills a table) runs in a fork that imports the changed
source in place of the file, under all tests. Limits are CPU seconds and memory, so a loaded machine kills no mutant.
Both ways run once without a mutant first: tests that fail as they are judge nothing. Linux only.
"""

from __future__ import annotations

import gc
import importlib
import importlib.machinery
import importlib.util
import os
import pickle
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import types
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import coverage
import hypothesis
import pytest
from _pytest.runner import runtestprotocol

from tools.mutations import Mutant

IDLE_S: Final = 60  # without a moment of CPU time: it waits for ever; one that computes for ever meets its CPU limit
MORE_MEMORY: Final = 2 << 30
KILLED: Final = "killed"
SURVIVED: Final = "survived"
TIMEOUT: Final = "timeout"
UNSUITED: Final = "unsuited"  # for the first way
IMPORT: Final = ""  # the test, in the map, of what runs before any test
STATUS: Final = {0: SURVIVED, 1: KILLED, 75: UNSUITED}
OPTIONS: Final = (
    *("-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov", "-o", "timeout=0", "--hypothesis-seed=0"),
    *("-o", "addopts=--import-mode=importlib", "-W", "ignore::pytest.PytestAssertRewriteWarning"),
    *("-m", "not slow_exhaustive"),
)


@dataclass
class Map:
    """What one run without mutants says of the tests: their CPU seconds, and who covers which line."""

    cost: dict[str, float] = field(default_factory=dict)
    covering: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def tests_of(self, mutant: Mutant, mutants: Iterable[Mutant]) -> list[str]:
        """Tests that reach the mutant's lines (if none is known to, its function's), cheap ones first."""
        lines: Iterable[int] = range(mutant.line, mutant.last_line + 1)
        found = self._covering(mutant.path, lines) - {IMPORT}
        if not found:
            same = [each for each in mutants if (each.path, each.function) == (mutant.path, mutant.function)]
            lines = {line for each in same for line in range(each.line, each.last_line + 1)}
            found = self._covering(mutant.path, lines) - {IMPORT}
        return sorted(found, key=lambda test: (self.cost[test], test))

    def near(self, path: str, files: Sequence[str]) -> tuple[list[str], list[str]]:
        """Test files in two parts: the three with most tests that reach anything of the file, and the others."""
        reaching = {test for (file, _), tests in self.covering.items() if file == path for test in tests}
        counts = Counter(test.partition("::")[0] for test in reaching - {IMPORT})
        first = [file for file, _ in counts.most_common(3)]
        return first, [file for file in files if file not in first]

    def at_import(self, mutant: Mutant) -> bool:
        """Whether its function ran when the tests were collected, so that what it gave then may have been kept."""
        return any(IMPORT in self.covering.get((mutant.path, n), ()) for n in range(mutant.line, mutant.last_line + 1))

    def _covering(self, path: str, lines: Iterable[int]) -> set[str]:
        return {test for line in lines for test in self.covering.get((path, line), ())}


# --- one process a mutant ----------------------------------------------------------------------------------------


def fork(job: Callable[[], int], cpu_s: float) -> int:
    """Start a job in a process group of its own, silent, with bounds on CPU time and memory; the process id."""
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
    """End this process (SIGXCPU) once it has used so many CPU seconds."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s) + 1, resource.RLIM_INFINITY))


def cpu_time(pid: int) -> str:
    """What a process and those it waited for have used, in the kernel's words."""
    return " ".join(Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[11:15])


def run_all(
    jobs: Sequence[tuple[Callable[[], int], float]],
    mutants: Sequence[Mutant | None],
    workers: int,
    say: Callable[[int, str], None],
) -> list[str]:
    """Run (job, CPU seconds), one a mutant, in forks, so many at a time; how each ended, in order."""
    ended = [""] * len(jobs)
    running: dict[int, tuple[int, int]] = {}  # pidfd -> index, pid
    seen: dict[int, tuple[str, float]] = {}  # pidfd -> CPU time, and when it was first so
    waiting = iter(enumerate(jobs))
    while True:
        while len(running) < workers and (following := next(waiting, None)):
            index, (job, cpu_s) = following
            pid = fork(job, cpu_s)
            running[os.pidfd_open(pid)] = index, pid
        if not running:
            return ended
        ready, _, _ = select.select(list(running), [], [], 5.0)
        now = time.monotonic()
        for pidfd, (_, pid) in running.items():
            if (cpu := cpu_time(pid)) != seen.get(pidfd, ("", now))[0]:
                seen[pidfd] = cpu, now
        idle = [pidfd for pidfd in running if now - seen[pidfd][1] > IDLE_S]
        for pidfd in {*ready, *idle}:
            index, pid = running.pop(pidfd)
            del seen[pidfd]
            os.close(pidfd)
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # also what it has started
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            if code == 70:
                raise SystemExit(f"planting failed: {mutants[index]}")
            ended[index] = TIMEOUT if code in (-signal.SIGXCPU, -signal.SIGKILL) else STATUS.get(code, KILLED)
            if (mutant := mutants[index]) and ended[index] == SURVIVED:
                say(1, f"survived: {mutant.path}:{mutant.line}: {mutant.before} -> {mutant.after}")
            else:
                say(1, "")


# --- first way: the code of one function, exchanged in place -----------------------------------------------------


class Warm:
    """A pytest plugin: in place of the usual loop, the run that makes the map, then a fork a mutant."""

    def __init__(self, mutants: Sequence[Mutant], root: Path, workers: int, say: Callable[[int, str], None]) -> None:
        sources = sorted({str(root / each.path) for each in mutants})
        self.measured = coverage.Coverage(data_file=None, config_file=False, include=sources)
        self.map = Map()
        self.verdicts: list[str] = []
        self.modules: list[str] = []
        self._mutants, self._root, self._workers, self._say = mutants, root, workers, say

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        load_profile()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined] # noqa: SLF001 - one for all forks
        sources = {path: (self._root / path).read_bytes() for path in {each.path for each in self._mutants}}
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            self.measured.switch_context(item.nodeid)
            started = time.process_time()
            if fails(item, following):
                self.map.failed.append(item.nodeid)
            self.map.cost[item.nodeid] = round(time.process_time() - started, 3)
        self.measured.stop()
        for path in sources:
            for line, tests in self.measured.get_data().contexts_by_lineno(str(self._root / path)).items():
                self.map.covering[path, line] = set(tests)
        self.modules = [name for name in sys.modules if name.split(".")[0] not in house(self._root)]
        if not self.map.failed:
            self.verdicts = self._judge({item.nodeid: item for item in session.items}, sources)
        return True

    def _judge(self, items: dict[str, pytest.Item], sources: dict[str, bytes]) -> list[str]:
        functions: dict[str, list[types.FunctionType]] = {}
        for each in gc.get_objects():
            if isinstance(each, types.FunctionType):
                functions.setdefault(each.__code__.co_filename, []).append(each)

        def job(tests: list[str], mutant: Mutant | None) -> Callable[[], int]:
            def run() -> int:
                if mutant:
                    file = str(self._root / mutant.path)
                    if not exchange(mutant, sources[mutant.path], file, functions.get(file, [])):
                        return 75
                chosen = [items[test] for test in tests]
                for item, following in zip(chosen, [*chosen[1:], None], strict=True):
                    bound_cpu(time.process_time() + limit(self.map, [item.nodeid]))
                    if fails(item, following):
                        return 1
                return 0

            return run

        jobs = [(job(list(items), None), limit(self.map, items))]
        for mutant in self._mutants:
            tests = self.map.tests_of(mutant, self._mutants) if mutant.within else []
            jobs.append((job(tests, mutant) if tests else lambda: 75, limit(self.map, tests)))
        gc.freeze()
        return run_all(jobs, [None, *self._mutants], self._workers, self._say)


def fails(item: pytest.Item, following: pytest.Item | None) -> bool:
    """Run one test; whether it fails. A mutant may raise anything, also what pytest lets through."""
    try:
        return any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))
    except BaseException:  # noqa: BLE001
        return True


def exchange(mutant: Mutant, source: bytes, file: str, functions: Iterable[types.FunctionType]) -> bool:
    """Give the mutant's function its changed code; whether that was possible."""
    pieces = [compile(mutant.applied_to(source), file, "exec", dont_inherit=True)]
    found = []
    for piece in pieces:  # the module and the bodies of its classes: what is in a function stays in it
        inner = [each for each in piece.co_consts if isinstance(each, types.CodeType)]
        found += [each for each in inner if each.co_qualname == mutant.within]
        pieces += [each for each in inner if not each.co_flags & 1]  # CO_OPTIMIZED marks functions
    places = [each for each in functions if each.__code__.co_qualname == mutant.within]
    if len(found) != 1 or not places:
        return False
    try:
        for place in places:
            place.__code__ = found[0]
    except ValueError:  # another number of free variables
        return False
    return True


# --- second way: the changed file, imported ----------------------------------------------------------------------


class Planted(importlib.machinery.SourceFileLoader):
    """Loads one module from changed source."""

    def __init__(self, name: str, path: str, source: bytes) -> None:
        super().__init__(name, path)
        self._planted = source

    def get_code(self, fullname: str) -> types.CodeType:  # noqa: ARG002 - as importlib calls it
        return compile(self._planted, self.path, "exec", dont_inherit=True)


class Finder:
    """Finds the one module that is planted."""

    def __init__(self, path: str, root: Path, source: bytes) -> None:
        self._name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        self._path, self._source = str(root / path), source

    def find_spec(self, name: str, *_: object) -> Any:
        """As `importlib` asks it."""
        if name != self._name:
            return None
        return importlib.util.spec_from_file_location(name, self._path, loader=Planted(name, self._path, self._source))


class Profiled:
    """A pytest plugin: the second way's settings."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        load_profile()


def import_job(mutant: Mutant | None, root: Path, parts: Sequence[Sequence[str]], scratch: Path) -> int:
    """Run test files, part by part, in a process that has imported nothing of the house yet."""
    if mutant:
        source = mutant.applied_to((root / mutant.path).read_bytes())
        sys.meta_path.insert(0, Finder(mutant.path, root, source))
    base = tempfile.mkdtemp(dir=scratch)
    options = [*OPTIONS, "--basetemp", f"{base}/tests"]
    try:
        codes = (pytest.main([*options, *files], plugins=[Profiled()]) for files in parts if files)
        passed = all(code == pytest.ExitCode.OK for code in codes)
    except BaseException:  # noqa: BLE001 - as above
        passed = False
    shutil.rmtree(base, ignore_errors=True)
    return 0 if passed else 1


# --- what both share ---------------------------------------------------------------------------------------------


def load_profile() -> None:
    """No database, no shrinking, no clock: a counterexample is enough, and the same ones every time."""
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
    """CPU seconds for these tests: ten times what they took when nothing was wrong, and a few."""
    return 3 + 10 * sum(found.cost[test] for test in tests)


def house(root: Path) -> set[str]:
    """The packages below the root, which forks import anew."""
    return {path.parent.name for path in root.glob("*/*.py")} | {"conftest", "__main__"}


def judge(name: str, mutants: list[Mutant], files: list[str], root: Path, workers: int, scratch: Path) -> list[str]:
    """How each mutant ended under these test files. Raises SystemExit if the tests fail without one."""
    say = progress(f"{name}: first way", len(mutants) + 1)

    def warm() -> int:
        plugin = Warm(mutants, root, workers, say)
        plugin.measured.start()
        pytest.main([*OPTIONS, "--basetemp", str(scratch / "warm"), *files], plugins=[plugin])
        (scratch / "found").write_bytes(pickle.dumps((plugin.map, plugin.modules, plugin.verdicts)))
        return 0

    pid = os.fork()
    if not pid:
        devnull = os.open(os.devnull, os.O_RDWR)
        os.dup2(devnull, 1)
        os._exit(warm())
    os.waitpid(pid, 0)
    found, modules, (control, *verdicts) = read_found(scratch / "found")
    if control != SURVIVED:
        raise SystemExit(f"{name}: the tests fail when run a second time without a mutant")
    for module in modules:
        with suppress(Exception):
            importlib.import_module(module)
    left = [
        index
        for index, verdict in enumerate(verdicts)
        if verdict == UNSUITED or (verdict == SURVIVED and found.at_import(mutants[index]))
    ]
    jobs = []
    planted = [None, *(mutants[index] for index in left)]
    for mutant in planted:
        parts = found.near(mutant.path, files) if mutant else [files]
        jobs.append((bound(import_job, mutant, root, parts, scratch), 30 + limit(found, found.cost)))
    control, *later = run_all(jobs, planted, workers, progress(f"{name}: second way", len(jobs)))
    if control != SURVIVED:
        raise SystemExit(f"{name}: the tests fail in a fork without a mutant")
    for index, verdict in zip(left, later, strict=True):
        verdicts[index] = verdict
    return verdicts


def bound(job: Callable[..., int], *arguments: object) -> Callable[[], int]:
    """Return the call, to be made later."""
    return lambda: job(*arguments)


def read_found(path: Path) -> tuple[Map, list[str], list[str]]:
    """What the warm process left; SystemExit if the tests fail as they are."""
    if not path.exists():
        raise SystemExit("the tests could not be run")
    found, modules, verdicts = pickle.loads(path.read_bytes())  # noqa: S301 - our own child wrote it
    path.unlink()
    if found.failed or not found.cost:
        raise SystemExit(f"the tests fail without a mutant, or are none: {found.failed}")
    return found, modules, verdicts


def progress(what: str, total: int) -> Callable[[int, str], None]:
    """Say on stderr how far it is, twenty times, and what survives on the way."""
    terminal, done = os.dup(2), 0

    def say(count: int, survivor: str = "") -> None:
        nonlocal done
        before, done = done, done + count
        if survivor:
            os.write(terminal, f"{what}: {survivor}\n".encode())
        if done * 20 // total > before * 20 // total:
            os.write(terminal, f"{what}: {done} of {total}\n".encode())

    return say
