"""The lobby reads the tables of the store page by page, each page once."""

from __future__ import annotations

from typing import Any

import pytest

from rgs.service.tables import lobby as module
from tests.support.service.harness import ServiceHarness
from tests.unit.service.tables.test_lobby import configured, listed


async def test_each_page_is_read_once(harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TABLES_PAGE", 2)
    await configured(harness, "table-1", "table-2", "table-3")
    genuine, behind = harness.store.tables, list[str]()

    async def tables(after: str, limit: int) -> Any:
        assert after not in behind, "the same page once more"
        behind.append(after)
        return await genuine(after, limit)

    monkeypatch.setattr(harness.store, "tables", tables)
    assert [entry.config.id for entry in await listed(harness)] == ["table-1", "table-2", "table-3"]
    assert behind == ["", "table-2", "table-3"]
