"""Two hosts in network namespaces, each with a server and one of a PostgreSQL pair: each part is killed under load, and
each host's cable is pulled. Players, wallet, regulator and witness are outside.

The network alone is apart: the hosts share this machine's processor, clock and disk, and the folder of the log, which
two real hosts mount.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rgs.devkit.demo.evidence import Evidence
from rgs.devkit.processes.child import Child
from rgs.node import pki
from rgs.node.clock import SystemClock
from rgs.node.log_folder import vkey_now
from rgs.node.witness_folder import make_witness
from tests.gamedays.house import House, until
from tests.gamedays.network import ADDRESSES, OUTSIDE, HostedServer, Network, two_hosts
from tests.gamedays.test_lost_machines import DATABASE, second_home
from tests.gamedays.transcript import Transcript
from tests.support.api.cluster import new_database
from tests.support.api.harness import entropy
from tests.support.ports import free_ports
from tests.support.store.postgres import Server, pair_url, server_folder, start_pair

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def network() -> Iterator[Network]:
    with two_hosts() as one:
        yield one


class Site:
    """Both hosts and what runs on them."""

    def __init__(self, house: House, network: Network, running: ExitStack, primary: Server, standby: Server) -> None:
        self.house, self.network, self._running = house, network, running
        self.primary, self.standby = primary, standby
        self.homes = {"a": house.home, "b": house.home.with_name("home2")}
        self.ports = dict(zip("ab", free_ports(2), strict=True))
        self.servers: dict[str, HostedServer] = {}

    def start(self, host: str) -> None:
        """Start the server of a host, and wait until it listens."""
        home, output = self.homes[host], self.house.evidence.folder / f"server-{host}.txt"
        before = len(self.house.lines("listening", home))
        server = HostedServer(self.network.hosts[host], home, output, self.ports[host])
        self.servers[host] = self._running.enter_context(server)
        until(lambda: self.running(host) and len(self.house.lines("listening", home)) > before, what=f"server {host}")

    def running(self, host: str) -> bool:
        self.servers[host].verify_running()
        return True

    def kill(self, host: str) -> None:
        self.servers[host].kill()
        self.house.killed += 1

    def address(self, host: str) -> str:
        return f"{ADDRESSES[host]}:{self.ports[host]}"


def certify_addresses(house: House) -> None:
    """The home's server certificate for the addresses of all hosts; wallet, regulator and witness show it, too."""
    tls = house.home / "tls"
    authority = pki.load_issued((tls / "ca.pem").read_bytes(), (tls / "ca.key").read_bytes())
    names = ["localhost", "127.0.0.1", OUTSIDE, *ADDRESSES.values()]
    issued = pki.issue_server(authority, names, entropy().read, SystemClock().now_ms())
    (tls / "server.pem").write_bytes(issued.certificate_pem)
    (tls / "server.key").write_bytes(issued.key_pem)


def start_witness(house: House, running: ExitStack) -> Child:
    """A witness outside, behind TLS: the hosts reach it over the network."""
    evidence: Evidence = house.evidence
    (port,) = free_ports(1)
    log = vkey_now(house.config)
    vkey = make_witness(evidence.witness, "demo-witness.example", [log])
    tls = house.home / "tls"
    files = ("--tls-cert", str(tls / "server.pem"), "--tls-key", str(tls / "server.key"))
    command = [
        *(sys.executable, "-m", "rgs", "witness", "serve"),
        *(str(evidence.witness), "--listen", f"{OUTSIDE}:{port}", *files),
    ]
    witness = running.enter_context(Child("the witness", evidence.witness_said, command, f"witness on {OUTSIDE}"))
    evidence.policy.write_text(
        f"# self-witness demo-witness\nlog {log}\nwitness demo-witness {vkey} https://{OUTSIDE}:{port}\n"
        "quorum demo-witness\n"
    )
    with (house.home / "rgs.toml").open("a") as file:
        file.write(f'log_policy = "{evidence.policy}"\nwitness_ca = "{tls / "ca.pem"}"\n')
    witness.await_listening()
    return witness


def phase(house: House, what: str) -> None:
    """Tell what the players have seen since the last one, and begin anew."""
    longest, unanswered = house.longest_s, sum(client.unanswered for client in house.clients)
    house.written.saw(f"{what}: longest wait {longest:.1f} s, {unanswered} calls repeated")
    for client in house.clients:
        client.longest_s, client.unanswered = 0.0, 0


def test_two_hosts(house: House, written: Transcript, network: Network, tmp_path: Path) -> None:
    """Two hosts with a PostgreSQL pair, each part killed under load, each cable pulled"""
    with ExitStack() as running:
        primary, standby = running.enter_context(start_pair(network.hosts["a"], network.hosts["b"]))
        asyncio.run(new_database(primary.url(), DATABASE))
        house.make("--store", pair_url(primary, standby, DATABASE))
        certify_addresses(house)
        house.start_outside(OUTSIDE)
        house.witness = start_witness(house, running)
        second_home(house)
        site = Site(house, network, running, primary, standby)
        site.start("a")
        site.start("b")
        written.did("began: server and primary on host a, server and standby on host b, the rest outside")
        near_a = house.client(site.address("a"), site.address("b"))
        near_b = house.client(site.address("b"), site.address("a"))
        for client in (near_a, near_b):
            house.seat(4, client)
        house.play(2)
        with house.playing():
            house.await_rounds(30)
            phase(house, "eight play, four at each host")
            for host in "ab":
                site.kill(host)
                house.await_rounds(30)
                site.start(host)
                house.await_rounds(10)
                phase(house, f"server of host {host} killed (SIGKILL) and started again")
            standby.kill()
            time.sleep(4)
            standby.start()
            house.await_rounds(30)
            phase(house, "standby killed and started again after 4 s: meanwhile no commit is acknowledged")
            for kind in ("wallet", "regulator"):
                getattr(house, kind).kill()
                house.await_rounds(10)
                getattr(house, f"start_{kind}")()
                house.await_rounds(10)
                phase(house, f"{kind} killed and started again")
            network.cut("b")
            time.sleep(8)
            network.mend("b")
            house.await_rounds(30)
            phase(house, "cable of host b pulled for 8 s: the primary waits for its standby, nothing is acknowledged")
            network.cut("a")
            time.sleep(3)
            standby.promote()
            written.operator("cable of host a pulled for good: after 3 s promotes the standby on host b")
            house.await_rounds(30)
            phase(house, "host a with the primary is off the network, all play at host b")
            primary.kill()
            site.kill("a")
            written.operator("fences host a: its server and its old primary are ended before its cable is back")
            network.mend("a")
            again = Server(running.enter_context(server_folder("pgc")), host=network.hosts["a"])
            running.callback(again.kill)
            again.copy_of(standby, "again")
            again.port = primary.port
            again.start()
            standby.wait_for("again")
            site.start("a")
            written.operator("makes a new standby on host a (pg_basebackup), and starts its server again")
            house.await_rounds(30)
            phase(house, "pair and both servers are back")
            standby.kill()
            time.sleep(1)
            again.promote()
            house.await_rounds(30)
            phase(house, "the second primary, on host b, killed and the standby on host a promoted")
        house.leave()
        for server in site.servers.values():
            server.stop()
        for process in (house.witness, house.wallet, house.regulator):
            process.stop()
        house.prove_files()
