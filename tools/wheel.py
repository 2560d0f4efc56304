"""`make wheel`: builds the wheel and prints its SHA-256. The same files always give the same bytes.

The build uses the locked back end. All times in the archive are one constant, whatever the environment says. Order and
modes are hatchling's. The second hash is that of the RECORD inside, which lists every file. It stays the same even if
another zlib compresses differently.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
EPOCH: Final = "1577836800"
"""2020-01-01, the time of every file in a wheel."""


def build(source: Path, folder: Path, name: str = "rgs") -> Path:
    """The wheel of the project in `source`, written into `folder`. `name`: what the file's name begins with, to `-`."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder.resolve())]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"cannot build the wheel:\n{done.stdout}{done.stderr}")
    (wheel,) = folder.glob(f"{name}-*.whl")
    return wheel


def hashes(wheel: Path) -> tuple[str, str]:
    """SHA-256 of the file, and of the RECORD in it."""
    with zipfile.ZipFile(wheel) as archive:
        (record,) = (name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
        content = archive.read(record)
    return hashlib.sha256(wheel.read_bytes()).hexdigest(), hashlib.sha256(content).hexdigest()


def main(argv: Sequence[str] | None = None) -> int:
    """Build into a folder, and print the hashes."""
    parser = argparse.ArgumentParser(description="Build the wheel and print its SHA-256.")
    parser.add_argument("--folder", type=Path, default=ROOT / "dist", help="where to (dist)")
    folder: Path = parser.parse_args(argv).folder
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("rgs-*.whl"):
        old.unlink()
    wheel = build(ROOT, folder)
    whole, record = hashes(wheel)
    print(f"{whole}  {wheel.name}\n{record}  {wheel.name}: RECORD")
    return 0


if __name__ == "__main__":
    sys.exit(main())
