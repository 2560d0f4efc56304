"""Malfunctions at tables: pause, resume, void, and what pauses a table by itself (R-6; ARCHITECTURE 2.19-2.21)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import (
    RngUnavailableError,
    RoundNotPausedError,
    SecondAdminError,
    TableChangedError,
    TableStateError,
)
from rgs.core.tables.machine import State
from rgs.store.changes import StoreError
from tests.support.service.harness import ServiceHarness, open_harness, read_statement
from tests.support.service.oracles import replay, stored_statements, verify_books
from tests.support.service.tables import ADMIN, SECOND_ADMIN, Evening, Sitter


def statements(harness: ServiceHarness, kind: str) -> list[dict[str, Any]]:
    return [read_statement(row.envelope) for row in stored_statements(harness.folder) if row.kind == kind]


async def pause(evening: Evening, code: str = "CARD_READER") -> None:
    await evening.harness.tables.admin.pause(ADMIN, evening.harness.request_id(), evening.config.id, code)


async def resume(evening: Evening) -> None:
    await evening.harness.tables.admin.resume(ADMIN, evening.harness.request_id(), evening.config.id, "EXAMINED")


async def void(evening: Evening) -> None:
    """Two admins make the paused round void."""
    harness, table = evening.harness, (await evening.row()).table
    for admin, is_void in ((ADMIN, False), (SECOND_ADMIN, True)):
        done, _ = await harness.tables.admin.void(
            admin, harness.request_id(), table.table_id, table.round_id, "MISDEAL"
        )
        assert done is is_void


async def playing(evening: Evening, *names: str) -> list[Sitter]:
    """Players with bets, the table in its first decision window."""
    sitters = await evening.seated(*names)
    for sitter in sitters:
        await sitter.bet(ante=1_000)
    await evening.until(State.DECIDING)
    return sitters


async def test_a_pause_stops_the_clock_and_gives_a_whole_window_back(harness: ServiceHarness) -> None:
    evening = await Evening(harness, "uth-seven-box").open()
    one, two = await playing(evening, "player-1", "player-2")
    await one.decide("check")
    harness.clock.tick(14_999)
    await pause(evening)
    harness.clock.tick(3_600_000)
    await evening.look()
    assert await evening.state() is State.PAUSED
    with pytest.raises(TableChangedError):
        await two.decide("check")
    await resume(evening)
    row = await evening.row()
    assert (row.table.state, row.table.deadline_ms) == (State.DECIDING, harness.clock.time_ms + 15_000)
    await one.look()
    assert one.seat["round"]["legal_actions"] == []  # a decision from before the pause stays
    await two.decide("play_4x")
    await evening.until(State.RESULT)
    (final,) = statements(harness, "table_final")
    assert [window["end"] for window in final["windows"]] == ["paused", "decided", "time", "time"]
    assert replay(harness.folder).failures == 0


async def test_a_void_returns_every_stake_and_shows_the_deck(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        evening = await Evening(harness, "uth-seven-box").open()
        sitters = await playing(evening, "player-1", "player-2", "player-3")
        await sitters[0].decide("play_4x")
        await pause(evening)
        await void(evening)
        await evening.until(State.RESULT)
        (final,) = statements(harness, "table_final")
        assert (final["status"], len(final["deck"]), final["void"]["reason"]) == ("void", 52, "MISDEAL")
        for sitter in sitters:
            await sitter.look()
            assert sitter.seat["round"]["status"] == "void"
            assert sitter.session["balance_minor"] == 100_000
        seats = statements(harness, "seat_final")
        assert [seat["staked_minor"] for seat in seats] == ["6000", "2000", "2000"]
        assert all(seat["would_have_been"] for seat in seats)
        # The table goes on with its next round.
        await evening.until(State.BETTING)
        await sitters[0].bet(ante=1_000)
        await evening.until(State.RESULT)
        for sitter in sitters:
            await sitter.look()
            await sitter.leave()
            await sitter.end()
        await harness.settle()
    assert replay(tmp_path).failures == 0
    verify_books(tmp_path)


async def test_before_the_draw_the_bets_return(harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator fails: the fixed round is not drawn, the table pauses, and the void returns the bets."""
    evening = await Evening(harness, "uth-online").open()
    (sitter,) = await evening.seated("player-1")
    await sitter.bet(ante=1_000)
    with monkeypatch.context() as patched:
        patched.setattr(harness.instance, "draw", _fails)
        await evening.until(State.PAUSED)
    row = await evening.row()
    assert (row.table.paused_from, row.malfunction_code) == (State.FIXED, "RNG_UNAVAILABLE")
    await void(evening)
    await evening.until(State.RESULT)
    await sitter.look()
    assert (sitter.seat["reserved_minor"], sitter.session["balance_minor"]) == (0, 100_000)
    (final,) = statements(harness, "table_final")
    assert "deal" not in final
    assert replay(harness.folder).failures == 0


