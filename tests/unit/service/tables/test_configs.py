"""Configurations of tables by their hash: from the store's artifacts, parsed once, the newest kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rgs.core.errors import InvalidFieldError, JurisdictionError, NotFoundError
from rgs.core.rulesets import hash_of
from rgs.core.tables.config import parse_table_config
from rgs.service.play.requests import OpenSession
from rgs.service.tables import configs as configs_module
from rgs.service.tables.chat import no_table
from rgs.service.tables.configs import TableConfigs
from rgs.store.changes import StoreError
from tests.support.service.harness import OPERATOR, ServiceHarness, open_harness
from tests.support.service.tables import ADMIN, Evening, Sitter, config_text


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


async def test_a_table_is_offered_to_its_operators_only_and_an_unknown_one_to_nobody(harness: ServiceHarness) -> None:
    sha256, configs = await configured(harness, "table-1"), harness.tables.configs
    assert (await configs.offered_to("op-1", "table-1")).sha256 == sha256
    long = "t" * 96
    for operator, table_id, named in (("op-2", "table-1", "table-1"), ("op-1", "table-2", "table-2"),
                                      ("op-1", long, "t" * 64)):  # fmt: skip
        with pytest.raises(NotFoundError, match=f"^no table {named}$") as refused:
            await configs.offered_to(operator, table_id)
        assert (refused.value.field, refused.value.metadata) == ("table", {"kind": "table", "value": named})
    with pytest.raises(NotFoundError) as refused:
        await harness.tables.views.table(OPERATOR, long)
    assert refused.value.metadata == {"kind": "table", "value": "t" * 64}
    assert no_table(long).metadata == {"kind": "table", "table": "t" * 64}


async def test_a_session_at_a_table_has_its_game_and_its_law(harness: ServiceHarness) -> None:
    evening = await Evening(harness, "uth-online").open()
    with pytest.raises(JurisdictionError, match="table uth-online is under jurisdiction demo, op-1 under it-adm"):
        await Sitter(evening, "player-1", replace(OPERATOR, jurisdiction="it-adm")).open()
    opening = OpenSession(harness.request_id(), "uth-lugano", "player-1", "EUR", "ref-1", table="uth-online")
    with pytest.raises(InvalidFieldError, match="table uth-online plays") as refused:
        await harness.send(opening)
    assert refused.value.field == "game"
