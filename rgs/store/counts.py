"""What monitoring counts in the store at each look. A query reads what is open or waits, or a few rows of totals, never
what is done.
"""

from __future__ import annotations

from dataclasses import dataclass

from rgs.store.queries import Queries


@dataclass(frozen=True, slots=True)
class OpenRounds:
    """The rounds of one game that are in play, and when the oldest began."""

    game: str
    count: int
    oldest_ms: int


@dataclass(frozen=True, slots=True)
class GameTotals:
    """Sums of one game in one currency, in minor units. Void rounds are counted apart, and not staked."""

    game: str
    currency: str
    rounds: int
    staked_minor: int
    returned_minor: int
    void_rounds: int
    void_minor: int


class CountReads(Queries):
    """The queries, once for both databases."""

    async def count_open_rounds(self) -> list[OpenRounds]:
        """Rounds in play, by game; each seat of a table's round counts."""
        query = (
            "SELECT ruleset_id, count(*), min(start_ms) FROM rounds WHERE status = 'open'"
            " GROUP BY ruleset_id ORDER BY ruleset_id"
        )
        return [OpenRounds(*row) for row in await self._rows(query)]

    async def count_open_sessions(self) -> int:
        """Sessions that are not closed."""
        return int((await self._row("SELECT count(*) FROM sessions WHERE status <> 'closed'"))[0])

    async def count_tables(self) -> dict[str, int]:
        """Tables by state."""
        rows = await self._rows("SELECT state, count(*) FROM tables GROUP BY state ORDER BY state")
        return {row[0]: row[1] for row in rows}

    async def oldest_due_ms(self) -> int:
        """When the table that has waited longest was to be looked at; 0 if no time is set for any."""
        query = "SELECT due_ms FROM tables WHERE due_ms > 0 ORDER BY due_ms LIMIT 1"
        row = await self._row(query)
        return 0 if row is None else int(row[0])

    async def game_totals(self, operator: str, first_day: str, before_day: str) -> list[GameTotals]:
        """An operator's totals of the days from `first_day` to the one before `before_day`, by game and currency."""
        query = (
            "SELECT game, currency, sum(rounds), sum(staked_minor), sum(returned_minor), sum(void_rounds),"
            " sum(void_minor) FROM day_totals WHERE operator = ? AND day >= ? AND day < ?"
            " GROUP BY game, currency ORDER BY game, currency"
        )
        rows = await self._rows(query, operator, first_day, before_day)
        return [GameTotals(row[0], row[1], *map(int, row[2:])) for row in rows]
