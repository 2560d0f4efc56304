"""The lobby: who sees which tables, what is said of them, and what a watcher is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from rgs.core.errors import InvalidFieldError
from rgs.core.tables.machine import State
from rgs.core.tables.views import TableEntry
from rgs.service.callers import Caller, Role
from rgs.service.tables import lobby as lobby_module
from tests.support.clocks import NOW_MS
from tests.support.service.harness import OPERATOR, ServiceHarness
from tests.support.service.tables import ADMIN, ALWAYS, Evening, Sitter, config_text

OTHER = Caller("op-2", Role.OPERATOR, "demo")
SEES_ALL = [Caller("party-1", role, "") for role in (Role.ADMIN, Role.AUDITOR, Role.REGULATOR)]


async def configured(harness: ServiceHarness, *table_ids: str, **rows: object) -> None:
    for table_id in table_ids:
        text = config_text("uth-online", **{"id": table_id, "hours": ALWAYS, **rows})
        await harness.tables.admin.configure(ADMIN, harness.request_id(), text, "NEW_TABLE")


async def listed(harness: ServiceHarness, caller: Caller = OPERATOR) -> list[TableEntry]:
    """All of the caller's tables, a second later."""
    harness.clock.tick(1_000)
    entries, token = await harness.tables.lobby.list(caller, 200, "")
    assert token == ""
    return list(entries)


async def news(stream: AsyncIterator[Any], harness: ServiceHarness) -> list[list[str]]:
    """The ids of each message until there is nothing new, a second later."""
    harness.clock.tick(1_000)
    found = []
    while (entries := await anext(stream)) is not None:
        found.append([entry.config.id for entry in entries])
    return found


# --- the list ---------------------------------------------------------------------------------------------------------


async def test_operators_see_the_tables_that_name_them(harness: ServiceHarness) -> None:
    await configured(harness, "table-1")
    await configured(harness, "table-2", operators=["op-1", "op-2"])
    await configured(harness, "table-3", operators=["op-2"])
    assert [entry.config.id for entry in await listed(harness)] == ["table-1", "table-2"]
    assert [entry.config.id for entry in await listed(harness, OTHER)] == ["table-2", "table-3"]
    for caller in SEES_ALL:
        assert [entry.config.id for entry in await listed(harness, caller)] == ["table-1", "table-2", "table-3"]


async def test_pages_follow_one_another(harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lobby_module, "TABLES_PAGE", 2)  # the store is read in pages, too
    names = [f"table-{number}" for number in range(1, 6)]
    await configured(harness, *names)
    lobby, token, found = harness.tables.lobby, "", []
    for size in (2, 2, 1):
        entries, token = await lobby.list(OPERATOR, 2, token)
        assert len(entries) == size
        found += [entry.config.id for entry in entries]
    assert (found, token) == (names, "")
    entries, token = await lobby.list(OPERATOR, 5, "")
    assert (len(entries), token) == (5, "")
    for size, text in ((201, ""), (1, "other")):
        with pytest.raises(InvalidFieldError):
            await lobby.list(OPERATOR, size, text)


async def test_what_is_said_of_a_table_without_boxes(harness: ServiceHarness) -> None:
    evening = await Evening(harness, "uth-online", hours=ALWAYS).open()
    (entry,) = await listed(harness)
    assert (entry.state, entry.players_at_least, entry.boxes, entry.boxes_free) == (State.IDLE, 0, 0, 0)
    assert entry.hours_change_ms == 0, "it is always open"
    assert entry.config.sha256 == evening.config.sha256
    sitters = []
    for number, shown in enumerate((1, 1, 1, 1, 5, 5), 1):
        sitters += await evening.seated(f"player-{number}")
        (entry,) = await listed(harness)
        assert entry.players_at_least == shown
    await sitters[0].bet(ante=1_000)
    await sitters[1].leave()
    (entry,) = await listed(harness)
    assert (entry.state, entry.players_at_least) == (State.BETTING, 5)


