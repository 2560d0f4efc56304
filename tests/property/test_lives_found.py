"""Lives that hypothesis has found, or that lie beside those: each was red once, and is lived at every run, unshrunk."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Final

import pytest

from tests.property import test_lives_clock as clock
from tests.property import test_lives_money as money
from tests.property.test_lives_whole import Step, entropy_of

_Life = list[tuple[str, int]]
BACK, BOTH_BACK, DATABASE_BACK = ("jump", 0), ("jump_both", 0), ("database", 0)
AHEAD, BOTH_AHEAD, DATABASE_AHEAD, HOUR_AHEAD = ("jump", 9), ("jump_both", 9), ("database", 9), ("database", 7)
STOP, RIGHT, POLL, VOUCH, RULE = ("stop", 0), ("right", 0), ("poll", 0), ("vouch", 0), ("rule", 0)

BEHIND_KEY: Final[list[tuple[str, _Life]]] = [
    ("sqlite", [("next", 0), ("next", 0), ("next", 0), BACK, STOP]),
    ("postgres", [("next", 0), ("next", 0), ("next", 0), BOTH_BACK, STOP]),
    ("postgres", [DATABASE_BACK, STOP, POLL]),
]


@pytest.mark.parametrize(("store", "life"), BEHIND_KEY, ids=["file", "both clocks", "the database's clock"])
def test_no_instance_starts_before_its_node_key(store: str, life: _Life) -> None:
    """Ten days behind its key: what the instance signed nobody could verify. The start waits for the clocks."""
    lived = clock.lived(store, [*clock.SEATED, *[clock.Step(*step) for step in life]], 0)
    assert lived.refused == 1


SET_RIGHT: Final[list[tuple[str, _Life]]] = [
    ("sqlite", [AHEAD, STOP, POLL, RIGHT, VOUCH, ("next", 0)]),
    ("postgres", [BOTH_AHEAD, STOP, POLL, RIGHT, VOUCH, ("next", 0)]),
    ("postgres", [DATABASE_AHEAD, STOP, POLL, RIGHT, POLL, RULE]),
    ("postgres", [HOUR_AHEAD, STOP, POLL, RIGHT, POLL, RULE]),
]


@pytest.mark.parametrize(
    ("store", "life"),
    SET_RIGHT,
    ids=["vouched at once", "both clocks", "the database's clock", "the database's clock, an hour"],
)
def test_a_clock_that_is_set_right_is_told_before_anything_is_dated_by_it(store: str, life: _Life) -> None:
    """It was ahead when the instance started, and is believed again before anybody has told of the jump."""
    clock.lived(store, [*clock.SEATED, *[clock.Step(*step) for step in life]], 7)


NEXT: Final = Step("next", 0, 0)
REFUSED: Final[list[tuple[list[list[Step] | str], list[int], bool]]] = [
    ([[NEXT], [NEXT], [Step("next", 1, 0), NEXT, NEXT]], [4, 8], False),
    ([[NEXT], [NEXT, NEXT], [NEXT]], [6, 8], True),
]


@pytest.mark.parametrize(
    ("batches", "chances", "is_seamless"), REFUSED, ids=["a repeat of what was taken", "with a late copy on its way"]
)
def test_a_debit_that_is_refused_the_second_time(
    batches: list[list[Step] | str], chances: list[int], is_seamless: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder, entropy_of(0):
        asyncio.run(money.live(Path(folder), batches, chances, is_seamless=is_seamless))
