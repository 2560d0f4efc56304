"""The embedded wallet's file: accounts, and an append-only table of every transfer.

It implements ARCHITECTURE 2.3 (bought and paid out are the wallet's), 2.17 (stable ids, unknown is a state) and
RULEBOOK R-2 as rows and constraints. The rules of the messages are in `rgs.ports.wallet`; docs/embedded-books.md
describes the rows. It is a file of its own, so that reconciliation compares two books.

A balance below zero, a change or deletion of a row, a row that is not the next, a second row of one id, and a file of
another kind or schema are refused. Every error of SQLite during a call is raised as unavailable, never as a failure,
because its outcome is not known.

Thread-safe: one connection under one lock, one immediate transaction a call. Several processes of one host may share
the file, but not over a network file system. Calls wait for the disk; the client runs them on a thread of its own.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from rgs.core.errors import UnavailableError, VerificationError, WalletUnavailableError
from rgs.core.times import format_time
from rgs.store.changes import StoreRefusedError
from rgs.store.tables import Table

BUSY_TIMEOUT_S: Final = 5.0
"""How long a call waits for another process that holds the file, in seconds."""
OPENING_TRIES: Final = 50
"""Tries within that time where SQLite does not wait by itself."""
_JOURNALS: Final = {"wal": "PRAGMA journal_mode = WAL", "truncate": "PRAGMA journal_mode = TRUNCATE"}


class SqliteFile:
    """One SQLite file, opened strictly and written by short transactions. Shared by the embedded wallet and regulator.

    `application_id` and `version` stand in the header of the file. An empty file gets both and `schema` in one
    transaction, and one of the version before is brought to this version by the statements `upgrade`, if there are any.
    Any other file that does not carry exactly these is refused before a byte of it is changed.
    `unavailable` is the error of every call that SQLite does not complete. `journal` is `wal`, or `truncate` for a file
    that processes on several hosts open over a shared file system, where a write-ahead log does not work.
    """

    def __init__(
        self,
        path: Path,
        application_id: int,
        schema: tuple[str, ...],
        *,
        unavailable: type[UnavailableError],
        version: int = 1,
        upgrade: tuple[str, ...] = (),
        journal: str = "wal",
    ) -> None:
        self._path = path.resolve()
        self._journal = journal
        self._unavailable = unavailable
        self._lock = threading.Lock()
        self._closed = False
        try:
            self._path.touch(mode=0o600)  # a new file holds pseudonyms and balances: its owner's alone, its log's too
            self._db = sqlite3.connect(
                self._path, isolation_level=None, check_same_thread=False, timeout=BUSY_TIMEOUT_S, cached_statements=64
            )
        except (OSError, sqlite3.Error) as error:
            raise StoreRefusedError(f"{path.name} cannot be opened: {error}", file=path.name) from error
        try:
            self._prepare(application_id, version, schema, upgrade)
        except sqlite3.Error as error:
            self._db.close()
            raise StoreRefusedError(f"{path.name} cannot be opened: {error}", file=path.name) from error
        except BaseException:
            self._db.close()
            raise

    def _prepare(self, application_id: int, version: int, schema: tuple[str, ...], upgrade: tuple[str, ...]) -> None:
        if self._header() != (application_id, version):
            self._db.execute("BEGIN IMMEDIATE")
            found = self._header()
            steps: tuple[str, ...] = ()
            if found == (0, 0) and self._number("SELECT count(*) FROM sqlite_master") == 0:
                steps = (*schema, "PRAGMA application_id = " + str(application_id))
            elif upgrade and found == (application_id, version - 1):
                steps = upgrade
            if steps:
                for statement in (*steps, "PRAGMA user_version = " + str(version)):
                    self._db.execute(statement)
            found = self._header()
            if found != (application_id, version):
                raise StoreRefusedError(
                    f"{self._path.name}: application {found[0]}, schema {found[1]}, not {application_id}, {version}",
                    file=self._path.name,
                    value=found[1],
                    limit=version,
                )
            self._db.execute("COMMIT")
        self._db.execute("PRAGMA trusted_schema = OFF")
        self._db.execute("PRAGMA foreign_keys = ON")
        self._db.execute("PRAGMA synchronous = FULL")
        mode = self._set_journal()
        if mode != self._journal or self._number("PRAGMA synchronous") != 2 or self._number("PRAGMA foreign_keys") != 1:
            raise StoreRefusedError(
                f"SQLite cannot keep its journal where {self._path.name} is",
                file=self._path.name,
                value=mode,
            )

    def _set_journal(self) -> str:
        """Set the kind of the journal. SQLite does not wait here, so this does: another process may be opening the new
        file, too.
        """
        pause, left = threading.Event(), OPENING_TRIES
        while True:
            try:
                return cast(str, self._db.execute(_JOURNALS[self._journal]).fetchone()[0])
            except sqlite3.OperationalError as error:
                left -= 1
                if not left or error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                    raise
            pause.wait(BUSY_TIMEOUT_S / OPENING_TRIES)

    def _header(self) -> tuple[int, int]:
        return self._number("PRAGMA application_id"), self._number("PRAGMA user_version")

    def _number(self, query: str) -> int:
        return cast(int, self._db.execute(query).fetchone()[0])

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One write transaction, durable when the block is left; any exception inside undoes it.

        Raises the file's unavailable error where SQLite fails. After a failed commit its outcome is not known: the
        caller repeats the call with the same transaction id.
        """
        with self._lock:
            if self._closed:
                raise self._unavailable(f"{self._path.name} is closed")
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield self._db
                self._db.execute("COMMIT")
            except (sqlite3.Error, OverflowError) as error:  # the second: a sum beyond the 64 bits of a column
                self._undo()
                raise self._unavailable(
                    f"{self._path.name} did not complete the call: {error}", file=self._path.name
                ) from error
            except BaseException:
                self._undo()
                raise

    def _undo(self) -> None:
        if self._db.in_transaction:
            # If this fails too, the transaction stays open and the next BEGIN is refused.
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """A read-only connection that sees one moment of the file. It blocks no writer."""
        if self._closed:
            raise self._unavailable(f"{self._path.name} is closed")
        try:
            address = self._path.as_uri() + "?mode=ro"
            with closing(sqlite3.connect(address, uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S)) as db:
                db.execute("BEGIN")
                yield db
        except sqlite3.Error as error:
            raise self._unavailable(f"{self._path.name} cannot be read: {error}", file=self._path.name) from error

    def close(self) -> None:
        """Wait for a running call, then close the file. A second close does nothing."""
        with self._lock:
            self._closed = True
            self._db.close()


