"""A long history in PostgreSQL, made as `bench.filling` makes one in SQLite, with the same parts real and synthetic.

The rows are multiplied inside the database, so that nothing is sent to it. It copies values that it has compressed as
they are, and does not try again on those that it could not compress. Two connections work at once, each on tables of
its own. Each empties its tables, puts back what was in them, and makes indexes and keys behind the rows, in one
transaction: with FILLING a database logs none of it. Row numbers are made as the server makes them, out of the time of
the round. The tables are analysed, and what autovacuum counts begins anew, so that it does not go over the history at
once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import asyncpg

from bench.figures import BenchError
from bench.filling import (
    HEAVY_PLAYER,
    HEAVY_SHARE,
    INSTANCE,
    PLAYERS,
    ROUND_MS,
    ROUNDS_A_SESSION,
    STEP_ROUNDS,
    TEMPLATES,
)
from rgs.store.address import PostgresAddress
from rgs.store.numbers import EPOCH_MS

FILLING: Final = {
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "1GB",
    "max_wal_size": "20GB",
    "checkpoint_timeout": "1h",
}
"""Settings of a server while it is filled. It is started anew with others before anything is measured."""
_SESSION: Final = f"'00S' || lpad((g.i / {ROUNDS_A_SESSION})::text, 23, '0')"
_PLAYER: Final = (
    f"CASE WHEN g.i / {ROUNDS_A_SESSION} % {HEAVY_SHARE} = 0 THEN '{HEAVY_PLAYER}'"
    f" ELSE 'player-' || g.i / {ROUNDS_A_SESSION} % {PLAYERS} END"
)
_ROUND: Final = "'00R' || lpad(g.i::text, 23, '0')"
_KEYS: Final = """
    SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE conrelid = $1::regclass AND contype IN ('p', 'u') ORDER BY contype, conname
"""
_INDEXES: Final = """
    SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid) FROM pg_index i
    WHERE i.indrelid = $1::regclass AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)
    ORDER BY 1
"""
_COLUMNS: Final = """
    SELECT attname FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_COMPRESSED: Final = """
    SELECT attname FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND attstorage = 'x'
"""


@dataclass(frozen=True, slots=True)
class _Size:
    rounds: int
    open_sessions: int
    end_ms: int
    counts: Mapping[str, int]
    """Rows of each template."""
    answers: str
    """The table of the day in which the rounds to copy were played."""

    @property
    def from_ms(self) -> int:
        return self.end_ms - self.rounds * ROUND_MS

    def number(self, late_ms: int = 0, count: int = 0) -> str:
        """The row number of something so long after the start of its round."""
        return f"((({self.from_ms - EPOCH_MS + late_ms} + g.i * {ROUND_MS}) << 22) | {count << 12})"


async def fill(
    address: PostgresAddress, rounds: int, open_sessions: int, end_ms: int, emit: Callable[[str], None]
) -> None:
    """Add so many settled rounds that ended before `end_ms`, and open sessions, to a store at rest in which some rounds
    were settled, some sessions closed, and some left open.
    """
    connection = await asyncpg.connect(address.url)
    try:
        size = await _prepare(connection, rounds, open_sessions, end_ms)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_apart(address, size, ["statements"], _add_statements, emit))
            tasks.create_task(_apart(address, size, ["rounds", "sessions", size.answers], _add_the_rest, emit))
        emit("filling: statistics")
        for template in TEMPLATES:
            await connection.execute(f"DROP TABLE filling_{template}")
        await connection.execute("ANALYZE")
        await connection.execute("SELECT pg_stat_reset()")
    finally:
        await connection.close()


async def bytes_of(address: PostgresAddress) -> int:
    """The size of the database."""
    connection = await asyncpg.connect(address.url)
    try:
        size: int = await connection.fetchval("SELECT pg_database_size(current_database())")
        return size
    finally:
        await connection.close()


async def _prepare(db: asyncpg.Connection[Any], rounds: int, open_sessions: int, end_ms: int) -> _Size:
    """Rows to copy, numbered from 0; and the row of the instance."""
    counts = {}
    for name, text in TEMPLATES.items():
        await db.execute(
            f"CREATE UNLOGGED TABLE filling_{name} AS SELECT row_number() OVER () - 1 AS n, t.* FROM ({text}) t"  # noqa: S608
        )
        await db.execute(f"ANALYZE filling_{name}")
        counts[name] = await db.fetchval(f"SELECT count(*) FROM filling_{name}")  # noqa: S608
        if not counts[name]:
            raise BenchError(f"nothing to copy: the store has no {name}")
    if len({counts[name] for name in ("rounds", "openings", "finals")}) != 1:
        raise BenchError("a settled round has not its two statements")
    day = await db.fetchval(
        "SELECT tableoid::regclass::text FROM answers WHERE time_ms = (SELECT max(time_ms) FROM filling_answers)"
    )
    await db.execute(
        "INSERT INTO instances (instance, node, boot_no, worker, alive, statement_no, draw_no, start_ms, end_ms, slot,"
        " last_id) VALUES ($1, 'history', 1, 0, 0, 0, 0, 1, 2, 0, 0)",
        INSTANCE,
    )
    return _Size(rounds, open_sessions, end_ms, counts, day)


