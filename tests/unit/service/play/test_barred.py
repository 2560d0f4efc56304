"""What comes to stand between a request and its debit, funded bet by bet: nothing is taken, and nothing dealt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import DisabledError, TransactionRolledBackError, WalletUnavailableError
from rgs.service.money.transfers import Transfers
from rgs.store.changes import Change
from tests.support.service.admins import AdminOf
from tests.support.service.harness import ServiceHarness
from tests.support.service.oracles import stored_statements
from tests.support.service.seamless import BRITISH, Better, debits, opened, verify_seamless

BARS = [("play", ""), ("operator", BRITISH.party), ("game", "uth-solo"), ("player", f"{BRITISH.party}/anna")]


def kinds(folder: Path) -> list[str]:
    return [row.kind for row in stored_statements(folder)]


@pytest.mark.parametrize(("scope", "subject"), BARS)
@pytest.mark.parametrize("silent", ["before", "after"])
@pytest.mark.parametrize("continued", ["again", "recovery"])
async def test_who_is_barred_before_the_debit_is_known_is_not_dealt_and_has_it_back(
    tmp_path: Path, scope: str, subject: str, silent: str, continued: str
) -> None:
    async with opened(tmp_path) as harness:
        anna = Better(harness)
        await anna.open()
        harness.clock.tick(6000)
        request = anna.starting(100)
        harness.wallet_script.plan("debit", silent)
        with pytest.raises(WalletUnavailableError):
            await anna.send(request)
        await AdminOf(harness).switch(scope, subject)
        if continued == "recovery":
            await harness.sessions.recover()
        with pytest.raises((DisabledError, TransactionRolledBackError)):
            await anna.send(request)
        assert await debits(harness) == 0
        assert await anna.balance() == anna.account_minor
        assert harness.wallet_script.count("rollback") == 1
        assert "round_opening" not in kinds(tmp_path)
        await AdminOf(harness).switch(scope, subject, enabled=True)
        await anna.play(100)
        await anna.close()
        await harness.settle()
    verify_seamless(tmp_path)


async def test_who_is_barred_the_moment_the_intent_is_stored_is_told_so_and_never_debited(tmp_path: Path) -> None:
    async with opened(tmp_path) as harness:
        anna = Better(harness)
        await anna.open()
        harness.clock.tick(6000)
        await bar_behind_the_next_intent(harness)
        with pytest.raises(DisabledError):
            await anna.send(anna.starting(100))
        assert harness.wallet_script.count("debit") == 0
        assert await anna.balance() == anna.account_minor
        assert "round_opening" not in kinds(tmp_path)
        await AdminOf(harness).switch("player", f"{BRITISH.party}/anna", enabled=True)
        await anna.play(100)
        await anna.close()
        await harness.settle()
    verify_seamless(tmp_path)


async def test_who_is_barred_while_the_wallet_answers_is_not_dealt_and_has_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    debit = Transfers.debit
    async with opened(tmp_path) as harness:
        anna = Better(harness)
        await anna.open()
        harness.clock.tick(6000)

        async def debit_and_bar(*requested: Any) -> Any:
            receipt = await debit(*requested)
            await AdminOf(harness).switch("player", f"{BRITISH.party}/anna")
            return receipt

        request = anna.starting(100)
        with monkeypatch.context() as slow:
            slow.setattr(Transfers, "debit", debit_and_bar)
            with pytest.raises(DisabledError):
                await anna.send(request)
        with pytest.raises(DisabledError):  # told again, and nothing more
            await anna.send(request)
        assert (harness.wallet_script.count("debit"), harness.wallet_script.count("rollback")) == (1, 1)
        assert await anna.balance() == anna.account_minor
        assert "round_opening" not in kinds(tmp_path)
        await AdminOf(harness).switch("player", f"{BRITISH.party}/anna", enabled=True)
        await anna.play(100)
        await anna.close()
        await harness.settle()
    verify_seamless(tmp_path)


async def bar_behind_the_next_intent(harness: ServiceHarness) -> None:
    """An admin bars the player between the commit of the intent and the call of the wallet."""
    store: Any = harness.store
    commit = store.commit

    async def commit_and_bar(change: Change) -> Any:
        signed = await commit(change)
        store.commit = commit
        await AdminOf(harness).switch("player", f"{BRITISH.party}/anna")
        return signed

    store.commit = commit_and_bar
