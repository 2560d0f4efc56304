"""The built page as a wheel of its own: the same sources give the same bytes elsewhere, and the hashes are true."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Final

import pytest

from tools.page_wheel import PAGE, hash_of, pack, sums

ROOT: Final = Path(__file__).parents[2]
NODE: Final = shutil.which("node")
BUILT: Final = ("node_modules", "dist", "build")
BUILD_S: Final = 300

pytestmark = pytest.mark.timeout(2 * BUILD_S)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two trees with the page's sources, each built by itself, in folders of other names."""
    if NODE is None or not (ROOT / PAGE / "node_modules").is_dir():
        pytest.skip("no Node, or the page was never built: run `make page`")
    found = []
    for name in ("one", "another folder/deeper"):
        root = tmp_path_factory.mktemp("tree") / name
        shutil.copytree(ROOT / PAGE, root / PAGE, ignore=shutil.ignore_patterns(*BUILT))
        shutil.copytree(ROOT / "sdk/typescript/verifier/src", root / "sdk/typescript/verifier/src")
        shutil.copytree(
            ROOT / "rgs", root / "rgs", ignore=lambda _, names: [one for one in names if one != "__init__.py"]
        )
        shutil.copytree(ROOT / PAGE / "node_modules", root / PAGE / "node_modules", symlinks=True)
        for config in ("vite.config.ts", "vite.verify.config.ts", "vite.office.config.ts"):
            command = [NODE, "node_modules/vite/bin/vite.js", "build", "--logLevel", "warn", "--config", config]
            done = subprocess.run(
                command, cwd=root / PAGE, capture_output=True, text=True, check=False, timeout=BUILD_S
            )
            assert done.returncode == 0, done.stdout + done.stderr
        found.append(root)
    return found


def test_two_builds_give_the_same_bytes(built: list[Path]) -> None:
    one, other = (sums(root / PAGE / "dist") for root in built)
    assert one == other
    assert "verify.html" in one
    assert "index.html" in one
    assert "office.js" in one


def test_two_wheels_are_one_and_its_hashes_are_true(built: list[Path]) -> None:
    made = []
    for root in built:
        folder = root / "wheels"
        made.append(pack(root, folder))
        said = {name: digest for digest, name in made[-1]}
        [wheel] = folder.glob("*.whl")
        assert said[wheel.name] == hash_of(wheel)
        assert said["verify.html"] == hash_of(folder / "verify.html") == hash_of(root / PAGE / "dist/verify.html")
        assert said["page.sha256"] == hash_of(folder / "page.sha256")
        with zipfile.ZipFile(wheel) as archive:
            listing = archive.read("rgs_operator_page/page.sha256").decode()
            assert listing == (folder / "page.sha256").read_text("ascii")
            inside = {
                name.removeprefix("rgs_operator_page/dist/"): name for name in archive.namelist() if "/dist/" in name
            }
            for line in listing.splitlines():
                digest, _, name = line.partition("  ")
                assert hashlib.sha256(archive.read(inside.pop(name))).hexdigest() == digest
        assert inside == {}, "every file is listed"
    assert made[0] == made[1]
