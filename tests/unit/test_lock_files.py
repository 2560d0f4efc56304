"""The lock files hold for whoever installs elsewhere and later.

Those of npm name packages by hash, and no registry's host. Those of pip pin a package together with the extras that
other packages ask for: pip before 23.3 takes `coverage==1` for no pin of `coverage[toml]`, looks for the newest
release, and stops because that one has no hash here. Such a lock works only until the next release of the package.
"""

from __future__ import annotations

import json
import re
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("sdk", "examples")
LOCKS = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).glob("**/package-lock.json")
    if "node_modules" not in path.parts
)
SETTING = "omit-lockfile-registry-resolved=true"


def test_every_package_has_a_lock_file() -> None:
    found = [path for folder in FOLDERS for path in (ROOT / folder).glob("**/package.json")]
    packages = {path.parent for path in found if "node_modules" not in path.parts}
    assert {path.name for path in packages} >= {"client", "verifier", "page"}
    assert packages == {path.parent for path in LOCKS}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.parent.name)
def test_a_lock_file_has_hashes_and_no_host(lock: Path) -> None:
    packages = json.loads(lock.read_text("utf-8"))["packages"]
    assert packages
    for name, row in packages.items():
        assert "resolved" not in row, name
        if name:
            assert row["integrity"].startswith("sha512-"), name
    assert not re.search(r"https?://[^/\"]*(registry|npm)", lock.read_text("utf-8"))  # others are of funding


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.parent.name)
def test_npm_keeps_it_so(lock: Path) -> None:
    assert SETTING in lock.with_name(".npmrc").read_text("ascii").splitlines()


def pinned(text: str) -> dict[str, set[str]]:
    """Each package of a lock file of pip with the extras that its pin names."""
    found = re.findall(r"^([a-z0-9-]+)(?:\[([a-z0-9,-]+)\])?==", text, re.MULTILINE)
    return {name: set(extras.split(",")) - {""} for name, extras in found}


def requested_extras(names: set[str]) -> dict[str, set[str]]:
    """Each package that an installed one of `names` needs with an extra, without further condition."""
    requested: dict[str, set[str]] = {}
    for name in names:
        try:
            requirements = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # of another platform
            continue
        for line in requirements:
            if (found := re.match(r"([\w.-]+)\[([\w,-]+)\]", line)) and "extra ==" not in line:
                requested.setdefault(found[1].lower(), set()).update(found[2].split(","))
    return requested


def test_a_pin_names_the_extras_that_are_asked_for() -> None:
    pins = pinned((ROOT / "requirements/dev.txt").read_text("utf-8"))
    requested = requested_extras(set(pins))
    assert requested["coverage"] == {"toml"}  # by pytest-cov: what this test is about is there
    for name, extras in requested.items():
        assert extras <= pins[name], name
