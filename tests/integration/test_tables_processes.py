"""Four processes at the same tables, over one PostgreSQL whose clock the test moves: each seat is one player's, each
step is taken once, whoever leads, dies or has another clock, and red is red for all.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import RgsError, RngUnavailableError, TableChangedError
from rgs.core.tables.machine import State
from rgs.store.address import PostgresAddress
from tests.support.service.floor import Floor, opened
from tests.support.service.harness import OPERATOR, open_harness, read_statement
from tests.support.service.oracles import replay, stored_statements
from tests.support.service.table_world import RunningClock
from tests.support.service.tables import ADMIN, ALWAYS, SECOND_ADMIN, Evening, Sitter


async def all_of(*calls: Awaitable[Any]) -> list[str]:
    """The reasons of those that were refused, all at once; empty for those that were not."""
    found = await asyncio.gather(*calls, return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException) and not isinstance(one, RgsError):
            raise one
    return [one.reason if isinstance(one, RgsError) else "" for one in found]


async def entered(floor: Floor, table: str, names: Sequence[str]) -> list[Sitter]:
    """Players with money, each at another process, not seated yet."""
    sitters = [Sitter(floor.at(table, number % 4), name) for number, name in enumerate(names)]
    for sitter in sitters:
        await sitter.open()
    return sitters


async def seated(floor: Floor, table: str, names: Sequence[str]) -> list[Sitter]:
    sitters = await entered(floor, table, names)
    for sitter in sitters:
        await sitter.join()
    return sitters


PLAYERS = ("player-1", "player-2", "player-3", "player-4")

# --- who sits where ---------------------------------------------------------------------------------------------------


async def test_of_four_who_want_one_box_one_gets_it(tmp_path: Path, database: PostgresAddress) -> None:
    async with opened(database, tmp_path) as floor:
        await floor.set_up("uth-seven-box")
        sitters = await entered(floor, "uth-seven-box", PLAYERS)
        for box in (1, 5):
            reasons = await all_of(*(sitter.join(box) for sitter in sitters))
            assert Counter(reasons) == {"": 1, "BOX_TAKEN": 3}
            boxes = await floor.processes[0].store.boxes("uth-seven-box")
            assert [one.box for one in boxes] == [box]
            await sitters[reasons.index("")].leave()


async def test_eight_who_want_any_of_seven_boxes(tmp_path: Path, database: PostgresAddress) -> None:
    async with opened(database, tmp_path) as floor:
        await floor.set_up("uth-seven-box")
        sitters = await entered(floor, "uth-seven-box", [f"player-{number}" for number in range(8)])
        waiting, reasons = sitters, Counter[str]()
        for _ in range(6):
            found = await all_of(*(sitter.join() for sitter in waiting))
            reasons = Counter(found)
            waiting = [one for one, reason in zip(waiting, found, strict=True) if reason == "TABLE_CHANGED"]
            if not waiting:
                break
        assert reasons["TABLE_FULL"] == 1
        boxes = await floor.processes[3].store.boxes("uth-seven-box")
        assert [one.box for one in boxes] == [1, 2, 3, 4, 5, 6, 7]


async def test_a_table_has_no_more_seats_than_it_has(tmp_path: Path, database: PostgresAddress) -> None:
    """Where players share a hand there are no boxes to take, and the number of seats holds all the same."""
    async with opened(database, tmp_path) as floor:
        await floor.set_up("uth-online", seats=2)
        sitters = await entered(floor, "uth-online", PLAYERS)
        reasons = await all_of(*(sitter.join() for sitter in sitters))
        assert set(reasons) <= {"", "TABLE_FULL", "TABLE_CHANGED"}
        assert await floor.processes[0].store.count_sittings("uth-online", 9) <= 2


async def test_a_player_has_one_seat_at_a_table_and_the_tables_that_are_allowed(
    tmp_path: Path, database: PostgresAddress
) -> None:
    async with opened(database, tmp_path) as floor:
        for table in ("uth-online", "uth-seven-box"):
            await floor.set_up(table, tables_beside=False)
        store = floor.processes[0].store
        for _ in range(3):
            # Two tables at once, then one table with four sessions.
            pairs = [Sitter(floor.at(table, n), "player-1") for n, table in enumerate(("uth-online", "uth-seven-box"))]
            four = [Sitter(floor.at("uth-online", number), "player-2") for number in range(4)]
            for sitter in (*pairs, *four):
                await sitter.open(bought_minor=0)
            for sitters, reason in ((pairs, "TABLES_AT_ONCE"), (four, "ALREADY_AT_TABLE")):
                reasons = await all_of(*(sitter.join() for sitter in sitters))
                assert Counter(reasons) == {"": 1, reason: len(sitters) - 1}
                assert len(await store.sittings_of_player(OPERATOR.party, sitters[0].name)) == 1
                await sitters[reasons.index("")].leave()


# --- whoever takes the steps ------------------------------------------------------------------------------------------


async def play(floor: Floor, table: str, look: Callable[[], Awaitable[None]], *, late_ms: int = 0) -> list[Sitter]:
    """A round in which each player speaks to another process."""
    sitters = await seated(floor, table, PLAYERS[: len(floor.processes)])
    reasons = await all_of(*(sitter.bet(ante=1_000) for sitter in sitters))
    for sitter in (sitter for sitter, reason in zip(sitters, reasons, strict=True) if reason):
        await sitter.look()
        await sitter.bet(ante=1_000)
    await floor.until(table, State.DECIDING, look=look, late_ms=late_ms)
    await sitters[0].decide("check")
    await sitters[1].decide("play_4x")
    await floor.until(table, State.DECIDING, look=look, phase="flop", late_ms=late_ms)
    await sitters[0].decide("play_2x")
    await floor.until(table, State.RESULT, look=look, late_ms=late_ms)
    return sitters


@pytest.mark.parametrize("table", ["uth-online", "uth-seven-box"])
async def test_all_take_the_same_step_at_once(tmp_path: Path, database: PostgresAddress, table: str) -> None:
    """With clocks that are ahead and behind: the times of a table are the database's."""
    async with opened(database, tmp_path) as floor:
        await floor.set_up(table)
        for sitter in await play(floor, table, lambda: floor.everywhere(table)):
            await sitter.look()
            assert sitter.seat["round"]["status"] == "settled"
        kinds = Counter(row.kind for row in await floor.verified())
        once = ("table_round", "table_seats", "table_deal", "table_final")
        assert [kinds[kind] for kind in once] == [1] * 4
        assert (kinds["seat_opening"], kinds["seat_final"]) == (4, 4)
        assert kinds["discarded_draw"] >= 1, "no two of them drew for the same round: the test shows nothing"


