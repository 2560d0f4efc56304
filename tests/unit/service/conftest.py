"""A started harness for every test that asks for one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from rgs.store.opening import open_parties, open_store
from tests.support.service.guards import UnsealedDeck
from tests.support.service.harness import ServiceHarness, open_harness
from tests.support.service.player import Player
from tests.support.store.databases import fresh_database


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[ServiceHarness]:
    async with open_harness(tmp_path) as opened:
        yield opened


@pytest.fixture
def anna(harness: ServiceHarness) -> Player:
    return Player(harness)


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[UnsealedDeck]:
    """Opens a harness over the one store, then over the other; again and again the same one."""
    if request.param == "sqlite":
        yield lambda **options: _open(tmp_path, None, **options)
    else:
        with fresh_database() as address:
            yield lambda **options: _open(tmp_path, address, **options)


@asynccontextmanager
async def _open(folder: Path, address: Any, *, ended: bool = True, **options: Any) -> AsyncIterator[ServiceHarness]:
    stores: dict[str, Any] = (
        {} if address is None else {"store": await open_store(address), "parties": await open_parties(address)}
    )
    harness = ServiceHarness(folder, **stores, **options)
    await harness.start()
    try:
        yield harness
    finally:
        await harness.stop(ended=ended)
