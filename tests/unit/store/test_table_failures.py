"""Commits of tables whose end nobody saw, and two processes that move one table."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from rgs.core.tables.machine import State
from rgs.store.address import PostgresAddress
from rgs.store.changes import Change, StoreError, TableMovedError
from rgs.store.postgres import commits, texts
from rgs.store.postgres.link import Link
from rgs.store.table_records import SittingEnded
from tests.support.store.shelf import address_of, answer, applied, break_store, open_shelf, opened, session, ulid
from tests.support.store.table_rows import (
    BETS,
    RESERVED,
    TABLE,
    at_table,
    guarded,
    seated,
    sitting,
    table_row,
)
from tests.unit.store.test_failures import is_undone, lands, once, stays_open
from tests.unit.store.test_postgres import nodes

Act = Callable[[sqlite3.Connection], None]
UNSIGNED: dict[str, list[Change]] = {
    "a table": [Change(table=table_row(2), answer=answer(1))],
    "a seat": [Change(sitting=sitting(1).taken_over(), answer=answer(1))],
    "a seat that moves twice": [
        Change(sitting=sitting(1).taken_over()),
        Change(sitting=sitting(1).taken_over().taken_over(), answer=answer(1)),
    ],
    "a seat, and a table before it": [
        Change(table=table_row(2)),
        Change(sitting=sitting(1).taken_over(), answer=answer(1)),
    ],
    "a table, and a seat that goes": [
        Change(sitting=sitting(1).taken_over()),
        Change(table=table_row(2), records=(SittingEnded(ulid(1)),), answer=answer(1)),
    ],
    "a new seat": [Change(sitting=sitting(2), answer=answer(1))],
    "a new table": [Change(table=table_row(table_id="sala-piccola"), answer=answer(1))],
}


@pytest.mark.parametrize("act", [lands, is_undone, stays_open])
@pytest.mark.parametrize("name", UNSIGNED)
async def test_an_unknown_commit_of_a_table_that_signs_nothing_is_read_back(
    tmp_path: Path, act: Act, name: str
) -> None:
    """One that did not land is done again, alone or change by change: so the last change fails only if it is alone."""
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(table=table_row()))
        await store.commit(seated(1))
        break_store(store, once(act))
        changes = UNSIGNED[name]
        results = store.apply(list(changes))
        has_landed = act is lands or len(changes) > 1
        assert [type(result) for result in results] == [tuple if has_landed else StoreError] * len(changes)
        assert (await store.answer("op-1", "Act", "request-1") is not None) is has_landed


async def test_a_commit_that_moves_nothing_may_be_done_again(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        break_store(store, once(lands))
        (result,) = store.apply([Change(records=(SittingEnded(ulid(1)),))])
        assert isinstance(result, StoreError)


# --- two processes ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("postgres_store")
async def test_of_two_nodes_that_take_a_step_one_wins(tmp_path: Path) -> None:
    async with nodes(tmp_path, 3) as stores:
        await stores[0].commit(Change(table=table_row()))
        for version in range(2, 8):
            outcomes = await asyncio.gather(
                *(store.commit(Change(table=table_row(version))) for store in stores), return_exceptions=True
            )
            assert sorted(type(one).__name__ for one in outcomes) == [*["TableMovedError"] * 2, "tuple"]
        assert await stores[1].table_versions([TABLE]) == {TABLE: 7}


@pytest.mark.usefixtures("postgres_store")
async def test_bets_at_two_nodes_do_not_wait_for_one_another_and_a_step_waits_for_them(tmp_path: Path) -> None:
    """A transaction that holds the table, as that of a bet does, lets other bets pass, and no step."""
    where = address_of(tmp_path)
    assert isinstance(where, PostgresAddress)
    async with nodes(tmp_path, 2) as (one, two):
        await one.commit(Change(table=table_row()))
        other = await asyncpg.connect(where.url)
        try:
            async with other.transaction():
                await other.execute("SELECT 1 FROM tables FOR SHARE")
                await asyncio.wait_for(one.commit(guarded(1, answer=answer(1))), 5)
                step = asyncio.ensure_future(one.commit(Change(table=table_row(2, state=State.CLOSED))))
                await asyncio.sleep(0.3)
                assert not step.done()
            await asyncio.wait_for(step, 5)
        finally:
            await other.close()
        with pytest.raises(TableMovedError):
            await two.commit(guarded(1, answer=answer(2)))


@pytest.mark.usefixtures("postgres_store")
async def test_a_bet_is_in_the_cut_or_refused_whatever_node_takes_it(tmp_path: Path) -> None:
    """Bets of three nodes and one close, at the same time."""
    count = 30
    async with nodes(tmp_path, 3) as stores:
        await stores[0].commit(Change(table=table_row()))
        for number in range(1, count + 1):
            await stores[0].commit(seated(number))
        bets = [
            stores[number % 3].commit(
                guarded(
                    1,
                    session=at_table(number, version=2, reserved_minor=RESERVED),
                    sitting=sitting(number).placed(BETS),
                )
            )
            for number in range(1, count + 1)
        ]
        close = stores[0].commit(Change(table=table_row(2, state=State.CLOSED)))
        outcomes = await asyncio.gather(*bets[:9], close, *bets[9:], return_exceptions=True)
        assert all(isinstance(one, tuple | TableMovedError) for one in outcomes), outcomes
        placed = [one for at, one in enumerate(outcomes) if at != 9 and isinstance(one, tuple)]
        assert isinstance(outcomes[9], tuple)
        assert len(await stores[1].cut_sittings(TABLE, (0, ""), 100)) == len(placed)
        assert await stores[2].reserved_breaks(TABLE, "", 100) == []


@pytest.mark.usefixtures("postgres_store")
async def test_a_bet_at_one_node_and_the_end_of_its_seat_at_another_do_not_both_hold(tmp_path: Path) -> None:
    """The end is computed from a seat without bets, and knows of no session."""
    count = 30
    async with nodes(tmp_path, 2) as (one, two):
        await one.commit(Change(table=table_row()))
        for number in range(1, count + 1):
            await one.commit(seated(number))
        works = []
        for number in range(1, count + 1):
            after = at_table(number, version=2, reserved_minor=RESERVED)
            works.append(one.commit(guarded(1, session=after, sitting=sitting(number).placed(BETS))))
            works.append(two.commit(Change(records=(SittingEnded(ulid(number)),))))
        outcomes = await asyncio.gather(*works, return_exceptions=True)
        for bet, end in zip(outcomes[::2], outcomes[1::2], strict=True):
            assert sorted([type(bet).__name__, type(end).__name__]) == ["TableMovedError", "tuple"]
        placed = sum(isinstance(one, tuple) for one in outcomes[::2])
        assert len(await one.cut_sittings(TABLE, (0, ""), 100)) == placed == await one.count_sittings(TABLE, 100)
        assert await one.reserved_breaks(TABLE, "", 100) == []


@pytest.mark.usefixtures("postgres_store")
async def test_tables_are_locked_in_the_order_of_their_ids_before_any_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So groups that move one table and hold another never wait in a circle. What is only held is locked weakly."""
    locked: list[tuple[str, list[str]]] = []
    genuine = commits._fetch

    async def fetch(link: Link, text: str, *values: Any) -> Any:
        if text != texts.COMMIT:
            locked.append((text, values[0]))
        return await genuine(link, text, *values)

    async with open_shelf(tmp_path) as store:
        await store.commit(opened(session(1)))
        for name in "abcde":
            await store.commit(Change(table=table_row(table_id=name)))
        monkeypatch.setattr(commits, "_fetch", fetch)
        changes = [
            guarded(1, table_id="d"),
            Change(table=table_row(2, table_id="e")),
            guarded(1, table_id="b", session=session(1, version=2, link_no=1)),
            Change(table=table_row(2, table_id="a")),
            guarded(1, table_id="c"),
            guarded(2, table_id="e"),
        ]
        outcomes = await applied(store, changes)
        assert [type(one) for one in outcomes] == [tuple] * 6
    assert locked[:4] == [
        (texts.LOCK_TABLES, ["a"]),
        (texts.HOLD_TABLES, ["b", "c", "d"]),
        (texts.LOCK_TABLES, ["e"]),
        (texts.LOCK_SESSIONS, [ulid(1)]),
    ]


@pytest.mark.usefixtures("either_store")
async def test_a_table_that_lost_its_race_does_not_disturb_solo_play(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(table=table_row()))
        changes = [opened(session(1)), Change(table=table_row(5)), opened(session(2))]
        outcomes = await asyncio.gather(*(store.commit(change) for change in changes), return_exceptions=True)
        assert [type(one) for one in outcomes] == [tuple, TableMovedError, tuple]
        assert (await store.session(ulid(2))).link_no == 1