async def _fails() -> None:
    raise RngUnavailableError("the generator is in its error state: no new rounds")


async def test_a_void_takes_two_admins_and_a_pause(harness: ServiceHarness) -> None:
    evening = await Evening(harness, "uth-online").open()
    await playing(evening, "player-1")
    admin, table = harness.tables.admin, (await evening.row()).table
    with pytest.raises(RoundNotPausedError):
        await admin.void(ADMIN, harness.request_id(), table.table_id, table.round_id, "MISDEAL")
    await pause(evening)
    await admin.void(ADMIN, harness.request_id(), table.table_id, table.round_id, "MISDEAL")
    with pytest.raises(SecondAdminError):
        await admin.void(ADMIN, harness.request_id(), table.table_id, table.round_id, "MISDEAL")
    await resume(evening)
    await evening.until(State.RESULT)
    with pytest.raises(TableStateError):
        await resume(evening)


async def test_an_untrusted_clock_pauses_the_table(harness: ServiceHarness) -> None:
    """2.21: no window ends by a clock that was set, neither for bets nor for decisions."""
    evening = await Evening(harness, "uth-online").open()
    (sitter,) = await evening.seated("player-1")
    await sitter.bet(ante=1_000)
    harness.clock.jump(3_600_000)
    await evening.look()
    row = await evening.row()
    assert (row.table.state, row.table.paused_from, row.malfunction_code) == (
        State.PAUSED, State.BETTING, "CLOCK_UNTRUSTED",
    )  # fmt: skip
    harness.clock.accept()
    await resume(evening)
    await evening.until(State.RESULT)
    assert replay(harness.folder).failures == 0


async def test_while_time_is_not_trusted_a_table_without_bets_waits(harness: ServiceHarness) -> None:
    """Nothing is at stake: it is neither paused nor cancelled, and goes on by itself."""
    evening = await Evening(harness, "uth-online").open()
    (sitter,) = await evening.seated("player-1")
    await sitter.bet(ante=1_000)
    await sitter.bet()
    harness.clock.jump(3_600_000)
    await evening.look()
    assert await evening.state() is State.BETTING
    harness.clock.accept()
    await evening.look()
    assert await evening.state() is State.IDLE


async def test_a_closed_guard_pauses_the_table_before_the_draw(harness: ServiceHarness) -> None:
    evening = await Evening(harness, "uth-online").open()
    (sitter,) = await evening.seated("player-1")
    await sitter.bet(ante=1_000)
    harness.services.availability.close_guard("rules", "FILES_CHANGED", harness.clock.time_ms)
    await evening.until(State.PAUSED)
    assert (await evening.row()).malfunction_code == "GUARD_CLOSED"
    assert statements(harness, "table_deal") == []
    harness.services.availability.open_guard("rules")
    await resume(evening)
    assert await evening.until(State.RESULT) is State.RESULT


async def test_a_window_that_nobody_closed_in_time_runs_again(harness: ServiceHarness) -> None:
    """An outage is no longer window for those who could still reach the server."""
    evening = await Evening(harness, "uth-online").open()
    await playing(evening, "player-1")
    harness.clock.time_ms = (await evening.row()).table.deadline_ms + 10_001
    await evening.look()
    row = await evening.row()
    assert (row.table.state, row.malfunction_code) == (State.PAUSED, "WINDOW_OVERRUN")
    await resume(evening)
    await evening.until(State.RESULT)
    (final,) = statements(harness, "table_final")
    assert [window["end"] for window in final["windows"]] == ["paused", "time", "time", "time"]
    assert replay(harness.folder).failures == 0


async def test_cancelled_bets_return(harness: ServiceHarness) -> None:
    evening = await Evening(harness, "uth-online").open()
    (sitter,) = await evening.seated("player-1")
    await sitter.bet(ante=1_000)
    await pause(evening)
    await harness.tables.admin.cancel(ADMIN, harness.request_id(), "uth-online", "EXAMINED")
    await sitter.look()
    assert (sitter.seat["reserved_minor"], await evening.state()) == (0, State.IDLE)


@pytest.mark.parametrize("lie", ["seats = seats + 1", "seats_root = zeroblob(32)"], ids=["number", "root"])
async def test_no_seat_is_opened_where_the_store_has_others_than_were_signed_for(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch, lie: str
) -> None:
    evening = await Evening(harness, "uth-seven-box").open()
    for sitter in await evening.seated("player-1", "player-2"):
        await sitter.bet(ante=1_000)
    with monkeypatch.context() as patched:
        patched.setattr(harness.instance, "draw", _fails)
        await evening.until(State.PAUSED)
    harness.store._db.execute(f"UPDATE table_rounds SET {lie}")  # noqa: S608 - of this test
    await resume(evening)
    with pytest.raises(StoreError, match=r"the 2 seats in the store are not the [23] under its root: pause the table"):
        await evening.look()
    assert await evening.state() is State.OPENING
    assert statements(harness, "seat_opening") == []
