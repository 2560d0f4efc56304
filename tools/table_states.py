"""The drawing of a table's states, made from the table STEPS of rgs/core/tables/machine.py.

`python -m tools.table_states docs/tables.md docs/tables.svg` updates the list of steps in the page and the drawing; a
test compares. The drawing is narrow and high, for a phone: a round runs downwards, what leads back is on the left, and
what stops a table is on the right. A step that finds no way in it is a ValueError: then the drawing needs a new one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from rgs.core import games
from rgs.core.games.types import Timers
from rgs.core.tables.machine import STEPS, Clockwork, State, Step, Table, take

BEGIN: Final = "<!-- steps: made by tools/table_states.py -->"
END: Final = "<!-- end of steps -->"
BETWEEN: Final = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)

Steps = Mapping[State, Mapping[Step, State]]

COLUMN: Final = (
    *(State.SHUT, State.IDLE, State.BETTING, State.CLOSED, State.FIXED, State.OPENING, State.DECIDING),
    *(State.SETTLING, State.RESULT),
)
NOTES: Final = {
    State.SHUT: "outside its hours",
    State.IDLE: "waits for a bet",
    State.BETTING: "green, then amber",
    State.CLOSED: "red: bets are cut",
    State.FIXED: "the bets are signed",
    State.OPENING: "drawn, seats signed",
    State.DECIDING: "a window a phase",
    State.SETTLING: "seats get their finals",
    State.RESULT: "results are shown",
    State.VOIDING: "stakes go back",
    State.PAUSED: "",
}
LEFT, RIGHT, CENTRE, PITCH, HALF = 90, 232, 161, 92, 25
BAR_LEFT, BAR_RIGHT, WIDTH = 306, 352, 360
RAILS: Final = (53, 31, 9)
_STYLE: Final = (
    "text{font-family:sans-serif;fill:#111}.name{font-size:16px;font-weight:bold}.note{font-size:12px}"
    ".step{font-size:13px;fill:#333}path{fill:none;stroke:#333;stroke-width:1.5}"
    "rect{stroke:#333;stroke-width:1.5;fill:#fff}.timed{fill:#ffe9a8}.stop{fill:#f4c7c3}"
)
_TIP: Final = (
    '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<polygon points="0,0 8,4 0,8" fill="#333"/></marker>'
)


def is_timed(state: State) -> bool:
    """Whether the state has a deadline."""
    clockwork = Clockwork(Timers(1, 0, 1, 1), early_close=False, rules=games.FAMILIES["casino_holdem"])
    paused = Table("table", state=State.PAUSED, paused_from=state)
    return take(paused, Step.RESUME, clockwork, 1).deadline_ms > 0


def edges(steps: Steps = STEPS) -> Iterator[tuple[State, Step, State]]:
    """Every step that there is: those of the table, and the way back from each pause."""
    for state, row in steps.items():
        for step, led_to in row.items():
            yield state, step, led_to
            if step is Step.PAUSE:
                yield led_to, Step.RESUME, state


def picture(steps: Steps = STEPS) -> str:
    """The drawing, as SVG."""
    height = _y(len(COLUMN)) + HALF + 66
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">',
        "<title>The states of a table and the steps between them</title>",
        f"<style>{_STYLE}</style>",
        f"<defs>{_TIP}</defs>",
        f'<rect x="0" y="0" width="{WIDTH}" height="{height}" style="stroke:none"/>',
        *_ways(steps),
        *(line for state in State for line in _box(state)),
        f'<rect class="timed" x="12" y="{height - 46}" width="16" height="16"/>',
        _text(36, height - 33, "has a deadline, and moves on at it", "note", "start"),
        f'<rect class="stop" x="12" y="{height - 24}" width="16" height="16"/>',
        _text(36, height - 11, "waits for admins", "note", "start"),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _y(row: int) -> int:
    """The middle of a row of boxes."""
    return 36 + PITCH * row


def _text(x: float, y: float, words: str, kind: str, anchor: str = "middle") -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{words}</text>'


def _rect(left: int, top: int, right: int, bottom: int, kind: str) -> str:
    return f'<rect{kind} x="{left}" y="{top}" width="{right - left}" height="{bottom - top}" rx="8"/>'


def _box(state: State) -> list[str]:
    if state is State.PAUSED:
        top, bottom = _y(COLUMN.index(State.IDLE)) - HALF, _y(len(COLUMN) - 1) + HALF
        x, y = (BAR_LEFT + BAR_RIGHT) / 2 - 5, (top + bottom) / 2
        return [
            _rect(BAR_LEFT, top, BAR_RIGHT, bottom, ' class="stop"'),
            f'<g transform="rotate(90 {x:g} {y:g})">{_text(x, y, state, "name")}</g>',
        ]
    left, right, row = (LEFT, RIGHT, COLUMN.index(state)) if state in COLUMN else (210, BAR_RIGHT, len(COLUMN))
    kind = ' class="timed"' if is_timed(state) else ""
    return [
        _rect(left, _y(row) - HALF, right, _y(row) + HALF, kind),
        _text((left + right) / 2, _y(row) - 3, state, "name"),
        _text((left + right) / 2, _y(row) + 15, NOTES[state], "note"),
    ]


def _ways(steps: Steps) -> Iterator[str]:
    """All arrows, each with its words. `data-way` names states and step, for whoever checks the drawing."""
    rails = iter(RAILS)
    for state, step, led_to in edges(steps):
        if state in COLUMN and led_to in COLUMN:
            from_row, to_row = COLUMN.index(state), COLUMN.index(led_to)
            if to_row < from_row - 1:
                path, words = _rail(next(rails, 0), from_row, to_row, step)
            else:
                path, words = _short(from_row, to_row, step)
        elif step in {Step.PAUSE, Step.RESUME, Step.CANCEL} and State.PAUSED in {state, led_to}:
            path, words = _across(state, step, led_to)
        elif (state, led_to) == (State.PAUSED, State.VOIDING):
            path, words = _void(step)
        elif (state, led_to) == (State.VOIDING, State.RESULT):
            path, words = _voided(step)
        else:
            raise ValueError(f"{step} from {state} to {led_to} has no way in the drawing")
        yield f'<path data-way="{state} {step} {led_to}" d="{path}" marker-end="url(#tip)"/>'
        yield words


def _short(from_row: int, to_row: int, step: Step) -> tuple[str, str]:
    """To the next state, back to the one before, or to itself."""
    top, bottom = _y(min(from_row, to_row)) + HALF, _y(max(from_row, to_row)) - HALF
    middle = (top + bottom) / 2 + 4
    if to_row > from_row:
        return f"M{CENTRE - 20} {top}V{bottom}", _text(CENTRE - 26, middle, step, "step", "end")
    if to_row < from_row:
        return f"M{CENTRE + 20} {bottom}V{top}", _text(CENTRE + 26, middle, step, "step", "start")
    y = _y(to_row)
    return f"M{LEFT} {y + 10}H{LEFT - 16}V{y - 10}H{LEFT}", _text(LEFT - 2, y - 16, step, "step", "end")


def _rail(x: int, from_row: int, to_row: int, step: Step) -> tuple[str, str]:
    """A long way back, on the left."""
    if not x:
        raise ValueError(f"{step} leads back to {COLUMN[to_row]}: the drawing has {len(RAILS)} such ways")
    start = _y(from_row) + 16 - 16 * RAILS.index(x)
    return f"M{LEFT} {start}H{x}V{_y(to_row)}H{LEFT}", _text(LEFT - 12, _y(to_row) - 6, step, "step", "end")


def _across(state: State, step: Step, led_to: State) -> tuple[str, str]:
    """Between the column and PAUSED."""
    x = (RIGHT + BAR_LEFT) / 2
    if step is Step.PAUSE:
        y = _y(COLUMN.index(state)) - 15
        return f"M{RIGHT} {y}H{BAR_LEFT}", _text(x, y - 4, step, "step")
    y = _y(COLUMN.index(led_to)) + (4 if step is Step.RESUME else 22)
    return f"M{BAR_LEFT} {y}H{RIGHT}", _text(x, y - 4, step, "step")


def _void(step: Step) -> tuple[str, str]:
    x = (BAR_LEFT + BAR_RIGHT) // 2
    top, bottom = _y(len(COLUMN) - 1) + HALF, _y(len(COLUMN)) - HALF
    return f"M{x} {top}V{bottom}", _text(x - 6, (top + bottom) / 2 + 4, step, "step", "end")


def _voided(step: Step) -> tuple[str, str]:
    y = _y(len(COLUMN))
    return f"M210 {y}H{CENTRE}V{_y(len(COLUMN) - 1) + HALF}", _text(CENTRE - 6, y - 12, step, "step", "end")


def table(steps: Steps = STEPS) -> str:
    """The exact steps behind the drawing."""
    lines = ["| state | its steps, and where they lead |", "|---|---|"]
    for state in steps:
        ways = [
            f"{step} → {'the state before' if step is Step.RESUME else led_to}"
            for source, step, led_to in edges(steps)
            if source is state
        ]
        lines.append(f"| {state} | {', '.join(dict.fromkeys(ways))} |")
    return "\n".join(lines)


def renewed(page: str) -> str:
    """The page with the list of STEPS."""
    if len(BETWEEN.findall(page)) != 1:
        raise ValueError(f"the page must have one part between {BEGIN} and {END}")
    return BETWEEN.sub(lambda _: f"{BEGIN}\n\n{table()}\n\n{END}", page)


if __name__ == "__main__":
    page, drawing = map(Path, sys.argv[1:])
    page.write_text(renewed(page.read_text("utf-8")), "utf-8")
    drawing.write_text(picture(), "utf-8")
