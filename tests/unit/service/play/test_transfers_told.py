"""What the wallet says of a transfer decides: a debit that it took back buys nothing, one that it denies is tried
again, a payout that it denies and has is paid. And what an attempt notes.
"""

from __future__ import annotations

import pytest

from rgs.core.errors import (
    IdempotencyConflictError,
    RegulatorUnavailableError,
    TransactionRolledBackError,
    WalletUnavailableError,
)
from rgs.core.sessions import Session
from rgs.ports.wallet import Receipt, Transfer
from rgs.store.changes import Operation, OperationProgress
from tests.support.service.harness import ACCOUNT_MINOR, ServiceHarness
from tests.support.service.oracles import table, verify_books
from tests.support.service.player import Player


async def test_a_debit_that_the_wallet_has_taken_back_buys_nothing(harness: ServiceHarness, anna: Player) -> None:
    """The operator cancelled it by hand while its answer was on the way."""
    taken: list[Transfer] = []
    debit = harness.wallet.debit

    async def watched(transfer: Transfer, *, session_token: str = "") -> Receipt:
        taken.append(transfer)
        return await debit(transfer, session_token=session_token)

    harness.wallet.debit = watched  # type: ignore[method-assign]
    await anna.open()
    request = anna.purchase(5_000)
    harness.wallet_script.plan("debit", "after")
    with pytest.raises(WalletUnavailableError):
        await anna.send(request)
    assert await harness.balance() == ACCOUNT_MINOR - 5_000
    await harness.wallet.rollback(taken[0])
    harness.wallet_script.plan("debit", IdempotencyConflictError("stands for a debit that was taken back"))
    with pytest.raises(WalletUnavailableError):
        await anna.send(request)
    for _ in range(2):
        with pytest.raises(TransactionRolledBackError):
            await anna.send(request)
    assert await harness.balance() == ACCOUNT_MINOR
    view = await anna.view()
    assert (view.session.participation.balance_minor, view.pending) == (0, None)


async def test_a_wallet_that_denies_a_debit_and_does_not_know_it_has_not_answered(
    harness: ServiceHarness, anna: Player
) -> None:
    await anna.open()
    request = anna.purchase(5_000)
    harness.wallet_script.plan("debit", IdempotencyConflictError("stands for another transfer"))
    with pytest.raises(WalletUnavailableError, match="and does not know that transaction") as caught:
        await anna.send(request)
    (pending,) = await harness.store.pending_operations(10)
    assert caught.value.metadata["transaction_id"] == pending.operation_id
    await anna.send(request)
    assert (anna.balance_minor, await harness.balance()) == (5_000, ACCOUNT_MINOR - 5_000)
    await anna.leave()
    verify_books(harness.folder)


async def test_a_debit_that_has_not_arrived_after_five_minutes_is_given_up(
    harness: ServiceHarness, anna: Player
) -> None:
    await anna.open()
    request = anna.purchase(5_000)
    for passed_ms in (0, 299_999):
        harness.clock.tick(passed_ms)
        harness.wallet_script.plan("debit", "before")
        with pytest.raises(WalletUnavailableError):
            await anna.send(request)
    harness.clock.tick()
    with pytest.raises(TransactionRolledBackError):
        await anna.send(request)
    assert await harness.balance() == ACCOUNT_MINOR
    await anna.buy()


async def test_a_payout_that_a_wallet_denies_and_has_is_paid(harness: ServiceHarness, anna: Player) -> None:
    """It compares a field that the server does not send twice alike, and knows the transaction all the same."""
    await anna.sit(5_000)
    request = anna.ending()
    harness.wallet_script.plan("credit", "after", "conflict")
    with pytest.raises(WalletUnavailableError):
        await anna.send(request)
    await anna.send(request)
    assert harness.wallet_script.count("credit") == 2
    assert (anna.session["ended"], await harness.balance()) == (True, ACCOUNT_MINOR)
    await anna.close()
    verify_books(harness.folder)


async def test_an_attempt_notes_nothing_at_an_operation_that_another_process_has_done(
    harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    await anna.open()
    request, paid = anna.purchase(5_000), harness.operations.paid

    async def overtaken(operation: Operation, session: Session, transfer: Transfer) -> Receipt:
        monkeypatch.setattr(harness.operations, "paid", paid)
        await harness.operations.advance(operation)
        raise WalletUnavailableError("silent")

    monkeypatch.setattr(harness.operations, "paid", overtaken)
    with pytest.raises(WalletUnavailableError):
        await anna.send(request)
    done = ("done", int(OperationProgress.BEGUN), 0, "")
    query = "SELECT status, progress, attempts, reason FROM operations WHERE kind = 'purchase'"
    assert table(harness.folder, query) == [done]
    await anna.send(request)
    assert (anna.balance_minor, await harness.balance()) == (5_000, ACCOUNT_MINOR - 5_000)


async def test_that_a_purchase_is_paid_is_noted_once_however_long_the_regulator_is_silent(
    harness: ServiceHarness, anna: Player
) -> None:
    await anna.open()
    request, changes = anna.purchase(5_000), []
    harness.regulator_script.plan("buy_participation", *["before"] * 4)
    for _ in range(4):
        before = harness.store.writer.changes
        with pytest.raises(RegulatorUnavailableError):
            await anna.send(request)
        changes.append(harness.store.writer.changes - before)
    assert changes[1:] == [1, 1, 1], "the note of the attempt, and nothing beside"
    await anna.send(request)
    assert anna.balance_minor == 5_000
