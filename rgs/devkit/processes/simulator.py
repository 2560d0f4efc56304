"""A simulated peer of one's own for a while: `rgs simulate wallet | regulator` as a process of its own.

Used by the demo and by tests. What it does is told by signals (docs/simulators.md), and every one is waited for until
the process says that it has obeyed. Refuses to leave the process behind, and to call an end orderly that was not.
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
    """A wallet or regulator at `address`.

    `plan` is the file of its faults, `export` takes its statement, `output` what it says.
    """

    def __init__(self, kind: str, home: Path, plan: Path, export: Path, output: Path) -> None:
        self.kind = kind
        self.address = free_address()
        self._plan = plan
        self._export = export
        files = ("--faults", str(plan), "--export", str(export))
        listening = ("--home", str(home), "--listen", self.address)
        command = [sys.executable, "-m", "rgs", "simulate", kind, *listening, *files]
        super().__init__(f"the simulated {kind}", output, command)

    def await_listening(self) -> None:
        """Returns once it takes calls. UnavailableError if it ends before, or takes too long."""
        self._await(f"{self.kind} simulator on ", 1)

    def misbehave(self, plan: str) -> None:
        """From now on with the faults of this plan."""
        write_whole(self._plan, plan.encode("utf-8"), PUBLIC_MODE)
        self._tell(signal.SIGUSR2, "faults on")

    def behave(self) -> None:
        """From now on without faults; what was held back is delivered."""
        self._tell(signal.SIGUSR1, "faults off")

    def write_statement(self) -> Path:
        """The file of its statement, as its book stands now."""
        self._tell(signal.SIGHUP, "wrote ")
        return self._export

    def faults(self) -> Counter[str]:
        """What it has committed so far, by name."""
        return Counter(line.rpartition(": ")[2] for line in self._said() if line.startswith("fault "))

    def _tell(self, number: signal.Signals, answer: str) -> None:
        self.verify_running()
        due = self._count(answer) + 1
        self._process.send_signal(number)
        self._await(answer, due)
