"""Killed between every two writes: the process dies by SIGKILL before and after each commit of each of its three files.

After the restart a client goes on with the request ids that it had. Every answer that was said before is said again,
wallet, regulator, sessions and statements agree, the draws that died with the process are accounted for, and the export
of everything replays. The processes are children of one small server (this file as a program), forked for each life,
so that nothing of the product is started anew but the server itself.
"""

from __future__ import annotations

import asyncio
import hashlib
import signal
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rgs.service.instance import FIRST_WINDOW
from rgs.store.regulator import RegulatorStore
from rgs.store.sqlite.store import create_store
from rgs.store.wallet import WalletStore
from tests.support.clocks import NOW_MS, ManualClock
from tests.support.service.crashing import FAILPOINT, Run, forking, live, points_of, serve_children
from tests.support.service.harness import STORE_EPOCH, Request, ServiceHarness, read_statement
from tests.support.service.oracles import export_lines, replay_lines, stored_statements, verify_books, verify_numbers
from tests.support.service.player import Player

pytestmark = pytest.mark.slow

# --- the process that dies --------------------------------------------------------------------------------------------


class Client:
    """Sends the requests of its script, in order, under request ids that never change; keeps a journal of answers."""

    def __init__(self, harness: ServiceHarness, name: str, number: int) -> None:
        self.player = Player(harness, name=name, game=("uth-solo", "casino-holdem")[number % 2])
        self._number = number
        self._journal = harness.folder / f"answers-{number}.txt"
        self._said = self._journal.read_text("ascii").splitlines() if self._journal.exists() else []
        self._sent = 0

    async def say(self, step: str, request: Request) -> None:
        """The answer: the same as in an earlier life, if it was heard there."""
        FAILPOINT.step = step
        self._sent += 1
        request = replace(request, request_id=str(uuid.UUID(int=self._number * 1000 + self._sent)))
        reply = await self.player.send(request)
        line = f"{step} {hashlib.sha256(reply.body + reply.envelope).hexdigest()}"
        if self._sent <= len(self._said):
            assert self._said[self._sent - 1] == line, f"{step} was answered otherwise before the crash"
        else:
            with self._journal.open("a", encoding="ascii") as journal:
                journal.write(line + "\n")

    async def live(self) -> None:
        player = self.player
        await self.say("open", player.opening())
        await self.say("buy", player.purchase(3000))
        for number in (1, 2):
            player.harness.clock.tick(700)
            await self.say(f"start{number}", player.starting(100))
            if player.round["phase"] == "preflop":
                await self.say(f"act{number}", player.decision("check"))
                await self.say(f"settle{number}", player.decision("play_2x"))
            else:
                await self.say(f"settle{number}", player.decision("call"))
            if number == 1:
                await self.say("top-up", player.purchase(500))
        await self.say("end", player.ending())
        await self.say("close", player.closing())


async def life(folder: Path, clients: int, clock_ms: int, *, recover_first: bool) -> None:
    """One process: start, go on where the last one died, come to an orderly end."""
    WalletStore(folder / "wallet.db").close()  # made here and not copied: these commits are points of the matrix, too
    RegulatorStore(folder / "regulator.db").close()
    harness = ServiceHarness(folder, clock=ManualClock(clock_ms))
    await harness.start()
    FAILPOINT.step = "recover"
    if recover_first:
        await harness.settle()
    people = [Client(harness, f"player-{number}", number) for number in range(clients)]
    await asyncio.gather(*[client.live() for client in people])
    FAILPOINT.step = "stop"
    await harness.settle()
    await harness.stop()


def main() -> None:
    """This file as a program."""
    serve_children(
        lambda order: life(
            Path(order["folder"]), order["clients"], order["clock_ms"], recover_first=order["recover_first"]
        )
    )


# --- the tests --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def processes() -> Iterator[subprocess.Popen[str]]:
    with forking("tests.integration.test_crash_lives") as process:
        yield process


@pytest.fixture
def run(tmp_path: Path, processes: subprocess.Popen[str]) -> Run:
    create_store(tmp_path / "rgs.db", STORE_EPOCH)
    lives = [0]

    def one_life(kill_at: str = "", *, clients: int = 1, recover_first: bool = False) -> int:
        lives[0] += 1
        order = {
            "folder": str(tmp_path),
            "kill_at": kill_at,
            "clients": clients,
            "clock_ms": NOW_MS + 60_000 * lives[0],
            "recover_first": recover_first,
        }
        return live(processes, order)

    return one_life


def verify_left(folder: Path) -> None:
    """What a dead process left is in order as far as it goes."""
    verify_numbers(stored_statements(folder))
    if stored_statements(folder):
        failures, _ = replay_lines(export_lines(folder))
        assert failures == [], failures


