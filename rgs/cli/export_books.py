"""`rgs export-wallet` and `rgs export-regulator`: write the embedded books in the layouts that `rgs reconcile` reads.

The files stand in for what an operator's wallet and a regulator's system would deliver (docs/reconciliation.md). They
are marked as embedded (`book`, `test_regulator`), so that a reconciliation cannot take them for outside sources. The
commands work while the server runs. Each file shows one moment. Existing files are not overwritten.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from rgs.adapters.embedded.books import regulator_lines, wallet_lines
from rgs.cli.options import HOME, HomeOption, note
from rgs.core.statements import parse_canonical
from rgs.node.config import open_home
from rgs.node.files import FileRefusedError
from rgs.store.regulator import RegulatorStore
from rgs.store.wallet import WalletStore

OutOption = Annotated[Path, typer.Option(help="A new file.", dir_okay=False)]


def wallet_command(out: OutOption, home: HomeOption = HOME) -> int:
    """Write the embedded wallet's transactions as CSV, for a reconciliation."""
    with closing(WalletStore(_existing(open_home(home).wallet, "wallet"))) as store:
        count = _write(out, wallet_lines(store.rows()))
    note(f"exported {count - 1} transactions of the embedded wallet")
    return 0


def regulator_command(out: OutOption, home: HomeOption = HOME) -> int:
    """Write the test regulator's journal as JSON lines, with daily totals, for a reconciliation."""
    with closing(RegulatorStore(_existing(open_home(home).regulator, "regulator"))) as store:
        count = _write(out, regulator_lines(parse_canonical(entry.body.encode("ascii")) for entry in store.entries()))
    note(f"exported {count} rows of the test regulator")
    return 0


def _existing(path: Path, what: str) -> Path:
    if not path.is_file():
        raise FileRefusedError(f"there is no embedded {what} at {path}", path=path)
    return path


def _write(path: Path, lines: Iterable[bytes]) -> int:
    try:
        with path.open("xb") as file:
            return sum(1 for line in lines if file.write(line))
    except FileExistsError:
        raise FileRefusedError(f"{path} exists already and is not overwritten", path=path) from None
