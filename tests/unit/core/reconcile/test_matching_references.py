"""What a wallet may keep of a reference: for a bet of a round its session is enough, for a participation it is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rgs.core.reconcile.classes import BreakClass
from tests.unit.core.reconcile.test_matching import ROW, TICKET, TRANSFER, money


@pytest.mark.parametrize("source", ["transfer", "free_bet"])
def test_the_session_is_enough_for_a_bet_of_a_round(source: str) -> None:
    bet = replace(TRANSFER, source=source, reference="S:bet:R")
    for reference in ("S:bet:R", "S", ""):
        assert money([bet], [replace(ROW, reference=reference)], []) == []
    assert money([bet], [replace(ROW, reference="R")], []) == [BreakClass.CONTENT_DIFFERS]


def test_it_is_not_for_a_participation() -> None:
    for reference, found in (("P", []), ("", []), ("S", [BreakClass.CONTENT_DIFFERS])):
        assert money([TRANSFER], [replace(ROW, reference=reference)], [TICKET]) == found


def test_a_purchase_that_the_regulator_was_told_otherwise_differs_once() -> None:
    for other, kind in (
        ({"amount_minor": 99}, BreakClass.AMOUNT_DIFFERS),
        ({"player": "bert"}, BreakClass.CONTENT_DIFFERS),
    ):
        assert money([TRANSFER], [ROW], [replace(TICKET, **other)]) == [kind]
