"""The SQL that only PostgreSQL runs, and the translation of shared queries for it.

Texts are put together from names of columns only; every value is a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count
from typing import Any, Final

from rgs.store import launches, rows, table_rows
from rgs.store.interface import INSTANCES
from rgs.store.rows import ANSWERS, DAY_TOTALS, PRIVATES, REPORTS, ROUNDS, SESSIONS, STATEMENTS, TOTALS
from rgs.store.tables import Column, Table, listed

_PLACEHOLDER: Final = re.compile(r"\?(\d*)")
_HINT: Final = re.compile(r"INDEXED BY \w+ ?")
_NAMES: Final = (
    ("x''", "''::bytea"),
    ("COLLATE BINARY", 'COLLATE "C"'),
    ("IN (SELECT value FROM json_each(?))", "= ANY (ARRAY(SELECT json_array_elements_text(?)))"),
    ("FROM json_each(?)", "FROM json_array_elements(CAST(? AS json))"),
)
"""What SQLite calls it, and what PostgreSQL does: no bytes, the order of bytes, one of a JSON list of texts, and each
element of a JSON list.
"""


@cache
def postgres_text(query: str) -> str:
    """A query of the store as PostgreSQL reads it: numbered parameters, no hints of SQLite's, its own names."""
    numbers = count(1)
    plain = _HINT.sub("", query)
    for theirs, ours in _NAMES:
        plain = plain.replace(theirs, ours)
    return _PLACEHOLDER.sub(lambda found: "$" + (found[1] or str(next(numbers))), plain)


def _arrays(columns: Sequence[Column], numbers: Iterator[int]) -> str:
    """New rows as `n`: each column is one parameter, an array of its values."""
    arrays = ["".join(["$", str(next(numbers)), "::", column.type, "[]"]) for column in columns]
    return "".join(["unnest(", ", ".join(arrays), ") AS n (", listed(columns), ")"])


def _insert(table: str, columns: Sequence[Column], numbers: Iterator[int]) -> str:
    names = listed(columns)
    return "".join(["INSERT INTO ", table, " (", names, ") SELECT ", names, " FROM ", _arrays(columns, numbers)])


def _taken(columns: Sequence[Column]) -> str:
    return ", ".join(column.name + " = n." + column.name for column in columns)


def _last(table: Table[Any]) -> tuple[Column, ...]:
    """A table that players share keeps the last row number, as a session does."""
    return (_LAST_ID,) if table is table_rows.TABLES else ()


def _move(table: Table[Any], more: tuple[Column, ...]) -> str:
    """The update of rows of a table that has versions. It answers a row for each that stood one version below."""
    key = "".join([" AND t." + name + " = n." + name for name in table.key])
    parts = ["UPDATE ", table.name, " AS t SET ", _taken((*table.changing, *more)), " FROM "]
    parts += [_arrays((*table.moved, *more), count(1))]
    parts += [" WHERE t.version = n.version - 1", key, " RETURNING 1"]
    return "".join(parts)


