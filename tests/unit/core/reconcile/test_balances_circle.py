"""Rows of one moment that lead an account back to where it was: stakes, and the same amount returned."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rgs.core.reconcile.facts import WalletRow
from tests.unit.core.reconcile.test_balances import Move, account, named

BACK: list[Move] = [("debit", 200), ("debit", 100), ("credit", 300)]


def rows_of(*moments: list[Move]) -> list[WalletRow]:
    """One account, right throughout; the rows of each list bear one time."""
    rows = account([move for moves in moments for move in moves])
    times = [number for number, moves in enumerate(moments) for _ in moves]
    return [replace(row, time_ms=1_000 * (1 + at)) for row, at in zip(rows, times, strict=True)]


@pytest.mark.parametrize("before", [[], [("credit", 50)], BACK])
@pytest.mark.parametrize("behind", [[("debit", 200)], [("credit", 7)], BACK])
def test_what_follows_goes_on_from_where_it_was(before: list[Move], behind: list[Move]) -> None:
    """What the account held before its first row nobody tells: any balance of the circle may be the last."""
    rows = rows_of(*([before] if before else []), BACK, behind)
    assert named(rows) == []
    at = len(before)
    assert named([*rows[:at], rows[at + 2], rows[at], rows[at + 1], *rows[at + 3 :]]) == []


@pytest.mark.parametrize("off", [1, 50, 300])
def test_a_gap_behind_it_is_told(off: int) -> None:
    rows = rows_of([("credit", 50)], BACK, [("debit", 200)])
    rows[-1] = replace(rows[-1], balance_after_minor=(rows[-1].balance_after_minor or 0) - off)
    assert named(rows) == ["T4"]


def test_two_circles_that_do_not_touch_are_no_account() -> None:
    rows = rows_of(BACK, [("debit", 200)])
    far = [(row.balance_after_minor or 0) + 5_000 for row in rows[:3]]
    stray = [replace(rows[n], transaction_id=f"X{n}", balance_after_minor=far[n], time_ms=1_000) for n in range(3)]
    assert named([*rows[:3], *stray, rows[3]])
