"""Without the libraries of the extra `certify`: advice in one line where they are needed, and no need elsewhere."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from certification.__main__ import COMMANDS, EXTRA

ROOT = Path(__file__).resolve().parents[3]
WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(sys.argv[1].split(","), None))
from certification.__main__ import main
sys.exit(main(sys.argv[2:]))
"""
NEEDING = ("collusion", "dossier", "monitor", "rng", "rtp", "simulate", "sp800-22", "strategy")


def certify(missing: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, in which these libraries cannot be imported."""
    command = [sys.executable, "-c", WITHOUT, missing, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)


def test_the_extra_is_what_the_project_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(project["optional-dependencies"]["certify"]) == EXTRA


@pytest.mark.parametrize("command", NEEDING)
def test_what_needs_the_extra_says_so_in_one_line(command: str) -> None:
    done = certify(",".join(sorted(EXTRA)), command, "--help")
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"certify {command} needs ")
    assert "make setup" in line
    assert "WHEEL[certify]" in line


def test_a_library_that_only_the_work_needs_is_asked_for_in_one_line_too() -> None:
    """numba is there or not, whatever the command has imported before it looks."""
    done = certify("numba", "rtp", "casino-holdem")
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("certify rtp needs numba, which is not installed")


@pytest.mark.slow
@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - set(NEEDING)))
def test_everything_else_does_without(command: str) -> None:
    done = certify(",".join(sorted(EXTRA)), command, "--help")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_module_of_our_own_that_is_missing_is_no_matter_of_the_extra() -> None:
    done = certify("rgs.core.replay", "replay", "--help")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
