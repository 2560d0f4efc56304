"""Seats: boxes, tables at once, devices, absence, lost and barred seats (RULEBOOK T-3, T-4, T-5, R-7, F-13)."""

from __future__ import annotations

import asyncio

import pytest

from rgs.core.errors import (
    AlreadyAtTableError,
    BoxTakenError,
    DeviceReplacedError,
    InvalidFieldError,
    JoinLimitError,
    NotSeatedError,
    PlayerBarredError,
    RgsError,
    RngUnavailableError,
    TableChangedError,
    TableFullError,
    TablesAtOnceError,
)
from rgs.core.tables.machine import State
from rgs.store.changes import Change, SessionRaceError, TableMovedError
from tests.support.service.harness import ServiceHarness
from tests.support.service.oracles import stored_statements
from tests.support.service.tables import ADMIN, ALWAYS, Evening, Sitter, config_text


@pytest.fixture
async def boxes(harness: ServiceHarness) -> Evening:
    return await Evening(harness, "uth-seven-box").open()


async def refused(kind: type[RgsError], sitter: Sitter, box: int = 0) -> RgsError:
    with pytest.raises(kind) as caught:
        await sitter.join(box)
    return caught.value


async def test_boxes(boxes: Evening) -> None:
    """Each has one player; a free one is found; the eighth player finds none."""
    third = await Sitter(boxes, "player-1").sit(3)
    assert third.seat["box"] == 3
    others = await boxes.seated(*(f"player-{number}" for number in range(2, 8)))
    assert [one.seat["box"] for one in others] == [1, 2, 4, 5, 6, 7]
    late = Sitter(boxes, "player-8")
    await late.open()
    for box in (0, 4):
        assert (await refused(TableFullError, late, box)).message == "all 7 seats are taken"
    await third.leave()
    assert (await refused(BoxTakenError, late, 4)).metadata["value"] == "4"
    for box, limit in ((8, "7"), (1_000, "7"), (1_001, "1000"), (-1, "0")):
        error = await refused(InvalidFieldError, late, box)
        assert (error.field, error.metadata["limit"]) == ("box", limit)
    await late.join(3)
    assert late.seat["box"] == 3


