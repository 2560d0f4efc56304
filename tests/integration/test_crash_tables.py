"""An evening at two tables, killed by SIGKILL between every two writes of each of its steps.

Three players sit at boxes, one shares a hand: bets, changes, a bet taken back, one who leaves with bets, decisions,
silence, a second device, finals, then a round that two admins make void. After each kill a new process starts where the
clock stands; the dealer goes on, and all clients say everything again under the ids that they had. Every answer is the
one that was heard before, and at the end nothing is reserved, lost or done twice.
"""

from __future__ import annotations

import hashlib
import pickle
import signal
import subprocess
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rgs.core.games.types import Action
from rgs.core.tables.machine import State
from rgs.service.play.requests import BuyParticipation, CloseSession, EndParticipation, OpenSession
from rgs.service.tables.requests import Decide, Join, Leave, PlaceBets
from rgs.store.address import PostgresAddress
from rgs.store.opening import open_parties, open_store
from rgs.store.sqlite.store import connect, create_store
from tests.support.clocks import NOW_MS, ManualClock
from tests.support.service.crashing import FAILPOINT, forking, live, serve_children
from tests.support.service.harness import OPERATOR, STORE_EPOCH, ServiceHarness, read_reply, read_statement
from tests.support.service.oracles import export_lines, replay_lines, stored_statements, verify_books, verify_numbers
from tests.support.service.tables import ADMIN, ALWAYS, SECOND_ADMIN, Evening, Sitter

TIMERS = {"betting_ms": 20_000, "amber_ms": 5_000, "decision_ms": 15_000, "result_ms": 5_000}
PLAYERS = {
    "player-1": "uth-seven-box",
    "player-2": "uth-seven-box",
    "player-3": "uth-seven-box",
    "player-4": "uth-online",
}

PassTo = Callable[[int], Awaitable[None]]
"""Moves the clock of a database; that of a file is the process's own."""

# --- the process that dies --------------------------------------------------------------------------------------------


