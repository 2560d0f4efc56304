"""A server of one's own for a while: `rgs serve` as a process of its own, from its start to its graceful end.

Used by the demo and by tests. Waits for health SERVING, ends with SIGTERM. Refuses to leave the process behind, and to
call an end graceful that was not: another exit status than 0 is an error, with the last line that the server said.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from rgs.cli.client import Identity
from rgs.config import load_config
from rgs.core.errors import UnavailableError
from rgs.launch import isolated_command

START_S: Final = 60
STOP_S: Final = 60
_PAUSE_S: Final = 0.05
_HOST: Final = "127.0.0.1"
_HEALTH_CHECK: Final = "/grpc.health.v1.Health/Check"


class ServerProcess:
    """A server at `address`, for clients of this machine; leaving the context ends it, if need be by force.

    `output` is the file that takes what the server says; `party` asks for its health.
    """

    def __init__(self, home: Path, output: Path, party: str) -> None:
        self._home = home
        self._output = output
        self._identity = Identity.of_party(load_config(home), party)
        self.address = free_address()
        with output.open("ab") as file:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                isolated_command("serve", "--home", str(home), "--listen", self.address),
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

    def await_serving(self) -> None:
        """Returns once its health is SERVING. UnavailableError if it ends before, or takes too long and is ended."""
        try:
            self._await_serving()
        except BaseException:
            self.kill()
            raise

    def verify_running(self) -> None:
        """UnavailableError, with what it said last, if it has ended."""
        if (status := self._process.poll()) is not None:
            raise self._failure(f"ended with status {status} while it was needed")

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

    def _await_serving(self) -> None:
        last = time.monotonic() + START_S
        with grpc.secure_channel(self.address, self._identity.credentials()) as channel:
            check = channel.unary_unary(
                _HEALTH_CHECK, HealthCheckRequest.SerializeToString, HealthCheckResponse.FromString
            )
            while time.monotonic() < last:
                if (status := self._process.poll()) is not None:
                    raise self._failure(f"ended with status {status} before it served")
                try:
                    answer = check(HealthCheckRequest(), timeout=1, wait_for_ready=True)
                except grpc.RpcError:
                    continue
                if answer.status == HealthCheckResponse.SERVING:
                    return
                time.sleep(_PAUSE_S)
        raise self._failure(f"did not serve within {START_S} s")

    def _failure(self, what: str) -> UnavailableError:
        said = self._output.read_text("utf-8", "replace").strip().splitlines()
        return UnavailableError(
            f"the server {what}; it said last: {said[-1] if said else 'nothing'}", path=self._output
        )


def free_address() -> str:
    """A port of this machine that nobody has now. Should another process be faster, the server refuses to start."""
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return f"{_HOST}:{probe.getsockname()[1]}"
