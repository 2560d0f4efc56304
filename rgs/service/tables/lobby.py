"""The lobby: the tables at which a caller's players may play, and which of them has changed.

One snapshot of all tables serves all callers of the process. It is read again at most once a second, when somebody
asks. Each entry has the number of the snapshot that changed it last, so a watcher is sent what it has not seen. How
many players sit at a table is counted up to the highest step that its seats allow (`PLAYERS_STEPS`). An operator sees
the tables whose configuration names it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from rgs.core.clock import Clock
from rgs.core.tables.config import TableConfig
from rgs.core.tables.rows import TableRow
from rgs.core.tables.views import TableEntry, players_at_least
from rgs.service.callers import Caller, Role
from rgs.service.game_catalog import GameCatalog
from rgs.service.pages import check_page_size, format_key_token, parse_key_token
from rgs.service.tables.configs import TableConfigs
from rgs.store.interface import StoreReads

REFRESH_MS: Final = 1_000
"""The least time between two reads of the tables."""
TABLES_PAGE: Final = 200
ENTRIES_MAX: Final = 50
"""Entries of one message to a watcher."""


@dataclass(frozen=True, slots=True)
class _Listed:
    """An entry, and the number of the snapshot that changed it last."""

    entry: TableEntry
    changed_no: int


@dataclass(frozen=True, slots=True)
class _HoursChange:
    """When the hours of a configuration change next, as computed once. 0: never."""

    config: str
    change_ms: int


def sees(caller: Caller, config: TableConfig) -> bool:
    """Whether the caller may know of the table: operators those that name them, other roles all."""
    return caller.role is not Role.OPERATOR or caller.party in config.operators


def boxes_of(config: TableConfig, games: GameCatalog) -> int:
    """The boxes of a table, 0 where players share a hand."""
    return config.seats if games.rulesets[config.ruleset_id].hole_cards == "own" else 0


class Lobby:
    """Lists tables and follows them."""

    def __init__(self, *, store: StoreReads, clock: Clock, games: GameCatalog, configs: TableConfigs) -> None:
        self._store = store
        self._clock = clock
        self._games = games
        self._configs = configs
        self._lock = asyncio.Lock()
        self._tables: dict[str, _Listed] = {}
        """By id, in the order of ids."""
        self._snapshot_no = 0
        self._read_ms: int | None = None
        self._hours: dict[str, _HoursChange] = {}

    async def list(self, caller: Caller, page_size: int, page_token: str) -> tuple[tuple[TableEntry, ...], str]:
        """A page of the caller's tables in the order of their ids, and the next page's token (empty at the end)."""
        limit = check_page_size(page_size)
        (after,) = parse_key_token(page_token, 1)
        await self._refresh()
        found = [
            listed.entry
            for table_id, listed in self._tables.items()
            if table_id > after and sees(caller, listed.entry.config)
        ]
        page = tuple(found[:limit])
        return page, format_key_token(page[-1].config.id) if len(found) > limit else ""

    async def changes(self, caller: Caller) -> AsyncIterator[tuple[TableEntry, ...] | None]:
        """The caller's tables, then those that have changed; None while there is nothing new."""
        seen_no = 0
        while True:
            await self._refresh()
            after_no, seen_no = seen_no, self._snapshot_no
            new = [
                listed.entry
                for listed in self._tables.values()
                if listed.changed_no > after_no and sees(caller, listed.entry.config)
            ]
            for first in range(0, len(new), ENTRIES_MAX):
                yield tuple(new[first : first + ENTRIES_MAX])
            yield None

    async def entry(self, row: TableRow) -> TableEntry:
        """A table as the lobby shows it, read now."""
        table_id = row.table.table_id
        config = await self._configs.of(row.config)
        boxes, taken = boxes_of(config, self._games), set[int]()
        if boxes:
            sitting = {one.box for one in await self._store.boxes(table_id)}
            taken = sitting | {one.box for one in await self._store.reservations(table_id)}
            players = len(sitting)
        else:
            players = await self._store.count_sittings(table_id, players_at_least(config.seats_max))
        return TableEntry(
            config=config,
            state=row.table.state,
            players_at_least=players_at_least(players),
            boxes=boxes,
            boxes_free=sum(box not in taken for box in range(1, boxes + 1)),
            hours_change_ms=self._hours_change_ms(config),
        )

    async def _refresh(self) -> None:
        """Read all tables, unless that was done within the last second."""
        async with self._lock:
            now_ms = self._clock.running_ms()
            if self._read_ms is not None and now_ms - self._read_ms < REFRESH_MS:
                return
            number, tables, after = self._snapshot_no + 1, dict[str, _Listed](), ""
            while rows := await self._store.tables(after, TABLES_PAGE):
                for row in rows:
                    entry, known = await self.entry(row), self._tables.get(row.table.table_id)
                    is_same = known is not None and known.entry == entry
                    tables[row.table.table_id] = known if known is not None and is_same else _Listed(entry, number)
                after = rows[-1].table.table_id
            self._tables, self._snapshot_no, self._read_ms = tables, number, now_ms

    def _hours_change_ms(self, config: TableConfig) -> int:
        now_ms, known = self._clock.now_ms(), self._hours.get(config.id)
        if known is None or known.config != config.sha256 or 0 < known.change_ms <= now_ms:
            known = _HoursChange(config.sha256, config.hours.next_change_ms(now_ms) or 0)
            self._hours[config.id] = known
        return known.change_ms
