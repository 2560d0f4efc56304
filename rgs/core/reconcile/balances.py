"""The balances of a wallet statement: each must be the one before it on the same account plus what moved.

Only rows with a balance are compared; a statement with other transfers between ours leaves the column empty. Rows of
the same moment are taken in the order that fits, if there is one. After a row that is a break already, the account
begins again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from rgs.core.amounts import format_money
from rgs.core.reconcile.classes import BreakClass
from rgs.core.reconcile.facts import Break, WalletRow
from rgs.core.reconcile.matching import ACCEPTED, DEBIT, Terms

Reported = tuple[WalletRow, bool]
"""A row, and whether it is passed over, because its transaction is a break already."""


def match_balances(rows: Iterable[Reported], terms: Terms) -> Iterator[Break]:
    """The breaks of one account. Its rows come in order of time."""
    standing: set[int] = set()
    """What the account may hold now: two values after a wrong balance, none if it is unknown."""
    for _, moment in groupby(rows, key=lambda reported: reported[0].time_ms):
        waiting = list(moment)
        if ends := _ends_of_chain(waiting, standing):
            standing, waiting = ends, []
        while waiting:
            row, is_passed_over = waiting.pop(_next(waiting, standing))
            after = row.balance_after_minor
            if is_passed_over or after is None:
                standing = set()
                continue
            due = {before + _moved(row) for before in standing}
            standing = {after}
            if due and after not in due:
                standing |= due
                if terms.is_due(row.time_ms):
                    yield _differs(row, after, min(due))


def _ends_of_chain(moment: Sequence[Reported], standing: set[int]) -> set[int]:
    """The balance after all rows of one moment, if in some order each begins where the one before ended; else empty.

    It is a trail over all edges of a graph whose nodes are balances (Euler, Hierholzer). A circle ends where it began:
    at any of its balances, if the account is not known yet.
    """
    onward: dict[int, list[int]] = {}
    surplus: Counter[int] = Counter()
    for row, is_passed_over in moment:
        after = row.balance_after_minor
        if is_passed_over or after is None:
            return set()
        begin = after - _moved(row)
        onward.setdefault(begin, []).append(after)
        surplus[begin] += 1
        surplus[after] -= 1
    odd = {balance: more for balance, more in surplus.items() if more}
    if odd and sorted(odd.values()) != [-1, 1]:
        return set()
    begins = {balance for balance, more in odd.items() if more > 0} or set(onward)
    if standing:
        begins &= standing
    if not begins:
        return set()
    path, taken = [min(begins)], 0
    while path:
        if ways := onward.get(path[-1]):
            path.append(ways.pop())
            taken += 1
        else:
            path.pop()
    if taken < len(moment):
        return set()
    return {balance for balance, more in odd.items() if more < 0} or begins


def _next(waiting: Sequence[Reported], standing: set[int]) -> int:
    """The first of the rows of one moment: one that fits the account; else one whose balance is not compared; else one
    whose wrong balance hides that another follows it; else one that follows no other.
    """
    begins = {_before(row) for row, _ in waiting}
    ends = {row.balance_after_minor for row, _ in waiting}
    choices: tuple[Callable[[WalletRow, bool], bool], ...] = (
        lambda row, _: _before(row) in standing,
        lambda row, is_passed_over: is_passed_over or row.balance_after_minor is None,
        lambda row, _: any(before + _moved(row) in begins for before in standing),
        lambda row, _: _before(row) not in ends,
    )
    return next((place for fits in choices for place, reported in enumerate(waiting) if fits(*reported)), 0)


def _before(row: WalletRow) -> int | None:
    return None if row.balance_after_minor is None else row.balance_after_minor - _moved(row)


def _moved(row: WalletRow) -> int:
    if row.status != ACCEPTED:
        return 0
    return -row.amount_minor if row.kind == DEBIT else row.amount_minor


def _differs(row: WalletRow, after: int, due: int) -> Break:
    return Break(
        BreakClass.BALANCE_DIFFERS,
        f"transaction {row.transaction_id}",
        (
            ("wallet", f"{row.kind} {format_money(row.amount_minor, row.currency)}"),
            ("balance after it", format_money(after, row.currency)),
            ("due by the row before", format_money(due, row.currency)),
        ),
        row.time_ms,
        amount_minor=abs(after - due),
        operator=row.operator,
        player=row.player,
        currency=row.currency,
        sources=("wallet",),
    )
