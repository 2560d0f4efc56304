"""The wallet client and the misbehaving wallet: every fault is committed, and none is taken for what it is not."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from rgs.core.errors import (
    IdempotencyConflictError,
    InsufficientFundsError,
    InvalidFieldError,
    TransactionRolledBackError,
    WalletRefusedError,
    WalletUnavailableError,
)
from rgs.devkit.simulators.faults import Fault, FaultPlan, Planned
from rgs.devkit.simulators.statements import SIMULATED, WALLET_COLUMNS, wallet_statement
from rgs.ports.wallet import TransactionStatus, TransferPurpose
from tests.support.adapters.books import give, move, requested_by, ulid
from tests.support.adapters.simulators import OPENING_MINOR, Running, always, at, running_wallet

ACCOUNT = {"operator": "op", "player": "anna", "currency": "EUR"}


async def balance(running: Running) -> int:
    result = await running.client.get_balance(**ACCOUNT)
    number: int = result.balance_minor
    return number


async def stands(running: Running, number: int) -> TransactionStatus | None:
    receipt = await running.client.get_transaction(operator="op", player="anna", transaction_id=ulid(number))
    return None if receipt is None else receipt.status


async def test_an_honest_wallet_does_what_the_seam_promises(tmp_path: Path) -> None:
    async with running_wallet(tmp_path) as running:
        wallet = running.client
        first = await wallet.debit(move(1, 300))
        assert (first.status, first.balance_after_minor) == (TransactionStatus.ACCEPTED, OPENING_MINOR - 300)
        again = await wallet.debit(move(1, 300))
        assert (again.status, again.balance_after_minor) == (TransactionStatus.DUPLICATE, OPENING_MINOR - 300)
        assert (await wallet.credit(give(2, 0))).status is TransactionStatus.ACCEPTED
        with pytest.raises(IdempotencyConflictError):
            await wallet.debit(move(1, 301))
        assert (await wallet.rollback(move(1, 300))).status is TransactionStatus.ROLLED_BACK
        with pytest.raises(TransactionRolledBackError):
            await wallet.debit(move(1, 300))
        assert (await wallet.rollback(move(3))).status is TransactionStatus.ROLLED_BACK
        with pytest.raises(InsufficientFundsError):
            await wallet.debit(move(4, OPENING_MINOR + 1))
        with pytest.raises(WalletRefusedError) as refused:
            await wallet.debit(move(5, player="unknown-1"))
        assert refused.value.metadata["refusal"] == "ACCOUNT_UNKNOWN"
        with pytest.raises(WalletRefusedError) as refused:
            await wallet.credit(replace(give(6), currency="USD"))
        assert refused.value.metadata["refusal"] == "CURRENCY_MISMATCH"
        with pytest.raises(InvalidFieldError):
            await wallet.debit(move(7, 0))
        assert await balance(running) == OPENING_MINOR
        found = [await stands(running, number) for number in (1, 2, 3, 4, 9)]
        assert found == [
            TransactionStatus.ROLLED_BACK,
            TransactionStatus.ACCEPTED,
            TransactionStatus.ROLLED_BACK,
            TransactionStatus.REFUSED,
            None,
        ]
        running.simulator.store.verify()
        assert running.client.reading().unknown == 0


async def test_seamless_purposes_are_part_of_what_a_retry_repeats(tmp_path: Path) -> None:
    async with running_wallet(tmp_path) as running:
        bet = replace(move(1, 100), purpose=TransferPurpose.BET, round_reference=ulid(77))
        await running.client.debit(bet)
        for changed in (replace(bet, round_reference=ulid(78)), move(1, 100)):
            with pytest.raises(IdempotencyConflictError):
                await running.client.debit(changed)
        for wrong in (
            replace(bet, purpose=TransferPurpose.RETURN),
            replace(bet, round_reference=""),
            replace(bet, purpose=TransferPurpose.PURCHASE),
        ):
            with pytest.raises(InvalidFieldError):
                await running.client.debit(wrong)
        assert f"{ulid(900)}:bet:{ulid(77)}" in wallet_statement(running.simulator.store)


@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.DELAY, Fault.RESTART])
async def test_unknown_is_settled_by_the_same_id(tmp_path: Path, fault: Fault) -> None:
    async with running_wallet(tmp_path, at("Debit", 1, fault), deadline_ms=1_000) as running:
        await running.client.channel.channel_ready()
        with pytest.raises(WalletUnavailableError):
            await running.client.debit(move(1, 300))
        if fault is Fault.DELAY:
            await asyncio.wait(running.server._late)
        assert (await running.client.debit(move(1, 300))).status is TransactionStatus.DUPLICATE
        assert await balance(running) == OPENING_MINOR - 300
        assert running.lines == [f"fault 1: Debit call 1 {ulid(1)}: {fault}"]
        assert running.client.reading().unknown == 1
        assert running.client.reading().silent_since_ms is None


async def test_a_lost_request_did_nothing(tmp_path: Path) -> None:
    async with running_wallet(tmp_path, at("Debit", 1, Fault.LOST_REQUEST)) as running:
        with pytest.raises(WalletUnavailableError):
            await running.client.debit(move(1))
        assert await stands(running, 1) is None
        assert (await running.client.debit(move(1))).status is TransactionStatus.ACCEPTED


async def test_a_duplicate_delivery_moves_money_once(tmp_path: Path) -> None:
    async with running_wallet(tmp_path, always(Fault.DUPLICATE)) as running:
        assert (await running.client.debit(move(1, 300))).status is TransactionStatus.ACCEPTED
        assert await balance(running) == OPENING_MINOR - 300
        assert running.simulator.faults.committed[Fault.DUPLICATE] == 2


async def test_a_debit_that_comes_after_its_rollback_takes_nothing(tmp_path: Path) -> None:
    async with running_wallet(tmp_path, at("Debit", 1, Fault.REORDER)) as running:
        with pytest.raises(WalletUnavailableError):
            await running.client.debit(move(1))
        await running.client.rollback(move(1))
        kinds = [entry.kind for entry in running.simulator.store.rows()]
        assert kinds == ["opening", "rollback"]
        assert not running.server._held


async def test_what_was_held_back_is_delivered_when_the_faults_are_switched_off(tmp_path: Path) -> None:
    plan = FaultPlan((Planned(Fault.REORDER, "Debit", 1), Planned(Fault.OUTAGE, "Credit", 1, calls=100)))
    async with running_wallet(tmp_path, plan) as running:
        for act in (running.client.debit, running.client.credit, running.client.credit):
            with pytest.raises(WalletUnavailableError):
                await act(move(1) if act == running.client.debit else give(2))
        await running.server.switch_faults(False)
        assert await stands(running, 1) is TransactionStatus.ACCEPTED
        assert (await running.client.credit(give(2))).status is TransactionStatus.ACCEPTED


async def test_an_outage_is_counted_over_all_methods(tmp_path: Path) -> None:
    plan = FaultPlan((Planned(Fault.OUTAGE, "Debit", 2, calls=3),))
    async with running_wallet(tmp_path, plan) as running:
        await running.client.debit(move(1))
        for _ in range(3):
            with pytest.raises(WalletUnavailableError):
                await running.client.debit(move(2)) if _ == 0 else await running.client.get_balance(**ACCOUNT)
        assert (await running.client.debit(move(2))).status is TransactionStatus.ACCEPTED


async def test_a_restart_without_memory_forgets_and_keeps_the_old_books_aside(tmp_path: Path) -> None:
    async with running_wallet(tmp_path, at("Debit", 2, Fault.RESTART_EMPTY)) as running:
        await running.client.debit(move(1))
        with pytest.raises(WalletUnavailableError):
            await running.client.debit(move(2))
        assert await stands(running, 1) is None
        assert await stands(running, 2) is None
        assert (tmp_path / "wallet.db.lost-1").exists()


LIES: list[tuple[str, Fault, str]] = [
    ("debit", Fault.WRONG_ECHO, "amount_minor"),
    ("credit", Fault.WRONG_ECHO, "amount_minor"),
    ("rollback", Fault.WRONG_ECHO, "amount_minor"),
]


@pytest.mark.parametrize(("method", "fault", "what"), LIES)
async def test_an_answer_that_contradicts_is_unknown_and_told_of(
    tmp_path: Path, method: str, fault: Fault, what: str
) -> None:
    async with running_wallet(tmp_path, always(fault)) as running:
        with pytest.raises(WalletUnavailableError):
            await getattr(running.client, method)(requested_by(method, move(1)))
        assert running.contradictions == [("wallet of op", method.capitalize(), ulid(1), what)]
        assert running.client.reading().unknown == 1


async def test_a_conflicting_answer_to_a_retry_is_what_it_says(tmp_path: Path) -> None:
    async with running_wallet(tmp_path, always(Fault.CONFLICTING_RETRY)) as running:
        await running.client.debit(move(1))
        with pytest.raises(IdempotencyConflictError):
            await running.client.debit(move(1))
        assert await stands(running, 1) is TransactionStatus.ACCEPTED


async def test_the_statement_tells_what_the_book_holds(tmp_path: Path) -> None:
    async with running_wallet(tmp_path, at("Debit", 3, Fault.DUPLICATE, Fault.DOUBLE_ENTRY)) as running:
        wallet = running.client
        await wallet.debit(move(1, 300))
        await wallet.rollback(move(1, 300))
        await wallet.rollback(move(2, 50))
        with pytest.raises(InsufficientFundsError):
            await wallet.debit(move(3, OPENING_MINOR + 1))
        await wallet.debit(move(4, 200))
        await wallet.credit(give(5, 0))
        header, *rows = wallet_statement(running.simulator.store).splitlines()
        assert header == ",".join(WALLET_COLUMNS)
        result = [tuple(row.split(",")) for row in rows]
        assert [(row[0], row[1], row[4], row[7], row[8]) for row in result] == [
            (ulid(1), "debit", "300", "accepted", str(OPENING_MINOR - 300)),
            (ulid(1), "rollback", "300", "accepted", str(OPENING_MINOR)),
            (ulid(2), "rollback", "50", "tombstone", str(OPENING_MINOR)),
            (ulid(3), "debit", str(OPENING_MINOR + 1), "refused", str(OPENING_MINOR)),
            (ulid(4), "debit", "200", "accepted", str(OPENING_MINOR - 200)),
            (ulid(4), "debit", "200", "accepted", str(OPENING_MINOR - 400)),
            (ulid(5), "credit", "0", "accepted", str(OPENING_MINOR - 400)),
        ]
        assert {row[2:4] + row[6:7] + row[9:] for row in result} == {("anna", "EUR", ulid(900), "op", SIMULATED)}
        assert wallet_statement(running.simulator.store, "other") == header + "\n"


async def test_a_wrong_amount_stands_in_the_book_alone(tmp_path: Path) -> None:
    async with running_wallet(tmp_path, at("Debit", 1, Fault.WRONG_AMOUNT)) as running:
        for status in (TransactionStatus.ACCEPTED, TransactionStatus.DUPLICATE):
            assert (await running.client.debit(move(1, 300))).status is status
        assert not running.contradictions
        assert await balance(running) == OPENING_MINOR - 301
        assert (await running.client.rollback(move(1, 300))).status is TransactionStatus.ROLLED_BACK
        assert await balance(running) == OPENING_MINOR
