"""The engine of `tools/mutants.py`: runs tests with one mutant at a time, in forks, and changes no file.

The tests are collected and run once, to learn what each covers and costs. Then a fork for each mutant replaces the code
of one function and runs the tests that cover its lines, cheap ones first, until one fails. A change that acts when a
module is imported (a constant, a default, a function that fills a table) runs in a fork that imports the changed source
instead of the file, under all tests. The limits are CPU seconds and memory, so a loaded machine kills no mutant. Both
ways first run once without a mutant; tests that fail there judge nothing. Tests that leave threads behind (`apart`)
make the map in a separate process, because a fork has only the thread that forked. It runs on Linux only.
"""

from __future__ import annotations

import gc
import importlib
import importlib.machinery
import importlib.util
import mmap
import os
import pickle
import shutil
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import coverage
import pytest
from _pytest.runner import runtestprotocol

from tools.forks import (
    STATUS,
    SURVIVED,
    UNSUITED,
    Map,
    Tests,
    Verdict,
    bound_cpu,
    limit,
    load_profile,
    own_packages,
    run_all,
)
from tools.mutations import Mutant

KNOWN_S: Final = 1.0
"""CPU seconds assumed for a test that was not measured."""

Controlled = Callable[[Sequence[str]], bool]
"""Runs these tests without a mutant. Returns whether they pass."""
Judged = Callable[[Callable[[int, Verdict], None]], None]
"""Runs every mutant, and calls the function when one ends."""

# --- first way: the code of one function, exchanged in place -----------------------------------------------------


class Warm:
    """A pytest plugin that replaces the usual loop: one run makes the map, then each mutant runs in a fork."""

    unreached = STATUS[UNSUITED]
    """The status of a mutant that no test reaches."""

    def __init__(
        self,
        mutants: Sequence[Mutant],
        root: Path,
        tests: Tests,
        workers: int,
        ended: Callable[[int, Verdict], None],
    ) -> None:
        sources = sorted({str(root / each.path) for each in mutants})
        self.measured = coverage.Coverage(data_file=None, config_file=False, include=sources)
        self.map = Map()
        self.control = UNSUITED
        self._mutants, self._root, self.tests, self._workers = mutants, root, tests, workers
        self._ended = ended

    def begin(self) -> None:
        """Measure from here on, what is imported too."""
        self.measured.start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        load_profile()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        folders = session.config._tmp_path_factory  # type: ignore[attr-defined] # noqa: SLF001
        base = folders.getbasetemp()
        self.map = self._mapped(session.items, base)
        self.measured.stop()
        if not self.map.failed:
            self._judge({item.nodeid: item for item in session.items if item.nodeid in self.map.cost}, folders, base)
        return True

    def _chosen(self, mutant: Mutant) -> list[str]:
        return self.map.tests_of(mutant, self._mutants) if mutant.within else []

    def _mapped(self, items: Sequence[pytest.Item], base: Path) -> Map:
        return self._apart(items, base / "map") if self.tests.apart else self._measure(items)

    def _measure(self, items: Sequence[pytest.Item]) -> Map:
        made = Map()
        for item, following in zip(items, [*items[1:], None], strict=True):
            self.measured.switch_context(item.nodeid)
            started = time.process_time()
            if fails(item, following):
                made.failed.append(item.nodeid)
            made.cost[item.nodeid] = round(time.process_time() - started, 3)
        self.measured.stop()
        for path in {each.path for each in self._mutants}:
            for line, tests in self.measured.get_data().contexts_by_lineno(str(self._root / path)).items():
                made.covering[path, line] = set(tests)
        made.modules = [name for name in sys.modules if name.split(".")[0] not in own_packages(self._root)]
        return made

    def _apart(self, items: Sequence[pytest.Item], file: Path) -> Map:
        pid = os.fork()
        if not pid:
            file.write_bytes(pickle.dumps(self._measure(items)))
            os._exit(0)
        os.waitpid(pid, 0)
        made: Map = pickle.loads(file.read_bytes())  # noqa: S301 - our own child wrote it
        return made

    def _judge(self, items: dict[str, pytest.Item], folders: Any, base: Path) -> None:
        sources = {path: (self._root / path).read_bytes() for path in {each.path for each in self._mutants}}
        numbers = {test: number for number, test in enumerate(items, start=1)}
        functions: dict[str, list[types.FunctionType]] = {}
        gc.unfreeze()  # tests/conftest.py freezes what has been collected
        for each in gc.get_objects():
            if isinstance(each, types.FunctionType):
                functions.setdefault(each.__code__.co_filename, []).append(each)

        def run(tests: Sequence[str], mutant: Mutant | None, folder: Path, mark: Callable[[int], None]) -> int:
            if mutant:
                file = str(self._root / mutant.path)
                if not tests:
                    return self.unreached
                if not exchange(mutant, sources[mutant.path], file, functions.get(file, [])):
                    return STATUS[UNSUITED]
            folder.mkdir()
            folders._basetemp = folder  # noqa: SLF001 - one for each fork, which goes with it
            chosen = [items[test] for test in tests]
            for item, following in zip(chosen, [*chosen, None][1:], strict=True):
                bound_cpu(time.process_time() + limit(self.map, [item.nodeid]))
                mark(numbers[item.nodeid])
                if fails(item, following):
                    return 1
            return 0

        def reported(ended: Callable[[int, Verdict], None], index: int, how: str, number: int) -> None:
            shutil.rmtree(base / f"fork-{index}", ignore_errors=True)
            mutant = self._mutants[index]
            if how == SURVIVED and self.map.at_import(mutant):
                how = UNSUITED
            if how != UNSUITED:
                ended(index, Verdict(how, named(items, number) if how != SURVIVED else ""))

        def ended_control(_: int, how: str, number: int) -> None:
            self.control = how if how == SURVIVED else f"{how} in {named(items, number)}"

        def controlled(tests: Sequence[str]) -> bool:
            job = partial(run, tests, None, base / "control"), limit(self.map, tests)
            run_all([job], 1, ended_control)
            return self.control == SURVIVED

        def judged(ended: Callable[[int, Verdict], None]) -> None:
            chosen = [(each, self._chosen(each)) for each in self._mutants]
            jobs = [
                (partial(run, tests, mutant, base / f"fork-{index}"), limit(self.map, tests))
                for index, (mutant, tests) in enumerate(chosen)
            ]
            run_all(jobs, self._workers, partial(reported, ended))

        gc.freeze()
        self._in_turn(list(items), controlled, judged)

    def _in_turn(self, tests: Sequence[str], controlled: Controlled, judged: Judged) -> None:
        """First all tests without a mutant, then the mutants."""
        if controlled(tests):
            judged(self._ended)


