"""Some tests are run first: what they kill is killed, and what they do not kill has no verdict yet."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.unit.test_mutants import WEAK, rooms_run

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
