"""New files of the store, the embedded wallet and the embedded regulator, for tests: the first of each kind is made as
the server makes it, each further one is a copy. Half of a small test's work was to make its schema again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rgs.store.regulator import RegulatorStore
from rgs.store.sqlite.store import create_store
from rgs.store.wallet import WalletStore

BOOKS: Final = {"wallet.db": WalletStore, "regulator.db": RegulatorStore}


def new_store(path: Path, epoch: str) -> None:
    """What `create_store` makes."""
    _put(path, _store(epoch))


def new_books(folder: Path) -> None:
    """The files of wallet and regulator, each where it is missing."""
    for name, store in BOOKS.items():
        if not (folder / name).exists():
            _put(folder / name, _book(store))


def _put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600, exist_ok=False)
    path.write_bytes(content)


@cache
def _store(epoch: str) -> bytes:
    return _made(lambda path: create_store(path, epoch))


@cache
def _book(store: type[WalletStore | RegulatorStore]) -> bytes:
    return _made(lambda path: store(path).close())


def _made(make: Callable[[Path], None]) -> bytes:
    """The whole of a file that is closed: its log is in it."""
    with TemporaryDirectory() as folder:
        make(path := Path(folder) / "made.db")
        assert [each.name for each in path.parent.iterdir()] == [path.name]
        return path.read_bytes()
