"""What support staff looks up by ids that others give: the regulator's, and transaction ids of the wallet; and rounds
by their game code, in play or not. Every query is one range of an index, and a page is bounded by its caller's limit.
"""

from __future__ import annotations

from typing import Final

from rgs.core.rounds import Round
from rgs.core.sessions import Session
from rgs.core.statements import format_canonical
from rgs.store.changes import Operation
from rgs.store.queries import Queries
from rgs.store.rows import OPERATIONS, ROUNDS, SESSIONS
from rgs.store.table_rows import BARS
from rgs.store.tables import ROW_MAX

_NEWEST: Final = " AND (? = '' OR operator = ?) AND id < ? ORDER BY id DESC LIMIT ?"


class SupportReads(Queries):
    """The queries, once for both databases."""

    async def operators(self) -> list[str]:
        """The names of all operators that the allow-list has had."""
        rows = await self._rows("SELECT party FROM parties WHERE role = 'operator' ORDER BY party")
        return [row[0] for row in rows]

    async def sessions_of_regulator(
        self, regulator_session_id: str, operator: str, *, before: int, limit: int
    ) -> list[tuple[int, Session]]:
        """Sessions under a session id of the regulator, newest first, with row numbers; of one operator if named."""
        where = "WHERE regulator_session_id = ? AND regulator_session_id <> ''" + _NEWEST
        return await self._numbered(SESSIONS, where, regulator_session_id, operator, operator, before or ROW_MAX, limit)

    async def sessions_of_participation(
        self, regulator_participation_id: str, operator: str, *, before: int, limit: int
    ) -> list[tuple[int, Session]]:
        """Sessions with a participation id of the regulator, as `sessions_of_regulator`."""
        where = "WHERE regulator_participation_id = ? AND regulator_participation_id <> ''" + _NEWEST
        return await self._numbered(
            SESSIONS, where, regulator_participation_id, operator, operator, before or ROW_MAX, limit
        )

    async def payout_of_transaction(self, transaction_id: str) -> Operation | None:
        """The newest end of a participation that pays out under this transaction id (`payout_detail`)."""
        detail = format_canonical({"transaction_id": transaction_id}).decode("ascii")
        where = "WHERE kind = 'end' AND detail = ? AND detail <> '' ORDER BY operation_id DESC LIMIT 1"
        return await self._first(OPERATIONS, where, detail)

    async def rounds_of_code(
        self, operator: str, code: str, span: tuple[int, int], until_ms: int, *, before: tuple[int, int], limit: int
    ) -> list[tuple[int, Round]]:
        """An operator's ended rounds with a game code that began within the span (milliseconds, the end left out) and
        ended before `until_ms`; last ended first, below (end time, row number).
        """
        where = (
            "WHERE operator = ? AND game_code = ? AND start_ms >= ? AND start_ms < ? AND end_ms > 0"
            " AND end_ms >= ? AND end_ms < ? AND (end_ms, id) < (?, ?) ORDER BY end_ms DESC, id DESC LIMIT ?"
        )
        return await self._numbered(ROUNDS, where, operator, code, *span, span[0], until_ms, *before, limit)

    async def open_rounds_of_code(
        self, operator: str, code: str, span: tuple[int, int], *, before: int, limit: int
    ) -> list[tuple[int, Round]]:
        """Those that are in play, below a row number, the newest first. It walks over those of the operator
        that are in play, and over no others.
        """
        where = (
            "WHERE status = 'open' AND operator = ? AND game_code = ? AND start_ms >= ? AND start_ms < ?"
            " AND id < ? ORDER BY id DESC LIMIT ?"
        )
        return await self._numbered(ROUNDS, where, operator, code, *span, before, limit)

    async def bars_of_player(self, operator: str, player: str, limit: int) -> list[tuple[str, str, int]]:
        """Table, reason and time of each bar of a player."""
        found = await self._found(BARS, "WHERE operator = ? AND player = ? LIMIT ?", operator, player, limit)
        return [(bar.table_id, bar.reason, bar.time_ms) for bar in found]