class Script:
    """What everybody does in one life. It is the same in each: what was said is said again, what was waited for is not
    waited for again. A journal in the folder has the requests as they were, and the answers that were heard.
    """

    def __init__(self, folder: Path, harness: ServiceHarness, pass_to: PassTo) -> None:
        self.harness, self._clock, self._pass_to = harness, folder / "clock.txt", pass_to
        self._journal = folder / "journal"
        self._journal.mkdir(exist_ok=True)
        rows = {"hours": ALWAYS, "timers": TIMERS}
        self.evenings = {name: Evening(harness, name, **rows) for name in ("uth-seven-box", "uth-online")}
        self.sitters = {name: Sitter(self.evenings[table], name) for name, table in PLAYERS.items()}

    # --- saying, waiting ---

    async def say(self, step: str, make: Callable[[], Any], send: Callable[[Any], Awaitable[bytes]]) -> bytes:
        """Send the request of this step, made now or in an earlier life; hold the answer against what was heard."""
        FAILPOINT.step = step
        sent, heard = self._journal / f"{step}.request", self._journal / f"{step}.answer"
        if not sent.exists():
            sent.write_bytes(pickle.dumps(make()))
        answer = await send(pickle.loads(sent.read_bytes()))  # noqa: S301 - written by an earlier life of this test
        digest = hashlib.sha256(answer).hexdigest()
        if heard.exists():
            assert heard.read_text("ascii") == digest, f"{step} was answered otherwise before the crash"
        heard.write_text(digest, "ascii")
        return answer

    async def wait(self, step: str, table: str, state: State, phase: str = "") -> None:
        """Let time pass for both tables until one stands so; not again, if that was done in an earlier life."""
        FAILPOINT.step = step
        done = self._journal / f"{step}.done"
        for _ in range(40):
            for evening in self.evenings.values():
                await evening.look()
            row = (await self.evenings[table].row()).table
            if done.exists() or (row.state is state and (not phase or row.phase == phase)):
                done.touch()
                return
            due = [row.due_ms for row in [await one.row() for one in self.evenings.values()] if row.due_ms]
            self.harness.clock.time_ms = max(self.harness.clock.time_ms, min(due))
            await self._pass_to(self.harness.clock.time_ms)
            self._clock.write_text(str(self.harness.clock.time_ms), "ascii")
        raise AssertionError(f"{step}: {(await self.evenings[table].row()).table}")

    async def admin(self, step: str, method: str, *values: Any, who: Any = ADMIN) -> None:
        order = getattr(self.harness.tables.admin, method)

        async def send(request: Any) -> bytes:
            request_id, *rest = request
            answer = await order(who, request_id, *rest)
            return answer if isinstance(answer, bytes) else bytes(answer[-1])

        await self.say(step, lambda: (_id_of(step), *values), send)

    async def seat(self, step: str, name: str, method: str, make: Callable[[Sitter], Any]) -> None:
        """A call of a seat, made from what the player sees then."""
        sitter = self.sitters[name]
        if not (self._journal / f"{step}.request").exists() and method != "join":
            await sitter.look()

        async def send(request: Any) -> bytes:
            reply = await getattr(self.harness.tables.seats, method)(OPERATOR, request)
            await self.harness.tables.dealer.stop()
            sitter._take(read_reply(reply))
            return bytes(reply.body)

        await self.say(step, lambda: make(sitter), send)

    async def money(self, step: str, name: str, make: Callable[[Sitter], Any]) -> None:
        sitter = self.sitters[name]

        async def send(request: Any) -> bytes:
            reply = await self.harness.send(request)
            sitter.session_id = read_reply(reply)["session"]["session_id"]
            return reply.body + reply.envelope

        await self.say(step, lambda: make(sitter), send)

    # --- the steps ---

    async def enter(self, name: str, box: int = 0) -> None:
        config = self.evenings[PLAYERS[name]].config
        opening = OpenSession(_id_of(f"open {name}"), config.ruleset_id, name, "EUR", f"ref-{name}", table=config.id)
        await self.money(f"open {name}", name, lambda _: opening)
        await self.money(
            f"buy {name}", name, lambda one: BuyParticipation(_id_of(f"buy {name}"), one.session_id, 1, 100_000)
        )
        await self.join(f"join {name}", name, box)

    async def join(self, step: str, name: str, box: int = 0) -> None:
        await self.seat(step, name, "join", lambda one: Join(_id_of(step), one.session_id, box, name))

    async def bet(self, step: str, name: str, **bets: int) -> None:
        await self.seat(
            step,
            name,
            "place_bets",
            lambda one: PlaceBets(
                _id_of(step), one.session_id, one.seat["device_no"], "", one.seat["seat_version"], bets
            ),
        )

    async def leave(self, step: str, name: str) -> None:
        await self.seat(step, name, "leave", lambda one: Leave(_id_of(step), one.session_id, one.seat["device_no"]))

    async def decide(self, step: str, name: str, action: str) -> None:
        def make(one: Sitter) -> Decide:
            seen = one.seat["round"]
            return Decide(
                _id_of(step), one.session_id, one.seat["device_no"], seen["round_id"], seen["round_version"],
                Action(action),
            )  # fmt: skip

        await self.seat(step, name, "decide", make)

    async def go(self, name: str) -> None:
        await self.leave(f"leave {name}", name)
        await self.money(f"end {name}", name, lambda one: EndParticipation(_id_of(f"end {name}"), one.session_id))
        await self.money(f"close {name}", name, lambda one: CloseSession(_id_of(f"close {name}"), one.session_id))

    async def live(self) -> None:
        """The whole evening."""
        for name, evening in self.evenings.items():
            await self.admin(f"configure {name}", "configure", evening.text, "NEW_TABLE")
        for name in self.evenings:
            await self.wait(f"opened {name}", name, State.IDLE)
        for name in PLAYERS:
            await self.enter(name, 3 if name == "player-2" else 0)
        await self.bet("bet player-1", "player-1", ante=1_000)
        await self.bet("bet player-2", "player-2", ante=1_000, trips=500)
        await self.bet("bet player-3", "player-3", ante=500)
        await self.bet("bet player-4", "player-4", ante=2_000)
        await self.bet("change", "player-1", ante=1_500)
        await self.bet("take back", "player-2")
        await self.bet("again", "player-2", ante=2_000)
        await self.leave("leave with bets", "player-3")
        await self.join("come back", "player-3")
        await self.bet("bet once more", "player-3", ante=600)
        await self.wait("deal", "uth-seven-box", State.DECIDING, "preflop")
        await self.decide("decide player-1", "player-1", "play_4x")
        await self.decide("decide player-2", "player-2", "check")
        await self.leave("leave in play", "player-3")
        await self.decide("decide player-4", "player-4", "check")
        await self.join("second device", "player-4")
        await self.wait("flop", "uth-seven-box", State.DECIDING, "flop")
        await self.decide("decide at the flop", "player-2", "play_2x")
        await self.wait("river", "uth-seven-box", State.DECIDING, "river")
        await self.wait("results", "uth-seven-box", State.RESULT)
        await self.wait("next", "uth-seven-box", State.BETTING)
        await self.bet("second bet", "player-1", ante=1_000)
        await self.wait("second deal", "uth-seven-box", State.DECIDING)
        await self.decide("second decision", "player-1", "check")
        await self.admin("pause", "pause", "uth-seven-box", "CARD_READER")
        round_id = (await self.evenings["uth-seven-box"].row()).table.round_id
        for step, who in (("propose", ADMIN), ("approve", SECOND_ADMIN)):
            await self.admin(step, "void", "uth-seven-box", round_id, "MISDEAL", who=who)
        await self.wait("void", "uth-seven-box", State.RESULT)
        for name in PLAYERS:
            if name == "player-3":  # the seat was free when the bets were opened
                await self.join("back for the end", name)
            await self.go(name)
        await self.wait("empty", "uth-seven-box", State.IDLE)
        await self.wait("empty too", "uth-online", State.IDLE)


