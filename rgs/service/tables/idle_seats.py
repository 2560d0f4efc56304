"""Boxes of players who are gone: once the session is inactive by its law, and no bet is reserved, the box is free.

Such a session may place no bets any more (`SESSION_INACTIVE`), so the player loses nothing but the place. One process
leads; nothing ends while time is not trusted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rgs.core.clock import Clock
from rgs.core.tables.rows import TableRow
from rgs.core.tables.seating import Sitting
from rgs.core.values import changed
from rgs.service.game_catalog import GameCatalog
from rgs.service.tables.signals import Signals
from rgs.store.changes import Change, SessionRaceError, TableMovedError
from rgs.store.interface import Store
from rgs.store.table_records import SittingEnded

DUTY: Final = "idle_seats"
PERIOD_MS: Final = 60_000
TABLES_PAGE: Final = 200


@dataclass(kw_only=True, eq=False, repr=False)
class IdleSeats:
    """Frees the boxes of inactive sessions."""

    store: Store
    clock: Clock
    games: GameCatalog
    signals: Signals
    _next_ms: int = field(default=0, init=False)

    async def poll(self) -> int:
        """Look at the boxes of all tables if it is time; how many were freed."""
        running_ms = self.clock.running_ms()
        if running_ms < self._next_ms or not self.clock.is_trusted or not await self.store.lead(DUTY):
            return 0
        freed, after = 0, ""
        while page := await self.store.tables(after, TABLES_PAGE):
            after = page[-1].table.table_id
            for row in page:
                for sitting in await self.store.boxes(row.table.table_id):
                    freed += await self._freed(row, sitting)
        self._next_ms = running_ms + PERIOD_MS
        return freed

    async def _freed(self, row: TableRow, sitting: Sitting) -> bool:
        session = await self.store.session(sitting.session_id)
        if session is None or sitting.reserved_minor or session.open_round_id:
            return False
        law = self.games.jurisdictions[session.jurisdiction_id]
        if self.clock.passed_ms(session.last_ms) <= law.inactivity_ms:
            return False
        change = Change(
            session=changed(session, version=session.version + 1), records=(SittingEnded(session.session_id),)
        )
        try:
            await self.store.commit(change)
        except (SessionRaceError, TableMovedError):
            return False  # the player is back
        self.signals.seat(session.session_id)
        self.signals.moved(row.table.table_id, row.table.version)
        return True
