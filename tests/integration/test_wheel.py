"""The wheel: the same bytes from two folders, times and masks, and in it all that a manifest lists."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from rgs.integrity.manifest_verify import LOCK, PROTOS, own_files
from tests.support.process.installed import ROOT, copy_sources
from tools.wheel import build, hashes


def test_two_builds_are_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = []
    for number, name in enumerate(("one", "another/deeper")):
        sources = copy_sources(tmp_path / name)
        for path in sources.rglob("*"):
            os.utime(path, (1_000_000_000 + number * 86_400, 1_100_000_000 + number * 86_400))
            if path.is_file():
                path.chmod((0o644, 0o600)[number])
        if number:
            (sources / "rng" / "__pycache__").mkdir()
            (sources / "rng" / "__pycache__" / "drbg.cpython-311.pyc").write_bytes(b"x")
            monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
            monkeypatch.setenv("TZ", "Asia/Tokyo")
        folder = tmp_path / f"out{number}"
        folder.mkdir()
        old = os.umask((0o022, 0o077)[number])
        try:
            built.append(build(sources, folder))
        finally:
            os.umask(old)
    assert hashes(built[0]) == hashes(built[1])
    assert built[0].read_bytes() == built[1].read_bytes()
    (tmp_path / "one" / "rng" / "drbg.py").write_bytes(b"# another\n")
    assert hashes(build(tmp_path / "one", tmp_path / "out0"))[0] != hashes(built[1])[0]


def test_a_wheel_holds_what_a_manifest_lists(tmp_path: Path) -> None:
    with zipfile.ZipFile(build(copy_sources(tmp_path / "sources"), tmp_path)) as wheel:
        wheel.extractall(tmp_path / "site")
    unpacked, findings = own_files(tmp_path / "site")
    here, _ = own_files(ROOT)
    assert findings == []
    assert unpacked[LOCK] == tmp_path / "site" / "rgs" / LOCK
    assert sorted(unpacked) == sorted(path for path in here if not path.startswith(f"{PROTOS}/"))


def test_what_cannot_be_built_is_said(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    with pytest.raises(SystemExit, match="cannot build the wheel"):
        build(tmp_path, tmp_path)
