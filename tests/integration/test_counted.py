"""What a played call costs by counts that no noise moves, against the figures in `bench/counted.json`.

A change that makes a figure grow or shrink by more than 5 % has to write the file in the same commit.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import observing
from bench.counted import FIGURES, GATED, differences, kept_figures, python_version


@pytest.mark.slow
@pytest.mark.timeout(900)  # 25 s of CPU, on a machine that may be busy
@pytest.mark.skipif(python_version() != GATED, reason=f"the figures of Python {GATED} are compared")
def test_a_played_call_costs_what_the_file_says(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.counted", "--check", "--folder", str(tmp_path)]
    run = subprocess.run(command, check=False, capture_output=True, text=True, cwd=FIGURES.parent.parent)
    assert run.returncode == 0, run.stderr


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_observing_is_a_small_part_of_a_call() -> None:
    """Calls of functions in the server's thread, with metrics, and with traces too: no noise of the machine."""
    command = [sys.executable, "-m", "bench.observing", "--check"]
    run = subprocess.run(command, check=False, capture_output=True, text=True, cwd=FIGURES.parent.parent)
    assert run.returncode == 0, run.stdout + run.stderr
    found = {line.split()[0]: float(line.split()[6]) for line in run.stdout.splitlines()[:3]}
    assert list(found) == ["off", "metrics", "traces"]
    assert found["traces"] > found["metrics"] > 3, "what is there to observe is found"


def test_more_than_that_is_an_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(observing, "make_home", lambda _home: None)
    monkeypatch.setattr(observing, "served", lambda *_: nullcontext(SimpleNamespace(server=None)))
    monkeypatch.setattr(observing, "player", lambda *_: nullcontext(None))
    for counting, traced, status in ((20.0, 1079.0, 0), (20.1, 1000.0, 1), (1.0, 1081.0, 1)):
        counts = iter([(1000.0, 1.0), (1000.0, counting), (traced, 30.0)])
        monkeypatch.setattr(observing, "calls_an_rpc", lambda *_, counts=counts: next(counts))
        assert observing.main(["--check"]) == status
    assert "above the limits" in capsys.readouterr().err


def test_the_functions_that_only_observe_are_there() -> None:
    """One that was renamed would be counted no more."""
    root = FIGURES.parent.parent
    source = "".join(path.read_text("utf-8") for path in (root / "rgs").rglob("*.py"))
    names = {name for name in observing.BESIDE if name != "bind_contextvars"}  # of structlog
    assert {name for name in names if f"def {name}(" not in source} == set()
    assert "structlog.contextvars.bind_contextvars(" in source


def test_a_figure_that_moved_is_named_in_both_directions() -> None:
    kept = {"grown": 100.0, "shrunk": 100.0, "same": 100.0, "gone": 1.0}
    lines = differences({"grown": 105.1, "shrunk": 94.9, "same": 104.9, "new": 1.0}, kept)
    assert [line.split()[0] for line in lines] == ["gone", "new", "grown", "shrunk"]
    assert lines[2] == "grown has grown from 100 to 105.1 a call, by more than 5%"


def test_the_file_has_the_figures_of_the_version_that_is_gated() -> None:
    assert kept_figures()[GATED]
