"""Orders about places at tables: players barred, boxes reserved, lines of chat erased; and who may give them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rgs.core.errors import (
    BoxTakenError,
    InvalidFieldError,
    NotFoundError,
    PermissionDeniedError,
    PlayerBarredError,
    RetentionError,
)
from rgs.core.tables.machine import State
from rgs.service.admin.erasure import Erasable
from rgs.service.callers import Caller, Role
from rgs.store.changes import Change, TableMovedError
from rgs.store.table_records import PlayerBarred
from tests.support.service.harness import OPERATOR, ServiceHarness, open_harness, read_statement
from tests.support.service.oracles import replay, stored_statements, verify_books
from tests.support.service.table_orders import betting, close_bets, evening_of
from tests.support.service.tables import ADMIN, Evening, Sitter

OTHER = Caller("op-2", Role.OPERATOR, "demo")


async def bar(evening: Evening, player: str, *, barred: bool = True, caller: Caller = ADMIN) -> bytes:
    operator = "" if caller.role is Role.OPERATOR else OPERATOR.party
    return await evening.harness.tables.admin.bar(
        caller, evening.harness.request_id(), evening.config.id, operator, player, barred=barred, reason="CHEATING"
    )


async def reserve(evening: Evening, box: int, player: str, operator: str = OPERATOR.party) -> bytes:
    return await evening.harness.tables.admin.reserve(
        ADMIN, evening.harness.request_id(), evening.config.id, box, operator, player, "GUEST"
    )


# --- barred players ---------------------------------------------------------------------------------------------------


async def test_a_barred_player_leaves_and_does_not_come_back(harness: ServiceHarness) -> None:
    evening = await evening_of(harness)
    one, two = await evening.seated("player-1", "player-2")
    event = read_statement(await bar(evening, "player-1"))
    assert (event["code"], event["actor"], event["subject"]) == ("PLAYER_BARRED", "admin-1", "uth-online op-1")
    assert "player-1" not in str(event), "no pseudonym is signed in the open"
    (barred,) = await harness.store.bars("uth-online", 9)
    assert (barred.operator, barred.player, barred.reason, barred.party) == ("op-1", "player-1", "CHEATING", "admin-1")
    assert await harness.store.sitting(one.session_id) is None
    assert await harness.store.sitting(two.session_id) is not None
    with pytest.raises(PlayerBarredError):
        await one.join()
    event = read_statement(await bar(evening, "player-1", barred=False))
    assert event["code"] == "BAR_ENDED"
    await one.join()
    with pytest.raises(NotFoundError) as caught:
        await bar(evening, "player-1", barred=False)
    assert caught.value.metadata["kind"] == "bar"


async def test_bets_of_an_open_window_are_returned_to_a_barred_player(harness: ServiceHarness) -> None:
    evening, (one, two) = await betting(harness, "player-1", "player-2")
    await bar(evening, "player-1")
    assert await harness.store.sitting(one.session_id) is None
    session = await harness.store.session(one.session_id)
    assert session is not None
    assert (session.reserved_minor, session.balance_minor) == (0, 100_000)
    await harness.tables.admin.pause(ADMIN, harness.request_id(), "uth-online", "INSPECTION")
    await bar(evening, "player-2")
    assert await harness.store.sitting(two.session_id) is None
    assert await harness.store.reserved_breaks("uth-online", "", 9) == []


@pytest.mark.parametrize("is_late", [False, True])
async def test_cut_bets_of_a_barred_player_are_played_out(tmp_path: Path, *, is_late: bool) -> None:
    async with open_harness(tmp_path) as harness:
        evening, (one, two) = await betting(harness, "player-1", "player-2")
        if is_late:  # the window has run out, and nobody has closed it yet
            harness.clock.time_ms = (await evening.row()).table.deadline_ms + 1
        else:
            await close_bets(evening)
        await bar(evening, "player-1")
        sitting = await harness.store.sitting(one.session_id)
        assert sitting is not None
        assert (sitting.leaving, sitting.reserved_minor) == (True, 2_000)
        await evening.until(State.DECIDING)
        assert await harness.store.sitting(one.session_id) is None, "the place is free once the seat is opened"
        await evening.until(State.RESULT)
        session = await harness.store.session(one.session_id)
        assert session is not None
        assert (session.participation.staked_minor, session.open_round_id) == (2_000, "")
        await two.look()
        await two.leave()
        for sitter in (one, two):
            await sitter.end()
        await evening.until(State.IDLE)
        await harness.settle()
    assert replay(tmp_path).rounds_verified == 1
    verify_books(tmp_path)


async def test_bets_that_are_placed_meanwhile_are_not_lost(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    evening = await evening_of(harness)
    (one,) = await evening.seated("player-1")
    commit = harness.store.commit
    raced: list[Change] = []

    async def after_a_bet(change: Change) -> object:
        if not raced and any(isinstance(record, PlayerBarred) for record in change.records):
            raced.append(change)
            await one.bet(ante=1_000)
        return await commit(change)

    monkeypatch.setattr(harness.store, "commit", after_a_bet)
    await bar(evening, "player-1")
    assert await harness.store.sitting(one.session_id) is None
    assert await harness.store.reserved_breaks("uth-online", "", 9) == []
    session = await harness.store.session(one.session_id)
    assert session is not None
    assert (session.reserved_minor, session.balance_minor) == (0, 100_000)
    raced[0].answer = None
    with pytest.raises(TableMovedError):  # what was computed before the bet holds no more
        await commit(raced[0])


async def test_bets_that_are_cut_meanwhile_stand(harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    evening, (one,) = await betting(harness, "player-1")
    commit = harness.store.commit

    async def after_the_cut(change: Change) -> object:
        if any(isinstance(record, PlayerBarred) for record in change.records):
            monkeypatch.setattr(harness.store, "commit", commit)
            await close_bets(evening)
        return await commit(change)

    monkeypatch.setattr(harness.store, "commit", after_the_cut)
    await bar(evening, "player-1")
    sitting = await harness.store.sitting(one.session_id)
    assert sitting is not None
    assert (sitting.leaving, sitting.reserved_minor) == (True, 2_000)
    assert await harness.store.is_barred("uth-online", "op-1", "player-1")


async def test_an_operator_bars_its_own_players_at_its_own_tables(harness: ServiceHarness) -> None:
    evening = await evening_of(harness)
    assert read_statement(await bar(evening, "player-1", caller=OPERATOR))["actor"] == "op-1"
    admin, request_id = harness.tables.admin, harness.request_id
    with pytest.raises(InvalidFieldError) as caught:
        await admin.bar(OPERATOR, request_id(), "uth-online", "op-2", "player-1", barred=True, reason="CHEATING")
    assert caught.value.field == "operator"
    with pytest.raises(NotFoundError) as missing:
        await bar(evening, "player-1", caller=OTHER)
    assert (missing.value.metadata["kind"], missing.value.field) == ("table", "table")
    with pytest.raises(InvalidFieldError):  # an admin says whose player it is
        await admin.bar(ADMIN, request_id(), "uth-online", "", "player-1", barred=True, reason="CHEATING")
    with pytest.raises(PermissionDeniedError):
        await bar(evening, "player-1", caller=Caller("regulator-1", Role.REGULATOR, ""))
    assert [one.operator for one in await harness.store.bars("uth-online", 9)] == ["op-1"]


async def test_a_bar_is_one_order(tmp_path: Path, harness: ServiceHarness) -> None:
    evening = await evening_of(harness)
    count, request_id = len(stored_statements(tmp_path)), harness.request_id()
    answers = [
        await harness.tables.admin.bar(
            ADMIN, request_id, evening.config.id, "op-1", "player-1", barred=True, reason="CHEATING"
        )
        for _ in range(2)
    ]
    assert answers[0] == answers[1]
    assert len(stored_statements(tmp_path)) == count + 1


# --- boxes ------------------------------------------------------------------------------------------------------------


async def test_a_reserved_box_is_its_players(harness: ServiceHarness) -> None:
    evening = await evening_of(harness, "uth-seven-box")
    event = read_statement(await reserve(evening, 1, "player-1"))
    assert (event["code"], event["subject"], event["after"]) == ("BOX_RESERVED", "uth-seven-box op-1", "1")
    assert "player-1" not in str(event)
    (held,) = await harness.store.reservations("uth-seven-box")
    assert (held.box, held.player, held.last_no) == (1, "player-1", 0)
    with pytest.raises(BoxTakenError):
        await Sitter(evening, "player-2").sit(box=1)
    other = await Sitter(evening, "player-3").sit()
    assert other.seat["box"] == 2
    own = await Sitter(evening, "player-1").sit()
    assert own.seat["box"] == 1
    for box in (1, 2):  # reserved for another, and taken by one
        with pytest.raises(BoxTakenError) as caught:
            await reserve(evening, box, "player-4")
        assert caught.value.metadata["value"] == str(box)
    await reserve(evening, 2, "player-3")  # who sits there may have it reserved
    event = read_statement(await reserve(evening, 1, "", ""))
    assert event["code"] == "BOX_RELEASED"
    assert [one.box for one in await harness.store.reservations("uth-seven-box")] == [2]
    with pytest.raises(NotFoundError) as missing:
        await reserve(evening, 1, "", "")
    assert missing.value.metadata["kind"] == "reservation"


async def test_a_reservation_lapses_by_the_ruleset(harness: ServiceHarness) -> None:
    evening = await evening_of(harness, "uth-lugano")
    (sitter,) = await evening.seated("player-1")
    await sitter.bet(ante=1_000)
    await evening.until(State.RESULT)
    await reserve(evening, 7, "player-2")
    (held,) = await harness.store.reservations("uth-lugano")
    assert held.last_no == 1 + 3


async def test_only_boxes_and_players_of_the_table_are_reserved(harness: ServiceHarness) -> None:
    boxes, shared = await evening_of(harness, "uth-seven-box"), await evening_of(harness, "uth-online")
    for evening, box, operator, field in (
        (boxes, 0, "op-1", "box"),
        (boxes, 8, "op-1", "box"),
        (shared, 1, "op-1", "box"),
        (boxes, 1, "op-2", "operator"),
        (boxes, 1, "", "operator"),
    ):
        with pytest.raises(InvalidFieldError) as caught:
            await reserve(evening, box, "player-1", operator)
        assert caught.value.field == field
    assert await harness.store.reservations("uth-seven-box") == []


# --- erasure ----------------------------------------------------------------------------------------------------------


async def test_who_sits_at_a_table_is_not_erased(harness: ServiceHarness) -> None:
    evening = await evening_of(harness)
    (sitter,) = await evening.seated("player-1")
    erasable = Erasable(store=harness.store, clock=harness.clock, retention_days=0)
    with pytest.raises(RetentionError) as caught:
        await erasable.poll("op-1", "player-1")
    assert caught.value.metadata["table"] == "uth-online"
    await sitter.leave()
    await sitter.end()
    await harness.settle()
    assert (await erasable.poll("op-1", "player-1")).sessions == 1
