"""Decision windows as they are signed."""

from __future__ import annotations

from rgs.core.games.types import Phase
from rgs.core.statements import KINDS
from rgs.core.statements.shapes import Record, check_shape
from rgs.core.tables.windows import Window, WindowEnd

T0 = 1_795_000_000_000
FIRST = Window(Phase.PREFLOP, T0 + 9_000, T0 + 24_000, WindowEnd.TIME)
SECOND = Window(Phase.FLOP, T0 + 24_001, T0 + 25_000, WindowEnd.DECIDED)
THIRD = Window(Phase.RIVER, T0 + 25_001, T0 + 25_100, WindowEnd.PAUSED)


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
