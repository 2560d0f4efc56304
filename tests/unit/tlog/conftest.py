"""A store of committed statements and a sequencer over it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rgs.tlog.sequencer import Sequencer
from tests.support.clocks import ManualClock
from tests.support.log.sequencing import (
    SUMMER_MS,
    Shelf,
    make_sequencer,
)


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(SUMMER_MS)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def sequencer(shelf: Shelf, log: Path, clock: ManualClock) -> Sequencer:
    return make_sequencer(shelf, log, clock)
