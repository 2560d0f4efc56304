"""Random lives of a table: steps that are due, pauses, resumes, voids and shut doors, at random times.

Whatever happens, no step is taken before its deadline, a table never waits for ever, versions rise by one, a pause
gives a whole window back, and the windows of a round that ends satisfy the auditor's check 26. Silence is the ruleset's
default decision, and the tree over any number of seats leads to its root.
"""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core import games
from rgs.core.errors import TableStateError
from rgs.core.games.types import Action, Phase, Timers
from rgs.core.replay import table_finals
from rgs.core.rounds import SERVER_PARTY, TakenAction
from rgs.core.rulesets import Ruleset, load_ruleset
from rgs.core.tables.machine import STEPS, Clockwork, Facts, State, Step, Table, due, take
from rgs.core.tables.seating import seat_in_play, with_defaults
from rgs.core.tables.tree import SeatTree, padding_leaf
from rgs.core.tables.windows import LATE_MAX_MS, WindowEnd
from rgs.core.times import format_time
from rgs.core.tlog.merkle import leaf_hash, root_of, verify_inclusion

TABLE_RULESETS = [load_ruleset(name) for name in ("uth-online", "uth-seven-box", "uth-lugano")]
T0 = 1_795_000_000_000
ROUND = "0" * 25 + "R"
VOIDABLE = {State.FIXED, State.OPENING, State.DECIDING}
TIMED = {State.BETTING: "betting_ms", State.DECIDING: "decision_ms", State.RESULT: "result_ms"}

TIMERS = st.builds(
    Timers,
    betting_ms=st.integers(1_000, 60_000),
    amber_ms=st.just(0),
    decision_ms=st.integers(1_000, 60_000),
    result_ms=st.integers(1_000, 60_000),
)
CLOCKWORKS = st.builds(
    Clockwork, timers=TIMERS, early_close=st.booleans(), rules=st.sampled_from(list(games.FAMILIES.values()))
)
WANTED = [None] * 12 + [Step.PAUSE, Step.RESUME, Step.RESUME, Step.VOID, Step.VOID, Step.CANCEL]
PASSINGS = ["deadline", "deadline", "just late enough", "just before", "too late", "little", "little", "any", "any"]
MOVES = st.lists(st.integers(0, 1 << 32), min_size=40, max_size=80)
"""One number a move, from which all of it follows: drawn part by part, the moves would cost more than the walk."""


def move_of(number: int) -> tuple[int | str, Facts, Step | None]:
    """How time passes, what the store counts, what an admin wants. Mostly nobody is waited for, so rounds go on."""
    pick = random.Random(number)
    passing: int | str = pick.choice(PASSINGS)
    if passing in {"little", "any"}:
        passing = pick.randint(0, 2_000) if passing == "little" else pick.randint(-5_000, 90_000)
    facts = Facts(
        seats=pick.randint(0, 2),
        bets=pick.choice([0, 1, 1, 1]),
        undecided=pick.randint(0, 1),
        unopened=pick.choice([0, 0, 0, 2]),
        unfinished=pick.choice([0, 0, 0, 2]),
        is_open=pick.randint(0, 5) > 0,
    )
    return passing, facts, pick.choice(WANTED)


def after(now_ms: int, passing: int | str, table: Table) -> int:
    """The time when something happens next."""
    if isinstance(passing, int) or not table.deadline_ms:
        return now_ms + (passing if isinstance(passing, int) else 1)
    late = {"deadline": 0, "just before": -1, "just late enough": LATE_MAX_MS, "too late": LATE_MAX_MS + 1}
    return table.deadline_ms + late[passing]


