"""The folders that a server writes to, and the room on their disks."""

from __future__ import annotations

import shutil
from pathlib import Path

from rgs.node.config import Config


def written(config: Config) -> dict[str, Path]:
    """Name -> the folder, or the nearest one above it that exists. A store that is a file has one, too."""
    folders = {"translog": config.translog, "log": config.log.parent, "reconciliation": config.reconciliation}
    if isinstance(config.store, Path):
        folders["store"] = config.store.parent
    return {name: nearest(path) for name, path in folders.items()}


def nearest(path: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next(one for one in (path, *path.parents) if one.is_dir())


def free_bytes(config: Config) -> dict[str, int]:
    """Name of a folder -> the room that is left for the user that serves."""
    return {name: shutil.disk_usage(folder).free for name, folder in written(config).items()}
