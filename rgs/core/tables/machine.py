"""The state machine of a table: states, the steps between them, and which step is due (docs/tables.md).

`due` says which step a table must take now, from its state, counts of its seats, and the time; `take` gives the table
after it. Both are pure. The service commits a step where the table's version and deadline are still those that it read;
so a step is taken once, by whichever process comes first, and never early. Times are milliseconds of one clock: the
store's.

Three states have a deadline: BETTING, DECIDING and RESULT. An IDLE table waits for a bet and commits nothing; the first
bet takes BEGIN. A clock that is set back counts as one that stands: windows never close before they opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from rgs.core.errors import TableStateError
from rgs.core.games.types import FamilyRules, Phase, Timers
from rgs.core.statements import LINK_ZERO
from rgs.core.tables.windows import LATE_MAX_MS, WINDOWS_MAX, Window, WindowEnd


class State(StrEnum):
    """Where a table stands. The decision phase of DECIDING is `Table.phase`."""

    SHUT = "shut"
    IDLE = "idle"
    BETTING = "betting"
    CLOSED = "closed"
    FIXED = "fixed"
    OPENING = "opening"
    DECIDING = "deciding"
    SETTLING = "settling"
    VOIDING = "voiding"
    RESULT = "result"
    PAUSED = "paused"


class Step(StrEnum):
    """What a table does next."""

    OPEN = "open"
    """The table's hours begin, or an admin opens it."""
    SHUT = "shut"
    BEGIN = "begin"
    """A betting window opens."""
    CANCEL = "cancel"
    """The betting window ends without a bet; of a paused table, every bet is returned."""
    CLOSE = "close"
    """The betting window ends, and the bets are cut: from here on none changes. Nothing is signed yet."""
    FIX = "fix"
    """The cut bets have their numbers and their root: `table_round` and `table_seats` are signed."""
    DEAL = "deal"
    """One draw: `table_deal` is signed."""
    SHOW = "show"
    """The next cards are shown, and their decision window opens."""
    REVEAL = "reveal"
    """The last window has ended: `table_final` is signed."""
    FINISH = "finish"
    """Every seat has its final; the results are shown."""
    REST = "rest"
    """Nobody sits at the table."""
    PAUSE = "pause"
    RESUME = "resume"
    VOID = "void"
    """Two admins make the paused round void: a void `table_final` is signed, after every `seat_opening` (check 28)."""


STEPS: Final[Mapping[State, Mapping[Step, State]]] = MappingProxyType(
    {
        State.SHUT: {Step.OPEN: State.IDLE},
        State.IDLE: {Step.BEGIN: State.BETTING, Step.SHUT: State.SHUT, Step.PAUSE: State.PAUSED},
        State.BETTING: {Step.CLOSE: State.CLOSED, Step.CANCEL: State.IDLE, Step.PAUSE: State.PAUSED},
        State.CLOSED: {Step.FIX: State.FIXED, Step.PAUSE: State.PAUSED},
        State.FIXED: {Step.DEAL: State.OPENING, Step.PAUSE: State.PAUSED},
        State.OPENING: {Step.SHOW: State.DECIDING, Step.PAUSE: State.PAUSED},
        State.DECIDING: {Step.SHOW: State.DECIDING, Step.REVEAL: State.SETTLING, Step.PAUSE: State.PAUSED},
        State.SETTLING: {Step.FINISH: State.RESULT},
        State.VOIDING: {Step.FINISH: State.RESULT},
        State.RESULT: {
            Step.BEGIN: State.BETTING,
            Step.REST: State.IDLE,
            Step.SHUT: State.SHUT,
            Step.PAUSE: State.PAUSED,
        },
        State.PAUSED: {Step.CANCEL: State.IDLE, Step.VOID: State.VOIDING},  # and RESUME: back where it was
    }
)
"""Every step that there is, and where it leads. RESUME leads from PAUSED back to the state before."""

_VOIDABLE: Final = frozenset({State.FIXED, State.OPENING, State.DECIDING})


@dataclass(frozen=True, slots=True)
class Facts:
    """Counts of a table's seats, as the store has them now.

    `undecided` are the opened seats that may decide in the phase and have not; `unopened` the seats of the round
    without their opening (void before the draw: whose bets are not returned yet); `unfinished` those without their
    final. `is_open` is what hours and admins say.
    """

    seats: int = 0
    bets: int = 0
    undecided: int = 0
    unopened: int = 0
    unfinished: int = 0
    is_open: bool = True


