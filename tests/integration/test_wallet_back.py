"""A wallet that was stopped and came back on its port: everything that waited for it is settled within a stated bound.

Over a real socket. The gaps between attempts are as after an outage of minutes, so that nothing is due by its own time.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import structlog.testing

from rgs.devkit.simulators.serving import SimulatorServer
from rgs.ports.readings import CircuitState
from rgs.service.money import transfers
from tests.integration.test_money_outside import Outside, again, outside, until, world_entries
from tests.support.api.client import ApiClient, refused
from tests.support.api.harness import reason_in, status_in

pytestmark = pytest.mark.slow

BOUND_S = 15.0
"""docs/money.md: one opening of the circuit, a reconnection, and two passes of recovery, at the default settings."""
GAP_MS = 3_600_000


async def restart(world: Outside) -> None:
    """The same wallet, with its book, on the port that it had."""
    stopped = world.servers["wallet"]
    world.servers["wallet"] = SimulatorServer(world.wallet, f"localhost:{stopped.port}", world.wires["wallet"])
    await world.servers["wallet"].start()


def reading(world: Outside) -> Any:
    services = world.harness.server.services
    return next(one for one in services.outbox.readings() if one.name.startswith("wallet of"))


@pytest.mark.parametrize("players", [1, 6])
async def test_a_wallet_that_came_back_finds_all_that_waited(
    tmp_path: Path, players: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfers, "GAP_FIRST_MS", GAP_MS)
    monkeypatch.setattr(transfers, "GAP_LAST_MS", GAP_MS)
    async with outside(tmp_path) as world:
        first = await world.player()
        people = [first, *(ApiClient(first.channel, f"player-{number}") for number in range(2, players + 1))]
        for player in people:
            await player.open()
        await world.servers["wallet"].drain()
        requests = [player.buy_request() for player in people]
        with structlog.testing.capture_logs() as lines:
            for player, request in zip(people, requests, strict=True):
                for _ in range(6):
                    error = await refused(player.sessions.BuyParticipation(request))
                    assert reason_in(status_in(error)) == "WALLET_UNAVAILABLE"
            assert reading(world).state is not CircuitState.CLOSED
            await restart(world)
            began = time.monotonic()

            async def is_settled() -> bool:
                waiting, _ = await world.harness.server.services.outbox.figures()
                return not any(row.kind == "purchase" for row in waiting)

            assert await until(is_settled, polls=int(BOUND_S * 10))
            assert time.monotonic() - began < BOUND_S
            assert reading(world).state is CircuitState.CLOSED
        result = [(line["log_level"], line["event"]) for line in lines if line["event"].startswith("circuit")]
        assert result == [("warning", "circuit_open"), ("info", "circuit_closed")]
        for player, request in zip(people, requests, strict=True):
            bought = await until(again(player.sessions.BuyParticipation, request))
            assert bought.session.bought_minor == request.amount_minor
    debits = [entry for entry in world_entries(tmp_path) if entry.kind == "debit"]
    assert len(debits) == players, "each was taken once"
