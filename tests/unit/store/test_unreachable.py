"""A store that is not there is refused when it is opened, whatever it is opened for."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from rgs.store import wallet
from rgs.store.address import PostgresAddress
from rgs.store.changes import StoreAwayError, StoreRefusedError
from rgs.store.opening import open_parties, open_reads, open_store
from rgs.store.wallet import WalletStore

NOBODY = PostgresAddress("postgresql://rgs@127.0.0.1:1/rgs")


@pytest.mark.parametrize("opening", [open_store, open_reads, open_parties])
async def test_a_server_that_does_not_answer(opening: Callable[[PostgresAddress], Awaitable[Any]]) -> None:
    with pytest.raises(StoreAwayError):
        await opening(NOBODY)


async def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(StoreRefusedError, match="there is no store at"):
        await open_reads(tmp_path / "rgs.db")
    assert not (tmp_path / "rgs.db").exists()


class Impatient:
    """An event that nobody may wait for."""

    def wait(self, _seconds: float) -> None:
        raise AssertionError("waited for what does not pass")


def test_a_journal_that_cannot_be_had_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite is asked again only where another process holds the file."""
    monkeypatch.setattr(threading, "Event", Impatient)
    monkeypatch.setitem(wallet._JOURNALS, "wal", "PRAGMA no such thing")
    with pytest.raises(StoreRefusedError, match="cannot be opened") as refused:
        WalletStore(tmp_path / "wallet.db")
    assert isinstance(refused.value.__cause__, sqlite3.OperationalError)