APPLICATION_ID: Final = 1380406103
"""'RGSW' in ASCII."""

VERSION: Final = 2
_FREE_BETS: Final = (
    "CREATE INDEX transactions_free_bet ON transactions (operator, free_bet) WHERE kind = 'debit' AND free_bet <> ''"
)
_UPGRADE: Final = (
    "ALTER TABLE transactions ADD COLUMN free_bet TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE transactions ADD COLUMN played_by TEXT NOT NULL DEFAULT ''",
    _FREE_BETS,
)
"""Version 1 did not know which free bet a transfer was for: there these columns are empty."""
_SCHEMA: Final = (
    """CREATE TABLE accounts (
        operator TEXT NOT NULL,
        player TEXT NOT NULL,
        currency TEXT NOT NULL,
        balance_minor INTEGER NOT NULL CHECK (balance_minor >= 0),
        PRIMARY KEY (operator, player, currency)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE transactions (
        entry_no INTEGER PRIMARY KEY,
        recorded_time TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('opening', 'debit', 'refused_debit', 'credit', 'rollback')),
        operator TEXT NOT NULL,
        player TEXT NOT NULL,
        currency TEXT NOT NULL,
        transaction_id TEXT CHECK ((transaction_id IS NULL) = (kind = 'opening')),
        amount_minor INTEGER NOT NULL CHECK (amount_minor >= 0),
        transfer_minor INTEGER NOT NULL CHECK (
            CASE kind
                WHEN 'debit' THEN transfer_minor = -amount_minor
                WHEN 'refused_debit' THEN transfer_minor = 0
                WHEN 'rollback' THEN transfer_minor IN (0, amount_minor)
                ELSE transfer_minor = amount_minor
            END),
        balance_after_minor INTEGER CHECK (balance_after_minor >= 0),
        reference TEXT NOT NULL,
        free_bet TEXT NOT NULL DEFAULT '',
        played_by TEXT NOT NULL DEFAULT '',
        CHECK (balance_after_minor IS NOT NULL OR (transfer_minor = 0 AND kind IN ('refused_debit', 'rollback')))
    ) STRICT""",
    _FREE_BETS,
    "CREATE UNIQUE INDEX transactions_opening ON transactions (operator, player, currency) WHERE kind = 'opening'",
    """CREATE UNIQUE INDEX transactions_first ON transactions (operator, transaction_id)
        WHERE kind IN ('debit', 'refused_debit', 'credit')""",
    "CREATE UNIQUE INDEX transactions_rollback ON transactions (operator, transaction_id) WHERE kind = 'rollback'",
    # An INSERT OR REPLACE deletes without firing a delete trigger: a row not the next, or not new, is refused first.
    """CREATE TRIGGER transactions_append BEFORE INSERT ON transactions
        WHEN NEW.entry_no IS NOT (SELECT coalesce(max(entry_no), 0) + 1 FROM transactions)
          OR EXISTS (SELECT 1 FROM transactions WHERE operator = NEW.operator AND transaction_id = NEW.transaction_id
                     AND kind IN ('debit', 'refused_debit', 'credit') AND NEW.kind <> 'rollback')
          OR EXISTS (SELECT 1 FROM transactions WHERE operator = NEW.operator AND transaction_id = NEW.transaction_id
                     AND kind = 'rollback' AND NEW.kind = 'rollback')
          OR EXISTS (SELECT 1 FROM transactions WHERE operator = NEW.operator AND player = NEW.player
                     AND currency = NEW.currency AND kind = 'opening' AND NEW.kind = 'opening')
        BEGIN SELECT RAISE(ABORT, 'transactions are appended, never replaced'); END""",
    """CREATE TRIGGER transactions_no_update BEFORE UPDATE ON transactions
        BEGIN SELECT RAISE(ABORT, 'transactions are never changed'); END""",
    """CREATE TRIGGER transactions_no_delete BEFORE DELETE ON transactions
        BEGIN SELECT RAISE(ABORT, 'transactions are never deleted'); END""",
)

