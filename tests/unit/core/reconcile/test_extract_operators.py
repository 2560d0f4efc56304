"""Whose rows are extracted: of the operator that is asked for, and of sessions whose operator the files do not show."""

from __future__ import annotations

from rgs.core.reconcile.extract import SEATS, TRANSFERS
from tests.unit.core.reconcile.test_extract import TIME, TRANSFER, extracted, opened, statement

DEBIT = statement("transfer", {**TRANSFER, "transaction_id": "T1"}, {})
OPENING = statement(
    "round_opening",
    {"round_no": "1", "balance_before_minor": "9", "seat": {"bets": [{"amount_minor": "1", "bet": "ante"}]}},
)
FINAL = statement(
    "round_final",
    {"opening": OPENING.hash, "staked_minor": "1", "returned_minor": "0", "status": "settled", "time": TIME},
)


def test_a_session_of_an_unknown_operator_is_compared_for_each() -> None:
    for operator in (None, "op-1", "op-2"):
        _, rows = extracted(DEBIT, operator=operator)
        assert [row[0] for table, row in rows if table == TRANSFERS] == ["T1"]
    for operator, transfers in ((None, 1), ("op-1", 1), ("op-2", 0)):
        _, rows = extracted(opened(), DEBIT, operator=operator)
        assert [table for table, _ in rows].count(TRANSFERS) == transfers


def test_a_seat_has_the_status_of_its_final() -> None:
    _, rows = extracted(opened(), OPENING, FINAL)
    (seat,) = [row for table, row in rows if table == SEATS]
    assert "settled" in seat
    assert FINAL.hash in seat