def verify_step(before: Table, step: Step, taken: Table, clockwork: Clockwork, now_ms: int) -> None:
    """What holds of every step, whoever asked for it."""
    assert taken.version == before.version + 1
    assert taken.table_id == before.table_id
    assert taken.state is (before.paused_from if step is Step.RESUME else STEPS[before.state][step])
    assert bool(taken.deadline_ms) == (taken.state in TIMED)
    assert (taken.phase is None) == (State.DECIDING not in {taken.state, taken.paused_from})
    assert (taken.paused_from is not None) == (taken.state is State.PAUSED)
    assert taken.round_no == before.round_no + (step is Step.FIX)
    assert bool(taken.round_id) == (taken.is_in_round or State.BETTING in {taken.state, taken.paused_from}) or (
        State.RESULT in {taken.state, taken.paused_from}
    )
    if step in {Step.BEGIN, Step.SHOW, Step.FINISH, Step.RESUME} and taken.state in TIMED:
        # A whole window, after a pause as before it.
        assert taken.deadline_ms - taken.opened_ms == getattr(clockwork.timers, TIMED[taken.state])
        assert taken.opened_ms >= max(now_ms, before.opened_ms)
    for one, other in pairwise(taken.windows):
        assert one.open_ms <= one.close_ms <= other.open_ms <= other.close_ms


def verify_due(table: Table, step: Step | None, clockwork: Clockwork, facts: Facts, now_ms: int) -> None:
    """A step that is due is not early, and nothing waits that could go on."""
    is_time = now_ms >= table.deadline_ms
    if step is None:
        assert {
            State.SHUT: not facts.is_open,
            State.IDLE: facts.is_open,
            State.BETTING: not is_time,
            State.CLOSED: False,
            State.FIXED: False,
            State.OPENING: facts.unopened > 0,
            State.DECIDING: not is_time and (facts.undecided > 0 or not clockwork.early_close),
            State.SETTLING: facts.unopened + facts.unfinished > 0,
            State.VOIDING: facts.unopened + facts.unfinished > 0,
            State.RESULT: not is_time,
            State.PAUSED: True,
        }[table.state], (table, facts)
    elif table.state in {State.BETTING, State.RESULT}:
        assert is_time
    elif table.state is State.DECIDING:
        assert is_time or (clockwork.early_close and facts.undecided == 0)
    elif table.state is State.OPENING:
        assert facts.unopened == 0
    if step is Step.CLOSE:
        assert facts.bets > 0
    if step is Step.PAUSE:
        assert now_ms > table.deadline_ms + LATE_MAX_MS


def step_of(table: Table, wanted: Step | None, clockwork: Clockwork, facts: Facts, now_ms: int) -> Step | None:
    """What happens: a bet, what an admin wants, or what is due."""
    step = due(table, clockwork, facts, now_ms)
    verify_due(table, step, clockwork, facts, now_ms)
    if table.state is State.IDLE and step is None and facts.bets:
        return Step.BEGIN  # by the first bet
    if wanted is Step.CANCEL and table.state is not State.PAUSED:
        return step
    return wanted or step


class Evening:
    """A table, the clock, and what its rounds left."""

    def __init__(self, clockwork: Clockwork) -> None:
        self.clockwork = clockwork
        self.table = Table("table-1")
        self.now_ms = T0

    def is_in(self, state: State) -> bool:
        return self.table.state is state

    def move(self, passing: int | str, facts: Facts, wanted: Step | None) -> None:
        self.now_ms = after(self.now_ms, passing, self.table)
        step = step_of(self.table, wanted, self.clockwork, facts, self.now_ms)
        if step is None:
            return
        before = self.table
        try:
            taken = take(before, step, self.clockwork, self.now_ms, round_id=ROUND, unopened=facts.unopened)
        except TableStateError:
            assert step is wanted
            self.verify_refused(step, facts)
            return
        verify_step(before, step, taken, self.clockwork, self.now_ms)
        if step is Step.REVEAL or (step is Step.VOID and before.phase is not None):
            verify_windows(taken, self.clockwork, taken.windows[0].open_ms, is_void=step is Step.VOID)
        self.table = taken

    def verify_refused(self, step: Step, facts: Facts) -> None:
        """A refusal has a reason."""
        table = self.table
        if table.state is State.PAUSED and step in {Step.VOID, Step.CANCEL}:
            is_unopened = table.paused_from is State.OPENING and facts.unopened > 0
            assert (step is Step.VOID) != (table.paused_from in VOIDABLE) or is_unopened
        else:
            assert table.state is not State.PAUSED or step is Step.PAUSE
            assert step not in STEPS[table.state]


