"""Fixtures of the embedded wallet and register."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.adapters.books import Played, make_register


@pytest.fixture
async def played(tmp_path: Path) -> AsyncIterator[Played]:
    played = Played(*make_register(tmp_path / "register.sqlite"))
    await played.play()
    yield played
    played.store.verify()
    await played.register.close()
