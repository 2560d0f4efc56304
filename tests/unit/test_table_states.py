"""docs/tables.md and its drawing are true: every step of the state machine is drawn once, listed and explained."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from rgs.core.tables.machine import STEPS, State, Step
from tools.table_states import BEGIN, END, edges, is_timed, picture, renewed, table

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "tables.md").read_text("utf-8")
DRAWING = (DOCS / "tables.svg").read_text("utf-8")
SVG = "{http://www.w3.org/2000/svg}"


def test_page_and_drawing_show_the_steps() -> None:
    command = "python -m tools.table_states docs/tables.md docs/tables.svg"
    assert renewed(PAGE) == PAGE, command
    assert picture() == DRAWING, command
    assert "](tables.svg)" in PAGE


def test_every_step_is_drawn_once_and_named() -> None:
    drawn = ET.fromstring(DRAWING)  # noqa: S314 - our own file
    ways = [path.attrib["data-way"] for path in drawn.iter(f"{SVG}path")]
    assert sorted(ways) == sorted(f"{state} {step} {led_to}" for state, step, led_to in edges())
    pauses = [state for state in State if Step.PAUSE in STEPS[state]]
    assert len(ways) == sum(map(len, STEPS.values())) + len(pauses)  # RESUME leads back from each
    words = [text.text for text in drawn.iter(f"{SVG}text")]
    for step in Step:
        assert words.count(step.value) == sum(f" {step} " in way for way in ways) + (step.value in {*State})
    assert {state.value for state in State} <= set(words)


def test_no_two_ways_lie_on_one_another_and_all_lie_in_the_drawing() -> None:
    drawn = ET.fromstring(DRAWING)  # noqa: S314 - our own file
    paths = [path.attrib["d"] for path in drawn.iter(f"{SVG}path")]
    assert len(set(paths)) == len(paths)
    width = int(drawn.attrib["width"])
    assert width <= 360  # a phone shows it as it is
    for path in paths:
        for x in re.findall(r"[MH](\d+)", path):
            assert 0 < int(x) < width
    assert min(int(size) for size in re.findall(r"font-size:(\d+)px", DRAWING)) >= 12


def test_the_states_with_a_deadline_are_marked() -> None:
    assert {state for state in State if is_timed(state)} == {State.BETTING, State.DECIDING, State.RESULT}
    assert DRAWING.count('class="timed"') == 3 + 1  # and in the legend


def test_every_step_is_explained() -> None:
    part = PAGE.split(END)[1].split("\n## ")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)) == sorted(step.value for step in Step)


def test_the_list_of_a_small_machine() -> None:
    steps = {State.IDLE: {Step.PAUSE: State.PAUSED}, State.PAUSED: {Step.CANCEL: State.IDLE}}
    assert list(edges(steps)) == [
        (State.IDLE, Step.PAUSE, State.PAUSED),
        (State.PAUSED, Step.RESUME, State.IDLE),
        (State.PAUSED, Step.CANCEL, State.IDLE),
    ]
    assert table(steps).splitlines()[2:] == [
        "| idle | pause → paused |",
        "| paused | resume → the state before, cancel → idle |",
    ]


@pytest.mark.parametrize(
    ("state", "step", "led_to", "why"),
    [
        (State.SETTLING, Step.VOID, State.VOIDING, "void from settling to voiding has no way"),
        (State.VOIDING, Step.REST, State.IDLE, "rest from voiding to idle has no way"),
        (State.SETTLING, Step.CANCEL, State.IDLE, "the drawing has 3 such ways"),
    ],
)
def test_a_step_without_a_way_in_the_drawing_is_refused(state: State, step: Step, led_to: State, why: str) -> None:
    steps = {**STEPS, state: {**STEPS[state], step: led_to}}
    with pytest.raises(ValueError, match=why):
        picture(steps)


@pytest.mark.parametrize("page", ["", f"{BEGIN}{END}{BEGIN}{END}"])
def test_a_page_has_one_list_of_steps(page: str) -> None:
    with pytest.raises(ValueError, match="one part"):
        renewed(page)
