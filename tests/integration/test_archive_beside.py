"""`rgs archive` beside two processes over PostgreSQL that are playing: no call fails, whatever is read while it moves
says the same as before, and everything replays afterwards.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from rgs.node.clock import SystemClock
from rgs.node.config import Config, load_config
from rgs.node.home import ensure_home
from rgs.node.stores import reading
from rgs.store.address import PostgresAddress
from rgs.store.archive import STATEMENTS_FILE, UNDELETED, part_names
from rgs.v1 import audit_pb2, history_pb2
from tests.support.api.archived import ROUNDS, exported, play_and_close, replayed
from tests.support.api.client import ApiClient
from tests.support.api.harness import entropy
from tests.support.process.workers import Service, served_by_workers
from tests.support.store.databases import fresh_database

pytestmark = pytest.mark.slow

WORKERS = 2
PLAYERS, READERS = 6, 2
OLD_SESSIONS = 8
RUNS = 4
"""So often the archive moves what was closed until then, the crowd's own sessions too."""
ROOT = Path(__file__).parents[2]
MOVE = """
import asyncio, sys
from pathlib import Path
from rgs.cli import archive
from rgs.node import clock, config
asyncio.run(archive.move(config.load_config(Path(sys.argv[1])), clock.now_ms() + 1000, clock.now_ms()))
"""
"""The command without its wait of 33 days."""


@pytest.fixture
def config(tmp_path: Path) -> Iterator[Config]:
    home = tmp_path / "home"
    with fresh_database() as address:
        yield home_over(home, address)


def home_over(home: Path, address: PostgresAddress) -> Config:
    ensure_home(home, None, entropy().read, SystemClock().now_ms(), address)
    with (home / "rgs.toml").open("a", encoding="utf-8") as file:
        file.write('\narchive = "archive"\n')
    return load_config(home)


class Reported:
    """Rounds, and what the server says of each: it must never say anything else."""

    def __init__(self) -> None:
        self.rounds: dict[str, tuple[bytes, ...]] = {}
        self.sessions: dict[str, list[str]] = {}
        self.reads = 0

    async def add(self, client: ApiClient, rounds: list[str]) -> None:
        """A session that was just closed, with its rounds."""
        for one in rounds:
            self.rounds[one] = await said_of(client, one)
        self.sessions[client.session_id] = rounds

    async def verify(self, client: ApiClient, session_id: str) -> None:
        """Ask again for the session and its rounds, wherever they are now."""
        rounds = self.sessions[session_id]
        listed = await client.history.ListRounds(history_pb2.ListRoundsRequest(session_id=session_id))
        assert [one.round_id for one in listed.rounds] == rounds[::-1]
        for one in rounds:
            assert await said_of(client, one) == self.rounds[one]
        links = await client.audit.ListStatements(audit_pb2.ListStatementsRequest(session_id=session_id))
        assert [row.link_no for row in links.statements] == list(range(1, len(links.statements) + 1))
        assert len(links.statements) >= 4 + 2 * len(rounds)
        self.reads += 1


async def said_of(client: ApiClient, round_id: str) -> tuple[bytes, ...]:
    record = await client.history.GetRoundRecord(history_pb2.GetRoundRecordRequest(round_id=round_id))
    listed = await client.audit.ListStatements(audit_pb2.ListStatementsRequest(round_id=round_id))
    return (record.SerializeToString(deterministic=True), *(row.envelope for row in listed.statements))


async def play(service: Service, number: int, reported: Reported, done: asyncio.Event, opened: AsyncExitStack) -> None:
    """One session after the other."""
    channel = await opened.enter_async_context(service.channel())
    sessions = 0
    while not done.is_set():
        player = ApiClient(channel, f"player-{number}-{sessions}")
        await reported.add(player, await play_and_close(player))
        sessions += 1


async def read(service: Service, reported: Reported, done: asyncio.Event, opened: AsyncExitStack) -> None:
    client = ApiClient(await opened.enter_async_context(service.channel()))
    while not done.is_set():
        for session_id in list(reported.sessions):
            await reported.verify(client, session_id)


async def archived(config: Config) -> int:
    """Run the archive in a process of its own; how many rounds it has moved. It is refused what the log has not
    published yet, and the next run has it.
    """
    moving = await asyncio.create_subprocess_exec(
        sys.executable, "-c", MOVE, str(config.home), cwd=ROOT,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, error = await moving.communicate()
    assert moving.returncode == 0 or b"has not published" in error, error.decode()
    return sum(int(line.split("\t")[2].split()[0]) for line in out.decode().splitlines() if "sessions" in line)


async def all_ended(tasks: list[asyncio.Task[Any]]) -> None:
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


@pytest.mark.timeout(240)
async def test_the_archive_moves_while_two_processes_play(
    tmp_path: Path, config: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    reported, done, moved = Reported(), asyncio.Event(), 0
    with served_by_workers(config, tmp_path / "said.txt", WORKERS) as service:
        await service.until_serving(WORKERS)
        async with AsyncExitStack() as opened:
            channel = await opened.enter_async_context(service.channel())
            for number in range(OLD_SESSIONS):
                player = ApiClient(channel, f"old-{number}")
                await reported.add(player, await play_and_close(player))
            old = list(reported.sessions)
            crowd = [asyncio.create_task(play(service, number, reported, done, opened)) for number in range(PLAYERS)]
            crowd += [asyncio.create_task(read(service, reported, done, opened)) for _ in range(READERS)]
            runs = 0
            while runs < RUNS and not any(task.done() for task in crowd):
                now_moved = await archived(config)
                moved, runs = moved + now_moved, runs + bool(now_moved)
            done.set()
            await all_ended(crowd)
            during = len(reported.sessions)
            client = ApiClient(channel)
            for session_id in reported.sessions:
                await reported.verify(client, session_id)
        service.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(service.process.wait, 30) == 0, service.log.read_text()
    assert during > OLD_SESSIONS + PLAYERS
    assert moved > OLD_SESSIONS * ROUNDS, "sessions that were closed meanwhile have moved, too"
    async with reading(config.store) as reads:
        gone = [one for session in old for one in reported.sessions[session] if await reads.round(one) is None]
    assert len(gone) >= (OLD_SESSIONS - 1) * ROUNDS
    assert config.archive is not None
    parts = [config.archive / name for name in part_names(config.archive)]
    assert len(parts) >= RUNS
    assert not [part for part in parts if (part / UNDELETED).exists()]
    capsys.readouterr()
    for part in parts:
        assert await asyncio.to_thread(replayed, config, part / STATEMENTS_FILE) == 0
    await asyncio.to_thread(exported, config, tmp_path / "all.jsonl")
    capsys.readouterr()
    assert await asyncio.to_thread(replayed, config, tmp_path / "all.jsonl") == 0
    assert f"{len(reported.rounds)} rounds verified, 0 failed, ANCHORED" in capsys.readouterr().out
