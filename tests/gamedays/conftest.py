"""What every game day begins with: a transcript, and a house that is not begun."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gamedays.house import House, open_house
from tests.gamedays.transcript import Transcript, transcript


@pytest.fixture
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Transcript]:
    """The transcript; the test's first line of documentation is its title."""
    function = request.function
    name = function.__name__.removeprefix("test_").replace("_", "-")
    with transcript(name, function.__doc__.splitlines()[0].rstrip("."), tmp_path) as one:
        yield one


@pytest.fixture
def house(tmp_path: Path, written: Transcript) -> Iterator[House]:
    with open_house(tmp_path, written) as one:
        yield one
