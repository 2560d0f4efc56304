"""The wallet's book: accounts, and a row for each transfer that was asked for, refused ones and tombstones included.

The rules are those of docs/wallet.md. A row is written once and never changed; balances follow from the rows. A player
has an account for each currency, and so has a campaign, which pays free bets: `campaign/NAME`. Who plays a free bet is
the player of its entries; whose money they move is their account.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .database import Database

APPLICATION_ID: Final = 0x4F505752
VERSION: Final = 2
BALANCE_MAX: Final = 10**18 - 1

SCHEMA: Final = """
CREATE TABLE accounts (
    player TEXT NOT NULL, currency TEXT NOT NULL, balance_minor INTEGER NOT NULL CHECK (balance_minor >= 0),
    PRIMARY KEY (player, currency)
) STRICT;
CREATE TABLE entries (
    entry_no INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('debit', 'refused', 'credit', 'rollback', 'deposit')),
    transaction_id TEXT NOT NULL,
    player TEXT NOT NULL, currency TEXT NOT NULL, amount_minor INTEGER NOT NULL,
    reference TEXT NOT NULL, purpose INTEGER NOT NULL, round_reference TEXT NOT NULL, free_bet TEXT NOT NULL,
    account TEXT NOT NULL,
    moved_minor INTEGER NOT NULL, balance_after_minor INTEGER, reason TEXT NOT NULL, time_ms INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX entries_by_id ON entries (transaction_id, kind = 'rollback');
CREATE INDEX entries_by_account ON entries (account, entry_no);
CREATE INDEX entries_by_free_bet ON entries (free_bet) WHERE free_bet <> '';
CREATE TABLE free_bets (
    free_bet TEXT PRIMARY KEY,
    player TEXT NOT NULL, currency TEXT NOT NULL, amount_minor INTEGER NOT NULL
) STRICT;
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'an entry never changes'); END;
CREATE TRIGGER entries_last BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'an entry never goes'); END;
"""


@dataclass(frozen=True, slots=True)
class Order:
    """What a transfer says, and what its repeats must say again."""

    transaction_id: str
    player: str
    currency: str
    amount_minor: int
    reference: str = ""
    purpose: int = 0
    round_reference: str = ""
    free_bet: str = ""

    @property
    def account(self) -> str:
        """Whose money moves: the player's, or the campaign's that pays a free bet."""
        return account_of_campaign(self.free_bet.partition(":")[0]) if self.free_bet else self.player


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the book. `reason` is that of a refusal."""

    entry_no: int
    kind: str
    order: Order
    moved_minor: int
    balance_after_minor: int | None
    reason: str
    time_ms: int


def account_of_campaign(campaign: str) -> str:
    """The name of a campaign's account in the book. No pseudonym has a slash."""
    return f"campaign/{campaign}"


