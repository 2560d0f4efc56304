"""A program of the house as a child process for a while: how it is begun, asked after, and ended.

Used by the servers and simulators of the demo and of tests. Refuses to leave the process behind, and to call an end
orderly that was not.
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
    """`command` in a session of its own; leaving the context ends it, if need be by force.

    `name` is what messages call it; `output` is the file that takes what it says.
    """

    def __init__(self, name: str, output: Path, command: Sequence[str]) -> None:
        self._name = name
        self._output = output
        with output.open("ab") as file:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # an interrupt at the keyboard is ours to pass on
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill()

    def verify_running(self) -> None:
        """UnavailableError, with what it said last, if it has ended."""
        self._verify_running("while it was needed")

    def stop(self) -> None:
        """SIGTERM, and wait for the graceful end. UnavailableError if it is none."""
        self._process.send_signal(signal.SIGTERM)
        try:
            status = self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise self._failure(f"did not end within {STOP_S} s of SIGTERM") from None
        if status:
            raise self._failure(f"ended with status {status}")

    def kill(self) -> None:
        """SIGKILL: the end of a machine that loses its power."""
        self._process.kill()
        self._process.wait()

    def _verify_running(self, when: str) -> None:
        if (status := self._process.poll()) is not None:
            raise self._failure(f"ended with status {status} {when}")

    def _await(self, beginning: str, due: int) -> None:
        """Wait until so many of its lines begin so. UnavailableError if it ends before, or takes too long."""
        last = time.monotonic() + OBEY_S
        while self._count(beginning) < due:
            self.verify_running()
            if time.monotonic() > last:
                raise self._failure(f"did not say {beginning.strip()!r} within {OBEY_S} s")
            time.sleep(_PAUSE_S)

    def _count(self, beginning: str) -> int:
        return sum(line.startswith(beginning) for line in self._said())

    def _said(self) -> list[str]:
        """The whole lines that it has said."""
        return self._output.read_text("utf-8", "replace").rpartition("\n")[0].splitlines()

    def _failure(self, what: str) -> UnavailableError:
        said = self._said()
        return UnavailableError(
            f"{self._name} {what}; it said last: {said[-1] if said else 'nothing'}", path=self._output
        )
