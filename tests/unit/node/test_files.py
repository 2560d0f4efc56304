"""Files appear whole, with their mode from the first moment, and are read with care."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from rgs.core.errors import InvalidFieldError, UnavailableError
from rgs.node.files import (
    FileRefusedError,
    alone_in,
    check_fingerprint,
    make_folder,
    read_whole,
    write_new,
    write_whole,
)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_modes_hold_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        make_folder(tmp_path / "folder")
        write_new(tmp_path / "secret", b"s", 0o600)
        write_whole(tmp_path / "public", b"p", 0o644)
    finally:
        os.umask(before)
    assert [_mode(tmp_path / name) for name in ("folder", "secret", "public")] == [0o700, 0o600, 0o644]


def test_a_new_file_overwrites_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_new(path, b"first", 0o600)
    with pytest.raises(FileRefusedError, match="not overwritten"):
        write_new(path, b"second", 0o600)
    assert path.read_bytes() == b"first"


def test_a_failed_write_leaves_the_old_file_and_nothing_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_whole(path, b"old", 0o644)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, b"new", 0o644)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_what_is_missing_or_no_file_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"")
    missing = "there is no ticket at"
    for name, text in (("none", missing), ("file/below", missing), (".", "is not a file"), ("pipe", "is not a file")):
        with pytest.raises(FileRefusedError, match=text):
            read_whole(tmp_path / name, "ticket")


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with alone_in(tmp_path, "first"), pytest.raises(UnavailableError, match="second"), alone_in(tmp_path, "second"):
        pass
    with alone_in(tmp_path, "third"):
        pass


def test_a_fingerprint_is_64_hex_digits() -> None:
    plain = "ab" * 32
    assert check_fingerprint(plain) == plain
    assert check_fingerprint(":".join(["AB"] * 32)) == plain
    for text in (plain[:-1], plain + "0", "g" * 64, "", plain + "\n"):
        with pytest.raises(InvalidFieldError, match="64 hex digits"):
            check_fingerprint(text)