_SELECT_BALANCE: Final = "SELECT balance_minor FROM accounts WHERE operator = ? AND player = ? AND currency = ?"
_SELECT_LAST: Final = "SELECT coalesce(max(entry_no), 0) FROM transactions"
_MOVE: Final = (
    "UPDATE accounts SET balance_minor = balance_minor + ? WHERE operator = ? AND player = ? AND currency = ?"
)


@dataclass(frozen=True, slots=True)
class EnteredTransfer:
    """What a message asks for. A retry has the same value in every field. Amounts are minor units of `currency`."""

    operator: str
    player: str
    currency: str
    amount_minor: int
    transaction_id: str
    reference: str
    free_bet: str = ""
    played_by: str = ""
    """The player to whom the free bet belongs: `player` is the account of its campaign."""


@dataclass(frozen=True, slots=True)
class WalletEntry:
    """One row of the transactions table, as docs/embedded-books.md describes it."""

    entry_no: int
    recorded_time: str
    kind: str
    operator: str
    player: str
    currency: str
    transaction_id: str | None
    amount_minor: int
    transfer_minor: int
    balance_after_minor: int | None
    reference: str
    free_bet: str
    played_by: str

    @property
    def transfer(self) -> EnteredTransfer:
        """What the message of this row asked for."""
        return EnteredTransfer(
            self.operator,
            self.player,
            self.currency,
            self.amount_minor,
            self.transaction_id or "",
            self.reference,
            self.free_bet,
            self.played_by,
        )


_TRANSACTIONS: Final = Table("transactions", WalletEntry)
_FIRST: Final = "WHERE operator = ? AND transaction_id = ? AND kind IN ('debit', 'refused_debit', 'credit')"
_ROLLBACK: Final = "WHERE operator = ? AND transaction_id = ? AND kind = 'rollback'"
_OPENING: Final = "WHERE operator = ? AND player = ? AND currency = ? AND kind = 'opening'"
_STANDING: Final = (
    "SELECT 1 FROM transactions AS debit WHERE operator = ? AND free_bet = ? AND free_bet <> '' AND kind = 'debit'"
    " AND NOT EXISTS (SELECT 1 FROM transactions WHERE operator = debit.operator"
    " AND transaction_id = debit.transaction_id AND kind = 'rollback')"
)
_ENTRIES: Final = _TRANSACTIONS.select + "WHERE entry_no > ? ORDER BY entry_no"


