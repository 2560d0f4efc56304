"""A dry run of an order says what the order would do, or why it would be refused, and leaves no trace."""

from __future__ import annotations

from typing import Any

import pytest

from rgs.core.errors import RoundNotPausedError, SecondAdminError
from rgs.core.rounds import RoundStatus
from rgs.core.tables.machine import State
from rgs.service.callers import Caller
from tests.support.service.admins import AdminOf
from tests.support.service.harness import ServiceHarness
from tests.support.service.oracles import stored_statements
from tests.support.service.player import Player
from tests.support.service.table_orders import betting
from tests.support.service.tables import ADMIN, SECOND_ADMIN


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
