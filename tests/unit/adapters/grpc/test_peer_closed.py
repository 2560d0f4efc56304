"""A client that was closed sends nothing more, though its peer would answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from rgs.adapters.grpc.wallet import RoutedWallet
from rgs.core.errors import RegulatorUnavailableError, WalletUnavailableError
from tests.support.adapters.books import move, opening, ulid
from tests.support.adapters.simulators import running_regulator, running_wallet


async def test_a_wallet_that_was_closed_is_asked_nothing(tmp_path: Path) -> None:
    async with running_wallet(tmp_path) as running:
        routed = RoutedWallet({"op": running.client})
        await routed.debit(move(1))
        await routed.close()
        with pytest.raises(WalletUnavailableError) as closed:
            await running.client.debit(move(2))
        assert closed.value.metadata == {"code": "CANCELLED"}
        assert closed.value.message == "wallet of op is closed"


async def test_a_regulator_that_was_closed_is_asked_nothing(tmp_path: Path) -> None:
    async with running_regulator(tmp_path) as running:
        await running.client.open_session(opening(ulid(1)))
        await running.client.close()
        with pytest.raises(RegulatorUnavailableError) as closed:
            await running.client.open_session(opening(ulid(2), reference="session-2"))
        assert closed.value.metadata == {"code": "CANCELLED"}
