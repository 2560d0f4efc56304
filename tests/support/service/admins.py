"""Two admins, and what they order: each call under a request id of its own."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from rgs.service.admin.admin import VoidResult
from rgs.service.admin.orders import Order, order_of
from rgs.service.callers import Caller, Reply, Role
from tests.support.service.harness import ServiceHarness

_ids = itertools.count(1)


@dataclass(frozen=True)
class AdminOf:
    """One admin of a server."""

    harness: ServiceHarness
    party: str = "admin-1"

    def order(self, method: str, **content: object) -> Order:
        caller = Caller(self.party, Role.ADMIN, "")
        return order_of(caller, method, str(uuid.UUID(int=(1 << 100) + next(_ids))), **content)

    async def pause(self, round_id: str, code: str = "DISPLAY_FAULT") -> Reply:
        order = self.order("ReportMalfunction", round_id=round_id, code=code)
        return await self.harness.services.admin.report_malfunction(order, round_id, code)

    async def resume(self, round_id: str, reason: str = "DISPLAY_REPAIRED") -> Reply:
        order = self.order("ResumeRound", round_id=round_id, reason=reason)
        return await self.harness.services.admin.resume_round(order, round_id, reason)

    async def propose(self, *round_ids: str, reason: str = "DISPLAY_FAULT") -> tuple[VoidResult, ...]:
        await self.harness.let_in(self.party)
        order = self.order("ProposeVoid", round_ids=list(round_ids), reason=reason)
        return await self.harness.services.admin.propose_void(order, round_ids, reason)

    async def approve(self, *round_ids: str) -> tuple[VoidResult, ...]:
        await self.harness.let_in(self.party)
        order = self.order("ApproveVoid", round_ids=list(round_ids))
        return await self.harness.services.admin.approve_void(order, round_ids)

    async def switch(self, scope: str, subject: str = "", *, enabled: bool = False) -> Reply:
        order = self.order("SetSwitch", scope=scope, subject=subject, enabled=enabled)
        admin = self.harness.services.admin
        return await admin.set_switch(order, scope, subject, enabled=enabled, reason="INSPECTION")


def refusals(results: Sequence[VoidResult]) -> list[str]:
    """The reasons of a list, empty where there was none."""
    return [result.refusal for result in results]


async def void(harness: ServiceHarness, round_id: str, reason: str = "DISPLAY_FAULT") -> VoidResult:
    """Paused, proposed by one and approved by the other."""
    one, two = AdminOf(harness), AdminOf(harness, "admin-2")
    await one.pause(round_id)
    assert refusals(await one.propose(round_id, reason=reason)) == [""]
    (result,) = await two.approve(round_id)
    assert result.refusal == ""
    return result
