"""The pages that a commit appends to SQLite's write-ahead log, by their owners."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from bench.pages import LogPages, lines, owners


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "rgs.db"


def test_each_page_of_a_commit_is_counted_once_for_its_owner(store: Path) -> None:
    db = sqlite3.connect(store, isolation_level=None)
    db.executescript("PRAGMA page_size = 1024; PRAGMA journal_mode = WAL; CREATE TABLE one (x); CREATE TABLE two (x)")
    read = LogPages(store)
    read.read(is_counted=False)
    assert not read.frames
    db.execute("INSERT INTO one VALUES (1)")
    read.read(is_counted=True)
    db.execute("INSERT INTO two VALUES (1)")
    db.execute("INSERT INTO two VALUES (2)")
    read.read(is_counted=True)
    read.read(is_counted=True)  # nothing new
    owned = owners(store)
    assert {owned[page]: times for page, times in read.frames.items()} == {"one": 1, "two": 2}
    assert [line.split()[0] for line in lines(read, owned)] == ["a", "all", "two", "one"]
    # The log begins anew behind a checkpoint: what was read is not read again.
    db.execute("PRAGMA wal_checkpoint(RESTART)")
    db.execute("INSERT INTO one VALUES (2)")
    read.read(is_counted=True)
    assert {owned[page]: times for page, times in read.frames.items()} == {"one": 2, "two": 2}
    db.close()


def test_what_is_no_log_is_refused(store: Path) -> None:
    store.with_name("rgs.db-wal").write_bytes(bytes(64))
    with pytest.raises(ValueError, match="is no write-ahead log"):
        LogPages(store).read(is_counted=True)
