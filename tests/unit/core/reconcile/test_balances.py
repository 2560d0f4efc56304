"""Balances of one account: which row is named where they do not follow from one another."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core.reconcile.balances import match_balances
from rgs.core.reconcile.classes import BreakClass
from rgs.core.reconcile.facts import WalletRow
from tests.unit.core.reconcile.test_matching import TERMS

Move = tuple[str, int]


def account(moves: list[Move], *, begin: int = 1_000, step: int = 10) -> list[WalletRow]:
    """Rows of these moves, with their right balances, `step` ms apart."""
    rows, balance = [], begin
    for number, (kind, amount) in enumerate(moves):
        balance += -amount if kind == "debit" else amount
        at = 100 + number * step
        rows.append(WalletRow(f"T{number}", kind, "anna", "EUR", amount, at, "", "accepted", balance, "op", ""))
    return rows


def named(rows: list[WalletRow], *, passed_over: int = -1) -> list[str]:
    result = [(row, number == passed_over) for number, row in enumerate(rows)]
    return [found.subject.removeprefix("transaction ") for found in match_balances(result, TERMS)]


MOVES: list[Move] = [("debit", 100), ("credit", 40), ("debit", 7), ("rollback", 7), ("credit", 500)]


def test_a_right_account_has_no_break() -> None:
    assert named(account(MOVES)) == []


@pytest.mark.parametrize("wrong", range(1, 5))
def test_one_wrong_balance_is_one_break(wrong: int) -> None:
    rows = account(MOVES)
    rows[wrong] = replace(rows[wrong], balance_after_minor=3)
    assert named(rows) == [f"T{wrong}"]


def test_the_first_balance_is_known_by_the_next() -> None:
    rows = account(MOVES)
    rows[0] = replace(rows[0], balance_after_minor=3)
    assert named(rows) == ["T1"]  # nothing stands before the first


def test_a_row_that_is_missing_is_told_by_the_one_behind_it() -> None:
    rows = account(MOVES)
    (found,) = match_balances([(row, False) for row in rows if row.transaction_id != "T1"], TERMS)
    assert (found.kind, found.subject, found.amount_minor) == (BreakClass.BALANCE_DIFFERS, "transaction T2", 40)
    assert dict(found.found)["due by the row before"] == "8.93 EUR"


def test_what_moved_nothing_leaves_the_balance() -> None:
    rows = account(MOVES)
    refused = replace(rows[2], transaction_id="R", status="refused", amount_minor=9_999, time_ms=rows[2].time_ms + 1)
    assert named([*rows[:3], refused, *rows[3:]]) == []


def test_behind_a_row_that_is_told_elsewhere_or_tells_none_the_account_begins_again() -> None:
    rows = account(MOVES)
    wrong = replace(rows[2], balance_after_minor=3)
    assert named([*rows[:2], wrong, *rows[3:]], passed_over=2) == []
    assert named([*rows[:2], replace(wrong, balance_after_minor=None), *rows[3:]]) == []


@pytest.mark.parametrize("rest", list(permutations(range(1, 5))))
def test_beside_a_row_that_is_told_elsewhere_no_order_is_known(rest: tuple[int, ...]) -> None:
    """A bet of 200, one of 100 and a return of 100 in one moment: without the first, the others are a circle."""
    rows = account([("debit", 200), ("debit", 100), ("credit", 100), ("debit", 50), ("credit", 5)], step=0)
    behind = [replace(row, time_ms=500) for row in account([("debit", 9), ("credit", 3)], begin=755, step=0)]
    moment = [rows[0], *(rows[place] for place in rest)]
    assert named([*moment, *behind], passed_over=0) == []
    assert named([replace(rows[0], balance_after_minor=None), *moment[1:], *behind]) == []


def test_outside_the_period_nothing_is_told() -> None:
    rows = account(MOVES)
    rows[3] = replace(rows[3], balance_after_minor=3)
    assert list(match_balances([(row, False) for row in rows], replace(TERMS, to_ms=120))) == []


@given(order=st.permutations(range(5)))
def test_rows_of_one_moment_are_taken_in_any_order(order: list[int]) -> None:
    rows = account(MOVES, step=0)
    assert named([rows[place] for place in order]) == []


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_of_rows_of_one_moment_the_wrong_one_is_named(order: tuple[int, int]) -> None:
    rows = account(MOVES)
    pair = [replace(rows[1], time_ms=115, balance_after_minor=3), replace(rows[2], time_ms=115)]
    assert named([rows[0], *(pair[place - 1] for place in order), *rows[3:]]) == ["T1"]
    unreported = [replace(pair[0], balance_after_minor=None), pair[1]]
    assert named([rows[0], *(unreported[place - 1] for place in order), *rows[3:]]) == []
