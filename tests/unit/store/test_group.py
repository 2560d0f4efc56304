"""The rows of one transaction, put together without a database."""

from __future__ import annotations

import json
from dataclasses import replace

from rgs.core.statements import parse_envelope
from rgs.store.changes import Change, DayCount, Draft, SessionRaceError, TableMovedError
from rgs.store.group import Group, Known, SigningIdentity, parted
from rgs.store.rows import AnswerRow
from tests.support.store.shelf import INSTANCE_KEY, NAME, answer, opened, session, started, ulid
from tests.support.store.table_rows import TABLE, guarded, sitting, table_round, table_row
from tests.unit.store.test_turn import turning

DAY = DayCount("op-1", "EUR", "2026-11-18", purchases=1, bought_minor=500)


def group(statement_no: int = 6) -> Group:
    return Group(SigningIdentity(NAME, INSTANCE_KEY, statement_no, 4, 8), 1_000_000)


def test_a_change_that_lost_its_race_does_not_end_the_group() -> None:
    made = group()
    first, *others = made.fill(
        [opened(session(1)), opened(session(2)), opened(session(3))], Known({session(1).session_id: 5}, {}, 0), []
    )
    assert isinstance(first, SessionRaceError)
    numbers = [signed.statement_no for outcome in others if isinstance(outcome, tuple) for signed in outcome]
    assert numbers == [7, 8]
    assert made.identity == SigningIdentity(NAME, INSTANCE_KEY, 8, 4, 8)
    assert len(made.new_sessions) == 2


def test_an_answer_without_a_statement_names_none() -> None:
    made = group()
    made.add(Change(answer=answer(1)))
    made.add(Change(answer=answer(2), drafts=(Draft("event", {"time": "then"}),)))
    one, two = answer(1), answer(2)
    assert made.answers == [
        AnswerRow("op-1", "Act", "request-1", one.digest, one.body, "", 0, one.time_ms),
        AnswerRow("op-1", "Act", "request-2", two.digest, two.body, NAME, 7, two.time_ms),
    ]


def test_what_is_added_to_a_day_is_one_row_in_the_order_of_the_key() -> None:
    made = group()
    for counted in (DAY, replace(DAY, operator="op-0", ends=1, final_balance_minor=7), DAY):
        made.add(Change(counted=counted))
    assert made.day_rows() == [
        ("op-0", "EUR", "2026-11-18", 1, 500, 0, 0, 0, 1, 7),
        ("op-1", "EUR", "2026-11-18", 2, 1000, 0, 0, 0, 0, 0),
    ]


def test_the_next_instance_brings_its_files() -> None:
    handover = turning(artifacts=(("ab", "keys.jsonl", b"keys"),), last_draw_no=4).handover
    assert handover is not None
    begun = group().turned(handover)
    assert begun.artifacts == [("ab", "keys.jsonl", b"keys")]
    assert (begun.instance, begun.statement_no, begun.draw_no) == (handover.instance, 2, 0)


def test_a_part_has_each_session_once_where_it_must_and_a_handover_is_one_by_itself() -> None:
    one, two, again, turn = opened(session(1)), opened(session(2)), opened(session(1)), turning()
    assert list(parted([one, two, again, turn, two], is_session_once=False)) == [[one, two, again], [turn], [two]]
    assert list(parted([one, two, again, two], is_session_once=True)) == [[one, two], [again, two]]
    assert list(parted([], is_session_once=True)) == []


def test_a_part_has_each_table_and_each_seat_once_where_it_must() -> None:
    step, next_step, elsewhere = (
        Change(table=table_row(2)),
        Change(table=table_row(3)),
        Change(table=table_row(2, "sala-piccola")),
    )
    fixed, held = Change(table_round=table_round(1)), guarded(2)
    for one, two in ((step, next_step), (step, fixed), (fixed, fixed)):
        assert list(parted([one, elsewhere, two], is_session_once=True)) == [[one, elsewhere], [two]]
    # A guard reads the version that the step before it leaves, and writes nothing.
    assert list(parted([step, held, elsewhere, held], is_session_once=True)) == [[step, held, elsewhere, held]]
    seat, session_of_it = Change(sitting=sitting(1)), opened(session(1))
    for one, two in ((seat, seat), (seat, session_of_it), (session_of_it, seat)):
        assert list(parted([one, two], is_session_once=True)) == [[one], [two]]
    assert list(parted([step, next_step, seat, seat], is_session_once=False)) == [[step, next_step, seat, seat]]


def test_a_refused_change_counts_as_nothing_for_those_behind_it() -> None:
    known = Known({}, {TABLE: 1}, 500)
    made = group()
    outcomes = made.fill(
        [
            Change(table=table_row(3)),  # not the next one
            guarded(1, 499, table=table_row(2)),  # in time no more
            guarded(1, 500, table=table_row(2)),
            guarded(1, answer=answer(1)),
            guarded(2, session=session(1, version=2)),  # the session is not there
            guarded(2, answer=answer(2)),
        ],
        known,
        [],
    )
    assert [type(one) for one in outcomes] == [
        TableMovedError, TableMovedError, tuple, TableMovedError, SessionRaceError, tuple,
    ]  # fmt: skip
    assert [one.message for one in outcomes if isinstance(one, TableMovedError)] == [
        "the table was changed by another request", "the window has closed", "the table has moved on",
    ]  # fmt: skip
    assert known.tables == {TABLE: 2}
    assert len(made.tables) == 1
    assert [row[2] for row in made.answers] == ["request-2"]


def test_the_row_that_shows_a_commit_is_the_strongest_of_the_group() -> None:
    made = group()
    assert made.moved == ("", "", 0)
    for change, moved in (
        (Change(sitting=sitting(1, version=4)), ("sittings", ulid(1), 4)),
        (Change(sitting=sitting(2)), ("sittings", ulid(2), 1)),
        (Change(table=table_row(7)), ("tables", TABLE, 7)),
        (Change(sitting=sitting(3)), ("tables", TABLE, 7)),
        (Change(session=session(5, version=2)), ("sessions", ulid(5), 2)),
        (Change(sitting=sitting(3)), ("sessions", ulid(5), 2)),
    ):
        made.add(change)
        assert made.moved == moved


def test_the_count_of_seats_names_the_round_that_it_is_of() -> None:
    made = group()
    drafts = tuple(Draft(kind, {"time": "then"}) for kind in ("table_round", "table_seats"))
    round_, seats = made.add(Change(table=table_row(2), table_round=table_round(1), drafts=drafts))
    assert json.loads(parse_envelope(seats.envelope).payload)["table_round"] == round_.hash.hex()


def test_a_round_of_solo_play_writes_nothing_at_tables() -> None:
    made = group()
    made.add(started(session(1), 5))
    assert len(made.new_rounds) == 1
    assert (made.seats_signed, made.new_table_rounds, made.table_rounds) == ({}, [], [])
