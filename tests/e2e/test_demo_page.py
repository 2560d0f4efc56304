"""docs/demo.md shows what a demo prints and what its commands print: each is run and compared line by line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.log.logcheck import LogCheck, logcheck

pytestmark = pytest.mark.slow

__all__ = ["logcheck"]

PAGE = (Path(__file__).parents[2] / "docs" / "demo.md").read_text("utf-8")
COMMAND = re.compile(r"^    \$ ((\w+) (?:.*\\\n)*.*)\n((?:    .*\n)+)", re.MULTILINE)
COMMANDS = {f"{name} {said.split()[1]}": (said, output) for said, name, output in COMMAND.findall(PAGE)}
CHANCE = re.compile(
    r"\b[0-9a-f]{48,64}\b|\b[0-9A-Z]{16}\b|\b[0-9A-Z]{26}\b|\b[0-9a-z]{26}\b|(?<!\S)[A-Za-z0-9+/]{43}=|[+-]?\d[\d,.:TZ-]*"
)


def form(text: str) -> list[str]:
    """The lines without what differs from run to run: numbers, ids, hashes, times, and the room they take."""
    return [" ".join(CHANCE.sub("#", line).split()) for line in text.splitlines() if line.strip()]


def demo_form(text: str) -> list[str]:
    """Of a whole demo: without the kinds of faults, which are as many as there were, and the commands at its end."""
    lines = form(re.sub(r"^  Evidence in .*?\n\n", "", text, flags=re.MULTILINE | re.DOTALL))
    faults = [index for index, line in enumerate(lines) if line.startswith("✓ faults #")]
    again = [index for index, line in enumerate(lines) if line.startswith("✓ again #")]
    return lines[: faults[0]] + lines[again[0] :]


def test_the_page_shows_a_demo_line_by_line(folder: Path) -> None:
    block = PAGE[PAGE.index("      A remote game server") : PAGE.index("In words:")]
    assert demo_form(block) == demo_form((folder.parent / "said.txt").read_text("utf-8"))


def test_what_differs_between_runs_is_all_that_is_left_out() -> None:
    assert form("  ✓ 680 rounds in 16 sessions     3.7 s\n\n") == ["✓ # rounds in # sessions # s"]
    assert form("root  68d77b846dac2cfcbf0c23b24bf0181825a31cb285a4f67343320bedb011d0bb") == ["root #"]
    assert form(f"root +{'a' * 42}=") == form(f"root Z{'/' * 42}=") == ["root #"]
    assert form("balance -3.00 EUR\n") != form("balances -3.00 EUR\n")


@pytest.fixture(scope="module")
def place(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the evidence lies where the page says, and nothing else."""
    place = tmp_path_factory.mktemp("page")
    shutil.copytree(folder, place / "var" / "demo", ignore=shutil.ignore_patterns("home"))
    return place


def run(place: Path, command: str, programs: Path) -> list[str]:
    path = os.pathsep.join((str(programs), os.environ["PATH"]))
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=place,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return form(done.stdout)


@pytest.mark.parametrize("name", ["certify replay", "rgs reconcile", "certify log"])
def test_a_command_of_the_page_prints_these_lines(name: str, place: Path) -> None:
    command, output = COMMANDS[name]
    said, shown = run(place, command, Path(sys.executable).parent), form(output)
    assert [line for line in said if line in shown] == shown  # all of them in this order; some are left out
    assert said[-1] == shown[-1]


def test_the_program_of_others_prints_this_line(logcheck: LogCheck, place: Path) -> None:
    command, output = COMMANDS["logcheck var/demo/log"]
    assert run(place, command, logcheck.program.parent) == form(output)


def test_no_command_of_the_page_goes_unrun() -> None:
    assert set(COMMANDS) == {"certify replay", "rgs reconcile", "certify log", "logcheck var/demo/log"}
    assert PAGE.count("    $ ") == len(COMMANDS)
