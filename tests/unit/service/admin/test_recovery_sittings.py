"""Recovery reads who sits at a table page by page, each page once, and what is planned instead of what was there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from rgs.core.tables.seating import Sitting
from rgs.service.admin import table_recovery
from rgs.service.admin.table_recovery import TableImport
from rgs.service.game_catalog import GameCatalog
from rgs.store.recovery import Import
from tests.support.store.table_rows import TABLE, sitting


class Reads:
    """As much of a store as is asked for."""

    def __init__(self, kept: list[Sitting]) -> None:
        self._kept = kept
        self.behind: list[str] = []

    async def sittings(self, table_id: str, after: str, limit: int) -> list[Sitting]:
        assert table_id == TABLE
        assert after not in self.behind, "the same page once more"
        self.behind.append(after)
        return [one for one in self._kept if one.session_id > after][:limit]


async def test_each_page_of_sittings_is_read_once(monkeypatch: Any) -> None:
    monkeypatch.setattr(table_recovery, "_PAGE", 2)
    kept = [sitting(number) for number in (1, 2, 3)]
    planned = Import(sittings={kept[1].session_id: replace(kept[1], version=9)})
    reads = Reads(kept)
    tables = TableImport(planned, cast(Any, reads), GameCatalog())
    found = [one async for one in tables._sittings(TABLE)]
    assert found == [kept[0], replace(kept[1], version=9), kept[2]]
    assert reads.behind == ["", kept[1].session_id, kept[2].session_id]
