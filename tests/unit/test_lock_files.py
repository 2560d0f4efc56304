"""The lock files of npm name packages by hash, and no registry's host: they hold for whoever installs elsewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

SDK = Path(__file__).resolve().parents[2] / "sdk"
LOCKS = sorted(path for path in SDK.glob("**/package-lock.json") if "node_modules" not in path.parts)
SETTING = "omit-lockfile-registry-resolved=true"


def test_every_package_has_a_lock_file() -> None:
    packages = {path.parent for path in SDK.glob("*/*/package.json")}
    assert packages
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
