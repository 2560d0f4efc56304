"""A home of its own and the real server over it, as a process, for tests of clients."""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from rgs.cli import run
from rgs.devkit.processes.server import ServerProcess
from tests.support.process.commands import MANIFEST

PARTY = "demo-operator"


@dataclass(frozen=True, slots=True)
class Served:
    """A server that serves, and what a client needs of its home."""

    home: Path
    server: ServerProcess

    @property
    def address(self) -> str:
        return self.server.address

    @property
    def identity(self) -> tuple[Path, Path, Path]:
        """The operator's files: CA, certificate, key."""
        clients = self.home / "tls" / "clients"
        return self.home / "tls" / "ca.pem", clients / f"{PARTY}.pem", clients / f"{PARTY}.key"


def rgs(*arguments: str, said: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run one command of the command line, with `said` as its input."""
    command = [sys.executable, "-m", "rgs", *arguments]
    return subprocess.run(command, input=said, capture_output=True, text=True, timeout=90, check=False, cwd=cwd)


def rgs_here(*arguments: str, said: str = "") -> subprocess.CompletedProcess[str]:
    """The same within this process: for clients of which another test has shown that they are found and started."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        file.write(said)
        file.seek(0)
        with patch.multiple(sys, stdin=file, stdout=out, stderr=err):
            status = run(list(arguments), MANIFEST)
    texts = [stream.buffer.getvalue().decode("utf-8") for stream in (out, err)]
    return subprocess.CompletedProcess(arguments, status, *texts)


@contextmanager
def serving(folder: Path) -> Iterator[Served]:
    """Make a home in the folder, serve until the end, and stop in good order."""
    made = rgs_here("init", "--home", str(folder / "home"))
    assert made.returncode == 0, made.stderr
    with ServerProcess(folder / "home", folder / "server.txt", PARTY) as server:
        server.await_serving()
        yield Served(folder / "home", server)
        server.stop()
