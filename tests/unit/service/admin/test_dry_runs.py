"""A dry run of an order says what the order would do, or why it would be refused, and leaves no trace."""

from __future__ import annotations

from typing import Any

import pytest

from rgs.core.errors import RngUnavailableError, RoundNotPausedError, SecondAdminError
from rgs.core.rounds import RoundStatus
from rgs.core.tables.machine import State
from rgs.service.callers import Caller
from rgs.service.tables import stakes as stakes_module
from rgs.store.changes import Change, Signed, StoreError
from tests.support.service.admins import AdminOf
from tests.support.service.harness import ServiceHarness
from tests.support.service.oracles import stored_statements
from tests.support.service.player import Player
from tests.support.service.table_orders import betting
from tests.support.service.tables import ADMIN, SECOND_ADMIN, Evening, Sitter


async def test_voids(harness: ServiceHarness, anna: Player) -> None:
    admin = harness.services.admin
    one, two = AdminOf(harness), AdminOf(harness, "admin-2")
    await harness.let_in("admin-1", "admin-2")
    await anna.sit()
    await anna.start(100, trips=50)
    round_id = str(anna.round["round_id"])

    async def proposed(reason: str = "DISPLAY_FAULT") -> tuple[str, int, str]:
        order = one.order("ProposeVoid", round_ids=[round_id], reason=reason)
        (result,) = await admin.propose_void(order, [round_id], reason, dry_run=True)
        assert result.envelope == b""
        return result.refusal, result.staked_minor, result.currency

    async def approved(by: AdminOf) -> tuple[str, int, str]:
        order = by.order("ApproveVoid", round_ids=[round_id])
        (result,) = await admin.approve_void(order, [round_id], dry_run=True)
        assert result.status in (None, RoundStatus.OPEN)
        return result.refusal, result.staked_minor, result.reason

    assert await proposed() == ("ROUND_NOT_PAUSED", 0, "")
    await one.pause(round_id)
    before = len(stored_statements(harness.folder))
    assert await proposed() == ("", 250, "EUR")
    assert await proposed("DECK_UNRECOVERABLE") == ("INVALID_FIELD", 0, "")
    assert await approved(two) == ("NOT_FOUND", 0, "")
    assert len(stored_statements(harness.folder)) == before
    assert await harness.store.void_proposal(round_id) is None
    await one.propose(round_id)
    assert await approved(one) == ("SECOND_ADMIN_NEEDED", 0, "")
    before = len(stored_statements(harness.folder))
    assert await approved(two) == ("", 250, "DISPLAY_FAULT")
    assert len(stored_statements(harness.folder)) == before
    round_ = await harness.store.round(round_id)
    assert round_ is not None
    assert round_.status is RoundStatus.OPEN
    (result,) = await two.approve(round_id)
    assert (result.refusal, result.status) == ("", RoundStatus.VOID)


async def test_a_switch(harness: ServiceHarness) -> None:
    order = AdminOf(harness).order("SetSwitch", scope="game", subject="uth-solo", enabled=False)
    before = len(stored_statements(harness.folder))
    reply = await harness.services.admin.set_switch(
        order, "game", "uth-solo", enabled=False, reason="INSPECTION", dry_run=True
    )
    assert reply.envelope == b""
    assert (harness.services.admin.switches(), len(stored_statements(harness.folder))) == ((), before)
    assert await harness.store.answer("admin-1", "SetSwitch", order.request_id) is None


async def test_a_void_of_a_table(harness: ServiceHarness) -> None:
    evening, _ = await betting(harness, "player-1", "player-2")
    await evening.until(State.DECIDING)
    admin, table_id = harness.tables.admin, evening.config.id

    async def tried(caller: Caller, *, dry_run: bool) -> tuple[bool, bool]:
        """Whether it is or would be void, and whether anything was signed."""
        row = await evening.row()
        where: Any = (harness.request_id(), table_id, row.table.round_id, "DISPLAY_FAULT")
        before = len(stored_statements(harness.folder))
        is_void, envelope = await admin.void(caller, *where, dry_run=dry_run)
        assert (await evening.row() == row) is (dry_run or not is_void)
        assert (await harness.store.answer(caller.party, "VoidTableRound", where[0]) is None) is dry_run
        assert bool(envelope) is not dry_run
        return is_void, len(stored_statements(harness.folder)) > before

    with pytest.raises(RoundNotPausedError):
        await tried(ADMIN, dry_run=True)
    await admin.pause(ADMIN, harness.request_id(), table_id, "DISPLAY_FAULT")
    assert await tried(ADMIN, dry_run=True) == (False, False)
    assert await tried(SECOND_ADMIN, dry_run=True) == (False, False), "the dry run before has proposed nothing"
    assert await tried(ADMIN, dry_run=False) == (False, True)
    with pytest.raises(SecondAdminError):
        await tried(ADMIN, dry_run=True)
    assert await tried(SECOND_ADMIN, dry_run=True) == (True, False)
    assert await evening.state() is State.PAUSED
    assert await tried(SECOND_ADMIN, dry_run=False) == (True, True)


