"""Takes the steps of tables when they are due (docs/tables.md; ARCHITECTURE 2.22).

`advance` reads a table, asks the state machine which step is due, and commits it; any process may do so at any time,
because a commit holds only at the version that was read. `poll` finds the tables that are due: the process that leads
takes them at once, the others only what is `OVERDUE_MS` late. Nothing about a table is kept between two calls.

Time is the store's. While this process does not trust its clock, tables with bets or decisions under way are paused,
and no window ends. A table whose round cannot be drawn (a guard is closed, the generator has failed) is paused too.
"""

from __future__ import annotations

import asyncio
from contextvars import Context
from dataclasses import dataclass, field, replace
from typing import Final
from weakref import WeakValueDictionary

import structlog

from rgs.core.clock import Clock
from rgs.core.errors import NotFoundError, RgsError, RngUnavailableError
from rgs.core.tables.config import TableConfig
from rgs.core.tables.machine import Facts, State, Step, due, take
from rgs.core.tables.rows import TableRow
from rgs.observe.catalogue import LATENESS_S
from rgs.observe.histogram import Histogram
from rgs.service.availability import Availability
from rgs.service.events import EventCode, event_draft
from rgs.service.game_catalog import GameCatalog
from rgs.service.instance import Instance
from rgs.service.sealing import DeckSealedError
from rgs.service.tables.chat import Chat
from rgs.service.tables.configs import TableConfigs
from rgs.service.tables.rounds import TableRounds
from rgs.service.tables.seat_rounds import SeatRounds
from rgs.service.tables.signals import Signals
from rgs.store.changes import Change, Record, TableMovedError
from rgs.store.interface import Store
from rgs.store.table_records import BetsStand, ChatMessage, ReservationsLapsed, SeatsLost, SeatsStand

DUTY: Final = "tables"
OVERDUE_MS: Final = 2_000
"""A process that does not lead takes a table that is so late: the leader is gone, or hangs."""
DUE_MAX: Final = 256
"""Tables that one look takes up."""
PATIENCE_S: Final = 0.1
"""How long `poll` waits for the tables that it has begun, in seconds."""
STEPS_MAX: Final = 16
"""Steps that are taken of a table before another one has its turn."""
DEALER_LINES: Final = {
    Step.BEGIN: "BETS_OPEN",
    Step.CLOSE: "BETS_CLOSED",
    Step.PAUSE: "TABLE_PAUSED",
    Step.RESUME: "TABLE_RESUMED",
    Step.VOID: "ROUND_VOID",
}
"""What the dealer says in the chat, by step: codes, which clients put into the player's language."""
CLOCK_UNTRUSTED: Final = "CLOCK_UNTRUSTED"
WINDOW_OVERRUN: Final = "WINDOW_OVERRUN"
"""Codes of malfunctions that pause a table by themselves; others are the reason of the error that stopped it."""

_BY_TIME: Final = frozenset({Step.OPEN, Step.SHUT, Step.BEGIN, Step.CANCEL, Step.REST})
"""Steps that come with time, at a table where nothing is at stake: they wait until time is trusted."""


