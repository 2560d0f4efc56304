"""What the embedded wallet's book calls a transfer of a round, as the reconciliation reads it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rgs.ports.wallet import TransferPurpose
from tests.support.adapters.books import give, make_wallet, move, ulid


async def test_a_transfer_names_its_session_its_purpose_and_its_round(tmp_path: Path) -> None:
    wallet, store = make_wallet(tmp_path / "wallet.sqlite")
    await wallet.open_account(operator="op", player="anna", currency="EUR", balance_minor=1_000)
    await wallet.debit(replace(move(1), purpose=TransferPurpose.BET, round_reference=ulid(700)))
    await wallet.rollback(replace(move(1), purpose=TransferPurpose.BET, round_reference=ulid(700)))
    await wallet.credit(replace(give(2), purpose=TransferPurpose.RETURN, round_reference=ulid(700)))
    await wallet.debit(move(3))
    await wallet.credit(give(4))
    bet, back = f"{ulid(900)}:bet:{ulid(700)}", f"{ulid(900)}:return:{ulid(700)}"
    assert [row.reference for row in store.rows()] == ["opening", bet, bet, back, ulid(900), ulid(900)]
    await wallet.close()