Where = tuple[str, str]
"""A table and its round."""


async def paused(harness: ServiceHarness, evening: Evening) -> Where:
    """The table, paused in its round."""
    if await evening.state() is not State.PAUSED:
        await harness.tables.admin.pause(ADMIN, harness.request_id(), evening.config.id, "DISPLAY_FAULT")
    return evening.config.id, (await evening.row()).table.round_id


async def void(harness: ServiceHarness, caller: Caller, where: Where, *, dry_run: bool = False) -> bool:
    done, _ = await harness.tables.admin.void(caller, harness.request_id(), *where, "DISPLAY_FAULT", dry_run=dry_run)
    return done


async def verify_stakes(harness: ServiceHarness, sitters: list[Sitter], where: Where, minor: list[int]) -> None:
    """The dry run says so much of each player; it signs nothing; then the void gives so much back."""
    await void(harness, ADMIN, where)
    before = len(stored_statements(harness.folder))
    assert await void(harness, SECOND_ADMIN, where, dry_run=True)
    stakes = await harness.tables.admin.stakes(*where)
    assert (stakes.currency, stakes.seats, stakes.staked_minor) == ("EUR", len(minor), sum(minor))
    assert [one.seat_no for one in stakes.listed] == list(range(1, len(minor) + 1))
    listed = {one.session_id: one.staked_minor for one in stakes.listed}
    assert listed == {one.session_id: each for one, each in zip(sitters, minor, strict=True)}
    assert len(stored_statements(harness.folder)) == before

    async def free_minor() -> list[int]:
        sessions = await harness.store.sessions_by_id([one.session_id for one in sitters], fresh=True)
        return [sessions[one.session_id].balance_minor - sessions[one.session_id].reserved_minor for one in sitters]

    funds = await free_minor()
    assert await void(harness, SECOND_ADMIN, where)
    for _ in range(3):
        await harness.tables.dealer.advance(where[0])
    assert [now - then for then, now in zip(funds, await free_minor(), strict=True)] == minor


async def test_what_comes_back_of_a_dealt_table(harness: ServiceHarness) -> None:
    """One has raised, one has not decided, one has left."""
    evening, sitters = await betting(harness, "player-1", "player-2", "player-3")
    await evening.until(State.DECIDING)
    await sitters[0].look()
    await sitters[0].decide("play_4x")
    await sitters[2].leave()
    await verify_stakes(harness, sitters, await paused(harness, evening), [6_000, 2_000, 2_000])


async def test_what_comes_back_before_the_draw(harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    evening, sitters = await betting(harness, "player-1", "player-2")

    async def fail() -> None:
        raise RngUnavailableError("planned")

    with monkeypatch.context() as patched:
        patched.setattr(harness.instance, "draw", fail)
        await evening.until(State.PAUSED)
    await verify_stakes(harness, sitters, await paused(harness, evening), [2_000, 2_000])


async def test_what_comes_back_where_a_seat_has_no_opening(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dry run does not sign the opening that is missing; the void does."""
    evening, sitters = await betting(harness, "player-1", "player-2")
    commit = harness.store.commit

    async def one_only(change: Change) -> tuple[Signed, ...]:
        if any(draft.kind == "seat_opening" and draft.seat_no == 2 for draft in change.drafts):
            raise StoreError("planned")
        return await commit(change)

    with monkeypatch.context() as patched:
        patched.setattr(harness.store, "commit", one_only)
        with pytest.raises(StoreError):
            await evening.until(State.DECIDING)
    assert await evening.state() is State.OPENING
    await verify_stakes(harness, sitters, await paused(harness, evening), [2_000, 2_000])


async def test_of_many_seats_the_first_are_listed_and_all_are_counted(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stakes_module, "STAKES_MAX", 2)
    monkeypatch.setattr(stakes_module, "_PAGE", 1)
    evening, _ = await betting(harness, "player-1", "player-2", "player-3")
    await evening.until(State.DECIDING)
    stakes = await harness.tables.admin.stakes(*await paused(harness, evening))
    assert (stakes.seats, stakes.staked_minor, [one.seat_no for one in stakes.listed]) == (3, 6_000, [1, 2])