async def _apart(
    address: PostgresAddress,
    size: _Size,
    tables: Sequence[str],
    add: Callable[[asyncpg.Connection[Any], _Size, Callable[[str], None]], Any],
    emit: Callable[[str], None],
) -> None:
    """Add to these tables without their indexes and keys, which are made again as they were."""
    db = await asyncpg.connect(address.url, server_settings={"maintenance_work_mem": "512MB", "jit": "off"})
    try:
        async with db.transaction():
            again: list[str] = []
            storages: list[str] = []
            for table in tables:
                await db.execute(f"CREATE TEMP TABLE kept_{table} AS SELECT * FROM {table}")  # noqa: S608
                await db.execute(f"TRUNCATE {table}")
                for name, text in await db.fetch(_KEYS, table):
                    await db.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
                    again.append(f"ALTER TABLE {table} ADD CONSTRAINT {name} {text}")
                for name, text in await db.fetch(_INDEXES, table):
                    await db.execute(f"DROP INDEX {name}")
                    again.append(text)
                for (column,) in await db.fetch(_COMPRESSED, table):
                    storage = f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE"
                    await db.execute(f"{storage} EXTERNAL")
                    storages.append(f"{storage} EXTENDED")
                await db.execute(f"INSERT INTO {table} SELECT * FROM kept_{table}")  # noqa: S608
            await add(db, size, emit)
            for text in (*storages, *again):  # an index takes the storage that a column has when it is made
                emit(f"filling: {text[:100]}")
                await db.execute(text)
    finally:
        await db.close()


async def _add_statements(db: asyncpg.Connection[Any], size: _Size, emit: Callable[[str], None]) -> None:
    for first in range(0, size.rounds, STEP_ROUNDS):
        emit(f"filling: {first} of {size.rounds} rounds")
        for nth, template in enumerate(("openings", "finals")):
            other = {
                "id": size.number(nth * ROUND_MS // 2, count=1),
                "instance": f"'{INSTANCE}'",
                "statement_no": f"2 * g.i + {nth + 1}",
                "session_id": _SESSION,
                "link_no": f"g.i % {ROUNDS_A_SESSION} * 2 + {nth + 3}",
                "round_id": _ROUND,
                "hash": f"sha256(int8send(2 * g.i + {nth}))",
            }
            await _copy(db, size, "statements", template, other, first, min(size.rounds, first + STEP_ROUNDS))


async def _add_the_rest(db: asyncpg.Connection[Any], size: _Size, _emit: Callable[[str], None]) -> None:
    start = f"{size.from_ms} + g.i * {ROUND_MS}"
    of_round = {
        "id": size.number(),
        "session_id": _SESSION,
        "round_id": _ROUND,
        "instance": f"'{INSTANCE}'",
        "player": _PLAYER,
        "round_no": f"g.i % {ROUNDS_A_SESSION} + 1",
        "draw_no": "g.i + 1",
        "start_ms": start,
        "end_ms": f"{start} + {ROUND_MS // 2}",
        "opening_hash": "encode(sha256(int8send(2 * g.i)), 'hex')",
    }
    per_round = size.counts["answers"] / size.counts["rounds"]
    of_answer = {"request_id": "gen_random_uuid()::text", "time_ms": "(SELECT max(time_ms) FROM filling_answers)"}
    for first in range(0, size.rounds, STEP_ROUNDS):
        last = min(size.rounds, first + STEP_ROUNDS)
        await _copy(db, size, "rounds", "rounds", of_round, first, last)
        await _copy(db, size, size.answers, "answers", of_answer, int(first * per_round), int(last * per_round))
    await db.execute(
        "INSERT INTO totals (day, operator, player, game, currency, rounds, staked_minor, returned_minor, void_rounds,"
        f" void_minor) SELECT to_char(to_timestamp(({of_round['end_ms']}) / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD'),"
        f" t.operator, {_PLAYER}, t.ruleset_id, 'EUR', count(*), sum(t.staked_minor), sum(t.returned_minor), 0, 0"
        f" {_joined(size, 'rounds', 0, size.rounds)} GROUP BY 1, 2, 3, 4"
        " ON CONFLICT (operator, day, player, game, currency) DO UPDATE SET"
        " rounds = totals.rounds + excluded.rounds, staked_minor = totals.staked_minor + excluded.staked_minor,"
        " returned_minor = totals.returned_minor + excluded.returned_minor"
    )
    player = _PLAYER.replace(f"g.i / {ROUNDS_A_SESSION}", "g.i")
    closed = {
        "id": f"((({size.from_ms - EPOCH_MS} + g.i * {ROUND_MS * ROUNDS_A_SESSION}) << 22) | {2 << 12})",
        "session_id": "'00S' || lpad(g.i::text, 23, '0')",
        "operator_reference": "'history-' || g.i",
        "player": player,
    }
    await _copy(db, size, "sessions", "closed", closed, 0, -(-size.rounds // ROUNDS_A_SESSION))
    opened = {
        "id": f"((({size.end_ms - EPOCH_MS - size.open_sessions} + g.i) << 22) | {3 << 12})",
        "session_id": "'00T' || lpad(g.i::text, 23, '0')",
        "operator_reference": "'open-' || g.i",
        "player": "'open-' || g.i",
    }
    await _copy(db, size, "sessions", "opened", opened, 0, size.open_sessions)


async def _copy(
    db: asyncpg.Connection[Any], size: _Size, table: str, template: str, other: Mapping[str, str], first: int, last: int
) -> None:
    """A row for each number from `first` on, below `last`: the template's, but for the columns in `other`."""
    columns = [row[0] for row in await db.fetch(_COLUMNS, table)]
    values = ", ".join(other.get(column, f"t.{column}") for column in columns)
    text = f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} {_joined(size, template, first, last)}"
    await db.execute(text)


def _joined(size: _Size, template: str, first: int, last: int) -> str:
    numbers = f"generate_series({first}::bigint, {last - 1}::bigint) AS g (i)"
    return f"FROM {numbers} JOIN filling_{template} t ON t.n = g.i % {size.counts[template]}"
