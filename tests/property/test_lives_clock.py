"""Whole lives while somebody plays with the clocks: the wall clock jumps forward and back and stands, the database's
clock with it or alone, processes stop and die, admins vouch, rounds are left, answers are dropped, requests come late.

Whatever happens, over both stores: no round ends by rule before its idle time has truly passed, no request id takes
effect twice, no stored answer goes within its window, times in a session never fall, money sums to zero, and replay
agrees. What has truly passed is counted by the test, on the clock that nobody sets.
"""

from __future__ import annotations

import asyncio
import tempfile
import uuid
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgs.core.errors import ClocksDifferError, RgsError, VerificationError
from rgs.core.statements import ExportLine, format_line, parse_canonical
from rgs.core.times import format_time
from rgs.node import clock as clocks
from rgs.service.admin.orders import order_of
from rgs.service.callers import Caller, Reply, Role
from rgs.service.idempotency import HOUR_MS, Answers
from rgs.store.address import PostgresAddress
from rgs.store.interface import StatementRow
from rgs.store.opening import open_parties, open_store
from tests.property.test_lives_whole import PHASES, entropy_of
from tests.support.clocks import ManualClock
from tests.support.service.harness import (
    ACCOUNT_MINOR,
    NODE_KEY,
    Request,
    ServiceHarness,
    read_reply,
    read_statement,
    round_document,
    sealed,
    session_document,
)
from tests.support.service.oracles import replay_lines, verify_numbers
from tests.support.service.player import Player
from tests.support.store.databases import fresh_database

FINISH_MS: Final = 600_000
WINDOW_H: Final = 24
DAY_MS: Final = 86_400_000
ADMIN: Final = Caller("admin-1", Role.ADMIN, "")
JUMPS: Final = (-10 * DAY_MS, -3_600_000, -3_000, -1_500, 1_500, 3_000, 700_000, 3_600_000, 2 * DAY_MS, 10 * DAY_MS)
PASSES: Final = (1, 1_000, 20_000, 590_000, 600_000, 700_000, HOUR_MS, 7 * HOUR_MS, 25 * HOUR_MS)


class Step(NamedTuple):
    """One thing that happens; `number` is which, how much or how long."""

    what: str
    number: int


WHAT: Final = [
    *["next"] * 6, "repeat", "repeat", "late_open", *["jump"] * 3, "jump_both", "database", "stand", "right",
    *["pass"] * 4, "poll", "poll", "vouch", "rule", "rule", "rule", "clean", "clean", "recover", "stop", "die",
]  # fmt: skip
SEATED: Final = [Step("next", 0), Step("next", 0), Step("next", 4), Step("pass", 2), Step("poll", 0)]
"""Anna has a round in play."""
LIFE = st.lists(st.builds(Step, st.sampled_from(WHAT), st.integers(0, 999)), min_size=5, max_size=45)


