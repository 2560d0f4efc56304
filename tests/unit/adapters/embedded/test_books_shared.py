"""Several processes of one host over the same wallet and regulator: the workers of a node."""

from __future__ import annotations

import asyncio
import multiprocessing
import sqlite3
import threading
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

from rgs.adapters.embedded.regulator import EmbeddedRegulator
from rgs.store.regulator import RegulatorStore
from rgs.store.wallet import WalletStore
from tests.support.adapters.books import NOW_MS, Numbers, make_wallet, move, opening, purchase, stage

PROCESSES, ROUNDS = 3, 25


async def work(number: int, folder: Path) -> None:
    """Purchases of one player, and a session of this process's own; every message twice."""
    book, _ = make_wallet(folder / "wallet.db")
    regulator_store = RegulatorStore(folder / "regulator.db")
    names = count(number * 1_000_000)
    regulator = EmbeddedRegulator(regulator_store, lambda prefix: f"{prefix}{next(names):015d}", lambda: NOW_MS)
    new_id = Numbers(number * 1_000_000)
    await book.open_account(operator="op", player="anna", currency="EUR", balance_minor=1_000_000)
    session = (await regulator.open_session(opening(new_id(), reference=f"session-{number}"))).regulator_session_id
    seat = (await regulator.buy_participation(purchase(new_id(), session))).regulator_participation_id
    left_minor = 500
    for stage_no in range(1, ROUNDS + 1):
        transfer = move(number * 1_000_000 + stage_no, 7)
        first, again = await book.debit(transfer), await book.debit(transfer)
        assert first.transaction_id == again.transaction_id
        result = [stage(session, seat, stage_no, left_minor, staked_minor=10)]
        await regulator.report_stages(new_id(), result)
        await regulator.report_stages(new_id(), result)
        left_minor -= 10
    await book.close()
    await regulator.close()


def child(number: int, folder: Path, barrier: Any) -> None:
    barrier.wait()
    asyncio.run(work(number, folder))


def test_processes_take_turns_at_the_books(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(PROCESSES)
    processes = [spawn.Process(target=child, args=(number, tmp_path, barrier)) for number in range(1, PROCESSES + 1)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    with closing(WalletStore(tmp_path / "wallet.db")) as store:
        store.verify()
        assert [entry.kind for entry in store.rows()].count("debit") == PROCESSES * ROUNDS
    with closing(RegulatorStore(tmp_path / "regulator.db")) as regulator:
        number, _ = regulator.verify()
        assert number == PROCESSES * (ROUNDS + 2)


def test_a_file_that_another_process_is_opening_is_waited_for(tmp_path: Path) -> None:
    """SQLite does not wait when it changes a new file to a write-ahead log."""
    path = tmp_path / "wallet.db"
    with closing(WalletStore(path)):
        pass
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        assert other.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
        other.execute("BEGIN IMMEDIATE")
        other.execute("SELECT count(*) FROM accounts").fetchone()
        release = threading.Timer(0.2, other.execute, ["COMMIT"])
        release.start()
        with closing(WalletStore(path)) as store:
            store.verify()
        release.join()
