"""Rounds funded bet by bet: a debit before each stake, a credit behind each return, through silence and refusal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import (
    FundingModeError,
    InsufficientFundsError,
    JurisdictionError,
    OperationPendingError,
    TransactionRolledBackError,
    WalletUnavailableError,
)
from rgs.service.admin.orders import order_of
from rgs.service.callers import Caller, Role
from tests.support.service.harness import OPERATOR, ServiceHarness, open_harness
from tests.support.service.player import Player
from tests.support.service.seamless import BRITISH, Better, debits, opened, verify_seamless

DAYS_MS = 3 * 86_400_000


@asynccontextmanager
async def a_harness(folder: Path, **options: Any) -> AsyncIterator[tuple[ServiceHarness, Better]]:
    async with opened(folder, **options) as harness:
        anna = Better(harness)
        await anna.open()
        yield harness, anna


async def test_each_bet_is_debited_and_each_return_credited(tmp_path: Path) -> None:
    async with a_harness(tmp_path) as (harness, anna):
        for _ in range(6):
            await anna.play(100)
        await anna.close()
        assert anna.session["bought_minor"] == anna.session["staked_minor"]
        assert anna.session["paid_out_minor"] == anna.session["returned_minor"]
        assert anna.session["balance_minor"] == 0
        assert harness.regulator_script.calls == []
    verify_seamless(tmp_path)


@pytest.mark.parametrize("by", ["player", "rule"])
async def test_a_lost_round_tells_the_wallet_that_it_has_ended(tmp_path: Path, by: str) -> None:
    async with a_harness(tmp_path) as (harness, anna):
        harness.clock.tick(6000)
        await anna.start(100)
        harness.wallet_script.plan("credit", "before", "after")
        if by == "rule":
            harness.clock.tick(DAYS_MS)
            await harness.services.interruptions.finish_due()
            await harness.sessions.recover()
        else:
            await anna.finish_round(lambda legal: "check" if "check" in legal else "fold")
        (owed,), _ = await harness.services.outbox.pending_credits(BRITISH, 0, "")
        assert (owed.operation.kind, owed.operation.amount_minor) == ("credit", 0)
        await harness.settle()
        assert await harness.services.outbox.pending_credits(BRITISH, 0, "") == ((), "")
        reported = [entry for entry in harness.wallet_store.rows() if entry.kind == "credit"]
        assert [(entry.amount_minor, entry.transaction_id) for entry in reported] == [(0, owed.operation.operation_id)]
        assert reported[0].reference == f"{anna.session_id}:return:{owed.operation.detail[13:39]}"
        await anna.close()
        await harness.settle()
    verify_seamless(tmp_path)


async def test_there_is_nothing_to_buy_or_to_end(tmp_path: Path) -> None:
    async with a_harness(tmp_path) as (_, anna):
        for call in (anna.buy, anna.end):
            with pytest.raises(FundingModeError):
                await call()


async def test_refused_where_the_jurisdiction_requires_a_participation(tmp_path: Path) -> None:
    async with opened(tmp_path) as harness:
        for jurisdiction in ("demo", "it-adm"):
            with pytest.raises(JurisdictionError):
                await Player(harness, caller=Caller(BRITISH.party, Role.OPERATOR, jurisdiction)).open()


@pytest.mark.parametrize("silent", ["before", "after"])
@pytest.mark.parametrize("continued", ["again", "recovery"])
async def test_a_round_waits_for_its_debit(tmp_path: Path, silent: str, continued: str) -> None:
    async with a_harness(tmp_path) as (harness, anna):
        harness.clock.tick(6000)
        request = anna.starting(100)
        harness.wallet_script.plan("debit", silent)
        with pytest.raises(WalletUnavailableError):
            await anna.send(request)
        view, _ = await harness.sessions.get(anna.caller, anna.session_id)
        assert view.open_round is None, "no draw without money"
        assert view.pending is not None
        assert (view.pending.kind, view.pending.progress) == ("start", 1)
        with pytest.raises(OperationPendingError) as pending:
            await anna.send(anna.starting(200))
        assert pending.value.metadata["retry_after_ms"] == "1000"
        if continued == "recovery":
            assert await harness.sessions.recover() == 1
        reply = await anna.send(request)
        assert await harness.send(request, BRITISH) == reply
        assert await debits(harness) == 1
        await anna.finish_round()
        await anna.close()
        await harness.settle()
    verify_seamless(tmp_path)


@pytest.mark.parametrize("silent", ["before", "after"])
async def test_a_decision_waits_for_its_debit(tmp_path: Path, silent: str) -> None:
    async with a_harness(tmp_path) as (harness, anna):
        harness.clock.tick(6000)
        await anna.start(100)
        _, _, _, session = await harness.play.get_round(anna.caller, anna.session_id, anna.round["round_id"])
        assert (session.regulator_session_id, session.regulator_participation_id) == ("", "")
        request = anna.decision("play_4x")
        harness.wallet_script.plan("debit", silent)
        with pytest.raises(WalletUnavailableError):
            await anna.send(request)
        with pytest.raises(OperationPendingError) as pending:
            await anna.act("check")
        assert pending.value.metadata["retry_after_ms"] == "1000"
        await harness.sessions.recover()
        await anna.send(request)
        assert anna.round["status"] == "settled"
        assert await debits(harness) == 2
        await anna.close()
        await harness.settle()
    verify_seamless(tmp_path)


async def test_a_refused_debit_leaves_the_round_where_it_is(tmp_path: Path) -> None:
    async with a_harness(tmp_path, account_minor=250) as (harness, anna):
        harness.clock.tick(6000)
        with pytest.raises(InsufficientFundsError):
            await anna.send(anna.starting(200))
        await anna.start(100)
        request = anna.decision("play_4x")
        for _ in range(2):
            with pytest.raises(InsufficientFundsError):
                await anna.send(request)
        assert [call for call, _ in harness.wallet_script.calls] == ["debit"] * 3
        await anna.finish_round(lambda legal: "check" if "check" in legal else "fold")
        await anna.close()
    verify_seamless(tmp_path, account_minor=250)


async def test_a_debit_that_never_arrived_is_rolled_back_and_refused_for_ever(tmp_path: Path) -> None:
    async with a_harness(tmp_path) as (harness, anna):
        harness.clock.tick(6000)
        request = anna.starting(100)
        harness.wallet_script.plan("debit", "before")
        with pytest.raises(WalletUnavailableError):
            await anna.send(request)
        harness.clock.tick(300_000)
        harness.wallet_script.plan("rollback", "after")
        assert await harness.sessions.recover() == 0
        harness.clock.tick(300_000)
        await harness.sessions.recover()
        for _ in range(2):
            with pytest.raises(TransactionRolledBackError):
                await anna.send(request)
        assert harness.wallet_script.count("debit") == 1
        await anna.play(100)
        await anna.close()
    verify_seamless(tmp_path)


async def test_a_round_that_ended_by_rule_meanwhile_gives_the_debit_back(tmp_path: Path) -> None:
    async with a_harness(tmp_path) as (harness, anna):
        harness.clock.tick(6000)
        await anna.start(100)
        request = anna.decision("play_4x")
        harness.wallet_script.plan("debit", "after")
        with pytest.raises(WalletUnavailableError):
            await anna.send(request)
        harness.clock.tick(DAYS_MS)
        calls = len(harness.wallet_script.calls)
        assert await harness.services.interruptions.finish_due() == 1
        assert len(harness.wallet_script.calls) == calls, "finishing by rule needs no money"
        await harness.settle()
        with pytest.raises(TransactionRolledBackError):
            await anna.send(request)
        await anna.close()
    verify_seamless(tmp_path)


async def test_a_credit_is_owed_until_it_lands_and_stops_nothing(tmp_path: Path) -> None:
    async with a_harness(tmp_path) as (harness, anna):
        harness.wallet_script.plan("credit", *["before", "after"] * 20)
        owed: Any = ()
        for _ in range(60):  # every other one returns something
            await anna.play(100, lambda legal: "check" if "check" in legal else "play_1x")
            owed, _ = await harness.services.outbox.pending_credits(BRITISH, 0, "")
            if owed:
                break
        await anna.close()
        assert owed
        assert {credit.operation.kind for credit in owed} == {"credit"}
        assert all(credit.operation.reason == "WALLET_UNAVAILABLE" for credit in owed)
        assert await harness.services.outbox.pending_credits(OPERATOR, 0, "") == ((), "")
        await harness.settle()
        assert await harness.services.outbox.pending_credits(BRITISH, 0, "") == ((), "")
    verify_seamless(tmp_path)


async def test_a_void_returns_every_stake(tmp_path: Path) -> None:
    async with a_harness(tmp_path) as (harness, anna):
        harness.clock.tick(6000)
        await anna.start(100)
        round_id, admin = anna.round["round_id"], harness.services.admin
        callers = [Caller(f"admin-{number}", Role.ADMIN, "") for number in (1, 2)]
        await harness.let_in("admin-1", "admin-2")
        orders = [order_of(callers[number % 2], str(number), harness.request_id()) for number in range(4)]
        await admin.report_malfunction(orders[0], round_id, "STUCK")
        await admin.propose_void(orders[2], [round_id], "MALFUNCTION")
        (result,) = await admin.approve_void(orders[3], [round_id])
        assert result.refusal == ""
        await harness.settle()
        assert await anna.balance() == anna.account_minor
        await anna.close()
    verify_seamless(tmp_path)


async def test_participations_and_bets_live_beside_each_other(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        bert = Player(harness, name="bert")
        await bert.sit()
        await bert.play()
        await bert.leave()
        assert await harness.store.round_credit(bert.session_id) is None