class RefusalError(Exception):
    """The book refuses, with a reason of the contract. Nothing was entered."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class WalletBook:
    """The file. Each method is one transaction; `now_ms` is when it happens."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path, APPLICATION_ID, VERSION, SCHEMA)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    async def open_account(self, player: str, currency: str) -> None:
        """Open an account with nothing in it. An account that is there stays as it is."""
        await self._database.run(
            lambda db: db.execute(
                "INSERT INTO accounts VALUES (?, ?, 0) ON CONFLICT (player, currency) DO NOTHING", (player, currency)
            )
        )

    async def balances(self, player: str) -> list[tuple[str, int]]:
        """Currency and balance of each account of the player, in the order in which they were opened."""
        query = "SELECT currency, balance_minor FROM accounts WHERE player = ? ORDER BY rowid"
        return [tuple(row) for row in await self._database.read(lambda db: db.execute(query, (player,)).fetchall())]

    async def balance(self, player: str, currency: str) -> int:
        """The balance. RefusalError if there is no such account."""
        return await self._database.read(lambda db: _known_balance(db, player, currency))

    async def debit(self, order: Order, refusal: str, now_ms: int) -> tuple[Entry, bool]:
        """Take money; whether this call moved it. A new debit is refused with `refusal`, if there is one."""
        return await self._database.run(lambda db: _debit(db, order, refusal, now_ms))

    async def credit(self, order: Order, now_ms: int) -> tuple[Entry, bool]:
        """Give money; whether this call moved it. RefusalError."""
        return await self._database.run(lambda db: _credit(db, order, now_ms))

    async def rollback(self, order: Order, now_ms: int) -> Entry:
        """Undo a debit, or leave a tombstone. RefusalError where the id stands for something else."""
        return await self._database.run(lambda db: _rollback(db, order, now_ms))

    async def find(self, player: str, transaction_id: str) -> Entry:
        """The entry that decides where the transaction stands. RefusalError."""
        first, undone = await self._database.read(lambda db: _entries(db, transaction_id))
        found = undone or first
        if found is None or found.order.player != player:
            raise RefusalError("TRANSACTION_UNKNOWN", "there is no transaction of this id")
        return found

    async def deposit(self, order: Order, day_start_ms: int, limit_minor: int | None, now_ms: int) -> Entry:
        """Pay in play money, at most so much since `day_start_ms`. A repeat of the id pays nothing more."""
        return await self._database.run(lambda db: _deposit(db, order, day_start_ms, limit_minor, now_ms))

    async def grant(self, free_bet: str, player: str, currency: str, amount_minor: int, now_ms: int) -> bool:
        """Know a free bet, `campaign:grant_id`, and pay what it will take into the campaign's account. Returns whether
        it is new.
        """
        order = Order(f"grant:{free_bet}", player, currency, amount_minor, free_bet=free_bet)
        return await self._database.run(lambda db: _grant(db, order, now_ms))

    async def knows_campaign(self, campaign: str, currency: str) -> bool:
        """Whether the campaign has an account in this currency."""
        account = account_of_campaign(campaign)
        return await self._database.read(lambda db: _balance(db, account, currency)) is not None

    async def entries_of(self, account: str, before_no: int, count: int) -> list[Entry]:
        """The newest entries of an account before a number, newest first."""
        query = "SELECT * FROM entries WHERE account = ? AND entry_no < ? ORDER BY entry_no DESC LIMIT ?"
        rows = await self._database.read(lambda db: db.execute(query, (account, before_no, count)).fetchall())
        return [_entry(row) for row in rows]


def _entry(row: sqlite3.Row) -> Entry:
    order = Order(
        row["transaction_id"],
        row["player"],
        row["currency"],
        row["amount_minor"],
        row["reference"],
        row["purpose"],
        row["round_reference"],
        row["free_bet"],
    )
    return Entry(
        row["entry_no"],
        row["kind"],
        order,
        row["moved_minor"],
        row["balance_after_minor"],
        row["reason"],
        row["time_ms"],
    )


def _entries(db: sqlite3.Connection, transaction_id: str) -> tuple[Entry | None, Entry | None]:
    """The entry of the transaction itself, and that of its rollback."""
    found = [_entry(row) for row in db.execute("SELECT * FROM entries WHERE transaction_id = ?", (transaction_id,))]
    first = next((entry for entry in found if entry.kind != "rollback"), None)
    return first, next((entry for entry in found if entry.kind == "rollback"), None)


def _balance(db: sqlite3.Connection, player: str, currency: str) -> int | None:
    query = "SELECT balance_minor FROM accounts WHERE player = ? AND currency = ?"
    row = db.execute(query, (player, currency)).fetchone()
    return None if row is None else int(row[0])


def _known_balance(db: sqlite3.Connection, player: str, currency: str) -> int:
    found = _balance(db, player, currency)
    if found is not None:
        return found
    has_other = db.execute("SELECT 1 FROM accounts WHERE player = ?", (player,)).fetchone() is not None
    if has_other:
        raise RefusalError("CURRENCY_MISMATCH", "the player has no account in this currency")
    raise RefusalError("ACCOUNT_UNKNOWN", "there is no such player")


def _append(db: sqlite3.Connection, kind: str, order: Order, moved_minor: int, now_ms: int, reason: str = "") -> Entry:
    """Move the money and enter it."""
    if moved_minor:
        db.execute(
            "UPDATE accounts SET balance_minor = balance_minor + ? WHERE player = ? AND currency = ?",
            (moved_minor, order.account, order.currency),
        )
    row = db.execute(
        "INSERT INTO entries (kind, transaction_id, player, currency, amount_minor, reference, purpose,"
        " round_reference, free_bet, account, moved_minor, balance_after_minor, reason, time_ms)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING *",
        (
            *(kind, order.transaction_id, order.player, order.currency, order.amount_minor, order.reference),
            *(order.purpose, order.round_reference, order.free_bet, order.account),
            *(moved_minor, _balance(db, order.account, order.currency), reason, now_ms),
        ),
    ).fetchone()
    return _entry(row)


def _verify_same(order: Order, entry: Entry | None, *kinds: str) -> None:
    if entry is not None and (entry.kind not in kinds or entry.order != order):
        raise RefusalError("TRANSACTION_CONFLICT", "the transaction id stands for another transfer")


