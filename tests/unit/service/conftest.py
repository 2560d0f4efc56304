"""A started house for every test that asks for one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from rgs.store.opening import open_parties, open_store
from tests.databases import fresh_database
from tests.house import House, Player, open_house
from tests.unit.service.clocks import Opened


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as opened:
        yield opened


@pytest.fixture
def anna(house: House) -> Player:
    return Player(house)


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Opens a house over the one store, then over the other; again and again the same one."""
    if request.param == "sqlite":
        yield lambda **options: _open(tmp_path, None, **options)
    else:
        with fresh_database() as address:
            yield lambda **options: _open(tmp_path, address, **options)


@asynccontextmanager
async def _open(folder: Path, address: Any, *, ended: bool = True, **options: Any) -> AsyncIterator[House]:
    stores: dict[str, Any] = (
        {} if address is None else {"store": await open_store(address), "parties": await open_parties(address)}
    )
    house = House(folder, **stores, **options)
    await house.start()
    try:
        yield house
    finally:
        await house.stop(ended=ended)
