"""What the monitoring of returns keeps (rgs.service.admin.monitoring): tallies by ruleset, how far each instance's
statements were read, and rounds that were passed over because they were open for long.

Each record changes exactly one row or its commit fails. So nothing is counted twice, even when a process dies or
another takes over in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rgs.store.queries import Queries
from rgs.store.tables import Table


@dataclass(frozen=True, slots=True)
class TallyKept:
    """A tally as it is from now on; `version` is one above what was read, 1 for the first."""

    ruleset_sha256: str
    ruleset_id: str
    version: int
    tally: str


@dataclass(frozen=True, slots=True)
class StatementsRead:
    """An instance's statements are read up to this number, from `before` on."""

    instance: str
    statement_no: int
    before: int


@dataclass(frozen=True, slots=True)
class RoundPassedOver:
    """A round that had been open for long when it was to be counted."""

    round_id: str


@dataclass(frozen=True, slots=True)
class PassedOverCounted:
    """A round that was passed over has ended, and is counted in the same commit."""

    round_id: str


ReturnsRecord = TallyKept | StatementsRead | RoundPassedOver | PassedOverCounted

TALLIES: Final = Table("returns", TallyKept)

RETURNS_SQL: Final[dict[type, str]] = {
    TallyKept: TALLIES.insert
    + (
        " ON CONFLICT (ruleset_sha256) DO UPDATE SET version = excluded.version, tally = excluded.tally"
        " WHERE returns.version = excluded.version - 1"
    ),
    StatementsRead: """
        INSERT INTO returns_read (instance, statement_no, before_no) VALUES (?, ?, ?)
        ON CONFLICT (instance) DO UPDATE SET statement_no = excluded.statement_no, before_no = excluded.before_no
        WHERE returns_read.statement_no = excluded.before_no
    """,
    RoundPassedOver: "INSERT INTO returns_late (round_id) VALUES (?)",
    PassedOverCounted: "DELETE FROM returns_late WHERE round_id = ?",
}
"""Of both databases: what differs between them is how a parameter is written (`postgres_text`)."""
RETURNS_ONE_ROW: Final = (TallyKept, StatementsRead, RoundPassedOver, PassedOverCounted)


@dataclass(frozen=True, slots=True)
class RoundToCount:
    """The next statement. `opening` is a `round_opening`, or the `table_deal` of a round of a table; empty for other
    kinds, and for rounds with play money. `final` is the `round_final`, empty while the round is open, and at tables.
    """

    statement_no: int
    round_id: str
    currency: str
    opening: bytes
    final: bytes


class ReturnsReads(Queries):
    """The queries, once for both databases."""

    async def tallies(self) -> list[TallyKept]:
        """All tallies, by the name of their rulesets."""
        return await self._found(TALLIES, "ORDER BY ruleset_id, ruleset_sha256")

    async def unread_instances(self, limit: int) -> list[tuple[str, int]]:
        """Instances with statements that are not read yet, the oldest first, and how far each is read."""
        query = (
            "SELECT i.instance, COALESCE(r.statement_no, 0) FROM instances i"
            " LEFT JOIN returns_read r ON r.instance = i.instance"
            " WHERE i.statement_no > COALESCE(r.statement_no, 0) ORDER BY i.start_ms, i.instance LIMIT ?"
        )
        return [(row[0], row[1]) for row in await self._rows(query, limit)]

    async def rounds_to_count(self, instance: str, after_no: int, limit: int) -> list[RoundToCount]:
        """The instance's next statements, each round's opening with its final."""
        # The inner ones are asked of each row, so that no planner is tempted to begin with all finals that there are,
        # or with all sessions, as an EXISTS tempts it.
        query = (
            "SELECT o.statement_no, o.round_id, CASE WHEN o.kind = 'round_opening' THEN"
            " COALESCE((SELECT currency FROM sessions WHERE session_id = o.session_id), '') ELSE '' END,"
            " CASE WHEN o.kind IN ('round_opening', 'table_deal') AND COALESCE((SELECT mode FROM sessions"
            " WHERE session_id = o.session_id), '') <> 'demo' THEN o.envelope ELSE x'' END,"
            " CASE WHEN o.kind = 'round_opening' THEN COALESCE((SELECT f.envelope FROM statements f"
            " WHERE f.round_id = o.round_id AND f.seat_no = o.seat_no AND f.seat_no > 0 AND f.kind = 'round_final'),"
            " x'') ELSE x'' END FROM statements o"
            " WHERE o.instance = ? AND o.statement_no > ? ORDER BY o.statement_no LIMIT ?"
        )
        return [RoundToCount(*row) for row in await self._rows(query, instance, after_no, limit)]

    async def late_rounds(self, limit: int) -> list[str]:
        """Rounds that were passed over and have ended since, those of tables with all their seats."""
        query = (
            "SELECT l.round_id FROM returns_late l WHERE (SELECT kind FROM statements WHERE round_id = l.round_id"
            " AND seat_no = 1 AND seat_no > 0 AND kind IN ('round_final', 'seat_final')) IS NOT NULL"
            " AND NOT EXISTS (SELECT 1 FROM rounds r WHERE r.round_id = l.round_id AND r.status = 'open'"
            " AND r.table_id <> '') ORDER BY l.round_id LIMIT ?"
        )
        return [row[0] for row in await self._rows(query, limit)]

    async def passed_over(self) -> int:
        """How many rounds were passed over and have not ended."""
        (row,) = await self._rows("SELECT count(*) FROM returns_late")
        count: int = row[0]
        return count
