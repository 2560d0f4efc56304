"""A process killed between every two SQL statements, from the making of the file on: nothing half done, nothing twice.

SIGKILL takes the process, not the machine: what the operating system had been given survives here. That a commit also
survives the loss of power rests on SQLite's synchronous=FULL, which test_books_on_disk.py reads back.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rgs.store.regulator import RegulatorStore
from rgs.store.wallet import WalletStore
from tests.support.adapters.crash_child import SCRIPTS

ROOT = Path(__file__).resolve().parents[4]
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked copies of a process")


Rows = list[tuple[str, int]]


def wallet_rows(path: Path) -> tuple[Rows, list[str]]:
    """What was entered and for how much, and no ids: those of the wallet are the caller's."""
    store = WalletStore(path)
    store.verify()
    rows = [(row.kind, row.transfer_minor) for row in store.rows()]
    store.close()
    return rows, []


def regulator_rows(path: Path) -> tuple[Rows, list[str]]:
    """What was entered, and the ids that were issued."""
    store = RegulatorStore(path)
    store.verify()
    rows = [(entry.kind, entry.number) for entry in store.entries()]
    ids = [entry.subject for entry in store.entries()][:3]
    store.close()
    return rows, ids


BOOKS = [
    ("wallet", wallet_rows, {0, 1, 2, 3, 4, 5, 6, 7}),
    (
        "regulator",
        regulator_rows,
        {0, 1, 2, 3, 5, 6, 7, 8},
    ),  # never 4: a batch of two stages is there whole or not at all
]


@pytest.mark.slow
@needs_fork
@pytest.mark.parametrize(("book", "rows_of", "lengths"), BOOKS, ids=["wallet", "regulator"])
async def test_killed_between_every_two_statements(
    tmp_path: Path, book: str, rows_of: Callable[[Path], tuple[Rows, list[str]]], lengths: set[int]
) -> None:
    whole = tmp_path / "whole.sqlite"
    answers = await SCRIPTS[book](whole)
    expected, _ = rows_of(whole)

    child = subprocess.run(  # noqa: ASYNC221 - nothing else runs
        [sys.executable, "-m", "tests.support.adapters.crash_child", book, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    assert child.stderr == ""
    killed = int(child.stdout)
    assert killed > 90  # statements that the script comes to, those of the schema among them

    found = set()
    for statement_no in range(1, killed + 1):
        path = tmp_path / f"{statement_no}.sqlite"
        left, _ = rows_of(path)  # opens what the dead process left, and adds it up
        assert left == expected[: len(left)]
        found.add(len(left))
        again = await SCRIPTS[book](path)  # the same messages with the same ids, to the end
        rows, ids = rows_of(path)
        assert rows == expected
        # The regulator's ids are made before they are kept, so a life with a crash in it may have used up some. A debit
        # whose rollback stands already is refused when it comes again.
        result = zip(again, ids or answers, strict=True)
        assert all(answer in {first, "TRANSACTION_ROLLED_BACK"} for answer, first in result)
    assert found == lengths