class Time:
    """A folder or database, the process over it, two players, and what has truly passed."""

    def __init__(self, folder: Path, database: PostgresAddress | None) -> None:
        self._folder, self._database = folder, database
        self.clock = ManualClock()
        self.clock.boot = "one-boot"
        self.refused = 0
        """Starts that were refused because the clock was behind the node key."""
        self.players: list[Player] = []
        self.effects: dict[str, str] = {}
        """Request id of an opening -> its session."""
        self.touched: dict[str, int] = {}
        """Session -> when something last happened in it, truly."""
        self.answered: dict[str, tuple[Request, Reply, int]] = {}
        self.ruled: set[str] = set()

    async def begin(self) -> None:
        stores: dict[str, Any] = {}
        if self._database is not None:
            stores = {"store": await open_store(self._database), "parties": await open_parties(self._database)}
        self.harness = ServiceHarness(self._folder, clock=self.clock, **stores)
        self.answers = Answers(self.harness.store, self.clock, WINDOW_H, str(uuid.uuid4()))
        for player in self.players:
            player.harness = self.harness
        try:
            await self.harness.start()
        except VerificationError:  # what it signed nobody could verify: it waits until somebody sets the clocks right
            self.refused += 1
            await self.harness.stop(ended=False)
            self.clock.ahead_ms = self.clock.database_ahead_ms = 0
            self.clock = self.clock.again()
            await self.begin()

    async def restart(self, *, ended: bool) -> None:
        """The next process finds the clocks as they are: it knows nothing of what the last one trusted."""
        await self.harness.stop(ended=ended)
        self.clock = self.clock.again()
        await self.begin()

    @property
    def truly_ms(self) -> int:
        return self.clock._passed_ms

    # --- what happens ---

    async def take(self, step: Step) -> None:
        number = step.number
        match step.what:
            case "next":
                await self.next(self.players[number % len(self.players)], number)
            case "repeat" if self.answered:
                request, reply, _ = list(self.answered.values())[number % len(self.answered)]
                await self.repeat(request, reply)
            case "late_open" if self.effects:
                request, reply, _ = self.answered[list(self.effects)[number % len(self.effects)]]
                await self.repeat(request, reply)
            case "rule":
                await self.rule()
            case "clean":
                await self.clean()
            case "recover":
                await self.harness.sessions.recover()
            case "stop" | "die":
                await self.restart(ended=step.what == "stop")
            case _:
                await self.turn(step.what, number)

    async def turn(self, what: str, number: int) -> None:
        """What is done with clocks, and what the server makes of it."""
        match what:
            case "jump":
                self.clock.jump(JUMPS[number % len(JUMPS)])
            case "jump_both":
                self.clock.jump(JUMPS[number % len(JUMPS)])
                self.clock.database_ahead_ms += JUMPS[number % len(JUMPS)]
            case "database":
                self.clock.database_ahead_ms += JUMPS[number % len(JUMPS)]
            case "stand":
                passes_ms = PASSES[number % len(PASSES)]
                self.clock.tick(passes_ms)
                self.clock.jump(-passes_ms)
            case "right":
                self.clock.ahead_ms = self.clock.database_ahead_ms = 0
            case "pass":
                self.clock.tick(PASSES[number % len(PASSES)])
            case "poll":
                await self.harness.services.monitor.poll()
                await self.harness.services.monitor.follow()
            case "vouch":
                order = order_of(ADMIN, "ClearGuard", str(uuid.uuid4()), name="clock")
                try:
                    await self.harness.services.admin.clear_guard(order, "clock", "SEEN_ON_MY_WATCH")
                except ClocksDifferError:
                    assert self.clock.differs, "an admin's word was refused, and no clock contradicts it"
            case _:
                pass

    async def next(self, player: Player, number: int) -> None:
        if not player.session:
            request: Request = player.opening()
        elif player.round and player.round["status"] == "open":
            legal = [action for action, _, available in player.round["legal_actions"] if available]
            request = player.decision(legal[number % len(legal)])
        elif player.session["ended"]:
            request = player.closing()
        elif not player.session["participation_id"]:
            request = player.purchase(5_000)
        elif number % 9 == 0 or player.session["largest_ante_minor"] < 20:
            request = player.ending()
        else:
            request = player.starting(20)
        try:
            reply = await self.harness.send(request, player.caller)
        except RgsError:
            await self.refresh(player)
            return
        player.take(request, reply)
        self.answered[request.request_id] = (request, reply, self.truly_ms)
        self.touched[player.session_id] = self.truly_ms
        if request.request_id not in self.effects and type(request).__name__ == "OpenSession":
            self.effects[request.request_id] = player.session_id
        if player.session["status"] == "closed":
            player.session, player.round = {}, {}

    async def refresh(self, player: Player) -> None:
        if player.session:
            view, _ = await self.harness.sessions.get(player.caller, player.session_id)
            player.session = session_document(view)
            player.round = {} if view.open_round is None else round_document(view.open_round)
            if player.session["status"] == "closed":
                player.session, player.round = {}, {}

    async def repeat(self, request: Request, reply: Reply) -> None:
        """Within the window the very answer; later nothing that takes effect."""
        _, _, answered_ms = self.answered[request.request_id]
        is_young = self.truly_ms - answered_ms < WINDOW_H * HOUR_MS
        try:
            again = await self.harness.send(request)
        except RgsError:
            assert not is_young, "an answer was dropped within its window"
            return
        if is_young:
            assert again == reply, "answered otherwise within the window"
        result = read_reply(again)["session"]["session_id"]
        assert result == self.effects.get(request.request_id, read_reply(reply)["session"]["session_id"]), "took effect"

    async def rule(self) -> None:
        """Whatever ends by rule has been left alone for its period, truly."""
        before = {round_.round_id: round_ for _, round_ in await self.harness.store.open_rounds("", after=0, limit=100)}
        await self.harness.services.interruptions.finish_due()
        after = {round_.round_id for _, round_ in await self.harness.store.open_rounds("", after=0, limit=100)}
        for round_id in before.keys() - after:
            idle_ms = self.truly_ms - self.touched[before[round_id].session_id]
            assert idle_ms >= FINISH_MS, f"a round was ended after {idle_ms} ms"
            self.touched[before[round_id].session_id] = self.truly_ms
            self.ruled.add(round_id)
        for player in self.players:
            await self.refresh(player)

    async def clean(self) -> None:
        for _ in range(5):
            await self.answers.poll()
        for request, reply, answered_ms in self.answered.values():
            if self.truly_ms - answered_ms < WINDOW_H * HOUR_MS:
                method = type(request).__name__
                kept = await self.harness.store.answer("op-1", method, request.request_id)
                assert kept is not None, "an answer was dropped within its window"
                assert kept.body == reply.body

    # --- the end ---

    async def finish(self) -> None:
        """The clocks are right, everybody leaves. A session from a time that the clocks were set back from waits until
        it comes: the regulator takes no message from the future.
        """
        self.clock.ahead_ms = self.clock.database_ahead_ms = 0
        rows = await self.harness.store.sessions_of("op-1", "", open_only=True, before=0, limit=200)
        self.clock.tick(max(0, *[session.last_ms - self.truly_ms for _, session in rows], 0))
        for _ in range(3):
            self.clock.tick(1_000)
            await self.take(Step("poll", 0))
        await self.take(Step("vouch", 0))
        assert self.clock.is_trusted
        for player in self.players:
            for _ in range(20):
                await self.refresh(player)
                if not player.session:
                    break
                if player.round and player.round["status"] == "open":
                    legal = [action for action, _, available in player.round["legal_actions"] if available]
                    await player.act(legal[-1])
                elif player.session["participation_id"] and not player.session["ended"]:
                    await player.end()
                else:
                    await player.close()
            else:
                raise AssertionError(f"{player.name} cannot leave")
        with suppress(RgsError):
            await self.harness.settle()
        await self.verify_openings()

    async def verify_openings(self) -> None:
        """As many sessions as requests that opened one."""
        rows = await self.harness.store.sessions_of("op-1", "", open_only=False, before=0, limit=200)
        opened = [session.session_id for _, session in rows if session.link_no]
        assert sorted(opened) == sorted(self.effects.values())

    async def verify_statements(self) -> None:
        """Over all that was signed: numbers, times within sessions, money, replay."""
        rows = [row async for row in self.harness.store.statements_in_order()]
        verify_numbers(rows)
        last: defaultdict[str, str] = defaultdict(str)
        bought: defaultdict[str, int] = defaultdict(int)
        for row in rows:
            body = read_statement(row.envelope)
            if row.session_id:
                assert body["time"] >= last[row.session_id], "time fell within a session"
                last[row.session_id] = body["time"]
            if row.kind == "purchase":
                bought[row.session_id] += int(body["amount_minor"])
            elif row.kind == "round_final":
                bought[row.session_id] += int(body["returned_minor"]) - int(body["staked_minor"])
            elif row.kind == "participation_end":
                assert bought.pop(row.session_id) == int(body["paid_out_minor"])
        assert not any(bought.values()), "money has stayed in a session"
        failures, _ = replay_lines(exported(rows, await self.harness.store.instances(alive_only=False)))
        assert failures == [], failures
        for player in self.players:
            with suppress(RgsError):
                left_minor, own = await self.harness.balance(player.name), await self.sessions_of(player)
                finals = [read_statement(row.envelope) for row in rows if row.kind == "round_final"]
                won = [
                    int(body["returned_minor"]) - int(body["staked_minor"])
                    for body in finals
                    if body["session_id"] in own
                ]
                assert left_minor == ACCOUNT_MINOR + sum(won)

    async def sessions_of(self, player: Player) -> set[str]:
        rows = await self.harness.store.sessions_of("op-1", player.name, open_only=False, before=0, limit=200)
        return {session.session_id for _, session in rows}


