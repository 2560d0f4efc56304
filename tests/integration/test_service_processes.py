"""Other processes and a real file system in the way: a lock held too long, a second server, a disk without room."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rgs.core.errors import UnavailableError
from rgs.store.changes import StoreError
from tests.support.clocks import ManualClock
from tests.support.service.crashing import WARNINGS
from tests.support.service.harness import Request, ServiceHarness, open_harness, round_document, session_document
from tests.support.service.oracles import stored_statements, verify_books, verify_numbers
from tests.support.service.player import Player

ROOT = Path(__file__).resolve().parents[2]

HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
sys.stdout.write("held\\n")
sys.stdout.flush()
sys.stdin.readline()
"""
OPEN = """
import sys
from pathlib import Path
from rgs.store.changes import StoreRefusedError
from rgs.store.sqlite.store import SqliteStore
try:
    SqliteStore(Path(sys.argv[1]))
except StoreRefusedError as error:
    sys.stdout.write(error.message)
"""


def command(script: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", script, *arguments]


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Another process holds the write lock of the file."""
    with subprocess.Popen(
        command(HOLD, str(path)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "held\n"
        yield
        process.stdin.write("\n")
        process.stdin.flush()


@pytest.mark.parametrize("file", ["rgs.db", "wallet.db", "regulator.db"])
async def test_a_lock_held_too_long_by_another_process(
    tmp_path: Path, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rgs.store.wallet.BUSY_TIMEOUT_S", 0.02)
    async with open_harness(tmp_path) as harness:
        harness.store._db.execute("PRAGMA busy_timeout = 20")
        anna = Player(harness)
        await anna.sit()
        await anna.start()
        request: Request = anna.decision("check")
        before = len(stored_statements(tmp_path))
        with held(tmp_path / file):
            if file != "rgs.db":  # a round needs no outside call
                await anna.send(request)
                await anna.finish_round()
                request = anna.purchase(500)
                before = len(stored_statements(tmp_path))
            with pytest.raises(UnavailableError):
                await harness.send(request)
        assert len(stored_statements(tmp_path)) == before
        await anna.send(request)
        if anna.round["status"] == "open":
            await anna.finish_round()
        await anna.leave()
        await harness.settle()
    verify_books(tmp_path)


async def test_a_second_server_on_the_same_store_is_refused(tmp_path: Path) -> None:
    async with open_harness(tmp_path):
        result = await asyncio.to_thread(
            subprocess.run,
            command(OPEN, str(tmp_path / "rgs.db")),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert "in use by another process" in result.stdout


# --- a disk without room ----------------------------------------------------------------------------------------------


@contextmanager
def file_size_limit(limit: int) -> Iterator[None]:
    """No file of this process may grow beyond the limit: the write fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def play_on_a_full_disk(folder: Path) -> None:
    async with open_harness(folder, clock=ManualClock()) as harness:
        anna, bert, carl = (Player(harness, name=name) for name in ("anna", "bert", "carl"))
        for player in (anna, bert, carl):
            await player.sit()
        await bert.start()
        harness.store.on_failure = lambda _: None  # its guard would spare the draws that are to be accounted for
        failed = 0
        with file_size_limit((folder / "rgs.db-wal").stat().st_size + 100_000):
            for _ in range(200):
                try:
                    await (anna.finish_round() if anna.round.get("status") == "open" else anna.play(20))
                except StoreError:
                    failed += 1
                    await go_on(harness, anna)
                if failed == 5:
                    break
            assert failed == 5, "the disk was full"
        with file_size_limit(1):  # what was left may be room enough for a small commit
            with pytest.raises(StoreError):
                await bert.act("check")
            with pytest.raises(StoreError):
                await carl.start()
        verify_numbers(stored_statements(folder))
        # Room again: what failed is sent again, nothing is lost, the draws that were made are accounted for.
        await go_on(harness, anna)
        if anna.round["status"] == "open":
            await anna.finish_round()
        await bert.finish_round()
        for player in (anna, bert, carl):
            await player.leave()
        await harness.settle()


async def go_on(harness: ServiceHarness, player: Player) -> None:
    """The client reads where it stands, as one that lost its answer."""
    view, _ = await harness.sessions.get(player.caller, player.session_id)
    player.session = session_document(view)
    player.round = {"status": "none"} if view.open_round is None else round_document(view.open_round)


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """In a process of its own: the limit is the process's."""
    result = subprocess.run(
        [sys.executable, "-m", "tests.integration.test_service_processes", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": WARNINGS},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    summary = verify_books(tmp_path)
    assert summary.draws_discarded >= 1


if __name__ == "__main__":
    asyncio.run(play_on_a_full_disk(Path(sys.argv[1])))
