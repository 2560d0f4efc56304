"""Three tables over one store, for tests in which anything may happen at any time.

`World` has the process that lives there now, its guests and admins; `take` does one thing, `verify` looks at the disk
after it, `finish` plays everything out. What the store holds is read by connections of its own.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from rgs.core.errors import RgsError, TableStateError, UnavailableError
from rgs.core.tables.machine import State
from rgs.service.callers import Caller, Reply, Role
from rgs.service.play.requests import CloseSession, EndParticipation
from rgs.store.sqlite.store import connect
from tests.support.clocks import NOW_MS, ManualClock
from tests.support.service.guards import cleared
from tests.support.service.harness import OPERATOR, ServiceHarness, read_reply
from tests.support.service.tables import ADMIN, ALWAYS, SECOND_ADMIN, Evening, Sitter, config_text

TABLES = ("uth-online", "uth-seven-box", "uth-lugano")
OTHER = Caller("op-2", Role.OPERATOR, "demo")
GUESTS = (("player-0", OPERATOR), ("player-1", OPERATOR), ("player-2", OTHER), ("player-3", OTHER))
WITHOUT_BETS = {State.SHUT, State.IDLE, State.DECIDING, State.SETTLING, State.RESULT}
"""Here nothing is reserved at a table."""
REVEALED = {State.SETTLING, State.VOIDING, State.RESULT}
BOARD = {"preflop": 0, "flop": 3, "river": 5}
DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
OFFICE = {"zone": "UTC", "spans": [{"days": DAYS, "opens": "00:00", "closes": "23:59"}]}
CALM = (
    *["bet"] * 6, *["bets"] * 4, *["decide"] * 6, *["decisions"] * 4, *["due"] * 10, *["look"] * 4, *["sit"] * 4,
    "take back", "leave", "device", "end",
    "repeat", "double", "stale", "buy", "tick", "tick", "boundary",
)  # fmt: skip
TROUBLE = (
    "pause", "pause", "cancel", "void", "void", "void", "shut", "configure", "configure", "bar", "free", "reserve",
    "guard", "jump", "late", "repair", "repair", "repair", "repair",
)  # fmt: skip


class RunningClock(ManualClock):
    """Each look at it takes a millisecond, so that no two moments are the same. It is asked by two threads."""

    def __init__(self, time_ms: int = NOW_MS) -> None:
        self._counting = threading.Lock()
        super().__init__(time_ms)

    @property
    def _passed_ms(self) -> int:
        with self._counting:
            self._now += 1
            return self._now

    @_passed_ms.setter
    def _passed_ms(self, time_ms: int) -> None:
        self._now = time_ms


class Guest(Sitter):
    """A player at one table, with all requests that were answered."""

    def __init__(self, evening: Evening, name: str, caller: Caller) -> None:
        super().__init__(evening, name, caller)
        self.sent: list[tuple[str, Any, Reply]] = []
        self.bought = 1
        self._opening = asyncio.Lock()

    @property
    def is_seated(self) -> bool:
        return bool(self.seat) and not self.seat["ended"]

    async def _send(self, method: str, request: object) -> None:
        reply = await self.ask(method, request)
        self.sent.append((method, request, reply))
        self._take(read_reply(reply))

    async def ask(self, method: str, request: object) -> Reply:
        reply: Reply = await getattr(self.evening.harness.tables.seats, method)(self.caller, request)
        return reply

    async def enter(self, box: int) -> None:
        """Sit down, with a session that has money. Two calls at a time make one session: of two, one would be forgotten
        with its seat.
        """
        async with self._opening:
            if not self.session_id:
                await self.open()
        await self.join(box)

    async def go(self) -> None:
        """Give seat, participation and session back, as far as they are there. The next session is a new one."""
        harness = self.evening.harness
        if not self.session_id:
            return
        await self.look()
        if self.is_seated:
            await self.leave()
        session = await harness.store.session(self.session_id)
        assert session is not None
        if session.participation_id and not session.participation.ended:
            await harness.send(EndParticipation(harness.request_id(), self.session_id), self.caller)
        await harness.send(CloseSession(harness.request_id(), self.session_id), self.caller)
        self.session_id, self.bought, self.seat, self.sent = "", 1, {}, []


class World:
    """Tables, guests, admins and a process. `reasons` counts what was refused."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.chance = folder, random.Random(seed)
        self.clock = RunningClock() if seed % 2 else ManualClock()
        self.harness = ServiceHarness(folder, clock=self.clock)
        operators = [OPERATOR.party, OTHER.party]
        hours = dict.fromkeys(TABLES, ALWAYS if seed % 3 else OFFICE)
        names = self.chance.sample(TABLES, self.chance.choice((1, 1, 2, 3)))
        rows = {"operators": operators, "tables_beside": True}
        self.evenings = [Evening(self.harness, name, hours=hours[name], **rows) for name in names]
        self.guests = [Guest(evening, name, caller) for evening in self.evenings for name, caller in GUESTS]
        self.reasons: Counter[str] = Counter()
        self._versions: dict[str, int] = {}
        self._configs = dict.fromkeys(TABLES, 1)
        self._trouble = self.chance.choice((0, 10, 25))
        """Of a hundred things that happen."""
        self._jumped_ms = 0

    async def open(self) -> None:
        await self.harness.start()
        for evening in self.evenings:
            await evening.open()

    # --- the process --------------------------------------------------------------------------------------------------

    async def restart(self, how: str) -> None:
        await self._set_right()
        await self.harness.stop(ended=how == "stop")
        self.clock.tick(self.chance.choice((10, 1_000, 12_000)))
        self.harness = ServiceHarness(self.folder, clock=self.clock)
        for evening in self.evenings:
            evening.harness = self.harness
        await self.harness.start()

    async def settle(self) -> None:
        """What the dealer has begun comes to its end."""
        dealer = self.harness.tables.dealer
        await dealer.poll()
        while dealer._under_way:
            await dealer.poll()

    # --- one thing that happens ---------------------------------------------------------------------------------------

    def pick(self) -> str:
        """What happens next."""
        return self.chance.choice(TROUBLE if self.chance.randrange(100) < self._trouble else CALM)

    async def take(self, what: str) -> None:
        """Let it happen to somebody, somewhere. What is refused is counted; a store that fails is a defect."""
        guest, evening = self.chance.choice(self.guests), self.chance.choice(self.evenings)
        if what in {"bets", "decisions"}:
            here = [guest for guest in self.guests if guest.evening is evening]
            await asyncio.gather(*(self._tried(what[:3] if what == "bets" else "decide", one, evening) for one in here))
        else:
            await self._tried(what, guest, evening)

    async def _tried(self, what: str, guest: Guest, evening: Evening) -> None:
        try:
            await self._taken(what, guest, evening)
        except UnavailableError as error:
            if error.reason.startswith("STORE"):
                raise
            self.reasons[error.reason] += 1
        except RgsError as error:
            self.reasons[error.reason] += 1

    async def _taken(self, what: str, guest: Guest, evening: Evening) -> None:
        chance, clock = self.chance, self.clock
        match what:
            case "sit":
                await guest.enter(chance.choice((0, 0, 1, 2, 3, 7)))
            case "bet" | "take back" | "decide" | "device" | "leave" | "buy" | "repeat" | "double" | "stale" | "end":
                if guest.session_id:
                    await self._played(what, guest)
            case "due":
                await self._pass_time(evening)
            case "look":
                await evening.look()
            case "tick":
                clock.tick(chance.randrange(3_000))
            case "boundary" | "late":
                deadline_ms = (await evening.row()).table.deadline_ms
                past_ms = chance.choice((-1, 0, 0, 1)) if what == "boundary" else 10_001
                if deadline_ms:
                    clock.tick(max(0, deadline_ms + past_ms - clock.now_ms()))
            case "jump":
                self._jumped_ms += (jump_ms := chance.choice((-3_600_000, 3_600_000, 90_000)))
                clock.jump(jump_ms)
            case "repair":
                await self._repaired()
            case _:
                await self._ordered(what, guest, evening)

    async def _played(self, what: str, guest: Guest) -> None:
        chance = self.chance
        if chance.randrange(6) or not guest.seat:
            await guest.look()
        if not guest.is_seated and chance.randrange(4):
            what = "device"
        round_id = (await guest.evening.row()).table.round_id if chance.randrange(2) else ""
        match what:
            case "bet":
                trips = {"trips": 500 * chance.randrange(1, 4)} if chance.randrange(3) == 0 else {}
                await guest.bet(round_id, ante=500 * chance.randrange(1, 12), **trips)
            case "take back":
                await guest.bet(round_id)
            case "decide" if guest.seat["round"] is not None and guest.legal:
                await guest.decide(chance.choice(guest.legal))
            case "device":
                await guest.join(0)
            case "leave":
                await guest.leave()
            case "end":
                await guest.go()
            case "buy":
                await guest.buy(1_000 * chance.randrange(1, 9), guest.session["next_purchase_no"])
            case "repeat" | "double" if guest.sent:
                method, request, reply = chance.choice(guest.sent)
                copies = await asyncio.gather(*(guest.ask(method, request) for _ in range(1 + (what == "double"))))
                assert copies == [reply] * len(copies), "answered otherwise before"
            case "stale" if guest.sent:
                method, request, _ = chance.choice(guest.sent)
                await guest._send(method, type(request)(**{**_fields(request), "request_id": guest._id()}))
            case _:
                pass

    async def _ordered(self, what: str, guest: Guest, evening: Evening) -> None:
        """What admins do."""
        harness, admin, table = self.harness, self.harness.tables.admin, evening.config.id
        say: Callable[[], str] = harness.request_id
        row = (await evening.row()).table
        match what:
            case "pause":
                await admin.pause(ADMIN, say(), table, "CARD_READER")
            case "cancel":
                await admin.cancel(ADMIN, say(), table, "EXAMINED")
            case "void":
                who = self.chance.choice((ADMIN, SECOND_ADMIN))
                if row.round_id:
                    await admin.void(who, say(), table, row.round_id, "MISDEAL")
            case "shut":
                await admin.set_open(ADMIN, say(), table, is_open=False, reason="ORDERED")
            case "bar" | "free":
                operator = guest.caller.party
                await admin.bar(ADMIN, say(), table, operator, guest.name, barred=what == "bar", reason="CHEATING")
            case "reserve":
                is_held = bool(self.chance.randrange(2))
                names = (guest.caller.party, guest.name) if is_held else ("", "")
                await admin.reserve(ADMIN, say(), table, self.chance.randrange(1, 8), *names, "GUEST")
            case "guard":
                if self.harness.services.availability.guard("rules").code:
                    harness.services.availability.open_guard("rules")
                else:
                    harness.services.availability.close_guard("rules", "FILES_CHANGED", self.clock.now_ms())
            case "configure":
                await self._configured(evening)
            case _:
                raise AssertionError(what)

    async def _repaired(self) -> None:
        """The clock is set right, guards are cleared, tables go on."""
        await self._set_right()
        harness, admin = self.harness, self.harness.tables.admin
        harness.services.availability.open_guard("rules")
        for evening in self.evenings:
            with suppress(TableStateError):
                await admin.resume(ADMIN, harness.request_id(), evening.config.id, "EXAMINED")
            if (await evening.row()).is_shut:
                await admin.set_open(ADMIN, harness.request_id(), evening.config.id, is_open=True, reason="ORDERED")

    async def _set_right(self) -> None:
        self.clock.jump(-self._jumped_ms)
        self._jumped_ms = 0
        self.clock.accept()
        self.clock.let_go()
        if self.harness.services.availability.guard("clock").latched:
            await cleared(self.harness)

    async def _configured(self, evening: Evening) -> None:
        """The next version of a table, with other timers, hours, places or manners."""
        chance, name = self.chance, evening.config.id
        version = self._configs[name] = self._configs[name] + 1
        timers = {"betting_ms": 12_000, "amber_ms": 3_000, "decision_ms": 9_000, "result_ms": 4_000}
        other: dict[str, Any] = chance.choice((
            {"timers": timers}, {"early_close": chance.randrange(2) == 0}, {"hours": OFFICE}, {"hours": ALWAYS},
            {"tables_beside": chance.randrange(2) == 0}, {"seats": chance.choice((2, 7))},
        ))  # fmt: skip
        operators = [OPERATOR.party, OTHER.party]
        text = config_text(name, **{"operators": operators, "hours": ALWAYS, **other, "version": version})
        await self.harness.tables.admin.configure(ADMIN, self.harness.request_id(), text, "NEW_VERSION")

    async def _pass_time(self, evening: Evening) -> None:
        due_ms = (await evening.row()).due_ms
        if self.clock.is_trusted and due_ms:
            self.clock.tick(max(0, min(due_ms - self.clock.now_ms(), 60_000)))
        await evening.look()

    # --- what must hold at any time -----------------------------------------------------------------------------------

    async def verify(self) -> None:
        """No money is reserved that is not bet, no table goes back, no card is seen too soon."""
        with closing(connect(self.folder / "rgs.db", read_only=True)) as connection:
            verify_rows(connection.execute, self._versions)
        for evening in self.evenings:
            assert await self.harness.store.reserved_breaks(evening.config.id, "", 100) == []
            for caller in (OPERATOR, OTHER, ADMIN):
                verify_shown(await evening.view(caller))
        for guest in self.guests:
            if guest.session_id:
                _, seat = await self.harness.tables.views.seat(guest.caller, guest.session_id)
                row, round_ = (await guest.evening.row()).table, seat.round
                if round_ is not None and round_.round_id == row.round_id and not row.final:
                    assert round_.dealer_cards == ()
                    assert len(round_.board) == (BOARD[row.phase.value] if row.phase else 0)
                    assert row.phase is not None or round_.hole_cards == ()

    # --- the end ------------------------------------------------------------------------------------------------------

    async def finish(self) -> None:
        """Everything is played out, everybody leaves."""
        await self._repaired()
        await self.settle()
        for guest in self.guests:
            await self._until(guest.go, guest.evening)
        for evening in self.evenings:
            for _ in range(20):
                if await evening.state() in {State.IDLE, State.SHUT}:
                    break
                await self._played_on(evening)
            assert await evening.state() in {State.IDLE, State.SHUT}
        await self.harness.settle()
        with closing(connect(self.folder / "rgs.db", read_only=True)) as connection:
            assert connection.execute("SELECT count(*) FROM sittings").fetchone() == (0,)
            assert connection.execute("SELECT count(*) FROM sessions WHERE reserved_minor > 0").fetchone() == (0,)
            assert connection.execute("SELECT count(*) FROM rounds WHERE status = 'open'").fetchone() == (0,)
            assert connection.execute("SELECT count(*) FROM table_rounds WHERE length(sealed) > 0").fetchone() == (0,)
            assert connection.execute("SELECT count(*) FROM table_rounds WHERE final = ''").fetchone() == (0,)

    async def _until(self, done: Callable[[], Awaitable[None]], evening: Evening) -> None:
        reasons = []
        for _ in range(40):
            try:
                await done()
            except RgsError as error:
                reasons.append(error.reason)
                await self.harness.sessions.recover()  # as the server does: an operation that a kill cut short
                await self._played_on(evening)
            else:
                return
        raise AssertionError(f"{evening.config.id} is {(await evening.row()).table}: {reasons}")

    async def _played_on(self, evening: Evening) -> None:
        """The table goes a step further, whatever stands in its way."""
        harness, admin, table = self.harness, self.harness.tables.admin, evening.config.id
        if await evening.state() is State.PAUSED:
            try:
                await admin.resume(ADMIN, harness.request_id(), table, "EXAMINED")
            except TableStateError:  # too many windows
                round_id = (await evening.row()).table.round_id
                for who in (ADMIN, SECOND_ADMIN):
                    with suppress(RgsError):
                        await admin.void(who, harness.request_id(), table, round_id, "MISDEAL")
        await self._pass_time(evening)
        await self.settle()


