"""An upgrade without a stop: the software of the schema before serves, the store is migrated under it, this software
joins it and takes over, and no call fails. The older software is that of an earlier commit of this repository.
"""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from rgs.node.config import load_config
from rgs.node.pki import load_issued
from rgs.node.server import Server as GameServer
from rgs.store.address import PostgresAddress
from rgs.store.migrations import steps
from rgs.store.opening import migrate_store, older_instances
from rgs.store.postgres.reads import PostgresReads
from tests.support.api.cluster import OPEN, Table, exported, kinds, new_database
from tests.support.api.harness import channel_of, manifest
from tests.support.store.postgres import QUICK, Server, one_server
from tests.support.waiting import until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
NEWEST = steps("postgres")[-1]
MIGRATION = f"rgs/store/migrations/postgres/{NEWEST.version:04}.sql"
PLAYERS = 16


def git(*arguments: str) -> bytes:
    """What git says of this repository; nothing where there is none, or no such thing in it."""
    found = shutil.which("git")
    if found is None:
        return b""
    done = subprocess.run([found, "-C", str(ROOT), *arguments], capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else b""


@pytest.fixture(scope="module")
def former(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree of the last commit before the newest migration."""
    added = git("log", "--format=%H", "--diff-filter=A", "--", MIGRATION).split()
    tree = git("archive", f"{added[-1].decode()}^", "rgs", "rng", "certification", "requirements") if added else b""
    if not tree:
        pytest.skip("the history of this repository is not here, so there is no earlier software to upgrade from")
    folder = tmp_path_factory.mktemp("former")
    with tarfile.open(fileobj=io.BytesIO(tree)) as archive:
        archive.extractall(folder, filter="data")
    newest = max((folder / MIGRATION).parent.glob("*.sql")).stem
    assert int(newest) == NEWEST.version - 1, (
        f"the commit before step {NEWEST.version} knows schema {newest} at most: add each step in a commit of its own"
    )
    return folder


@pytest.fixture
def place(tmp_path: Path) -> Iterator[PostgresAddress]:
    with one_server(QUICK) as server:
        yield _database(server)


def _database(server: Server) -> PostgresAddress:
    asyncio.run(new_database(server.url(), "upgraded"))
    return PostgresAddress(server.url("upgraded"))


def older(tree: Path, errors: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """A command of the earlier software, with a file for what it says."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with errors.open("wb") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "rgs", *arguments], cwd=tree, env=environment, stdout=subprocess.DEVNULL, stderr=said
        )


def listening(process: subprocess.Popen[bytes], log: Path) -> int:
    """The port of the earlier server, from its log."""
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        assert process.poll() is None, "the earlier server has ended"
        for line in log.read_text().splitlines() if log.exists() else ():
            if '"listening"' in line:
                return int(line.partition('"address":"127.0.0.1:')[2].partition('"')[0])
        time.sleep(0.1)
    raise AssertionError("the earlier server does not listen")


def channel(home: Path, port: int) -> grpc.aio.Channel:
    tls = home / "tls"
    authority, client = (
        load_issued(stem.with_suffix(".pem").read_bytes(), stem.with_suffix(".key").read_bytes())
        for stem in (tls / "ca", tls / "clients" / "demo-operator")
    )
    return channel_of(port, client, authority)


class Load:
    """Players who play on, each call at the next of the servers that take calls. Every failure is counted."""

    def __init__(self) -> None:
        self.open_to: list[int] = [0]
        self.channels: list[grpc.aio.Channel] = []
        self.calls: Counter[tuple[str, int]] = Counter()
        self.failures: list[str] = []
        self.phase = ""
        self.longest_s = 0.0
        self._ended = False
        self._turn = 0

    def next(self) -> int:
        self._turn += 1
        return self.open_to[self._turn % len(self.open_to)]

    async def play(self, number: int) -> None:
        table = await Table(self.channels[:1], f"player-{number}").sit()
        while not self._ended:
            known = Table(self.channels)
            table.plays, table.sessions = known.plays, known.sessions
            try:
                await self._timed(table.start)
                while table.round.status == OPEN:
                    await self._timed(table.act)
            except grpc.aio.AioRpcError as error:
                self.failures.append(f"{self.phase}: {error.code().name} {error.details()}")
                return
            await asyncio.sleep(1.6)  # the pace of the jurisdiction
        await table.leave(self.open_to[0])

    async def _timed(self, call: Any) -> None:
        at, began = self.next(), time.monotonic()
        await call(at)
        self.longest_s = max(self.longest_s, time.monotonic() - began)
        self.calls[self.phase, at] += 1

    async def enter(self, phase: str, *servers: int) -> None:
        """From now on these servers get calls; returns when the players have made some."""
        self.phase, self.open_to = phase, list(servers)
        await until(lambda: bool(self.failures) or all(self.calls[phase, at] >= 3 * PLAYERS for at in servers), 90)

    def end(self) -> None:
        self._ended = True


@pytest.mark.timeout(400)
async def test_no_call_fails_while_the_store_is_migrated_and_the_software_exchanged(
    tmp_path: Path, former: Path, place: PostgresAddress
) -> None:
    assert NEWEST.is_expand, (
        "the newest step needs a stop: docs/upgrades.md says when; then this drill has nothing to show"
    )
    home = tmp_path / "home"
    assert older(former, tmp_path / "init", "init", "--home", str(home), "--store", str(place.url)).wait(90) == 0
    first = older(former, tmp_path / "first", "serve", "--home", str(home), "--listen", "127.0.0.1:0")
    load, second, players = Load(), None, []
    try:
        port = await asyncio.to_thread(listening, first, home / "log" / "rgs.log")
        load.channels.append(channel(home, port))
        load.phase = "older alone"
        players = [asyncio.create_task(load.play(number)) for number in range(PLAYERS)]
        await load.enter("older alone", 0)

        load.phase = "migrating"
        before, after = await migrate_store(place)
        assert (before, after) == (NEWEST.version - 1, NEWEST.version)
        assert len(await older_instances(place)) == 1
        await load.enter("older on the migrated store", 0)

        second = GameServer(
            load_config(home, {"listen": "127.0.0.1:0", "drain_s": 5, "workers": 1}), manifest(), worker=1
        )
        await second.start()
        load.channels.append(channel(home, second.port))
        await load.enter("both", 0, 1)

        await load.enter("newer, the older one goes", 1)
        first.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(first.wait, 60) == 0
        assert await older_instances(place) == []
        await migrate_store(place)
        reads = PostgresReads(place)
        assert await reads.meta("schema") == str(NEWEST.version)
        await reads.close()
        await load.enter("newer alone", 1)
        load.end()
        await asyncio.gather(*players)
    finally:
        load.end()
        for player in players:
            player.cancel()
        await asyncio.gather(*players, return_exceptions=True)
        if first.poll() is None:
            first.kill()
        for one in load.channels:
            await one.close()
        if second is not None:
            await second.stop()
    assert load.failures == []
    sys.stdout.write(f"calls by phase and server: {dict(load.calls)}; the longest took {load.longest_s:.2f} s\n")
    found = kinds(await exported(load_config(home), tmp_path))  # replayed, too
    assert found["session_close"] == PLAYERS
    assert found["round_final"] == found["round_opening"] >= PLAYERS * 5
    # The software that is shut out says why.
    late = older(former, tmp_path / "late", "serve", "--home", str(home), "--listen", "127.0.0.1:0")
    assert await asyncio.to_thread(late.wait, 60) != 0
    why = f"the store has schema {NEWEST.version}, this version knows {NEWEST.version - 1} at most"
    assert why in (tmp_path / "late").read_text()