@dataclass(frozen=True, slots=True)
class Clockwork:
    """What decides when a window ends: the table's timers, early close, and the phases of its game."""

    timers: Timers
    early_close: bool
    rules: FamilyRules

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The decision phases, in order."""
        return tuple(self.rules.transitions)

    def phases_to(self, phase: Phase | None) -> tuple[str, ...]:
        """The decision phases up to this one: a seat that stands in one of them has not decided in it."""
        return tuple(one.value for one in self.phases[: self.phases.index(phase) + 1]) if phase is not None else ()


@dataclass(frozen=True, slots=True)
class Table:
    """One table as durable state. `version` rises by one with every change; writers compare and swap on it.

    `deadline_ms` is 0 where nothing is timed. `head` is the hex hash of the newest `table_final`; the other hashes are
    those of the running round, empty until they are signed.
    """

    table_id: str
    state: State = State.SHUT
    version: int = 0
    phase: Phase | None = None
    opened_ms: int = 0
    """When the running window opened."""
    deadline_ms: int = 0
    step_ms: int = 0
    """When the newest step was taken. A clock that is set back does not take a table back."""
    round_no: int = 0
    """Number of the newest round that was fixed."""
    head: str = LINK_ZERO
    round_id: str = ""
    table_round: str = ""
    deal: str = ""
    final: str = ""
    windows: tuple[Window, ...] = ()
    paused_from: State | None = None
    malfunction: str = ""
    """Hex hash of the event that paused the table."""

    @property
    def is_in_round(self) -> bool:
        """Whether the bets of a round are cut, and not all of its seats have ended."""
        state = self.paused_from if self.state is State.PAUSED else self.state
        return state in {
            State.CLOSED, State.FIXED, State.OPENING, State.DECIDING, State.SETTLING, State.VOIDING,
        }  # fmt: skip


def due(table: Table, clockwork: Clockwork, facts: Facts, now_ms: int) -> Step | None:
    """The step that the table must take now, None if it waits: for its deadline, a bet, its seats, or an admin."""
    is_time = bool(table.deadline_ms) and now_ms >= table.deadline_ms
    is_played = table.state is State.DECIDING or (table.state is State.BETTING and bool(facts.bets))
    if is_time and now_ms > table.deadline_ms + LATE_MAX_MS and is_played:
        return Step.PAUSE  # an outage is no longer window for those who can still reach the server
    match table.state:
        case State.SHUT:
            return Step.OPEN if facts.is_open else None
        case State.IDLE:
            return None if facts.is_open else Step.SHUT
        case State.BETTING:
            return (Step.CLOSE if facts.bets else Step.CANCEL) if is_time else None
        case State.CLOSED:
            return Step.FIX
        case State.FIXED:
            return Step.DEAL
        case State.OPENING:
            return None if facts.unopened else Step.SHOW
        case State.DECIDING:
            has_decided = clockwork.early_close and not facts.undecided
            return _after_window(table, clockwork) if is_time or has_decided else None
        case State.SETTLING | State.VOIDING:
            return None if facts.unfinished or facts.unopened else Step.FINISH
        case State.RESULT:
            return _after_result(facts) if is_time else None
        case _:  # PAUSED: it waits for an admin
            return None


def _after_window(table: Table, clockwork: Clockwork) -> Step:
    return Step.REVEAL if table.phase is clockwork.phases[-1] else Step.SHOW


def _after_result(facts: Facts) -> Step:
    if not facts.is_open:
        return Step.SHUT
    return Step.BEGIN if facts.seats else Step.REST


def take(
    table: Table, step: Step, clockwork: Clockwork, now_ms: int, *, round_id: str = "", unopened: int = 0
) -> Table:
    """The table after the step. TableStateError if the state does not allow it.

    `round_id` is that of the round that BEGIN starts. `unopened` is that of the facts: a dealt round can be made void
    once it is 0. Hashes of what the step signs are filled in by the writer.
    """
    now_ms = max(now_ms, table.step_ms)
    led_to = _led_to(table, step, clockwork, unopened)
    after = replace(table, version=table.version + 1, state=led_to, step_ms=now_ms)
    match step:
        case Step.BEGIN:
            return _timed(without_round(after, round_id), now_ms, clockwork.timers.betting_ms)
        case Step.CLOSE:
            return replace(after, deadline_ms=0)
        case Step.FIX:
            return replace(after, round_no=table.round_no + 1)
        case Step.SHOW:
            place = 0 if table.phase is None else clockwork.phases.index(table.phase) + 1
            shown = replace(after, windows=_closed(table, now_ms), phase=clockwork.phases[place])
            return _timed(shown, now_ms, clockwork.timers.decision_ms)
        case Step.REVEAL:
            return replace(after, windows=_closed(table, now_ms), phase=None, deadline_ms=0)
        case Step.FINISH:
            return _timed(after, now_ms, clockwork.timers.result_ms)
        case Step.PAUSE:
            windows = _closed(table, now_ms, WindowEnd.PAUSED)
            return replace(after, windows=windows, paused_from=table.state, deadline_ms=0)
        case Step.RESUME:
            resumed = replace(after, paused_from=None, malfunction="")
            return _resumed(resumed, clockwork.timers, now_ms)
        case Step.VOID:
            return replace(after, paused_from=None, phase=None)
        case Step.CANCEL | Step.REST | Step.SHUT | Step.OPEN:
            return replace(without_round(after), deadline_ms=0)
        case _:  # DEAL: nothing but the state changes
            return after


def _led_to(table: Table, step: Step, clockwork: Clockwork, unopened: int) -> State:
    """Where the step leads. TableStateError names state and step."""
    if step is Step.RESUME and table.paused_from is not None:
        if len(table.windows) + _phases_left(table, clockwork) > WINDOWS_MAX:
            raise _refusal(table, step, f"after {len(table.windows)} windows the round can only be made void")
        return table.paused_from
    led_to = STEPS[table.state].get(step)
    if led_to is None or _is_barred(table, step, clockwork):
        raise _refusal(table, step, f"it cannot {step}; from here it can {_possible(table, clockwork)}")
    if step is Step.VOID and table.paused_from is State.OPENING and unopened:
        raise _refusal(table, step, f"{unopened} seats of the deal have no opening; make it void when they have")
    return led_to


def _phases_left(table: Table, clockwork: Clockwork) -> int:
    """The phases whose last window is still to come, 0 where the table does not stand in one."""
    return 0 if table.phase is None else len(clockwork.phases) - clockwork.phases.index(table.phase)


def _is_barred(table: Table, step: Step, clockwork: Clockwork) -> bool:
    """Whether more than the state forbids a step of STEPS: where the table was paused, or which phase it is."""
    if table.state is State.PAUSED:
        return (step is Step.VOID) != (table.paused_from in _VOIDABLE)
    return table.state is State.DECIDING and step not in {Step.PAUSE, _after_window(table, clockwork)}


def _possible(table: Table, clockwork: Clockwork) -> str:
    """The steps that lead on from here, for people."""
    steps = [step.value for step in STEPS[table.state] if not _is_barred(table, step, clockwork)]
    return " or ".join([*steps, *([Step.RESUME.value] if table.paused_from is not None else [])])


def _refusal(table: Table, step: Step, problem: str) -> TableStateError:
    state = table.state if table.paused_from is None else f"{table.state} from {table.paused_from}"
    if table.phase is not None:
        state = f"{state} {table.phase}"
    return TableStateError(
        f"table {table.table_id} is {state}: {problem}", table=table.table_id, state=state, step=step.value
    )


def without_round(table: Table, round_id: str = "") -> Table:
    """The table before a round is fixed: nothing is signed of it, and no malfunction is left."""
    return replace(
        table,
        round_id=round_id,
        phase=None,
        table_round="",
        deal="",
        final="",
        windows=(),
        paused_from=None,
        malfunction="",
    )


def _timed(table: Table, now_ms: int, lasts_ms: int) -> Table:
    return replace(table, opened_ms=now_ms, deadline_ms=now_ms + lasts_ms)


def _resumed(table: Table, timers: Timers, now_ms: int) -> Table:
    """The clock runs again from the beginning of the window."""
    lasts_ms = {
        State.BETTING: timers.betting_ms,
        State.DECIDING: timers.decision_ms,
        State.RESULT: timers.result_ms,
    }.get(table.state)
    return table if lasts_ms is None else _timed(table, now_ms, lasts_ms)


def _closed(table: Table, now_ms: int, end: WindowEnd | None = None) -> tuple[Window, ...]:
    """The windows with the running one, if a decision window is running. It ended by its time, or before it."""
    if table.state is not State.DECIDING or table.phase is None:
        return table.windows
    own = WindowEnd.TIME if now_ms >= table.deadline_ms else WindowEnd.DECIDED
    # No decision was taken behind the deadline: a pause that comes later does not make the window longer.
    close_ms = min(now_ms, table.deadline_ms) if end is WindowEnd.PAUSED else now_ms
    return (*table.windows, Window(table.phase, table.opened_ms, close_ms, end or own))
