"""Killed between every two writes of what admins and rules do: malfunction, resume, the two steps of a void, switches,
rounds finished by rule. The processes of `test_crash_lives`, with another life.

After the restart the same orders come again under their ids: each has its effect once and the answer that it had,
books, statements and regulator agree, and the running totals equal a scan of all finals.
"""

from __future__ import annotations

import hashlib
import signal
import sqlite3
import subprocess
import uuid
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rgs.service.admin.orders import Order, order_of
from rgs.service.callers import Caller, Role
from rgs.store.sqlite.store import connect, create_store
from tests.integration.test_crash_lives import Client, lives, verify_left
from tests.support.clocks import NOW_MS, ManualClock
from tests.support.service.crashing import FAILPOINT, Run, forking, live, serve_children
from tests.support.service.harness import STORE_EPOCH, ServiceHarness, read_statement
from tests.support.service.oracles import stored_statements, verify_books

FIRST, SECOND = Caller("admin-1", Role.ADMIN, ""), Caller("admin-2", Role.ADMIN, "")
DAYS_MS = 3 * 86_400_000
"""Longer than any jurisdiction leaves a round open."""

# --- the process that dies --------------------------------------------------------------------------------------------


class Prompt(Client):
    """A client, and the admins who see to its round."""

    async def order(self, step: str, caller: Caller, method: str, do: Callable[[Order], Awaitable[Any]]) -> None:
        """An order under an id that never changes; its answer is the same as in an earlier life, if it was heard."""
        FAILPOINT.step = step
        self._sent += 1
        order = order_of(caller, method, str(uuid.UUID(int=self._number * 1000 + self._sent)))
        answer = await do(order)
        self.hear(step, repr(answer).encode())

    def hear(self, step: str, answer: bytes) -> None:
        line = f"{step} {hashlib.sha256(answer).hexdigest()}"
        if self._sent <= len(self._said):
            assert self._said[self._sent - 1] == line, f"{step} was answered otherwise before the crash"
        else:
            with self._journal.open("a", encoding="ascii") as journal:
                journal.write(line + "\n")

    async def sit(self) -> str:
        player = self.player
        await self.say("sit", player.opening())
        await self.say("sit", player.purchase(3000))
        player.harness.clock.tick(700)
        await self.say("sit", player.starting(100))
        return str(player.round["round_id"])

    async def leave(self) -> None:
        await self.say("leave", self.player.ending())
        await self.say("leave", self.player.closing())


async def life(folder: Path, clock_ms: int, *, recover_first: bool) -> None:
    harness = ServiceHarness(folder, clock=ManualClock(clock_ms))
    await harness.start()
    FAILPOINT.step = "admins"
    await harness.let_in(FIRST.party, SECOND.party)
    await harness.services.certificates.poll()
    FAILPOINT.step = "recover"
    if recover_first:
        await harness.settle()
    admin = harness.services.admin
    resumed, void, left = (Prompt(harness, f"player-{number}", 2 * number) for number in range(3))

    round_id = await resumed.sit()
    await resumed.order(
        "malfunction", FIRST, "ReportMalfunction", lambda o: admin.report_malfunction(o, round_id, "STUCK")
    )
    await resumed.order("resume", FIRST, "ResumeRound", lambda o: admin.resume_round(o, round_id, "MENDED"))
    resumed.player.round["round_version"] += 2  # what a client reads in the view after the two orders
    await resumed.say("decide", resumed.player.decision("play_4x"))

    lost = await void.sit()
    await void.order("pause", FIRST, "ReportMalfunction", lambda o: admin.report_malfunction(o, lost, "STUCK"))
    await void.order("propose", FIRST, "ProposeVoid", lambda o: admin.propose_void(o, [lost], "MALFUNCTION"))
    await void.order("approve", SECOND, "ApproveVoid", lambda o: admin.approve_void(o, [lost]))

    await left.sit()
    for step, enabled in (("disable", False), ("enable", True)):
        await left.order(
            step, FIRST, "SetSwitch", partial(admin.set_switch, scope="play", subject="", enabled=enabled, reason="X")
        )
    FAILPOINT.step = "rule"
    harness.clock.tick(DAYS_MS)
    await harness.services.interruptions.finish_due()
    FAILPOINT.step = "report"
    await harness.settle()
    for prompt in (resumed, void, left):
        await prompt.leave()
    FAILPOINT.step = "stop"
    await harness.settle()
    await harness.stop()


