"""`rgs simulate wallet | regulator` as a child process, for the demo and for tests.

Signals control it (docs/simulators.md). Each method that sends one waits until the process confirms it.
"""

from __future__ import annotations

import signal
import sys
from collections import Counter
from pathlib import Path

from rgs.devkit.processes.child import Child
from rgs.devkit.processes.server import free_address
from rgs.node.files import PUBLIC_MODE, write_whole


class SimulatorProcess(Child):
    """A wallet or regulator at `address`, a free one if none is given. `plan` is the file of its faults; `export`
    receives its statement.
    """

    def __init__(self, kind: str, home: Path, plan: Path, export: Path, output: Path, address: str = "") -> None:
        self.address = address or free_address()
        self._plan = plan
        self._export = export
        files = ("--faults", str(plan), "--export", str(export))
        listening = ("--home", str(home), "--listen", self.address)
        command = [sys.executable, "-m", "rgs", "simulate", kind, *listening, *files]
        super().__init__(f"the simulated {kind}", output, command, f"{kind} simulator on ")

    def misbehave(self, plan: str) -> None:
        """Switch on the faults of this plan."""
        write_whole(self._plan, plan.encode("utf-8"), PUBLIC_MODE)
        self._signal(signal.SIGUSR2, "faults on")

    def behave(self) -> None:
        """Switch the faults off, and deliver the messages that were held back."""
        self._signal(signal.SIGUSR1, "faults off")

    def write_statement(self) -> Path:
        """Have it write its statement of now. Returns the file."""
        self._signal(signal.SIGHUP, "wrote ")
        return self._export

    def faults(self) -> Counter[str]:
        """Its faults so far: name -> count."""
        return Counter(line.rpartition(": ")[2] for line in self._lines() if line.startswith("fault "))

    def _signal(self, number: signal.Signals, answer: str) -> None:
        self.verify_running()
        due = self._count(answer) + 1
        self._process.send_signal(number)
        self._await(answer, due)
