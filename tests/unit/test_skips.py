"""Where `.ci/run` has installed what a test needs, the test is not skipped: it fails."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.skips import INSTALLED, NEEDED_FOR, SETTING

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = """
import pytest

@pytest.mark.skipif(True, reason="no Chromium on this machine: install the package chromium")
def test_by_its_mark(): ...

@pytest.fixture
def page():
    pytest.skip("the page is not built: run `make page`")

def test_by_its_fixture(page): ...

def test_by_itself():
    pytest.skip("dieharder is not on PATH")

@pytest.mark.xfail(reason="no Chromium", strict=True)
def test_that_fails_as_is_known():
    raise AssertionError
"""


@pytest.mark.parametrize(
    ("installed", "closing"),
    [
        ("", "3 skipped, 1 xfailed"),
        ("softhsm2", "3 skipped, 1 xfailed"),
        ("chromium", "1 skipped, 1 xfailed, 2 errors"),
        ("nodejs chromium dieharder", "1 failed, 1 xfailed, 2 errors"),
    ],
)
def test_a_skip_fails_where_its_package_is_installed(tmp_path: Path, installed: str, closing: str) -> None:
    (tmp_path / "test_optional.py").write_text(SKIPPED, "ascii")
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", str(tmp_path)]
    environment = {**os.environ, INSTALLED: installed, "PYTHONPATH": str(ROOT)}
    environment.pop(SETTING, None)
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=100
    )
    assert closing in done.stdout.splitlines()[-1], done.stdout
    assert done.returncode == (1 if "error" in closing else 0)
    said = "This test was skipped although chromium is installed. The reason: no Chromium on this machine"
    assert (said in done.stdout) == ("chromium" in installed)


def test_every_package_that_is_installed_is_one_of_the_list() -> None:
    run = (ROOT / ".ci/run").read_text("utf-8")
    named = {name for line in re.findall(r"\binstall ([a-z][a-z0-9 -]+)", run) for name in line.split() if name != "-y"}
    assert named - {"fonts-dejavu-core", "npm"} == set(NEEDED_FOR)


@pytest.mark.parametrize("package", NEEDED_FOR)
def test_every_reason_is_one_that_a_test_gives(package: str) -> None:
    said = "\n".join(
        re.sub(r"\{(name|program\.executable)\}", "dieharder rngtest", path.read_text("utf-8"))
        for path in (ROOT / "tests").rglob("*.py")
        if path.name not in ("skips.py", Path(__file__).name)
    )
    for way in NEEDED_FOR[package].split("|"):
        assert re.search(way, said), way
