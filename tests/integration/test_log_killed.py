"""What sequencers leave that were maltreated: killed between every two steps, fighting for the lead and killed in it,
without room in the middle of a write. The next one goes on, no checkpoint is ever signed that contradicts another, and
every committed statement is in the log once (`tests.support.log.sequencing` looks at that); all verifiers accept it.

The fast run is killed before every fifth step, from one that follows from the run's seed; each: `slow_exhaustive`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from certification.sources import Folder
from certification.tree import Tree
from rgs.core.tlog.merkle import leaf_hash
from rgs.core.tlog.note import ED25519, format_vkey, note_key
from tests.support.log.logcheck import LogCheck, logcheck
from tests.support.log.sequencing import PREFIX, SIGNER, Logged
from tests.support.seeded import turn

__all__ = ["logcheck"]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]


def maltreat(how: str, folder: Path, *more: int) -> int:
    command = [sys.executable, "-m", "tests.support.log.sequencing", how, str(folder), *map(str, more)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.fixture(scope="module", params=[5, pytest.param(1, marks=pytest.mark.slow_exhaustive)])
def killed(request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> Iterator[Path]:
    """A folder for each place to be killed at, with the log that was gone on with. In memory, where the system has a
    folder there: it is 40,000 writes that are waited for, and a kill takes nothing from the system's cache.
    """
    memory = Path("/dev/shm")  # noqa: S108 - a folder of its own in it
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        folder, stride = Path(name), request.param
        places = maltreat("killed", folder, 1 + turn(pytestconfig, stride), stride)
        assert places == len(list(folder.iterdir())) - 1 > 250 // stride - 1
        yield folder


def test_no_place_to_be_killed_at_harms_the_log(killed: Path) -> None:
    assert all((home / "log").is_dir() for home in killed.iterdir())


def test_the_auditor_accepts_what_was_gone_on_with(killed: Path) -> None:
    for home in killed.iterdir():
        for name in ("2026h1", "2026h2"):
            logged, tree = Logged(home / "log" / name), Tree()
            source = Folder(home / "log" / name)
            faults = list(tree.grow(source, list(map(leaf_hash, logged.entries))))
            assert faults + list(tree.finish(source, logged.checkpoint)) == []


def test_an_outsider_accepts_what_was_gone_on_with(killed: Path, logcheck: LogCheck) -> None:
    for home in sorted(killed.iterdir())[::7]:
        for name in ("2026h1", "2026h2"):
            vkey = format_vkey(note_key(f"{PREFIX}/{name}", ED25519, SIGNER))
            assert logcheck(home / "log" / name, vkey) == ""


def test_two_that_fight_for_the_lead_and_are_killed_in_it_make_one_log(tmp_path: Path, logcheck: LogCheck) -> None:
    assert maltreat("fought", tmp_path) > 10
    vkey = format_vkey(note_key(f"{PREFIX}/2026h1", ED25519, SIGNER))
    assert logcheck(tmp_path / "log" / "2026h1", vkey) == ""


def test_a_disk_that_is_full_in_the_middle_of_a_tile_or_a_row_costs_nothing(tmp_path: Path) -> None:
    assert maltreat("full", tmp_path) > 30
