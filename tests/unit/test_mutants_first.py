"""Some tests are run first: what they kill is killed, and what they do not kill has no verdict yet."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.test_mutants import ROOT, WEAK, rooms_run
from tools.mutants import CONFIG

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks with limits as Linux has them")
OTHER = "def test_that_reaches_nothing():\n    pass\n"


def test_the_tests_that_are_run_first_give_no_verdict_but_killed(tmp_path: Path) -> None:
    status, said, lines = rooms_run(tmp_path, WEAK, "--sample", "12", "--first", "test_s*.py")
    assert status == 1
    assert {line["outcome"] for line in lines} == {"killed"}
    left = 12 - len(lines)
    assert left > 0
    assert f"{left} survived the tests that were run first, and have no verdict yet: run them without --first" in said
    assert f"{len(lines)} mutants, {len(lines)} killed, 0 timeout, 0 survived" in said
    first = (tmp_path / "journal.jsonl").read_text()
    status, said, whole = rooms_run(tmp_path, WEAK, "--sample", "12", "--resume")
    assert (status, len(whole)) == (1, 12)
    assert [line for line in whole if line["outcome"] == "killed"] == [json.loads(line) for line in first.splitlines()]
    assert f"{left} survived, {left} of them without a reason" in said


def test_files_that_the_group_does_not_have_are_not_run(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(OTHER)
    (tmp_path / "journal.jsonl").touch()
    status, said, lines = rooms_run(tmp_path, WEAK, "--sample", "3", "--first", "test_other.py")
    assert (status, lines) == (1, [])
    assert "3 survived the tests that were run first" in said


LIMITS = "LIMIT = 7\nKINDS = int | str\n"
OF_LIMITS = "from small.limits import KINDS, LIMIT\n\ndef test_them():\n    assert LIMIT == 7\n    assert KINDS\n"
GROUP = """
[[group]]
name = "small"
part = "rooms"
targets = ["small/limits.py"]
tests = ["tests/test_limits.py"]
inputs = []
"""


def limits_run(folder: Path, *arguments: str) -> tuple[str, dict[str, tuple[str, str]]]:
    """What a run says, and of each mutant that the journal has how it ended and under which test."""
    command = [sys.executable, "-B", "-m", "tools.mutants", "--output", "journal.jsonl", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text("utf-8").splitlines()]
    return done.stdout + done.stderr, {line["after"]: (line["outcome"], line["test"]) for line in lines}


def test_what_acts_at_import_is_run_again_under_the_file_of_its_test(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "__init__.py").touch()
    (tmp_path / "small" / "limits.py").write_text(LIMITS)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_limits.py").write_text(OF_LIMITS)
    (tmp_path / CONFIG).parent.mkdir()
    (tmp_path / CONFIG).write_text(GROUP)
    by_test, at_import = ("killed", "tests/test_limits.py::test_them"), ("killed", "")
    said, whole = limits_run(tmp_path)
    assert whole == {"LIMIT = 8": by_test, "LIMIT = 6": by_test, "KINDS = (int & str)": at_import}, said
    (tmp_path / "tests" / "test_limits.py").write_text(f"{OF_LIMITS}\n")
    said, again = limits_run(tmp_path, "--resume", "--first", "none")
    assert again == {"LIMIT = 8": by_test, "LIMIT = 6": by_test}
    assert "1 survived the tests that were run first" in said
    journal = tmp_path / "journal.jsonl"
    line = json.loads(journal.read_text("utf-8").splitlines()[0])
    named = {"line": 2, "before": "KINDS = int | str", "after": "KINDS = (int & str)", "test": "tests/test_limits.py"}
    journal.write_text(f"{json.dumps(line | named)}\n")
    for _ in range(2):
        said, again = limits_run(tmp_path, "--resume", "--first", "none")
        assert again == {"KINDS = (int & str)": ("killed", "tests/test_limits.py")}, said
