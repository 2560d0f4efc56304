"""Rows of accounts: sign-up, sign-in, settings, exclusion, limits, staff."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from .database import Database


@dataclass(frozen=True, slots=True)
class Account:
    """A player's account. `player` is the pseudonym that the game server knows."""

    account_id: int
    name: str
    player: str
    nickname: str
    language: str
    settings: str
    excluded_until_ms: int
    muted_until_ms: int
    currency: str
    """Of the first account; there may be others in the wallet."""


@dataclass(frozen=True, slots=True)
class PendingLimit:
    """A raised limit that waits. `value` None means that the limit goes."""

    name: str
    value: int | None
    due_ms: int


class TakenError(Exception):
    """The name or nickname belongs to somebody else."""

    def __init__(self, field: str) -> None:
        super().__init__(field)
        self.field = field


def _account(row: sqlite3.Row | None) -> Account | None:
    return None if row is None else Account(*tuple(row)[:9])


class AccountRows:
    """Accounts in the platform's file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self, name: str, player: str, nickname: str, language: str, currency: str, password: str, now_ms: int
    ) -> Account:
        """A new account. TakenError."""

        def work(db: sqlite3.Connection) -> Account:
            for field, query, value in (
                ("name", "SELECT 1 FROM accounts WHERE name = ?", name),
                ("nickname", "SELECT 1 FROM accounts WHERE nickname = ?", nickname),
            ):
                if db.execute(query, (value,)).fetchone():
                    raise TakenError(field)
            added = db.execute(
                "INSERT INTO accounts (name, player, nickname, language, currency, password, created_ms)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (name, player, nickname, language, currency, password, now_ms),
            )
            return Account(added.lastrowid or 0, name, player, nickname, language, "{}", 0, 0, currency)

        return await self._database.run(work)

    async def by_name(self, name: str) -> tuple[Account, str] | None:
        """The account of a sign-in name, and its password hash."""
        row = await self._database.read(lambda db: db.execute(_BY_NAME, (name,)).fetchone())
        account = _account(row)
        return None if account is None else (account, str(row["password"]))

    async def by_player(self, player: str) -> Account | None:
        """The account of a pseudonym."""
        return await self._database.read(lambda db: _account(db.execute(_BY_PLAYER, (player,)).fetchone()))

    async def by_sign_in(self, token_sha256: bytes, now_ms: int) -> Account | None:
        """The account that a cookie signs in."""
        query = (token_sha256, now_ms)
        return await self._database.read(lambda db: _account(db.execute(_BY_SIGN_IN, query).fetchone()))

    async def find(self, beginning: str, count: int) -> list[Account]:
        """Accounts whose name, nickname or pseudonym begins so, for staff."""
        escaped = beginning.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        values = {"like": escaped, "count": count}
        rows = await self._database.read(lambda db: db.execute(_FIND, values).fetchall())
        return [found for found in map(_account, rows) if found is not None]

    async def sign_in(self, account_id: int, token_sha256: bytes, expires_ms: int, now_ms: int) -> None:
        """Keep a sign-in; those that have expired go."""

        def work(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM sign_ins WHERE expires_ms <= ?", (now_ms,))
            db.execute("INSERT INTO sign_ins VALUES (?, ?, ?)", (token_sha256, account_id, expires_ms))

        await self._database.run(work)

    async def sign_out(self, token_sha256: bytes) -> None:
        """End a sign-in."""
        await self._database.run(lambda db: db.execute("DELETE FROM sign_ins WHERE token_sha256 = ?", (token_sha256,)))

    async def set_password(self, account_id: int, password: str) -> None:
        """Keep a hash that was made anew with the parameters of today."""
        query = "UPDATE accounts SET password = ? WHERE account_id = ?"
        await self._database.run(lambda db: db.execute(query, (password, account_id)))

    async def set_settings(self, account_id: int, settings: str, language: str) -> None:
        """Keep the settings, which follow the player to every device."""
        query = "UPDATE accounts SET settings = ?, language = ? WHERE account_id = ?"
        await self._database.run(lambda db: db.execute(query, (settings, language, account_id)))

    async def exclude(self, account_id: int, until_ms: int) -> int:
        """Exclude the player until then, or until later if that is so already. Returns the time."""

        def work(db: sqlite3.Connection) -> int:
            db.execute(
                "UPDATE accounts SET excluded_until_ms = max(excluded_until_ms, ?), closing = 1 WHERE account_id = ?",
                (until_ms, account_id),
            )
            query = "SELECT excluded_until_ms FROM accounts WHERE account_id = ?"
            return int(db.execute(query, (account_id,)).fetchone()[0])

        return await self._database.run(work)

    async def close_if_excluded(self, account_id: int, now_ms: int) -> None:
        """Note that a session was opened while the player was being excluded: it is to be closed."""
        query = "UPDATE accounts SET closing = 1 WHERE account_id = ? AND excluded_until_ms > ?"
        await self._database.run(lambda db: db.execute(query, (account_id, now_ms)))

    async def closing(self) -> list[Account]:
        """Players whose sessions at the game server are still to be closed."""
        rows = await self._database.read(lambda db: db.execute(_CLOSING).fetchall())
        return [found for found in map(_account, rows) if found is not None]

    async def closed(self, account_id: int) -> None:
        """Note that no session of the player is open."""
        query = "UPDATE accounts SET closing = 0 WHERE account_id = ?"
        await self._database.run(lambda db: db.execute(query, (account_id,)))

    async def mute(self, account_id: int, until_ms: int) -> None:
        """Keep the player from writing in chats until then."""
        query = "UPDATE accounts SET muted_until_ms = ? WHERE account_id = ?"
        await self._database.run(lambda db: db.execute(query, (until_ms, account_id)))

    # --- limits ---

    async def limits(self, account_id: int, currency: str, now_ms: int) -> tuple[dict[str, int], list[PendingLimit]]:
        """The limits in force in a currency, with those that have none, and those that wait. Those that are due come
        into force with this.
        """
        return await self._database.run(lambda db: _limits(db, account_id, currency, now_ms))

    async def set_limit(
        self, account_id: int, currency: str, name: str, value: int | None, due_ms: int, now_ms: int
    ) -> None:
        """A lower limit is in force at once and drops a raise that waits; a higher one waits until `due_ms`. `currency`
        is empty for a limit that has none.
        """

        def work(db: sqlite3.Connection) -> None:
            limits, _ = _limits(db, account_id, currency, now_ms)
            found = limits.get(name)
            key = (account_id, currency, name)
            db.execute("DELETE FROM pending_limits WHERE account_id = ? AND currency = ? AND name = ?", key)
            if value == found:
                return
            if value is not None and (found is None or value < found):
                db.execute(_PUT_LIMIT, (*key, value))
            else:
                db.execute("INSERT INTO pending_limits VALUES (?, ?, ?, ?, ?)", (*key, value, due_ms))

        await self._database.run(work)

    # --- staff ---

    def add_staff(self, name: str, password: str, role: str) -> None:
        """A member of staff, or another password and role of one. All sign-ins of that name end."""

        def work(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM staff_sign_ins WHERE name = ?", (name,))
            db.execute(_PUT_STAFF, (name, password, role))

        self._database.run_now(work)

    async def staff_password(self, name: str) -> tuple[str, str] | None:
        """The name as it was given, and the password hash."""
        query = "SELECT name, password FROM staff WHERE name = ?"
        row = await self._database.read(lambda db: db.execute(query, (name,)).fetchone())
        return None if row is None else (row[0], row[1])

    async def staff_sign_in(
        self, name: str, token_sha256: bytes, form_token: str, expires_ms: int, now_ms: int
    ) -> None:
        """Keep a sign-in of staff."""

        def work(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM staff_sign_ins WHERE expires_ms <= ?", (now_ms,))
            db.execute("INSERT INTO staff_sign_ins VALUES (?, ?, ?, ?)", (token_sha256, name, form_token, expires_ms))

        await self._database.run(work)

    async def staff_of(self, token_sha256: bytes, now_ms: int) -> tuple[str, str, str] | None:
        """Name, form token and role of a sign-in of staff."""
        query = (
            "SELECT name, form_token, role FROM staff_sign_ins JOIN staff USING (name)"
            " WHERE token_sha256 = ? AND expires_ms > ?"
        )
        row = await self._database.read(lambda db: db.execute(query, (token_sha256, now_ms)).fetchone())
        return None if row is None else (row[0], row[1], row[2])

    async def staff_sign_out(self, token_sha256: bytes) -> None:
        """End a sign-in of staff."""
        query = "DELETE FROM staff_sign_ins WHERE token_sha256 = ?"
        await self._database.run(lambda db: db.execute(query, (token_sha256,)))

    async def note_action(self, staff: str, action: str, subject: str, now_ms: int) -> None:
        """Keep what a member of staff did."""
        query = "INSERT INTO office_actions (time_ms, staff, action, subject) VALUES (?, ?, ?, ?)"
        await self._database.run(lambda db: db.execute(query, (now_ms, staff, action, subject)))

    async def actions(self, count: int) -> list[tuple[int, str, str, str]]:
        """What staff did: time, name, action, subject, newest first."""
        query = "SELECT time_ms, staff, action, subject FROM office_actions ORDER BY action_no DESC LIMIT ?"
        return [tuple(row) for row in await self._database.read(lambda db: db.execute(query, (count,)).fetchall())]


_BY_NAME = """
SELECT account_id, name, player, nickname, language, settings, excluded_until_ms, muted_until_ms, currency, password
FROM accounts WHERE name = ?"""
_BY_PLAYER = """
SELECT account_id, name, player, nickname, language, settings, excluded_until_ms, muted_until_ms, currency
FROM accounts WHERE player = ?"""
_CLOSING = """
SELECT account_id, name, player, nickname, language, settings, excluded_until_ms, muted_until_ms, currency
FROM accounts WHERE closing = 1 ORDER BY account_id LIMIT 100"""
_BY_SIGN_IN = """
SELECT account_id, name, player, nickname, language, settings, excluded_until_ms, muted_until_ms, currency
FROM accounts JOIN sign_ins USING (account_id) WHERE token_sha256 = ? AND expires_ms > ?"""
_FIND = """
SELECT account_id, name, player, nickname, language, settings, excluded_until_ms, muted_until_ms, currency
FROM accounts WHERE name LIKE :like ESCAPE '\\' OR nickname LIKE :like ESCAPE '\\' OR player LIKE :like ESCAPE '\\'
ORDER BY account_id LIMIT :count"""
_PUT_LIMIT = (
    "INSERT INTO limits VALUES (?, ?, ?, ?)"
    " ON CONFLICT (account_id, currency, name) DO UPDATE SET value = excluded.value"
)
_PUT_STAFF = (
    "INSERT INTO staff VALUES (?, ?, ?)"
    " ON CONFLICT (name) DO UPDATE SET password = excluded.password, role = excluded.role"
)


def _limits(
    db: sqlite3.Connection, account_id: int, currency: str, now_ms: int
) -> tuple[dict[str, int], list[PendingLimit]]:
    due = db.execute(
        "DELETE FROM pending_limits WHERE account_id = ? AND due_ms <= ? RETURNING currency, name, value",
        (account_id, now_ms),
    ).fetchall()
    for its_currency, name, value in due:
        key = (account_id, its_currency, name)
        if value is None:
            db.execute("DELETE FROM limits WHERE account_id = ? AND currency = ? AND name = ?", key)
        else:
            db.execute(_PUT_LIMIT, (*key, value))
    values = (account_id, currency)
    query = "SELECT name, value FROM limits WHERE account_id = ? AND currency IN (?, '')"
    limits = dict(db.execute(query, values).fetchall())
    pending = db.execute(
        "SELECT name, value, due_ms FROM pending_limits WHERE account_id = ? AND currency IN (?, '') ORDER BY name",
        values,
    ).fetchall()
    return limits, [PendingLimit(*row) for row in pending]
