"""How the tables of the shared store could lie on several databases, and what one PostgreSQL can say to that.

`SPREAD` names a place for every table. Its rules are checked against the catalogue of a real database (`index_faults`,
`key_faults`) and against the plans of the statements that run (`Lint`): a plan says of each table by which columns its
rows are found, however the statement is written. `recorded` collects these statements, each with the function that
asked.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import asyncpg

import rgs.store

LOCAL: Final = "local"
"""On the one database that coordinates: small, or of the leader, or of tables that players share."""
REFERENCE: Final = "reference"
"""A whole copy on every database: read by everybody, seldom written."""
_BY_SESSION: Final = ("sessions", "rounds", "operations", "stage_reports", "session_tokens")
_BY_OPERATOR: Final = ("totals", "day_totals", "regulator_days", "finals")
SPREAD: Final[Mapping[str, str]] = {
    **dict.fromkeys(_BY_SESSION, "session_id"),
    **dict.fromkeys(("statements", "privates"), "instance"),
    **dict.fromkeys(_BY_OPERATOR, "operator"),
    "answers": "party",
    **dict.fromkeys(("meta", "parties", "certificates", "artifacts", "switches"), REFERENCE),
    **dict.fromkeys(("instances", "latches", "voids", "large_wins", "held_reports"), LOCAL),
    **dict.fromkeys(("returns", "returns_read", "returns_late", "finals_read", "launches", "free_bets"), LOCAL),
    **dict.fromkeys(("tables", "table_rounds", "sittings", "table_configs", "table_bars"), LOCAL),
    **dict.fromkeys(("box_reservations", "chat"), LOCAL),
}
"""Table -> the column that its rows are distributed by, or LOCAL, or REFERENCE."""

_TABLES: Final = """
    SELECT c.relname AS name, COALESCE(p.relname, c.relname) AS whole FROM pg_class c
    LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class p ON p.oid = i.inhparent
    WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
"""
_INDEXES: Final = """
    SELECT t.relname AS table, c.relname AS index, ARRAY(
      SELECT a.attname FROM pg_attribute a
      WHERE a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey[:i.indnkeyatts - 1])
    )::text[] AS columns FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indisunique AND t.relnamespace = 'public'::regnamespace ORDER BY c.relname
"""
_KEYS: Final = """
    SELECT conname, conrelid::regclass::text AS from, confrelid::regclass::text AS to FROM pg_constraint
    WHERE contype = 'f' AND connamespace = 'public'::regnamespace ORDER BY conname
"""
_NULLABLE: Final = """
    SELECT c.relname AS table, a.attname AS column FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE a.attnum > 0 AND NOT a.attnotnull AND c.relnamespace = 'public'::regnamespace