def _debit(db: sqlite3.Connection, order: Order, refusal: str, now_ms: int) -> tuple[Entry, bool]:
    first, undone = _entries(db, order.transaction_id)
    _verify_same(order, first, "debit", "refused")
    _verify_same(order, undone, "rollback")
    if undone is not None:
        raise RefusalError("TRANSACTION_ROLLED_BACK", "the debit was rolled back")
    if first is not None:
        return first, False
    if not refusal and order.free_bet and not _is_free_bet_playable(db, order):
        refusal = "FREE_BET_UNKNOWN"
    if not refusal:
        try:
            if _known_balance(db, order.account, order.currency) < order.amount_minor:
                refusal = "INSUFFICIENT_FUNDS"
        except RefusalError as error:
            refusal = error.reason
    if refusal:
        return _append(db, "refused", order, 0, now_ms, refusal), True
    return _append(db, "debit", order, -order.amount_minor, now_ms), True


def _is_free_bet_playable(db: sqlite3.Connection, order: Order) -> bool:
    """Whether this very free bet was granted, and no other debit of it stands."""
    query = "SELECT 1 FROM free_bets WHERE free_bet = ? AND player = ? AND currency = ? AND amount_minor = ?"
    values = (order.free_bet, order.player, order.currency, order.amount_minor)
    if db.execute(query, values).fetchone() is None:
        return False
    query = (
        "SELECT 1 FROM entries AS debit WHERE free_bet = ? AND kind = 'debit' AND NOT EXISTS ("
        "SELECT 1 FROM entries WHERE transaction_id = debit.transaction_id AND kind = 'rollback')"
    )
    return db.execute(query, (order.free_bet,)).fetchone() is None


def _grant(db: sqlite3.Connection, order: Order, now_ms: int) -> bool:
    known = db.execute("SELECT * FROM free_bets WHERE free_bet = ?", (order.free_bet,)).fetchone()
    values = (order.free_bet, order.player, order.currency, order.amount_minor)
    if known is not None:
        if tuple(known) != values:
            raise RefusalError("TRANSACTION_CONFLICT", "the free bet stands for another grant")
        return False
    db.execute("INSERT INTO free_bets VALUES (?, ?, ?, ?)", values)
    query = "INSERT INTO accounts VALUES (?, ?, 0) ON CONFLICT (player, currency) DO NOTHING"
    db.execute(query, (order.account, order.currency))
    _append(db, "deposit", order, order.amount_minor, now_ms)
    return True


def _credit(db: sqlite3.Connection, order: Order, now_ms: int) -> tuple[Entry, bool]:
    first, undone = _entries(db, order.transaction_id)
    _verify_same(order, first, "credit")
    _verify_same(order, undone)
    if first is not None:
        return first, False
    if _known_balance(db, order.account, order.currency) + order.amount_minor > BALANCE_MAX:
        raise RefusalError("BALANCE_ABOVE_MAXIMUM", "the balance would be more than the wallet can hold")
    return _append(db, "credit", order, order.amount_minor, now_ms), True


def _rollback(db: sqlite3.Connection, order: Order, now_ms: int) -> Entry:
    first, undone = _entries(db, order.transaction_id)
    _verify_same(order, first, "debit", "refused")
    _verify_same(order, undone, "rollback")
    if undone is not None:
        return undone
    stands = first is not None and first.kind == "debit"
    return _append(db, "rollback", order, order.amount_minor if stands else 0, now_ms)


def _deposit(db: sqlite3.Connection, order: Order, day_start_ms: int, limit_minor: int | None, now_ms: int) -> Entry:
    first, _ = _entries(db, order.transaction_id)
    _verify_same(order, first, "deposit")
    if first is not None:
        return first
    balance = _known_balance(db, order.player, order.currency)
    query = "SELECT coalesce(sum(amount_minor), 0) FROM entries WHERE account = ? AND currency = ?"
    query += " AND kind = 'deposit' AND time_ms >= ?"
    paid_in = int(db.execute(query, (order.player, order.currency, day_start_ms)).fetchone()[0])
    if limit_minor is not None and paid_in + order.amount_minor > limit_minor:
        raise RefusalError("DEPOSIT_LIMIT", f"{max(0, limit_minor - paid_in)} minor units may still be paid in today")
    if balance + order.amount_minor > BALANCE_MAX:
        raise RefusalError("BALANCE_ABOVE_MAXIMUM", "the balance would be more than the wallet can hold")
    return _append(db, "deposit", order, order.amount_minor, now_ms)
