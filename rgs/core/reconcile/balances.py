"""The balances of a wallet statement: each must be the one before it on the same account plus what moved.

Only rows with a balance are compared; a statement with other transfers between ours leaves the column empty. Rows of
the same moment are taken in the order that fits, if there is one. A row that is a break already, or has no balance, may
stand anywhere in its moment: the balances of that moment are not compared, and the account begins again after it.
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

Step = tuple[WalletRow, int, int]
"""A row whose balance is compared, the balance before it and the one after it."""


def match_balances(rows: Iterable[Reported], terms: Terms) -> Iterator[Break]:
    """The breaks of one account. Its rows come in order of time."""
    standing: set[int] = set()
    """What the account may hold now: two values after a wrong balance, none if it is unknown."""
    for _, moment in groupby(rows, key=lambda reported: reported[0].time_ms):
        waiting = _compared(list(moment))
        if waiting is None:
            standing = set()
            continue
        if ends := _ends_of_chain(waiting, standing):
            standing, waiting = ends, []
        while waiting:
            row, _, after = waiting.pop(_next(waiting, standing))
            due = {before + _moved(row) for before in standing}
            standing = {after}
            if due and after not in due:
                standing |= due
                if terms.is_due(row.time_ms):
                    yield _differs(row, after, min(due))


def _compared(moment: Sequence[Reported]) -> list[Step] | None:
    """The rows of one moment as steps; none if one of them is passed over or has no balance."""
    steps = [
        (row, row.balance_after_minor - _moved(row), row.balance_after_minor)
        for row, is_passed_over in moment
        if not is_passed_over and row.balance_after_minor is not None
    ]
    return steps if len(steps) == len(moment) else None


def _ends_of_chain(moment: Sequence[Step], standing: set[int]) -> set[int]:
    """The balance after all rows of one moment, if in some order each begins where the one before ended; else empty.

    It is a trail over all edges of a graph whose nodes are balances (Euler, Hierholzer). A circle ends where it began:
    at any of its balances, if the account is not known yet.
    """
    onward: dict[int, list[int]] = {}
    surplus: Counter[int] = Counter()
    for _, before, after in moment:
        onward.setdefault(before, []).append(after)
        surplus[before] += 1
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


def _next(waiting: Sequence[Step], standing: set[int]) -> int:
    """The first of the rows of one moment: one that fits the account; else one whose wrong balance hides that another
    follows it; else one that follows no other.
    """
    begins = {before for _, before, _ in waiting}
    ends = {after for _, _, after in waiting}
    choices: tuple[Callable[[WalletRow, int], bool], ...] = (
        lambda _, before: before in standing,
        lambda row, _: any(start + _moved(row) in begins for start in standing),
        lambda _, before: before not in ends,
    )
    return next((place for fits in choices for place, (row, before, _) in enumerate(waiting) if fits(row, before)), 0)


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
