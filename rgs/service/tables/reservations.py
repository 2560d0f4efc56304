"""The live check of reservations: what the sessions hold for a table is what its seats have bet (docs/tables.md).

Both stand in the same commits, so they never differ. Where they do, the store was changed otherwise or the software is
wrong: the table is paused, and admins examine it. One process leads the check.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import structlog

from rgs.core.clock import Clock
from rgs.core.tables.machine import STEPS, Step
from rgs.core.tables.rows import TableRow
from rgs.service.tables.configs import TableConfigs
from rgs.service.tables.dealer import Dealer
from rgs.store.changes import TableMovedError
from rgs.store.interface import Store

DUTY: Final = "reservations"
PERIOD_MS: Final = 60_000
"""How often every table is checked."""
TABLES_PAGE: Final = 200
RESERVATIONS_DIFFER: Final = "RESERVATIONS_DIFFER"
"""Code of the malfunction."""


@dataclass(kw_only=True, eq=False, repr=False)
class Reservations:
    """Checks the reservations of all tables."""

    store: Store
    clock: Clock
    configs: TableConfigs
    dealer: Dealer
    _next_ms: int = field(default=0, init=False)

    async def poll(self) -> int:
        """Check all tables if it is time; how many were found wrong and paused."""
        running_ms = self.clock.running_ms()
        if running_ms < self._next_ms or not await self.store.lead(DUTY):
            return 0
        found, after = 0, ""
        while page := await self.store.tables(after, TABLES_PAGE):
            after = page[-1].table.table_id
            for row in page:
                found += await self._check(row)
        self._next_ms = running_ms + PERIOD_MS
        return found

    async def _check(self, row: TableRow) -> bool:
        table_id = row.table.table_id
        breaks = await self.store.reserved_breaks(table_id, "", 1)
        if not breaks or Step.PAUSE not in STEPS[row.table.state]:
            return False
        session_id, held_minor, bet_minor = breaks[0]
        structlog.get_logger().error(
            "reservations_differ", table=table_id, session_id=session_id, held_minor=held_minor, bet_minor=bet_minor
        )
        row, now_ms = await self.dealer.read(table_id)
        config = await self.configs.of(row.config)
        try:
            await self.dealer.commit(self.dealer.pause_change(row, config, RESERVATIONS_DIFFER, now_ms))
        except TableMovedError:
            return False  # at the next look
        return True
