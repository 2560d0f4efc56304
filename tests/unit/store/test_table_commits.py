"""What commits do at tables: guards, versions, unique places, numbers of seats; the same on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rgs.core.games.types import Phase
from rgs.core.rounds import RoundStatus
from rgs.core.tables.machine import State
from rgs.store.changes import Change, Draft, SessionRaceError, StoreError, TableMovedError
from rgs.store.postgres.store import PostgresStore
from rgs.store.table_records import PlayerBarred, SittingEnded
from tests.support.store.shelf import NAME, answer, applied, discarded, open_shelf, opened, session, table, ulid
from tests.support.store.table_rows import (
    BETS,
    RESERVED,
    TABLE,
    WINDOWS,
    at_table,
    guarded,
    seat_opened,
    seat_round,
    seated,
    sitting,
    table_round,
    table_row,
)

pytestmark = pytest.mark.usefixtures("either_store")


def moved(outcomes: Sequence[Any]) -> list[bool]:
    """Which of them failed because a table had moved; the others took effect."""
    assert all(isinstance(one, tuple | TableMovedError) for one in outcomes), outcomes
    return [isinstance(one, TableMovedError) for one in outcomes]


# --- rows -------------------------------------------------------------------------------------------------------------


async def test_a_table_comes_back_as_it_was_committed(tmp_path: Path) -> None:
    row = table_row(
        state=State.PAUSED,
        paused_from=State.DECIDING,
        phase=Phase.RIVER,
        opened_ms=11,
        deadline_ms=12,
        step_ms=13,
        round_no=14,
        head="aa" * 32,
        round_id=ulid(1),
        windows=WINDOWS,
        malfunction="dd" * 32,
        next_config="ee" * 32,
        is_shut=True,
        due_ms=15,
        closed_ms=16,
        malfunction_code="CAMERA",
    )
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(table=row))
        found, clock_ms = await store.table(TABLE)
        assert found == row
        assert (clock_ms is None) is not isinstance(store, PostgresStore)
        after = table_row(2, state=State.IDLE, head="bb" * 32)
        await store.commit(Change(table=after))
        assert (await store.table(TABLE))[0] == after
        assert await store.table("sala-piccola") is None


async def test_a_seat_comes_back_as_it_was_committed(tmp_path: Path) -> None:
    made = sitting(1, place_no=2, box=3, device_no=4, bets=BETS, reserved_minor=RESERVED, seat_no=5, played_no=6)
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(session=at_table(1), sitting=made))
        assert await store.sitting(ulid(1)) == made
        after = replace(made.opened(7), leaving=True, nickname="Other", device_no=8)
        await store.commit(Change(sitting=after))
        assert await store.sitting(ulid(1)) == after
        assert (after.version, after.seat_no, after.reserved_minor) == (2, 0, 0)
        await store.commit(Change(records=(SittingEnded(ulid(1)),)))
        assert await store.sitting(ulid(1)) is None


async def test_what_is_signed_for_a_table_is_named_in_its_rows(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(table=table_row()))
        drafts = tuple(Draft(kind, {"time": "then"}) for kind in ("table_round", "table_seats"))
        signed = await store.commit(
            Change(table=table_row(2, state=State.FIXED), table_round=table_round(1), drafts=drafts)
        )
        hash_ = signed[0].hash.hex()
        assert (await store.table(TABLE))[0].table.table_round == hash_
        round_ = await store.table_round(table_round(1).round_id)
        assert round_ == table_round(1, table_round=hash_)
        dealt = replace(round_, version=2, instance=NAME, draw_no=1, core=b"core", commitment=b"c" * 32, sealed=b"x")
        row = (await store.table(TABLE))[0]
        row = replace(row, table=replace(row.table, version=3, state=State.OPENING))
        (signed,) = await store.commit(
            Change(
                table=row,
                table_round=replace(dealt, deal_ms=9),
                drafts=(Draft("table_deal", {"draw_no": "1", "time": "then"}),),
                draw_no=1,
                discard=discarded(1),
            )
        )
        deal = signed.hash.hex()
        assert await store.table_round(round_.round_id) == replace(dealt, deal=deal, deal_ms=9)
        row = (await store.table(TABLE))[0]
        assert (row.table.deal, row.table.head) == (deal, "0" * 64)
        row = replace(row, table=replace(row.table, version=4, state=State.SETTLING))
        ended = replace(dealt, version=3, deal=deal, status=RoundStatus.SETTLED, end_ms=10, sealed=b"")
        (signed,) = await store.commit(
            Change(table=row, table_round=ended, drafts=(Draft("table_final", {"time": "then"}),))
        )
        final = signed.hash.hex()
        assert await store.table_round(round_.round_id) == replace(ended, final=final)
        row = (await store.table(TABLE))[0]
        assert (row.table.table_round, row.table.deal, row.table.final, row.table.head) == (hash_, deal, final, final)
        paused = replace(row, table=replace(row.table, version=5, state=State.PAUSED))
        (signed,) = await store.commit(
            Change(table=paused, drafts=(Draft("event", {"code": "X", "time": "then"}),), pauses=True)
        )
        assert (await store.table(TABLE))[0].table.malfunction == signed.hash.hex()


async def test_a_draw_of_another_instance_is_not_dealt_here(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(table=table_row(), table_round=table_round(1)))
        dealt = table_round(1, version=2, instance="node-2-b1-w0", draw_no=1)
        change = Change(table=table_row(2), table_round=dealt, draw_no=1, discard=discarded(1))
        with pytest.raises(StoreError, match="drew its deck"):
            await store.commit(change)
        assert (await store.table(TABLE))[0].table.version == 1
        assert store.draws_owed == 0


async def test_a_seat_of_a_round_is_opened_by_any_instance(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(seated(1, bets=True))
        round_ = seat_round(1, 1, table_round(1), instance="node-2-b1-w0", draw_no=7)
        change = seat_opened(at_table(1, version=2, open_round_id=round_.round_id, round_no=1), round_)
        change.sitting = sitting(1, version=2, played_no=1)
        (signed,) = await store.commit(change)
        found = await store.seat(ulid(1), round_.round_id)
        assert found == replace(round_, opening_hash=signed.hash.hex())
        played = replace(found, version=2, phase=Phase.FLOP.value)
        moved_on = await store.session(ulid(1))
        await store.commit(Change(session=replace(moved_on, version=3), round=played))
        assert await store.seat(ulid(1), round_.round_id) == played
        assert await store.round(round_.round_id, fresh=False) == played


async def test_a_round_of_a_table_is_not_taken_from_memory_by_its_id_alone(tmp_path: Path) -> None:
    """Every seat has that id."""
    async with open_shelf(tmp_path) as store:
        for number in (1, 2):
            await store.commit(seat_opened(at_table(number), seat_round(number, number, table_round(1))))
        assert (await store.round(table_round(1).round_id, fresh=False)).session_id == ulid(1)


# --- guards -----------------------------------------------------------------------------------------------------------


async def test_a_change_holds_while_the_table_stands_and_no_longer(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(table=table_row()))
        await store.commit(Change(table=table_row(2)))
        results = await applied(store, [guarded(version, answer=answer(version + 1)) for version in (0, 1, 2, 3)])
        assert moved(results) == [True, True, False, True]
        assert results[1].metadata == {"table": TABLE}
        found = [await store.answer("op-1", "Act", f"request-{number}") for number in (1, 2, 3, 4)]
        assert [one is not None for one in found] == [False, False, True, False]
        (result,) = await applied(store, [guarded(1, table_id="sala-piccola")])
        assert moved([result]) == [True]


async def test_a_step_and_what_is_guarded_in_one_group(tmp_path: Path) -> None:
    """Before the step the table stood at 1, after it at 2."""
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(table=table_row()))
        results = await applied(
            store,
            [
                guarded(1, answer=answer(1)),
                Change(table=table_row(2)),
                guarded(1, answer=answer(2)),
                guarded(2, answer=answer(3)),
                Change(table=table_row(3)),
                guarded(3, answer=answer(4)),
            ],
        )
        assert moved(results) == [False, False, True, False, False, False]
        assert (await store.table(TABLE))[0].table.version == 3


async def test_a_step_may_be_guarded_itself(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(table=table_row()))
        outcomes = await applied(store, [guarded(1, table=table_row(2)), guarded(1, table=table_row(3))])
        assert moved(outcomes) == [False, True]


async def test_a_guard_ends_at_its_time_by_the_clock_of_the_store(
    tmp_path: Path, either_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exactly `until_ms` is in time, one millisecond later is not."""
    now_ms = 1_795_000_000_000
    if either_store == "postgres":
        for name in ("LOCK_SESSIONS",):
            text: str = getattr(__import__("rgs.store.postgres.texts", fromlist=[name]), name)
            stopped = text.replace("(extract(epoch FROM clock_timestamp()) * 1000)::bigint", f"{now_ms}::bigint")
            assert stopped != text
            monkeypatch.setattr(f"rgs.store.postgres.texts.{name}", stopped)
    async with open_shelf(tmp_path) as store:
        if either_store == "sqlite":
            store.follow(lambda: now_ms)
        await store.commit(Change(table=table_row()))
        results = await applied(store, [guarded(1, now_ms + late) for late in (-1, 0, 1)])
        assert moved(results) == [True, False, False]


