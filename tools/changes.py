"""`make changes`, part of `make check`: lists by class the files that changed since the software was certified.

`certification/certified.json` has the hashes of all files of a certified class (`certification.manifest`, CLASSES) at
the last release. `make certified` writes it again, only at a release. A change of such a file is MAJOR: generator,
games or returns must be certified again. CHANGELOG.md then needs an entry of that class under Unreleased.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from certification.manifest import CLASSES, class_of
from rgs.integrity.manifest_verify import Finding, digest, own_files

ROOT: Final = Path(__file__).resolve().parents[1]
CERTIFIED: Final = Path("certification/certified.json")
CHANGELOG: Final = Path("CHANGELOG.md")
_UNRELEASED: Final = re.compile(r"^## \[Unreleased\]\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_CLASS: Final = re.compile(r"\[(\w+)\]$", re.MULTILINE)


def hashes(root: Path) -> dict[str, dict[str, str]]:
    """Class -> path -> SHA-256 of the files now."""
    found: dict[str, dict[str, str]] = {name: {} for name in CLASSES}
    for path, file in own_files(root)[0].items():
        if class_of(path) in found:
            found[class_of(path)][path] = digest(file)
    return found


def changes(
    certified: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]
) -> dict[str, list[Finding]]:
    """Class -> files that are `changed`, `new` or `gone`. A class without changes is left out."""
    reported: dict[str, list[Finding]] = {}
    for name in CLASSES:
        before, after = certified.get(name, {}), now[name]
        for path in sorted(before.keys() | after.keys()):
            if before.get(path) != after.get(path):
                what = "new" if path not in before else "gone" if path not in after else "changed"
                reported.setdefault(name, []).append(Finding(what, path))
    return reported


def entries(changelog: str) -> Counter[str]:
    """Class -> number of its entries under Unreleased."""
    found = _UNRELEASED.search(changelog)
    return Counter(_CLASS.findall(found[1]) if found else ())


def check(root: Path) -> tuple[list[str], bool]:
    """The lines to show, and whether the change log has an entry for every class that has changed."""
    certified = json.loads((root / CERTIFIED).read_bytes())
    found = changes(certified["files"], hashes(root))
    then, now = certified["entries"], entries((root / CHANGELOG).read_text("utf-8"))
    if sum(now.values()) < sum(then.values()):  # a release has emptied the section since then
        then = {}
    lines = [f"MAJOR [{name}] {finding}" for name, findings in found.items() for finding in findings]
    silent = [name for name in found if now[name] <= then.get(name, 0)]
    lines += [
        f"files of class [{name}] have changed since {certified['version']} was certified ({CERTIFIED}): "
        f"{CHANGELOG} needs an entry of that class under Unreleased"
        for name in silent
    ]
    if not found:
        lines.append(f"no certified file has changed since {certified['version']}")
    return lines, not silent


def certify(root: Path) -> None:
    """Write the present hashes as the certified ones."""
    version = re.search(r'^__version__ = "(.+)"', (root / "rgs/__init__.py").read_text("utf-8"), re.MULTILINE)
    reported = entries((root / CHANGELOG).read_text("utf-8"))
    content = {"entries": reported, "files": hashes(root), "version": version[1] if version else ""}
    (root / CERTIFIED).write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", "utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    """Compare or write. Returns the exit status."""
    parser = argparse.ArgumentParser(description="List the certified files that have changed since the last release.")
    parser.add_argument("--certify", action="store_true", help="write the present hashes; only at a release")
    parser.add_argument("--root", type=Path, default=ROOT)
    options = parser.parse_args(argv)
    if options.certify:
        certify(options.root)
        return 0
    lines, covered = check(options.root)
    print("\n".join(lines))
    return 0 if covered else 1


if __name__ == "__main__":
    sys.exit(main())
