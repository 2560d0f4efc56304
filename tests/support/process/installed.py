"""Installations to plant things in: a virtual environment of links to the locked packages, and our files as a checkout
beside it or out of a wheel in it. Nothing that is planted reaches the environment that the tests run in.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from rgs.integrity.isolation import FLAGS, HOPELESS
from rgs.integrity.manifest_verify import CACHE, LOCK, PACKAGES, canonical_name, parse_lock, read_record
from tools.wheel import build

ROOT = Path(__file__).resolve().parents[3]
SITE = Path(next(entry for entry in sys.path if Path(entry).name == "site-packages"))
VERSION = f"python{sys.version_info[0]}.{sys.version_info[1]}"
QUIET = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "RGS_", "COVERAGE"))}


@dataclass(frozen=True)
class Installation:
    """`root` is where `rng` and `rgs` lie, `site` the folder of packages of the environment `venv`."""

    root: Path
    venv: Path

    @property
    def site(self) -> Path:
        return self.venv / "lib" / VERSION / "site-packages"

    @property
    def python(self) -> str:
        return str(self.venv / "bin" / "python")

    def command(self, *arguments: str) -> list[str]:
        """The launcher, isolated from the first instruction on."""
        return [self.python, *FLAGS, str(self.root / "rgs/integrity/launcher.py"), *arguments]

    def launch(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.run(self.command(*arguments), None, **environment)

    def run(self, command: list[str], cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        folder = self.venv if cwd is None else cwd
        return subprocess.run(
            command, cwd=folder, env={**QUIET, **environment}, capture_output=True, text=True, check=False, timeout=60
        )

    def refusal(self, **environment: str) -> str:
        """What the launcher says against serving; an error of the home is that it says nothing against it."""
        done = self.launch("serve", "--home", "none", **environment)
        assert (done.returncode, done.stdout) == (HOPELESS, ""), done
        assert done.stderr.startswith("rgs: "), done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
        return "" if "none is not the home of a node" in done.stderr else done.stderr.removeprefix("rgs: ").strip()


def replace(path: Path, content: bytes) -> None:
    """Another file in the place of what may be a link."""
    path.unlink()
    path.write_bytes(content)


def checkout(folder: Path) -> Installation:
    """Our files as a developer has them, and an environment beside them."""
    root = folder / "checkout"
    copy_sources(root)
    return Installation(root, _environment(folder / "venv"))


def installed(folder: Path) -> Installation:
    """Our wheel in an environment."""
    venv = _environment(folder / "venv")
    (folder / "wheel").mkdir()
    copy_sources(folder / "sources")
    with zipfile.ZipFile(build(folder / "sources", folder / "wheel")) as wheel:
        wheel.extractall(Installation(venv, venv).site)
    return Installation(Installation(venv, venv).site, venv)


def copy_sources(root: Path) -> Path:
    """All that a wheel is made of."""
    for top in PACKAGES:
        shutil.copytree(ROOT / top, root / top, ignore=shutil.ignore_patterns(CACHE))
    (root / LOCK).parent.mkdir()
    for name in (LOCK, "pyproject.toml", "LICENSE"):
        shutil.copyfile(ROOT / name, root / name)
    return root


def _environment(venv: Path) -> Path:
    site = venv / "lib" / VERSION / "site-packages"
    site.mkdir(parents=True)
    (venv / "bin").mkdir()
    (venv / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    home = Path(os.path.realpath(sys.executable)).parent
    (venv / "pyvenv.cfg").write_text(f"home = {home}\ninclude-system-site-packages = false\n")
    locked = parse_lock((ROOT / LOCK).read_text("utf-8"))
    for info in SITE.glob("*.dist-info"):
        if canonical_name(info.name.partition("-")[0]) in locked:
            for path in read_record(info):
                if not path.startswith("../") and not path.endswith(".pyc") and (SITE / path).is_file():
                    (site / path).parent.mkdir(parents=True, exist_ok=True)
                    (site / path).symlink_to(SITE / path)
    return venv
