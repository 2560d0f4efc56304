"""Rows of play: launches, requests stored before sending, sessions, figures of the day, seats, hidden lines."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from .database import Database


@dataclass(frozen=True, slots=True)
class PlaySession:
    """A session as the platform knows it. `checked_ms` is its elapsed time at the last reality check."""

    session_id: str
    account_id: int
    game: str
    table: str
    language: str
    mode: str
    currency: str
    checked_ms: int


@dataclass(frozen=True, slots=True)
class DayFigures:
    """What a player staked and got back in one currency, and how long the player played, on one day."""

    staked_minor: int = 0
    returned_minor: int = 0
    played_ms: int = 0


@dataclass(frozen=True, slots=True)
class Seat:
    """A seat at a table that a connection holds."""

    session_id: str
    account_id: int
    connection: str
    table: str
    device_no: int


class PlayRows:
    """Play in the platform's file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # --- launches ---

    async def keep_launch(self, account_id: int, request_id: str, content: str, limits: str, now_ms: int) -> str | None:
        """Keep what a launch says, and give the limits of its first request. None: the request had other content."""

        def work(db: sqlite3.Connection) -> str | None:
            query = "SELECT content, limits FROM launches WHERE account_id = ? AND request_id = ?"
            row = db.execute(query, (account_id, request_id)).fetchone()
            if row is not None:
                return str(row["limits"]) if row["content"] == content else None
            values = (account_id, request_id, content, limits, now_ms)
            db.execute("INSERT INTO launches VALUES (?, ?, ?, ?, ?)", values)
            return limits

        return await self._database.run(work)

    async def add_play_token(self, token_sha256: bytes, player: str, expires_ms: int) -> None:
        """Keep a token that the wallet will get with each debit of a session."""
        query = "INSERT INTO play_tokens VALUES (?, ?, ?) ON CONFLICT (token_sha256) DO NOTHING"
        await self._database.run(lambda db: db.execute(query, (token_sha256, player, expires_ms)))

    async def play_token(self, token_sha256: bytes) -> tuple[str, int] | None:
        """Player and end of a token."""
        query = "SELECT player, expires_ms FROM play_tokens WHERE token_sha256 = ?"
        row = await self._database.read(lambda db: db.execute(query, (token_sha256,)).fetchone())
        return None if row is None else (row[0], row[1])

    # --- requests ---

    async def store_request(self, account_id: int, request_id: str, content: str, now_ms: int) -> bool:
        """Keep a request before it is sent. False: the id stands for another request."""

        def work(db: sqlite3.Connection) -> bool:
            query = "SELECT content FROM requests WHERE account_id = ? AND id = ?"
            row = db.execute(query, (account_id, request_id)).fetchone()
            if row is not None:
                return bool(row["content"] == content)
            db.execute("INSERT INTO requests VALUES (?, ?, ?, ?)", (account_id, request_id, content, now_ms))
            return True

        return await self._database.run(work)

    async def forget(self, before_ms: int) -> None:
        """Drop requests, launches and tokens that are older: the game server does not know them any more either."""

        def work(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM requests WHERE time_ms < ?", (before_ms,))
            db.execute("DELETE FROM launches WHERE time_ms < ?", (before_ms,))
            db.execute("DELETE FROM play_tokens WHERE expires_ms < ?", (before_ms,))

        await self._database.run(work)

    # --- sessions, rounds, figures ---

    async def add_session(self, session: PlaySession, now_ms: int) -> None:
        """Keep a session that was opened."""
        values = (
            *(session.session_id, session.account_id, session.game, session.table),
            *(session.language, session.mode, session.currency),
        )
        query = (
            "INSERT INTO play_sessions (session_id, account_id, game, game_table, language, mode, currency, opened_ms)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (session_id) DO NOTHING"
        )
        await self._database.run(lambda db: db.execute(query, (*values, now_ms)))

    async def session(self, session_id: str) -> PlaySession | None:
        """A session that was opened here."""
        query = (
            "SELECT session_id, account_id, game, game_table, language, mode, currency, checked_ms FROM play_sessions"
            " WHERE session_id = ?"
        )
        row = await self._database.read(lambda db: db.execute(query, (session_id,)).fetchone())
        return None if row is None else PlaySession(*row)

    async def note_play(self, session_id: str, staked_minor: int, returned_minor: int, day: str) -> None:
        """Add what changed in a session to the figures of the day, unless it is play money."""

        def work(db: sqlite3.Connection) -> None:
            row = db.execute(
                "SELECT account_id, mode, currency, staked_minor, returned_minor FROM play_sessions"
                " WHERE session_id = ?",
                (session_id,),
            ).fetchone()
            if row is None:
                return
            staked = max(0, staked_minor - row["staked_minor"])
            returned = max(0, returned_minor - row["returned_minor"])
            if (staked or returned) and row["mode"] == "real":
                db.execute(_ADD_FIGURES, (row["account_id"], day, row["currency"], staked, returned, 0))
                db.execute(
                    "UPDATE play_sessions SET staked_minor = max(staked_minor, ?),"
                    " returned_minor = max(returned_minor, ?) WHERE session_id = ?",
                    (staked_minor, returned_minor, session_id),
                )

        await self._database.run(work)

    async def note_time(self, account_id: int, day: str, now_ms: int, pause_ms: int) -> None:
        """Add the time since the player's last message of play, unless it was a pause."""

        def work(db: sqlite3.Connection) -> None:
            last = int(db.execute("SELECT played_ms FROM accounts WHERE account_id = ?", (account_id,)).fetchone()[0])
            passed = now_ms - last if 0 < now_ms - last < pause_ms else 0
            db.execute("UPDATE accounts SET played_ms = ? WHERE account_id = ?", (now_ms, account_id))
            db.execute(_ADD_FIGURES, (account_id, day, "", 0, 0, passed))

        await self._database.run(work)

    async def figures(self, account_id: int, day: str, currency: str) -> DayFigures:
        """The figures of one day in a currency."""
        query = (
            "SELECT coalesce(sum(staked_minor), 0), coalesce(sum(returned_minor), 0), coalesce(sum(played_ms), 0)"
            " FROM day_figures WHERE account_id = ? AND day = ? AND currency IN (?, '')"
        )
        row = await self._database.read(lambda db: db.execute(query, (account_id, day, currency)).fetchone())
        return DayFigures(*row)

    async def checked(self, session_id: str, elapsed_ms: int) -> None:
        """Note that the player has seen a reality check."""
        query = "UPDATE play_sessions SET checked_ms = max(checked_ms, ?) WHERE session_id = ?"
        await self._database.run(lambda db: db.execute(query, (elapsed_ms, session_id)))

    # --- seats ---

    async def keep_seat(self, seat: Seat) -> None:
        """Keep which connection holds a seat."""
        query = (
            "INSERT INTO seats VALUES (?, ?, ?, ?, ?) ON CONFLICT (session_id)"
            " DO UPDATE SET connection = excluded.connection, device_no = excluded.device_no"
            " WHERE excluded.device_no >= device_no"
        )
        values = (seat.session_id, seat.account_id, seat.connection, seat.table, seat.device_no)
        await self._database.run(lambda db: db.execute(query, values))

    async def drop_seat(self, session_id: str) -> None:
        """Note that the seat was left."""
        await self._database.run(lambda db: db.execute("DELETE FROM seats WHERE session_id = ?", (session_id,)))

    async def seats(self, connection: str = "") -> list[Seat]:
        """The seats of a connection, or of all."""
        query = "SELECT * FROM seats WHERE connection = ? OR ? = ''"
        rows = await self._database.read(lambda db: db.execute(query, (connection, connection)).fetchall())
        return [Seat(*row) for row in rows]

    # --- chat ---

    async def hide_line(self, message_id: str, staff: str, now_ms: int) -> None:
        """Hide a line of chat from the platform's players."""
        query = "INSERT INTO hidden_lines VALUES (?, ?, ?) ON CONFLICT (message_id) DO NOTHING"
        await self._database.run(lambda db: db.execute(query, (message_id, staff, now_ms)))

    async def hidden_lines(self) -> set[str]:
        """The lines that are hidden."""
        rows = await self._database.read(lambda db: db.execute("SELECT message_id FROM hidden_lines").fetchall())
        return {row[0] for row in rows}


_ADD_FIGURES = (
    "INSERT INTO day_figures VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (account_id, day, currency) DO UPDATE SET"
    " staked_minor = staked_minor + excluded.staked_minor, returned_minor = returned_minor + excluded.returned_minor,"
    " played_ms = played_ms + excluded.played_ms"
)