@pytest.mark.parametrize("late_ms", [0, 2_000])
async def test_whoever_polls(tmp_path: Path, database: PostgresAddress, late_ms: int) -> None:
    """One process leads; the others take a table that is two seconds late, so that it may hang."""
    async with opened(database, tmp_path) as floor:
        await floor.set_up("uth-seven-box")
        await floor.poll(0)
        who = (1, 2, 3) if late_ms else (0, 1, 2, 3)
        await play(floor, "uth-seven-box", lambda: floor.poll(*who), late_ms=late_ms)
        instances = {
            row.instance for row in await floor.verified() if row.kind in {"table_round", "table_deal", "table_final"}
        }
        assert ("node-1-b1-w0" in instances) is not late_ms


async def test_who_does_not_lead_takes_no_step_in_time(tmp_path: Path, database: PostgresAddress) -> None:
    async with opened(database, tmp_path) as floor:
        await floor.set_up("uth-seven-box")
        await floor.poll(0)
        (sitter,) = await seated(floor, "uth-seven-box", PLAYERS[:1])
        await sitter.bet(ante=1_000)
        evening = floor.at("uth-seven-box", 0)
        await floor.pass_to((await evening.row()).table.deadline_ms + 1_999)
        await floor.poll(1, 2, 3)
        assert await evening.state() is State.BETTING
        await floor.poll(0)
        assert await evening.state() is State.DECIDING