def verify_windows(table: Table, clockwork: Clockwork, dealt_ms: int, *, is_void: bool) -> None:
    """Check 26 of the replay, over the windows as they are signed. The deal is dated by who signs it."""
    body = {
        "status": "void" if is_void else "settled",
        "time": format_time(table.windows[-1].close_ms),
        "windows": [window.body() for window in table.windows],
    }
    fixed = {"decision_ms": str(clockwork.timers.decision_ms), "early_close": clockwork.early_close}
    round_ = SimpleNamespace(
        body=fixed, deal="c3" * 32, deal_time=format_time(dealt_ms), ruleset=SimpleNamespace(rules=clockwork.rules)
    )
    statement = SimpleNamespace(body=body, failure=lambda check, message: AssertionError(f"{check}: {message}"))
    table_finals.verify_windows(cast("Any", statement), cast("Any", round_))


@given(CLOCKWORKS, MOVES)
def test_whatever_happens_a_table_keeps_its_rules(clockwork: Clockwork, moves: list[int]) -> None:
    evening = Evening(clockwork)
    for number in moves:
        evening.move(*move_of(number))


@given(CLOCKWORKS, st.lists(st.sampled_from(["on time", "late", "decided", "paused", "set back"]), max_size=12))
def test_the_windows_of_every_round_that_is_revealed_satisfy_the_auditor(
    clockwork: Clockwork, happenings: list[str]
) -> None:
    """Rounds that reach their end, with pauses and clocks that are set back within them."""
    evening = Evening(clockwork)
    evening.move(1, Facts(), None)
    evening.move(1, Facts(bets=1), None)
    evening.move("deadline", Facts(bets=1), None)
    for _ in (Step.FIX, Step.DEAL, Step.SHOW):
        evening.move(1, Facts(), None)
    assert evening.is_in(State.DECIDING)
    for happening in happenings:
        if happening == "paused":
            evening.move(700, Facts(undecided=1), Step.PAUSE)
            evening.move(5_000, Facts(undecided=1), Step.RESUME)
        elif happening == "set back":
            evening.move(-3_000, Facts(undecided=1), Step.PAUSE)
            evening.move(-9_000, Facts(undecided=1), Step.RESUME)
        elif happening == "decided":
            evening.move(10, Facts(undecided=0), None)
        else:
            evening.move("deadline" if happening == "on time" else "just late enough", Facts(undecided=1), None)
        if not evening.is_in(State.DECIDING):
            break
    while evening.is_in(State.DECIDING):
        evening.move("deadline", Facts(undecided=1), None)
    table = evening.table
    assert evening.is_in(State.SETTLING)
    assert table.round_no == 1
    ended = [window.phase for window in table.windows if window.end is not WindowEnd.PAUSED]
    assert ended == list(clockwork.phases)
    evening.move(10, Facts(), None)
    assert evening.is_in(State.RESULT)


def test_the_auditor_refuses_windows_that_no_table_makes() -> None:
    """The check that the walks use sees a window that is too short, too long, or out of order."""
    clockwork = Clockwork(Timers(5_000, 0, 5_000, 5_000), early_close=False, rules=games.FAMILIES["casino_holdem"])
    table = Table("table-1", state=State.DECIDING, phase=Phase.FLOP, opened_ms=T0, deadline_ms=T0 + 5_000)
    honest = take(table, Step.REVEAL, clockwork, T0 + 5_000)
    verify_windows(honest, clockwork, T0, is_void=False)
    (window,) = honest.windows
    for change in (
        {"close_ms": T0 + 4_999},
        {"close_ms": T0 + 5_000 + LATE_MAX_MS + 1},
        {"open_ms": T0 - 1},
        {"end": WindowEnd.DECIDED},
        {"end": WindowEnd.PAUSED},
        {"phase": Phase.RIVER},
    ):
        with pytest.raises(AssertionError):
            verify_windows(replace(honest, windows=(replace(window, **change),)), clockwork, T0, is_void=False)


