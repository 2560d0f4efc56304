"""Walk 1 of docs/architecture.md, walked: a StartRound over the wire passes every step of the page, in its order."""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path
from types import FrameType

from tests.unit.api.client import Player
from tests.unit.api.serving import serving

ROOT = Path(__file__).parents[2]
STEP = re.compile(r"^\| `([\w/]+\.py)::([\w.]+)` \| ", re.MULTILINE)
ELSEWHERE = ("rgs/api/endpoint.py", "rgs/api/access.py")
"""What is walked when the server starts, and only where a log is kept."""


def steps_of(walk: int) -> list[tuple[str, str]]:
    """File and function of each step, as the page has them."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    return STEP.findall(text.split(f"\n## Walk {walk}: ")[1].split("\n## ")[0])


def missed(steps: list[tuple[str, str]], calls: list[tuple[str, str]]) -> str:
    """The first step that does not come behind the one before it; empty where all do."""
    left = iter(calls)
    for path, name in steps:
        if not any(file == path and (called == name or called.startswith(f"{name}.<locals>")) for file, called in left):
            return f"{path}::{name}"
    return ""


async def test_a_start_of_a_round_walks_as_the_page_says(tmp_path: Path) -> None:
    steps = [step for step in steps_of(1) if step[0] not in ELSEWHERE]
    assert len(steps) > 45
    calls: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _argument: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(f"{ROOT}/r"):
            calls.append((file.removeprefix(f"{ROOT}/"), frame.f_code.co_qualname))

    threading.setprofile(note)  # before the writer's thread begins
    try:
        async with serving(tmp_path) as house:
            player = Player(house.channel())
            await player.open()
            await player.buy()
            calls.clear()
            sys.setprofile(note)
            await player.start()
            sys.setprofile(None)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert missed(steps, calls) == ""
    assert missed(steps[::-1], calls) != ""
