"""A store with a long history, made in minutes: rounds that were really played, multiplied set by set through the real
schema.

What is real: every table, column, constraint and index; the columns of rounds, statements, sessions and answers as the
server wrote them, with their sizes; the envelopes, byte for byte those of the rounds played. What is synthetic: ids,
numbers, times, references and players are counted up; hashes and request ids are random, so that they are no hashes of
the envelopes (such a store cannot be exported and replayed); all rounds are settled, `ROUNDS_A_SESSION` to a session,
which is closed; every stored answer is of this minute, so that none has been dropped yet; purchases, operations, and
the statements of opening and closing a session stand only for the sessions that were played. Indexes are made behind
the rows, so that their pages are fuller than those of a store that has grown. The finals of these rounds are in no
operator's list.

Refuses a store in use, and more than the disk is left with: `affordable`.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from bench.disk import sync_and_forget
from bench.figures import BenchError

ROUNDS_A_SESSION: Final = 100
HEAVY_PLAYER: Final = "history"
"""Every second session is this player's: the one whose history is long."""
HEAVY_SHARE: Final = 2
PLAYERS: Final = 9_973
ROUND_MS: Final = 1_000
"""Between the starts of two rounds."""
BYTES_A_ROUND: Final = 12_000
FREE_BYTES_MIN: Final = 20_000_000_000
STORE_BYTES_MAX: Final = 25_000_000_000
STEP_ROUNDS: Final = 20_000
INSTANCE: Final = "history-b1-w0"
TEMPLATES: Final = {
    "rounds": "SELECT * FROM rounds WHERE status = 'settled' ORDER BY id",
    "openings": (
        "SELECT s.* FROM rounds r JOIN statements s ON s.round_id = r.round_id AND s.kind = 'round_opening'"
        " WHERE r.status = 'settled' ORDER BY r.id"
    ),
    "finals": (
        "SELECT s.* FROM rounds r JOIN statements s ON s.round_id = r.round_id AND s.kind = 'round_final'"
        " WHERE r.status = 'settled' ORDER BY r.id"
    ),
    "answers": "SELECT * FROM answers WHERE method IN ('StartRound', 'Act') ORDER BY time_ms",
    "closed": "SELECT * FROM sessions WHERE status = 'closed' ORDER BY id",
    "opened": "SELECT * FROM sessions WHERE status = 'open' AND open_round_id = '' ORDER BY id",
}
"""Rows to copy, in both databases."""
_NUMBERS: Final = "WITH RECURSIVE g (i) AS (SELECT ? UNION ALL SELECT i + 1 FROM g WHERE i + 1 < ?) "
_SESSION: Final = f"printf('00S%023d', g.i / {ROUNDS_A_SESSION})"
_PLAYER: Final = (
    f"CASE WHEN g.i / {ROUNDS_A_SESSION} % {HEAVY_SHARE} = 0 THEN '{HEAVY_PLAYER}'"
    f" ELSE printf('player-%d', g.i / {ROUNDS_A_SESSION} % {PLAYERS}) END"
)
_ROUND: Final = "printf('00R%023d', g.i)"