def lives(folder: Path, status: int) -> None:
    error = folder / "error.txt"
    assert status == 0, error.read_text("utf-8") if error.exists() else status


COMMITS = {
    "start": ["wallet", "regulator"] + ["rgs"] * 3,
    "open": ["wallet", "rgs", "regulator", "rgs"],
    "buy": ["rgs", "wallet", "regulator", "rgs"],
    "start1": ["rgs"],
    "act1": ["rgs"],
    "settle1": ["rgs"],
    "top-up": ["rgs", "wallet", "regulator", "rgs"],
    "start2": ["rgs"],
    "act2": ["rgs"],
    "settle2": ["rgs"],
    "end": ["rgs", "regulator", "rgs", "regulator", "wallet", "rgs"],
    "close": ["rgs", "regulator", "rgs"],
    "stop": ["rgs"] * 2,
}


def test_the_matrix_is_complete(tmp_path: Path, run: Run) -> None:
    lives(tmp_path, run())
    assert (tmp_path / "points.txt").read_text("ascii").split() == points_of(COMMITS)
    assert verify_books(tmp_path).rounds_verified == 2


@pytest.mark.parametrize("point", points_of(COMMITS))
def test_killed_between_every_two_writes(tmp_path: Path, run: Run, point: str) -> None:
    assert run(point) == -signal.SIGKILL
    verify_left(tmp_path)
    lives(tmp_path, run(recover_first=points_of(COMMITS).index(point) // 2 % 2 == 0))
    summary = verify_books(tmp_path)
    assert (summary.sessions, summary.rounds_verified, summary.is_cut) == (1, 2, False)
    first, *_ = stored_statements(tmp_path)
    died_before_its_start = point in points_of(COMMITS)[:5]
    assert summary.instances == (1 if died_before_its_start else 2), first


@pytest.mark.parametrize("second", range(1, 9))
@pytest.mark.parametrize("point", ["buy/regulator/1/after", "settle2/rgs/1/before", "end/wallet/1/before"])
def test_killed_again_while_it_recovers(tmp_path: Path, run: Run, point: str, second: int) -> None:
    assert run(point) == -signal.SIGKILL
    when = "before" if second % 2 else "after"
    assert run(f"commit {second} {when}", recover_first=True) == -signal.SIGKILL
    verify_left(tmp_path)
    lives(tmp_path, run(recover_first=bool(second % 3)))
    assert verify_books(tmp_path).rounds_verified == 2


@pytest.mark.parametrize("commit", range(15, 130, 16))
def test_killed_in_a_crowd(tmp_path: Path, run: Run, commit: int) -> None:
    """Groups of commits, draws in flight: what was in flight is accounted for by the exposure, or not drawn at all."""
    assert run(f"commit {commit} {('before', 'after')[commit % 2]}", clients=12) == -signal.SIGKILL
    verify_left(tmp_path)
    lives(tmp_path, run(clients=12, recover_first=commit % 4 == 0))
    summary = verify_books(tmp_path)
    assert (summary.sessions, summary.rounds_verified, summary.instances) == (12, 24, 2)


@pytest.mark.parametrize("commit", [40, 75])
def test_a_kill_among_twelve_clients_leaves_no_more_unknown_than_the_small_window(
    tmp_path: Path, run: Run, commit: int
) -> None:
    assert run(f"commit {commit} before", clients=12) == -signal.SIGKILL
    lives(tmp_path, run(clients=12))
    assert verify_books(tmp_path).draws_exposed == FIRST_WINDOW == 16


@pytest.mark.parametrize("commit", [172, 174, 178])
def test_a_kill_under_load_leaves_what_the_last_durable_window_says(tmp_path: Path, run: Run, commit: int) -> None:
    """Forty starts at once, and the kill around the commits of the first of them and of the growth."""
    assert run(f"commit {commit} before", clients=40) == -signal.SIGKILL
    result = [read_statement(row.envelope) for row in stored_statements(tmp_path)]
    windows = [int(body["draws_in_flight_max"]) for body in result if "draws_in_flight_max" in body]
    assert windows == [16, 32, 64][: len(windows)]
    lives(tmp_path, run(clients=40))
    assert verify_books(tmp_path).draws_exposed == windows[-1]


# --- the oracle sees it -----------------------------------------------------------------------------------------------


def test_the_oracle_sees_an_answer_that_was_said_too_soon(tmp_path: Path, run: Run) -> None:
    """As if the reply of the first start had left before its commit: the journal knows an answer that never comes."""
    assert run("start1/rgs/1/before") == -signal.SIGKILL
    with (tmp_path / "answers-0.txt").open("a", encoding="ascii") as journal:
        journal.write(f"start1 {'0' * 64}\n")
    assert run() == 1
    assert "was answered otherwise before the crash" in (tmp_path / "error.txt").read_text("utf-8")


if __name__ == "__main__":
    main()
