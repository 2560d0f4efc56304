"""What lists show of sessions and rounds, by player, session, reference or game code, and the totals of an operator's
days. Every query is one range of an index, and a page of it is bounded by the caller's limit.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rgs.core.rounds import Round
from rgs.core.sessions import Session
from rgs.store.rows import ROUNDS, SESSIONS
from rgs.store.statement_reads import StatementReads
from rgs.store.tables import ROW_MAX

_BY_END: Final = " AND end_ms > 0 AND end_ms >= ? AND (end_ms, id) < (?, ?) ORDER BY end_ms DESC, id DESC LIMIT ?"
_BY_ID: Final = " AND id < ? ORDER BY id DESC LIMIT ?"
_DAY_TOTALS: Final = (
    "SELECT day, game, currency, sum(rounds), sum(staked_minor), sum(returned_minor), sum(void_rounds), sum(void_minor)"
    " FROM day_totals WHERE operator = ? AND day BETWEEN ? AND ? AND (day, game, currency) > (?, ?, ?)"
    " AND (? = '' OR game = ?) AND (? = '' OR currency = ?)"
    " GROUP BY day, game, currency ORDER BY day, game, currency LIMIT ?"
)


@dataclass(frozen=True, slots=True)
class DayTotalsKey:
    """The key of a line of an operator's totals; `day` is the UTC date of the rounds' end."""

    day: str = ""
    game: str = ""
    currency: str = ""


@dataclass(frozen=True, slots=True)
class DayTotalsRow:
    """A line of an operator's totals, in minor units. Void rounds are counted apart, and not staked."""

    key: DayTotalsKey
    rounds: int
    staked_minor: int
    returned_minor: int
    void_rounds: int
    void_minor: int


class HistoryReads(StatementReads):
    """The queries, once for both databases."""

    # --- sessions -------------------------------------------------------------------------------------------------

    async def sessions_of(
        self, operator: str, player: str, *, open_only: bool, before: int, limit: int
    ) -> list[tuple[int, Session]]:
        """An operator's sessions, newest first, with row numbers; those below row `before` (0: from the newest)."""
        where = "WHERE operator = ?"
        values: tuple[Any, ...] = (operator,)
        if player:
            where += " AND player = ?"
            values = (operator, player)
        if open_only:
            where += " AND status <> 'closed'"
        return await self._numbered(SESSIONS, where + _BY_ID, *values, before or ROW_MAX, limit)

    async def sessions_with(
        self, operator: str, reference: str, *, before: int, limit: int
    ) -> list[tuple[int, Session]]:
        """The sessions of an operator with this reference of its own, newest first: one, and those that never opened.
        More where they were opened before references had to differ.
        """
        where = "WHERE operator = ? AND operator_reference = ? AND operator_reference <> ''"
        return await self._numbered(SESSIONS, where + _BY_ID, operator, reference, before or ROW_MAX, limit)

    async def session_of_reference(self, operator: str, reference: str) -> str:
        """The id of the session that holds this reference of the operator; empty if none does."""
        query = (
            "SELECT session_id FROM sessions WHERE operator = ? AND operator_reference = ? AND operator_reference <> ''"
            " AND reference_slot = 0"
        )
        row = await self._row(query, operator, reference)
        return "" if row is None else str(row[0])

    async def session_versions(self, session_ids: Sequence[str]) -> dict[str, int]:
        """The versions of those that exist."""
        query = "SELECT session_id, version FROM sessions WHERE session_id IN (SELECT value FROM json_each(?))"
        return {row[0]: row[1] for row in await self._rows(query, json.dumps(list(session_ids)))}

    # --- rounds ---------------------------------------------------------------------------------------------------

    async def rounds_ended(
        self, operator: str, player: str, *, game: str = "", first_ms: int = 0, before: tuple[int, int], limit: int
    ) -> list[tuple[int, Round]]:
        """A player's ended rounds, last ended first, below (end time, row number); of one game where one is given."""
        where = "WHERE operator = ? AND player = ?"
        values: tuple[str, ...] = (operator, player)
        if game:
            where, values = where + " AND ruleset_id = ?", (operator, player, game)
        return await self._numbered(ROUNDS, where + _BY_END, *values, first_ms, *before, limit)

    async def rounds_with_code(
        self, operator: str, code: str, player: str, game: str, *, first_ms: int, before: tuple[int, int], limit: int
    ) -> list[tuple[int, Round]]:
        """Ended rounds with a game code, as `rounds_ended`; of one player and game where they are given."""
        where = "WHERE operator = ? AND game_code = ? AND (? = '' OR player = ?) AND (? = '' OR ruleset_id = ?)"
        values = (operator, code, player, player, game, game)
        return await self._numbered(ROUNDS, where + _BY_END, *values, first_ms, *before, limit)

    async def rounds_of_session(self, session_id: str, *, before_no: int, limit: int) -> list[tuple[int, Round]]:
        """The rounds of a session, newest first, below a round number; they may be in play. All rounds of a session are
        archived, or none.
        """
        where = "WHERE session_id = ? AND round_no < ? ORDER BY round_no DESC LIMIT ?"
        rows = await self._numbered(ROUNDS, where, session_id, before_no, limit)
        if rows or self.archive is None:
            return rows
        moved = await self.archive.rounds_of_session(session_id, before_no, limit)
        named = await self._with_players([one for _, one in moved])
        return [(number, one) for (number, _), one in zip(moved, named, strict=True)]

    async def rounds_started(self, operator: str, player: str, first_ms: int, last_ms: int, limit: int) -> list[Round]:
        """A player's rounds that started within the two times, ends included."""
        where = "WHERE operator = ? AND player = ? AND start_ms BETWEEN ? AND ? ORDER BY start_ms LIMIT ?"
        return await self._found(ROUNDS, where, operator, player, first_ms, last_ms, limit)

    # --- totals ---------------------------------------------------------------------------------------------------

    async def day_totals(
        self,
        operator: str,
        first_day: str,
        last_day: str,
        *,
        game: str = "",
        currency: str = "",
        after: DayTotalsKey,
        limit: int,
    ) -> list[DayTotalsRow]:
        """An operator's totals by day, game and currency, behind the row `after`."""
        values = (operator, first_day, last_day, after.day, after.game, after.currency, game, game, currency, currency)
        rows = await self._rows(_DAY_TOTALS, *values, limit)
        return [DayTotalsRow(DayTotalsKey(*row[:3]), *map(int, row[3:])) for row in rows]