PLACES = [
    (State.BETTING, ""), (State.DECIDING, "preflop"), (State.DECIDING, "flop"), (State.DECIDING, "river"),
    (State.RESULT, ""),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("state", "phase"), PLACES)
async def test_the_leader_disappears(tmp_path: Path, database: PostgresAddress, state: State, phase: str) -> None:
    """In each state in which a table waits; `test_the_leader_dies_at_its_work` has those that pass at once."""
    async with opened(database, tmp_path) as floor:
        await floor.set_up("uth-seven-box")
        await floor.poll(0)
        sitters = await seated(floor, "uth-seven-box", PLAYERS)
        for sitter in sitters[1:]:
            await sitter.bet(ante=1_000)
        await floor.until("uth-seven-box", state, look=lambda: floor.poll(0), phase=phase)
        await floor.kill(0)
        await floor.until("uth-seven-box", State.RESULT, look=floor.poll)
        assert Counter(row.kind for row in await floor.verified())["seat_final"] == 3


STOPS = ("fix_change", "deal", "open", "reveal_change", "finish", "_finish_change")


@pytest.mark.parametrize("stop", STOPS)
async def test_the_leader_dies_at_its_work(
    tmp_path: Path, database: PostgresAddress, stop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies as it is about to fix, to draw, to open seats, to reveal, to settle seats, to finish."""
    async with opened(database, tmp_path) as floor:
        await floor.set_up("uth-seven-box")
        await floor.poll(0)
        for sitter in (await seated(floor, "uth-seven-box", PLAYERS))[1:]:
            await sitter.bet(ante=1_000)
        tables, died = floor.processes[0].tables, asyncio.Event()
        owner: Any = next(one for one in (tables.rounds, tables.seat_rounds, tables.dealer) if hasattr(one, stop))

        async def dies(*_: object) -> None:
            died.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(owner, stop, dies)
        row = (await floor.at("uth-seven-box", 0).row()).table
        while not died.is_set():
            await floor.pass_to((await floor.at("uth-seven-box", 0).row()).due_ms)
            await tables.dealer.poll()
        for task in tables.dealer._under_way.values():
            task.cancel()
        await floor.kill(0)
        await floor.until("uth-seven-box", State.RESULT, look=floor.poll)
        assert (await floor.at("uth-seven-box", 1).row()).table.round_id == row.round_id
        kinds = Counter(row.kind for row in await floor.verified())
        assert (kinds["table_deal"], kinds["seat_opening"], kinds["seat_final"]) == (1, 3, 3)


# --- red --------------------------------------------------------------------------------------------------------------


async def test_red_is_the_databases(tmp_path: Path, database: PostgresAddress) -> None:
    """A bet is in exactly if it is committed by the deadline, whatever the clock of its process says."""
    async with opened(database, tmp_path) as floor:
        await floor.set_up("uth-online")
        sitters = await seated(floor, "uth-online", PLAYERS)
        await sitters[0].bet(ante=1_000)
        deadline_ms = (await floor.at("uth-online", 0).row()).table.deadline_ms
        await floor.pass_to(deadline_ms)
        assert await all_of(*(sitter.bet(ante=1_100) for sitter in sitters)) == [""] * 4
        await floor.pass_to(deadline_ms + 1)
        for sitter in sitters:
            await sitter.look()
        assert await all_of(*(sitter.bet(ante=1_200) for sitter in sitters)) == ["TABLE_CHANGED"] * 4
        await floor.everywhere("uth-online")
        for sitter in sitters:
            await sitter.look()
            assert sitter.seat["round"]["bets"][0] == ["ante", 1_100]
        await floor.until("uth-online", State.RESULT, look=lambda: floor.everywhere("uth-online"))
        await floor.verified()


@pytest.mark.parametrize("is_first", [False, True])
async def test_what_is_bet_while_the_window_is_closed_counts(
    tmp_path: Path, database: PostgresAddress, monkeypatch: pytest.MonkeyPatch, *, is_first: bool
) -> None:
    """At the deadline another process commits the only bet, or takes it back, after the dealer has counted the bets."""
    async with opened(database, tmp_path, 2) as floor:
        await floor.set_up("uth-online")
        first, second = await seated(floor, "uth-online", PLAYERS[:2])
        await first.bet(ante=1_000)
        if is_first:
            await first.bet()
        await floor.pass_to((await floor.at("uth-online", 0).row()).table.deadline_ms)
        store = floor.processes[0].store
        count = store.has_bets

        async def counted(table_id: str) -> bool:
            monkeypatch.undo()
            found = await count(table_id)
            await second.look()
            first.evening = second.evening
            await (second.bet(ante=1_500) if is_first else first.bet())
            return found

        monkeypatch.setattr(store, "has_bets", counted)
        await floor.at("uth-online", 0).look()
        assert await floor.at("uth-online", 1).state() is (State.DECIDING if is_first else State.IDLE)
        kinds = Counter(row.kind for row in await floor.verified())
        assert (kinds["table_round"], kinds["seat_opening"]) == ((1, 1) if is_first else (0, 0))


# --- moments that pass while a step is taken --------------------------------------------------------------------------


async def test_no_decision_is_later_than_its_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one decides after the dealer has read the clock, and before it asks whether anybody is undecided."""
    async with open_harness(tmp_path, clock=RunningClock()) as harness:
        evening = await Evening(harness, "uth-online", hours=ALWAYS).open()
        (sitter,) = await evening.seated("player-1")
        await sitter.bet(ante=1_000)
        await evening.until(State.DECIDING)
        ask, decided = harness.store.has_undecided, asyncio.Event()

        async def requested(*values: Any) -> bool:
            if not decided.is_set():
                decided.set()
                await sitter.decide("play_4x")
            return await ask(*values)

        monkeypatch.setattr(harness.store, "has_undecided", requested)
        monkeypatch.setattr(harness.tables.dealer, "look", lambda _: None)  # it is looking
        await evening.look()
        await evening.until(State.RESULT)
    assert replay(tmp_path).rounds_verified == 1


@pytest.mark.parametrize("is_void", [False, True])
async def test_no_decision_is_later_than_the_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_void: bool
) -> None:
    """Somebody decides after the pause was dated, and before it is committed."""
    async with open_harness(tmp_path, clock=RunningClock()) as harness:
        evening = await Evening(harness, "uth-online", hours=ALWAYS).open()
        sitters = await evening.seated("player-1", "player-2")
        for sitter in sitters:
            await sitter.bet(ante=1_000)
        await evening.until(State.DECIDING)
        dealer, admin, table = harness.tables.dealer, harness.tables.admin, evening.config.id
        read = dealer.read

        async def seen(table_id: str) -> Any:
            found = await read(table_id)
            monkeypatch.undo()
            await sitters[0].decide("check")
            return found

        monkeypatch.setattr(dealer, "read", seen)
        await admin.pause(ADMIN, harness.request_id(), table, "CARD_READER")
        if is_void:
            round_id = (await evening.row()).table.round_id
            for who in (ADMIN, SECOND_ADMIN):
                await admin.void(who, harness.request_id(), table, round_id, "MISDEAL")
        else:
            await admin.resume(ADMIN, harness.request_id(), table, "EXAMINED")
        await evening.until(State.RESULT)
        await sitters[0].look()
        assert [action["action"] for action in sitters[0].seat["round"]["actions"]][:1] == ["check"]
    assert replay(tmp_path).failures == 0