class Known(Warm):
    """The same plugin without a map: each mutant is run against the given tests, in their order. Of these, only the
    tests that a mutant ended in are run without a mutant, afterwards.
    """

    unreached = STATUS[SURVIVED]

    def __init__(
        self, chosen: Mapping[Mutant, Sequence[str]], root: Path, workers: int, ended: Callable[[int, Verdict], None]
    ) -> None:
        files = sorted({test.partition("::")[0] for tests in chosen.values() for test in tests})
        super().__init__(list(chosen), root, Tests([file for file in files if (root / file).is_file()]), workers, ended)
        self._tests_of = chosen

    def begin(self) -> None:
        """Without a map nothing is measured."""

    def _mapped(self, items: Sequence[pytest.Item], base: Path) -> Map:  # noqa: ARG002 - as the other
        requested = {test for tests in self._tests_of.values() for test in tests}
        return Map(cost={item.nodeid: KNOWN_S for item in items if item.nodeid in requested})

    def _chosen(self, mutant: Mutant) -> list[str]:
        return [test for test in self._tests_of[mutant] if test in self.map.cost]

    def _in_turn(self, tests: Sequence[str], controlled: Controlled, judged: Judged) -> None:
        ends: list[tuple[int, Verdict]] = []
        judged(lambda index, verdict: ends.append((index, verdict)))
        in_which = {verdict.test for _, verdict in ends}
        if controlled([test for test in tests if test in in_which]):
            for index, verdict in ends:
                self._ended(index, verdict)


def named(tests: Iterable[str], number: int) -> str:
    """The test with this number, counted from 1; "" for 0."""
    return ["", *tests][number]


def fails(item: pytest.Item, following: pytest.Item | None) -> bool:
    """Run one test. Returns whether it fails. A mutant may raise anything, even what pytest lets through."""
    try:
        return any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))
    except BaseException:  # noqa: BLE001
        return True


def exchange(mutant: Mutant, source: bytes, file: str, functions: Iterable[types.FunctionType]) -> bool:
    """Give the mutant's function its changed code. Returns whether that was possible."""
    pieces = [compile(mutant.applied_to(source), file, "exec", dont_inherit=True)]
    found = []
    for piece in pieces:  # the module and the bodies of its classes; a function in a function stays in it
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
    """Finds the one module with the mutant."""

    def __init__(self, path: str, root: Path, source: bytes) -> None:
        self._name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        self._path, self._source = str(root / path), source

    def find_spec(self, name: str, *_: object) -> Any:
        """The spec for `importlib`."""
        if name != self._name:
            return None
        return importlib.util.spec_from_file_location(name, self._path, loader=Planted(name, self._path, self._source))


class Profiled:
    """A pytest plugin with the settings of the second way. It reports the test that is running."""

    def __init__(self, found: Map, mark: Callable[[int], None]) -> None:
        self._numbers = {test: number for number, test in enumerate(found.cost, start=1)}
        self._mark = mark

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        load_profile()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._mark(self._numbers.get(nodeid, 0))


