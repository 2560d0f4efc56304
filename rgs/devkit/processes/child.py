"""A child process that runs one of our programs: start it, wait for its output, stop it.

The process never outlives its context. `stop` is an error unless the process ends with status 0 in time.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from rgs.core.errors import UnavailableError

STOP_S: Final = 60
OBEY_S: Final = 60
_PAUSE_S: Final = 0.02


class Child:
    """`command` in a session of its own. Leaving the context kills the process if it still runs.

    `name` stands for it in error messages; `output` is the file that receives its stdout and stderr.
    """

    def __init__(self, name: str, output: Path, command: Sequence[str], listening: str = "") -> None:
        """`listening` begins the line that it writes once it accepts calls."""
        self._name = name
        self._listening = listening
        self._output = output
        with output.open("ab") as file:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # an interrupt at the keyboard must not reach it
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill()

    def await_listening(self) -> None:
        """Wait until it accepts calls. UnavailableError if it ends before that, or takes too long."""
        self._await(self._listening, 1)

    def verify_running(self, when: str = "while it was needed") -> None:
        """UnavailableError, with the last line of its output, if it has ended."""
        if (status := self._process.poll()) is not None:
            raise self._failure(f"ended with status {status} {when}")

    def stop(self) -> None:
        """Send SIGTERM and wait. UnavailableError if it does not end in time with status 0."""
        self._process.send_signal(signal.SIGTERM)
        try:
            status = self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise self._failure(f"did not end within {STOP_S} s of SIGTERM") from None
        if status:
            raise self._failure(f"ended with status {status}")

    def kill(self) -> None:
        """Send SIGKILL, which stands for a power failure."""
        self._process.kill()
        self._process.wait()

    def _await(self, beginning: str, due: int) -> None:
        """Wait until `due` lines of its output start with `beginning`. UnavailableError if it ends or is too slow."""
        last = time.monotonic() + OBEY_S
        while self._count(beginning) < due:
            self.verify_running()
            if time.monotonic() > last:
                raise self._failure(f"did not write {beginning.strip()!r} within {OBEY_S} s")
            time.sleep(_PAUSE_S)

    def _count(self, beginning: str) -> int:
        return sum(line.startswith(beginning) for line in self._lines())

    def _lines(self) -> list[str]:
        """The complete lines of its output so far."""
        return self._output.read_text("utf-8", "replace").rpartition("\n")[0].splitlines()

    def _failure(self, what: str) -> UnavailableError:
        lines = self._lines()
        last = lines[-1] if lines else "none"
        return UnavailableError(f"{self._name} {what}; last line of its output: {last}", path=self._output)
