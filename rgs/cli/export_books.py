"""`rgs export-wallet` and `rgs export-register`: the embedded books in the layouts that `rgs reconcile` reads.

Stand-ins for what an operator's wallet and a regulator's system would hand out (docs/reconciliation.md). Both say of
themselves that they are embedded (`book`, `test_register`), so that a reconciliation cannot take them for outsiders.
They work beside a running server, from one moment of each file.

Refuses to make a book where there is none, and to write over a file.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from rgs.adapters.embedded.books import register_lines, wallet_lines
from rgs.cli.options import HOME, HomeOption, note
from rgs.core.statements import parse_canonical
from rgs.node.files import FileRefusedError
from rgs.node.home import open_home
from rgs.store.register import RegisterStore
from rgs.store.wallet import WalletStore

OutOption = Annotated[Path, typer.Option(help="A new file.", dir_okay=False)]


def wallet_command(out: OutOption, home: HomeOption = HOME) -> int:
    """Write the embedded wallet's transactions as CSV, for a reconciliation."""
    store = WalletStore(_existing(open_home(home).wallet, "wallet"))
    try:
        count = _write(out, wallet_lines(store.rows()))
    finally:
        store.close()
    note(f"exported {count - 1} transactions of the embedded wallet")
    return 0


def register_command(out: OutOption, home: HomeOption = HOME) -> int:
    """Write the test register's journal as JSON lines, with daily totals, for a reconciliation."""
    store = RegisterStore(_existing(open_home(home).register, "register"))
    try:
        count = _write(out, register_lines(parse_canonical(entry.body.encode("ascii")) for entry in store.entries()))
    finally:
        store.close()
    note(f"exported {count} rows of the test register")
    return 0


def _existing(path: Path, what: str) -> Path:
    if not path.is_file():
        raise FileRefusedError(f"there is no embedded {what} at {path}", path=path)
    return path


def _write(path: Path, lines: Iterable[bytes]) -> int:
    try:
        with path.open("xb") as file:
            count = 0
            for line in lines:
                file.write(line)
                count += 1
    except FileExistsError:
        raise FileRefusedError(f"{path} is there already and is not overwritten", path=path) from None
    return count
