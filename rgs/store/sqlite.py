"""The main store on SQLite: the embedded default. One process a store, held by a lock file; one connection writes, one
reads.

WAL with synchronous=FULL: a commit is on the disk before it is reported (SQLite documentation, pragma synchronous).
The writing half is the heart of ARCHITECTURE 2.18: compare versions, assign numbers, sign, insert, commit; numbers
are used again only after a rollback that is certain. Refuses a store that another process holds, and a schema that it
does not know.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, Final

from rgs.core.rounds import Round, RoundStatus
from rgs.core.sessions import Session
from rgs.core.statements import KINDS, Signer, format_canonical, leaf_hash, seal_envelope
from rgs.store.changes import Change, Draft, RequestSeenError, SessionRaceError, Signed, StoreError, StoreRefusedError
from rgs.store.reads import SqliteReads
from rgs.store.rows import (
    INSERT_AFFAIR,
    INSERT_REPORT,
    INSERT_ROUND,
    INSERT_SESSION,
    UPDATE_ROUND,
    UPDATE_SESSION,
    affair_insert,
    report_insert,
    round_insert,
    round_update,
    session_insert,
    session_update,
)
from rgs.store.writer import Outcome, Writer

SCHEMA_VERSION: Final = 1
FRESH_MAX: Final = 10_000
"""Sessions kept in memory, some kilobytes each."""

_INSERT_STATEMENT: Final = (
    "INSERT INTO statements (instance, statement_no, kind, session_id, link_no, round_id, seat_no, hash, envelope)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_PRIVATE: Final = "INSERT INTO privates (instance, statement_no, private) VALUES (?, ?, ?)"
_INSERT_ANSWER: Final = (
    "INSERT INTO answers (party, method, request_id, digest, body, instance, statement_no, time_ms)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_ARTIFACT: Final = "INSERT OR IGNORE INTO artifacts (sha256, name, content) VALUES (?, ?, ?)"
_INSERT_INSTANCE: Final = (
    "INSERT INTO instances (instance, node, boot_no, worker, alive, statement_no, draw_no, start_ms)"
    " VALUES (?, ?, ?, ?, 1, 0, 0, ?)"
)
_ADVANCE_INSTANCE: Final = (
    "UPDATE instances SET statement_no = ?, draw_no = ? WHERE instance = ? AND alive = 1 AND statement_no = ?"
)
_SELECT_ALIVE: Final = "SELECT 1 FROM instances WHERE instance = ? AND alive = 1 AND statement_no = ?"
_END_INSTANCE: Final = "UPDATE instances SET alive = 0, end_ms = ? WHERE instance = ? AND alive = 1"
_SELECT_VERSIONS: Final = (
    "SELECT session_id, version FROM sessions WHERE session_id IN (SELECT value FROM json_each(?))"
)
_DELETE_REPORT: Final = "DELETE FROM stage_reports WHERE id = ?"


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection with the house's settings; autocommit, transactions are begun by hand."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    try:
        connection.execute("PRAGMA busy_timeout = 5000")
        if read_only:
            connection.execute("PRAGMA query_only = ON")
        else:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def create_store(path: Path, store_epoch: str) -> None:
    """Make a new, empty store, whole or without a table; StoreRefusedError if there is one."""
    if path.exists():
        raise StoreRefusedError(f"there is a store already at {path}", path=path)
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = connect(path)
    try:
        script = resources.files("rgs.store").joinpath("migrations/0001.sql").read_text(encoding="ascii")
        connection.executescript("BEGIN IMMEDIATE;\n" + script)
        connection.execute("INSERT INTO meta (key, value) VALUES ('schema', ?)", (str(SCHEMA_VERSION),))
        connection.execute("INSERT INTO meta (key, value) VALUES ('store_epoch', ?)", (store_epoch,))
        connection.execute("INSERT INTO meta (key, value) VALUES ('parties', '0')")
        connection.execute("COMMIT")
    finally:
        connection.close()
    path.chmod(0o600)


class SqliteStore(SqliteReads):
    """The open store. Reads run on the caller's thread, writes in the writer's."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise StoreRefusedError(f"there is no store at {path}: run `rgs init` first", path=path)
        self._lock = path.with_suffix(".lock").open("w", encoding="ascii")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise StoreRefusedError(f"the store at {path} is in use by another process", path=path) from None
        with contextlib.ExitStack() as opened:
            opened.callback(self._lock.close)
            try:
                self._db = connect(path)
                opened.callback(self._db.close)
                reader = connect(path, read_only=True)
                opened.callback(reader.close)
            except sqlite3.Error as error:
                raise StoreRefusedError(f"{path} cannot be opened ({type(error).__name__})", path=path) from None
            super().__init__(reader)
            self.verify_schema(SCHEMA_VERSION)
            opened.pop_all()
        self.path = path
        self.writer = Writer(self.apply)
        self._instance = ""
        self._signer: Signer | None = None
        self._statement_no = 0
        self._draw_no = 0
        self._owed: list[Draft] = []
        """Discarded draws whose statement could not be committed yet: they go first into the next group."""
        self._fresh: dict[str, tuple[Session, Round | None]] = {}
        """Sessions as this process committed them last, each with its round in play."""
        self._session_of: dict[str, str] = {}
        """Sessions of the rounds in play that are in memory."""
        self._forget: list[tuple[int]] = []
        """Stage reports that the regulator has; they are deleted with the next group."""

    @property
    def draws_owed(self) -> int:
        """Draws that were not used and whose account is not durable yet: they are in flight still."""
        return len(self._owed)

    # --- the life of this process in the store --------------------------------------------------------------------

    def start_instance(
        self, *, instance: str, node: str, boot_no: int, worker: int, start_ms: int, start: Draft, node_signer: Signer,
        signer: Signer,
    ) -> Signed:  # fmt: skip
        """Insert the instance's row and its statement 1, signed by the node key. From here on `apply` signs as this
        instance.
        """
        body = {**start.body, "instance": instance, "kind": start.kind, "statement_no": "1"}
        signed = _sign(start.kind, body, instance, 1, node_signer)
        self._db.execute("BEGIN IMMEDIATE")
        with self._rolled_back_on_error():
            self._db.execute(_INSERT_INSTANCE, (instance, node, boot_no, worker, start_ms))
            self._db.execute(_INSERT_STATEMENT, (instance, 1, start.kind, "", 0, "", 0, signed.hash, signed.envelope))
            self._db.execute(_ADVANCE_INSTANCE, (1, 0, instance, 0))
            self._db.execute("COMMIT")
        self._instance, self._signer, self._statement_no = instance, signer, 1
        return signed

    async def commit(self, change: Change) -> tuple[Signed, ...]:
        """Commit with the next group; the signed statements of the change, in the order of its drafts.

        Raises SessionRaceError, RequestSeenError, StoreError; nothing took effect then, but the account of a
        discarded draw.
        """
        session_id = change.session.session_id if change.session is not None else ""
        self._fresh.pop(session_id, None)
        signed = await self.writer.commit(change)
        if change.session is not None:
            self._remember(change, change.session, signed)
        return signed

    async def session(self, session_id: str) -> Session | None:
        """The session; from memory where this process committed it last."""
        fresh = self._fresh.get(session_id)
        return fresh[0] if fresh is not None else await super().session(session_id)

    async def round(self, round_id: str) -> Round | None:
        """The round; from memory where it is the one in play of a session in memory."""
        fresh = self._fresh.get(self._session_of.get(round_id, ""))
        if fresh is not None and fresh[1] is not None and fresh[1].round_id == round_id:
            return fresh[1]
        return await super().round(round_id)

    def _remember(self, change: Change, session: Session, signed: tuple[Signed, ...]) -> None:
        """Keep what was just committed: the next call of the session most often wants it.

        Filled behind a commit only, by the one process that may write. A stale copy could do no harm, for every commit
        compares versions, and is forgotten when one fails.
        """
        links = [statement for statement in signed if KINDS[statement.kind].linked]
        if links:
            session = replace(session, link_no=session.link_no + len(links), link_hash=links[-1].hash.hex())
        round_ = change.round
        if round_ is not None:
            self._session_of.pop(round_.round_id, None)
            if round_.status is not RoundStatus.OPEN:
                round_ = None
            elif round_.version == 1:
                round_ = replace(round_, opening_hash=signed[-1].hash.hex())
        if len(self._fresh) >= FRESH_MAX:
            self._fresh.clear()
            self._session_of.clear()
        self._fresh[session.session_id] = (session, round_)
        if round_ is not None:
            self._session_of[round_.round_id] = session.session_id

    async def forget_reports(self, row_ids: Sequence[int]) -> None:
        """Drop queued stage reports: the regulator has them."""
        self._forget.extend((row_id,) for row_id in row_ids)
        await self.writer.commit(Change())

    async def close(self) -> None:
        """Commit what waits and let go of the store."""
        await self.writer.close()
        self._reader.close()
        self._db.close()
        self._lock.close()

    # --- in the writer's thread -----------------------------------------------------------------------------------

    def apply(self, changes: list[Change]) -> Sequence[Outcome]:
        """Commit the changes in one transaction; if that fails, each in one of its own, so that one cannot fail its
        neighbours. Without the write lock all fail: each alone would only wait as long again.
        """
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
                with contextlib.suppress(Exception):  # it stays owed, and goes first with the next group
                    self._db.execute("BEGIN IMMEDIATE")
                    self._transact([])
            return [_failure_of(change, error)]

    def _transact(self, changes: list[Change]) -> list[Outcome]:
        # 1. The write lock is held. The versions of the sessions that are to change.
        with self._rolled_back_on_error():
            outcomes: list[Outcome] = []
            group = _Group(self._instance, self._statement_no, self._draw_no, self._signer)
            known = self._versions(changes)
            for draft in self._owed:
                group.sign(draft)
            for change in changes:
                session = change.session
                if session is not None and known.get(session.session_id, 0) != session.version - 1:
                    if change.discard is not None:
                        group.sign(change.discard)
                    outcomes.append(SessionRaceError("the session was changed by another request"))
                    continue
                if session is not None:
                    known[session.session_id] = session.version
                # 2. Numbers, signatures, rows.
                outcomes.append(group.add(change))
            # 3. Insert.
            forgotten = list(self._forget)
            self._write(group, forgotten)
            # 4. Commit. The counters follow only a commit.
            self._commit(group)
        self._statement_no, self._draw_no = group.statement_no, group.draw_no
        self._owed.clear()
        del self._forget[: len(forgotten)]
        return outcomes

    def _commit(self, group: _Group) -> None:
        try:
            self._db.execute("COMMIT")
        except sqlite3.Error:
            # Outside a transaction it is unknown: read back before any number is used again.
            if self._db.in_transaction or not self._has_landed(group):
                raise

    def _has_landed(self, group: _Group) -> bool:
        if group.statements:
            query = "SELECT statement_no FROM instances WHERE instance = ?"
            return bool(self._db.execute(query, (self._instance,)).fetchone() == (group.statement_no,))
        # Nothing was signed: any session of the group tells. What moves no session may be done again.
        session_id, version = group.moved
        return bool(self._db.execute(_SELECT_VERSIONS, (json.dumps([session_id]),)).fetchone() == (session_id, version))

    def _versions(self, changes: list[Change]) -> dict[str, int]:
        ids = [
            change.session.session_id for change in changes if change.session is not None and change.session.version > 1
        ]
        if not ids:
            return {}
        return dict(self._db.execute(_SELECT_VERSIONS, (json.dumps(ids),)).fetchall())

    def _write(self, group: _Group, forgotten: list[tuple[int]]) -> None:
        run = self._db.executemany
        if group.new_sessions:
            run(INSERT_SESSION, group.new_sessions)
        if group.sessions:
            run(UPDATE_SESSION, group.sessions)
        if group.new_rounds:
            run(INSERT_ROUND, group.new_rounds)
        if group.rounds and run(UPDATE_ROUND, group.rounds).rowcount != len(group.rounds):
            raise sqlite3.IntegrityError("rounds: a round is not at the version below")
        if group.statements:
            run(_INSERT_STATEMENT, group.statements)
        if group.privates:
            run(_INSERT_PRIVATE, group.privates)
        if group.answers:
            run(_INSERT_ANSWER, group.answers)
        if group.affairs:
            run(INSERT_AFFAIR, group.affairs)
        if group.reports:
            run(INSERT_REPORT, group.reports)
        if group.artifacts:
            run(_INSERT_ARTIFACT, group.artifacts)
        if forgotten:
            run(_DELETE_REPORT, forgotten)
        if group.statements:
            advance = (group.statement_no, group.draw_no, self._instance, self._statement_no)
            is_alive = self._db.execute(_ADVANCE_INSTANCE, advance).rowcount == 1
        else:
            alive = (self._instance, self._statement_no)
            is_alive = self._db.execute(_SELECT_ALIVE, alive).fetchone() is not None
        if not is_alive:
            raise sqlite3.IntegrityError("instances: this instance is not alive in the store")
        if group.ends and run(_END_INSTANCE, group.ends).rowcount != len(group.ends):
            raise sqlite3.IntegrityError("instances: the instance to end is not alive")

    @contextlib.contextmanager
    def _rolled_back_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise


