"""The test regulator's file: a journal of all messages that a regulator would get.

It implements regulation ID-01 to ID-05 (ids, numbers without gaps) and PG-11 (transaction ids) as rows and constraints.
The rules of the messages are in `rgs.adapters.embedded.regulator`; docs/embedded-books.md describes the rows. The
hash of each entry binds the one before it. Whoever keeps the hash of the last entry sees a change, removal, addition or
move of any entry. The chain alone does not show that its tail was cut off: keep `head()` elsewhere.

No entry can be changed or deleted, each must be the next, and a file of another kind or schema is refused. Every entry
says that this is a test regulator.

Thread-safe and blocking as `rgs.store.wallet.SqliteFile` is: one connection, one lock, one transaction a call.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, TypeVar

from rgs.core.errors import FormatError, RegulatorUnavailableError, VerificationError
from rgs.core.statements.canonical import digest, format_canonical, parse_canonical
from rgs.core.times import format_time
from rgs.store.tables import Table
from rgs.store.wallet import SqliteFile

_State = TypeVar("_State")

APPLICATION_ID: Final = 1380406098
"""'RGSR' in ASCII, in the header of the file."""
HASH_ZERO: Final = bytes(32)
"""The hash before the first entry."""
ENTRY_DOMAIN: Final = "rgs/test-regulator/entry/v1"

_SCHEMA: Final = (
    """CREATE TABLE journal (
        entry_no INTEGER PRIMARY KEY,
        kind TEXT NOT NULL
            CHECK (kind IN ('opening', 'purchase', 'stage', 'end', 'closing', 'alignment', 'modules')),
        subject TEXT NOT NULL,
        number INTEGER NOT NULL CHECK (number >= 0),
        body TEXT NOT NULL,
        entry_hash BLOB NOT NULL CHECK (length(entry_hash) = 32),
        UNIQUE (subject, kind, number)
    ) STRICT""",
    """CREATE TABLE calls (
        transaction_id TEXT NOT NULL PRIMARY KEY,
        request_digest BLOB NOT NULL CHECK (length(request_digest) = 32),
        answer TEXT NOT NULL
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE sessions (
        regulator_session_id TEXT NOT NULL PRIMARY KEY,
        operator TEXT NOT NULL,
        reference TEXT NOT NULL,
        participation_cap_minor INTEGER NOT NULL CHECK (participation_cap_minor > 0),
        seated INTEGER NOT NULL CHECK (seated >= 0),
        closed INTEGER NOT NULL CHECK (closed = 0 OR (closed = 1 AND seated = 0)),
        UNIQUE (operator, reference)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE participations (
        regulator_participation_id TEXT NOT NULL PRIMARY KEY,
        regulator_session_id TEXT NOT NULL REFERENCES sessions (regulator_session_id),
        reference TEXT NOT NULL,
        player TEXT NOT NULL,
        purchases INTEGER NOT NULL CHECK (purchases >= 1),
        stages INTEGER NOT NULL CHECK (stages >= 0),
        bought_minor INTEGER NOT NULL CHECK (bought_minor > 0),
        counted_minor INTEGER NOT NULL CHECK (counted_minor BETWEEN 0 AND bought_minor),
        staked_minor INTEGER NOT NULL CHECK (staked_minor >= 0),
        returned_minor INTEGER NOT NULL CHECK (returned_minor >= 0),
        ended INTEGER NOT NULL CHECK (ended IN (0, 1)),
        CHECK (bought_minor - staked_minor + returned_minor >= 0),
        UNIQUE (regulator_session_id, reference),
        UNIQUE (regulator_session_id, player)
    ) STRICT, WITHOUT ROWID""",
    # An INSERT OR REPLACE deletes without firing a delete trigger: a row not the next, or not new, is refused first.
    """CREATE TRIGGER journal_append BEFORE INSERT ON journal
        WHEN NEW.entry_no IS NOT (SELECT coalesce(max(entry_no), 0) + 1 FROM journal)
          OR EXISTS (SELECT 1 FROM journal WHERE subject = NEW.subject AND kind = NEW.kind AND number = NEW.number)
        BEGIN SELECT RAISE(ABORT, 'the journal is appended, never replaced'); END""",
    """CREATE TRIGGER journal_no_update BEFORE UPDATE ON journal
        BEGIN SELECT RAISE(ABORT, 'the journal is never changed'); END""",
    """CREATE TRIGGER journal_no_delete BEFORE DELETE ON journal
        BEGIN SELECT RAISE(ABORT, 'the journal is never deleted'); END""",
    """CREATE TRIGGER calls_append BEFORE INSERT ON calls
        WHEN EXISTS (SELECT 1 FROM calls WHERE transaction_id = NEW.transaction_id)
        BEGIN SELECT RAISE(ABORT, 'calls are appended, never replaced'); END""",
    """CREATE TRIGGER calls_no_update BEFORE UPDATE ON calls
        BEGIN SELECT RAISE(ABORT, 'calls are never changed'); END""",
    """CREATE TRIGGER calls_no_delete BEFORE DELETE ON calls
        BEGIN SELECT RAISE(ABORT, 'calls are never deleted'); END""",
)

_SELECT_HEAD: Final = "SELECT entry_no, entry_hash FROM journal ORDER BY entry_no DESC LIMIT 1"
_SELECT_BODY: Final = "SELECT body FROM journal WHERE subject = ? AND kind = ? AND number = ?"
_SELECT_PURCHASES: Final = "SELECT body FROM journal WHERE subject = ? AND kind = 'purchase' ORDER BY number"
_SELECT_NUMBER: Final = "SELECT coalesce(max(number), 0) FROM journal WHERE subject = ? AND kind = ?"
_SELECT_DAY: Final = """
    SELECT count(*) FILTER (WHERE kind = 'purchase'),
        coalesce(sum(CAST(body ->> '$.request.amount_minor' AS INTEGER)), 0),
        count(*) FILTER (WHERE kind = 'stage'),
        coalesce(sum(CAST(body ->> '$.request.staked_minor' AS INTEGER)), 0),
        coalesce(sum(CAST(body ->> '$.request.returned_minor' AS INTEGER)), 0),
        count(*) FILTER (WHERE kind = 'end'),
        coalesce(sum(CAST(body ->> '$.request.final_balance_minor' AS INTEGER)), 0)
    FROM journal
    WHERE kind IN ('purchase', 'stage', 'end')
        AND substr(coalesce(body ->> '$.request.purchase_time', body ->> '$.request.end_time'), 1, 10) = ?
        AND body ->> '$.request.regulator_session_id' IN (
            SELECT subject FROM journal
            WHERE kind = 'opening' AND body ->> '$.request.operator' = ? AND body ->> '$.request.currency' = ?)
"""


@dataclass(frozen=True, slots=True)
class RegulatorEntry:
    """One entry of the journal: `body` is canonical JSON, `entry_hash` binds it and every entry before it."""

    entry_no: int
    kind: str
    subject: str
    number: int
    body: str
    entry_hash: bytes


@dataclass(slots=True)
class SessionState:
    """A row of `sessions`: how many participations have not ended, and whether the session is closed."""

    regulator_session_id: str
    operator: str
    reference: str
    participation_cap_minor: int
    seated: int = 0
    closed: int = 0


@dataclass(slots=True)
class ParticipationState:
    """A row of `participations`: what was bought, staked and returned so far, in minor units.

    `counted_minor` is how much of `bought_minor` the last stage had before it: later purchases are not in it.
    """

    regulator_participation_id: str
    regulator_session_id: str
    reference: str
    player: str
    purchases: int
    stages: int
    bought_minor: int
    counted_minor: int = 0
    staked_minor: int = 0
    returned_minor: int = 0
    ended: int = 0

    @property
    def balance_minor(self) -> int:
        """What is left of it: bought - staked + returned."""
        return self.bought_minor - self.staked_minor + self.returned_minor


_JOURNAL: Final = Table("journal", RegulatorEntry)
_ENTRIES: Final = _JOURNAL.select + "WHERE entry_no > ? ORDER BY entry_no"
_SESSIONS: Final = Table(
    "sessions",
    SessionState,
    key=("regulator_session_id",),
    fixed=("operator", "reference", "participation_cap_minor"),
)
_PARTICIPATIONS: Final = Table(
    "participations",
    ParticipationState,
    key=("regulator_participation_id",),
    fixed=("regulator_session_id", "reference", "player"),
)


def entry_hash(previous_hash: bytes, body: bytes) -> bytes:
    """SHA-256("rgs/test-regulator/entry/v1" 00 || previous_hash[32] || body), 32 bytes."""
    return digest(ENTRY_DOMAIN, previous_hash, body)


def verify_chain(entries: Iterable[RegulatorEntry]) -> tuple[int, bytes]:
    """Walk entries from the first on; the number and hash of the last. VerificationError at one that does not follow.

    Works on an export as on the file. Does not show that entries after the last one given were cut off.
    """
    number, running = 0, HASH_ZERO
    for entry in entries:
        number += 1
        text = entry.body.encode("utf-8")
        running = entry_hash(running, text)
        try:
            body = parse_canonical(text)
        except FormatError:
            body = None
        named = (str(number), entry.kind, entry.subject, str(entry.number), True)
        if (
            not isinstance(body, dict)
            or entry.entry_no != number
            or entry.entry_hash != running
            or tuple(body.get(key) for key in ("entry_no", "kind", "subject", "number", "test_regulator")) != named
        ):
            raise VerificationError(
                f"entry {entry.entry_no} of the regulator's book does not follow the one before it",
                check="regulator_chain",
                entry_no=entry.entry_no,
            )
    return number, running


class RegulatorTransaction:
    """One message inside one transaction: what it may look up and write. Made by `RegulatorStore.transaction`."""

    def __init__(self, db: sqlite3.Connection, transaction_id: str, now_ms: int) -> None:
        self._db = db
        self._transaction_id = transaction_id
        self._time = format_time(now_ms)
        self._last: tuple[int, bytes] | None = None

    def call(self) -> tuple[bytes, str] | None:
        """Digest and answer of the call that used this transaction id, if one did."""
        row = self._db.execute(
            "SELECT request_digest, answer FROM calls WHERE transaction_id = ?", (self._transaction_id,)
        ).fetchone()
        return None if row is None else (row[0], row[1])

    def keep_call(self, request_digest: bytes, answer: str) -> None:
        """Bind the transaction id to this request and its answer."""
        self._db.execute("INSERT INTO calls VALUES (?, ?, ?)", (self._transaction_id, request_digest, answer))

    def append(self, kind: str, subject: str, number: int, request: Mapping[str, Any]) -> None:
        """The next entry: `number` is the purchase's, stage's, alignment's or module report's, 0 for the rest."""
        last_no, previous = self._last or _head(self._db)
        body = format_canonical(
            {
                "entry_no": str(last_no + 1),
                "kind": kind,
                "number": str(number),
                "recorded_time": self._time,
                "request": request,
                "subject": subject,
                "test_regulator": True,
                "transaction_id": self._transaction_id,
            }
        )
        self._last = (last_no + 1, entry_hash(previous, body))
        entry = RegulatorEntry(last_no + 1, kind, subject, number, body.decode("ascii"), self._last[1])
        self._db.execute(_JOURNAL.insert, _JOURNAL.row(entry))

    def request_of(self, subject: str, kind: str, number: int) -> dict[str, str] | None:
        """The request in the entry of this name, if there is one."""
        row = self._db.execute(_SELECT_BODY, (subject, kind, number)).fetchone()
        return None if row is None else _request_of(row[0])

    def purchase_totals(self, regulator_participation_id: str) -> list[int]:
        """What had been bought after each purchase of a participation, in minor units."""
        rows = self._db.execute(_SELECT_PURCHASES, (regulator_participation_id,))
        return list(accumulate(int(_request_of(row[0])["amount_minor"]) for row in rows))

    def last_number(self, subject: str, kind: str) -> int:
        """The highest number of such entries, 0 if there is none."""
        return int(self._db.execute(_SELECT_NUMBER, (subject, kind)).fetchone()[0])

    def day_totals(self, operator: str, currency: str, day: str) -> tuple[int, ...]:
        """Purchases, bought, stages, staked, returned, ends and final balances of one UTC day ("YYYY-MM-DD")."""
        return tuple(self._db.execute(_SELECT_DAY, (day, operator, currency)).fetchone())

    def session(self, regulator_session_id: str) -> SessionState | None:
        """The session of this id, if there is one."""
        return self._first(_SESSIONS, "WHERE regulator_session_id = ?", regulator_session_id)

    def session_by_reference(self, operator: str, reference: str) -> SessionState | None:
        """The operator's session of our own id, if there is one."""
        return self._first(_SESSIONS, "WHERE operator = ? AND reference = ?", operator, reference)

    def participation(self, regulator_participation_id: str) -> ParticipationState | None:
        """The participation of this id, if there is one."""
        return self._first(_PARTICIPATIONS, "WHERE regulator_participation_id = ?", regulator_participation_id)

    def participation_by_reference(self, regulator_session_id: str, reference: str) -> ParticipationState | None:
        """The session's participation of our own id, if there is one."""
        return self._first(
            _PARTICIPATIONS, "WHERE regulator_session_id = ? AND reference = ?", regulator_session_id, reference
        )

    def participation_of(self, regulator_session_id: str, player: str) -> ParticipationState | None:
        """The player's participation in the session, running or ended, if there is one."""
        return self._first(
            _PARTICIPATIONS, "WHERE regulator_session_id = ? AND player = ?", regulator_session_id, player
        )

    def _first(self, table: Table[_State], where: str, *values: str) -> _State | None:
        row = self._db.execute(table.select + where, values).fetchone()
        return None if row is None else table.read(row)

    def add_session(self, state: SessionState) -> None:
        """A new session."""
        self._db.execute(_SESSIONS.insert, _SESSIONS.row(state))

    def add_participation(self, state: ParticipationState) -> None:
        """A new participation."""
        self._db.execute(_PARTICIPATIONS.insert, _PARTICIPATIONS.row(state))

    def save_session(self, state: SessionState) -> None:
        """The session as it stands now."""
        self._db.execute(_SESSIONS.update(), _SESSIONS.change(state))

    def save_participation(self, state: ParticipationState) -> None:
        """The participation as it stands now."""
        self._db.execute(_PARTICIPATIONS.update(), _PARTICIPATIONS.change(state))


class RegulatorStore:
    """The regulator's book. Times come in as milliseconds since 1970 from the caller's clock."""

    def __init__(self, path: Path) -> None:
        """Open or create the file; StoreRefusedError if it is of another kind or schema."""
        self._file = SqliteFile(path, APPLICATION_ID, _SCHEMA, version=2, unavailable=RegulatorUnavailableError)

    @contextmanager
    def transaction(self, transaction_id: str, now_ms: int) -> Iterator[RegulatorTransaction]:
        """One message: durable when the block is left, undone by any exception.

        RegulatorUnavailableError where SQLite fails.
        """
        with self._file.transaction() as db:
            yield RegulatorTransaction(db, transaction_id, now_ms)

    def entries(self, after_entry_no: int = 0) -> Iterator[RegulatorEntry]:
        """Entries in order, streamed from one moment; a read transaction stays open until it is exhausted or closed."""
        with self._file.snapshot() as db:
            for row in db.execute(_ENTRIES, (after_entry_no,)):
                yield RegulatorEntry(*row)

    def head(self) -> tuple[int, bytes]:
        """Number and hash of the last entry, 0 and 32 zero bytes in an empty journal: keep them elsewhere."""
        with self._file.snapshot() as db:
            return _head(db)

    def verify(self) -> tuple[int, bytes]:
        """Walk the chain and add up the journal; number and hash of the last entry.

        VerificationError at an entry that does not follow, or if the tables beside the journal are not what it gives.
        """
        sessions: dict[str, SessionState] = {}
        participations: dict[str, ParticipationState] = {}
        with self._file.snapshot() as db:
            entries = (RegulatorEntry(*row) for row in db.execute(_ENTRIES, (0,)))
            head = verify_chain(_folded(entries, sessions, participations))
            stored = {row[0]: _SESSIONS.read(row) for row in db.execute(_SESSIONS.select)}
            held = {row[0]: _PARTICIPATIONS.read(row) for row in db.execute(_PARTICIPATIONS.select)}
        if stored != sessions or held != participations:
            raise VerificationError(
                "a session or participation differs from what the journal adds up to", check="regulator_state"
            )
        return head

    def close(self) -> None:
        """Close the file; every later call is refused as unavailable."""
        self._file.close()


def _head(db: sqlite3.Connection) -> tuple[int, bytes]:
    row = db.execute(_SELECT_HEAD).fetchone()
    return (0, HASH_ZERO) if row is None else (row[0], row[1])


def _request_of(body: str) -> dict[str, str]:
    request: dict[str, str] = parse_canonical(body.encode("ascii"))["request"]
    return request


def _folded(
    entries: Iterable[RegulatorEntry], sessions: dict[str, SessionState], participations: dict[str, ParticipationState]
) -> Iterator[RegulatorEntry]:
    """Pass the entries on, and apply each to both tables once the chain has accepted it."""
    for entry in entries:
        yield entry
        try:
            _fold(entry.kind, entry.subject, _request_of(entry.body), sessions, participations)
        except (KeyError, ValueError):
            raise VerificationError(
                f"entry {entry.entry_no} of the regulator's book names what no entry before it has",
                check="regulator_state",
                entry_no=entry.entry_no,
            ) from None


def _fold(
    kind: str,
    subject: str,
    request: dict[str, Any],
    sessions: dict[str, SessionState],
    participations: dict[str, ParticipationState],
) -> None:
    if kind == "opening":
        cap_minor = int(request["participation_cap_minor"])
        sessions[subject] = SessionState(subject, request["operator"], request["reference"], cap_minor)
    elif kind == "purchase" and request["purchase_no"] == "1":
        session_id = request["regulator_session_id"]
        names = (subject, session_id, request["reference"], request["player"])
        participations[subject] = ParticipationState(*names, 1, 0, int(request["amount_minor"]))
        sessions[session_id].seated += 1
    elif kind == "purchase":
        participations[subject].purchases += 1
        participations[subject].bought_minor += int(request["amount_minor"])
    elif kind == "stage":
        state = participations[subject]
        state.stages += 1
        state.counted_minor = int(request["available_minor"]) + state.staked_minor - state.returned_minor
        state.staked_minor += int(request["staked_minor"])
        state.returned_minor += int(request["returned_minor"])
    elif kind == "end":
        participations[subject].ended = 1
        sessions[request["regulator_session_id"]].seated -= 1
    elif kind == "closing":
        sessions[subject].closed = 1