def _id_of(step: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, step))


async def _nothing(_: int) -> None:
    """A file has no clock."""


async def life(
    folder: Path, *, recover_first: bool, database: PostgresAddress | None = None, pass_to: PassTo = _nothing
) -> None:
    """One process: start where the clock stands, go on where the last one died, come to an orderly end."""
    clock = folder / "clock.txt"
    stood_ms = int(clock.read_text("ascii")) if clock.exists() else NOW_MS
    clock.write_text(str(stood_ms), "ascii")
    FAILPOINT.step = "start"
    store, parties = (None, None) if database is None else (await open_store(database), await open_parties(database))
    harness = ServiceHarness(folder, clock=ManualClock(stood_ms), store=store, parties=parties)
    if database is not None:
        del harness.store.clock_ms  # the database says
    await pass_to(stood_ms)
    await harness.start()
    await harness.let_in(ADMIN.party, SECOND_ADMIN.party)
    FAILPOINT.step = "recover"
    script = Script(folder, harness, pass_to)
    if recover_first:
        await harness.settle()
        for row in await harness.store.tables("", 9):
            await harness.tables.dealer.advance(row.table.table_id)
    await script.live()
    FAILPOINT.step = "stop"
    await harness.settle()
    await harness.stop()


def main() -> None:
    """This file as a program."""
    serve_children(lambda order: life(Path(order["folder"]), recover_first=order["recover_first"]))


# --- the tests --------------------------------------------------------------------------------------------------------

Live = Callable[..., int]
STEPS = (
    "configure uth-seven-box", "configure uth-online", "join player-1", "bet player-1", "bet player-2", "change",
    "take back", "leave with bets", "come back", "deal", "decide player-1", "leave in play", "second device", "flop",
    "decide at the flop", "river", "results", "next", "second deal", "second decision", "pause", "propose", "approve",
    "void", "leave player-1", "end player-1", "close player-1", "empty",
)  # fmt: skip
"""The steps whose writes are parted. The others are the like of these, or of a session's life without tables."""
QUICK = ("bet player-1", "second device", "approve")


@pytest.fixture(scope="module")
def processes() -> Iterator[subprocess.Popen[str]]:
    with forking("tests.integration.test_crash_tables") as process:
        yield process


