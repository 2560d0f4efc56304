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
from tests.gamedays.network import ADDRESSES, OUTSIDE, HostedServer, Network, two_hosts
from tests.gamedays.scene import Scene, until
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

    def __init__(self, scene: Scene, network: Network, running: ExitStack, primary: Server, standby: Server) -> None:
        self.scene, self.network, self._running = scene, network, running
        self.primary, self.standby = primary, standby
        self.homes = {"a": scene.home, "b": scene.home.with_name("home2")}
        self.ports = dict(zip("ab", free_ports(2), strict=True))
        self.servers: dict[str, HostedServer] = {}

    def start(self, host: str) -> None:
        """Start the server of a host, and wait until it listens."""
        home, output = self.homes[host], self.scene.evidence.folder / f"server-{host}.txt"
        before = len(self.scene.lines("listening", home))
        server = HostedServer(self.network.hosts[host], home, output, self.ports[host])
        self.servers[host] = self._running.enter_context(server)
        until(lambda: self.running(host) and len(self.scene.lines("listening", home)) > before, what=f"server {host}")

    def running(self, host: str) -> bool:
        self.servers[host].verify_running()
        return True

    def kill(self, host: str) -> None:
        self.servers[host].kill()
        self.scene.killed += 1

    def address(self, host: str) -> str:
        return f"{ADDRESSES[host]}:{self.ports[host]}"


def certify_addresses(scene: Scene) -> None:
    """The home's server certificate for the addresses of all hosts; wallet, regulator and witness show it, too."""
    tls = scene.home / "tls"
    authority = pki.load_issued((tls / "ca.pem").read_bytes(), (tls / "ca.key").read_bytes())
    names = ["localhost", "127.0.0.1", OUTSIDE, *ADDRESSES.values()]
    issued = pki.issue_server(authority, names, entropy().read, SystemClock().now_ms())
    (tls / "server.pem").write_bytes(issued.certificate_pem)
    (tls / "server.key").write_bytes(issued.key_pem)


def start_witness(scene: Scene, running: ExitStack) -> Child:
    """A witness outside, behind TLS: the hosts reach it over the network."""
    evidence: Evidence = scene.evidence
    (port,) = free_ports(1)
    log = vkey_now(scene.config)
    vkey = make_witness(evidence.witness, "demo-witness.example", [log])
    tls = scene.home / "tls"
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
    with (scene.home / "rgs.toml").open("a") as file:
        file.write(f'log_policy = "{evidence.policy}"\nwitness_ca = "{tls / "ca.pem"}"\n')
    witness.await_listening()
    return witness


def phase(scene: Scene, what: str) -> None:
    """Tell what the players have seen since the last one, and begin anew."""
    longest, unanswered = scene.longest_s, sum(client.unanswered for client in scene.clients)
    scene.written.saw(f"{what}: longest wait {longest:.1f} s, {unanswered} calls repeated")
    for client in scene.clients:
        client.longest_s, client.unanswered = 0.0, 0


def test_two_hosts(scene: Scene, written: Transcript, network: Network, tmp_path: Path) -> None:
    """Two hosts with a PostgreSQL pair, each part killed under load, each cable pulled"""
    with ExitStack() as running:
        primary, standby = running.enter_context(start_pair(network.hosts["a"], network.hosts["b"]))
        asyncio.run(new_database(primary.url(), DATABASE))
        scene.make("--store", pair_url(primary, standby, DATABASE))
        certify_addresses(scene)
        scene.start_outside(OUTSIDE)
        scene.witness = start_witness(scene, running)
        second_home(scene)
        site = Site(scene, network, running, primary, standby)
        site.start("a")
        site.start("b")
        written.did("began: server and primary on host a, server and standby on host b, the rest outside")
        near_a = scene.client(site.address("a"), site.address("b"))
        near_b = scene.client(site.address("b"), site.address("a"))
        for client in (near_a, near_b):
            scene.seat(4, client)
        scene.play(2)
        with scene.playing():
            scene.await_rounds(30)
            phase(scene, "eight play, four at each host")
            for host in "ab":
                site.kill(host)
                scene.await_rounds(30)
                site.start(host)
                scene.await_rounds(10)
                phase(scene, f"server of host {host} killed (SIGKILL) and started again")
            standby.kill()
            time.sleep(4)
            standby.start()
            scene.await_rounds(30)
            phase(scene, "standby killed and started again after 4 s: meanwhile no commit is acknowledged")
            for kind in ("wallet", "regulator"):
                getattr(scene, kind).kill()
                scene.await_rounds(10)
                getattr(scene, f"start_{kind}")()
                scene.await_rounds(10)
                phase(scene, f"{kind} killed and started again")
            network.cut("b")
            time.sleep(8)
            network.mend("b")
            scene.await_rounds(30)
            phase(scene, "cable of host b pulled for 8 s: the primary waits for its standby, nothing is acknowledged")
            network.cut("a")
            time.sleep(3)
            standby.promote()
            written.operator("cable of host a pulled for good: after 3 s promotes the standby on host b")
            scene.await_rounds(30)
            phase(scene, "host a with the primary is off the network, all play at host b")
            site.kill("b")
            site.start("b")
            scene.await_rounds(30)
            phase(scene, "server of host b killed and started again, while host a is dark")
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
            scene.await_rounds(30)
            phase(scene, "pair and both servers are back")
            standby.kill()
            time.sleep(1)
            again.promote()
            scene.await_rounds(30)
            phase(scene, "the second primary, on host b, killed and the standby on host a promoted")
        scene.leave()
        for server in site.servers.values():
            server.stop()
        for process in (scene.witness, scene.wallet, scene.regulator):
            process.stop()
        scene.prove_files()