async def test_players_are_counted_to_the_highest_step_that_the_seats_allow(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await configured(harness, "table-1", seats=70)
    await configured(harness, "table-2", seats=0)
    counted = []

    async def count(table_id: str, most: int) -> int:
        counted.append((table_id, most))
        return 50

    monkeypatch.setattr(harness.store, "count_sittings", count)
    assert [entry.players_at_least for entry in await listed(harness)] == [50, 50]
    assert counted == [("table-1", 50), ("table-2", 1_000_000)]


async def test_boxes_are_free_that_nobody_has_and_nobody_has_reserved(harness: ServiceHarness) -> None:
    evening = await Evening(harness, "uth-seven-box", hours=ALWAYS).open()
    await Sitter(evening, "player-1").sit(box=3)
    reserve, table_id = harness.tables.admin.reserve, evening.config.id
    await reserve(ADMIN, harness.request_id(), table_id, 3, OPERATOR.party, "player-1", "GUEST")
    await reserve(ADMIN, harness.request_id(), table_id, 5, OPERATOR.party, "player-2", "GUEST")
    (entry,) = await listed(harness)
    assert (entry.boxes, entry.boxes_free, entry.players_at_least) == (7, 5, 1)


async def test_the_next_change_by_the_hours_is_named(harness: ServiceHarness) -> None:
    evening = await Evening(harness, "uth-lugano").open()
    change_ms = evening.config.hours.next_change_ms(NOW_MS)
    assert change_ms is not None
    (entry,) = await listed(harness)
    assert entry.hours_change_ms == change_ms
    harness.clock.time_ms = change_ms - 1_000
    (entry,) = await listed(harness)  # at the change itself
    assert entry.hours_change_ms == evening.config.hours.next_change_ms(change_ms)
    later = config_text("uth-lugano", version=2, hours=ALWAYS)
    await harness.tables.admin.configure(ADMIN, harness.request_id(), later, "LONGER_HOURS")
    (entry,) = await listed(harness)
    assert (entry.config.version, entry.hours_change_ms) == (2, 0)


# --- watchers ---------------------------------------------------------------------------------------------------------


async def shut(harness: ServiceHarness, table_id: str) -> None:
    """A step of a table: an admin shuts it."""
    await harness.tables.admin.set_open(ADMIN, harness.request_id(), table_id, is_open=False, reason="NIGHT")
    await harness.tables.dealer.advance(table_id)


async def test_a_watcher_gets_all_and_then_what_has_changed(harness: ServiceHarness) -> None:
    await configured(harness, "table-1", "table-2")
    await configured(harness, "table-3", operators=["op-2"])
    stream, other = harness.tables.lobby.changes(OPERATOR), harness.tables.lobby.changes(OTHER)
    assert await news(stream, harness) == [["table-1", "table-2"]]
    assert await news(other, harness) == [["table-3"]]
    assert await news(stream, harness) == []
    await shut(harness, "table-2")
    await shut(harness, "table-3")
    assert await news(stream, harness) == [["table-2"]]
    assert await news(other, harness) == [["table-3"]]
    await configured(harness, "table-4")
    assert await news(stream, harness) == [["table-4"]]
    assert await news(stream, harness) == []


async def test_a_slow_watcher_misses_nothing(harness: ServiceHarness) -> None:
    await configured(harness, "table-1", "table-2")
    slow, fast = harness.tables.lobby.changes(OPERATOR), harness.tables.lobby.changes(OPERATOR)
    await news(slow, harness)
    for table_id in ("table-1", "table-2"):
        await shut(harness, table_id)
        await news(fast, harness)
    assert await news(slow, harness) == [["table-1", "table-2"]]


async def test_the_whole_lobby_comes_in_parts(harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lobby_module, "ENTRIES_MAX", 2)
    await configured(harness, "table-1", "table-2", "table-3")
    stream = harness.tables.lobby.changes(OPERATOR)
    assert await news(stream, harness) == [["table-1", "table-2"], ["table-3"]]


async def test_the_tables_are_read_once_a_second_for_all(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await configured(harness, "table-1")
    lobby, tables, reads = harness.tables.lobby, harness.store.tables, []

    async def counted(after: str, limit: int) -> Any:
        reads.append(after)
        await asyncio.sleep(0)
        return await tables(after, limit)

    monkeypatch.setattr(harness.store, "tables", counted)
    streams = [lobby.changes(OPERATOR) for _ in range(5)]
    assert [len(one or ()) for one in await asyncio.gather(*map(anext, streams))] == [1] * 5
    await lobby.list(OPERATOR, 0, "")
    harness.clock.tick(999)
    assert await asyncio.gather(*map(anext, streams)) == [None] * 5
    assert reads == ["", "table-1"]
    harness.clock.tick(1)
    await asyncio.gather(*map(anext, streams))
    assert reads == ["", "table-1"] * 2
