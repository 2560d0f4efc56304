"""`rgs serve` and `rgs witness serve` as child processes, for the demo and for tests."""

from __future__ import annotations

import os
import socket
import sys
import time
from contextlib import suppress
from itertools import count, islice
from pathlib import Path
from typing import Final

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from rgs.core.errors import UnavailableError
from rgs.devkit.client import ClientIdentity, reached_at
from rgs.devkit.processes.child import Child
from rgs.integrity.isolation import isolated_command
from rgs.node.config import load_config

START_S: Final = 60
_PAUSE_S: Final = 0.05
_HOST: Final = "127.0.0.1"
_PORTS: Final = range(20_000, 32_000)
"""Below those that Linux picks for whoever asks for any (ip_local_port_range, from 32768)."""
_NUMBERS: Final = count(os.getpid() * 101)
"""Where in them to look next: another place in each process."""
_HEALTH_CHECK: Final = "/grpc.health.v1.Health/Check"


class ServerProcess(Child):
    """A server that listens at `listen`, a free address if none is given. `party` checks its health.

    `address` is where clients of this machine reach it, under a name that its certificate has.
    """

    def __init__(self, home: Path, output: Path, party: str, listen: str = "") -> None:
        self._identity = ClientIdentity.of_party(load_config(home), party)
        listen = listen or free_address()
        self.address = reached_at(listen)
        super().__init__("the server", output, isolated_command("serve", "--home", str(home), "--listen", listen))

    def await_serving(self) -> None:
        """Wait until its health is SERVING. UnavailableError if it ends before that, or takes too long."""
        last = time.monotonic() + START_S
        with grpc.secure_channel(self.address, self._identity.credentials()) as channel:
            check = channel.unary_unary(
                _HEALTH_CHECK, HealthCheckRequest.SerializeToString, HealthCheckResponse.FromString
            )
            while time.monotonic() < last:
                self.verify_running("before it served")
                try:
                    answer = check(HealthCheckRequest(), timeout=1, wait_for_ready=True)
                except grpc.RpcError:
                    continue
                if answer.status == HealthCheckResponse.SERVING:
                    return
                time.sleep(_PAUSE_S)
        raise self._failure(f"did not serve within {START_S} s")


class WitnessProcess(Child):
    """A witness at `address`, of a folder that `rgs witness init` has made."""

    def __init__(self, folder: Path, output: Path, address: str = "") -> None:
        self.address = address or free_address()
        command = [sys.executable, "-m", "rgs", "witness", "serve", str(folder), "--listen", self.address]
        super().__init__("the witness", output, command, f"witness on {self.address}")


def free_address() -> str:
    """An address with a port that is free now, of those that the system gives to nobody by itself. If another process
    takes it first, the server does not start.
    """
    for number in islice(_NUMBERS, len(_PORTS)):
        port = _PORTS[number % len(_PORTS)]
        with socket.socket() as probe, suppress(OSError):
            probe.bind((_HOST, port))
            return f"{_HOST}:{port}"
    raise UnavailableError(f"no port from {_PORTS[0]} to {_PORTS[-1]} of {_HOST} is free: end some servers")