async def test_a_closed_window_is_closed_for_decisions(
    tmp_path: Path, database: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(database, tmp_path, 3) as floor:
        await floor.set_up("uth-seven-box")
        sitters = await seated(floor, "uth-seven-box", PLAYERS[:3])
        for sitter in sitters:
            await sitter.bet(ante=1_000)
        await floor.until("uth-seven-box", State.DECIDING, look=lambda: floor.poll(0))
        deadline_ms = (await floor.at("uth-seven-box", 0).row()).table.deadline_ms
        for harness in floor.processes:  # the window is over, and nobody has closed it yet
            monkeypatch.setattr(harness.tables.dealer, "look", lambda _: None)
        await floor.pass_to(deadline_ms)
        await sitters[1].decide("play_4x")  # its process is four seconds ahead
        await floor.pass_to(deadline_ms + 1)
        with pytest.raises(TableChangedError, match="window has closed"):
            await sitters[2].decide("play_4x")  # its process is four seconds behind
        monkeypatch.undo()
        await floor.until("uth-seven-box", State.RESULT, look=floor.poll)
        await floor.verified()


async def test_a_void_is_dated_behind_the_seats_that_it_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paused after the draw, before any seat is opened: two admins open the seats and make the round void."""
    monkeypatch.setattr("rgs.service.tables.dealer.STEPS_MAX", 1)
    async with open_harness(tmp_path, clock=RunningClock()) as harness:
        evening = await Evening(harness, "uth-seven-box", hours=ALWAYS).open()
        sitters = await evening.seated("player-1", "player-2")
        for sitter in sitters:
            await sitter.bet(ante=1_000)
        await evening.until(State.OPENING)
        admin, table = harness.tables.admin, evening.config.id
        assert await harness.store.has_unopened(table)
        await admin.pause(ADMIN, harness.request_id(), table, "CARD_READER")
        round_id = (await evening.row()).table.round_id
        for who in (ADMIN, SECOND_ADMIN):
            await admin.void(who, harness.request_id(), table, round_id, "MISDEAL")
        await evening.until(State.RESULT)
    assert replay(tmp_path).statements["seat_final"] == 2
    times: dict[str, list[str]] = {}
    for row in stored_statements(tmp_path):
        times.setdefault(row.kind, []).append(read_statement(row.envelope)["time"])
    assert max(times["seat_opening"]) <= times["table_final"][0] <= min(times["seat_final"])


async def test_who_bet_in_void_rounds_keeps_the_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T-5 takes a box from who does not play. Three rounds that are void before their draw are nobody's fault."""
    async with open_harness(tmp_path) as harness:
        evening = await Evening(harness, "uth-lugano", hours=ALWAYS).open()
        one, _ = await evening.seated("player-1", "player-2")
        admin, table = harness.tables.admin, evening.config.id

        async def fails() -> None:
            raise RngUnavailableError("the generator is in its error state: no new rounds")

        for _ in range(3):
            await one.look()
            await one.bet(ante=1_000)
            with monkeypatch.context() as patched:
                patched.setattr(harness.instance, "draw", fails)
                await evening.until(State.PAUSED)
            round_id = (await evening.row()).table.round_id
            for who in (ADMIN, SECOND_ADMIN):
                await admin.void(who, harness.request_id(), table, round_id, "GENERATOR")
            await evening.until(State.RESULT)
            await evening.until(State.BETTING)
        assert [seat.player for seat in await harness.store.boxes(table)] == ["player-1"]


async def test_a_table_that_is_about_to_be_shut_begins_no_round(tmp_path: Path) -> None:
    """An admin has shut it, and no dealer has looked yet."""
    async with open_harness(tmp_path) as harness:
        evening = await Evening(harness, "uth-online", hours=ALWAYS).open()
        (sitter,) = await evening.seated("player-1")
        await harness.tables.admin.set_open(
            ADMIN, harness.request_id(), evening.config.id, is_open=False, reason="ORDERED"
        )
        with pytest.raises(TableChangedError, match="not open"):
            await sitter.bet(ante=1_000)
        assert await evening.until(State.SHUT) is State.SHUT
