"""Closes and opens the guards (ARCHITECTURE 2.19: a closed guard stops new rounds, never dealt ones; GLI-19 2.3.2).

A guard is closed while:

    rng        the generator has failed; latched, in the commit of its RNG_FAILED, until an admin clears it
    self_test  its known answers differ; tested periodically and on demand
    rules      the certified files differ from the start; checked periodically and on demand, and with them interpreter,
               libraries and the rest of the server once a day and on demand
    clock      time is not trusted, until the database's clock or an admin vouches for the wall clock; latched, so that
               a restart does not make it trusted
    regulator  the regulator has left the last calls unanswered; rounds of sessions that have their ids go on
    store      a commit has failed; the event that opens the guard is the commit that succeeds again
    log        the transparency log does not agree with the store, or statements wait too long for it

A guard closes in memory at once, and its event is signed as soon as the store takes it. Only an admin opens a latched
guard. Periods are counted on the monotonic clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import structlog

from rgs.core.clock import APART_MS, TrustedClock
from rgs.core.errors import ClocksDifferError, RegulatorUnavailableError, RgsError, RngUnavailableError
from rgs.core.times import format_time
from rgs.ports import regulator
from rgs.service.availability import Availability
from rgs.service.events import EventCode, Events, event_draft
from rgs.service.instance import RNG_GUARD, Instance
from rgs.service.timekeeping import CLOCK_GUARD, Timekeeping
from rgs.store.changes import Change, Draft, InstanceLostError, LatchCleared, LatchSet, Record, Signed, StoreError
from rgs.store.interface import Store

REGULATOR_FAILURES_MAX = 3
"""After so many unanswered calls in a row the regulator counts as down."""
REGULATOR_QUIET_MS = 60_000
"""After so long without a failed call the regulator no longer counts as down."""
UNREPORTED_MAX = 256
"""Events of guards that may wait for the store; further changes stand in the technical log only."""
RULES_CLOSED_PERIOD_MS = 10_000
"""How often the certified files are checked while they differ."""
RESTART_NEEDED = "RESTART_NEEDED"
"""Code of a cleared guard that stays closed until a new process starts."""
UNANSWERED, COMMIT_FAILED, SELF_TEST_FAILED = "UNANSWERED", "COMMIT_FAILED", "SELF_TEST_FAILED"

_Answer = TypeVar("_Answer")


class CountedRegulator:
    """The regulator, with a count of the calls in a row that it has left unanswered."""

    def __init__(self, regulator: regulator.Regulator, clock: TrustedClock) -> None:
        self._regulator = regulator
        self._clock = clock
        self.failures = 0
        self.failed_ms: int
        """When the last unanswered call was given up, by the monotonic clock. Read only while there are failures."""

    async def open_session(self, opening: regulator.SessionOpening) -> regulator.RegulatorSession:
        return await self._counted(self._regulator.open_session(opening))

    async def buy_participation(
        self, purchase: regulator.Purchase, issued: str = ""
    ) -> regulator.RegulatorParticipation:
        return await self._counted(self._regulator.buy_participation(purchase, issued))

    async def report_stages(
        self, transaction_id: str, stages: Sequence[regulator.StageReport]
    ) -> regulator.RegulatorReceipt:
        return await self._counted(self._regulator.report_stages(transaction_id, stages))

    async def end_participation(self, end: regulator.ParticipationEnd) -> regulator.RegulatorReceipt:
        return await self._counted(self._regulator.end_participation(end))

    async def close_session(self, close: regulator.SessionClose) -> regulator.RegulatorReceipt:
        return await self._counted(self._regulator.close_session(close))

    async def align_day(self, alignment: regulator.DayAlignment) -> regulator.RegulatorReceipt:
        return await self._counted(self._regulator.align_day(alignment))

    async def report_modules(self, report: regulator.ModuleReport) -> regulator.RegulatorReceipt:
        return await self._counted(self._regulator.report_modules(report))

    async def close(self) -> None:
        await self._regulator.close()

    async def _counted(self, call: Awaitable[_Answer]) -> _Answer:
        try:
            answer = await call
        except RegulatorUnavailableError:
            self.failures += 1
            self.failed_ms = self._clock.running_ms()
            raise
        except RgsError as refusal:
            self.failures = 0  # a refusal is an answer
            if refusal.metadata.get("rejection") == regulator.Rejection.TRANSACTION_CONFLICT:
                # Nobody else makes our ids: what stands there under this one is unknown, and asked again.
                raise RegulatorUnavailableError(
                    f"the regulator contradicts itself: {refusal}",
                    refusal=regulator.Rejection.TRANSACTION_CONFLICT,
                ) from None
            raise
        self.failures = 0
        return answer


@dataclass(frozen=True, slots=True)
class MonitoredParts:
    """Checks besides those of store, generator and regulator, and their periods.

    `measure` hashes the certified files: a code, empty if nothing has changed.
    """

    measure: Callable[[], str]
    rules_period_ms: int
    self_test_period_ms: int
    log: Callable[[], str] = lambda: ""
    """The fault of the transparency log as a code, empty if there is none."""
    surroundings: Callable[[], str] = lambda: ""
    """As `measure`, for everything else that the server runs on."""
    surroundings_period_ms: int = 86_400_000


@dataclass(kw_only=True, eq=False, repr=False)
class HealthMonitor:
    """Checks once a second (`poll`), and at once if a commit fails or an admin asks (`examine`)."""

    store: Store
    instance: Instance
    availability: Availability
    events: Events
    clock: TrustedClock
    time: Timekeeping
    regulator: CountedRegulator
    monitored: MonitoredParts
    node: str

    _followed: int | None = field(default=None, init=False)
    """The store's count of switch changes at the last reading."""
    _unreported: list[tuple[Draft, tuple[Record, ...]]] = field(default_factory=list, init=False)
    """Events that are not signed yet, each with its records."""
    _jump_ms: int = field(default=0, init=False)
    """The last jump of the clock."""
    _jumped: str = field(default="", init=False)
    """The last instance that signed a TIME_JUMP."""
    _early: int = field(default=0, init=False)
    """So many of the waiting events were noted before the instance began."""
    _latched: set[str] = field(default_factory=set, init=False)
    """Guards whose latch this process has seen in the store: only such a latch can be found cleared."""
    _cleared: int = field(default=0, init=False)
    """How many guards were cleared. What was measured in the meantime may be what the admin has set right."""

    def __post_init__(self) -> None:
        self._measured_ms = self._surveyed_ms = self._tested_ms = self.clock.running_ms()
        self.store.on_failure = self._commit_failed

    async def begin(self) -> None:
        """Check the clock against the store, and close what was left latched, before anything is signed. StoreError."""
        await self.time.begin()
        await self.follow()
        self._close_clock()
        self._early = len(self._unreported)

    async def poll(self) -> None:
        """Check everything, close and open guards, and sign the events as far as the store takes them."""
        await self._check_clock()
        self._check_regulator()
        self._check_generator()
        self._check_log()
        await self._check_rules()
        await self._check_self_test()
        await self._emit()

    async def follow(self) -> None:
        """Apply switches, and latches of this node, that any process has changed. StoreError."""
        changes = await self.store.changes("switches")
        if changes != self._followed:
            self.availability.load_switches(await self.store.switches())
            self._followed = changes
        seen = set(self._latched)
        latched = {latch.guard: latch for latch in await self.store.latches(self.node)}
        for latch in latched.values():
            if latch.guard != CLOCK_GUARD or self.clock.against:  # a process that runs has seen its clocks itself
                self.availability.close_guard(latch.guard, latch.code, latch.time_ms, latched=True)
        gone = seen - set(latched)
        self._latched = (self._latched - gone) | set(latched)
        for name in gone:
            if self.availability.guard(name).latched:
                await self.cleared(name, await self.examine(name))

    async def examine(self, name: str) -> str:
        """The fault that keeps a guard from opening now, as a code; empty if there is none."""
        match name:
            case "rng":
                return RESTART_NEEDED if self.instance.failure else ""
            case "self_test":
                return RESTART_NEEDED if await self._failed_test() else ""
            case "rules":
                return await asyncio.to_thread(self._survey)
            case "clock":  # an admin can vouch for the wall clock, not against the database's clock
                await self.time.ask()
                return self.clock.differs
            case "regulator":
                self.regulator.failures = 0
                return ""
            case "log":
                return self.monitored.log()
            case "store":  # the commit of the admin's event shows whether it works
                return ""
            case _:  # closed and opened elsewhere
                return self.availability.guard(name).code

    def verify_clock(self) -> None:
        """ClocksDifferError if the database's clock, asked by `examine`, contradicts this node's wall clock."""
        if self.clock.differs:
            ahead_ms = self.clock.apart_ms
            raise ClocksDifferError(
                f"the database's clock is {abs(ahead_ms)} ms {'ahead of' if ahead_ms > 0 else 'behind'} this node's"
                f" wall clock, the limit is {APART_MS} ms: set one of the two right, then clear the guard again",
                guard=CLOCK_GUARD,
                value=abs(ahead_ms),
                limit=APART_MS,
            )

    def clearing(self, name: str) -> tuple[Record, ...]:
        """The records of clearing a guard, for the commit with the event."""
        return (LatchCleared(self.node, name), *(self.time.vouched() if name == CLOCK_GUARD else ()))

    async def cleared(self, name: str, code: str) -> None:
        """Open the guard that an admin has cleared, or keep it closed if `examine` gave a code."""
        if name == CLOCK_GUARD and not code:
            await self.time.accept()
            self._let_go()
        self.availability.clear_latch(name, code, self.clock.now_ms())
        self._cleared += 1

    # --- one guard each -------------------------------------------------------------------------------------------

    async def _check_clock(self) -> None:
        await self._try(self.time.poll())
        jump_ms = self.clock.take_jump()
        was_open = self._close_clock()
        self._jump_ms = jump_ms or self._jump_ms
        # Each instance signs its first at once: it tells replay why later dates are before the instance's start.
        is_first = self._jumped != self.instance.name
        is_noted = any(draft.body["code"] == EventCode.TIME_JUMP for draft, _ in self._unreported)
        if (jump_ms and was_open) or (is_first and not is_noted and (jump_ms or self.clock.is_held)):
            now_ms, result = self.clock.now_ms(), f"{self._jump_ms:+d} ms"
            self._unreported.append((event_draft(EventCode.TIME_JUMP, now_ms, subject=CLOCK_GUARD, after=result), ()))
        elif jump_ms and not self.clock.is_held:  # a held clock's jump has its event already
            self.events.count(EventCode.TIME_JUMP, EventCode.TIME_JUMP)
        if self.clock.is_trusted:
            self._open(CLOCK_GUARD, LatchCleared(self.node, CLOCK_GUARD))
        await self._try(self.time.keep(self.store))

    def _close_clock(self) -> bool:
        """Close the guard while time is not trusted; whether it was open."""
        code, now_ms = self.clock.against, self.clock.now_ms()
        return bool(code) and self._close(CLOCK_GUARD, code, LatchSet(self.node, CLOCK_GUARD, code, now_ms))

    def _check_regulator(self) -> None:
        regulator, closed = self.regulator, self.availability.guard("regulator").closed
        if regulator.failures >= REGULATOR_FAILURES_MAX:
            if not closed:
                self._close("regulator", UNANSWERED)
            elif self.clock.running_ms() - regulator.failed_ms > REGULATOR_QUIET_MS:
                regulator.failures = 0
        elif not regulator.failures:
            self._open("regulator")

    def _check_generator(self) -> None:
        failure = self.instance.failure
        if failure and not self.availability.guard(RNG_GUARD).closed:
            self._close(RNG_GUARD, failure, latched=True)

    def _check_log(self) -> None:
        code = self.monitored.log()
        if code:
            self._close("log", code)
        else:
            self._open("log")

    async def _check_rules(self) -> None:
        closed = self.availability.guard("rules").closed
        period_ms = RULES_CLOSED_PERIOD_MS if closed else self.monitored.rules_period_ms
        now_ms = self.clock.running_ms()
        survey_due = now_ms - self._surveyed_ms >= self.monitored.surroundings_period_ms
        if now_ms - self._measured_ms < period_ms and not survey_due:
            return
        self._measured_ms = now_ms
        if survey_due:
            self._surveyed_ms = now_ms
        # Any part may have closed the guard.
        measure = self._survey if survey_due or closed else self.monitored.measure
        while True:
            cleared, code = self._cleared, await asyncio.to_thread(measure)
            if cleared == self._cleared:
                break
        if code:
            self._close("rules", code)
        elif closed:
            self._open("rules")

    def _survey(self) -> str:
        return self.monitored.measure() or self.monitored.surroundings()

    async def _check_self_test(self) -> None:
        if self.instance.failure or self.clock.running_ms() - self._tested_ms < self.monitored.self_test_period_ms:
            return
        if await self._failed_test():
            self._close("self_test", SELF_TEST_FAILED)
            self._check_generator()

    async def _failed_test(self) -> bool:
        """Run the self-test; whether it failed. A failure ends the generator."""
        self._tested_ms = self.clock.running_ms()
        try:
            await self.instance.selftest()
        except RngUnavailableError:
            return True
        return False

    def _commit_failed(self, error: StoreError) -> None:
        is_lost = isinstance(error, InstanceLostError)
        self._close("store", error.reason if is_lost else COMMIT_FAILED, latched=is_lost)

    # --- in memory first, then signed -----------------------------------------------------------------------------

    def _close(self, name: str, code: str, *records: Record, latched: bool = False) -> bool:
        """Close the guard, latched if there are `records`; whether it was open."""
        latched = latched or bool(records)
        now_ms = self.clock.now_ms()
        if not self.availability.close_guard(name, code, now_ms, latched=latched):
            return False
        structlog.get_logger().error("guard_closed", guard=name, code=code, latched=latched)
        self._note(
            event_draft(EventCode.GUARD_CLOSED, now_ms, subject=name, before="OPEN", after="CLOSED", reason=code),
            *records,
        )
        return True

    def _open(self, name: str, *records: Record) -> None:
        """Open the guard if it is closed, a latched one if there are `records`."""
        code = self.availability.guard(name).code
        if self.availability.open_guard(name, clear_latch=bool(records)):
            structlog.get_logger().warning("guard_opened", guard=name, code=code)
            self._note(self._opened(name, code), *records)

    def _opened(self, name: str, code: str) -> Draft:
        now_ms = self.clock.now_ms()
        return event_draft(EventCode.GUARD_OPENED, now_ms, subject=name, before="CLOSED", after="OPEN", reason=code)

    def _note(self, draft: Draft, *records: Record) -> None:
        if records or len(self._unreported) < UNREPORTED_MAX:
            self._unreported.append((draft, records))

    async def _emit(self) -> None:
        """Sign the waiting events. While the store's guard is closed, that commit is the probe that opens it."""
        if self.instance.failure and await self._try(self.instance.report_failure()):
            self._latched.add(RNG_GUARD)
        store = self.availability.guard("store")
        self._date_early()
        result = list(self._unreported)
        drafts = [draft for draft, _ in result]
        if store.closed:
            drafts.append(self._opened("store", store.code))
        records = tuple(record for _, left in result for record in left)
        signed = await self._committed(Change(drafts=tuple(drafts), records=records)) if drafts else ()
        for draft, statement in zip(drafts, signed, strict=False):
            if draft.body["code"] == EventCode.TIME_JUMP:
                self._jumped = statement.instance
        self._let_go()
        if not signed:
            return
        del self._unreported[: len(result)]
        self._latched |= {record.guard for record in records if isinstance(record, LatchSet)}
        if store.closed:
            self.availability.open_guard("store")
            structlog.get_logger().warning("guard_opened", guard="store", code=store.code)

    def _date_early(self) -> None:
        """Date what was noted before the instance began. A statement that is older than its key does not verify."""
        now = format_time(self.clock.now_ms())
        for at, (draft, records) in enumerate(self._unreported[: self._early]):
            self._unreported[at] = (replace(draft, body={**draft.body, "time": now}), records)
        self._early = 0

    def _let_go(self) -> None:
        if self._jumped == self.instance.name:
            self.clock.let_go()

    async def _committed(self, change: Change) -> Sequence[Signed]:
        try:
            return await self.store.commit(change)
        except StoreError:
            return ()

    async def _try(self, commit: Awaitable[object]) -> bool:
        try:
            await commit
        except StoreError:
            return False  # this has closed the store's guard; the next look tries again
        return True
