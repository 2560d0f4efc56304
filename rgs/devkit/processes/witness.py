"""A witness of one's own for a while: `rgs witness` as a process of its own, for the demo and for tests.

Waits until it listens, ends with SIGTERM. Refuses to leave the process behind, and to call an end orderly that was not.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rgs.devkit.processes.child import Child
from rgs.devkit.processes.server import free_address


class WitnessProcess(Child):
    """A witness at `address`, of the folder that `rgs witness init` has made; leaving the context ends it. `output` is
    the file that takes what it says.
    """

    def __init__(self, folder: Path, output: Path, address: str = "") -> None:
        self.address = address or free_address()
        command = [sys.executable, "-m", "rgs", "witness", "serve", str(folder), "--listen", self.address]
        super().__init__("the witness", output, command)

    def await_listening(self) -> None:
        """Returns once it answers. UnavailableError if it ends before, or takes too long."""
        self._await(f"witness on {self.address}", 1)
