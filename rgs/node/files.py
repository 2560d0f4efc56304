"""Files of a home directory: written whole or not at all, with secrets readable by their owner only."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rgs.core.errors import FormatError, InvalidFieldError, RgsError, UnavailableError

SECRET_MODE: Final = 0o600
PUBLIC_MODE: Final = 0o644
FOLDER_MODE: Final = 0o700
READ_MAX: Final = 64 * 1024 * 1024
_UNFINISHED: Final = ".unfinished"
_OTHERS: Final = 0o077


class FileRefusedError(RgsError, reason="FILE_REFUSED"):
    """A file is missing, exists already, or is not safe to use."""


def write_whole(path: Path, content: bytes, mode: int) -> None:
    """Write the file durably and atomically: a reader sees the old file or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}{_UNFINISHED}")
    temporary.unlink(missing_ok=True)
    try:
        write_new(temporary, content, mode)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def remove_unfinished(folder: Path) -> None:
    """Remove what killed calls of `write_whole` left in a folder. The caller holds the folder's lock."""
    for path in folder.glob(f".*{_UNFINISHED}"):
        path.unlink()


def write_new(path: Path, content: bytes, mode: int) -> None:
    """Write a new file with `mode` from its first moment, whatever the umask. FileRefusedError if it exists."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except FileExistsError:
        raise FileRefusedError(f"{path} exists already and is not overwritten", path=path) from None
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def make_folder(path: Path) -> None:
    """Make one folder for its owner only, whatever the umask."""
    path.mkdir(mode=FOLDER_MODE)
    path.chmod(FOLDER_MODE)


def sync_folder(path: Path) -> None:
    """Make creations, renames and removals in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Make a folder durable with everything in it."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        elif path.is_dir():
            sync_folder(path)
    sync_folder(folder)


def read_whole(path: Path, what: str, *, secret: bool = False) -> bytes:
    """The bytes of a file; `what` names it in errors.

    FileRefusedError if it is missing, not a regular file, longer than READ_MAX, or a secret that others may read.
    """
    try:
        # O_NONBLOCK, because opening a pipe would wait.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise FileRefusedError(f"{what} {path} is not a file", path=path)
            if secret and status.st_mode & _OTHERS:
                raise FileRefusedError(
                    f"{what} {path} has mode {stat.S_IMODE(status.st_mode):04o}: others may read or write it",
                    path=path,
                    limit=f"{SECRET_MODE:04o}",
                    value=f"{stat.S_IMODE(status.st_mode):04o}",
                )
            content = file.read(READ_MAX + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise FileRefusedError(f"there is no {what} at {path}", path=path) from None
    except IsADirectoryError:
        raise FileRefusedError(f"{what} {path} is not a file", path=path) from None
    if len(content) > READ_MAX:
        raise FileRefusedError(f"{what} {path} is longer than {READ_MAX} bytes", path=path, limit=READ_MAX)
    return content


@contextlib.contextmanager
def alone_in(folder: Path, what: str) -> Iterator[None]:
    """Hold a folder's lock. UnavailableError if another process holds it; `what` names the work in the error."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UnavailableError(f"another process is at work in {folder} ({what}): try again", path=folder) from None
        yield
    finally:
        os.close(descriptor)


def check_fingerprint(text: str, field: str = "fingerprint") -> str:
    """A fingerprint as 64 lowercase hex digits. Input with colons or capital letters is accepted. InvalidFieldError."""
    plain = text.replace(":", "").lower()
    if len(plain) != 64 or set(plain) - set("0123456789abcdef"):
        raise InvalidFieldError(f"{field} must be 64 hex digits", field=field, limit=64, value=text[:100])
    return plain


def decode_ascii(content: bytes, what: str) -> str:
    """ASCII text. FormatError for other bytes."""
    try:
        return content.decode("ascii")
    except UnicodeDecodeError:
        raise FormatError(f"{what} is not ASCII text") from None
