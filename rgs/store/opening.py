"""A store from its address: the one place that knows which database is which.

Refuses an address where there is no store, or one of another schema.
"""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack
from pathlib import Path

from rgs.store.address import PostgresAddress, StoreAddress
from rgs.store.changes import StoreRefusedError
from rgs.store.interface import Parties, Store, StoreReads
from rgs.store.parties import SqliteParties
from rgs.store.reads import SqliteReads
from rgs.store.sqlite import SqliteStore, connect, verify_schema
from rgs.store.sqlite import create_store as create_file


async def create_store(where: StoreAddress, store_epoch: str) -> None:
    """Make a new, empty store, whole or without a table; StoreRefusedError if there is one."""
    create_file(_path(where), store_epoch)


async def open_store(where: StoreAddress) -> Store:
    """The store, to serve from; StoreRefusedError."""
    return SqliteStore(_path(where))


async def open_parties(where: StoreAddress) -> Parties:
    """The allow-list, beside a server or in one; StoreRefusedError."""
    return SqliteParties(_path(where))


async def open_reads(where: StoreAddress) -> StoreReads:
    """The store to read from only, beside a server; StoreRefusedError."""
    path = _path(where)
    if not path.is_file():
        raise StoreRefusedError(f"there is no store at {path}", path=path)
    with ExitStack() as opened:
        try:
            connection = connect(path, read_only=True)
        except sqlite3.Error as error:
            raise StoreRefusedError(f"{path} cannot be opened ({type(error).__name__})", path=path) from None
        opened.callback(connection.close)
        verify_schema(connection, path)
        opened.pop_all()
    return SqliteReads(connection)


def _path(where: StoreAddress) -> Path:
    if isinstance(where, PostgresAddress):
        raise StoreRefusedError("this version has no PostgreSQL store yet", address=str(where))
    return where
