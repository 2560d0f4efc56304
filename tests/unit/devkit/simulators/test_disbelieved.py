"""Answers that break a rule of their form count as none at the game server, whatever the peer has done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rgs.core.errors import RegulatorUnavailableError, WalletUnavailableError
from rgs.devkit.simulators.faults import Fault
from rgs.ports.wallet import TransactionStatus, TransferPurpose
from tests.support.adapters.books import move, opening, ulid
from tests.support.adapters.simulators import OPENING_MINOR, always, at, running_regulator, running_wallet


@pytest.mark.parametrize(
    ("fault", "field"), [(Fault.NO_BALANCE, "balance_after_minor"), (Fault.LONG_REFERENCE, "wallet_reference")]
)
async def test_a_receipt_that_is_not_believed_leaves_the_debit_unknown(
    tmp_path: Path, fault: Fault, field: str
) -> None:
    async with running_wallet(tmp_path, at("Debit", 1, fault)) as running:
        with pytest.raises(WalletUnavailableError) as unknown:
            await running.client.debit(move(1, 300))
        assert unknown.value.metadata == {"contradiction": field}
        assert running.contradictions == [("wallet of op", "Debit", ulid(1), field)]
        assert (await running.client.debit(move(1, 300))).status is TransactionStatus.DUPLICATE
        assert running.simulator.faults.committed[fault] == 1


async def test_a_refusal_with_another_code_in_its_status_is_none(tmp_path: Path) -> None:
    async with running_wallet(tmp_path, always(Fault.WRONG_CODE)) as running:
        with pytest.raises(WalletUnavailableError) as unknown:
            await running.client.debit(move(1, OPENING_MINOR + 1))
        assert unknown.value.metadata == {"code": "FAILED_PRECONDITION"}
        assert running.lines == [f"fault 1: Debit call 1 {ulid(1)}: wrong_code"]
    async with running_regulator(tmp_path, always(Fault.WRONG_CODE)) as running:
        await running.client.open_session(opening(ulid(1)))
        with pytest.raises(RegulatorUnavailableError):
            await running.client.open_session(opening(ulid(2)))  # the reference is that of the first


async def test_an_answer_for_another_transaction_is_none(tmp_path: Path) -> None:
    async with running_regulator(tmp_path, at("OpenSession", 1, Fault.WRONG_TRANSACTION)) as running:
        with pytest.raises(RegulatorUnavailableError):
            await running.client.open_session(opening(ulid(1)))
        assert running.contradictions == [("regulator", "OpenSession", ulid(1), "transaction_id")]
        assert (await running.client.open_session(opening(ulid(1)))).regulator_session_id


async def test_the_simulated_wallet_names_the_player_of_a_free_bet(tmp_path: Path) -> None:
    bet = replace(move(1), purpose=TransferPurpose.FREE_BET, round_reference=ulid(2), free_bet=f"spring:{ulid(3)}")
    async with running_wallet(tmp_path, always(Fault.DOUBLE_ENTRY)) as running:
        await running.client.debit(bet)
        found = await running.client.get_transaction(operator="op", player="anna", transaction_id=ulid(1))
        assert found is not None
        assert found.status is TransactionStatus.ACCEPTED
        # A fault that moves the money twice does so for a free bet, too, although the book pays it once.
        assert (await running.client.debit(bet)).status is TransactionStatus.ACCEPTED
        rows = [row.amount_minor for row in running.simulator.store.rows() if row.kind == "debit"]
        assert rows == [100, 100]
