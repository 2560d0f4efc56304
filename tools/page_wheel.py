"""`make page-wheel`: the built page as a wheel of its own, with the hashes that a release publishes.

The page is built first. Into the folder go `rgs_operator_page-*.whl`, `verify.html`, and `page.sha256`, which names the
SHA-256 of each file of the page; its own hash is the page's. The same sources and lock files give the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools import wheel

PAGE: Final = Path("examples/operator/page")
NAME: Final = "rgs_operator_page"


def sums(folder: Path) -> str:
    """The SHA-256 of each file below a folder, in the order of their names, as `sha256sum -c` reads it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = (f"{hash_of(path)}  {path.relative_to(folder).as_posix()}\n" for path in files)
    return "".join(lines)


def hash_of(path: Path) -> str:
    """The SHA-256 of a file, hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def pack(root: Path, folder: Path) -> list[tuple[str, str]]:
    """Pack the built page below `root` into `folder`: hashes and names, in the order in which they are printed."""
    page = root / PAGE
    listing = page / "build/page.sha256"
    listing.parent.mkdir(exist_ok=True)
    listing.write_text(sums(page / "dist"), encoding="ascii")
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{NAME}-*.whl"):
        old.unlink()
    built = wheel.build(page, folder, NAME)
    for file in (listing, page / "dist/verify.html"):
        shutil.copyfile(file, folder / file.name)
    whole, record = wheel.hashes(built)
    return [
        (whole, built.name),
        (record, f"{built.name}: RECORD"),
        (hash_of(folder / listing.name), listing.name),
        (hash_of(folder / "verify.html"), "verify.html"),
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Build the page, pack it, and print the hashes."""
    parser = argparse.ArgumentParser(description="Build the page's wheel and print the SHA-256 of what is in it.")
    parser.add_argument("--folder", type=Path, default=wheel.ROOT / "dist", help="where to (dist)")
    folder: Path = parser.parse_args(argv).folder
    done = subprocess.run(["sh", "tools/build_page.sh"], cwd=wheel.ROOT, check=False)  # noqa: S607 - the system's shell
    if done.returncode:
        return done.returncode
    for found, name in pack(wheel.ROOT, folder):
        print(f"{found}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
