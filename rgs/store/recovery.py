"""What is brought into a restored store from the log (docs/keys.md): the rows, and the texts that both stores share.

From the import until the recovery is signed the store is marked; a server refuses a marked store.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, field, replace
from typing import Any, Final

from rgs.core.rounds import Round
from rgs.core.sessions import Session, SessionStatus
from rgs.core.tables.rows import TableRound, TableRow
from rgs.core.tables.seating import Sitting
from rgs.ports.regulator import StageReport
from rgs.store import rows
from rgs.store.changes import DayCount, Operation
from rgs.store.free_bets import GrantRenewed
from rgs.store.table_records import TableConfigKept
from rgs.store.table_rows import SITTINGS, TABLE_ROUNDS, TABLES

END_OPERATIONS: Final = (
    "UPDATE operations SET status = CASE kind WHEN ? THEN 'done' ELSE 'undone' END"
    " WHERE session_id = ? AND status = 'pending' AND kind <> 'credit'"
)
LEAVE: Final = "DELETE FROM sittings WHERE session_id = ?"
SEATS_SIGNED: Final = "UPDATE table_rounds SET seats_ms = ?2 WHERE round_id = ?1 AND seats_ms < ?2"
USE_GRANT: Final = "UPDATE free_bets SET status = 'used', round_id = ? WHERE grant_id = ?"
HOLD_REFERENCE: Final = """
    UPDATE sessions SET reference_slot = 0 WHERE session_id = ? AND NOT EXISTS (SELECT 1 FROM sessions o
    WHERE o.operator = sessions.operator AND o.operator_reference = sessions.operator_reference
    AND o.operator_reference <> '' AND o.reference_slot = 0)
"""
"""A new session holds its reference unless another does: they may be from before references had to differ."""
MARK: Final = (
    "INSERT INTO meta (key, value) SELECT ?, value FROM meta WHERE key = 'store_epoch'"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)


@dataclass(slots=True)
class InstanceState:
    """How an instance stands behind the gap."""

    node: str
    boot_no: int
    worker: int
    start_ms: int
    statement_no: int
    draw_no: int
    end_ms: int = 0
    """0 where nothing says that it has ended."""


@dataclass(slots=True)
class Import:
    """All rows of a gap: sessions and rounds as they stand behind it."""

    instances: dict[str, InstanceState] = field(default_factory=dict)
    statements: list[tuple[Any, ...]] = field(default_factory=list)
    """Rows of the table, in the order of the log."""
    privates: list[tuple[str, int, bytes]] = field(default_factory=list, repr=False)
    """(instance, statement number, private block) of the blocks that still exist."""
    lost_privates: int = 0
    """How many statements have a private block that is lost."""
    artifacts: list[tuple[str, str, bytes]] = field(default_factory=list)
    new_sessions: dict[str, Session] = field(default_factory=dict)
    sessions: dict[str, Session] = field(default_factory=dict)
    new_rounds: dict[tuple[str, int], Round] = field(default_factory=dict)
    """By round and seat, as `rounds`."""
    rounds: dict[tuple[str, int], Round] = field(default_factory=dict)
    ended: list[tuple[Round, str]] = field(default_factory=list)
    """Rounds that end in the gap, with their currency."""
    reports: list[tuple[StageReport, str]] = field(default_factory=list)
    days: list[DayCount] = field(default_factory=list)
    opened: list[Operation] = field(default_factory=list)
    """The operations that opened the new sessions, where their requests are known."""
    owed: list[Operation] = field(default_factory=list)
    """Credits that are signed."""
    free_bets: dict[str, str] = field(default_factory=dict)
    """Round -> `campaign:grant_id` of the free bet that paid for it."""
    grants_used: list[tuple[str, str]] = field(default_factory=list)
    """(round, grant) of the free bets that were used."""
    renewed: list[GrantRenewed] = field(default_factory=list)
    operations: list[tuple[str, str]] = field(default_factory=list)
    """(kind of operation that the session's first link in the gap ends, session)."""
    tables: dict[str, TableRow] = field(default_factory=dict)
    table_rounds: dict[str, TableRound] = field(default_factory=dict)
    sittings: dict[str, Sitting] = field(default_factory=dict)
    """Seats at tables that stand otherwise now, by session."""
    seats_ms: dict[str, int] = field(default_factory=dict)
    """Round of a table -> the time of its newest seat in the gap."""
    left: list[str] = field(default_factory=list)
    """Sessions that have no seat at their table any more."""
    table_configs: list[TableConfigKept] = field(default_factory=list)
    silent: list[Round] = field(default_factory=list)
    """Seats of settled rounds that end by default decisions, because no decision of theirs is known."""
    undecided: list[Round] = field(default_factory=list)
    """Seats of settled rounds that had decided, and it is not known what."""

    def instance_rows(self) -> list[tuple[Any, ...]]:
        """(instance, node, boot number, worker, alive, last statement, last draw, start, end) of each instance."""
        return [
            (name, one.node, one.boot_no, one.worker, int(not one.end_ms), one.statement_no, one.draw_no, one.start_ms,
             one.end_ms) for name, one in self.instances.items()
        ]  # fmt: skip

    def report_rows(self) -> list[tuple[Any, ...]]:
        """The rows of `reports`."""
        return [rows.REPORTS.row(replace(report, final_hash=final)) for report, final in self.reports]


def shared_rows(gap: Import) -> list[tuple[str, list[tuple[Any, ...]]]]:
    """What has no row number of its own: texts, each with its rows. New sessions and rounds must be there before."""
    totals = [rows.totals_row(ended, currency) for ended, currency in gap.ended]
    closed = [one for one in gap.sessions.values() if one.status is SessionStatus.CLOSED]
    return [
        (rows.PRIVATES.insert, list(gap.privates)),
        (END_OPERATIONS, list(gap.operations)),
        (rows.INSERT_OPERATION, [rows.OPERATIONS.row(one) for one in (*gap.opened, *gap.owed)]),
        (rows.UPDATE_SESSION, [rows.SESSIONS.change(one) for one in gap.sessions.values()]),
        (rows.DROP_TOKEN, [(one.session_id,) for one in closed]),
        (rows.UPDATE_ROUND, [rows.ROUNDS.change(one) for one in gap.rounds.values()]),
        (HOLD_REFERENCE, [(session_id,) for session_id in gap.new_sessions]),
        (rows.INSERT_TOTALS, list(totals)),
        (rows.INSERT_DAY_TOTALS, list(rows.day_totals_rows(totals, ""))),
        (rows.INSERT_DAY, [rows.DAYS.row(count) for count in gap.days]),
        (rows.RECORD_SQL[TableConfigKept], [astuple(one) for one in gap.table_configs]),
        (TABLES.upsert(), [TABLES.row(one) for one in gap.tables.values()]),
        (TABLE_ROUNDS.upsert(), [TABLE_ROUNDS.row(one) for one in gap.table_rounds.values()]),
        (SITTINGS.upsert(), [SITTINGS.row(one) for one in gap.sittings.values()]),
        (LEAVE, [(session_id,) for session_id in gap.left]),
        (USE_GRANT, list(gap.grants_used)),
        (rows.RECORD_SQL[GrantRenewed], [astuple(one) for one in gap.renewed]),
        (SEATS_SIGNED, [(round_id, time_ms) for round_id, time_ms in gap.seats_ms.items()]),
    ]
