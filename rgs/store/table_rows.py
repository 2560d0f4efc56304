"""The rows of tables that players share, and what their records write: once for SQLite and PostgreSQL, as
`rgs.store.rows`, which has the rest.
"""

from __future__ import annotations

import json
from enum import StrEnum
from functools import lru_cache
from typing import Final

from rgs.core.games.types import Phase
from rgs.core.tables.machine import State
from rgs.core.tables.rows import TableRound, TableRow
from rgs.core.tables.seating import BoxReservation, Sitting
from rgs.core.tables.windows import Window, WindowEnd
from rgs.store import table_records as records
from rgs.store.tables import JsonField, Table

_ENCODER: Final = json.JSONEncoder(separators=(",", ":"))


def dump(value: object) -> str:
    """Compact JSON, as it stands in a column."""
    return _ENCODER.encode(value)


@lru_cache(maxsize=1024)  # the same stakes come again and again
def _dump_bets(bets: tuple[tuple[str, int], ...]) -> str:
    return dump(bets)


def _dump_optional(value: StrEnum | None) -> str:
    return "" if value is None else value.value


def _dump_windows(windows: tuple[Window, ...]) -> str:
    return dump([[one.phase, one.open_ms, one.close_ms, one.end] for one in windows])


def _load_windows(text: str) -> tuple[Window, ...]:
    return tuple(
        Window(Phase(phase), open_ms, close_ms, WindowEnd(end)) for phase, open_ms, close_ms, end in json.loads(text)
    )


BETS: Final = JsonField(_dump_bets, lambda text: tuple((bet, amount) for bet, amount in json.loads(text)))

TABLES: Final = Table(
    "tables",
    TableRow,
    key=("table_id",),
    json={
        "phase": JsonField(_dump_optional, lambda text: Phase(text) if text else None),
        "paused_from": JsonField(_dump_optional, lambda text: State(text) if text else None),
        "windows": JsonField(_dump_windows, _load_windows),
    },
)
TABLE_ROUNDS: Final = Table(
    "table_rounds",
    TableRound,
    key=("round_id",),
    fixed=(
        *("table_id", "table_round_no", "game_code", "ruleset_id", "jurisdiction_id", "config", "seats", "hands"),
        *("salt", "seats_root", "betting_open_ms", "betting_close_ms"),
    ),
)
SITTINGS: Final = Table(
    "sittings",
    Sitting,
    key=("session_id",),
    fixed=("table_id", "operator", "player", "place_no", "box"),
    json={"bets": BETS},
)
VERSIONED: Final = (TABLES, TABLE_ROUNDS, SITTINGS)
"""Each row of these is inserted at version 1, and updated only where the stored version is one below."""
BARS: Final = Table("table_bars", records.PlayerBarred, key=("table_id", "operator", "player"))
RESERVATIONS: Final = Table("box_reservations", BoxReservation, key=("table_id", "box"))
CHAT: Final = Table("chat", records.ChatMessage, key=("message_id",))

TABLE_SQL: Final[dict[type, str]] = {
    # Numbered here and not by the process, in the order of bytes that Python sorts by, too. The version rises, so that
    # nothing that was computed before can take a seat's number away.
    records.SeatsFixed: """
        UPDATE sittings SET seat_no = cut.seat_no, version = sittings.version + 1 FROM (
        SELECT session_id, row_number() OVER (ORDER BY box, session_id COLLATE BINARY) AS seat_no
        FROM sittings WHERE table_id = ? AND reserved_minor > 0) AS cut WHERE sittings.session_id = cut.session_id
    """,
    # The rows of the table are locked by now, so that nothing is under way that these could not see.
    records.BetsStand: """
        UPDATE tables SET version = version WHERE table_id = ?1 AND ?2 = CASE WHEN EXISTS (SELECT 1 FROM sittings
        WHERE table_id = ?1 AND reserved_minor > 0) THEN 1 ELSE 0 END
    """,
    records.SeatsStand: """
        UPDATE table_rounds SET version = version WHERE NOT EXISTS (
        SELECT 1 FROM rounds r JOIN sessions s ON s.session_id = r.session_id WHERE r.round_id = table_rounds.round_id
        AND r.status = 'open' AND r.table_id <> '' AND s.last_ms > ?) AND round_id = ?
    """,
    records.SeatsLost: "DELETE FROM sittings WHERE table_id = ? AND played_no <= ? AND reserved_minor = 0",
    records.SittingEnded: "DELETE FROM sittings WHERE session_id = ? AND reserved_minor = ?",
    records.TableConfigKept: Table("table_configs", records.TableConfigKept).insert
    + " ON CONFLICT (sha256) DO NOTHING",
    records.PlayerBarred: BARS.upsert(),
    records.BarEnded: "DELETE FROM table_bars WHERE table_id = ? AND operator = ? AND player = ?",
    records.BoxReserved: RESERVATIONS.upsert(),
    records.BoxReleased: "DELETE FROM box_reservations WHERE table_id = ? AND box = ?",
    records.ReservationsLapsed: ("DELETE FROM box_reservations WHERE table_id = ? AND last_no > 0 AND last_no <= ?"),
    records.ChatMessage: CHAT.insert,
    records.ChatErased: "UPDATE chat SET text = '', nickname = '' WHERE message_id = ?",
    records.SeatTraced: "UPDATE rounds SET traceparent = ? WHERE session_id = ? AND round_id = ?",
}
"""How the records of tables are written. The fields of a record are the parameters, in order."""
CONDITIONS: Final = (records.BetsStand, records.SeatsStand)
"""Records that demand something of a table: they find its row, or the whole commit is undone."""
IS_LEFT: Final = "SELECT 1 FROM sittings WHERE session_id = ?"
"""Finds a row where `SittingEnded` has not ended the seat of its session: the whole commit is undone."""
SEATS_SIGNED: Final = "UPDATE table_rounds SET seats_ms = ?2 WHERE round_id = ?1 AND seats_ms < ?2"
"""A seat of the round has signed something at this time. PostgreSQL takes its row number as well
(`rgs.store.postgres.texts`).
"""
ERASE_TABLE_SQL: Final = (
    "UPDATE sittings SET nickname = '' WHERE operator = ? AND player = ?",
    "DELETE FROM table_bars WHERE operator = ? AND player = ?",
    "DELETE FROM box_reservations WHERE operator = ? AND player = ?",
    "DELETE FROM chat WHERE operator = ? AND player = ?",
)
"""What erases a player from the tables. The parameters are operator and player."""
OF_OPERATOR_SEATS: Final = """
    WHERE s.seat_no IN (
    SELECT seat_no FROM rounds WHERE round_id = ? AND operator = ? AND table_id <> '' UNION ALL
    SELECT seat_no FROM rounds WHERE round_id = ? AND operator = ? AND table_id = '' AND seat_no = 1)
    AND s.round_id = ? AND s.seat_no > 0
"""
"""Which statements `s` of a round are of an operator's seats: at a table by their index, and solo play has one seat."""
FORGET_CHAT: Final = (
    "DELETE FROM chat WHERE message_id IN (SELECT message_id FROM chat WHERE time_ms < ? ORDER BY time_ms LIMIT ?)"
)
