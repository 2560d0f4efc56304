"""A witness of one's own for a while: `rgs witness` as a process of its own, for the demo and for tests.

Waits until it listens, ends with SIGTERM. Refuses to leave the process behind, and to call an end orderly that was not.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from rgs.cli.server_process import free_address
from rgs.core.errors import UnavailableError

OBEY_S: Final = 60
_PAUSE_S: Final = 0.02


class WitnessProcess:
    """A witness at `address`, of the folder that `rgs witness init` has made; leaving the context ends it. `output` is
    the file that takes what it says.
    """

    def __init__(self, folder: Path, output: Path, address: str = "") -> None:
        self.address = address or free_address()
        self._output = output
        with output.open("ab") as file:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                [sys.executable, "-m", "rgs", "witness", "serve", str(folder), "--listen", self.address],
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
            self._process.kill()
            self._process.wait()

    def await_listening(self) -> None:
        """Returns once it answers. UnavailableError if it ends before, or takes too long."""
        last = time.monotonic() + OBEY_S
        while not any(line == f"witness on {self.address}" for line in self._said()):
            if (status := self._process.poll()) is not None:
                raise self._failure(f"ended with status {status} before it listened")
            if time.monotonic() > last:
                raise self._failure(f"does not listen within {OBEY_S} s")
            time.sleep(_PAUSE_S)

    def stop(self) -> None:
        """SIGTERM, and wait for the orderly end. UnavailableError if it is none."""
        self._process.send_signal(signal.SIGTERM)
        try:
            status = self._process.wait(OBEY_S)
        except subprocess.TimeoutExpired:
            raise self._failure(f"did not end within {OBEY_S} s of SIGTERM") from None
        if status:
            raise self._failure(f"ended with status {status}")

    def _said(self) -> Sequence[str]:
        """The whole lines that it has said."""
        return self._output.read_text("utf-8", "replace").rpartition("\n")[0].splitlines()

    def _failure(self, what: str) -> UnavailableError:
        said = self._said()
        return UnavailableError(
            f"the witness {what}; it said last: {said[-1] if said else 'nothing'}", path=self._output
        )
