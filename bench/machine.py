"""The machine and the software that a run stands on: what a reader needs to place its figures.

Tells kinds and versions only: no host name, no address, no path.
"""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Final

LIBRARIES: Final = ("grpcio", "protobuf", "uvloop", "cryptography")


def describe(folder: Path) -> list[tuple[str, str]]:
    """(what, value) of processor, system, versions, and the file system that holds `folder`."""
    load = " ".join(f"{value:.2f}" for value in os.getloadavg())
    return [
        ("processor", f"{_processor()}, {len(os.sched_getaffinity(0))} CPUs for this process"),
        ("memory", f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB"),
        ("system", f"{platform.system()} {platform.release()}"),
        ("Python", f"{platform.python_implementation()} {platform.python_version()}"),
        ("libraries", ", ".join(f"{name} {version(name)}" for name in LIBRARIES)),
        ("SQLite", _sqlite_version()),
        ("store's file system", file_system_of(folder, Path("/proc/mounts").read_text(encoding="utf-8"))),
        ("load before the run", f"{load} (1, 5, 15 minutes)"),
    ]


def file_system_of(folder: Path, mounts: str) -> str:
    """The type of the file system that holds `folder`, by the longest mount point above it in /proc/mounts."""
    best, kind = "", "unknown"
    for line in mounts.splitlines():
        point, mounted = line.split(" ")[1:3]
        inside = folder.absolute().is_relative_to(point)
        if inside and len(point) >= len(best):
            best, kind = point, mounted
    return f"{kind} (in memory: fdatasync costs nothing here)" if kind in {"tmpfs", "ramfs"} else kind


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def _sqlite_version() -> str:
    import sqlite3  # noqa: PLC0415 - for its version alone

    return sqlite3.sqlite_version
