"""One small demo for all who look at what a demo leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.process.served import rgs


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The evidence of a small demo that went well; tests only read it."""
    folder = tmp_path_factory.mktemp("demo") / "evidence"
    done = rgs("demo", "--home", str(folder), "--rounds", "20", "--sessions", "4", "--players", "5")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    (folder.parent / "said.txt").write_text(done.stdout, "utf-8")
    return folder
