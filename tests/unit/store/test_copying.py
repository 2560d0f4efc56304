"""A copy of a store file: whole, readable by its owner alone, never over another file, and refused where damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from rgs.store.changes import StoreRefusedError
from rgs.store.sqlite.copying import copy_store, verify_file
from tests.support.store.shelf import open_shelf, opened, session, start_instance, ulid


async def test_a_copy_has_what_was_committed_while_the_store_is_open(tmp_path: Path) -> None:
    copied = tmp_path / "copy"
    copied.mkdir()
    async with open_shelf(tmp_path) as store:
        await store.commit(opened(session(1)))
        copy_store(tmp_path / "rgs.db", copied / "rgs.db")
        await store.commit(opened(session(2)))
    assert (copied / "rgs.db").stat().st_mode & 0o777 == 0o600
    verify_file(copied / "rgs.db")
    async with open_shelf(copied, started=False) as store:
        assert await store.session(ulid(1)) is not None
        assert await store.session(ulid(2)) is None
        await start_instance(store, "node-1-b2-w0", 2)


async def test_no_file_is_overwritten(tmp_path: Path) -> None:
    async with open_shelf(tmp_path):
        target = tmp_path / "kept"
        target.write_bytes(b"kept")
        with pytest.raises(StoreRefusedError, match="exists already and is not overwritten"):
            copy_store(tmp_path / "rgs.db", target)
    assert target.read_bytes() == b"kept"


async def test_a_damaged_file_is_refused_with_its_path(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        for number in range(1, 200):
            await store.commit(opened(session(number)))
        copy_store(tmp_path / "rgs.db", tmp_path / "copy.db")
    damaged = tmp_path / "copy.db"
    data = bytearray(damaged.read_bytes())
    assert len(data) > 40_000
    data[8_192:-8_192] = bytes(len(data) - 16_384)
    damaged.write_bytes(data)
    with pytest.raises(StoreRefusedError, match="is damaged: "):
        verify_file(damaged)
    damaged.write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreRefusedError, match=r"copy.db is damaged: file is not a database"):
        verify_file(damaged)
