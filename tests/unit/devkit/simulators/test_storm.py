"""Everything goes wrong by chance, everybody repeats with the same ids: in the end each transfer has happened once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import TransactionRolledBackError, WalletUnavailableError
from rgs.devkit.simulators.faults import Fault, FaultPlan, Planned
from rgs.devkit.simulators.statements import wallet_statement
from rgs.ports.wallet import TransactionStatus
from tests.support.adapters.books import move, requested_by, ulid
from tests.support.adapters.simulators import OPENING_MINOR, Running, running_wallet

SHARES = (
    (Fault.LOST_REPLY, 150),
    (Fault.LOST_REQUEST, 150),
    (Fault.DUPLICATE, 150),
    (Fault.REORDER, 100),
    (Fault.OUTAGE, 50),
    (Fault.RESTART, 20),
)
TRANSACTIONS = 30


async def settled(act: Any, number: int) -> Any:
    """The first answer, however many attempts it takes; a refusal is one."""
    while True:
        try:
            return await act(requested_by(act.__name__, move(number, 100)))
        except WalletUnavailableError:
            continue


async def play(running: Running, number: int) -> int:
    """One purchase, given back or rolled back; what it comes to in minor units."""
    wallet = running.client
    if number % 3 == 0:  # given up after one unknown answer, as an operation does
        try:
            await wallet.debit(move(number, 100))
        except WalletUnavailableError:
            await settled(wallet.rollback, number)
            with pytest.raises(TransactionRolledBackError):
                await settled(wallet.debit, number)
            return 0
        return -100
    receipt = await settled(wallet.debit, number)
    assert receipt.status in (TransactionStatus.ACCEPTED, TransactionStatus.DUPLICATE)
    if number % 3 == 1:
        await settled(wallet.credit, 1_000 + number)
        return 0
    return -100


@pytest.mark.parametrize("seed", ["a", "b", "c"])
async def test_each_transfer_happens_once(tmp_path: Path, seed: str) -> None:
    async with running_wallet(tmp_path, FaultPlan(per_mille=SHARES, seed=seed)) as running:
        moved = await asyncio.gather(*(play(running, number) for number in range(1, TRANSACTIONS + 1)))
        await running.server.switch_faults(False)
        balance = await running.client.get_balance(operator="op", player="anna", currency="EUR")
        assert balance.balance_minor == OPENING_MINOR + sum(moved)
        assert sum(running.simulator.faults.committed.values()) > TRANSACTIONS // 3
        running.simulator.store.verify()
        rows = [line.split(",") for line in wallet_statement(running.simulator.store).splitlines()[1:]]
        kinds = [(row[0], row[1]) for row in rows]
        assert len(set(kinds)) == len(kinds)
        assert {row[0] for row in rows} >= {ulid(number) for number in range(1, TRANSACTIONS + 1)}
        assert running.contradictions == []


async def test_a_wallet_without_tombstones_is_seen(tmp_path: Path) -> None:
    """The planted defect: the reordered debit takes money, and the one that is sent again is no longer refused."""
    plan = FaultPlan((Planned(Fault.REORDER, "Debit", 1), Planned(Fault.NO_TOMBSTONE)))
    async with running_wallet(tmp_path, plan) as running:
        with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
            await play(running, 3)