@pytest.fixture(scope="module")
def points(processes: subprocess.Popen[str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The commits of each step, as a life without a kill makes them."""
    folder = tmp_path_factory.mktemp("whole")
    lives(folder, begin(processes, folder))
    verify_evening(folder)
    found: dict[str, list[str]] = {}
    for point in (folder / "points.txt").read_text("ascii").splitlines():
        found.setdefault(point.partition("/")[0], []).append(point)
    return found


def begin(processes: subprocess.Popen[str], folder: Path, kill_at: str = "", *, recover_first: bool = False) -> int:
    if not (folder / "rgs.db").exists():
        create_store(folder / "rgs.db", STORE_EPOCH)
    return live(processes, {"folder": str(folder), "kill_at": kill_at, "recover_first": recover_first})


def lives(folder: Path, status: int) -> None:
    error = folder / "error.txt"
    assert status == 0, error.read_text("utf-8") if error.exists() else status


def verify_left(folder: Path) -> None:
    """What a dead process left is in order as far as it goes."""
    verify_numbers(stored_statements(folder))
    if stored_statements(folder):
        failures, _ = replay_lines(export_lines(folder))
        assert failures == [], failures
    with closing(connect(folder / "rgs.db", read_only=True)) as connection:
        query = (
            "SELECT count(*) FROM sessions s LEFT JOIN sittings p ON p.session_id = s.session_id"
            " WHERE s.reserved_minor <> COALESCE(p.reserved_minor, 0)"
        )
        assert connection.execute(query).fetchone() == (0,)


def verify_evening(folder: Path) -> None:
    """The evening was played once, whoever died where."""
    summary = verify_books(folder)
    kinds = Counter(row.kind for row in stored_statements(folder))
    assert (kinds["table_round"], kinds["table_seats"], kinds["table_deal"], kinds["table_final"]) == (3, 3, 3, 3)
    assert (kinds["seat_opening"], kinds["seat_final"]) == (5, 5)
    assert (kinds["session_open"], kinds["session_close"], summary.is_cut) == (4, 4, False)
    finals = [read_statement(row.envelope) for row in stored_statements(folder) if row.kind == "seat_final"]
    assert Counter(final["status"] for final in finals) == {"settled": 4, "void": 1}
    seats = Counter((final["round_id"], final["seat_no"]) for final in finals)
    assert set(seats.values()) == {1}
    events = Counter(read_statement(row.envelope)["code"] for row in stored_statements(folder) if row.kind == "event")
    assert {code: events[code] for code in ("TABLE_CONFIGURED", "MALFUNCTION", "VOID_PROPOSED")} == {
        "TABLE_CONFIGURED": 2, "MALFUNCTION": 1, "VOID_PROPOSED": 1,
    }  # fmt: skip
    with closing(connect(folder / "rgs.db", read_only=True)) as connection:
        ask = connection.execute
        assert ask("SELECT count(*) FROM sittings").fetchone() == (0,)
        assert ask("SELECT count(*) FROM sessions WHERE reserved_minor > 0").fetchone() == (0,)
        assert ask("SELECT count(*) FROM table_rounds WHERE length(sealed) > 0 OR status = 'open'").fetchone() == (0,)


def kill_at_each(processes: subprocess.Popen[str], folder: Path, points: list[str], *, again: int = 0) -> None:
    """Kill at each of the points, in an evening of its own; `again` kills the next process, too, at that commit."""
    assert points
    for number, point in enumerate(points):
        home = folder / str(number)
        home.mkdir()
        assert begin(processes, home, point) == -signal.SIGKILL, f"{point} was not reached"
        verify_left(home)
        if again:
            when = ("before", "after")[number % 2]
            assert begin(processes, home, f"commit {again} {when}", recover_first=True) == -signal.SIGKILL
            verify_left(home)
        lives(home, begin(processes, home, recover_first=number // 2 % 2 == 0))
        verify_evening(home)


@pytest.mark.parametrize("step", QUICK)
def test_killed_in_a_few_steps(
    tmp_path: Path, processes: subprocess.Popen[str], points: dict[str, list[str]], step: str
) -> None:
    kill_at_each(processes, tmp_path, points[step])


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("step", [step for step in STEPS if step not in QUICK])
def test_killed_between_every_two_writes(
    tmp_path: Path, processes: subprocess.Popen[str], points: dict[str, list[str]], step: str
) -> None:
    kill_at_each(processes, tmp_path, points[step])


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("again", [4, 5, 6, 7])
def test_killed_again_while_the_dealer_goes_on(
    tmp_path: Path, processes: subprocess.Popen[str], points: dict[str, list[str]], again: int
) -> None:
    kill_at_each(processes, tmp_path, points["deal"][::3] + points["results"][::3], again=again)


if __name__ == "__main__":
    main()
