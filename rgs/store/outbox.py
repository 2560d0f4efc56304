"""What waits outside the store: operations that are under way, credits that are owed, stage reports, days to align.

Every query uses an index of what is pending, so what is done costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from rgs.ports.regulator import StageReport
from rgs.store.changes import DayCount, Operation, ReportsHeld
from rgs.store.queries import Queries
from rgs.store.rows import DAYS, HELD_REPORTS, OPERATIONS, REPORTS


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """How many operations of one kind wait at one stage, and when the oldest began. Kind `stages`: queued reports,
    `held`: those that were refused.
    """

    kind: str
    progress: int
    count: int
    oldest_ms: int


class OutboxReads(Queries):
    """The queries, once for both databases."""

    # --- operations -----------------------------------------------------------------------------------------------

    async def operation(self, operation_id: str) -> Operation | None:
        return await self._first(OPERATIONS, "WHERE operation_id = ?", operation_id)

    async def pending_operation(self, session_id: str) -> Operation | None:
        """The one that the session waits for. Credits that are owed wait beside it."""
        return await self._first(
            OPERATIONS, "WHERE session_id = ? AND status = 'pending' AND kind <> 'credit'", session_id
        )

    async def operation_of_request(self, party: str, method: str, request_id: str) -> Operation | None:
        """The operation that this request began: while it is pending, and for ever if it came to nothing."""
        where = "WHERE request_id = ? AND method = ? AND party = ? AND status IN ('pending', 'undone')"
        return await self._first(OPERATIONS, where, request_id, method, party)

    async def opening_of_request(self, party: str, request_id: str) -> Operation | None:
        """The operation by which this `OpenSession` opened its session. It is kept for ever: no request opens two."""
        where = "WHERE request_id = ? AND method = 'OpenSession' AND party = ? AND kind = 'open' AND status = 'done'"
        return await self._first(OPERATIONS, where, request_id, party)

    async def pending_operations(self, limit: int, after: str = "") -> list[Operation]:
        """The oldest unfinished operations after the operation `after`: what recovery continues."""
        # Named, because the order would tempt the planner to walk over all operations that ever were.
        where = (
            "INDEXED BY operations_in_order WHERE status = 'pending' AND operation_id > ? ORDER BY operation_id LIMIT ?"
        )
        return await self._found(OPERATIONS, where, after, limit)

    async def pending_credits(self, operator: str, after: str, limit: int) -> list[Operation]:
        """Credits that no wallet has taken yet, oldest first; those of all operators for an empty name."""
        where = (
            "INDEXED BY pending_credits WHERE status = 'pending' AND kind IN ('end', 'credit') AND operation_id > ?"
            " AND (? = '' OR party = ?) ORDER BY operation_id LIMIT ?"
        )
        return await self._found(OPERATIONS, where, after, operator, operator, limit)

    async def round_credit(self, session_id: str) -> Operation | None:
        """The newest credit of a session's rounds that the wallet has not taken."""
        where = "WHERE session_id = ? AND status = 'pending' AND kind = 'credit' ORDER BY operation_id DESC LIMIT 1"
        return await self._first(OPERATIONS, where, session_id)

    async def outbox(self) -> list[OutboxRow]:
        """What waits, by kind and stage."""
        operations = (
            "SELECT kind, progress, count(*), min(created_ms) FROM operations INDEXED BY operations_in_order"
            " WHERE status = 'pending' GROUP BY kind, progress ORDER BY kind, progress"
        )
        held = "SELECT subject FROM held_reports WHERE kind = 'stages'"
        query = "SELECT session_id, count(*), min(end_ms) FROM stage_reports GROUP BY session_id"
        rows = [OutboxRow(*row) for row in await self._rows(operations)]
        aside = {subject for (subject,) in await self._rows(held)}
        queued = await self._rows(query)
        for kind, found in (
            ("held", [row for row in queued if row[0] in aside]),
            ("stages", [row for row in queued if row[0] not in aside]),
        ):
            if found:
                rows.append(OutboxRow(kind, 0, sum(row[1] for row in found), min(row[2] for row in found)))
        return rows

    # --- reports --------------------------------------------------------------------------------------------------

    async def reports(self, limit: int) -> list[tuple[int, StageReport]]:
        """The oldest queued stage reports with their row numbers, except those of sessions that are set aside."""
        which = "WHERE session_id NOT IN (SELECT subject FROM held_reports WHERE kind = 'stages') ORDER BY id LIMIT ?"
        return await self._numbered(REPORTS, which, limit)

    async def reports_of(self, session_id: str, limit: int) -> list[tuple[int, StageReport]]:
        """The queued stage reports of one session, by round number."""
        return await self._numbered(REPORTS, "WHERE session_id = ? ORDER BY stage_no LIMIT ?", session_id, limit)

    async def held_reports(self, after: tuple[str, str], limit: int) -> list[ReportsHeld]:
        """What the regulator has refused, by kind and subject, after the one given."""
        where = "WHERE (kind, subject) > (?, ?) ORDER BY kind, subject LIMIT ?"
        return await self._found(HELD_REPORTS, where, *after, limit)

    async def held_report(self, kind: str, subject: str) -> ReportsHeld | None:
        return await self._first(HELD_REPORTS, "WHERE kind = ? AND subject = ?", kind, subject)

    async def days_to_align(self, before_day: str, before_ms: int, limit: int) -> list[DayCount]:
        """Days that are over and were not reported with these sums. Empty while something of them is under way."""
        waiting = (
            "SELECT 1 FROM operations INDEXED BY operations_in_order WHERE status = 'pending'"
            " AND kind IN ('purchase', 'end') AND created_ms < ? LIMIT 1"
        )
        queued = (
            "SELECT 1 FROM stage_reports WHERE end_ms < ?"
            " AND session_id NOT IN (SELECT subject FROM held_reports WHERE kind = 'stages') LIMIT 1"
        )
        if await self._row(waiting, before_ms) is not None or await self._row(queued, before_ms) is not None:
            return []
        where = (
            "WHERE day < ? AND aligned <> purchases || ',' || bought_minor"
            " || ',' || stages || ',' || staked_minor || ',' || returned_minor || ',' || ends || ',' ||"
            " final_balance_minor AND operator || ':' || currency || ':' || day NOT IN"
            " (SELECT subject FROM held_reports WHERE kind = 'alignment') ORDER BY day, operator, currency LIMIT ?"
        )
        return await self._found(DAYS, where, before_day, limit)
