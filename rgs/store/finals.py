"""The finals of each operator in one order without gaps (rgs.service.audit.finals): what lists and what reads them.

A final gets its number after its commit, by the process that leads, which follows each instance by its statement
numbers. So no final is missed, whichever process commits first. Each `FinalsRead` changes exactly one row or its commit
fails, so that none is listed twice when another process takes the lead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rgs.store.queries import Queries

KINDS: Final = ("round_final", "seat_final")


@dataclass(frozen=True, slots=True)
class FinalsRead:
    """An instance's statements are listed up to this number, from `before` on."""

    instance: str
    statement_no: int
    before: int


@dataclass(frozen=True, slots=True)
class FinalsListed:
    """Rows of `finals` as a JSON list of [operator, final_no, instance, statement_no, mark]."""

    rows: str


FinalsRecord = FinalsRead | FinalsListed

FINALS_SQL: Final[dict[type, str]] = {
    FinalsRead: """
        INSERT INTO finals_read (instance, statement_no, before_no) VALUES (?, ?, ?)
        ON CONFLICT (instance) DO UPDATE SET statement_no = excluded.statement_no, before_no = excluded.before_no
        WHERE finals_read.statement_no = excluded.before_no
    """,
    FinalsListed: (
        "INSERT INTO finals (operator, final_no, instance, statement_no, mark)"
        " SELECT value ->> 0, CAST(value ->> 1 AS BIGINT), value ->> 2, CAST(value ->> 3 AS BIGINT), value ->> 4"
        " FROM json_each(?)"
    ),
}
"""Of both databases: what differs is how a JSON list is opened (`postgres_text`)."""
FINALS_ONE_ROW: Final = (FinalsRead,)


@dataclass(frozen=True, slots=True)
class Unlisted:
    """An instance with statements that are not looked at yet: those above `after_no`, up to `last_no`. `next_id` is the
    row number of the first of them.
    """

    instance: str
    after_no: int
    last_no: int
    next_id: int


@dataclass(frozen=True, slots=True)
class StatementToList:
    """A statement. `operator` is that of its session if it is a final, else empty."""

    id: int
    instance: str
    statement_no: int
    operator: str
    hash: bytes


@dataclass(frozen=True, slots=True)
class ListedFinal:
    """A final with its number and mark. `private` is empty where the player was erased."""

    final_no: int
    mark: str
    kind: str
    instance: str
    statement_no: int
    session_id: str
    link_no: int
    round_id: str
    hash: bytes
    envelope: bytes
    private: bytes


class FinalsReads(Queries):
    """The queries, once for both databases."""

    async def unlisted(self, limit: int) -> list[Unlisted]:
        """Instances with statements that are not looked at yet, at one moment, by the row number of the first."""
        # The inner one is asked of each row, so that no planner is tempted to begin with all statements that there are.
        query = (
            "SELECT i.instance, COALESCE(r.statement_no, 0), i.statement_no, COALESCE((SELECT s.id FROM statements s"
            " WHERE s.instance = i.instance AND s.statement_no = COALESCE(r.statement_no, 0) + 1), 0) AS next_id"
            " FROM instances i LEFT JOIN finals_read r ON r.instance = i.instance"
            " WHERE i.statement_no > COALESCE(r.statement_no, 0) ORDER BY next_id LIMIT ?"
        )
        return [Unlisted(*row) for row in await self._rows(query, limit)]

    async def statements_to_list(self, instance: str, after_no: int, last_no: int, limit: int) -> list[StatementToList]:
        """The next statements of an instance, without their envelopes."""
        query = (
            "SELECT s.id, s.instance, s.statement_no, CASE WHEN s.kind IN ('round_final', 'seat_final') THEN"
            " COALESCE((SELECT operator FROM sessions WHERE session_id = s.session_id), '') ELSE '' END, s.hash"
            " FROM statements s WHERE s.instance = ? AND s.statement_no BETWEEN ? AND ? ORDER BY s.statement_no LIMIT ?"
        )
        return [StatementToList(*row) for row in await self._rows(query, instance, after_no + 1, last_no, limit)]

    async def newest_final(self, operator: str) -> tuple[int, str]:
        """Number and mark of the operator's newest final; (0, empty) if there is none."""
        query = "SELECT final_no, mark FROM finals WHERE operator = ? ORDER BY final_no DESC LIMIT 1"
        row = await self._row(query, operator)
        return (0, "") if row is None else (row[0], row[1])

    async def final_mark(self, operator: str, final_no: int) -> str:
        """The mark of a final; empty if there is none of this number."""
        row = await self._row("SELECT mark FROM finals WHERE operator = ? AND final_no = ?", operator, final_no)
        return "" if row is None else str(row[0])
