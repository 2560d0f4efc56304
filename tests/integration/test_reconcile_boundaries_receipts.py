"""Receipts and openings that are looked at, and those of other sessions that hide none of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rgs.core.reconcile.facts import ReceiptRow
from rgs.store.reconciliation import BookComparison
from tests.integration.test_reconcile_boundaries import SEAT, TERMS, store, take

__all__ = ["store"]

RECEIPT = ReceiptRow("S", 1, "o1", 0)


def looked_at(store: BookComparison) -> list[tuple[list[str], list[str]]]:
    store.join(TERMS)
    return [([seat.opening for seat in seats], [row.opening for row in rows]) for seats, rows in store.receipts()]


def test_what_agrees_is_not_looked_at_and_each_that_stands_alone_is(store: BookComparison, tmp_path: Path) -> None:
    """Round 1 of S has its receipt. That of S2 has no receipt, that of S3 was never dealt, that of S4 is another's."""
    take(
        store, tmp_path, SEAT, replace(SEAT, session_id="S2", opening="o2"),
        replace(SEAT, session_id="S4", opening="o4"), RECEIPT, replace(RECEIPT, session_id="S3", opening="o3"),
        replace(RECEIPT, session_id="S4", opening="x4"),
    )  # fmt: skip
    assert looked_at(store) == [(["o2"], []), ([], ["o3"]), (["o4"], ["x4"])]


def test_rounds_of_one_session_are_apart(store: BookComparison, tmp_path: Path) -> None:
    take(
        store, tmp_path, SEAT, replace(SEAT, round_no=2, opening="o2"), RECEIPT,
        replace(RECEIPT, round_no=3, opening="o2"),
    )  # fmt: skip
    assert looked_at(store) == [(["o2"], []), ([], ["o2"])]