@dataclass(kw_only=True, eq=False, repr=False)
class Dealer:
    """Takes the steps of the tables over this store."""

    store: Store
    instance: Instance
    games: GameCatalog
    clock: Clock
    availability: Availability
    configs: TableConfigs
    rounds: TableRounds
    seats: SeatRounds
    chat: Chat
    signals: Signals

    _locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary, init=False)
    _under_way: dict[str, asyncio.Task[None]] = field(default_factory=dict, init=False)
    _again: set[str] = field(default_factory=set, init=False)
    """Tables to look at once more, because something has happened since the look began."""
    _failing: dict[str, str] = field(default_factory=dict, init=False)
    """Tables whose last look failed, and why."""
    late: dict[str, Histogram] = field(default_factory=dict, init=False)
    """How late this process took the steps that were due at a time, in seconds, by step."""

    # --- which tables ---------------------------------------------------------------------------------------------

    async def poll(self) -> int:
        """Begin the steps that are due, and wait a little for them; of how many tables. A table that takes longer does
        not hold up the others. The first error of a table is raised.
        """
        before_ms = await self._time()
        if not await self.store.lead(DUTY):
            before_ms -= OVERDUE_MS
        for table_id, _ in await self.store.due_tables(before_ms, DUE_MAX):
            self.look(table_id)
        if self._under_way:
            await asyncio.wait(self._under_way.values(), timeout=PATIENCE_S)
        return self._collect()

    def look(self, table_id: str) -> None:
        """Look at a table soon, without waiting for it: something has happened that may make a step due."""
        task = self._under_way.get(table_id)
        if task is not None and not task.done():
            self._again.add(table_id)
        else:
            if task is not None:
                self._ended(table_id)
            # For everybody at the table: not in the trace of whoever called.
            self._under_way[table_id] = asyncio.create_task(self._look(table_id), context=Context())

    async def _look(self, table_id: str) -> None:
        self._again.add(table_id)
        while table_id in self._again:
            self._again.discard(table_id)
            await self.advance(table_id)

    def _collect(self) -> int:
        """Let go of the tables that are done; how many."""
        done = [table_id for table_id, task in self._under_way.items() if task.done()]
        failures = [failure for table_id in done if (failure := self._ended(table_id)) is not None]
        if failures:
            raise failures[0]
        return len(done)

    def _ended(self, table_id: str) -> BaseException | None:
        """Let go of a table whose look has ended. A new reason why it failed is logged, not the same at every look."""
        failure = self._under_way.pop(table_id).exception()
        if failure is None:
            self._failing.pop(table_id, None)
            return None
        why = _reason_of(failure)
        if self._failing.get(table_id) != why:
            structlog.get_logger().warning("table_stands", table=table_id, why=why)
        self._failing[table_id] = why
        return failure

    async def stop(self) -> None:
        """Wait for the steps that are under way."""
        while self._under_way:  # a look may begin while others end
            await asyncio.wait(self._under_way.values())
            for table_id in [table_id for table_id, task in self._under_way.items() if task.done()]:
                self._ended(table_id)

    async def advance(self, table_id: str) -> None:
        """Take the steps of a table that are due now, one after the other."""
        lock = self._locks.get(table_id)
        if lock is None:
            lock = self._locks[table_id] = asyncio.Lock()
        async with lock:
            for _ in range(STEPS_MAX):
                row, now_ms = await self.read(table_id)
                try:
                    if not await self._advanced(row, now_ms):
                        return
                except TableMovedError:
                    pass  # another process was first, or somebody has bet or decided since

    async def begin(self, row: TableRow, now_ms: int) -> None:
        """BEGIN at an idle table, for its first bet. TableMovedError if another was first, or the table shall shut."""
        config = await self.configs.of(row.next_config or row.config)
        if not self._is_open(row, config, now_ms):
            raise TableMovedError("the table is not open", table=row.table.table_id)
        lines = self.lines(config, Step.BEGIN, now_ms)
        await self.commit(Change(table=self._stepped(row, config, Step.BEGIN, now_ms), records=lines))

    async def read(self, table_id: str) -> tuple[TableRow, int]:
        """The table, and the store's time at which it stood so. NotFoundError."""
        found = await self.store.table(table_id)
        if found is None:
            raise NotFoundError(f"no table {table_id[:64]}", kind="table", field="table", value=table_id[:64])
        row, now_ms = found
        return row, max(self.clock.now_ms() if now_ms is None else now_ms, row.table.step_ms)

    async def _time(self) -> int:
        now_ms = await self.store.clock_ms()
        return self.clock.now_ms() if now_ms is None else now_ms

    # --- which step -----------------------------------------------------------------------------------------------

    async def _advanced(self, row: TableRow, now_ms: int) -> bool:
        """Whether there was something to do."""
        table, config = row.table, await self.configs.of(row.config)
        # Seats may take long: the step after them is taken by the time that it is then.
        if table.state is State.OPENING and await self.store.has_unopened(table.table_id):
            await self.seats.open(row)
            return True
        if table.state in {State.SETTLING, State.VOIDING} and await self._has_unended(row):
            await self.seats.finish(row)
            return True
        facts = await self._facts(row, config, now_ms)
        step = due(table, self.games.clockwork(config), facts, now_ms)
        malfunction = self._malfunction(row, step, facts, config)
        if malfunction:
            step = Step.PAUSE
        elif step in _BY_TIME and not self.clock.is_trusted:
            return False
        if step is None:
            await self._rescheduled(row, config, now_ms)
            return False
        if table.state is State.DECIDING:  # nobody has decided later than the window ends
            now_ms = max(now_ms, await self._time())
        try:
            await self._take(row, config, step, now_ms, malfunction or WINDOW_OVERRUN)
            if 0 < row.due_ms <= now_ms:
                self.late.setdefault(step.value, Histogram(LATENESS_S)).observe((now_ms - row.due_ms) / 1000)
        except (RngUnavailableError, DeckSealedError) as error:
            if isinstance(error, RngUnavailableError):
                await self.instance.report_failure()
            await self._take(row, config, Step.PAUSE, now_ms, error.reason)
        return True

    def _malfunction(self, row: TableRow, step: Step | None, facts: Facts, config: TableConfig) -> str:
        """Why the table must be paused now, a code; empty if it need not be."""
        is_played = row.table.state is State.DECIDING or (row.table.state is State.BETTING and bool(facts.bets))
        if is_played and not self.clock.is_trusted:
            return CLOCK_UNTRUSTED
        if step in {Step.FIX, Step.DEAL}:
            try:
                self.availability.verify_may_start("", config.ruleset_id, "")
            except RgsError as error:
                return error.reason
        return ""

    async def _facts(self, row: TableRow, config: TableConfig, now_ms: int) -> Facts:
        """What the machine asks for in this state, and nothing more."""
        store, table = self.store, row.table
        match table.state:
            case State.SHUT | State.IDLE:
                return Facts(is_open=self._is_open(row, config, now_ms))
            case State.BETTING:
                return Facts(bets=await store.has_bets(table.table_id))
            case State.OPENING:
                return Facts(unopened=await store.has_unopened(table.table_id))
            case State.DECIDING if config.early_close:
                phases = self.games.clockwork(config).phases_to(table.phase)
                return Facts(undecided=await store.has_undecided(table.round_id, phases))
            case State.SETTLING | State.VOIDING:
                return Facts(unfinished=await self._has_unended(row))
            case State.RESULT:
                return Facts(seats=await store.has_sittings(table.table_id), is_open=self._is_open(row, config, now_ms))
            case _:
                return Facts()

    async def _has_unended(self, row: TableRow) -> bool:
        """Whether a seat of the ended round has no final, or of a round void before the draw its bets."""
        if row.table.deal:
            return await self.store.has_unfinished(row.table.round_id)
        return await self.store.has_bets(row.table.table_id)

    def _is_open(self, row: TableRow, config: TableConfig, now_ms: int) -> bool:
        return not row.is_shut and config.hours.is_open(now_ms)

    # --- the step -------------------------------------------------------------------------------------------------

    async def _take(self, row: TableRow, config: TableConfig, step: Step, now_ms: int, malfunction: str) -> None:
        """Commit a step. TableMovedError if another process was first."""
        if step is Step.DEAL:
            await self.rounds.deal(row, now_ms)
            self.signals.moved(row.table.table_id, row.table.version + 1)
            return
        if step is Step.FIX:
            change = await self.rounds.fix_change(row, now_ms)
        elif step is Step.REVEAL:
            change = await self.rounds.reveal_change(row, now_ms)
        elif step is Step.FINISH:
            change = await self._finish_change(row, config, now_ms)
        elif step is Step.PAUSE:
            change = self.pause_change(row, config, malfunction, now_ms)
        else:
            if step is Step.SHOW and row.table.state is State.OPENING:
                now_ms = max(now_ms, await self.store.newest_seat_ms(row.table.round_id))
            if self._leads_to_new_config(step) and row.next_config:
                row, config = replace(row, next_config=""), await self.configs.of(row.next_config)
                row = replace(row, config=config.sha256)
            change = Change(table=self._stepped(row, config, step, now_ms))
        if step in {Step.CLOSE, Step.CANCEL}:
            change.records = (BetsStand(row.table.table_id, int(step is Step.CLOSE)),)
        if step is not Step.PAUSE:
            change.records = (*change.records, *self.lines(config, step, now_ms))
        await self.commit(change)

    @staticmethod
    def _leads_to_new_config(step: Step) -> bool:
        """Whether no round is running after the step, or a new one begins: then the next configuration is in force."""
        return step in {Step.OPEN, Step.SHUT, Step.BEGIN, Step.CANCEL, Step.REST}

    async def _finish_change(self, row: TableRow, config: TableConfig, now_ms: int) -> Change:
        """FINISH: the results are shown. Boxes that nobody played for too long are free (T-5)."""
        round_ = await self.rounds.decks.round_of(row.table.round_id)
        ruleset = self.games.rulesets[config.ruleset_id]
        lost_after = ruleset.seat_lost_after_rounds
        lost = (SeatsLost(row.table.table_id, round_.table_round_no - lost_after),) if lost_after else ()
        return Change(
            table=self._stepped(row, config, Step.FINISH, now_ms),
            table_round=replace(round_, version=round_.version + 1, sealed=b""),
            records=(*lost, ReservationsLapsed(row.table.table_id, round_.table_round_no)),
        )

    def pause_change(
        self, row: TableRow, config: TableConfig, malfunction: str, now_ms: int, *, actor: str = ""
    ) -> Change:
        """PAUSE, with the event that logs the malfunction; `actor` is the admin who says so. TableStateError."""
        paused = replace(self._stepped(row, config, Step.PAUSE, now_ms), malfunction_code=malfunction)
        event = event_draft(
            EventCode.MALFUNCTION,
            now_ms,
            reason=malfunction,
            actor=actor,
            subject=row.table.table_id,
            round_id=row.table.round_id,
        )
        records: tuple[Record, ...] = self.lines(config, Step.PAUSE, now_ms)
        if row.table.state is State.DECIDING:
            records = (*records, SeatsStand(now_ms, row.table.round_id))
        return Change(table=paused, drafts=(event,), pauses=True, records=records)

    def lines(self, config: TableConfig, step: Step, now_ms: int) -> tuple[ChatMessage, ...]:
        """What the dealer says at a step, in the table's chat."""
        code = DEALER_LINES.get(step)
        return (self.chat.dealer_line(config.id, code, now_ms),) if config.chat and code else ()

    def _stepped(self, row: TableRow, config: TableConfig, step: Step, now_ms: int) -> TableRow:
        """The row after a step, with the time at which to look at it again."""
        round_id = self.instance.new_id(now_ms) if step is Step.BEGIN else ""
        table = take(row.table, step, self.games.clockwork(config), now_ms, round_id=round_id)
        after = replace(row, table=table, config=config.sha256)
        if step is Step.BEGIN and row.next_config == config.sha256:
            after = replace(after, next_config="")
        if step is Step.CLOSE:
            after = replace(after, closed_ms=table.step_ms)
        return replace(after, due_ms=due_at(after, config, table.step_ms))

    async def _rescheduled(self, row: TableRow, config: TableConfig, now_ms: int) -> None:
        """Nothing is due: look again when something may be, not at every poll."""
        due_ms = due_at(row, config, now_ms)
        if row.due_ms and row.due_ms <= now_ms and due_ms != row.due_ms:
            table = replace(row.table, version=row.table.version + 1)
            await self.commit(Change(table=replace(row, table=table, due_ms=due_ms)))

    async def commit(self, change: Change) -> None:
        """Commit a change of a table, and tell this process of it."""
        await self.store.commit(change)
        self.signals.committed(change)


def due_at(row: TableRow, config: TableConfig, now_ms: int) -> int:
    """When a table is to be looked at again, in milliseconds; 0: never by time."""
    table = row.table
    match table.state:
        case State.PAUSED:
            return 0
        case State.BETTING | State.DECIDING | State.RESULT:
            return table.deadline_ms
        case State.SHUT | State.IDLE:
            is_open = not row.is_shut and config.hours.is_open(now_ms)
            if is_open is (table.state is State.SHUT):
                return now_ms
            return 0 if row.is_shut else config.hours.next_change_ms(now_ms) or 0
        case _:
            return table.step_ms


def _reason_of(error: BaseException) -> str:
    return error.reason if isinstance(error, RgsError) else type(error).__name__
