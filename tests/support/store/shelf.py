"""An open store with one instance, no services: changes by hand, and a connection that fails where it is told to."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg

from rgs.core.ids import format_ulid
from rgs.core.ledger import Participation
from rgs.core.rounds import Round
from rgs.core.sessions import Session, SessionStatus
from rgs.core.statements import Ed25519Signer
from rgs.ports.regulator import StageReport
from rgs.store.address import PostgresAddress, StoreAddress
from rgs.store.changes import Answer, Change, Draft, NewInstance, Operation, Signed
from rgs.store.interface import StatementRow, Store
from rgs.store.opening import open_reads, open_store
from rgs.store.postgres.store import PostgresStore
from rgs.store.sqlite.store import SqliteStore, connect
from tests.support.store.copied import new_store

NODE_KEY = Ed25519Signer.from_seed(b"n" * 32)
INSTANCE_KEY = Ed25519Signer.from_seed(b"i" * 32)
NAME = "node-1-b1-w0"


DATABASES: dict[Path, PostgresAddress] = {}
"""Folders that stand for a database (`either_store`); in any other lies a file."""


def address_of(folder: Path) -> StoreAddress:
    return DATABASES.get(folder, folder / "rgs.db")


def ulid(number: int) -> str:
    return format_ulid(1_795_000_000_000, number.to_bytes(10, "big"))


async def start_instance(store: Store, name: str = NAME, boot_no: int = 1) -> Signed:
    return await store.start_instance(
        NewInstance(
            instance=name,
            node="node-1",
            boot_no=boot_no,
            worker=0,
            start_ms=1000 + boot_no,
            start=Draft("instance_start", {"draws_in_flight_max": "8", "time": "then"}),
            node_signer=NODE_KEY,
            signer=INSTANCE_KEY,
        )
    )


@asynccontextmanager
async def open_shelf(folder: Path, *, started: bool = True) -> AsyncIterator[Any]:
    """A new store in the folder (or the one that is there), and by default a started instance."""
    where = address_of(folder)
    if isinstance(where, Path) and not where.exists():
        new_store(where, ulid(0))
    store = await open_store(where)
    assert isinstance(store, SqliteStore | PostgresStore)
    try:
        if started:
            await start_instance(store)
        yield store
    finally:
        await store.close()


def session(number: int, **fields: Any) -> Session:
    """A new session, version 1."""
    made = Session(
        session_id=ulid(number),
        operator="op-1",
        player="anna",
        operator_reference=f"ref-{number}",
        ruleset_id="uth-solo",
        jurisdiction_id="demo",
        currency="EUR",
        status=SessionStatus.OPEN,
        open_ms=1000 + number,
        last_ms=1000 + number,
        version=1,
        participation=Participation(bought_minor=1000),
    )
    return replace(made, **fields)


def opened(made: Session) -> Change:
    """The session with its first link."""
    return Change(session=made, drafts=(Draft("session_open", {"time": "then"}),))


def answer(number: int, party: str = "op-1", method: str = "Act") -> Answer:
    return Answer(
        party, method, f"request-{number}", bytes([number % 256]) * 32, f"body {number}".encode(), 1000 + number
    )


def discarded(draw_no: int) -> Draft:
    return Draft("discarded_draw", {"draw_no": str(draw_no), "time": "then"})


def dealt(made: Session, draw_no: int) -> Round:
    """A round of the session's next stage."""
    return Round(
        round_id=ulid(10_000 + draw_no),
        session_id=made.session_id,
        operator=made.operator,
        player=made.player,
        ruleset_id=made.ruleset_id,
        round_no=made.round_no + 1,
        seat_no=1,
        game_code="#12:00:00",
        instance=NAME,
        draw_no=draw_no,
        deal=b"deal",
        commitment=b"c" * 32,
        bets=(("ante", 100), ("blind", 100)),
        balance_before_minor=1000,
        start_ms=2000 + draw_no,
        sealed=b"sealed",
    )


def started(made: Session, draw_no: int) -> Change:
    """The start of a round, as one change with the account of its draw in reserve."""
    round_ = dealt(made, draw_no)
    after = replace(made, version=made.version + 1, round_no=round_.round_no, open_round_id=round_.round_id)
    return Change(
        session=after,
        round=round_,
        drafts=(
            Draft("round_opening", {"draw_no": str(draw_no), "time": "then"}, round_id=round_.round_id, seat_no=1),
        ),
        answer=answer(draw_no, method="StartRound"),
        draw_no=draw_no,
        discard=discarded(draw_no),
    )


def operation(number: int, session_id: str, status: str = "pending") -> Operation:
    return Operation(
        ulid(20_000 + number), session_id, "purchase", status, "op-1", "BuyParticipation", f"request-{number}",
        bytes(32), 500, 1, 1000 + number,
    )  # fmt: skip


def report(session_id: str, round_no: int) -> StageReport:
    return StageReport(session_id, round_no, "M" * 16, "N" * 16, 1000, 200, 0, "ab" * 32, 3000)


async def table(folder: Path, query: str) -> list[tuple[Any, ...]]:
    """Rows as they stand on the disk."""
    where = address_of(folder)
    if isinstance(where, PostgresAddress):
        connection = await asyncpg.connect(where.url)
        try:
            return [tuple(row) for row in await connection.fetch(query)]
        finally:
            await connection.close()
    with closing(connect(where, read_only=True)) as reader:
        return list(reader.execute(query))


async def change_by_hand(folder: Path, query: str) -> None:
    """What no store would do."""
    where = address_of(folder)
    if isinstance(where, PostgresAddress):
        connection = await asyncpg.connect(where.url)
        await connection.execute(query)
        await connection.close()
    else:
        with closing(connect(where)) as other:
            other.execute(query)


async def stored(folder: Path) -> list[StatementRow]:
    """All statements in commit order, over a connection of their own."""
    reads = await open_reads(address_of(folder))
    try:
        return [row async for row in reads.statements_in_order()]
    finally:
        await reads.close()


async def applied(store: Any, changes: list[Change]) -> Sequence[Any]:
    """The outcomes of one group."""
    if isinstance(store, PostgresStore):
        return await store.apply(changes)
    outcomes: Sequence[Any] = store.apply(changes)
    return outcomes


class BrokenConnection:
    """The writing connection of a store, with `on_execute` asked before every statement that is not a batch."""

    def __init__(self, inner: sqlite3.Connection, on_execute: Callable[[sqlite3.Connection, str], None]) -> None:
        self._inner = inner
        self._on_execute = on_execute

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        self._on_execute(self._inner, sql)
        return self._inner.execute(sql, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def break_store(store: SqliteStore, on_execute: Callable[[sqlite3.Connection, str], None]) -> None:
    """Put the breakage in; the store closes the inner connection as ever."""
    store._db = BrokenConnection(store._db, on_execute)  # type: ignore[assignment]
