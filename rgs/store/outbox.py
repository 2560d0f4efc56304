"""What waits to be told outside: affairs, what is owed to players, stage reports, days to align.

Every query rides on an index of what is pending, so that what is done costs nothing. Refuses to write.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rgs.ports.regulator import StageReport
from rgs.store.changes import Affair, DayCount, ReportsHeld
from rgs.store.rows import SELECT_AFFAIR, SELECT_REPORTS


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """How many affairs of one kind wait at one stage, and when the oldest began. Kind `stages`: queued reports, `held`:
    those that were refused.
    """

    kind: str
    stage: int
    count: int
    oldest_ms: int


class OutboxReads(ABC):
    """The queries, once for both databases."""

    @abstractmethod
    async def _rows(self, query: str, *values: Any) -> Sequence[Any]:
        """All rows of an answer."""

    async def _row(self, query: str, *values: Any) -> Any:
        """The first row, None if there is none."""
        rows = await self._rows(query, *values)
        return rows[0] if rows else None

    # --- affairs --------------------------------------------------------------------------------------------------

    async def affair(self, affair_id: str) -> Affair | None:
        row = await self._row(SELECT_AFFAIR + "WHERE affair_id = ?", affair_id)
        return None if row is None else Affair(*row)

    async def pending_affair(self, session_id: str) -> Affair | None:
        """The one that the session waits for; what is owed waits beside it."""
        query = SELECT_AFFAIR + "WHERE session_id = ? AND status = 'pending' AND kind <> 'return'"
        row = await self._row(query, session_id)
        return None if row is None else Affair(*row)

    async def affair_of_request(self, party: str, method: str, request_id: str) -> Affair | None:
        """The affair that this request began, while it is pending, and for ever if it came to nothing."""
        query = SELECT_AFFAIR + "WHERE request_id = ? AND method = ? AND party = ? AND status IN ('pending', 'undone')"
        row = await self._row(query, request_id, method, party)
        return None if row is None else Affair(*row)

    async def opening_of_request(self, party: str, request_id: str) -> Affair | None:
        """The affair by which this `OpenSession` has opened its session, for ever: no request opens two."""
        which = "WHERE request_id = ? AND method = 'OpenSession' AND party = ? AND kind = 'open' AND status = 'done'"
        row = await self._row(SELECT_AFFAIR + which, request_id, party)
        return None if row is None else Affair(*row)

    async def pending_affairs(self, limit: int, after: str = "") -> list[Affair]:
        """The oldest unfinished affairs behind the affair `after`: what recovery continues."""
        # Named, because the order would tempt the planner to walk over all affairs that ever were.
        which = "INDEXED BY affairs_in_order WHERE status = 'pending' AND affair_id > ? ORDER BY affair_id LIMIT ?"
        query = SELECT_AFFAIR + which
        return [Affair(*row) for row in await self._rows(query, after, limit)]

    async def owed_affairs(self, operator: str, after: str, limit: int) -> list[Affair]:
        """Credits that no wallet has taken yet, oldest first; those of all operators for an empty name."""
        which = (
            "INDEXED BY affairs_owed WHERE status = 'pending' AND kind IN ('end', 'return') AND affair_id > ?"
            " AND (? = '' OR party = ?) ORDER BY affair_id LIMIT ?"
        )
        query = SELECT_AFFAIR + which
        return [Affair(*row) for row in await self._rows(query, after, operator, operator, limit)]

    async def owed_return(self, session_id: str) -> Affair | None:
        """The newest return of a session's rounds that the wallet has not taken."""
        which = "WHERE session_id = ? AND status = 'pending' AND kind = 'return' ORDER BY affair_id DESC LIMIT 1"
        row = await self._row(SELECT_AFFAIR + which, session_id)
        return None if row is None else Affair(*row)

    async def outbox(self) -> list[OutboxRow]:
        """What waits, by kind and stage."""
        affairs = (
            "SELECT kind, stage, count(*), min(created_ms) FROM affairs INDEXED BY affairs_in_order"
            " WHERE status = 'pending' GROUP BY kind, stage ORDER BY kind, stage"
        )
        held = "SELECT subject FROM held_reports WHERE kind = 'stages'"
        query = "SELECT session_id, count(*), min(end_ms) FROM stage_reports GROUP BY session_id"
        rows = [OutboxRow(*row) for row in await self._rows(affairs)]
        aside = {row[0] for row in await self._rows(held)}
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
        """The oldest queued stage reports with their row numbers, but those of sessions that are set aside."""
        which = "WHERE session_id NOT IN (SELECT subject FROM held_reports WHERE kind = 'stages') ORDER BY id LIMIT ?"
        query = SELECT_REPORTS + which
        return [(row[0], StageReport(*row[1:])) for row in await self._rows(query, limit)]

    async def reports_of(self, session_id: str, limit: int) -> list[tuple[int, StageReport]]:
        """The queued stage reports of one session, by stage number."""
        query = SELECT_REPORTS + "WHERE session_id = ? ORDER BY stage_no LIMIT ?"
        return [(row[0], StageReport(*row[1:])) for row in await self._rows(query, session_id, limit)]

    async def held_reports(self, after: tuple[str, str], limit: int) -> list[ReportsHeld]:
        """What the central system has refused, by kind and subject, behind the one given."""
        query = (
            "SELECT kind, subject, reason, since_ms FROM held_reports WHERE (kind, subject) > (?, ?)"
            " ORDER BY kind, subject LIMIT ?"
        )
        return [ReportsHeld(*row) for row in await self._rows(query, *after, limit)]

    async def held_report(self, kind: str, subject: str) -> ReportsHeld | None:
        query = "SELECT kind, subject, reason, since_ms FROM held_reports WHERE kind = ? AND subject = ?"
        row = await self._row(query, kind, subject)
        return None if row is None else ReportsHeld(*row)

    async def days_to_align(self, before_day: str, before_ms: int, limit: int) -> list[DayCount]:
        """Days that are over and were told with other sums, or not yet. None while something of them is under way."""
        waiting = (
            "SELECT 1 FROM affairs INDEXED BY affairs_in_order WHERE status = 'pending'"
            " AND kind IN ('purchase', 'end') AND created_ms < ? LIMIT 1"
        )
        queued = (
            "SELECT 1 FROM stage_reports WHERE end_ms < ?"
            " AND session_id NOT IN (SELECT subject FROM held_reports WHERE kind = 'stages') LIMIT 1"
        )
        if await self._row(waiting, before_ms) is not None or await self._row(queued, before_ms) is not None:
            return []
        query = (
            "SELECT operator, currency, day, purchases, bought_minor, stages, staked_minor, returned_minor, ends,"
            " final_balance_minor FROM register_days WHERE day < ? AND aligned <> purchases || ',' || bought_minor"
            " || ',' || stages || ',' || staked_minor || ',' || returned_minor || ',' || ends || ',' ||"
            " final_balance_minor AND operator || ':' || currency || ':' || day NOT IN"
            " (SELECT subject FROM held_reports WHERE kind = 'alignment') ORDER BY day, operator, currency LIMIT ?"
        )
        return [DayCount(*row) for row in await self._rows(query, before_day, limit)]
