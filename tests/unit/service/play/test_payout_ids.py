"""A participation is paid out under one id, whoever asks for its end, how often, and what an earlier version began."""

from __future__ import annotations

import pytest

from rgs.api.admin import _owed
from rgs.core.errors import RegulatorRefusedError, WalletUnavailableError
from rgs.core.ids import payout_id
from rgs.core.statements.canonical import parse_canonical
from tests.support.service.harness import OPERATOR, ServiceHarness
from tests.support.service.oracles import table
from tests.support.service.player import Player


def credited(harness: ServiceHarness) -> list[tuple[str, int]]:
    return [(entry.transaction_id or "", entry.amount_minor) for entry in harness.wallet_store.rows()
            if entry.kind == "credit"]  # fmt: skip


async def signed(harness: ServiceHarness) -> list[str]:
    """The wallet's ids as the ends that are signed name them."""
    rows = [row async for row in harness.store.statements_in_order() if row.kind == "participation_end"]
    return [parse_canonical(row.private)["block"]["wallet_transaction_id"] for row in rows]


async def test_an_end_that_was_refused_and_is_asked_for_anew_pays_under_the_same_id(
    harness: ServiceHarness, anna: Player
) -> None:
    await anna.sit()
    participation_id = anna.session["participation_id"]
    harness.regulator_script.plan("end_participation", RegulatorRefusedError("refused by plan", rejection="PLANNED"))
    with pytest.raises(RegulatorRefusedError):
        await anna.end()
    await anna.end()
    assert len(table(harness.folder, "SELECT operation_id FROM operations WHERE kind = 'end'")) == 2
    assert credited(harness) == [(payout_id(participation_id), 10_000)]
    assert await signed(harness) == [payout_id(participation_id)]


async def test_an_owed_payout_is_listed_under_the_id_that_the_wallet_is_asked_with(
    harness: ServiceHarness, anna: Player
) -> None:
    await anna.sit()
    participation_id = anna.session["participation_id"]
    harness.wallet_script.plan("credit", "before")
    with pytest.raises(WalletUnavailableError):
        await anna.end()
    ((credit,), _) = await harness.services.outbox.pending_credits(OPERATOR, 10, "")
    assert _owed(credit).transaction_id == payout_id(participation_id)
    await harness.settle()
    assert credited(harness) == [(payout_id(participation_id), 10_000)]


async def test_an_end_that_an_earlier_version_has_begun_goes_on_under_its_own_id(
    harness: ServiceHarness, anna: Player
) -> None:
    """Its credit may have left the server under it."""
    await anna.sit()
    harness.wallet_script.plan("credit", "after")
    with pytest.raises(WalletUnavailableError):
        await anna.end()
    ((operation_id,),) = table(harness.folder, "SELECT operation_id FROM operations WHERE kind = 'end'")
    harness.store._db.execute("UPDATE operations SET detail = '' WHERE kind = 'end'")
    harness.wallet_script.calls.clear()
    await harness.settle()
    assert [call for call in harness.wallet_script.calls if call[0] == "credit"] == [("credit", operation_id)]
    assert await signed(harness) == [operation_id]
