"""Fixtures of the embedded wallet and regulator."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.adapters.books import Played, make_regulator


@pytest.fixture
async def played(tmp_path: Path) -> AsyncIterator[Played]:
    played = Played(*make_regulator(tmp_path / "regulator.sqlite"))
    await played.play()
    yield played
    played.store.verify()
    await played.regulator.close()
