"""The software manifest: SHA-256 of the certified unit, the functional core, its rulesets and the lock (ARCHITECTURE
2.13: the statement of a start names it).

It is made before anything that it hashes is imported: files are found where the import system would find them, without
importing them. `guard_imports` then lets the interpreter run exactly those bytes (`rgs.integrity.imports`): modules of
`rng` and `rgs.core` are compiled from source with the listed hash, never taken from a bytecode cache.

Every file in those folders is listed, except `__pycache__`. A link, a device or anything else that is no plain file is
an error. `rgs.integrity.isolation` measures the interpreter, the libraries and the rest of the server.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rgs.integrity.imports import Listing, MeasuredFinder, MeasuredLoader, is_within
from rgs.integrity.manifest_verify import LOCK, UnverifiableError, walk

if TYPE_CHECKING:
    from rgs.integrity.manifest_verify import Surroundings

FORMAT: Final = "rgs/manifest/v1"
PACKAGES: Final = ("rgs.core", "rng")
"""These packages are hashed and guarded, with all files in their folders."""


class ManifestError(Exception):
    """The software cannot be measured, or differs from what was measured. Nothing may be served."""


@dataclass(frozen=True, slots=True, order=True)
class ManifestEntry:
    """One file: its logical path (`rng/drbg.py`), SHA-256 in hex, and length in bytes."""

    path: str
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The entries sorted by path, and whether the lock is among them. `sha256` is that of the canonical form `content`.

    `surroundings` is what else a server runs on, as its launcher measured it. It is no part of the content.
    """

    entries: tuple[ManifestEntry, ...]
    locked: bool
    surroundings: Surroundings | None = field(default=None, compare=False)

    @property
    def content(self) -> bytes:
        """Canonical JSON as in statements: sorted keys, no white space, ASCII, integers as decimal strings."""
        document = {
            "entries": [
                {"bytes": str(entry.bytes), "path": entry.path, "sha256": entry.sha256} for entry in self.entries
            ],
            "format": FORMAT,
            "locked": self.locked,
        }
        return json.dumps(document, ensure_ascii=True, sort_keys=True, separators=(",", ":")).encode("ascii")

    @property
    def sha256(self) -> str:
        """Hex SHA-256 of `content`; `instance_start` names it."""
        return hashlib.sha256(self.content).hexdigest()

    def verify_locked(self) -> None:
        """ManifestError unless the lock is among the entries."""
        if not self.locked:
            raise ManifestError(f"the lock {LOCK} is not part of this installation: what it runs on cannot be named")


def make_manifest() -> Manifest:
    """Hash this installation. ManifestError."""
    folders = {name.replace(".", "/"): package_folder(name) for name in PACKAGES}
    return measure(folders, find_lock(package_folder("rgs")))


def measure(folders: dict[str, Path], lock: Path | None) -> Manifest:
    """Hash the folders (logical prefix -> folder) and the lock, if there is one. ManifestError."""
    files = [(f"{prefix}/{path}", folder / path) for prefix, folder in folders.items() for path in _paths(folder)]
    if lock is not None:
        files.append((LOCK, lock))
    return Manifest(tuple(sorted(_entry(name, path) for name, path in files)), lock is not None)


def package_folder(name: str) -> Path:
    """The folder from which the import system would load this package. ManifestError unless there is exactly one."""
    spec = importlib.util.find_spec(name)
    folders = [] if spec is None or not spec.has_location else list(spec.submodule_search_locations or [])
    if len(folders) != 1:
        raise ManifestError(f"package {name} is not one folder of plain files, but {len(folders)}")
    return Path(folders[0])


def find_lock(rgs_folder: Path) -> Path | None:
    """The lock inside an installed package, or else beside the package in a checkout."""
    for path in (rgs_folder / LOCK, rgs_folder.parent / LOCK):
        if path.is_file():
            return path
    return None


def guard_imports(manifest: Manifest) -> None:
    """From here on, modules of the measured packages run from the bytes that were hashed, or not at all."""
    tops = {name.partition(".")[0]: package_folder(name.partition(".")[0]).parent for name in PACKAGES}
    files = {
        entry.path: (str(tops[top] / entry.path), entry.sha256)
        for entry in manifest.entries
        if (top := entry.path.partition("/")[0]) in tops
    }
    finder = MeasuredFinder([Listing(files)], PACKAGES)
    sys.meta_path[:] = [found for found in sys.meta_path if getattr(found, "only", None) != finder.only]
    sys.meta_path.insert(0, finder)


def verify_loaded() -> None:
    """ManifestError if a module of the measured packages was not loaded from hashed bytes."""
    for name, module in sorted(sys.modules.items()):
        if is_within(name, PACKAGES) and not isinstance(getattr(module.__spec__, "loader", None), MeasuredLoader):
            raise ManifestError(f"{name} was loaded before it was hashed: start the server with `rgs serve`")


def _paths(folder: Path) -> list[str]:
    """The relative paths of all files below `folder`, with slashes."""
    try:
        found = list(walk(folder))
    except UnverifiableError as error:
        raise ManifestError(str(error)) from None
    for _, entry in found:
        if not entry.is_file(follow_symlinks=False):
            raise ManifestError(f"{entry.path} is neither a plain file nor a folder")
    return [path for path, _ in found]


def _entry(name: str, path: Path) -> ManifestEntry:
    try:
        with path.open("rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ManifestError(f"{path} is no plain file")
            content = file.read()
    except OSError as error:
        raise ManifestError(f"{path} cannot be read: {error.strerror}") from None
    return ManifestEntry(name, hashlib.sha256(content).hexdigest(), len(content))