async def test_the_last_seat_without_a_box_for_two_at_once(harness: ServiceHarness) -> None:
    evening = await Evening(harness, "uth-online", seats=1).open()
    sitters = [Sitter(evening, f"player-{number}") for number in range(2)]
    for sitter in sitters:
        await sitter.open()
    outcomes = await asyncio.gather(*(one.join() for one in sitters), return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NoneType", "TableFullError"]


async def test_an_operator_that_a_table_is_taken_from_places_no_bets_there_any_more(harness: ServiceHarness) -> None:
    evening = await Evening(harness, "uth-online").open()
    (sitter,) = await evening.seated("player-1")
    text = config_text("uth-online", version=2, operators=["op-2"])
    await harness.tables.admin.configure(ADMIN, harness.request_id(), text, "MOVED")
    with pytest.raises(PlayerBarredError, match="not open to the operator's players any more") as caught:
        await sitter.bet(ante=1_000)
    assert caught.value.field == "session_id"


async def test_one_box_for_two_at_once(boxes: Evening) -> None:
    sitters = [Sitter(boxes, f"player-{number}") for number in range(2)]
    for sitter in sitters:
        await sitter.open()
    outcomes = await asyncio.gather(*(one.join(5) for one in sitters), return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["BoxTakenError", "NoneType"]


async def test_a_reserved_box_is_for_its_player(boxes: Evening) -> None:
    """F-13: only an admin reserves. Who names no box gets it."""
    admin = boxes.harness.tables.admin
    await admin.reserve(ADMIN, boxes.harness.request_id(), boxes.config.id, 6, "op-1", "player-1", "REQUESTED")
    other, owner = Sitter(boxes, "player-2"), Sitter(boxes, "player-1")
    for sitter in (other, owner):
        await sitter.open()
    await refused(BoxTakenError, other, 6)
    await owner.join()
    assert owner.seat["box"] == 6


async def test_one_seat_a_player_and_table(boxes: Evening) -> None:
    first, second = Sitter(boxes, "player-1"), Sitter(boxes, "player-1")
    await first.sit()
    await second.open()
    assert (await refused(AlreadyAtTableError, second)).metadata["session_id"] == first.session_id


async def test_a_table_that_always_moves_meanwhile_is_told_with_what_to_read(
    boxes: Evening, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Sitter(boxes, "player-1")
    await late.open()

    async def overtaken(_change: Change) -> object:
        raise TableMovedError("the table has moved on", table=boxes.config.id)

    with monkeypatch.context() as patched:
        patched.setattr(boxes.harness.store, "commit", overtaken)
        error = await refused(TableChangedError, late)
    assert (error.field, error.message) == ("round_id", "the table has moved on: read the table and decide again")
    await late.join()


async def test_a_second_device_takes_over_and_the_first_is_told(boxes: Evening) -> None:
    """T-3: bets stay as they are, and the first device decides nothing any more."""
    seen: list[str] = []
    boxes.harness.tables.signals.listen(_Listener(seen))
    sitter = await Sitter(boxes, "player-1").sit()
    await sitter.bet(ante=1_000)
    first = dict(sitter.seat)
    seen.clear()
    await sitter.join()
    assert (sitter.seat["device_no"], sitter.seat["reserved_minor"]) == (2, 2_000)
    assert seen == [sitter.session_id]
    second, sitter.seat = sitter.seat, first
    with pytest.raises(DeviceReplacedError):
        await sitter.bet(ante=2_000)
    with pytest.raises(DeviceReplacedError):
        await sitter.leave()
    sitter.seat = second
    await sitter.bet(ante=2_000)


class _Listener:
    def __init__(self, seats: list[str]) -> None:
        self._seats = seats

    def moved(self, table_id: str, version: int) -> None: ...
    def said(self, message: object) -> None: ...
    def seat_changed(self, session_id: str) -> None:
        self._seats.append(session_id)


async def test_tables_at_once(harness: ServiceHarness, boxes: Evening) -> None:
    """T-4: the law's number, and tables that may not be played beside others."""
    alone = await Evening(harness, "uth-lugano", hours=ALWAYS).open()  # tables_beside is false
    one = Sitter(alone, "player-1")
    await one.sit()
    other = Sitter(boxes, "player-1")
    await other.open()
    await refused(TablesAtOnceError, other)
    await one.leave()
    await other.join()
    await refused(TablesAtOnceError, one)


async def test_joins_are_limited(boxes: Evening) -> None:
    """Who joins and leaves all the time is refused for a while."""
    sitter = Sitter(boxes, "player-1")
    await sitter.open()
    for _ in range(10):
        await sitter.join()
        await sitter.leave()
    error = await refused(JoinLimitError, sitter)
    assert error.metadata["retry_after_ms"] == "60000"
    boxes.harness.clock.tick(60_000)
    await sitter.join()


@pytest.mark.parametrize("nickname", ["", "x" * 21, " a", "a\nb"])
async def test_nicknames_are_short_and_printable(boxes: Evening, nickname: str) -> None:
    sitter = Sitter(boxes, "player-1")
    await sitter.open()
    with pytest.raises(InvalidFieldError) as caught:
        await sitter.evening.harness.tables.seats.join(sitter.caller, sitter.joining(0, nickname))
    assert caught.value.field == "nickname"


async def test_before_red_a_leaving_player_takes_the_bets_along(boxes: Evening) -> None:
    """R-7, F-8."""
    sitter = await Sitter(boxes, "player-1").sit()
    await sitter.bet(ante=1_000)
    await sitter.leave()
    assert (sitter.seat["ended"], sitter.session["balance_minor"]) == ("LEFT", 100_000)
    session = await boxes.harness.store.session(sitter.session_id)
    assert session is not None
    assert session.reserved_minor == 0
    assert await boxes.until(State.IDLE, most=2) is State.IDLE
    with pytest.raises(NotSeatedError):
        await sitter.bet(ante=1_000)


async def test_after_red_the_bets_of_a_leaving_player_stand(boxes: Evening) -> None:
    """The seat is dealt and the timer decides; the box is free for the next player at once."""
    sitter = await Sitter(boxes, "player-1").sit(4)
    await sitter.bet(ante=1_000)
    await boxes.until(State.DECIDING)
    await sitter.leave()
    other = await Sitter(boxes, "player-2").sit(4)
    await boxes.until(State.RESULT)
    await sitter.look()
    assert [one["by"] for one in sitter.seat["round"]["actions"]] == ["timer"] * 3
    assert other.seat["box"] == 4


async def test_who_leaves_while_the_bets_are_cut_is_dealt(boxes: Evening, monkeypatch: pytest.MonkeyPatch) -> None:
    sitter = await Sitter(boxes, "player-1").sit()
    await sitter.bet(ante=1_000)
    with monkeypatch.context() as patched:
        patched.setattr("rgs.service.tables.dealer.STEPS_MAX", 1)
        await boxes.pass_time()
    assert await boxes.state() is State.CLOSED
    await sitter.leave()
    with pytest.raises(NotSeatedError):
        await sitter.leave()
    await boxes.until(State.RESULT)
    assert [row.kind for row in stored_statements(boxes.harness.folder)].count("seat_final") == 1
    assert await boxes.harness.store.sitting(sitter.session_id) is None


async def test_at_lugano_a_box_is_lost_after_three_rounds_without_bets(harness: ServiceHarness) -> None:
    """T-5. Session and participation go on: the player sits down again."""
    evening = await Evening(harness, "uth-lugano", hours=ALWAYS).open()
    plays, idles = await evening.seated("player-1", "player-2")
    held = []
    for _ in range(4):
        await evening.until(State.IDLE, State.BETTING)
        await plays.look()
        await plays.bet(ante=1_000)
        await evening.until(State.RESULT)
        held.append(await harness.store.sitting(idles.session_id) is not None)
        await evening.pass_time()
    assert held == [True, True, False, False]
    await idles.look()
    assert idles.seat["ended"] == "NOT_SEATED"
    assert [idles.seat[name] for name in ("box", "device_no", "seat_version", "reserved_minor")] == [0, 0, 0, 0]
    await idles.join()
    await idles.bet(ante=1_000)


async def test_a_barred_player_neither_stays_nor_comes(boxes: Evening) -> None:
    harness = boxes.harness
    sitter = await Sitter(boxes, "player-1").sit()
    await sitter.bet(ante=1_000)
    bar = harness.tables.admin.bar
    await bar(ADMIN, harness.request_id(), boxes.config.id, "op-1", "player-1", barred=True, reason="CHEATING")
    await sitter.look()
    assert (sitter.seat["ended"], sitter.session["balance_minor"]) == ("BARRED", 100_000)
    await refused(PlayerBarredError, sitter)
    await bar(ADMIN, harness.request_id(), boxes.config.id, "op-1", "player-1", barred=False, reason="EXAMINED")
    await sitter.join()


async def test_a_barred_player_whose_bets_are_cut_takes_no_seat_back_with_another_device(
    boxes: Evening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The generator fails before the deal: the bets stand, and with them the seat, until the round goes on."""
    harness = boxes.harness

    async def fails() -> object:
        raise RngUnavailableError("planned")

    (sitter,) = await boxes.seated("player-1")
    await sitter.bet(ante=1_000)
    with monkeypatch.context() as patched:
        patched.setattr(harness.instance, "draw", fails)
        await boxes.until(State.PAUSED)
    bar = harness.tables.admin.bar
    await bar(ADMIN, harness.request_id(), boxes.config.id, "op-1", "player-1", barred=True, reason="CHEATING")
    assert (await refused(PlayerBarredError, sitter)).field == "player"
    await harness.tables.admin.resume(ADMIN, harness.request_id(), boxes.config.id, "EXAMINED")
    await boxes.until(State.RESULT)
    await sitter.look()
    assert (sitter.seat["round"]["status"], sitter.seat["ended"]) == ("settled", "BARRED")


async def test_a_closed_session_leaves_its_seat(boxes: Evening) -> None:
    sitter = await Sitter(boxes, "player-1").sit()
    await sitter.end()
    assert await boxes.harness.store.sitting(sitter.session_id) is None
    await sitter.look()
    assert sitter.seat["ended"] == "CLOSED"


async def test_who_comes_in_a_round_watches(boxes: Evening) -> None:
    sitter = await Sitter(boxes, "player-1").sit()
    await sitter.bet(ante=1_000)
    await boxes.until(State.DECIDING)
    late = await Sitter(boxes, "player-2").sit()
    assert late.seat["round"] is None
    with pytest.raises(TableChangedError):
        await late.bet(ante=1_000)
    await boxes.until(State.BETTING)
    await late.bet(ante=1_000)


async def test_the_box_of_a_player_who_is_gone_is_free_once_the_session_is_inactive(boxes: Evening) -> None:
    harness = boxes.harness
    gone, bets = await boxes.seated("player-1", "player-2")
    harness.clock.tick(1_800_000)  # the law's limit: not inactive yet
    assert await harness.tables.idle_seats.poll() == 0
    await bets.bet(ante=1_000)
    harness.clock.tick(60_000)
    assert await harness.tables.idle_seats.poll() == 1
    await gone.look()
    assert gone.seat["ended"] == "NOT_SEATED"
    assert await harness.store.sitting(bets.session_id) is not None
    harness.clock.jump(3_600_000)  # time is not trusted: nothing ends
    assert await harness.tables.idle_seats.poll() == 0


async def test_a_player_who_comes_back_in_time_keeps_the_box(boxes: Evening, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = boxes.harness
    (sitter,) = await boxes.seated("player-1")
    harness.clock.tick(1_860_000)
    seen: list[str] = []

    async def overtaken(_change: Change) -> object:
        raise SessionRaceError("the player has bet")

    with monkeypatch.context() as patched:
        patched.setattr(harness.store, "commit", overtaken)
        patched.setattr(harness.tables.signals, "seat", seen.append)
        assert await harness.tables.idle_seats.poll() == 0
    assert seen == []
    await sitter.look()
    assert sitter.seat["ended"] == ""
