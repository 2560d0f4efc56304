"""Who may read and write the files of a home, and whether the disks under it last."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rgs.node.config import CONFIG_FILE
from rgs.node.disks import free_bytes, nearest, written
from rgs.node.doctor.findings import Finding, Home, fine, found

PERMISSIONS: Final = "permissions"
DISK: Final = "disk"
_OTHERS_READ: Final = 0o077
_OTHERS_WRITE: Final = 0o022
_GROUP_WRITE: Final = 0o020
GIB: Final = 1 << 30
FULL_BYTES: Final = GIB
"""Less room than this is an error."""
LOW_BYTES: Final = 10 * GIB
"""Less room than this is a warning."""
NOT_DURABLE: Final = {
    **dict.fromkeys(("tmpfs", "ramfs", "devtmpfs"), "in memory"),
    "overlay": "in a container's own layer, which goes with the container",
}
"""File systems on which a commit does not last."""
SHARED: Final = dict.fromkeys(("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs"), "on a network file system")
"""File systems on which the lock and the WAL of a store file do not hold. The log may lie there (docs/log.md)."""


def check_permissions(home: Home) -> Iterator[Finding]:
    """Modes and owners of secret files and of all folders."""
    before = 0
    for finding in (*_check_files(home), *_check_folders(home)):
        before += 1
        yield finding
    if not before:
        yield fine(PERMISSIONS, f"{len(secret_files(home))} secret files are readable by their owner only")


def secret_files(home: Home) -> list[Path]:
    """Every file of the home that only its owner may read."""
    config = home.config
    files = [*config.keys.glob("*.key"), *config.tls.rglob("*.key"), config.kek]
    if isinstance(config.store, Path):
        files.append(config.store)
    else:
        files.append(config.home / CONFIG_FILE)  # the URL may hold a password
    return sorted(path for path in set(files) if path.is_file())


def _check_files(home: Home) -> Iterator[Finding]:
    owner = home.config.home.stat().st_uid
    for path in secret_files(home):
        status = path.stat()
        if status.st_mode & _OTHERS_READ:
            mode = f"{stat.S_IMODE(status.st_mode):04o}"
            yield found(PERMISSIONS, "SECRET_OPEN", f"others may read {home.within(path)}", value=mode, limit="0600")
        if status.st_uid != owner:
            yield found(
                PERMISSIONS,
                "OWNER_DIFFERS",
                f"{home.within(path)} belongs to another user than the home",
                value=status.st_uid,
                limit=owner,
            )


def _folders(home: Home) -> list[Path]:
    config = home.config
    store = [config.store.parent] if isinstance(config.store, Path) else []
    named = [config.home, config.keys, config.kek.parent, config.tls, config.translog, config.log.parent, *store]
    return sorted({path for path in named if path.is_dir()})


def _check_folders(home: Home) -> Iterator[Finding]:
    config = home.config
    for folder in _folders(home):
        mode = stat.S_IMODE(folder.stat().st_mode)
        if folder == config.translog and mode & _OTHERS_WRITE == _GROUP_WRITE:
            what = f"the group {folder.stat().st_gid} may write to {folder}"
            yield found(PERMISSIONS, "LOG_FOLDER_OF_GROUP", what, value=f"{mode:04o}", limit="no write for the group")
        elif mode & _OTHERS_WRITE:
            yield found(
                PERMISSIONS,
                "FOLDER_OPEN",
                f"others may write to {folder}",
                value=f"{mode:04o}",
                limit="no write for others",
            )
    used = [config.home, config.translog, config.log.parent]
    if isinstance(config.store, Path):
        used.append(config.store.parent)
    for folder in sorted({nearest(path) for path in used}):
        if not os.access(folder, os.W_OK | os.X_OK):
            yield found(PERMISSIONS, "NOT_WRITABLE", f"this user cannot write to {folder}", value=f"uid {os.getuid()}")


# --- disks ----------------------------------------------------------------------------------------------------------


def check_disks(home: Home) -> Iterator[Finding]:
    """Room and kind of the file systems that the server writes to."""
    before = 0
    for name, folder in written(home.config).items():
        for finding in _check_disk(name, folder, is_lasting=name in {"translog", "store"}):
            before += 1
            yield finding
    if not before:
        least = min(free_bytes(home.config).values())
        yield fine(DISK, f"{least / GIB:.1f} GiB are free, or more")


def _check_disk(name: str, folder: Path, *, is_lasting: bool) -> Iterator[Finding]:
    free = shutil.disk_usage(folder).free
    if free < FULL_BYTES:
        yield found(DISK, "DISK_FULL", f"{name}: {folder} has no room", value=_mib(free), limit=_mib(FULL_BYTES))
    elif free < LOW_BYTES:
        yield found(DISK, "DISK_LOW", f"{name}: {folder} has little room", value=_mib(free), limit=_mib(LOW_BYTES))
    kind = file_system(folder)
    wrong = {**NOT_DURABLE, **(SHARED if name == "store" else {})}
    if is_lasting and kind in wrong:
        what = f"{name}: {folder} lies {wrong[kind]}"
        yield found(DISK, "DISK_NOT_DURABLE", what, value=kind, limit="a local disk")


def _mib(count: int) -> str:
    return f"{count // (1 << 20)} MiB"


def file_system(folder: Path) -> str:
    """The kind of the file system that holds a folder (proc(5), /proc/self/mountinfo); empty where it is not known."""
    device = folder.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = Path("/proc/self/mountinfo").read_text("utf-8").splitlines()
    except OSError:
        return ""
    for line in lines:
        fields, _, rest = line.partition(" - ")
        if fields.split()[2] == wanted:
            return rest.split()[0]
    return ""
