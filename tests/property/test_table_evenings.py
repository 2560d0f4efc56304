"""Random evenings at three tables that four players of two operators share: whatever anybody does at any time, and
however often the process stops or dies, money is conserved, no card is seen too soon, and the evening replays.

A seed says what is tried; the order in which it happens is the event loop's. In every second evening each look at the
clock takes a millisecond.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import Counter
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.service.oracles import verify_books
from tests.support.service.table_world import World

STEPS = 120


async def live(folder: Path, seed: int, steps: int = STEPS) -> Counter[str]:
    """One evening; how often what was refused."""
    world = World(folder, seed)
    chance = world.chance
    try:
        await world.open()
        while steps > 0:
            batch = [world.take(world.pick()) for _ in range(chance.choice((1, 1, 2, 5)))]
            steps -= len(batch)
            if chance.randrange(60) == 0:
                await die_amid(world, batch)
            else:
                await asyncio.gather(*batch)
                await world.settle()
            if chance.randrange(60) == 0:
                await world.restart(chance.choice(("stop", "die")))
            await world.verify()
        await world.finish()
    except BaseException as error:
        error.add_note(f"seed {seed}, {steps} steps before the end: {world.reasons}")
        await world.harness.stop(ended=False)
        raise
    await world.harness.stop()
    verify_books(folder)
    return world.reasons


async def die_amid(world: World, batch: Sequence[Coroutine[Any, Any, None]]) -> None:
    """The process dies while things are under way; what the store had been given may be committed."""
    tasks = [asyncio.ensure_future(one) for one in batch]
    tasks += [asyncio.ensure_future(evening.look()) for evening in world.evenings]
    for _ in range(world.chance.randrange(40)):
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await world.harness.tables.dealer.stop()
    await world.restart("die")


def evening_of(seed: int, steps: int = STEPS) -> Counter[str]:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(live(Path(folder), seed, steps))


@pytest.mark.parametrize("seed", range(6))
def test_an_evening_adds_up(seed: int) -> None:
    evening_of(seed)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_evenings_add_up() -> None:
    first = int(os.environ.get("SEED", int.from_bytes(os.urandom(3))))
    for seed in range(first, first + int(os.environ.get("EVENINGS", "60"))):
        evening_of(seed, 4 * STEPS)
