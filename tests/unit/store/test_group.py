"""The rows of one transaction, put together without a database."""

from __future__ import annotations

from dataclasses import replace

from rgs.store.changes import Change, DayCount, Draft, SessionRaceError
from rgs.store.group import Group, SigningIdentity, parted
from rgs.store.rows import AnswerRow
from tests.support.store.shelf import INSTANCE_KEY, NAME, answer, opened, session
from tests.unit.store.test_store_turn import turning

DAY = DayCount("op-1", "EUR", "2026-11-18", purchases=1, bought_minor=500)


def group(statement_no: int = 6) -> Group:
    return Group(SigningIdentity(NAME, INSTANCE_KEY, statement_no, 4, 8), 1_000_000)


def test_a_change_that_lost_its_race_does_not_end_the_group() -> None:
    made = group()
    first, *others = made.fill(
        [opened(session(1)), opened(session(2)), opened(session(3))], {session(1).session_id: 5}, []
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
