"""The groups of targets: every module of the rooms is in one of them, and in no second one."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tools.mutants import ROOMS, Group, matched, read_config
from tools.mutations import mutants_of

ROOT = Path(__file__).parents[2]
GROUPS, _ = read_config(ROOT)
ROOMS_OF = [group for group in GROUPS if group.part == ROOMS]


def test_a_pattern_behind_an_exclamation_mark_leaves_out(tmp_path: Path) -> None:
    for name in ("a.py", "b.py", "bc.py"):
        (tmp_path / name).touch()
    assert matched(tmp_path, ["b.py", "*.py"]) == ["b.py", "a.py", "bc.py"]
    assert matched(tmp_path, ["*.py", "!b*.py"]) == ["a.py"]
    assert matched(tmp_path, ["!b.py", "*.py"]) == ["a.py", "bc.py"], "wherever it stands"


def test_every_module_of_the_rooms_is_a_target_once() -> None:
    """With all folders below, but for what speaks to PostgreSQL and files without a line."""
    rooms = ("rgs/core/replay", "rgs/core/reconcile", "rgs/ports", "rgs/adapters", "rgs/service", "rgs/store")
    found = {path.relative_to(ROOT).as_posix() for room in rooms for path in (ROOT / room).rglob("*.py")}
    there = {path for path in found if "/postgres/" not in path and mutants_of(path, (ROOT / path).read_bytes())}
    counted = Counter(path for group in ROOMS_OF for path in matched(ROOT, group.targets))
    assert set(counted.values()) == {1}
    assert there - set(counted) == set()
    assert {path.rpartition("/")[0] for path in there} >= set(rooms[:3]) | {"rgs/adapters/grpc", "rgs/service/play"}


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_every_pattern_of_a_group_names_a_file(group: Group) -> None:
    for pattern in (*group.targets, *group.tests, *group.inputs):
        assert any(ROOT.glob(pattern.removeprefix("!"))), pattern


FORKED = """
import os
from tests.support.api.harness import entropy
entropy().read(1)
child = os.fork()
if not child:
    entropy().read(1)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_what_tests_share_serves_the_fork_of_a_mutant_too() -> None:
    """A source of entropy refuses another process; a test that had it from before the fork would judge nothing."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys{FORKED}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
