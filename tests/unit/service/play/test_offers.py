"""A game whose certified returns do not meet the jurisdiction's floor is not offered; a dealt round goes on (IT-03)."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from rgs.core.errors import GameNotOfferedError
from tests.support.service.harness import ServiceHarness
from tests.support.service.player import Player


async def test_without_a_certificate_no_session_is_opened_and_no_round_starts(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    player = Player(harness)
    await player.sit()
    await player.start()
    monkeypatch.setattr("rgs.core.returns.certified.load_certified_returns", lambda _: None)
    with pytest.raises(GameNotOfferedError) as caught:
        await Player(harness).open()
    assert caught.value.metadata["game"] == "uth-solo"
    await player.finish_round()
    with pytest.raises(GameNotOfferedError):
        await player.start()
    await player.leave()


async def test_games_without_a_certificate_are_told_of_before_the_first_call(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    with capture_logs() as logs:
        await harness.services.load()
    assert [row for row in logs if row["event"] == "game_without_certificate"] == []
    monkeypatch.setattr("rgs.core.returns.certified._read", lambda ruleset: f"{ruleset.id}.json: torn")
    with capture_logs() as logs:
        await harness.services.load()
    (result,) = [row for row in logs if row.get("game") == "casino-holdem"]
    assert (result["event"], result["log_level"]) == ("game_without_certificate", "error")
    assert result["why"].endswith("that can be used: casino-holdem.json: torn")
