"""Two hosts as network namespaces, and a switch between them that pulls the cable of each. It takes root and `ip`."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from rgs.devkit.processes.child import Child
from rgs.integrity.isolation import isolated_command
from tests.support.store.postgres import Host

NETWORK = "10.197.73.0/24"
OUTSIDE = "10.197.73.1"
"""The machine itself: players, wallet, regulator and witness."""
ADDRESSES = {"a": "10.197.73.11", "b": "10.197.73.12"}


def _ip(*arguments: str, check: bool = True) -> None:
    subprocess.run([str(shutil.which("ip")), *arguments], check=check, capture_output=True, text=True)


class Network:
    """`name` begins the names of the namespaces; each host has one, and the switch has one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.hosts = {host: Host(address, NETWORK, f"{name}-{host}") for host, address in ADDRESSES.items()}

    def begin(self) -> None:
        """Make it; the test is skipped where root may not."""
        switch = f"{self._name}-s"
        try:
            _ip("netns", "add", switch)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"root may make no network namespaces here ({error.stderr.strip()})")
        _ip("-n", switch, "link", "add", "name", "br0", "type", "bridge", "forward_delay", "0")
        _ip("-n", switch, "link", "set", "dev", "br0", "up")
        self._plug("out", "", OUTSIDE)
        for name, host in self.hosts.items():
            _ip("netns", "add", host.namespace)
            _ip("-n", host.namespace, "link", "set", "dev", "lo", "up")
            self._plug(name, host.namespace, host.address)

    def _plug(self, port: str, namespace: str, address: str) -> None:
        """A cable from the switch to a namespace, or to the machine itself."""
        switch, end = f"{self._name}-s", f"{self._name}-{port}"
        where = ("-n", namespace) if namespace else ()
        _ip("-n", switch, "link", "add", "name", port, "type", "veth", "peer", "name", end)
        _ip("-n", switch, "link", "set", "dev", end, "netns", namespace or str(os.getpid()))
        _ip("-n", switch, "link", "set", "dev", port, "master", "br0", "up")
        _ip(*where, "addr", "add", f"{address}/24", "dev", end)
        _ip(*where, "link", "set", "dev", end, "up")

    def cut(self, host: str) -> None:
        """Pull the cable: its end at the host has no carrier."""
        _ip("-n", f"{self._name}-s", "link", "set", "dev", host, "down")

    def mend(self, host: str) -> None:
        _ip("-n", f"{self._name}-s", "link", "set", "dev", host, "up")

    def end(self) -> None:
        """Remove all of it; the cables go with their namespaces."""
        for namespace in (f"{self._name}-s", *(host.namespace for host in self.hosts.values())):
            _ip("netns", "delete", namespace, check=False)


@contextmanager
def two_hosts() -> Iterator[Network]:
    """The network; skipped where this user may make none."""
    if os.geteuid() != 0 or not all(shutil.which(program) for program in ("ip", "nsenter", "setpriv")):
        pytest.skip("network namespaces take root, iproute2 and util-linux")
    network = Network(f"rgs{os.getpid() % 100_000}")
    try:
        network.begin()
        yield network
    finally:
        network.end()


class HostedServer(Child):
    """`rgs serve` on a host of the network."""

    def __init__(self, host: Host, home: Path, output: Path, port: int) -> None:
        self.address = f"{host.address}:{port}"
        command = isolated_command("serve", "--home", str(home), "--listen", self.address, "--drain-s", "3")
        super().__init__(host.namespace, output, [*_within(host), *command])


def _within(host: Host) -> Sequence[str]:
    return ("nsenter", f"--net=/run/netns/{host.namespace}")
