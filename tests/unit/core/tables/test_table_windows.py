"""Decision windows: which one ended a phase, and what falls inside one."""

from __future__ import annotations

import pytest

from rgs.core.games.types import Phase
from rgs.core.statements import KINDS
from rgs.core.statements.shapes import Record, check_shape
from rgs.core.tables.windows import Window, WindowEnd, is_inside, last_windows

T0 = 1_795_000_000_000
BROKEN = Window(Phase.PREFLOP, T0, T0 + 500, WindowEnd.PAUSED)
FIRST = Window(Phase.PREFLOP, T0 + 9_000, T0 + 24_000, WindowEnd.TIME)
SECOND = Window(Phase.FLOP, T0 + 24_001, T0 + 25_000, WindowEnd.DECIDED)
THIRD = Window(Phase.RIVER, T0 + 25_001, T0 + 25_100, WindowEnd.PAUSED)
WINDOWS = (BROKEN, FIRST, SECOND, THIRD)


def test_a_window_as_it_is_signed() -> None:
    bodies = [window.body() for window in (FIRST, SECOND, THIRD)]
    assert bodies == [
        {
            "close_time": "2026-11-18T11:07:04.000Z",
            "end": "time",
            "open_time": "2026-11-18T11:06:49.000Z",
            "phase": "preflop",
        },
        {
            "close_time": "2026-11-18T11:07:05.000Z",
            "end": "decided",
            "open_time": "2026-11-18T11:07:04.001Z",
            "phase": "flop",
        },
        {
            "close_time": "2026-11-18T11:07:05.100Z",
            "end": "paused",
            "open_time": "2026-11-18T11:07:05.001Z",
            "phase": "river",
        },
    ]
    shape = KINDS["table_final"].shape
    assert isinstance(shape, Record)
    check_shape(shape.required["windows"], bodies, "windows")


def test_the_window_that_ended_a_phase() -> None:
    assert last_windows(WINDOWS) == {Phase.PREFLOP: FIRST, Phase.FLOP: SECOND}
    assert last_windows([BROKEN]) == {}
    assert last_windows([]) == {}


@pytest.mark.parametrize(
    ("phase", "at", "inside"),
    [
        (Phase.PREFLOP, -1, False),
        (Phase.PREFLOP, 0, True),
        (Phase.PREFLOP, 500, True),  # in the window that a pause ended
        (Phase.PREFLOP, 501, False),
        (Phase.PREFLOP, 8_999, False),  # between the two
        (Phase.PREFLOP, 9_000, True),
        (Phase.PREFLOP, 24_000, True),
        (Phase.PREFLOP, 24_001, False),
        (Phase.FLOP, 24_000, False),
        (Phase.FLOP, 24_001, True),
        (Phase.RIVER, 25_100, True),
        (Phase.SHOWDOWN, 25_000, False),
    ],
)
def test_both_ends_of_a_window_are_inside(phase: Phase, at: int, inside: bool) -> None:
    assert is_inside(WINDOWS, phase, T0 + at) is inside