def _fields(request: Any) -> dict[str, Any]:
    return {name: getattr(request, name) for name in request.__match_args__}


def verify_rows(run: Callable[[str], Any], versions: dict[str, int]) -> None:
    """What sessions, seats, rounds and tables say of one another on the disk; `versions` are those of the last look."""
    unequal = """
        SELECT s.session_id, s.reserved_minor, p.reserved_minor FROM sessions s
        LEFT JOIN sittings p ON p.session_id = s.session_id WHERE s.reserved_minor <> COALESCE(p.reserved_minor, 0)
    """
    assert run(unequal).fetchall() == []
    over = """
        SELECT session_id FROM sessions WHERE reserved_minor > bought_minor - staked_minor + returned_minor
        OR reserved_minor < 0 OR staked_minor > bought_minor + returned_minor
    """
    assert run(over).fetchall() == []
    seats = run("SELECT table_id, reserved_minor, seat_no, bets FROM sittings").fetchall()
    tables = run("SELECT table_id, state, paused_from, version, round_id, deal FROM tables").fetchall()
    playing = {row[0] for row in run("SELECT DISTINCT round_id FROM rounds WHERE status = 'open'").fetchall()}
    for table_id, state, paused_from, version, round_id, deal in tables:
        assert version >= versions.get(table_id, 0), f"{table_id} went back"
        versions[table_id] = version
        stands = State(paused_from or state)
        for _, reserved, seat_no, bets in (seat for seat in seats if seat[0] == table_id):
            assert (reserved > 0) == (bets != "[]")
            assert not (reserved and stands in WITHOUT_BETS), f"{table_id} is {state} with bets"
            assert bool(seat_no) == bool(reserved and stands in {State.FIXED, State.OPENING, State.VOIDING}), stands
        if round_id in playing:
            assert deal, "a seat without a deal"
            assert stands in {State.OPENING, State.DECIDING, State.SETTLING, State.VOIDING}
        playing.discard(round_id)
    assert not playing, "seats of a round that nobody plays"


def verify_shown(view: Any) -> None:
    """No more cards than the phase shows; the dealer's and those of boxes only at the end."""
    if (view.paused_from or view.state) in REVEALED:
        return
    assert (view.dealer_cards, view.dealer_hand, view.table_final) == ((), None, b""), view.state
    assert not any(box.hole_cards for box in view.boxes)
    assert len(view.board) == (BOARD[view.phase.value] if view.phase else 0), view.state
    assert view.phase is not None or view.hole_cards == ()
