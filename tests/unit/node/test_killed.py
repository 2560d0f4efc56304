"""A home is whole or absent, and a key is replaced or not, wherever the process is killed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rgs.service.roles import Role

ROOT = Path(__file__).resolve().parents[3]


def _rows(what: str, folder: Path) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tests.support.process.killing", what, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


@pytest.mark.slow
def test_a_killed_init_leaves_no_half_home(tmp_path: Path) -> None:
    rows = _rows("init", tmp_path)
    assert len(rows) > 30, "about one step a file"
    assert [row["killed"] for row in rows] == [True] * (len(rows) - 1) + [False]
    for row in rows:
        assert row["made"] is not row["there"], "the next init makes it anew, or finds it complete"
        assert row["left"] == ["home"], "and clears what the killed one left"
        assert row["allowed"] == len(Role)
    assert any(row["litter"] for row in rows), "it was killed in the middle"
    assert rows[-1]["there"]


@pytest.mark.parametrize("which", ["node", "root"])
def test_a_killed_change_of_keys_leaves_a_home_that_signs(tmp_path: Path, which: str) -> None:
    rows = _rows(which, tmp_path)
    assert len(rows) >= 5
    for row in rows:
        assert row["counts"] == row["settled"] == row["named"]
        assert row["left"] == ["keys.json", "log.key", "node.key", "root.fingerprint", "root.key"]
    order = [row["counts"] for row in rows]
    assert order == sorted(order, reverse=True), "once the bundle names the new key, it counts"
    assert order.count("old") >= 2
    assert order.count("new") >= 2
