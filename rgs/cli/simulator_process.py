"""A simulated peer of one's own for a while: `rgs simulate wallet | regulator` as a process of its own.

Used by the demo and by tests. What it does is told by signals (docs/simulators.md), and every one is waited for until
the process says that it has obeyed. Refuses to leave the process behind, and to call an end orderly that was not.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from rgs.cli.files import PUBLIC_MODE, write_whole
from rgs.cli.server_process import free_address
from rgs.core.errors import UnavailableError

OBEY_S: Final = 60
_PAUSE_S: Final = 0.02


class SimulatorProcess:
    """A wallet or regulator at `address`; leaving the context ends it, if need be by force.

    `plan` is the file of its faults, `export` takes its statement, `output` what it says.
    """

    def __init__(self, kind: str, home: Path, plan: Path, export: Path, output: Path) -> None:
        self.kind = kind
        self.address = free_address()
        self._plan = plan
        self._export = export
        self._output = output
        files = ("--faults", str(plan), "--export", str(export))
        with output.open("ab") as file:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                [sys.executable, "-m", "rgs", "simulate", kind, "--home", str(home), "--listen", self.address, *files],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # an interrupt at the keyboard is ours to pass on
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self.kill()

    def await_listening(self) -> None:
        """Returns once it takes calls. UnavailableError if it ends before, or takes too long."""
        self._await(f"{self.kind} simulator on ", 1)

    def verify_running(self) -> None:
        """UnavailableError, with what it said last, if it has ended."""
        if (status := self._process.poll()) is not None:
            raise self._failure(f"ended with status {status} while it was needed")

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

    def stop(self) -> None:
        """SIGTERM: it writes its statement and ends. UnavailableError if that is no orderly end."""
        self._process.send_signal(signal.SIGTERM)
        try:
            status = self._process.wait(OBEY_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise self._failure(f"did not end within {OBEY_S} s of SIGTERM") from None
        if status:
            raise self._failure(f"ended with status {status}")

    def kill(self) -> None:
        """SIGKILL: its book is durable all the same."""
        self._process.kill()
        self._process.wait()

    def _tell(self, number: signal.Signals, answer: str) -> None:
        self.verify_running()
        due = self._count(answer) + 1
        self._process.send_signal(number)
        self._await(answer, due)

    def _await(self, answer: str, due: int) -> None:
        last = time.monotonic() + OBEY_S
        while self._count(answer) < due:
            self.verify_running()
            if time.monotonic() > last:
                raise self._failure(f"did not say {answer.strip()!r} within {OBEY_S} s")
            time.sleep(_PAUSE_S)

    def _count(self, beginning: str) -> int:
        return sum(line.startswith(beginning) for line in self._said())

    def _said(self) -> list[str]:
        """The whole lines that it has said."""
        whole = self._output.read_text("utf-8", "replace").rpartition("\n")[0]
        return whole.splitlines()

    def _failure(self, what: str) -> UnavailableError:
        said = self._said()
        return UnavailableError(
            f"the simulated {self.kind} {what}; it said last: {said[-1] if said else 'nothing'}", path=self._output
        )
