"""What every game day begins with: a transcript, and a scene that is not begun."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gamedays.scene import Scene, open_scene
from tests.gamedays.transcript import Transcript, transcript


@pytest.fixture
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Transcript]:
    """The transcript; the test's first line of documentation is its title."""
    function = request.function
    name = function.__name__.removeprefix("test_").replace("_", "-")
    with transcript(name, function.__doc__.splitlines()[0].rstrip("."), tmp_path) as one:
        yield one


@pytest.fixture
def scene(tmp_path: Path, written: Transcript) -> Iterator[Scene]:
    with open_scene(tmp_path, written) as one:
        yield one
