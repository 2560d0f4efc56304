"""A restored database of PostgreSQL: what is made in the copy before it starts. The programs here are stand-ins."""

from __future__ import annotations

from pathlib import Path

import pytest

from rgs.node.backups.making import Backup, BackupError
from rgs.node.backups.scratch import restored
from rgs.store.address import PostgresAddress

POSTGRES = """#!/bin/sh
test -f "$2/postgresql.conf" || { echo "could not access the server configuration file"; exit 2; }
touch "$2/../ready"
exec sleep 60
"""
READY = """#!/bin/sh
test -f "$3/ready"
"""
ADDRESS = PostgresAddress("postgresql://rgs@db/rgs")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (("postgres", POSTGRES), ("pg_isready", READY)):
        (folder / name).write_text(text, "ascii")
        (folder / name).chmod(0o700)
    return folder


@pytest.mark.parametrize("content", [None, "max_connections = 200\n"])
def test_a_copy_without_settings_gets_empty_ones(tmp_path: Path, programs: Path, content: str | None) -> None:
    """A cluster of Debian's has its settings in /etc, outside of the data folder."""
    (tmp_path / "backup" / "store").mkdir(parents=True)
    (tmp_path / "scratch").mkdir()
    if content is not None:
        (tmp_path / "backup" / "store" / "postgresql.conf").write_text(content, "ascii")
    backup = Backup(tmp_path / "backup", "postgres", "", "", "", {}, {})
    with restored(backup, tmp_path / "scratch", ADDRESS, programs, None):
        assert (tmp_path / "scratch" / "store" / "postgresql.conf").read_text("ascii") == (content or "")
    assert (tmp_path / "backup" / "store" / "postgresql.conf").exists() == (content is not None)


def test_a_database_that_does_not_start_says_why(tmp_path: Path, programs: Path) -> None:
    (programs / "postgres").write_text("#!/bin/sh\necho no memory\nexit 1\n", "ascii")
    (tmp_path / "backup" / "store").mkdir(parents=True)
    (tmp_path / "scratch").mkdir()
    backup = Backup(tmp_path / "backup", "postgres", "", "", "", {}, {})
    with (
        pytest.raises(BackupError, match="does not start: no memory"),
        restored(backup, tmp_path / "scratch", ADDRESS, programs, None),
    ):
        pass
