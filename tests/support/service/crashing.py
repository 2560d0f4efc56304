"""A process that dies by SIGKILL before or after one of its commits, and the small server that forks it.

A test file that is a program of its own (`serve_children` under `__main__`) reads orders, forks a child for each and
answers how it ended, so that nothing of the product is started anew but the server itself. `forking` starts it from a
test, `live` gives it one order.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TextIO

ROOT = Path(__file__).resolve().parents[3]

Run = Callable[..., int]
"""A life in the folder of a test, up to its end or its failpoint; its exit status, negative for a signal."""

WARNINGS = "error,ignore:Binding:DeprecationWarning"
"""Of child processes. Python 3.12.0 to 3.12.3 take numbered parameters of SQLite (?1) for named ones (gh-117995)."""


class Failpoint:
    """Counts the commits of this process and dies at the one that it was told. Names: step/file/count/when; `commit N
    when` by the number in this process; `step commit N when` by that number without those of its start.
    """

    def __init__(self) -> None:
        self.kill_at = ""
        self.step = "start"
        self.log: TextIO | None = None
        self._counts: Counter[str] = Counter()
        self._steps = 0

    def reach(self, file: str) -> tuple[str, ...]:
        """The names of the commit that is about to be made; its place is the first of them."""
        key = f"{self.step}/{file}"
        self._counts[key] += 1
        self._steps += self.step not in {"start", "recover"}
        return f"{key}/{self._counts[key]}", f"commit {self._counts.total()}", f"step commit {self._steps}"

    def pass_by(self, commit: tuple[str, ...], when: str) -> None:
        """Die here, if it is here."""
        assert self.log is not None
        place, *numbers = commit
        self.log.write(f"{place}/{when}\n")
        self.log.flush()
        if self.kill_at in (f"{place}/{when}", *(f"{number} {when}" for number in numbers)):
            os.kill(os.getpid(), signal.SIGKILL)


FAILPOINT = Failpoint()


class DeadlyConnection(sqlite3.Connection):
    """A connection that passes the failpoint before and after every commit."""

    def __init__(self, path: Any, *args: Any, **options: Any) -> None:
        super().__init__(path, *args, **options)
        self._file = Path(path).stem

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if sql != "COMMIT":
            return super().execute(sql, *values)
        commit = FAILPOINT.reach(self._file)
        FAILPOINT.pass_by(commit, "before")
        cursor = super().execute(sql, *values)
        FAILPOINT.pass_by(commit, "after")
        return cursor


# --- the program ------------------------------------------------------------------------------------------------------


def serve_children(life: Callable[[dict[str, Any]], Coroutine[Any, Any, None]]) -> None:
    """Read orders, fork a child for each that lives `life(order)`, answer how it ended."""
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            status = 1
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what it logs is no answer
            try:
                _child(json.loads(line), life)
                status = 0
            finally:
                os._exit(status)
        _, ended = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(ended)}\n")
        sys.stdout.flush()


def _child(order: dict[str, Any], life: Callable[[dict[str, Any]], Coroutine[Any, Any, None]]) -> None:
    folder = Path(order["folder"])
    with (folder / "points.txt").open("a", encoding="ascii") as log:
        FAILPOINT.kill_at, FAILPOINT.log = order["kill_at"], log
        sqlite3.connect = partial(sqlite3.connect, factory=DeadlyConnection)  # type: ignore[assignment]
        try:
            asyncio.run(life(order))
        except BaseException:
            (folder / "error.txt").write_text(traceback.format_exc(), "utf-8")
            raise


# --- for the tests ----------------------------------------------------------------------------------------------------


@contextmanager
def forking(module: str) -> Iterator[subprocess.Popen[str]]:
    """The program of a test module, for as long as its tests want it."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": WARNINGS}
    environment.pop("COV_CORE_SOURCE", None)
    with subprocess.Popen(
        [sys.executable, "-m", module],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def live(process: subprocess.Popen[str], order: dict[str, Any]) -> int:
    """One life; its exit status, negative for a signal. An order names `folder` and `kill_at`."""
    assert process.stdin is not None
    assert process.stdout is not None
    print(json.dumps(order), file=process.stdin, flush=True)
    return int(process.stdout.readline())


def points_of(steps: Mapping[str, Sequence[str]]) -> list[str]:
    """Before and after each write of each step, as `<step>/<file>/<count>/<when>`."""
    found = []
    for step, files in steps.items():
        for number, file in enumerate(files):
            count = files[: number + 1].count(file)
            found += [f"{step}/{file}/{count}/before", f"{step}/{file}/{count}/after"]
    return found