async def test_the_clock_of_a_store_is_the_real_one(tmp_path: Path, either_store: str) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(table=table_row()))
        ((now_ms,),) = await table(
            tmp_path,
            "SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
            if either_store == "sqlite"
            else "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint",
        )
        results = await applied(store, [guarded(1, now_ms - 1000), guarded(1, now_ms + 60_000)])
        assert moved(results) == [True, False]


# --- versions ---------------------------------------------------------------------------------------------------------


async def test_of_two_steps_of_one_version_the_second_fails_and_its_neighbours_do_not(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(table=table_row()))
        results = await applied(
            store,
            [
                opened(session(1)),
                Change(table=table_row(2, state=State.CLOSED), answer=answer(1)),
                Change(table=table_row(2, state=State.IDLE), answer=answer(2)),
                opened(session(2)),
            ],
        )
        assert moved(results) == [False, False, True, False]
        assert (await store.table(TABLE))[0].table.state is State.CLOSED
        assert await store.answer("op-1", "Act", "request-2") is None
        assert await store.session(ulid(2)) is not None


async def test_two_steps_in_one_group_are_taken_in_their_order(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        outcomes = await applied(store, [Change(table=table_row(number)) for number in (1, 2, 3, 4)])
        assert moved(outcomes) == [False] * 4
        assert await store.table_versions([TABLE, "nowhere"]) == {TABLE: 4}


async def test_a_new_table_needs_a_new_id(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        outcomes = await applied(store, [Change(table=table_row()), opened(session(1)), Change(table=table_row())])
        assert moved(outcomes) == [False, False, True]
        with pytest.raises(TableMovedError):
            await store.commit(Change(table=table_row(2, table_id="sala-piccola")))


async def test_a_seat_moves_by_one_version_and_fails_alone(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        for number in (1, 2, 3):
            await store.commit(seated(number))
        first = sitting(1)
        results = await applied(
            store,
            [
                Change(sitting=sitting(2).taken_over()),
                Change(sitting=first.taken_over()),
                Change(sitting=replace(first.taken_over(), nickname="late"), answer=answer(1)),
                Change(sitting=replace(sitting(3), version=3)),
                Change(sitting=sitting(9, version=2)),
                Change(sitting=sitting(3).taken_over()),
            ],
        )
        assert moved(results) == [False, False, True, True, True, False]
        found = [await store.sitting(ulid(number)) for number in (1, 2, 3)]
        assert found == [sitting(number, version=2, device_no=2) for number in (1, 2, 3)]
        assert await store.answer("op-1", "Act", "request-1") is None


async def test_a_seat_may_move_twice_in_a_group(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(seated(1))
        once = sitting(1).taken_over()
        assert moved(await applied(store, [Change(sitting=once), Change(sitting=once.taken_over())])) == [False, False]
        assert (await store.sitting(ulid(1))).device_no == 3


async def test_a_round_of_a_table_moves_by_one_version(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(table_round=table_round(1)))
        results = await applied(
            store,
            [
                Change(table_round=table_round(1, version=3)),
                Change(table_round=table_round(1, version=2, deal_ms=1)),
                Change(table_round=table_round(1, version=2, deal_ms=2)),
                Change(table_round=table_round(2, version=2)),
            ],
        )
        assert moved(results) == [True, False, True, True]
        assert (await store.table_round(table_round(1).round_id)).deal_ms == 1


async def test_a_change_that_fails_leaves_nothing_of_it(tmp_path: Path) -> None:
    """The guard holds, the session moves, the seat has moved: nothing of the change is there."""
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(table=table_row()))
        await store.commit(seated(1))
        await store.commit(Change(sitting=sitting(1).taken_over()))
        change = guarded(
            1,
            session=at_table(1, version=2, reserved_minor=RESERVED),
            sitting=sitting(1).placed(BETS),
            answer=answer(1),
            table_round=table_round(1),
            records=(PlayerBarred(TABLE, "op-1", "player-9", "X", "admin-1", 1),),
            discard=discarded(1),
        )
        with pytest.raises(TableMovedError):
            await store.commit(change)
        assert (await store.session(ulid(1))).version == 1
        assert await store.answer("op-1", "Act", "request-1") is None
        assert await store.table_round(table_round(1).round_id) is None
        assert await store.bars(TABLE, 10) == []
        assert store.draws_owed == (1 if isinstance(store, PostgresStore) else 0)


async def test_a_lost_step_accounts_for_its_draw(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(table=table_row(), table_round=table_round(1)))
        dealt = table_round(1, version=2, instance=NAME, draw_no=1)
        late = Change(table=table_row(3), table_round=dealt, draw_no=1, discard=discarded(1))
        with pytest.raises(TableMovedError):
            await store.commit(late)
        (row,) = await store.instances(alive_only=True)
        assert (row.draw_no, store.draws_owed) == (1, 0)


# --- unique places ----------------------------------------------------------------------------------------------------

TAKEN = {
    "a session sits once": sitting(1, player="player-8", place_no=8, table_id="sala-piccola"),
    "a player sits once at a table": sitting(2, player="player-1", place_no=2),
    "a box has one holder": sitting(2, box=4),
    "a place of a player is at one table": sitting(2, player="player-1", table_id="sala-piccola"),
}
FREE = {
    "another box": sitting(2, box=5),
    "no box": sitting(2),
    "the box of another table": sitting(2, box=4, table_id="sala-piccola"),
    "another table": sitting(2, player="player-1", place_no=2, table_id="sala-piccola"),
    "the player of another operator": sitting(2, player="player-1", operator="op-2"),
}


@pytest.mark.parametrize("name", [*TAKEN, *FREE])
async def test_a_place_is_taken_once(tmp_path: Path, name: str) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(sitting=sitting(1, box=4)))
        late = Change(sitting=(TAKEN | FREE)[name], answer=answer(1))
        outcomes = await applied(store, [opened(session(7)), late, opened(session(8))])
        assert moved(outcomes) == [False, name in TAKEN, False]
        assert await store.sitting(ulid(1)) == sitting(1, box=4)
        assert (await store.answer("op-1", "Act", "request-1") is None) is (name in TAKEN)


async def test_a_place_that_is_given_back_is_free_in_the_same_group(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(sitting=sitting(1, box=4)))
        outcomes = await applied(store, [Change(records=(SittingEnded(ulid(1)),)), Change(sitting=sitting(2, box=4))])
        assert moved(outcomes) == [False, False]
        assert await store.boxes(TABLE) == [sitting(2, box=4)]


async def test_a_table_has_one_round_of_each_number_and_a_draw_one_round(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        drawn: dict[str, Any] = {"instance": NAME, "draw_no": 5}
        await store.commit(Change(table_round=table_round(1, **drawn)))
        for taken in (
            table_round(1, round_id=ulid(1)),
            table_round(2, **drawn),
            table_round(2, round_id=table_round(1).round_id),
        ):
            with pytest.raises(TableMovedError):
                await store.commit(Change(table_round=taken))
        for number in (2, 3):  # no draw is nobody's
            await store.commit(Change(table_round=table_round(number)))
        await store.commit(Change(table_round=table_round(4, instance="node-2-b1-w0", draw_no=5)))
        await store.commit(Change(table_round=table_round(1, "sala-piccola", round_id=ulid(2))))


async def test_a_seat_of_a_round_is_one_sessions_and_a_session_has_one(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        for number in (1, 2):
            await store.commit(Change(session=at_table(number)))
        await store.commit(seat_opened(at_table(1, version=2), seat_round(1, 1, table_round(1))))
        for late in (
            Change(at_table(2, version=2), seat_round(2, 1, table_round(1))),
            Change(at_table(1, version=3), seat_round(1, 2, table_round(1), round_no=2)),
        ):
            with pytest.raises(SessionRaceError):
                await store.commit(late)
        await store.commit(seat_opened(at_table(2, version=2), seat_round(2, 2, table_round(1))))


async def test_no_session_reserves_more_than_its_balance(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(session=at_table(1)))  # 1000 are bought
        for reserved in (1001, -1):
            with pytest.raises(StoreError):
                await store.commit(Change(session=at_table(1, version=2, reserved_minor=reserved)))
        await store.commit(Change(session=at_table(1, version=2, reserved_minor=1000)))
        with pytest.raises(StoreError):
            await store.commit(Change(sitting=sitting(1, reserved_minor=-1)))
        found = await store.session(ulid(1))
        assert (found.reserved_minor, found.table_id) == (1000, TABLE)


# --- what solo play costs ---------------------------------------------------------------------------------------------


async def test_a_commit_of_solo_play_asks_nothing_of_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted: the texts of one group without a table, and of one that has a guard."""
    texts: list[str] = []
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(table=table_row()))
        await store.commit(opened(session(1)))
        if isinstance(store, PostgresStore):
            genuine = __import__("rgs.store.postgres.commits", fromlist=["_fetch"])._fetch

            async def counted(link: Any, text: str, *values: Any) -> Any:
                texts.append(text)
                return await genuine(link, text, *values)

            monkeypatch.setattr("rgs.store.postgres.commits._fetch", counted)
        else:
            store._db.set_trace_callback(texts.append)
        await store.commit(Change(session(1, version=2, link_no=1), answer=answer(1)))
        solo = [*texts]
        texts.clear()
        await store.commit(guarded(1, answer=answer(2)))
        with_guard = [*texts]
        if not isinstance(store, PostgresStore):
            store._db.set_trace_callback(None)
    named = [text for text in solo if "tables" in text or "sittings" in text or "julianday" in text]
    assert named == []
    assert len(solo) == (2 if isinstance(store, PostgresStore) else 6), solo
    assert any("FROM tables" in text for text in with_guard)


async def test_many_bets_and_one_step_at_once(tmp_path: Path) -> None:
    """The bets are before the close, or refused; none is between."""
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(table=table_row()))
        for number in range(1, 21):
            await store.commit(seated(number))
        bets = [
            guarded(
                1,
                session=at_table(number, version=2, reserved_minor=RESERVED),
                sitting=sitting(number).placed(BETS),
            )
            for number in range(1, 21)
        ]
        changes = [*bets[:10], Change(table=table_row(2, state=State.CLOSED)), *bets[10:]]
        outcomes = await asyncio.gather(*(store.commit(change) for change in changes), return_exceptions=True)
        assert moved(outcomes) == [False] * 11 + [True] * 10
        assert len(await store.cut_sittings(TABLE, (0, ""), 100)) == 10
        assert await store.reserved_breaks(TABLE, "", 100) == []
