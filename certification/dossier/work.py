"""The work folder: the result of each step as a file, with the hash of what it was made from.

A step need not run again if its inputs are those of its file: parameters, bytes of the software that it runs, versions
of the libraries. What did not run is tried again. Files are written whole or not at all. A file that cannot be read
counts as missing: its step runs.
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from certification.statistics.progress import Reported
from rgs.core.times import format_time

ROOT: Final = Path(__file__).parents[2]
"""The checkout. Its tests and requirements are part of the evidence; an installed package has none of them."""
FORMAT: Final = "rgs/dossier-step/v2"
CHANCE: Final = ("rng", "rgs/core", "certification/rtp", "certification/statistics", "certification/dossier/chance.py")
GAMES: Final = ("rng", "rgs/core", "certification/rtp", "certification/simulate.py", "certification/strategy.py",
                "certification/vectors.py", "certification/dossier/games.py", "tests/vectors/games")  # fmt: skip
ALL: Final = (
    "rng",
    "rgs",
    "certification",
    "tests",
    "tools",
    "protos",
    "docs",
    "requirements",
    "Makefile",
    "pyproject.toml",
)
_RUN_ON: Final = ("numpy", "scipy", "numba")

Result = dict[str, Any]
"""At least `verdict` (passed, failed, not run, not applicable, reported) and `reported`, a line with the figures."""


def not_run(why: str, **empty: object) -> Result:
    """The result of a step that did not run, with nothing in its fields."""
    return {"verdict": "not run", "reported": why, **empty}


@dataclass(frozen=True)
class DossierStep:
    """One step: `run` is given its parameters and tells its progress; `reads` are files and folders it depends on."""

    name: str
    title: str
    run: Callable[[Mapping[str, Any], Reported], Result]
    parameters: Mapping[str, Any]
    reads: Sequence[str] = ()

    def inputs(self, root: Path = ROOT) -> str:
        """SHA-256 over parameters, files read and versions."""
        document = {
            "step": self.name,
            "parameters": self.parameters,
            "reads": {name: tree_sha256(root / name) for name in self.reads},
            "python": platform.python_version(),
            "versions": {name: version_of(name) for name in _RUN_ON},
        }
        return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Done:
    """A step's result, and what it took. `made`: the time of the run that it is from, as in statements; `is_kept`: that
    was an earlier run.
    """

    step: DossierStep
    result: Result
    inputs: str
    took_s: float
    made: str
    is_kept: bool


class Work:
    """The folder, for a run of this time. With `resume`, valid results in it are used; else every step runs."""

    def __init__(self, folder: Path, time_ms: int, *, resume: bool) -> None:
        self._folder = folder
        self._made = format_time(time_ms)
        self._resume = resume
        folder.mkdir(parents=True, exist_ok=True)

    def do(self, step: DossierStep, reported: Reported) -> Done:
        """Run the step, or take what it gave before from the same inputs."""
        path = self._folder / f"{step.name}.json"
        inputs = step.inputs()
        if self._resume and (kept := _read(path, inputs)):
            return Done(step, kept["result"], inputs, kept["took_s"], kept["made"], is_kept=True)
        began = time.monotonic()
        # Through JSON and back: a result that is kept and one that is fresh are the same values.
        result: Result = json.loads(json.dumps(step.run(step.parameters, reported)))
        took_s = round(time.monotonic() - began, 1)
        document = {
            "format": FORMAT,
            "step": step.name,
            "inputs": inputs,
            "made": self._made,
            "took_s": took_s,
            "result": result,
        }
        new = path.with_suffix(".new")
        new.write_text(json.dumps(document), encoding="utf-8")
        new.replace(path)
        return Done(step, result, inputs, took_s, self._made, is_kept=False)


def _read(path: Path, inputs: str) -> dict[str, Any] | None:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    is_ours = isinstance(document, dict) and document.get("format") == FORMAT and document.get("inputs") == inputs
    if not is_ours or not isinstance(document.get("result"), dict):
        return None
    return document if document["result"].get("verdict") != "not run" else None


@cache
def tree_sha256(path: Path) -> str:
    """SHA-256 over names and contents of a file or folder, caches left out; the hash of nothing if it is missing."""
    files = [path] if path.is_file() else sorted(found for found in path.rglob("*") if found.is_file())
    digest = hashlib.sha256()
    for file in files:
        if "__pycache__" not in file.parts:
            digest.update(
                f"{file.relative_to(path).as_posix()}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode()
            )
    return digest.hexdigest()


def version_of(name: str) -> str:
    """The version of an installed package, or `absent`."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"