def exported(rows: Sequence[StatementRow], instances: Sequence[Any]) -> list[bytes]:
    """The export of a server whose last instance runs still."""
    scope = {
        "instances": [{"first": "1", "instance": one.instance, "last": str(one.statement_no)} for one in instances],
        "kind": "export_scope",
        "reason": "UNFINISHED",
        "sessions": [],
        "time": format_time(1_900_000_000_000),
    }
    lines = [format_line(ExportLine(sealed(scope, NODE_KEY), None))]
    privates = [parse_canonical(row.private) if row.private else None for row in rows]
    return lines + [format_line(ExportLine(row.envelope, block)) for row, block in zip(rows, privates, strict=True)]


async def live(folder: Path, database: PostgresAddress | None, life: Sequence[Step]) -> Time:
    time = Time(folder, database)
    await time.begin()
    time.players += [Player(time.harness, name=name) for name in ("anna", "bert")]
    try:
        for step in life:
            await time.take(step)
        await time.finish()
        await time.verify_statements()
    finally:
        await time.harness.stop(ended=False)
    return time


def lived(store: str, life: Sequence[Step], seed: int) -> Time:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack, entropy_of(seed):
        database = stack.enter_context(fresh_database()) if store == "postgres" else None
        return asyncio.run(live(Path(folder), database, life))


