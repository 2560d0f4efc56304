"""The watch over returns in the house: every round once, in the order of start, through crashes; alarms, and none."""

from __future__ import annotations

from pathlib import Path

from tests.house import House, Player


async def test_x(house: House, anna: Player) -> None:
    await anna.sit()
    for _ in range(5):
        await anna.play(trips=100)
    print(await house.services.monitoring.look())
    measured, late = await house.services.monitoring.measured()
    for m in measured:
        print(m.ruleset_id, m.tally.life.rounds, m.tally.money)
        for r in m.readings: print(r)
    assert 0
