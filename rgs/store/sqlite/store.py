"""The main store on SQLite: the embedded default. One process holds a store by a lock file; one connection writes, one
reads.

WAL with synchronous=FULL: a commit is on the disk before it is reported (SQLite documentation, pragma synchronous).
The order of a commit (ARCHITECTURE 2.18, durable before said): compare versions, assign numbers, sign, insert, commit.
Numbers are used again only after a certain rollback. Another process's store and an unknown schema are refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import IO, Any, Final

from rgs.core.rounds import RoundStatus
from rgs.store import rows as sql
from rgs.store.changes import (
    Change,
    Draft,
    InstanceHandover,
    InstanceLostError,
    NewInstance,
    OvertakenError,
    Record,
    RequestSeenError,
    SessionRaceError,
    Signed,
    StoreAwayError,
    StoreError,
    StoreRefusedError,
    SwitchOff,
    SwitchOn,
    TableMovedError,
)
from rgs.store.group import Group, Known, SigningIdentity, parted, tables_moved
from rgs.store.interface import InstanceRow, Store, StoreReads
from rgs.store.launches import FORGET_LAUNCHES
from rgs.store.migrations import Migration, steps, verify_version
from rgs.store.table_records import SittingEnded
from rgs.store.table_rows import FORGET_CHAT, IS_LEFT, SEATS_SIGNED, VERSIONED
from rgs.store.writer import CommitOutcome, Writer

KIND: Final = "sqlite"
PAGE_SIZE: Final = "PRAGMA page_size = 2048"
"""Of a new file; one that is there keeps its own. A commit writes every page that it touches, whole."""
LOG_SIZE: Final = "PRAGMA wal_autocheckpoint = 8192"
"""The pages of the write-ahead log, 16 MiB (32 where pages have 4,096 bytes), before they are put into their places in
the file: a page that has changed many times by then is put there once.
"""
FORGOTTEN_MAX: Final = 500
"""Stored answers, or lines of chat, that one transaction drops."""

UPDATE_SESSION_WITHIN: Final = sql.SESSIONS.update(
    within=("status", "reserved_minor", "regulator_session_id", "regulator_participation_id")
)
"""The update of a session that keeps its status, what is reserved and the regulator's ids: SQLite writes every index
that has a column of the SET list, even where its value stays the same.
"""
UPDATE_ROUND_WITHIN: Final = sql.ROUNDS.update(within=("status", "end_ms", "phase"), is_versioned=True)
"""The same for a round that stays open, in solo play: there the phase is empty."""
_ROUND_STATUS, _ROUND_PHASE = ([column.name for column in sql.ROUNDS.moved].index(name) for name in ("status", "phase"))
_INSERT_INSTANCE: Final = (
    "INSERT INTO instances (instance, node, boot_no, worker, alive, statement_no, draw_no, start_ms)"
    " VALUES (?, ?, ?, ?, 1, 0, 0, ?)"
)
_ADVANCE_INSTANCE: Final = (
    "UPDATE instances SET statement_no = ?, draw_no = ? WHERE instance = ? AND alive = 1 AND statement_no = ?"
)
_SELECT_ALIVE: Final = "SELECT 1 FROM instances WHERE instance = ? AND alive = 1 AND statement_no = ?"
_SELECT_ENDED: Final = "SELECT 1 FROM instances WHERE instance = ? AND alive = 0"
_SELECT_VERSIONS: Final = {
    "sessions": "SELECT session_id, version FROM sessions WHERE session_id IN (SELECT value FROM json_each(?))",
    "tables": "SELECT table_id, version FROM tables WHERE table_id IN (SELECT value FROM json_each(?))",
    "sittings": "SELECT session_id, version FROM sittings WHERE session_id IN (SELECT value FROM json_each(?))",
}
_UTC_MS: Final = "SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
"""The time of the operating system, as SQLite reads it."""
_VERSIONED: Final = [(table.name, table.insert, table.update(is_versioned=True)) for table in VERSIONED]
_DELETE_ANSWERS: Final = "DELETE FROM answers WHERE id IN (SELECT id FROM answers ORDER BY id LIMIT ?) AND time_ms < ?"
_DELETE_REPORT: Final = "DELETE FROM stage_reports WHERE id = ?"
_OF_TABLES: Final = re.compile(r"\b(tables|table_rounds|sittings|table_configs)[.:]")
"""A key of these is taken, or a row of them has moved."""
_OF_DUTIES: Final = re.compile(r"\b(returns|finals|large_wins):|\b(returns_late|finals)\.")
"""A row has moved, or a key is taken, of what the process that leads a duty commits."""


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection with our settings. It is in autocommit; transactions are begun by hand."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    try:
        connection.execute("PRAGMA busy_timeout = 5000")
        if read_only:
            connection.execute("PRAGMA query_only = ON")
        else:
            connection.execute(PAGE_SIZE)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(LOG_SIZE)
    except BaseException:
        connection.close()
        raise
    return connection


def found_version(connection: sqlite3.Connection) -> int:
    """The schema of the store in this file, 0 if there is none."""
    try:
        row = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    except sqlite3.Error:
        row = None
    return int(row[0]) if row is not None and str(row[0]).isdecimal() else 0


def verify_schema(connection: sqlite3.Connection, path: Path) -> None:
    """StoreRefusedError unless the store has exactly the schema of this version."""
    verify_version(found_version(connection), KIND, str(path))


def open_verified(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection to a store that has the schema of this version. StoreRefusedError."""
    if not path.is_file():
        raise StoreRefusedError(f"there is no store at {path}: run `rgs init` first", path=path)
    with contextlib.ExitStack() as opened:
        try:
            connection = connect(path, read_only=read_only)
        except sqlite3.Error as error:
            raise StoreRefusedError(f"{path} cannot be opened ({type(error).__name__})", path=path) from None
        opened.callback(connection.close)
        verify_schema(connection, path)
        opened.pop_all()
    return connection


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Under the write lock: committed when the block is left, undone by any exception."""
    connection.execute("BEGIN IMMEDIATE")
    with _rolled_back_on_error(connection):
        yield
        connection.execute("COMMIT")


@contextlib.contextmanager
def _rolled_back_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def create_store(path: Path, store_epoch: str) -> None:
    """Make a new, empty store, whole or without a table; StoreRefusedError if there is one."""
    if path.exists():
        raise StoreRefusedError(f"there is a store already at {path}", path=path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(connect(path)) as connection, transaction(connection):
        _apply_steps(connection, steps(KIND))
        connection.execute("INSERT INTO meta (key, value) VALUES ('store_epoch', ?)", (store_epoch,))
        connection.execute("INSERT INTO meta (key, value) VALUES ('parties', '0')")
    path.chmod(0o600)


def migrate_store(path: Path) -> tuple[int, int]:
    """Bring the store to this version's schema, in one transaction; the schema before and after.

    StoreRefusedError while a server holds it, and for a schema that is newer.
    """
    if not path.is_file():
        raise StoreRefusedError(f"there is no store at {path}: run `rgs init` first", path=path)
    with holding(path), contextlib.closing(connect(path)) as connection, transaction(connection):
        before, known = found_version(connection), steps(KIND)
        if not known[0].version <= before <= known[-1].version:
            verify_version(before, KIND, str(path))
        _apply_steps(connection, [step for step in known if step.version > before])
    return before, known[-1].version


@contextlib.contextmanager
def holding(path: Path) -> Iterator[None]:
    """Hold the store while the block runs; StoreAwayError if another process has it."""
    with path.with_suffix(".lock").open("w", encoding="ascii") as lock:
        _hold(lock, path)
        yield


def _apply_steps(connection: sqlite3.Connection, todo: Sequence[Migration]) -> None:
    """Within the open transaction: `executescript` would end it."""
    for step in todo:
        statement = ""
        for line in step.whole.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                connection.execute(statement)
                statement = ""
        connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('schema', ?)", (str(step.version),))


def _hold(lock: IO[str], path: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise StoreAwayError(f"the store at {path} is in use by another process", path=path) from None


class SqliteReads(StoreReads):
    """Queries over one read-only connection."""

    def __init__(self, reader: sqlite3.Connection) -> None:
        self._reader = reader

    async def _rows(self, query: str, *values: Any) -> Sequence[Any]:
        return self._reader.execute(query, values).fetchall()

    async def _stream(self, query: str, *values: Any) -> AsyncIterator[Any]:
        for row in self._reader.execute(query, values):
            yield row

    async def close(self) -> None:
        self._reader.close()


class SqliteStore(SqliteReads, Store):
    """The open store. Reads run on the caller's thread, writes in the writer's."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise StoreRefusedError(f"there is no store at {path}: run `rgs init` first", path=path)
        self._lock = path.with_suffix(".lock").open("w", encoding="ascii")
        with contextlib.ExitStack() as opened:
            opened.callback(self._lock.close)
            _hold(self._lock, path)
            self._db = open_verified(path)
            opened.callback(self._db.close)
            reader = open_verified(path, read_only=True)
            opened.pop_all()
        SqliteReads.__init__(self, reader)
        Store.__init__(self, Writer(self.apply, self._owe))
        self._identity = SigningIdentity()
        """Changed in the writer's thread only, after a commit."""
        self._owed: list[Draft] = []
        """Discarded draws whose statement could not be committed yet: they come first in the next group."""
        self.large_win_minor = 0
        self.clock: Callable[[], int] = self._utc_ms
        """The store's time, UTC milliseconds. A server gives its own clock. It is asked in the writer's thread."""
        self._forget: list[tuple[int]] = []
        """Stage reports that the regulator has; they are deleted with the next group."""

    @property
    def draws_owed(self) -> int:
        return len(self._owed) + self.writer.draws_unknown

    @property
    def draw_window(self) -> int:
        return self._identity.draw_window

    def _owe(self, change: Change) -> None:
        if change.discard is not None:
            self._owed.append(change.discard)

    # --- the life of this process in the store --------------------------------------------------------------------

    def follow(self, now_ms: Callable[[], int]) -> None:
        self.clock = now_ms

    async def start_instance(self, new: NewInstance) -> Signed:
        group = Group(SigningIdentity(new.instance, new.signer), 0)
        signed = group.start(new.start, new.node_signer)
        with transaction(self._db):
            self._db.execute(_INSERT_INSTANCE, new.row)
            self._write(group, [])
        self._identity = group.identity
        return signed

    async def forget_reports(self, row_ids: Sequence[int]) -> None:
        self._forget.extend((row_id,) for row_id in row_ids)
        await self.writer.commit(Change())

    async def forget_answers(self, now_ms: int, before_ms: int) -> int:  # noqa: ARG002 - a table has room
        """The oldest first, at most FORGOTTEN_MAX at a time, so that no commit waits long."""
        return await asyncio.get_running_loop().run_in_executor(self.writer.thread, self._drop_answers, before_ms)

    def _drop_answers(self, before_ms: int) -> int:
        return self._db.execute(_DELETE_ANSWERS, (FORGOTTEN_MAX, before_ms)).rowcount

    async def forget_chat(self, before_ms: int) -> int:
        return await asyncio.get_running_loop().run_in_executor(self.writer.thread, self._drop_chat, before_ms)

    def _drop_chat(self, before_ms: int) -> int:
        return self._db.execute(FORGET_CHAT, (before_ms, FORGOTTEN_MAX)).rowcount

    async def forget_launches(self, before_ms: int) -> int:
        return await asyncio.get_running_loop().run_in_executor(self.writer.thread, self._drop_launches, before_ms)

    def _drop_launches(self, before_ms: int) -> int:
        return self._db.execute(FORGET_LAUNCHES, (before_ms, FORGOTTEN_MAX)).rowcount

    async def renew_lease(self, instance: str, lease_ms: int) -> bool:  # noqa: ARG002 - the lock file is the lease
        """A deleted lock file lets another process take the store. That process ends this one's row."""
        return await self._row(_SELECT_ENDED, instance) is None

    async def lapsed_instances(self) -> list[InstanceRow]:
        return [row for row in await self.instances(alive_only=True) if row.instance != self._identity.instance]

    async def lead(self, duty: str) -> bool:  # noqa: ARG002
        return True

    async def emit(self, payload: str) -> None:
        """No other process listens to a file."""

    async def listen(self, callback: Callable[[str], None]) -> None:
        """No other process tells anything over a file."""

    async def close(self) -> None:
        """Commit what waits and let go of the store."""
        await self.writer.close()
        self._reader.close()
        self._db.close()
        self._lock.close()

    # --- in the writer's thread -----------------------------------------------------------------------------------

    def apply(self, changes: list[Change]) -> Sequence[CommitOutcome]:
        """Commit the changes in one transaction. If that fails, each gets one of its own, so that none fails its
        neighbours. Without the write lock all fail: each alone would only wait as long again.
        """
        parts = list(parted(changes, is_session_once=False))
        if len(parts) > 1:
            return [outcome for part in parts for outcome in self.apply(part)]
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            self._owed.extend(change.discard for change in changes if change.discard is not None)
            return [_failure_of(change, error) for change in changes]
        try:
            return self._transact(changes)
        except Exception as error:  # noqa: BLE001 - whatever it was, it fails one change and leaves no draw unaccounted
            if len(changes) > 1:
                return [self.apply([change])[0] for change in changes]
            (change,) = changes
            if change.discard is not None:
                self._owed.append(change.discard)
                with contextlib.suppress(Exception):  # it stays owed, and comes first in the next group
                    self._db.execute("BEGIN IMMEDIATE")
                    self._transact([])
            return [_failure_of(change, error)]

    def _transact(self, changes: list[Change]) -> list[CommitOutcome]:
        # 1. The write lock is held. The versions of the sessions and tables that are to change or to stand.
        with _rolled_back_on_error(self._db):
            owed = list(self._owed)
            group = Group(self._identity, self.large_win_minor)
            # 2. Numbers, signatures, rows.
            outcomes = group.fill(changes, self._known(changes), owed)
            # 3. Insert.
            forgotten = list(self._forget)
            self._write(group, forgotten)
            if changes and changes[0].handover is not None:
                group = self._hand_over(changes[0].handover, group)
            # 4. Commit. The counters follow only a commit.
            self._commit(group)
        self._identity = group.identity
        del self._owed[: len(owed)]
        del self._forget[: len(forgotten)]
        return outcomes

    def _hand_over(self, handover: InstanceHandover, ended: Group) -> Group:
        self._db.execute(_INSERT_INSTANCE, handover.row)
        begun = ended.turned(handover)
        self._write(begun, [])
        return begun

    def _commit(self, group: Group) -> None:
        try:
            self._db.execute("COMMIT")
        except sqlite3.Error:
            # Outside a transaction it is unknown: read back before any number is used again.
            if self._db.in_transaction or not self._has_landed(group):
                raise

    def _has_landed(self, group: Group) -> bool:
        if group.statements:
            query = "SELECT statement_no FROM instances WHERE instance = ?"
            return bool(self._db.execute(query, (group.instance,)).fetchone() == (group.statement_no,))
        # Nothing was signed: one moved row of the group shows it. What moves none may be done again.
        where, row_id, version = group.moved
        return bool(where) and self._versions(where, [row_id]) == {row_id: version}

    def _known(self, changes: list[Change]) -> Known:
        sessions = [one.session.session_id for one in changes if one.session is not None and one.session.version > 1]
        guards = [one.guard for one in changes if one.guard is not None]
        tables = {guard.table_id for guard in guards} | tables_moved(changes)
        return Known(
            self._versions("sessions", sessions),
            self._versions("tables", sorted(tables)),
            self.clock() if guards else 0,
        )

    def _versions(self, where: str, ids: list[str]) -> dict[str, int]:
        return dict(self._db.execute(_SELECT_VERSIONS[where], (json.dumps(ids),)).fetchall()) if ids else {}

    def _utc_ms(self) -> int:
        now_ms: int = self._db.execute(_UTC_MS).fetchone()[0]
        return now_ms

    def _write(self, group: Group, forgotten: list[tuple[int]]) -> None:
        run = self._db.executemany
        for text, rows in (
            (sql.SESSIONS.insert, group.new_sessions),
            (sql.ROUNDS.insert, group.new_rounds),
            (sql.STATEMENTS.insert, group.statements),
            (sql.PRIVATES.insert, group.privates),
            (sql.ANSWERS.insert, group.answers),
            (sql.INSERT_OPERATION, group.operations),
            (sql.REPORTS.insert, group.reports),
            (sql.INSERT_DAY, group.day_rows()),
            (sql.INSERT_TOTALS, group.totals),
            (sql.INSERT_DAY_TOTALS, group.day_totals_rows()),
            (sql.INSERT_ARTIFACT, group.artifacts),
            (_DELETE_REPORT, forgotten),
        ):
            if rows:
                run(text, rows)
        for row in group.sessions:
            if self._db.execute(UPDATE_SESSION_WITHIN, row).rowcount != 1:
                self._db.execute(sql.UPDATE_SESSION, row)
        for (name, insert, update), (new, moved) in zip(_VERSIONED, group.versioned, strict=True):
            if new:
                run(insert, new)
            if moved and run(update, moved).rowcount != len(moved):
                raise sqlite3.IntegrityError(f"{name}: a row is not at the version below")
        if group.seats_signed:
            run(SEATS_SIGNED, group.seats_signed.items())
        for record in group.records:
            self._write_record(record)
        if any(isinstance(record, SwitchOff | SwitchOn) for record in group.records):
            self._db.execute(sql.STATE_CHANGED, ("switches",))
        updated = 0
        for row in group.rounds:
            is_within = row[_ROUND_STATUS] == RoundStatus.OPEN.value and not row[_ROUND_PHASE]
            text = UPDATE_ROUND_WITHIN if is_within else sql.UPDATE_ROUND
            updated += self._db.execute(text, row).rowcount
        if updated != len(group.rounds):
            raise sqlite3.IntegrityError("rounds: a round is not at the version below")
        self._verify_alive(group)
        if group.ends and run(sql.END_INSTANCE, group.ends).rowcount != len(group.ends):
            raise sqlite3.IntegrityError("instances: the instance to end is not alive")

    def _write_record(self, record: Record) -> None:
        for text in sql.texts_of(record):
            done = self._db.execute(text, astuple(record))
            if done.rowcount != 1 and isinstance(record, sql.ONE_ROW):
                raise sqlite3.IntegrityError(f"{sql.table_of(record)}: what is to change is not there")
        if isinstance(record, SittingEnded) and self._db.execute(IS_LEFT, (record.session_id,)).fetchone():
            raise sqlite3.IntegrityError("sittings: bets are reserved there")

    def _verify_alive(self, group: Group) -> None:
        """Write the new numbers to the instance's row, which must be alive, even where nothing was signed."""
        if group.statements:
            advance = (group.statement_no, group.draw_no, group.instance, group.first_no)
            is_alive = self._db.execute(_ADVANCE_INSTANCE, advance).rowcount == 1
        else:
            alive = (group.instance, group.first_no)
            is_alive = self._db.execute(_SELECT_ALIVE, alive).fetchone() is not None
        if not is_alive:
            if self._db.execute(_SELECT_ENDED, (group.instance,)).fetchone() is not None:
                raise InstanceLostError(f"instance {group.instance} has ended; nothing of it took effect")
            raise sqlite3.IntegrityError("instances: this instance is not alive in the store")


def _failure_of(change: Change, error: Exception) -> Exception:
    """The error of a change that failed by itself. Names of constraints are ours and hold no value of a row."""
    if not isinstance(error, sqlite3.Error):
        return error
    text = str(error)
    if isinstance(error, sqlite3.IntegrityError):
        if change.answer is not None and "answers." in text:
            return RequestSeenError("the request id was used before", request_id=change.answer.request_id)
        if _OF_TABLES.search(text):
            return TableMovedError("the table, or a seat of it, was changed by another request")
        if _OF_DUTIES.search(text):
            return OvertakenError("another process has done this meanwhile; nothing of it took effect")
        if "sessions.operator_reference" in text:
            return SessionRaceError("another session of the operator was opened with this operator_reference")
        if any(name in text for name in ("operations.", "rounds", "free_bets", "launches")):
            return SessionRaceError("the session was changed by another request")
    return StoreError(f"the store could not commit ({type(error).__name__}); nothing of it took effect")
