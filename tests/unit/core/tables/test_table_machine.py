"""The state machine of a table: every step of every state, what waits for what, and what a step leaves behind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rgs.core import games
from rgs.core.errors import TableStateError
from rgs.core.games.types import Phase, Timers
from rgs.core.statements import KINDS, LINK_ZERO
from rgs.core.statements.kinds import WINDOW
from rgs.core.statements.shapes import Array, Record
from rgs.core.tables.machine import STEPS, Clockwork, Facts, State, Step, Table, due, take
from rgs.core.tables.windows import LATE_MAX_MS, WINDOWS_MAX, Window, WindowEnd

TIMERS = Timers(betting_ms=20_000, amber_ms=5_000, decision_ms=15_000, result_ms=5_000)
UTH = Clockwork(TIMERS, early_close=False, rules=games.FAMILIES["ultimate_texas_holdem"])
CASINO = Clockwork(TIMERS, early_close=False, rules=games.FAMILIES["casino_holdem"])
EARLY = replace(UTH, early_close=True)
T0 = 1_795_000_000_000
ROUND = "0" * 25 + "R"
SHUT = Table("table-1")
PREFLOP, FLOP, RIVER = Phase.PREFLOP, Phase.FLOP, Phase.RIVER
TIME, DECIDED, PAUSED = WindowEnd.TIME, WindowEnd.DECIDED, WindowEnd.PAUSED
IN_ROUND = (State.FIXED, State.OPENING, State.DECIDING)
PAUSABLE = (State.IDLE, State.BETTING, State.CLOSED, *IN_ROUND, State.RESULT)


def walk(table: Table, *steps: tuple[Step, int], clockwork: Clockwork = UTH) -> Table:
    """The table after steps, each at a time after T0 in milliseconds."""
    for step, at in steps:
        table = take(table, step, clockwork, T0 + at, round_id=ROUND)
    return table


IDLE = walk(SHUT, (Step.OPEN, 0))
BETTING = walk(IDLE, (Step.BEGIN, 1_000))
CLOSED = walk(BETTING, (Step.CLOSE, 21_000))
FIXED = walk(CLOSED, (Step.FIX, 21_050))
OPENING = walk(FIXED, (Step.DEAL, 21_100))
DECIDING = walk(OPENING, (Step.SHOW, 21_500))
ON_FLOP = walk(DECIDING, (Step.SHOW, 36_500))
ON_RIVER = walk(ON_FLOP, (Step.SHOW, 51_500))
SETTLING = walk(ON_RIVER, (Step.REVEAL, 66_500))
RESULT = walk(SETTLING, (Step.FINISH, 67_000))
VOIDING = walk(DECIDING, (Step.PAUSE, 22_000), (Step.VOID, 30_000))
STANDING = {
    table.state: table for table in (SHUT, IDLE, BETTING, CLOSED, FIXED, OPENING, DECIDING, SETTLING, RESULT, VOIDING)
}


def paused(state: State) -> Table:
    return walk(STANDING[state], (Step.PAUSE, 70_000))


# --- one round ---


def bare(table: Table) -> Table:
    """The table without the time of its newest step."""
    return replace(table, step_ms=0)


def test_a_round_from_the_first_bet_to_its_results() -> None:
    assert Table(table_id="table-1", state=State.IDLE, version=1, step_ms=T0) == IDLE
    timed = replace(IDLE, state=State.BETTING, version=2, step_ms=T0 + 1_000, round_id=ROUND)
    assert replace(timed, opened_ms=T0 + 1_000, deadline_ms=T0 + 21_000) == BETTING
    assert replace(BETTING, state=State.CLOSED, version=3, step_ms=T0 + 21_000, deadline_ms=0) == CLOSED
    assert replace(CLOSED, state=State.FIXED, version=4, step_ms=T0 + 21_050, round_no=1) == FIXED
    assert replace(FIXED, state=State.OPENING, version=5, step_ms=T0 + 21_100) == OPENING
    opened = replace(OPENING, state=State.DECIDING, version=6, step_ms=T0 + 21_500, phase=PREFLOP)
    assert replace(opened, opened_ms=T0 + 21_500, deadline_ms=T0 + 36_500) == DECIDING
    first = Window(PREFLOP, T0 + 21_500, T0 + 36_500, TIME)
    flop = replace(DECIDING, version=7, phase=FLOP, opened_ms=T0 + 36_500, deadline_ms=T0 + 51_500)
    assert replace(flop, windows=(first,), step_ms=T0 + 36_500) == ON_FLOP
    second = Window(FLOP, T0 + 36_500, T0 + 51_500, TIME)
    river = replace(ON_FLOP, version=8, phase=RIVER, opened_ms=T0 + 51_500, deadline_ms=T0 + 66_500)
    assert replace(river, windows=(first, second), step_ms=T0 + 51_500) == ON_RIVER
    third = Window(RIVER, T0 + 51_500, T0 + 66_500, TIME)
    ended = replace(ON_RIVER, state=State.SETTLING, version=9, step_ms=T0 + 66_500, phase=None, deadline_ms=0)
    assert replace(ended, windows=(first, second, third)) == SETTLING
    shown = replace(SETTLING, state=State.RESULT, version=10, step_ms=T0 + 67_000)
    assert replace(shown, opened_ms=T0 + 67_000, deadline_ms=T0 + 72_000) == RESULT


def test_the_game_says_which_phases_there_are() -> None:
    """Casino Hold'em decides once, at the flop (C-1); Ultimate Texas Hold'em three times (U-1)."""
    assert UTH.phases == (PREFLOP, FLOP, RIVER)
    assert CASINO.phases == (FLOP,)
    shown = walk(OPENING, (Step.SHOW, 21_500), clockwork=CASINO)
    assert shown.phase is FLOP
    assert due(shown, CASINO, Facts(undecided=1), shown.deadline_ms) is Step.REVEAL


def test_the_next_round_begins_with_nothing_of_the_last() -> None:
    signed = replace(RESULT, table_round="a" * 64, deal="b" * 64, final="c" * 64, head="c" * 64, malfunction="d" * 64)
    again = take(signed, Step.BEGIN, UTH, T0 + 72_000, round_id="0" * 25 + "S")
    assert bare(again) == Table(
        table_id="table-1",
        state=State.BETTING,
        version=11,
        opened_ms=T0 + 72_000,
        deadline_ms=T0 + 92_000,
        round_no=1,
        head="c" * 64,
        round_id="0" * 25 + "S",
    )


@pytest.mark.parametrize(
    ("table", "step", "state"),
    [
        (RESULT, Step.REST, State.IDLE),
        (RESULT, Step.SHUT, State.SHUT),
        (paused(State.RESULT), Step.CANCEL, State.IDLE),
        (paused(State.BETTING), Step.CANCEL, State.IDLE),
        (paused(State.IDLE), Step.CANCEL, State.IDLE),
        (BETTING, Step.CANCEL, State.IDLE),
        (IDLE, Step.SHUT, State.SHUT),
        (SHUT, Step.OPEN, State.IDLE),
    ],
)
def test_a_table_without_a_round_keeps_its_order_and_nothing_of_a_round(table: Table, step: Step, state: State) -> None:
    signed = replace(table, table_round="a" * 64, deal="b" * 64, final="c" * 64, head="c" * 64, malfunction="d" * 64)
    assert bare(take(signed, step, UTH, T0 + 80_000)) == Table(
        table_id="table-1",
        state=state,
        version=table.version + 1,
        opened_ms=table.opened_ms,
        round_no=table.round_no,
        head="c" * 64,
    )


def test_a_new_table_is_shut_and_has_no_round() -> None:
    assert (SHUT.state, SHUT.version, SHUT.round_no, SHUT.head, SHUT.windows) == (State.SHUT, 0, 0, LINK_ZERO, ())


def test_a_clock_that_is_set_back_does_not_take_a_table_back() -> None:
    again = take(FIXED, Step.DEAL, UTH, T0 - 5_000)
    assert again.step_ms == FIXED.step_ms == T0 + 21_050
    shown = take(again, Step.SHOW, UTH, T0 - 4_000)
    assert (shown.step_ms, shown.opened_ms) == (T0 + 21_050, T0 + 21_050)


# --- every state and every step ---


def allowed(table: Table, clockwork: Clockwork) -> set[Step]:
    """The steps that the table takes. Every other one is refused with its name."""
    phase = "" if table.phase is None else f" {table.phase}"
    state = f"paused from {table.paused_from}{phase}" if table.paused_from else f"{table.state}{phase}"
    found, named = set(), set()
    for step in Step:
        after, refused = table, None
        try:
            after = take(table, step, clockwork, T0 + 99_000)
        except TableStateError as error:
            refused = error
        if refused is None:
            assert (after.version, after.table_id) == (table.version + 1, "table-1")
            found.add(step)
        else:
            assert refused.metadata == {"table": "table-1", "state": state, "step": step.value}
            said, _, possible = refused.message.partition("; from here it can ")
            assert said == f"table table-1 is {state}: it cannot {step}"
            named.add(possible)
    (names,) = named
    assert set(names.split(" or ")) == {step.value for step in found}
    return found


@pytest.mark.parametrize("state", [*STANDING])
def test_a_state_takes_its_steps_and_no_other(state: State) -> None:
    expected = set(STEPS[state])
    if state is State.DECIDING:
        expected -= {Step.REVEAL}  # before the last phase
    assert allowed(STANDING[state], UTH) == expected
    for step in expected - {Step.PAUSE}:
        assert take(STANDING[state], step, UTH, T0).state is STEPS[state][step]


def test_the_cards_are_revealed_after_the_last_phase_and_never_before() -> None:
    for table in (DECIDING, ON_FLOP):
        assert allowed(table, UTH) == {Step.SHOW, Step.PAUSE}
    assert allowed(ON_RIVER, UTH) == {Step.REVEAL, Step.PAUSE}
    assert allowed(replace(ON_FLOP, windows=()), CASINO) == {Step.REVEAL, Step.PAUSE}


def test_every_state_has_its_row() -> None:
    assert set(STEPS) == set(State)
    assert {step for steps in STEPS.values() for step in steps} == set(Step) - {Step.RESUME}
    assert {state for state in State if Step.PAUSE in STEPS[state]} == set(PAUSABLE)
    assert set(STANDING) == set(State) - {State.PAUSED}


# --- what is due ---


@pytest.mark.parametrize(
    ("table", "facts", "step"),
    [
        (SHUT, Facts(is_open=True), Step.OPEN),
        (SHUT, Facts(is_open=False, seats=3), None),
        (IDLE, Facts(is_open=True, seats=3), None),  # it waits for a bet, which takes BEGIN itself
        (IDLE, Facts(is_open=False), Step.SHUT),
        (CLOSED, Facts(bets=3), Step.FIX),
        (FIXED, Facts(unopened=3, unfinished=3), Step.DEAL),
        (OPENING, Facts(unopened=1, unfinished=3), None),
        (OPENING, Facts(unopened=0, unfinished=3), Step.SHOW),
        (SETTLING, Facts(unfinished=1), None),
        (SETTLING, Facts(unopened=1), None),
        (SETTLING, Facts(), Step.FINISH),
        (VOIDING, Facts(unfinished=1), None),
        (VOIDING, Facts(unopened=1), None),  # void before the draw: a bet is not returned yet
        (VOIDING, Facts(), Step.FINISH),
        *((paused(state), Facts(), None) for state in PAUSABLE),
        *((paused(state), Facts(is_open=False), None) for state in PAUSABLE),
    ],
)
def test_states_without_a_deadline_wait_for_facts_alone(table: Table, facts: Facts, step: Step | None) -> None:
    assert table.deadline_ms == 0
    for at in (0, 100_000, 10**9):
        assert due(table, UTH, facts, T0 + at) is step


@pytest.mark.parametrize(
    ("table", "facts", "step"),
    [
        (BETTING, Facts(seats=2, bets=1), Step.CLOSE),
        (BETTING, Facts(seats=2, bets=1, is_open=False), Step.CLOSE),  # a running round is finished at closing
        (BETTING, Facts(seats=2, bets=0), Step.CANCEL),
        (DECIDING, Facts(undecided=1), Step.SHOW),
        (DECIDING, Facts(undecided=0), Step.SHOW),
        (ON_FLOP, Facts(undecided=1, is_open=False), Step.SHOW),
        (ON_RIVER, Facts(undecided=1), Step.REVEAL),
        (RESULT, Facts(seats=1), Step.BEGIN),
        (RESULT, Facts(seats=0), Step.REST),
        (RESULT, Facts(seats=1, is_open=False), Step.SHUT),
        (RESULT, Facts(seats=0, is_open=False), Step.SHUT),
    ],
)
def test_a_deadline_is_kept_to_the_millisecond(table: Table, facts: Facts, step: Step) -> None:
    assert due(table, UTH, facts, table.opened_ms) is None
    assert due(table, UTH, facts, table.deadline_ms - 1) is None
    assert due(table, UTH, facts, table.deadline_ms) is step
    assert due(table, UTH, facts, table.deadline_ms + LATE_MAX_MS) is step


@pytest.mark.parametrize("table", [BETTING, DECIDING, ON_FLOP, ON_RIVER])
@pytest.mark.parametrize("facts", [Facts(), Facts(seats=1, bets=1, undecided=1)])
def test_a_window_that_is_much_too_late_is_paused(table: Table, facts: Facts) -> None:
    assert LATE_MAX_MS == 10_000  # docs/verify.md, check 26
    for clockwork in (UTH, EARLY):
        late = Step.CANCEL if table is BETTING and not facts.bets else Step.PAUSE
        assert due(table, clockwork, facts, table.deadline_ms + LATE_MAX_MS + 1) is late


def test_results_may_be_late() -> None:
    assert due(RESULT, UTH, Facts(seats=1), RESULT.deadline_ms + LATE_MAX_MS + 1) is Step.BEGIN


@pytest.mark.parametrize(("table", "step"), [(DECIDING, Step.SHOW), (ON_FLOP, Step.SHOW), (ON_RIVER, Step.REVEAL)])
def test_a_window_closes_early_where_that_is_allowed_and_nobody_is_undecided(table: Table, step: Step) -> None:
    now_ms = table.opened_ms + 1
    assert due(table, EARLY, Facts(undecided=0), now_ms) is step
    assert due(table, EARLY, Facts(undecided=1), now_ms) is None
    assert due(table, UTH, Facts(undecided=0), now_ms) is None
    assert take(table, step, EARLY, now_ms).windows[-1] == Window(table.phase or FLOP, table.opened_ms, now_ms, DECIDED)


def test_a_window_ends_by_time_from_its_deadline_on() -> None:
    ends = [take(DECIDING, Step.SHOW, EARLY, DECIDING.deadline_ms + late).windows[-1].end for late in (-1, 0, 1)]
    assert ends == [DECIDED, TIME, TIME]


# --- pause and resume (R-6) ---


@pytest.mark.parametrize("state", PAUSABLE)
def test_a_pause_stops_every_clock_and_a_whole_window_comes_back(state: State) -> None:
    table = STANDING[state]
    stopped = take(table, Step.PAUSE, UTH, table.opened_ms + 200)
    assert (stopped.state, stopped.paused_from, stopped.deadline_ms) == (State.PAUSED, state, 0)
    assert stopped.phase is table.phase
    resumed = take(replace(stopped, malfunction="d" * 64), Step.RESUME, UTH, T0 + 500_000)
    lasts_ms = {State.BETTING: 20_000, State.DECIDING: 15_000, State.RESULT: 5_000}.get(state)
    timed = table if lasts_ms is None else replace(table, opened_ms=T0 + 500_000, deadline_ms=T0 + 500_000 + lasts_ms)
    windows = (
        (Window(PREFLOP, table.opened_ms, table.opened_ms + 200, PAUSED),)
        if state is State.DECIDING
        else (table.windows)
    )
    assert bare(resumed) == bare(replace(timed, version=table.version + 2, windows=windows))


def test_a_phase_may_be_paused_again_and_again_and_then_runs_out() -> None:
    table = walk(
        DECIDING,
        (Step.PAUSE, 22_000),
        (Step.RESUME, 30_000),
        (Step.PAUSE, 44_999),
        (Step.RESUME, 60_000),
        (Step.SHOW, 75_000),
    )
    assert [(one.phase, one.open_ms - T0, one.close_ms - T0, one.end) for one in table.windows] == [
        (PREFLOP, 21_500, 22_000, PAUSED),
        (PREFLOP, 30_000, 44_999, PAUSED),
        (PREFLOP, 60_000, 75_000, TIME),
    ]
    assert (table.phase, table.version) == (FLOP, DECIDING.version + 5)


@pytest.mark.parametrize(("table", "pauses"), [(DECIDING, 62), (ON_FLOP, 62), (ON_RIVER, 62)])
def test_a_round_has_no_more_windows_than_can_be_signed(table: Table, pauses: int) -> None:
    """A `table_final` holds 64. The last pauses leave room for the windows that must run out, or the round is void."""
    shape = KINDS["table_final"].shape
    assert isinstance(shape, Record)
    assert shape.required["windows"] == Array(WINDOW, WINDOWS_MAX)
    for _ in range(pauses - 1):
        table = take(take(table, Step.PAUSE, UTH, T0), Step.RESUME, UTH, T0)
    table = take(table, Step.PAUSE, UTH, T0)
    windows = len(table.windows)
    with pytest.raises(TableStateError) as caught:
        take(table, Step.RESUME, UTH, T0)
    assert caught.value.message == (
        f"table table-1 is paused from deciding {table.phase}: after {windows} windows the round can only be made void"
    )
    assert len(take(table, Step.VOID, UTH, T0).windows) == windows <= 64
    # One pause fewer, and the round still ends: every phase gets its last window.
    table = take(replace(table, windows=table.windows[:-1]), Step.RESUME, UTH, T0)
    while table.state is State.DECIDING:
        step = due(table, UTH, Facts(undecided=1), table.deadline_ms)
        assert step is not None
        table = take(table, step, UTH, table.deadline_ms)
    assert (table.state, len(table.windows)) == (State.SETTLING, 64)


def test_a_clock_that_is_set_back_makes_no_window_that_ends_before_it_began() -> None:
    """Check 26 wants windows in order. A clock that goes back counts as one that stands."""
    table = walk(DECIDING, (Step.PAUSE, 0), (Step.RESUME, -5_000), (Step.PAUSE, 30_000), (Step.RESUME, 25_000))
    assert [(one.open_ms - T0, one.close_ms - T0) for one in table.windows] == [(21_500, 21_500), (21_500, 30_000)]
    assert (table.opened_ms, table.deadline_ms) == (T0 + 30_000, T0 + 45_000)


@pytest.mark.parametrize("state", PAUSABLE)
def test_only_a_table_that_is_paused_resumes(state: State) -> None:
    with pytest.raises(TableStateError) as caught:
        take(STANDING[state], Step.RESUME, UTH, T0)
    assert caught.value.metadata["step"] == "resume"


# --- void and cancel (R-6) ---


@pytest.mark.parametrize("state", IN_ROUND)
def test_a_paused_round_is_resumed_or_made_void(state: State) -> None:
    assert allowed(paused(state), UTH) == {Step.RESUME, Step.VOID}


@pytest.mark.parametrize("state", [State.IDLE, State.BETTING, State.CLOSED, State.RESULT])
def test_a_paused_table_without_a_round_is_resumed_or_gives_the_bets_back(state: State) -> None:
    assert allowed(paused(state), UTH) == {Step.RESUME, Step.CANCEL}


@pytest.mark.parametrize("state", IN_ROUND)
def test_a_void_round_keeps_what_was_signed_of_it(state: State) -> None:
    stopped = replace(paused(state), malfunction="d" * 64, table_round="a" * 64, deal="b" * 64)
    ended = take(stopped, Step.VOID, UTH, T0 + 80_000)
    expected = replace(stopped, state=State.VOIDING, version=stopped.version + 1, paused_from=None, phase=None)
    assert bare(ended) == bare(expected)
    shown = take(ended, Step.FINISH, UTH, T0 + 81_000)
    assert (shown.state, shown.deadline_ms, shown.round_no) == (State.RESULT, T0 + 86_000, 1)


def test_a_dealt_round_is_void_once_all_its_seats_are_opened() -> None:
    """A void `table_final` before a `seat_opening` of its deal would fail check 28."""
    stopped = paused(State.OPENING)
    with pytest.raises(TableStateError) as caught:
        take(stopped, Step.VOID, UTH, T0 + 80_000, unopened=2)
    assert caught.value.metadata == {"table": "table-1", "state": "paused from opening", "step": "void"}
    assert caught.value.message == (
        "table table-1 is paused from opening: 2 seats of the deal have no opening; make it void when they have"
    )
    assert take(stopped, Step.VOID, UTH, T0 + 80_000, unopened=0).state is State.VOIDING
    # Before the draw there are no openings, only bets to give back.
    assert take(paused(State.FIXED), Step.VOID, UTH, T0 + 80_000, unopened=2).state is State.VOIDING


# --- what a table says of itself ---


@pytest.mark.parametrize("state", [*STANDING])
def test_a_table_is_in_a_round_from_red_to_the_last_final(state: State) -> None:
    expected = state in {State.CLOSED, *IN_ROUND, State.SETTLING, State.VOIDING}
    assert STANDING[state].is_in_round is expected
    if state in PAUSABLE:
        assert paused(state).is_in_round is expected
