"""A store that is locked, full or unsure of a commit: nothing half done, no number used twice, no draw forgotten."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from rgs.store.changes import Change, StoreError
from rgs.store.sqlite.store import SqliteStore, connect
from tests.support.service.harness import read_statement
from tests.support.service.oracles import stored_statements
from tests.support.store.shelf import (
    answer,
    break_store,
    dealt,
    open_shelf,
    opened,
    report,
    session,
    started,
    table,
    ulid,
)

TABLES = ("sessions", "rounds", "statements", "answers", "privates", "operations", "stage_reports", "instances")


async def contents(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    return {name: await table(folder, f"SELECT * FROM {name}") for name in TABLES}  # noqa: S608 - our own names


async def with_sessions(store: SqliteStore, count: int) -> list[Change]:
    """Sessions in the store, and the start of a round in each, draws from 1."""
    changes = []
    for number in range(1, count + 1):
        await store.commit(opened(session(number)))
        read = await store.session(ulid(number))
        assert read is not None
        changes.append(started(read, number))
    return changes


def accounted(folder: Path) -> list[tuple[str, int]]:
    """(kind, number) of the statements that account for draws, in order; numbers of statements must have no gap."""
    rows = stored_statements(folder)
    assert [row.statement_no for row in rows] == list(range(1, len(rows) + 1))
    return [
        (row.kind, int(read_statement(row.envelope)["draw_no"]))
        for row in rows
        if row.kind in ("round_opening", "discarded_draw")
    ]


# --- locked -----------------------------------------------------------------------------------------------------------


async def test_a_locked_store_fails_all_at_once_and_owes_their_draws(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        changes = await with_sessions(store, 4)
        store._db.execute("PRAGMA busy_timeout = 20")
        begun: list[str] = []
        store._db.set_trace_callback(begun.append)
        before = await contents(tmp_path)
        with closing(connect(tmp_path / "rgs.db")) as other:
            other.execute("BEGIN IMMEDIATE")
            results = store.apply(changes)
            other.execute("ROLLBACK")
        assert [type(result) for result in results] == [StoreError] * 4
        # One wait for the whole group, not one for each of its changes.
        assert begun.count("BEGIN IMMEDIATE") <= 1
        assert await contents(tmp_path) == before
        assert store.draws_owed == 4
        store._db.set_trace_callback(None)
        await store.commit(started(session(1, link_no=1), 5))
        assert store.draws_owed == 0
        (row,) = await store.instances(alive_only=True)
        assert row.draw_no == 5
    assert accounted(tmp_path) == [*(("discarded_draw", number) for number in (1, 2, 3, 4)), ("round_opening", 5)]


# --- full -------------------------------------------------------------------------------------------------------------


async def test_a_full_disk_leaves_nothing_half_done(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        changes = await with_sessions(store, 3)
        before = await contents(tmp_path)
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count = {pages}")
        for change in changes:
            assert change.answer is not None
            change.answer = answer(change.draw_no, method="x" * 8000)  # needs pages of its own
        assert [type(result) for result in store.apply(changes)] == [StoreError] * 3
        after = await contents(tmp_path)
        assert {name: after[name] for name in ("sessions", "rounds", "answers")} == {
            name: before[name] for name in ("sessions", "rounds", "answers")
        }
        store._db.execute("PRAGMA max_page_count = 100000")
        (one,) = store.apply(changes[:1])
        assert isinstance(one, tuple)
        assert store.draws_owed == 0
    # The three draws are accounted for; draw 1 comes again only because this test applies its change again.
    assert accounted(tmp_path) == [*(("discarded_draw", number) for number in (1, 2, 3)), ("round_opening", 1)]


async def test_what_fits_is_committed_when_the_whole_group_does_not(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        changes = await with_sessions(store, 3)
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count = {pages + 4}")
        changes[1].answer = answer(2, method="x" * 100_000)
        results = store.apply(changes)
        assert [type(result) for result in results] == [tuple, StoreError, tuple]
    assert accounted(tmp_path) == [("round_opening", 1), ("discarded_draw", 2), ("round_opening", 3)]


# --- unsure -----------------------------------------------------------------------------------------------------------


def once(act: Callable[[sqlite3.Connection], None]) -> Callable[[sqlite3.Connection, str], None]:
    """At the first COMMIT: do something and report a failure of the disk."""
    left = [1]

    def on_execute(connection: sqlite3.Connection, sql: str) -> None:
        if sql == "COMMIT" and left:
            left.clear()
            act(connection)
            raise sqlite3.OperationalError("disk I/O error")

    return on_execute


def lands(connection: sqlite3.Connection) -> None:
    connection.execute("COMMIT")


def is_undone(connection: sqlite3.Connection) -> None:
    connection.execute("ROLLBACK")


def stays_open(_connection: sqlite3.Connection) -> None:
    """SQLITE_BUSY: the transaction is still there, and is rolled back by the store."""


async def test_an_unknown_commit_that_landed_is_a_commit(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        changes = await with_sessions(store, 2)
        break_store(store, once(lands))
        results = store.apply(changes)
        assert [type(result) for result in results] == [tuple, tuple]
        assert await store.round(dealt(session(2), 2).round_id) is not None
        await store.commit(opened(session(3)))
    assert accounted(tmp_path) == [("round_opening", 1), ("round_opening", 2)]


@pytest.mark.parametrize("act", [is_undone, stays_open])
async def test_a_commit_that_did_not_land_is_none(tmp_path: Path, act: Callable[[sqlite3.Connection], None]) -> None:
    async with open_shelf(tmp_path) as store:
        changes = await with_sessions(store, 1)
        break_store(store, once(act))
        (result,) = store.apply(changes)
        assert isinstance(result, StoreError)
        assert await store.round(dealt(session(1), 1).round_id) is None
        await store.commit(opened(session(3)))
    assert accounted(tmp_path) == [("discarded_draw", 1)]


@pytest.mark.parametrize(("act", "outcome"), [(lands, tuple), (is_undone, StoreError), (stays_open, StoreError)])
async def test_an_unknown_commit_that_signs_nothing_is_read_back_too(
    tmp_path: Path, act: Callable[[sqlite3.Connection], None], outcome: type
) -> None:
    async with open_shelf(tmp_path) as store:
        await with_sessions(store, 1)
        break_store(store, once(act))
        (result,) = store.apply([Change(session=session(1, version=2), answer=answer(1))])
        assert type(result) is outcome
        assert (await store.answer("op-1", "Act", "request-1") is not None) is (outcome is tuple)


@pytest.mark.parametrize("act", [lands, is_undone])
async def test_told_reports_are_forgotten_sooner_or_later(
    tmp_path: Path, act: Callable[[sqlite3.Connection], None]
) -> None:
    async with open_shelf(tmp_path) as store:
        change = opened(session(1))
        change.report = report(ulid(1), 1)
        await store.commit(change)
        ((row_id, _),) = await store.reports(10)
        break_store(store, once(act))
        with pytest.raises(StoreError):
            await store.forget_reports([row_id])
        await store.commit(Change(session=session(1, version=2)))
        assert await store.reports(10) == []


async def test_what_cannot_be_read_back_stops_the_store(tmp_path: Path) -> None:
    """Numbers of a commit that may have landed are never signed again."""

    def blind(connection: sqlite3.Connection, sql: str) -> None:
        if sql == "COMMIT":
            connection.execute("COMMIT")
            raise sqlite3.OperationalError("disk I/O error")
        if sql.startswith("SELECT statement_no"):
            raise sqlite3.OperationalError("disk I/O error")

    async with open_shelf(tmp_path) as store:
        first, second = await with_sessions(store, 2)
        break_store(store, blind)
        assert isinstance(store.apply([first])[0], StoreError)
        store._db = store._db._inner
        for change in (second, Change(session=session(1, version=3), answer=answer(1))):
            assert isinstance(store.apply([change])[0], StoreError)
    assert accounted(tmp_path) == [("round_opening", 1)]


async def test_counters_that_run_ahead_of_the_disk_stop_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: the counters run on although the commit failed."""
    genuine = SqliteStore._commit

    def careless(self: SqliteStore, group: object) -> None:
        self._identity = replace(self._identity, statement_no=self._identity.statement_no + 1)
        genuine(self, group)  # type: ignore[arg-type]

    async with open_shelf(tmp_path) as store:
        changes = await with_sessions(store, 1)
        monkeypatch.setattr(SqliteStore, "_commit", careless)
        break_store(store, once(is_undone))
        store.apply(changes)
        assert isinstance(store.apply([opened(session(2))])[0], StoreError)