def _commit() -> str:
    """One group of changes (`rgs.store.group`) as one statement. Its parameters are the columns of COMMIT_ROWS, then
    the reports to forget, then the instance's new numbers. It answers how many sessions, rounds and instances it moved.
    """
    numbers = count(1)
    moved, dealt, played, signed, kept, answered, reported, counted, added = COMMIT_ROWS
    sums = [
        "sum(n." + column.name + ")::bigint" if column in TOTALS.changing else "n." + column.name for column in counted
    ]
    key = ", ".join("n." + name for name in TOTALS.key)
    parts = [
        *("WITH moved AS (UPDATE sessions AS s SET ", _taken((*SESSIONS.changing, _LAST_ID)), " FROM "),
        *(_arrays(moved, numbers), " WHERE s.session_id = n.session_id AND s.version = n.version - 1 RETURNING 1)"),
        *(", dealt AS (", _insert("rounds", dealt, numbers), ")"),
        *(", played AS (UPDATE rounds AS r SET ", _taken(ROUNDS.changing), " FROM ", _arrays(played, numbers)),
        " WHERE r.session_id = n.session_id AND r.round_id = n.round_id AND r.seat_no = n.seat_no",
        " AND r.version = n.version - 1 RETURNING 1)",
        *(", signed AS (", _insert("statements", signed, numbers), ")"),
        *(", kept AS (", _insert("privates", kept, numbers), ")"),
        *(", answered AS (", _insert("answers", answered, numbers), ")"),
        *(", reported AS (", _insert("stage_reports", reported, numbers), ")"),
        # In the order of the key, so that two nodes never wait for one another in a circle.
        *(", counted AS (INSERT INTO totals (", listed(counted), ") SELECT ", ", ".join(sums), " FROM "),
        *(_arrays(counted, numbers), " GROUP BY ", key, " ORDER BY ", key, TOTALS.adding(), ")"),
        *(", added AS (", _insert("day_totals", added, numbers), DAY_TOTALS.adding(), ")"),
    ]
    reports, statement_no, draw_no, last_id, instance, first_no = ("$" + str(next(numbers)) for _ in range(6))
    parts += [
        *(", forgotten AS (DELETE FROM stage_reports WHERE id = ANY(", reports, "::bigint[]))"),
        *(", advanced AS (UPDATE instances SET statement_no = ", statement_no, ", draw_no = ", draw_no),
        *(", last_id = ", last_id, " WHERE instance = ", instance, " AND alive = 1 AND statement_no = ", first_no),
        " RETURNING 1) SELECT (SELECT count(*) FROM moved), (SELECT count(*) FROM played),",
        " (SELECT count(*) FROM advanced)",
    ]
    return "".join(parts)


_ID: Final = Column("id")
_LAST_ID: Final = Column("last_id")
COMMIT_ROWS: Final = (
    (*SESSIONS.moved, _LAST_ID),
    (_ID, *ROUNDS.columns),
    ROUNDS.moved,
    (_ID, *STATEMENTS.columns),
    PRIVATES.columns,
    ANSWERS.columns,
    (_ID, *REPORTS.columns),
    TOTALS.columns,
    DAY_TOTALS.columns,
)
"""Columns of the rows of a group: sessions, new rounds, rounds, statements, privates, answers, reports, totals, and
totals of days.
"""
NEW_SESSIONS: Final = (_ID, *SESSIONS.written, _LAST_ID)

