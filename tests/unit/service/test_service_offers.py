"""A game whose certified returns do not meet the jurisdiction's floor is not offered; a dealt round goes on (IT-03)."""

from __future__ import annotations

import pytest

from rgs.core.errors import GameNotOfferedError
from tests.house import House, Player


async def test_without_a_certificate_no_session_is_opened_and_no_round_starts(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    player = Player(house)
    await player.sit()
    await player.start()
    monkeypatch.setattr("rgs.core.certificates.load_certificate", lambda _: None)
    with pytest.raises(GameNotOfferedError) as caught:
        await Player(house).open()
    assert caught.value.metadata["game"] == "uth-solo"
    await player.finish_round()
    with pytest.raises(GameNotOfferedError):
        await player.start()
    await player.leave()
