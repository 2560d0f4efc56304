"""Run by test_crash.py in a process of its own: plays a script of messages and dies before the n-th SQL statement.

Arguments: which book, the folder. For n = 1, 2, ... a forked copy of this process opens the book <folder>/<n>.sqlite,
sends the messages and kills itself (SIGKILL) before its n-th statement, counted from the opening of the file on; those
of triggers count too. Ends when a copy lives through the whole script, and prints how many were killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from rgs.core.errors import RgsError
from rgs.ports.regulator import ParticipationEnd, SessionClose
from tests.support.adapters.books import (
    NOW_MS,
    Numbers,
    give,
    make_regulator,
    make_wallet,
    move,
    opening,
    purchase,
    stage,
)


async def wallet_script(path: Path) -> list[str]:
    """Every kind of transfer; of each answer what does not tell a first one from a repeat."""
    wallet, store = make_wallet(path)
    answers: list[str] = []
    messages: list[Callable[[], Awaitable[Any]]] = [
        lambda: wallet.open_account(operator="op", player="anna", currency="EUR", balance_minor=1000),
        lambda: wallet.debit(move(1, 300)),
        lambda: wallet.debit(move(2, 200)),
        lambda: wallet.rollback(move(2, 200)),
        lambda: wallet.rollback(move(3, 100)),
        lambda: wallet.debit(move(3, 100)),
        lambda: wallet.debit(move(4, 5000)),
        lambda: wallet.credit(give(5, 750)),
    ]
    for send in messages:
        try:
            answer = await send()
            answers.append(f"{getattr(answer, 'transaction_id', '')} {getattr(answer, 'wallet_reference', '')}")
        except RgsError as error:
            answers.append(error.reason)
    store.verify()
    await wallet.close()
    return answers


async def regulator_script(path: Path) -> list[str]:
    """A session with a rebuy, two batches of stages, the end and the closing; the ids that were answered."""
    regulator, store = make_regulator(path)
    number = Numbers()
    session = (await regulator.open_session(opening(number()))).regulator_session_id
    bought = await regulator.buy_participation(purchase(number(), session))
    again = await regulator.buy_participation(purchase(number(), session, purchase_no=2))
    seat = bought.regulator_participation_id
    stages = [stage(session, seat, 1, 1000), stage(session, seat, 2, 970), stage(session, seat, 3, 940)]
    await regulator.report_stages(number(), stages[:2])
    await regulator.report_stages(number(), stages)
    await regulator.end_participation(ParticipationEnd(number(), session, seat, 910, 3, NOW_MS))
    await regulator.close_session(SessionClose(number(), session, NOW_MS))
    store.verify()
    await regulator.close()
    return [session, seat, again.regulator_participation_id]


SCRIPTS = {"wallet": wallet_script, "regulator": regulator_script}


def die_before(statement_no: int) -> None:
    """Every connection made from here on counts its statements, and the process dies before the given one."""
    seen = 0
    connect = sqlite3.connect

    def count(_: str) -> None:
        nonlocal seen
        seen += 1
        if seen == statement_no:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(*args: Any, **keywords: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **keywords)
        connection.set_trace_callback(count)
        return connection

    sqlite3.connect = counted  # type: ignore[assignment]


def main(book: str, folder: Path) -> int:
    """Kill at every statement there is; the number of the last kill."""
    statement_no = 0
    while True:
        statement_no += 1
        child = os.fork()
        if child == 0:
            die_before(statement_no)
            status = 1
            with contextlib.suppress(Exception):
                asyncio.run(SCRIPTS[book](folder / f"{statement_no}.sqlite"))
                status = 0
            os._exit(status)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            return statement_no - 1 if os.WEXITSTATUS(status) == 0 else -1


if __name__ == "__main__":
    sys.stdout.write(str(main(sys.argv[1], Path(sys.argv[2]))))
