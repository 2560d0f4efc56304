"""`rgs witness serve` as a child process, for the demo and for tests."""

from __future__ import annotations

import sys
from pathlib import Path

from rgs.devkit.processes.child import Child
from rgs.devkit.processes.server import free_address


class WitnessProcess(Child):
    """A witness at `address`, of a folder that `rgs witness init` has made."""

    def __init__(self, folder: Path, output: Path, address: str = "") -> None:
        self.address = address or free_address()
        command = [sys.executable, "-m", "rgs", "witness", "serve", str(folder), "--listen", self.address]
        super().__init__("the witness", output, command, f"witness on {self.address}")
