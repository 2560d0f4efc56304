"""The configurations of tables by their hash. Each is an artifact of the store, signed for when an admin set it up.

A configuration never changes, so what was parsed once is kept: the newest that were asked for, up to `KNOWN_MAX`.
"""

from __future__ import annotations

from typing import Final

from rgs.core.errors import NotFoundError
from rgs.core.tables.config import TableConfig, parse_canonical_table_config
from rgs.service.game_catalog import GameCatalog
from rgs.store.changes import StoreError
from rgs.store.interface import StoreReads

KNOWN_MAX: Final = 1_024
"""Parsed configurations in memory."""


class TableConfigs:
    """Reads configurations, and keeps them parsed."""

    def __init__(self, store: StoreReads, games: GameCatalog) -> None:
        self._store = store
        self._games = games
        self._known: dict[str, TableConfig] = {}
        """By hash, the one that was asked for last at the end."""

    async def of(self, sha256: str) -> TableConfig:
        """The configuration of a hash that a table or a `table_round` names. StoreError if the store has lost it,
        TableConfigError if the rulesets and jurisdictions of this software do not allow it any more.
        """
        config = self._known.pop(sha256, None)
        if config is None:
            canonical = await self._store.artifact(sha256)
            if canonical is None:
                raise StoreError(f"the store does not hold the configuration {sha256}", value=sha256)
            config = parse_canonical_table_config(
                canonical, rulesets=self._games.rulesets, jurisdictions=self._games.jurisdictions
            )
        self.keep(config)
        return config

    def keep(self, config: TableConfig) -> None:
        """Keep a parsed configuration in memory."""
        self._known[config.sha256] = config
        if len(self._known) > KNOWN_MAX:
            del self._known[next(iter(self._known))]

    async def offered_to(self, operator: str, table_id: str) -> TableConfig:
        """The configuration in force of a table, if the operator's players may play there. NotFoundError."""
        found = await self._store.table(table_id)
        config = None if found is None else await self.of(found[0].config)
        if config is None or operator not in config.operators:
            raise NotFoundError(f"no table {table_id[:64]}", kind="table", field="table", value=table_id[:64])
        return config
