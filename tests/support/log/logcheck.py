"""The independent check of a log, built from `tools/logcheck` where Go and its x/mod sources are (Debian: golang-go,
golang-golang-x-mod-dev), and run on logs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[3] / "tools" / "logcheck"
GOPATH = Path("/usr/share/gocode")
"""Where Debian keeps the sources of Go packages."""
RUN_S = 120


@dataclass(frozen=True)
class LogCheck:
    """The program, to be called with a log."""

    program: Path

    def __call__(self, log: Path, vkey: str, *older: Path) -> str:
        """Empty if the log is good, else why it is refused."""
        done = subprocess.run(
            [self.program, log, vkey, *older], capture_output=True, text=True, check=False, timeout=RUN_S
        )
        assert done.returncode in {0, 1}, done.stderr
        assert ("OK" in done.stdout) == (done.returncode == 0)
        return done.stderr


def missing() -> str:
    """Why the program cannot be built here; empty if it can."""
    if shutil.which("go") is None:
        return "skipped, there is no Go here (Debian: golang-go)"
    if not (GOPATH / "src/golang.org/x/mod/sumdb/tlog").is_dir():
        return "skipped, golang.org/x/mod is not here (Debian: golang-golang-x-mod-dev)"
    return ""


@cache
def _build(folder: Path) -> LogCheck:
    program, go = folder / "logcheck", shutil.which("go") or "go"
    settings = {"GO111MODULE": "off", "GOPATH": str(GOPATH), "GOFLAGS": "", "GOCACHE": str(folder / "cache")}
    subprocess.run([go, "build", "-o", program, "."], cwd=SOURCE, env=os.environ | settings, check=True)
    return LogCheck(program)


@pytest.fixture(scope="session")
def logcheck(tmp_path_factory: pytest.TempPathFactory) -> LogCheck:
    """The program, built once a session; a test that asks for it is skipped where it cannot be built."""
    if why := missing():
        pytest.skip(f"independent check of the log: {why}")
    return _build(tmp_path_factory.mktemp("logcheck"))