CLOCK_SQL: Final = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
CLOCK: Final = "SELECT " + CLOCK_SQL
COMMIT: Final = _commit()
OPEN_SESSIONS: Final = _insert("sessions", NEW_SESSIONS, count(1))
VERSIONED_ROWS: Final = tuple(
    (table, _last(table), _insert(table.name, (*table.columns, *_last(table)), count(1)), _move(table, _last(table)))
    for table in table_rows.VERSIONED
)
"""The tables that have versions: what stands behind the columns of their rows, the insert of new rows and the update of
others. Parameters as for COMMIT.
"""
SEATS_SIGNED: Final = """
    WITH held AS (
      SELECT round_id FROM table_rounds WHERE round_id = ANY($1::text[]) ORDER BY round_id FOR NO KEY UPDATE
    )
    UPDATE table_rounds AS t SET seats_ms = greatest(t.seats_ms, n.seats_ms), last_id = greatest(t.last_id, $3)
    FROM held JOIN unnest($1::text[], $2::bigint[]) AS n (round_id, seats_ms) USING (round_id)
    WHERE t.round_id = held.round_id
"""
"""The seats of these rounds have signed something, at these times. The rows are locked in the order of the key, so that
two nodes never wait for one another in a circle.
"""
LOCK_SESSIONS: Final = """
    WITH locked AS (
      SELECT session_id, version, last_id FROM sessions WHERE session_id = ANY($1::text[])
      ORDER BY session_id FOR UPDATE
    )
    SELECT session_id, version, last_id, 0::bigint FROM locked
    UNION ALL SELECT '', 0, 0, (extract(epoch FROM clock_timestamp()) * 1000)::bigint
"""
"""The last row is the database's clock in milliseconds."""
LOCK_TABLES: Final = """
    SELECT table_id, version, greatest(last_id,
    (SELECT r.last_id FROM table_rounds r WHERE r.round_id = tables.round_id))
    FROM tables WHERE table_id = ANY($1::text[]) ORDER BY table_id FOR UPDATE
"""
"""Of tables that are to change; the last row number of each, and of the seats of its round. These are durable before
the step that follows them is computed.
"""
HOLD_TABLES: Final = """
    SELECT table_id, version, last_id FROM tables WHERE table_id = ANY($1::text[]) ORDER BY table_id FOR SHARE
"""
"""Of tables that are to stand: many groups may hold one at a time."""
FOLLOW_TABLES: Final = """
    SELECT COALESCE(max(last_id), 0) FROM tables WHERE table_id = ANY($1::text[])
"""
"""The last row number of tables whose seats are opened or end: they may move meanwhile."""
LOCK_INSTANCE: Final = """
    SELECT alive, statement_no, draw_no, last_id, (
      lease_ms < (extract(epoch FROM clock_timestamp()) * 1000)::bigint
      OR (node, worker) IN (SELECT o.node, o.worker FROM instances o WHERE o.instance = $2)
    ) AS lapsed FROM instances WHERE instance = $1 FOR UPDATE
"""
"""Whether it has lapsed: its lease has run out, or the same worker of the same node has begun anew."""
END_INSTANCE: Final = postgres_text(rows.END_INSTANCE)
INSERT_INSTANCE: Final = """
    INSERT INTO instances (instance, node, boot_no, worker, alive, statement_no, draw_no, start_ms, slot, last_id,
    lease_ms, schema_no) VALUES ($1, $2, $3, $4, 1, 0, 0, $5, $6, $7,
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $8, $9)
"""
BOOT_BEFORE: Final = """
    SELECT instance, alive FROM instances WHERE node = $1 AND worker = $2 ORDER BY boot_no DESC LIMIT 1 FOR UPDATE
"""
LOCK_SLOTS: Final = "SELECT pg_advisory_xact_lock(hashtext('rgs slots'))"
FREE_SLOT: Final = """
    SELECT (SELECT min(n) FROM generate_series(0, 4095) AS n
    WHERE NOT EXISTS (SELECT FROM instances WHERE alive = 1 AND slot = n)),
    (SELECT COALESCE(max(last_id), 0) FROM instances),
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint
"""
"""A slot, what its first number must stand behind, and the database's clock."""
INSERT_OPERATION: Final = postgres_text(rows.INSERT_OPERATION)
INSERT_DAY: Final = postgres_text(rows.INSERT_DAY)
INSERT_ARTIFACT: Final = postgres_text(rows.INSERT_ARTIFACT)
STATE_CHANGED: Final = postgres_text(rows.STATE_CHANGED)
READ_BACK: Final = """
    UPDATE instances SET alive = alive WHERE instance = $1 RETURNING last_id
"""
"""A write on the instance's row: it waits for a transaction that still holds the row, and once its commit is
replicated, all that it saw is replicated, too.
"""
RENEW_LEASE: Final = """
    UPDATE instances SET lease_ms = (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $2
    WHERE instance = $1 AND alive = 1 RETURNING 1
"""
LAPSED: Final = INSTANCES.select + (  # noqa: S608 - names of columns, no values
    "WHERE alive = 1 AND instance <> $1 AND ( "
    "lease_ms < (extract(epoch FROM clock_timestamp()) * 1000)::bigint "
    "OR (node, worker) IN (SELECT node, worker FROM instances WHERE instance = $1) "
    ") ORDER BY start_ms, instance "
)
RECORD_SQL: Final = {record: postgres_text(text) for record, text in rows.RECORD_SQL.items()}
"""How the records of a change are written. The fields of a record are the parameters, in order."""
IS_LEFT: Final = postgres_text(table_rows.IS_LEFT)
FORGET_CHAT: Final = table_rows.FORGET_CHAT + " RETURNING 1"
FORGET_LAUNCHES: Final = postgres_text(launches.FORGET_LAUNCHES + " RETURNING 1")
