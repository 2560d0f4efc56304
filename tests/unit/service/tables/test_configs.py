"""Configurations of tables by their hash: from the store's artifacts, parsed once, the newest kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from rgs.core.rulesets import hash_of
from rgs.core.tables.config import parse_table_config
from rgs.service.tables import configs as configs_module
from rgs.service.tables.configs import TableConfigs
from rgs.store.changes import StoreError
from tests.support.service.harness import ServiceHarness, open_harness
from tests.support.service.tables import ADMIN, config_text


class Counting:
    """The store's artifacts, and which of them were read."""

    def __init__(self, harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read: list[str] = []
        artifact = harness.store.artifact

        async def counted(sha256: str) -> bytes | None:
            self.read.append(sha256)
            return await artifact(sha256)

        monkeypatch.setattr(harness.store, "artifact", counted)


async def configured(harness: ServiceHarness, table_id: str, **rows: object) -> str:
    """Set up a table; the hash of its configuration."""
    text = config_text("uth-online", id=table_id, **rows)
    await harness.tables.admin.configure(ADMIN, harness.request_id(), text, "NEW_TABLE")
    games = harness.books
    return parse_table_config(text, rulesets=games.rulesets, jurisdictions=games.jurisdictions).sha256


async def test_a_configuration_is_read_and_parsed_once(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha256 = await configured(harness, "table-1")
    counting, configs = Counting(harness, monkeypatch), TableConfigs(harness.store, harness.books)
    config = await configs.of(sha256)
    assert (config.id, config.sha256, hash_of(config.canonical)) == ("table-1", sha256, sha256)
    assert await configs.of(sha256) is config
    assert counting.read == [sha256]


async def test_the_one_that_was_asked_for_longest_ago_goes_first(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configs_module, "KNOWN_MAX", 2)
    one, two, three = [await configured(harness, name) for name in ("table-1", "table-2", "table-3")]
    counting, configs = Counting(harness, monkeypatch), TableConfigs(harness.store, harness.books)
    for sha256 in (one, two, one, three):  # two is the oldest now
        await configs.of(sha256)
    counting.read.clear()
    await configs.of(one)
    await configs.of(three)
    assert counting.read == []
    await configs.of(two)
    assert counting.read == [two]


async def test_every_version_is_found_after_a_restart(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        first = await configured(harness, "table-1")
        second = await configured(harness, "table-1", version=2, early_close=False)
    async with open_harness(tmp_path) as harness:
        assert (await harness.tables.configs.of(first)).version == 1
        assert not (await harness.tables.configs.of(second)).early_close


async def test_a_configuration_that_the_store_lacks_is_a_fault(harness: ServiceHarness) -> None:
    with pytest.raises(StoreError) as caught:
        await harness.tables.configs.of("0" * 64)
    assert caught.value.metadata["value"] == "0" * 64
