"""What the records of a change write at tables: numbers of seats, lost seats, reservations, bars, configurations."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from rgs.store.changes import Change, TableMovedError
from rgs.store.table_records import (
    BarEnded,
    BoxReleased,
    BoxReserved,
    PlayerBarred,
    ReservationsLapsed,
    SeatsFixed,
    SeatsLost,
    TableConfigKept,
)
from tests.support.store.shelf import answer, applied, open_shelf, table, ulid
from tests.support.store.table_rows import (
    BETS,
    RESERVED,
    TABLE,
    seated,
    sitting,
)
from tests.unit.store.test_table_commits import moved

pytestmark = pytest.mark.usefixtures("either_store")


async def test_seats_are_numbered_as_python_sorts_them(tmp_path: Path) -> None:
    numbers = [*range(1, 40)]
    random.Random(7).shuffle(numbers)
    ids = {number: f"{'aZ0_-Ab'[number % 7]}{number % 3}-{number}" for number in numbers}
    async with open_shelf(tmp_path) as store:
        made = [
            sitting(
                number,
                session_id=ids[number],
                box=number if number % 4 == 0 else 0,
                reserved_minor=0 if number % 5 == 0 else RESERVED,
            )
            for number in numbers
        ]
        await applied(store, [Change(sitting=one) for one in made])
        await store.commit(Change(sitting=sitting(99, "sala-piccola", reserved_minor=RESERVED)))
        await store.commit(Change(records=(SeatsFixed(TABLE),)))
        cut = sorted((one for one in made if one.reserved_minor), key=lambda one: (one.box, one.session_id))
        fixed = await store.fixed_sittings(TABLE, 0, 100)
        assert fixed == [replace(one, seat_no=at, version=2) for at, one in enumerate(cut, 1)]
        assert [one.seat_no for one in await store.sittings(TABLE, "", 100)].count(0) == 7
        assert (await store.sitting(ulid(99))).seat_no == 0
        pages: list[str] = []
        after = (0, "")
        while page := await store.cut_sittings(TABLE, after, 7):
            pages += [one.session_id for one in page]
            after = (page[-1].box, page[-1].session_id)
        assert pages == [one.session_id for one in cut]


async def test_nothing_takes_the_number_of_a_seat_away_that_was_computed_before(tmp_path: Path) -> None:
    """A second device takes the seat over while the seats are numbered."""
    async with open_shelf(tmp_path) as store:
        await store.commit(seated(1, bets=True))
        before = await store.sitting(ulid(1))
        await store.commit(Change(records=(SeatsFixed(TABLE),)))
        with pytest.raises(TableMovedError):
            await store.commit(Change(sitting=before.taken_over()))
        again = await store.sitting(ulid(1))
        await store.commit(Change(sitting=again.taken_over()))
        assert (await store.sitting(ulid(1))).seat_no == 1


async def test_a_bet_of_the_same_change_is_there_when_seats_are_numbered(tmp_path: Path) -> None:
    """A seat is written before the records of its change."""
    async with open_shelf(tmp_path) as store:
        await store.commit(seated(1))
        await store.commit(Change(sitting=sitting(1).placed(BETS), records=(SeatsFixed(TABLE),)))
        assert (await store.sitting(ulid(1))).seat_no == 1


async def test_a_seat_that_was_not_played_is_lost_unless_bets_are_reserved(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        for number, played_no in ((1, 3), (2, 4), (3, 5)):
            await store.commit(seated(number, played_no=played_no))
        await store.commit(seated(4, bets=True, played_no=1))
        await store.commit(seated(5, table_id="sala-piccola", played_no=1))
        await store.commit(Change(records=(SeatsLost(TABLE, 4),)))
        left = [number for number in range(1, 6) if await store.sitting(ulid(number)) is not None]
        assert left == [3, 4, 5]


async def test_reservations_of_boxes_are_held_released_and_lapse(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        held = [
            BoxReserved(TABLE, box, "op-1", f"player-{box}", last_no)
            for box, last_no in ((3, 0), (1, 7), (2, 8), (5, 6), (4, 9))
        ]
        other = BoxReserved("sala-piccola", 1, "op-1", "player-1", 1)
        await store.commit(Change(records=(*held, other)))
        assert [(one.box, one.player, one.last_no) for one in await store.reservations(TABLE)] == [
            (1, "player-1", 7), (2, "player-2", 8), (3, "player-3", 0), (4, "player-4", 9), (5, "player-5", 6),
        ]  # fmt: skip
        await store.commit(Change(records=(BoxReserved(TABLE, 4, "op-1", "player-8", 8), BoxReleased(TABLE, 3))))
        await store.commit(Change(records=(ReservationsLapsed(TABLE, 7),)))
        assert [(one.box, one.player) for one in await store.reservations(TABLE)] == [(2, "player-2"), (4, "player-8")]
        await store.commit(Change(records=(BoxReserved(TABLE, 1, "op-1", "player-1", 0),)))
        await store.commit(Change(records=(ReservationsLapsed(TABLE, 100),)))
        assert [one.box for one in await store.reservations(TABLE)] == [1]
        assert len(await store.reservations("sala-piccola")) == 1


async def test_players_are_barred_and_let_back(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        bars = [PlayerBarred(TABLE, "op-1", f"player-{number}", "RUDE", "admin-1", number) for number in (2, 1, 3)]
        await store.commit(Change(records=(*bars, replace(bars[0], table_id="sala-piccola"))))
        assert await store.bars(TABLE, 2) == [bars[1], bars[0]]
        again = replace(bars[0], reason="AGAIN", party="admin-2")
        await store.commit(Change(records=(again, BarEnded(TABLE, "op-1", "player-1"))))
        assert await store.bars(TABLE, 10) == [again, bars[2]]
        assert [await store.is_barred(TABLE, "op-1", f"player-{number}") for number in (1, 2)] == [False, True]
        assert not await store.is_barred(TABLE, "op-2", "player-2")
        assert await store.is_barred("sala-piccola", "op-1", "player-2")


async def test_a_configuration_is_kept_once_and_its_version_is_one_documents(tmp_path: Path) -> None:
    first, second = (TableConfigKept(f"{number:064}", TABLE, number, b"{}%d" % number) for number in (1, 2))
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(records=(first,)))
        await store.commit(Change(records=(first, second)))
        outcomes = await applied(store, [Change(answer=answer(1)), Change(records=(replace(second, sha256="f" * 64),))])
        assert moved(outcomes) == [False, True]
    kept = await table(tmp_path, "SELECT sha256, table_id, version, canonical FROM table_configs ORDER BY version")
    assert kept == [(one.sha256, TABLE, one.version, one.canonical) for one in (first, second)]