# --- silence ---


@given(st.sampled_from(TABLE_RULESETS), st.data())
def test_silence_is_the_default_of_the_ruleset_and_nothing_else(ruleset: Ruleset, data: st.DataObject) -> None:
    """A player decides or is silent in each window; pauses stand between. Defaults come window by window or at once."""
    bets = (("ante", 100), ("blind", 100))
    stored: tuple[TakenAction, ...] = ()
    windows: tuple[Any, ...] = ()
    expected: list[tuple[str, str, str, int]] = []
    clockwork = Clockwork(ruleset.timers, early_close=False, rules=ruleset.rules)
    table = take(Table("table-1", state=State.OPENING), Step.SHOW, clockwork, T0)
    while table.state is State.DECIDING:
        assert table.phase is not None
        for _ in range(data.draw(st.integers(0, 2), label="pauses")):
            table = take(table, Step.PAUSE, clockwork, table.opened_ms + 100)
            table = take(table, Step.RESUME, clockwork, table.opened_ms + 9_000)
        before = with_defaults(seat_in_play(ruleset, 1, bets, 1_000, stored), stored, table.windows, ROUND)
        seat = seat_in_play(ruleset, 1, bets, 1_000, before)
        phase = cast("Phase", table.phase)
        if seat.phase is phase and data.draw(st.booleans(), label="decides"):
            action = data.draw(st.sampled_from([one.action for one in games.legal_actions(seat) if one.available]))
            after_it = games.apply(seat, action)
            own = TakenAction(
                *(phase.value, action.value, after_it.actions[-1].amount_minor, table.opened_ms + 1),
                *("player", "operator-1", "cd" * 32),
            )
            stored = (*before, own)
            expected.append((phase.value, action.value, "player", own.time_ms))
        elif seat.phase is phase:
            default = ruleset.default_decisions[phase].value
            expected.append((phase.value, default, "timer", table.deadline_ms))
        step = due(table, clockwork, Facts(undecided=1), table.deadline_ms)
        assert step is not None
        table = take(table, step, clockwork, table.deadline_ms)
        windows = table.windows
    ended = with_defaults(seat_in_play(ruleset, 1, bets, 1_000, stored), stored, windows, ROUND)
    assert [(one.phase, one.action, one.by, one.time_ms) for one in ended] == expected
    assert {one.party for one in ended if one.by == "timer"} <= {SERVER_PARTY}
    assert all(one.amount_minor == 0 for one in ended if one.by == "timer")  # never a stake (T-2)
    seat = seat_in_play(ruleset, 1, bets, 1_000, ended)
    assert seat.phase is Phase.SHOWDOWN
    is_silent_at_last = bool(expected) and expected[-1][:3] == ("river", "fold", "timer")
    assert not is_silent_at_last or seat.actions[-1].action is Action.FOLD


# --- the tree ---


@pytest.mark.parametrize("seats", range(1, 201))
def test_every_path_leads_to_the_root_over_seats_and_padding(seats: int) -> None:
    salt = bytes([seats % 256]) * 32
    leaves = [leaf_hash(seat_no.to_bytes(4, "big")) for seat_no in range(1, seats + 1)]
    tree = SeatTree(leaves, salt)
    assert tree.leaves in {64, 128, 256}
    assert tree.leaves == 64 or tree.leaves < 2 * seats
    padding = [padding_leaf(salt, seat_no) for seat_no in range(seats + 1, tree.leaves + 1)]
    assert tree.root == root_of([*leaves, *padding])
    for seat_no, leaf in enumerate(leaves, 1):
        verify_inclusion(leaf, seat_no - 1, tree.leaves, tree.path(seat_no), tree.root)
