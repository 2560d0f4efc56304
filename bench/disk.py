"""The disk: files put out of its cache; and its yardstick, how long a write of one page and its fdatasync take in the
folder of the store.

It overwrites pages of a file that has its full length, as SQLite's log does after a checkpoint: only the page itself
has to reach the disk. Whether it has reached the disk by then is not checked.
"""

from __future__ import annotations

import os
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

PAGE: Final = b"\x5a" * 4096
PAGES: Final = 64


def fdatasync_s(folder: Path, count: int = 200) -> float:
    """Median seconds of `count` writes of 4 KiB, each with its fdatasync, to a file of their own."""
    path = folder / "probe"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, PAGE * PAGES)
        os.fsync(descriptor)
        times = []
        for nth in range(count):
            begin = perf_counter()
            os.pwrite(descriptor, PAGE, nth % PAGES * len(PAGE))
            os.fdatasync(descriptor)
            times.append(perf_counter() - begin)
        return median(times)
    finally:
        os.close(descriptor)
        path.unlink()


def sync_and_forget(path: Path) -> None:
    """Nothing of the file stays in the system's cache: what a server reads, it reads from the disk."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