def import_job(
    mutant: Mutant | None, root: Path, tests: Tests, found: Map, scratch: Path, mark: Callable[[int], None]
) -> int:
    """Run test files, likely killers first, in a process that has not yet imported anything of the project."""
    if mutant:
        source = mutant.applied_to((root / mutant.path).read_bytes())
        sys.meta_path.insert(0, Finder(mutant.path, root, source))
    parts = found.near(mutant.path, tests.files) if mutant else [tests.files]
    base = Path(tempfile.mkdtemp(dir=scratch))
    options = tests.options(base / "tests")
    fine = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    try:
        codes = (pytest.main([*options, *files], plugins=[Profiled(found, mark)]) for files in parts if files)
        passed = all(code in fine for code in codes)
    except BaseException:  # noqa: BLE001 - as above
        passed = False
    shutil.rmtree(base, ignore_errors=True)
    return 0 if passed else 1


# --- both ways, one after the other ---------------------------------------------------------------------------------


def judge_known(
    chosen: Mapping[Mutant, Sequence[str]], root: Path, workers: int, record: Callable[[int, Verdict], None]
) -> None:
    """As `judge`, for mutants that act in a function: each under the tests that are given with it. A test that does not
    exist any more kills nothing.
    """
    with tempfile.TemporaryDirectory() as scratch:
        _in_child(Known(chosen, root, workers, record), Path(scratch))
        _read_found("known", Path(scratch, "found"))


def judge(
    name: str,
    mutants: Sequence[Mutant],
    tests: Tests,
    root: Path,
    workers: int,
    record: Callable[[int, Verdict], None],
) -> None:
    """Run each mutant under these tests. Calls `record` when one ends. SystemExit if the tests fail without a mutant.

    `record` gets the mutant's index. It is called in this process and in its forks.
    """
    say = progress(name, mutants)

    def ended(index: int, verdict: Verdict) -> None:
        record(index, verdict)
        say(index, verdict)

    with tempfile.TemporaryDirectory() as scratch:
        done = mmap.mmap(-1, len(mutants) + 1)

        def ended_first(index: int, verdict: Verdict) -> None:
            done[index] = 1
            ended(index, verdict)

        _in_child(Warm(mutants, root, tests, workers, ended_first), Path(scratch))
        found = _read_found(name, Path(scratch, "found"))
        left = [index for index in range(len(mutants)) if not done[index]]
        if not left:
            return
        for module in found.modules:
            with suppress(Exception):
                importlib.import_module(module)
        planted = [None, *(mutants[index] for index in left)]
        jobs = [
            (partial(import_job, each, root, tests, found, Path(scratch)), 30 + limit(found, found.cost))
            for each in planted
        ]

        def ended_control(_: int, how: str, number: int) -> None:
            if how != SURVIVED:
                raise SystemExit(f"{name}: {how} without a mutant, in a fork, in {named(found.cost, number)}")

        def ended_later(index: int, how: str, number: int) -> None:
            ended(left[index], Verdict(how, named(found.cost, number) if how != SURVIVED else ""))

        run_all(jobs[:1], 1, ended_control)
        run_all(jobs[1:], workers, ended_later)


def _in_child(plugin: Warm, scratch: Path) -> None:
    """Run pytest with this plugin in a fork. The fork leaves the map and the result without a mutant."""
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    try:
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        plugin.begin()
        pytest.main([*plugin.tests.options(scratch / "warm"), *plugin.tests.files], plugins=[plugin])
        (scratch / "found").write_bytes(pickle.dumps((plugin.map, plugin.control)))
    finally:
        os._exit(0)


def _read_found(name: str, path: Path) -> Map:
    """Read what the child left. SystemExit if the tests fail without a mutant."""
    if not path.exists():
        raise SystemExit(f"{name}: the tests could not be run")
    found, control = pickle.loads(path.read_bytes())  # noqa: S301 - our own child wrote it
    if found.failed or not found.cost:
        raise SystemExit(f"{name}: the tests fail without a mutant, or there are none: {found.failed}")
    if control != SURVIVED:
        raise SystemExit(f"{name}: without a mutant, run a second time: {control}")
    made: Map = found
    return made


def progress(what: str, mutants: Sequence[Mutant]) -> Callable[[int, Verdict], None]:
    """Print progress on stderr twenty times, and each survivor. It works in this process and in its forks."""
    terminal, count = os.dup(2), mmap.mmap(-1, 4)

    def say(index: int, verdict: Verdict) -> None:
        before = int.from_bytes(count[:4])
        count[:4] = (before + 1).to_bytes(4)
        if verdict.outcome == SURVIVED:
            each = mutants[index]
            os.write(terminal, f"{what}: survived: {each.path}:{each.line}: {each.before} -> {each.after}\n".encode())
        if (before + 1) * 20 // len(mutants) > before * 20 // len(mutants):
            os.write(terminal, f"{what}: {before + 1} of {len(mutants)}\n".encode())

    return say
