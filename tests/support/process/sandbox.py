"""`rgs sandbox` as a process."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rgs.devkit.client import Client, ClientIdentity
from rgs.devkit.processes.server import free_address
from rgs.node.config import load_config

ROOT = Path(__file__).resolve().parents[3]
START_S = 60
READY = "The sandbox is ready."


class Running:
    """A sandbox that is ready, and what it has printed so far."""

    def __init__(self, folder: Path, output: Path, process: subprocess.Popen[bytes]) -> None:
        self.folder, self._output, self.process = folder, output, process

    @property
    def printed(self) -> str:
        return self._output.read_text("utf-8")

    def call_of(self, language: str) -> list[str]:
        """The call of a language, as it would be copied."""
        found = re.search(rf"^  # {language}\b.*\n  (.+)$", self.printed, re.MULTILINE)
        assert found, self.printed
        return shlex.split(found[1])

    def client(self, party: str) -> Client:
        address = re.search(r"^server +(\S+)", self.printed, re.MULTILINE)
        assert address, self.printed
        return Client(address[1], ClientIdentity.of_party(load_config(self.folder / "home"), party))

    def wallet_rows(self) -> list[list[str]]:
        """The wallet's export, which it writes at its end."""
        return [row.split(",") for row in (self.folder / "run" / "wallet.csv").read_text("ascii").splitlines()[1:]]


@contextmanager
def sandbox(folder: Path, *options: str) -> Iterator[Running]:
    """A sandbox until the end of the block, and then Ctrl-C."""
    addresses = ("--listen", free_address(), "--wallet-listen", free_address())
    command = [sys.executable, "-m", "rgs", "sandbox", "--home", str(folder), *addresses, *options]
    output = folder.with_suffix(".txt")
    with output.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file, cwd=ROOT) as process:
        running, last = Running(folder, output, process), time.monotonic() + START_S
        try:
            while READY not in running.printed:
                assert process.poll() is None, running.printed
                assert time.monotonic() < last, running.printed
                time.sleep(0.05)
            yield running
            process.send_signal(signal.SIGINT)
            assert process.wait(START_S) == 0, running.printed
        finally:
            process.kill()
    assert running.printed.endswith("stopped; the folder can be used again\n")
