"""A participation is paid out under one id, whoever asks for its end, how often, and what an earlier version began."""

from __future__ import annotations

import pytest

from rgs.api.outbox import _owed
from rgs.core.errors import RegulatorRefusedError, WalletUnavailableError
from rgs.core.ids import payout_id
from rgs.core.statements.canonical import parse_canonical
from tests.house import OPERATOR, House, Player
from tests.unit.service.rows import table


def credited(house: House) -> list[tuple[str, int]]:
    return [(entry.transaction_id or "", entry.amount_minor) for entry in house.wallet_store.rows()
            if entry.kind == "credit"]  # fmt: skip


async def signed(house: House) -> list[str]:
    """The wallet's ids as the ends that are signed name them."""
    rows = [row async for row in house.store.statements_in_order() if row.kind == "participation_end"]
    return [parse_canonical(row.private)["block"]["wallet_transaction_id"] for row in rows]


async def test_an_end_that_was_refused_and_is_asked_for_anew_pays_under_the_same_id(house: House, anna: Player) -> None:
    await anna.sit()
    participation_id = anna.session["participation_id"]
    house.central_script.plan("end_participation", RegulatorRefusedError("refused by plan", rejection="PLANNED"))
    with pytest.raises(RegulatorRefusedError):
        await anna.end()
    await anna.end()
    assert len(table(house.folder, "SELECT affair_id FROM affairs WHERE kind = 'end'")) == 2
    assert credited(house) == [(payout_id(participation_id), 10_000)]
    assert await signed(house) == [payout_id(participation_id)]


async def test_an_owed_payout_is_listed_under_the_id_that_the_wallet_is_asked_with(house: House, anna: Player) -> None:
    await anna.sit()
    participation_id = anna.session["participation_id"]
    house.wallet_script.plan("credit", "before")
    with pytest.raises(WalletUnavailableError):
        await anna.end()
    ((credit,), _) = await house.services.outbox.owed_credits(OPERATOR, 10, "")
    assert _owed(credit).transaction_id == payout_id(participation_id)
    await house.settle()
    assert credited(house) == [(payout_id(participation_id), 10_000)]


async def test_an_end_that_an_earlier_version_has_begun_goes_on_under_its_own_id(house: House, anna: Player) -> None:
    """Its credit may have left the house under it."""
    await anna.sit()
    house.wallet_script.plan("credit", "after")
    with pytest.raises(WalletUnavailableError):
        await anna.end()
    ((affair_id,),) = table(house.folder, "SELECT affair_id FROM affairs WHERE kind = 'end'")
    house.store._db.execute("UPDATE affairs SET detail = '' WHERE kind = 'end'")
    house.wallet_script.calls.clear()
    await house.settle()
    assert [call for call in house.wallet_script.calls if call[0] == "credit"] == [("credit", affair_id)]
    assert await signed(house) == [affair_id]
