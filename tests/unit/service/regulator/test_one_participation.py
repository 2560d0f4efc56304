"""A session has one participation at the regulator, whatever is bought in it."""

from __future__ import annotations

import pytest

from rgs.adapters.embedded.regulator import EmbeddedRegulator
from rgs.ports.regulator import Purchase, RegulatorParticipation
from tests.support.service.harness import ServiceHarness
from tests.support.service.player import Player


async def test_a_further_purchase_names_the_participation_of_the_first(
    harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    issued: list[str] = []
    genuine = EmbeddedRegulator.buy_participation

    async def buy(self: EmbeddedRegulator, purchase: Purchase, known: str = "") -> RegulatorParticipation:
        issued.append(known)
        return await genuine(self, purchase, known)

    monkeypatch.setattr(EmbeddedRegulator, "buy_participation", buy)
    await anna.sit()
    await anna.buy(5000)
    session = await harness.store.session(anna.session_id)
    assert session is not None
    assert issued == ["", session.regulator_participation_id] != ["", ""]
