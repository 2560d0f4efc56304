"""SIGKILL between every two steps of the sequencer: whatever it was about to do, the next one goes on, no checkpoint is
ever signed that contradicts another, and every committed statement is in the log once.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rgs.core.note import ED25519, format_vkey, note_key
from tests.logcheck import LogCheck, logcheck
from tests.sequencing import PREFIX, SIGNER

__all__ = ["logcheck"]

pytestmark = pytest.mark.timeout(0)  # hundreds of lives, each of which waits for the disk

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each place to be killed at, with the log that was gone on with."""
    folder = tmp_path_factory.mktemp("killed")
    command = [sys.executable, "-m", "tests.sequencing", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(list(folder.iterdir())) - 1 > 200
    return folder


def test_no_place_to_be_killed_at_harms_the_log(killed: Path) -> None:
    assert (killed / "1" / "log").is_dir()


def test_an_outsider_accepts_what_was_gone_on_with(killed: Path, logcheck: LogCheck) -> None:
    for home in sorted(killed.iterdir())[::7]:
        for name in ("2026h1", "2026h2"):
            vkey = format_vkey(note_key(f"{PREFIX}/{name}", ED25519, SIGNER))
            assert logcheck(home / "log" / name, vkey) == ""