@pytest.mark.parametrize(("store", "examples"), [("sqlite", 60), ("postgres", 12)])
def test_no_clock_moves_anybodys_money(store: str, examples: int) -> None:
    @settings(max_examples=examples, phases=PHASES)
    @given(LIFE, st.integers(0, 1 << 32))
    def every_life(life: list[Step], seed: int) -> None:
        lived(store, [*SEATED, *life], seed)

    every_life()


# --- the oracle sees it -----------------------------------------------------------------------------------------------

ATTACK: Final = [*SEATED, Step("clean", 0), Step("jump", 9), Step("poll", 0), Step("rule", 0), Step("clean", 0)]


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_an_ordinary_life_ends_by_rule_and_by_window(store: str) -> None:
    """The steps are not empty: without jumps rounds do end by rule, and answers go."""
    day = [Step("pass", 6), Step("clean", 0)]
    time = lived(store, [*SEATED, Step("clean", 0), Step("pass", 4), Step("rule", 0), *day * 60, Step("repeat", 0)], 7)
    assert len(time.ruled) == 1


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_the_attack_ends_nothing(store: str) -> None:
    assert lived(store, [*ATTACK, Step("late_open", 0)], 7).ruled == set()


def test_the_oracle_sees_time_that_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock as it was before: the wall clock's time, whatever it is."""
    monkeypatch.setattr(clocks.SystemClock, "now_ms", lambda self: self._wall_ms())
    monkeypatch.setattr(clocks.SystemClock, "passed_ms", lambda self, since_ms: self._wall_ms() - since_ms)
    with pytest.raises(AssertionError, match="a round was ended after"):
        lived("sqlite", ATTACK, 7)


def test_the_oracle_sees_an_answer_dropped_early(monkeypatch: pytest.MonkeyPatch) -> None:
    async def careless(self: Answers) -> int:
        return await self._store.forget_answers(self._clock.now_ms(), self._clock.now_ms() + 1)

    monkeypatch.setattr(Answers, "poll", careless)
    with pytest.raises(AssertionError, match="dropped within its window"):
        lived("sqlite", ATTACK, 7)


def test_the_oracle_sees_a_second_session(monkeypatch: pytest.MonkeyPatch) -> None:
    async def forgetful(*_: Any) -> None:
        return None

    async def unsaid(*_: Any) -> None:
        return None

    monkeypatch.setattr("rgs.store.interface.StoreReads.answer", unsaid)
    monkeypatch.setattr("rgs.store.outbox.OutboxReads.opening_of_request", forgetful)
    with pytest.raises((AssertionError, RgsError)):
        lived("sqlite", [Step("next", 0), Step("late_open", 0)], 7)