"""
_CONDITIONS: Final = ("Index Cond", "Recheck Cond", "Filter", "Hash Cond", "Merge Cond", "Join Filter")
_EQUAL: Final = re.compile(r"\(([\w.$]+) = (?:ANY \()?\(?([\w.$']+)")
_ASKING: Final = ("execute", "executemany", "fetch", "fetchval", "fetchrow", "cursor", "prepare")
_STORE: Final = str(Path(rgs.store.__file__).parent)


def column_of(table: str) -> str:
    """The column that the table is distributed by; empty where it is not."""
    place = SPREAD[table]
    return "" if place in {LOCAL, REFERENCE} else place


# --- the schema -----------------------------------------------------------------------------------------------------


async def whole_tables(connection: asyncpg.Connection[Any]) -> dict[str, str]:
    """Every table of the database, a partition with the name of what it is a part of."""
    return {row["name"]: row["whole"] for row in await connection.fetch(_TABLES)}


async def index_faults(connection: asyncpg.Connection[Any]) -> dict[str, str]:
    """Unique indexes, those of primary keys too, that do not hold the column of their table: index -> table. A
    distributed database refuses them.
    """
    whole = await whole_tables(connection)
    found = {}
    for row in await connection.fetch(_INDEXES):
        column = column_of(whole[row["table"]])
        if column and column not in row["columns"]:
            found[row["index"]] = whole[row["table"]]
    return found


async def key_faults(connection: asyncpg.Connection[Any]) -> list[str]:
    """Foreign keys that lead from one place to another. One to a reference table may start anywhere but there."""
    places = [(row["conname"], SPREAD[row["from"]], SPREAD[row["to"]]) for row in await connection.fetch(_KEYS)]
    return [name for name, start, end in places if start != end and (end != REFERENCE or start == LOCAL)]


async def nullable_columns(connection: asyncpg.Connection[Any]) -> list[str]:
    """Tables whose column may be NULL: such a row has no place."""
    whole = await whole_tables(connection)
    rows = [(row["table"], row["column"]) for row in await connection.fetch(_NULLABLE)]
    return sorted(table for table, column in rows if table in whole and column_of(whole[table]) == column)


async def make_plain(connection: asyncpg.Connection[Any], index: str) -> str:
    """Put a plain index in the place of a unique one; the definition that it had."""
    definition: str = await connection.fetchval("SELECT pg_get_indexdef($1::regclass)", index)
    table = await connection.fetchval("SELECT indrelid::regclass FROM pg_index WHERE indexrelid = $1::regclass", index)
    is_constraint = await connection.fetchval("SELECT EXISTS (SELECT FROM pg_constraint WHERE conname = $1)", index)
    await connection.execute(
        f'ALTER TABLE {table} DROP CONSTRAINT "{index}"' if is_constraint else f'DROP INDEX "{index}"'
    )
    await connection.execute(definition.replace("CREATE UNIQUE INDEX", "CREATE INDEX"))
    return definition


async def repeated(connection: asyncpg.Connection[Any], definition: str) -> list[Any]:
    """The keys of which there are two rows where a unique index of this definition would let one stand."""
    parts = re.fullmatch(r"CREATE UNIQUE INDEX \w+ ON (\S+) USING btree \(([^)]+)\)(?: (WHERE .+))?", definition)
    assert parts is not None, definition
    table, key, where = parts[1], parts[2], parts[3] or ""
    return await connection.fetch(f"SELECT {key} FROM {table} {where} GROUP BY {key} HAVING count(*) > 1")  # noqa: S608


# --- the statements -------------------------------------------------------------------------------------------------


class RecordedQuery(NamedTuple):
    """A statement, and the function of the store that asked it."""

    function: str
    text: str


@contextmanager
def recorded() -> Iterator[set[RecordedQuery]]:
    """The statements that the store gives to any connection meanwhile."""
    found: set[RecordedQuery] = set()

    def noting(genuine: Any) -> Any:
        def method(self: Any, query: str, *values: Any, **options: Any) -> Any:
            if (function := _asker()) is not None:
                found.add(RecordedQuery(function, query))
            return genuine(self, query, *values, **options)

        return method

    with patch.multiple(asyncpg.Connection, **{name: noting(getattr(asyncpg.Connection, name)) for name in _ASKING}):
        yield found


def _asker() -> str | None:
    """Of a read the method of the store that was called; of a commit the step of it. None outside of the store."""
    names = []
    frame: Any = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.startswith(_STORE):
            names.append((Path(frame.f_code.co_filename).name, frame.f_code.co_name))
        elif names:
            break
        frame = frame.f_back
    steps = [name for file, name in names if file == "commits.py" and name != "_fetch"]
    return steps[0] if steps else names[-1][1] if names else None


class Lint:
    """Asks a database for the plans of statements, over a connection with the settings of the store's."""

    def __init__(self, connection: asyncpg.Connection[Any], whole: Mapping[str, str]) -> None:
        self._connection = connection
        self._whole = whole

    async def unrouted(self, text: str) -> set[str]:
        """The distributed tables of which the statement does not name the column: each of their databases is asked.

        A column that equals one of another distributed table is named only if that is the other table's column, and is
        named too. An insert names its column, for every row has it; one that first looks for a row with the same key
        does not, where it looks in an index without the column.
        """
        steps = list(_steps(await self._plan(text)))
        scans = [(step, self._whole[step["Relation Name"]]) for step in steps if "Relation Name" in step]
        columns = {name: column_of(table) for step, table in scans for name in _names(step["Alias"])}
        equal = [pair for step in steps for pair in _equalities(step)]
        named: set[str] = set()
        for _ in equal:  # each may name one more
            named |= {one.partition(".")[0] for one, other in equal if _is_named(one, other, columns, named)}
        found = set()
        for step, table in scans:
            if step["Node Type"] == "ModifyTable":
                is_named = not await self._is_looked_for(step.get("Conflict Arbiter Indexes", []), column_of(table))
            else:
                is_named = not named.isdisjoint(_names(step["Alias"]))
            if column_of(table) and not is_named:
                found.add(table)
        return found

    async def _plan(self, text: str) -> dict[str, Any]:
        run = self._connection
        parameters = max((int(number) for number in re.findall(r"\$(\d+)", text)), default=0)
        values = f"({', '.join(['NULL'] * parameters)})" if parameters else ""
        await run.execute(f"PREPARE linted AS {text}")
        try:
            (row,) = await run.fetch(f"EXPLAIN (VERBOSE, FORMAT JSON) EXECUTE linted{values}")
        finally:
            await run.execute("DEALLOCATE linted")
        plan: dict[str, Any] = json.loads(row[0])[0]["Plan"]
        return plan

    async def _is_looked_for(self, indexes: Sequence[str], column: str) -> bool:
        rows = await self._connection.fetch(_INDEXES)
        return any(row["index"] in indexes and column not in row["columns"] for row in rows)


def _steps(step: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield step
    for below in step.get("Plans", ()):
        yield from _steps(below)


def _names(alias: str) -> set[str]:
    """What conditions call it: the partitions of a table named `a` are `a_1`, `a_2` and so on, but it may be `a`."""
    return {alias, re.sub(r"_\d+$", "", alias)}


def _is_named(one: str, other: str, columns: Mapping[str, str], named: set[str]) -> bool:
    """Whether `one` is the column of a distributed table, and equals something that is known where it is asked."""
    (alias, _, column), (other_alias, _, other_column) = one.partition("."), other.partition(".")
    if not column or columns.get(alias) != column:
        return False
    theirs = columns.get(other_alias, "")
    return not theirs or (other_alias in named and theirs == other_column == column)


def _equalities(step: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(alias.column, what it equals) of the conditions that every row of a step fulfils, both ways round."""
    if step["Node Type"] == "Bitmap Index Scan":  # perhaps one of several that are put together
        return
    for condition in (step[name] for name in _CONDITIONS if name in step):
        if " OR " in condition or "NOT " in condition:
            continue
        for one, other in _EQUAL.findall(condition):
            yield one, other
            yield other, one
