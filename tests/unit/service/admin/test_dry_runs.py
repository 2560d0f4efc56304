"""A dry run of an order says what the order would do, or why it would be refused, and leaves no trace."""

from __future__ import annotations

from rgs.core.rounds import RoundStatus
from tests.support.service.admins import AdminOf
from tests.support.service.harness import ServiceHarness
from tests.support.service.oracles import stored_statements
from tests.support.service.player import Player


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