def affordable(folder: Path, rounds: int) -> int:
    """So many rounds, or as many as the disk takes."""
    free = shutil.disk_usage(folder).free - FREE_BYTES_MIN
    return max(0, min(rounds, min(free, STORE_BYTES_MAX) // BYTES_A_ROUND))


def fill(path: Path, rounds: int, open_sessions: int, end_ms: int, emit: Callable[[str], None]) -> None:
    """Add so many settled rounds that ended before `end_ms`, and open sessions, to a store at rest in which some rounds
    were settled, some sessions closed, and some left open. The file is on the disk, and out of its cache, afterwards.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for setting in ("locking_mode = EXCLUSIVE", "journal_mode = OFF", "synchronous = OFF", "cache_size = -400000"):
            db.execute(f"PRAGMA {setting}")
        db.execute("PRAGMA threads = 2")
        _take_templates(db)
        indexes = db.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
            " AND tbl_name IN ('rounds', 'statements', 'answers', 'sessions')"
        ).fetchall()
        for name, _ in indexes:
            db.execute(f"DROP INDEX {name}")
        _add_instance(db)
        for first in range(0, rounds, STEP_ROUNDS):
            emit(f"filling: {first} of {rounds} rounds")
            db.execute("BEGIN")
            _add_rounds(db, first, min(rounds, first + STEP_ROUNDS), end_ms - rounds * ROUND_MS, end_ms)
            db.execute("COMMIT")
        _add_sessions(db, rounds, open_sessions)
        for name, text in indexes:
            emit(f"filling: index {name}")
            db.execute(text)
        db.execute("PRAGMA journal_mode = WAL")
    sync_and_forget(path)


def _take_templates(db: sqlite3.Connection) -> None:
    """Rows to copy, numbered from 0."""
    for name, text in TEMPLATES.items():
        db.execute(f"CREATE TEMP TABLE t_{name} AS SELECT row_number() OVER () - 1 AS n, * FROM ({text})")  # noqa: S608
        db.execute(f"CREATE UNIQUE INDEX temp.t_{name}_n ON t_{name} (n)")
        if not _count(db, name):
            raise BenchError(f"nothing to copy: the store has no {name}")
    if len({_count(db, name) for name in ("rounds", "openings", "finals")}) != 1:
        raise BenchError("a settled round has not its two statements")


def _count(db: sqlite3.Connection, template: str) -> int:
    return int(db.execute(f"SELECT count(*) FROM t_{template}").fetchone()[0])  # noqa: S608


def _add_instance(db: sqlite3.Connection) -> None:
    db.execute(
        "INSERT INTO instances (instance, node, boot_no, worker, alive, statement_no, draw_no, start_ms, end_ms)"
        " VALUES (?, 'history', 1, 0, 0, 0, 0, 1, 2)",
        (INSTANCE,),
    )


def _add_rounds(db: sqlite3.Connection, first: int, last: int, from_ms: int, end_ms: int) -> None:
    start = f"{from_ms} + g.i * {ROUND_MS}"
    common = {"session_id": _SESSION, "round_id": _ROUND, "instance": f"'{INSTANCE}'"}
    of_round = {
        **common,
        "player": _PLAYER,
        "round_no": f"g.i % {ROUNDS_A_SESSION} + 1",
        "draw_no": "g.i + 1",
        "start_ms": start,
        "end_ms": f"{start} + {ROUND_MS // 2}",
        "opening_hash": "lower(hex(randomblob(32)))",
    }
    _copy(db, "rounds", "rounds", of_round, first, last)
    for number, template in enumerate(("openings", "finals")):
        of_statement = {
            **common,
            "statement_no": f"2 * g.i + {number + 1}",
            "link_no": f"g.i % {ROUNDS_A_SESSION} * 2 + {number + 3}",
            "hash": "randomblob(32)",
        }
        _copy(db, "statements", template, of_statement, first, last)
    # The answers of the rounds played, as many to a round as there.
    per_round = _count(db, "answers") / _count(db, "rounds")
    request_id = "lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || hex(randomblob(13)))"
    _copy(
        db, "answers", "answers", {"request_id": f"substr({request_id}, 1, 36)", "time_ms": str(end_ms)},
        int(first * per_round), int(last * per_round),
    )  # fmt: skip
    db.execute(
        "INSERT INTO totals (day, operator, player, game, currency, rounds, staked_minor, returned_minor, void_rounds,"
        " void_minor) SELECT date(end_ms / 1000, 'unixepoch'), operator, player, ruleset_id, 'EUR', count(*),"
        " sum(staked_minor), sum(returned_minor), 0, 0 FROM rounds WHERE instance = ? AND draw_no > ? AND draw_no <= ?"
        " GROUP BY 1, 2, 3, 4 ON CONFLICT (operator, day, player, game, currency) DO UPDATE SET"
        " rounds = rounds + excluded.rounds, staked_minor = staked_minor + excluded.staked_minor,"
        " returned_minor = returned_minor + excluded.returned_minor",
        (INSTANCE, first, last),
    )


def _add_sessions(db: sqlite3.Connection, rounds: int, open_sessions: int) -> None:
    db.execute("BEGIN")
    player = _PLAYER.replace(f"g.i / {ROUNDS_A_SESSION}", "g.i")
    numbered = {"operator_reference": "printf('history-%d', g.i)", "player": player}
    closed = {**numbered, "session_id": "printf('00S%023d', g.i)"}
    _copy(db, "sessions", "closed", closed, 0, -(-rounds // ROUNDS_A_SESSION))
    opened = dict.fromkeys(("operator_reference", "player"), "printf('open-%d', g.i)")
    opened["session_id"] = "printf('00T%023d', g.i)"
    _copy(db, "sessions", "opened", opened, 0, open_sessions)
    db.execute("COMMIT")


def _copy(db: sqlite3.Connection, table: str, template: str, other: Mapping[str, str], first: int, last: int) -> None:
    """A row for each number from `first` on, below `last`: the template's, but for `id` and the columns in `other`."""
    if last <= first:
        return
    columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[1] != "id"]
    values = ", ".join(other.get(column, f"t.{column}") for column in columns)
    db.execute(
        f"{_NUMBERS} INSERT INTO {table} ({', '.join(columns)}) SELECT {values}"  # noqa: S608
        f" FROM g CROSS JOIN t_{template} t ON t.n = g.i % {_count(db, template)}",
        (first, last),
    )
