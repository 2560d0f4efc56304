"""A primary of PostgreSQL is lost, and a host with its server: another takes over under load."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rgs.devkit.processes.server import ServerProcess
from rgs.node.config import load_config
from tests.gamedays.scene import Scene
from tests.gamedays.transcript import Transcript
from tests.support.api.cluster import new_database
from tests.support.process.served import PARTY
from tests.support.store.postgres import Server, pair_url, start_pair

pytestmark = pytest.mark.slow

DATABASE = "gameday"


@pytest.fixture
def pair() -> Iterator[tuple[Server, Server]]:
    with start_pair() as servers:
        asyncio.run(new_database(servers[0].url(), DATABASE))
        yield servers


def second_home(scene: Scene) -> Path:
    """A second node, as docs/production.md makes it: a copy with a name, a key and a technical log of its own."""
    scene.rgs("keys", "node-new", "--node", "node2", "--home", scene.home)
    home = scene.home.with_name("home2")
    shutil.copytree(scene.home, home, ignore=shutil.ignore_patterns("log", "witness", "simulators", "translog"))
    (home / "keys" / "node-node2.key").replace(home / "keys" / "node.key")
    settings = (home / "rgs.toml").read_text().replace('node = "node1"', 'node = "node2"')
    (home / "rgs.toml").write_text(f'{settings}translog = "{scene.home / "translog"}"\n')
    assert load_config(home).node == "node2"
    return home


def test_lost_primary(scene: Scene, written: Transcript, pair: tuple[Server, Server]) -> None:
    """The primary of the database is killed under load, and its standby promoted"""
    primary, standby = pair
    scene.begin("--store", pair_url(primary, standby, DATABASE))
    client = scene.client()
    players = scene.seat(6, client)
    scene.play(3)
    with scene.playing(players):
        scene.await_rounds(20)
        primary.kill()
        killed = time.monotonic()
        written.did("killed the primary of a synchronous pair (SIGKILL, all of it) while six play")
        line = scene.await_line("guard_closed", guard="store")
        written.alarm(f"line guard_closed: store {line['code']} (alerts RgsStoreDown, RgsGuardClosed)")
        standby.promote()
        waited_s = time.monotonic() - killed
        written.operator(f"promotes the synchronous standby, {waited_s:.1f} s after the kill, and fences the old one")
        scene.await_line("guard_opened", guard="store")
        scene.await_rounds(20)
    written.saw(
        f"the server has found the new primary by itself; the longest wait of a player was {client.longest_s:.1f} s"
    )
    written.saw(
        f"{client.unanswered} calls without an answer, all repeated with their ids: {', '.join(sorted(client.reasons))}"
    )
    scene.prove()


def test_lost_host(scene: Scene, written: Transcript, pair: tuple[Server, Server], tmp_path: Path) -> None:
    """A host with its server is lost under load, the other one goes on"""
    scene.begin("--store", pair_url(*pair, DATABASE))
    home = second_home(scene)
    with ServerProcess(home, tmp_path / "server2.txt", PARTY) as other:
        other.await_serving()
        written.did("started a second node, node2, over the same database and log")
        clients = [scene.client(scene.server.address, other.address), scene.client(other.address, scene.server.address)]
        for client in clients:
            scene.seat(4, client)
        scene.play(3)
        with scene.playing():
            scene.await_rounds(20)
            scene.kill_server()
            killed = time.monotonic()
            written.did("killed node1 (SIGKILL) while eight play, four at each node")
            scene.await_rounds(30)
            written.saw(f"all play on at node2; the longest wait of a player was {scene.longest_s:.1f} s")
            written.alarm("the port of node1 is dead (alert RgsDown); its lease runs out after 15 s")
            lost = scene.await_lost("node1-b1-w0")
            written.alarm(
                f"node2 has signed instance_lost for {lost}, {time.monotonic() - killed:.0f} s after the kill"
            )
            scene.start_server()
            written.operator("starts node1 again when the host is back: nothing else is to be done")
            scene.await_rounds(20)
        scene.leave()
        scene.server.stop()
        other.stop()
        scene.server = other
    scene.witness.stop()
    scene.wallet.stop()
    scene.regulator.stop()
    scene.prove_files()