class _Group:
    """The rows of one transaction, with numbers and signatures assigned in order."""

    def __init__(self, instance: str, statement_no: int, draw_no: int, signer: Signer | None) -> None:
        self._instance = instance
        self._signer = signer
        self.statement_no = statement_no
        self.draw_no = draw_no
        self.new_sessions: list[tuple[Any, ...]] = []
        self.sessions: list[tuple[Any, ...]] = []
        self.new_rounds: list[tuple[Any, ...]] = []
        self.rounds: list[tuple[Any, ...]] = []
        self.statements: list[tuple[Any, ...]] = []
        self.privates: list[tuple[Any, ...]] = []
        self.answers: list[tuple[Any, ...]] = []
        self.affairs: list[tuple[Any, ...]] = []
        self.reports: list[tuple[Any, ...]] = []
        self.artifacts: list[tuple[Any, ...]] = []
        self.ends: list[tuple[int, str]] = []
        self.moved: tuple[str, int] = ("", 0)
        """Id and new version of a session of the group."""

    def sign(self, draft: Draft, link: tuple[str, int, str] = ("", 0, "")) -> Signed:
        """Give the draft its numbers, sign it, keep its row. `link` is (session id, link number, previous hash)."""
        if self._signer is None:
            raise StoreError("the store signs nothing before its instance has started")
        session_id, link_no, previous = link
        statement_no = self.statement_no + 1
        body = {**draft.body, "instance": self._instance, "kind": draft.kind, "statement_no": str(statement_no)}
        if link_no:
            body["session_id"], body["link_no"], body["previous"] = session_id, str(link_no), previous
        signed = _sign(draft.kind, body, self._instance, statement_no, self._signer)
        self.statement_no = statement_no
        if draft.kind == "discarded_draw":
            self.draw_no = max(self.draw_no, int(draft.body["draw_no"]))
        self.statements.append(
            (self._instance, statement_no, draft.kind, session_id, link_no, draft.round_id, draft.seat_no, signed.hash,
             signed.envelope)
        )  # fmt: skip
        if draft.private is not None:
            self.privates.append((self._instance, statement_no, format_canonical(draft.private)))
        return signed

    def add(self, change: Change) -> tuple[Signed, ...]:
        """Sign the change's drafts in order and keep its rows."""
        session = change.session
        link_no, link_hash = (session.link_no, session.link_hash) if session is not None else (0, "")
        signed: list[Signed] = []
        for draft in change.drafts:
            if session is not None and KINDS[draft.kind].linked:
                link_no += 1
                signed.append(self.sign(draft, (session.session_id, link_no, link_hash)))
                link_hash = signed[-1].hash.hex()
            else:
                signed.append(self.sign(draft))
        if change.draw_no:
            self.draw_no = max(self.draw_no, change.draw_no)
        if session is not None:
            self.moved = (session.session_id, session.version)
            if session.version == 1:
                self.new_sessions.append(session_insert(session, link_no, link_hash))
            else:
                self.sessions.append(session_update(session, link_no, link_hash))
        last = signed[-1] if signed else None
        if change.round is not None:
            if change.round.version == 1:
                self.new_rounds.append(round_insert(change.round, last.hash.hex() if last else ""))
            else:
                self.rounds.append(round_update(change.round))
        if change.answer is not None:
            answer = change.answer
            self.answers.append(
                (answer.party, answer.method, answer.request_id, answer.digest, answer.body,
                 last.instance if last else "", last.statement_no if last else 0, answer.time_ms)
            )  # fmt: skip
        if change.affair is not None:
            self.affairs.append(affair_insert(change.affair))
        if change.report is not None and last is not None:
            self.reports.append(report_insert(change.report, last.hash.hex()))
        if change.artifact is not None:
            self.artifacts.append(change.artifact)
        if change.ends is not None:
            instance, end_ms = change.ends
            self.ends.append((end_ms, instance))
        return tuple(signed)


def _sign(kind: str, body: dict[str, Any], instance: str, statement_no: int, signer: Signer) -> Signed:
    envelope = seal_envelope(KINDS[kind].payload_type, format_canonical(body), signer)
    return Signed(kind, instance, statement_no, leaf_hash(envelope), envelope)


def _failure_of(change: Change, error: Exception) -> Exception:
    """What a change that failed on its own is told. Constraint names are ours; no value of a row is in them."""
    if not isinstance(error, sqlite3.Error):
        return error
    text = str(error)
    if isinstance(error, sqlite3.IntegrityError):
        if change.answer is not None and "answers." in text:
            return RequestSeenError("the request id was used before", request_id=change.answer.request_id)
        if "affairs." in text or "rounds" in text:
            return SessionRaceError("the session was changed by another request")
    return StoreError(f"the store could not commit ({type(error).__name__}); nothing of it took effect")