class WalletTransaction:
    """One message inside one transaction: what it may look up and write. Made by `WalletStore.transaction`."""

    def __init__(self, db: sqlite3.Connection, now_ms: int) -> None:
        self._db = db
        self._time = format_time(now_ms)

    def entries_of(self, operator: str, transaction_id: str) -> tuple[WalletEntry | None, WalletEntry | None]:
        """The debit, refused debit or credit of this id, and its rollback, each if there is one."""
        return self._first(_FIRST, operator, transaction_id), self._first(_ROLLBACK, operator, transaction_id)

    def opening_of(self, operator: str, player: str, currency: str) -> WalletEntry | None:
        """The opening of this account, if there is one."""
        return self._first(_OPENING, operator, player, currency)

    def _first(self, where: str, *values: str) -> WalletEntry | None:
        row = self._db.execute(_TRANSACTIONS.select + where, values).fetchone()
        return None if row is None else _TRANSACTIONS.read(row)

    def free_bet_stands(self, operator: str, free_bet: str) -> bool:
        """Whether a debit of this free bet stands: it was accepted, and not rolled back."""
        return self._db.execute(_STANDING, (operator, free_bet)).fetchone() is not None

    def balance(self, operator: str, player: str, currency: str) -> int | None:
        """The balance in minor units; None if there is no such account."""
        row = self._db.execute(_SELECT_BALANCE, (operator, player, currency)).fetchone()
        return row[0] if row else None

    def add_account(self, operator: str, player: str, currency: str) -> None:
        """A new account with the balance 0."""
        self._db.execute("INSERT INTO accounts VALUES (?, ?, ?, 0)", (operator, player, currency))

    def append(self, kind: str, transfer: EnteredTransfer, moved_minor: int) -> WalletEntry:
        """Move `moved_minor` (signed: positive to the player) on the account and enter it."""
        account = (transfer.operator, transfer.player, transfer.currency)
        if moved_minor:
            self._db.execute(_MOVE, (moved_minor, *account))
        entry = WalletEntry(
            entry_no=self._db.execute(_SELECT_LAST).fetchone()[0] + 1,
            recorded_time=self._time,
            kind=kind,
            operator=transfer.operator,
            player=transfer.player,
            currency=transfer.currency,
            transaction_id=transfer.transaction_id or None,
            amount_minor=transfer.amount_minor,
            transfer_minor=moved_minor,
            balance_after_minor=self.balance(*account),
            reference=transfer.reference,
            free_bet=transfer.free_bet,
            played_by=transfer.played_by,
        )
        self._db.execute(_TRANSACTIONS.insert, _TRANSACTIONS.row(entry))
        return entry


class WalletStore:
    """The wallet's book. Times come in as milliseconds since 1970 from the caller's clock."""

    def __init__(self, path: Path) -> None:
        """Open or create the file; StoreRefusedError if it is of another kind or schema. One of version 1 is brought to
        version 2.
        """
        self._file = SqliteFile(
            path, APPLICATION_ID, _SCHEMA, version=VERSION, upgrade=_UPGRADE, unavailable=WalletUnavailableError
        )

    @contextmanager
    def transaction(self, now_ms: int) -> Iterator[WalletTransaction]:
        """One message: durable when the block is left, undone by any exception.

        WalletUnavailableError where SQLite fails.
        """
        with self._file.transaction() as db:
            yield WalletTransaction(db, now_ms)

    def rows(self, after_entry_no: int = 0) -> Iterator[WalletEntry]:
        """Entries in order, streamed from one moment; a read transaction stays open until it is exhausted or closed."""
        with self._file.snapshot() as db:
            for row in db.execute(_ENTRIES, (after_entry_no,)):
                yield WalletEntry(*row)

    def verify(self) -> None:
        """Add up the whole book; VerificationError at the first entry or account that differs from the sum."""
        balances: dict[tuple[str, str, str], int] = {}
        with self._file.snapshot() as db:
            for number, row in enumerate(db.execute(_ENTRIES, (0,)), start=1):
                entry = WalletEntry(*row)
                account = (entry.operator, entry.player, entry.currency)
                if entry.kind == "opening":
                    balances[account] = entry.transfer_minor
                elif account in balances:
                    balances[account] += entry.transfer_minor
                if entry.entry_no != number or entry.balance_after_minor != balances.get(account):
                    raise VerificationError(
                        f"wallet entry {entry.entry_no}: number or balance differs from the entries before it",
                        check="wallet_entries",
                        entry_no=entry.entry_no,
                    )
            stored = {(row[0], row[1], row[2]): row[3] for row in db.execute("SELECT * FROM accounts")}
        if stored != balances:
            raise VerificationError("an account's balance is not the sum of its transfers", check="wallet_balances")

    def close(self) -> None:
        """Close the file; every later call is refused as unavailable."""
        self._file.close()