def main() -> None:
    """This file as a program."""
    serve_children(lambda order: life(Path(order["folder"]), order["clock_ms"], recover_first=order["recover_first"]))


# --- the tests --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def processes() -> Iterator[subprocess.Popen[str]]:
    with forking("tests.integration.test_crash_operations") as process:
        yield process


@pytest.fixture
def run(tmp_path: Path, processes: subprocess.Popen[str]) -> Run:
    create_store(tmp_path / "rgs.db", STORE_EPOCH)
    number = [0]

    def one_life(kill_at: str = "", *, recover_first: bool = False) -> int:
        number[0] += 1
        clock_ms = NOW_MS + 60_000 * number[0] + (DAYS_MS if number[0] > 1 else 0)
        order = {"folder": str(tmp_path), "kill_at": kill_at, "clock_ms": clock_ms, "recover_first": recover_first}
        return live(processes, order)

    return one_life


COMMITS = {
    "malfunction": 1,
    "resume": 1,
    "decide": 1,
    "pause": 1,
    "propose": 2,
    "approve": 2,
    "disable": 1,
    "enable": 1,
    "rule": 1,
}
"""Writes of the main store in each step; the others write to no other file."""
POINTS = [
    f"{step}/rgs/{number}/{when}"
    for step, commits in COMMITS.items()
    for number in range(1, commits + 1)
    for when in ("before", "after")
]
EVENTS = Counter(MALFUNCTION=2, ROUND_RESUMED=1, VOID_PROPOSED=1, SWITCH_CHANGED=2)


def verify_reported(folder: Path) -> None:
    """Each order had its effect once; the totals are those of a scan of the finals."""
    assert verify_books(folder).rounds_verified == 3
    bodies = [read_statement(row.envelope) for row in stored_statements(folder)]
    codes = Counter(body["code"] for body in bodies if body["kind"] == "event")
    assert {code: codes[code] for code in EVENTS} == EVENTS
    finals = [body for body in bodies if body["kind"] == "round_final"]
    assert [bool(body.get("void")) for body in finals].count(True) == 1
    scan: defaultdict[str, list[int]] = defaultdict(lambda: [0] * 5)
    for body in finals:
        line = scan[body["time"][:10]]
        if body.get("void"):
            line[3:] = [line[3] + 1, line[4] + int(body["returned_minor"])]
        else:
            line[:3] = [line[0] + 1, line[1] + int(body["staked_minor"]), line[2] + int(body["returned_minor"])]
    with closing(connect(folder / "rgs.db", read_only=True)) as connection:
        totals = connection.execute(
            "SELECT day, sum(rounds), sum(staked_minor), sum(returned_minor), sum(void_rounds), sum(void_minor)"
            " FROM totals GROUP BY day"
        ).fetchall()
    assert {day: list(line) for day, *line in totals} == scan


def test_the_points_are_all_there_are(tmp_path: Path, run: Run) -> None:
    lives(tmp_path, run())
    passed = (tmp_path / "points.txt").read_text("ascii").split()
    assert [point for point in passed if point.split("/")[0] in COMMITS] == POINTS
    verify_reported(tmp_path)


@pytest.mark.parametrize("point", POINTS)
def test_killed_between_every_two_writes(tmp_path: Path, run: Run, point: str) -> None:
    assert run(point) == -signal.SIGKILL
    verify_left(tmp_path)
    lives(tmp_path, run(recover_first=POINTS.index(point) % 4 < 2))
    verify_reported(tmp_path)


def test_the_oracle_sees_a_total_that_was_lost(tmp_path: Path, run: Run) -> None:
    lives(tmp_path, run())
    with closing(sqlite3.connect(tmp_path / "rgs.db")) as connection:
        connection.execute("UPDATE totals SET staked_minor = staked_minor - 1 WHERE rounds > 0")
        connection.commit()
    with pytest.raises(AssertionError):
        verify_reported(tmp_path)


if __name__ == "__main__":
    main()
