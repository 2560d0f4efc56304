"""What a played call costs by counts that no noise moves, against the figures in `bench/counted.json`.

A change that makes a figure grow or shrink by more than 5 % has to write the file in the same commit.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.counted import FIGURES, GATED, differences, kept_figures, python_version


@pytest.mark.slow
@pytest.mark.timeout(900)  # 25 s of CPU, on a machine that may be busy
@pytest.mark.skipif(python_version() != GATED, reason=f"the figures of Python {GATED} are compared")
def test_a_played_call_costs_what_the_file_says(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.counted", "--check", "--folder", str(tmp_path)]
    run = subprocess.run(command, check=False, capture_output=True, text=True, cwd=FIGURES.parent.parent)
    assert run.returncode == 0, run.stderr


def test_a_figure_that_moved_is_named_in_both_directions() -> None:
    kept = {"grown": 100.0, "shrunk": 100.0, "same": 100.0, "gone": 1.0}
    lines = differences({"grown": 105.1, "shrunk": 94.9, "same": 104.9, "new": 1.0}, kept)
    assert [line.split()[0] for line in lines] == ["gone", "new", "grown", "shrunk"]
    assert lines[2] == "grown has grown from 100 to 105.1 a call, by more than 5%"


def test_the_file_has_the_figures_of_the_version_that_is_gated() -> None:
    assert kept_figures()[GATED]
