"""Where a table stands behind its statements and events, when a restored store is brought up to its log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rgs.core.tables.machine import State, Table
from rgs.core.tables.recovery import advance_table, after_event, new_table, numbered, tree_of, without_bets
from rgs.core.tables.rows import TableRound, TableRow
from rgs.core.tables.seating import Sitting
from rgs.core.tables.tree import SeatTree
from rgs.core.times import format_time

TIME_MS = 1_795_000_000_000
HASH = bytes(range(32))


def row_in(state: State, paused_from: State | None = None) -> TableRow:
    round_id = "01M7Q5CQG0D1RMEMN4V6TWJ5GT"
    table = Table("t", state, 7, step_ms=TIME_MS, round_no=3, round_id=round_id, paused_from=paused_from, head="ab")
    return TableRow(table, "c1", malfunction_code="FAULT" if paused_from else "")


def event(code: str, **fields: str) -> dict[str, str]:
    return {"code": code, "time": format_time(TIME_MS + 5), **fields}


@pytest.mark.parametrize("code", ["TABLE_SHUT", "TABLE_OPENED"])
def test_an_order_about_its_hours_is_kept(code: str) -> None:
    after = after_event(replace(row_in(State.IDLE), is_shut=code == "TABLE_OPENED"), event(code), HASH)
    assert (after.is_shut, after.table.version, after.table.step_ms) == (code == "TABLE_SHUT", 8, TIME_MS + 5)
    assert after.due_ms == TIME_MS + 5


def test_a_malfunction_outside_a_round_pauses_it_until_it_is_resumed_or_given_up() -> None:
    paused = after_event(row_in(State.BETTING), event("MALFUNCTION", reason="FAULT"), HASH)
    assert (paused.table.state, paused.table.paused_from, paused.table.round_id) == (State.PAUSED, State.IDLE, "")
    assert (paused.table.malfunction, paused.malfunction_code, paused.due_ms) == (HASH.hex(), "FAULT", 0)
    for code in ("ROUND_RESUMED", "TABLE_RESUMED", "BETS_CANCELLED"):
        after = after_event(paused, event(code), HASH)
        assert (after.table.state, after.table.paused_from, after.malfunction_code) == (State.IDLE, None, "")
        assert (after.table.round_no, after.table.head) == (3, "ab")


@pytest.mark.parametrize("code", ["MALFUNCTION", "ROUND_RESUMED", "VOID_PROPOSED"])
def test_a_round_in_play_is_not_moved_by_an_event(code: str) -> None:
    row = row_in(State.PAUSED, State.DECIDING)
    assert after_event(row, event(code), HASH) is row


@pytest.mark.parametrize("state", [State.BETTING, State.CLOSED])
def test_bets_of_which_nothing_is_signed_leave_an_idle_table(state: State) -> None:
    after = without_bets(row_in(state))
    assert (after.table.state, after.table.round_id, after.table.deadline_ms) == (State.IDLE, "", 0)
    paused = without_bets(row_in(State.PAUSED, state))
    assert (paused.table.state, paused.table.paused_from) == (State.PAUSED, State.IDLE)
    assert (paused.malfunction_code, paused.due_ms) == ("FAULT", 0)


def test_other_tables_stand_as_they_stood() -> None:
    for state in set(State) - {State.BETTING, State.CLOSED, State.PAUSED}:
        row = row_in(state)
        assert without_bets(row) is row


def test_the_newest_configuration_comes_into_force_where_no_round_is() -> None:
    made = replace(new_table("t", "c1", TIME_MS), next_config="c2")
    assert (made.table.state, made.table.version, made.due_ms) == (State.SHUT, 1, TIME_MS)
    after = without_bets(made)
    assert (after.config, after.next_config, after.table.version) == ("c2", "", 2)
    running = replace(row_in(State.DECIDING), next_config="c2")
    assert without_bets(running) is running


def test_a_round_takes_its_own_configuration_and_leaves_a_newer_one() -> None:
    body = {
        "betting_close_time": format_time(TIME_MS + 3),
        "betting_open_time": format_time(TIME_MS),
        "config": "c2",
        "round_id": "01M7Q5CQG0D1RMEMN4V6TWJ5GV",
        "table_round_no": "4",
        "time": format_time(TIME_MS + 4),
    }
    for waiting, left in (("c2", ""), ("c3", "c3")):
        after = advance_table(replace(row_in(State.IDLE), next_config=waiting), "table_round", body, HASH)
        assert (after.config, after.next_config, after.table.round_no) == ("c2", left, 4)
        assert (after.table.state, after.table.table_round, after.closed_ms) == (State.FIXED, HASH.hex(), TIME_MS + 3)


def sitting(session_id: str, box: int) -> Sitting:
    return Sitting("t", session_id, "op-1", session_id, session_id, box=box, reserved_minor=100)


def test_seats_that_are_missing_have_the_numbers_that_are_left() -> None:
    leaves = {number: bytes([number]) * 32 for number in (1, 2, 3)}
    tree = SeatTree([leaves[number] for number in (1, 2, 3)], HASH)
    round_ = TableRound("r", "t", 1, "#00:00:00", "uth-online", "it-adm", "c", 3, 3, HASH, tree.root, 0, 0)
    found = numbered(round_, {2: leaves[2]}, [sitting("b", 2), sitting("a", 1)])
    assert [(one.session_id, one.seat_no) for one in found] == [("a", 1), ("b", 3)]
    assert numbered(round_, {2: leaves[2]}, [sitting("a", 1)]) == []
    whole = tree_of(round_, leaves)
    assert whole is not None
    assert whole.root == tree.root
    assert tree_of(round_, {1: leaves[1], 2: leaves[2]}) is None
    assert tree_of(round_, {1: leaves[2], 2: leaves[1], 3: leaves[3]}) is None, "other bets than those under the root"
    assert tree_of(replace(round_, seats=0), {}) is None
