"""What a wallet that moved too little or too much owes: to the player of the account, and to no player where the money
is a campaign's.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from rgs.core.reconcile.classes import BreakClass
from rgs.core.reconcile.facts import Break, SignedTransfer, WalletRow
from rgs.core.reconcile.matching import match_money
from tests.unit.core.reconcile.test_matching import ROW, TERMS, TRANSFER

CREDIT = replace(TRANSFER, kind="credit", source="transfer")
CREDITED = replace(ROW, kind="credit")


def found(transfer: SignedTransfer, *rows: WalletRow) -> Break:
    (result,) = match_money("T", [transfer], list(rows), [], replace(TERMS, regulator=False))
    return result


@pytest.mark.parametrize(("source", "is_owed"), [("transfer", True), ("free_bet", False)])
@pytest.mark.parametrize(
    ("kind", "transfer", "rows"),
    [
        (BreakClass.MISSING_CREDIT, CREDIT, ()),
        (BreakClass.AMOUNT_DIFFERS, CREDIT, (replace(CREDITED, amount_minor=99),)),
        (BreakClass.AMOUNT_DIFFERS, TRANSFER, (replace(ROW, amount_minor=101),)),
        (BreakClass.DIRECTION_DIFFERS, CREDIT, (ROW,)),
        (BreakClass.DUPLICATE, TRANSFER, (ROW, ROW)),
    ],
)
def test_what_the_wallet_owes_is_owed_to_the_player_but_for_a_campaign(
    kind: BreakClass, transfer: SignedTransfer, rows: tuple[WalletRow, ...], source: str, is_owed: bool
) -> None:
    result = found(replace(transfer, source=source), *rows)
    assert (result.kind, result.is_owed) == (kind, is_owed)


@pytest.mark.parametrize(
    ("transfer", "rows"),
    [
        (CREDIT, (replace(CREDITED, amount_minor=101),)),
        (TRANSFER, (replace(ROW, amount_minor=99),)),
        (replace(CREDIT, amount_minor=100), (CREDITED, CREDITED)),
        (TRANSFER, ()),
    ],
)
def test_what_the_player_got_too_much_is_not_owed(transfer: SignedTransfer, rows: tuple[WalletRow, ...]) -> None:
    assert not found(replace(transfer, source="transfer"), *rows).is_owed
