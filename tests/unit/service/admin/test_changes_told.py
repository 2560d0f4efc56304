"""Every change that an admin orders leaves a signed statement: who, what before, what after (GLI-19 2.8.8, A.5.1).

The orders are those of the contract: a method that changes something and is not in the table fails the first test.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from rgs.node.pki import issue_client
from rgs.ports.regulator import Rejection, refusal_of
from rgs.service.callers import Reply, Role
from rgs.service.events import Events
from rgs.v1 import admin_pb2
from tests.support.api.harness import authority, entropy
from tests.support.service.admins import AdminOf
from tests.support.service.harness import ServiceHarness, read_statement
from tests.support.service.oracles import stored_statements
from tests.support.service.player import Player

ADMIN = "admin-7"
Order = Callable[[ServiceHarness, AdminOf, Player], Awaitable[object]]


async def switched(_harness: ServiceHarness, admin: AdminOf, _anna: Player) -> object:
    return await admin.switch("game", "uth-solo")


async def added(harness: ServiceHarness, admin: AdminOf, _anna: Player) -> Reply:
    issued = issue_client(authority(), Role.OPERATOR, "op1", entropy().read, harness.clock.now_ms())
    pem = issued.certificate_pem
    order = admin.order("AddCertificate", certificate=pem.hex())
    return await harness.services.certificates.add(order, pem, "demo", "CONTRACT", lambda _row: b"")


async def removed(harness: ServiceHarness, admin: AdminOf, anna: Player) -> object:
    await added(harness, AdminOf(harness, "admin-1"), anna)
    (row,) = [row for row in await harness.services.certificates.list(removed_too=False) if row.party == "op1"]
    order = admin.order("RemoveCertificate", fingerprint=row.fingerprint)
    return await harness.services.certificates.remove(order, row.fingerprint, "ENDED")


async def cleared(harness: ServiceHarness, admin: AdminOf, _anna: Player) -> object:
    harness.services.availability.close_guard("rules", "SOFTWARE_CHANGED", harness.clock.now_ms())
    return await harness.services.admin.clear_guard(admin.order("ClearGuard", name="rules"), "rules", "INSPECTED")


async def paused(_harness: ServiceHarness, admin: AdminOf, anna: Player) -> object:
    return await admin.pause(anna.round["round_id"])


async def resumed(harness: ServiceHarness, admin: AdminOf, anna: Player) -> object:
    await AdminOf(harness, "admin-1").pause(anna.round["round_id"])
    return await admin.resume(anna.round["round_id"])


async def proposed(harness: ServiceHarness, admin: AdminOf, anna: Player) -> object:
    await AdminOf(harness, "admin-1").pause(anna.round["round_id"])
    return await admin.propose(anna.round["round_id"])


async def approved(harness: ServiceHarness, admin: AdminOf, anna: Player) -> object:
    one = AdminOf(harness, "admin-1")
    await one.pause(anna.round["round_id"])
    await one.propose(anna.round["round_id"])
    return await admin.approve(anna.round["round_id"])


async def released(harness: ServiceHarness, admin: AdminOf, anna: Player) -> object:
    await anna.finish_round()
    refusal = refusal_of(Rejection.AVAILABLE_MISMATCH, "no", index=0)
    harness.regulator_script.plan("report_stages", refusal, refusal)
    await harness.reporting.report_stages()
    order = admin.order("ReleaseReports", kind="stages", subject=anna.session_id)
    return await harness.services.outbox.release_reports(order, "stages", anna.session_id, "CORRECTED")


ORDERS: dict[str, Order] = {
    "SetSwitch": switched,
    "AddCertificate": added,
    "RemoveCertificate": removed,
    "ClearGuard": cleared,
    "ReportMalfunction": paused,
    "ResumeRound": resumed,
    "ProposeVoid": proposed,
    "ApproveVoid": approved,
    "ReleaseReports": released,
}


def test_every_order_of_the_contract_is_here() -> None:
    service = admin_pb2.DESCRIPTOR.services_by_name["AdminService"]
    mutating = {method.name for method in service.methods if "request_id" in method.input_type.fields_by_name}
    assert mutating == ORDERS.keys()


async def reported(folder: Path, harness: ServiceHarness, method: str) -> list[dict[str, Any]]:
    """What the order has added to the record."""
    anna = Player(harness)
    await anna.sit()
    await anna.start()
    admin = AdminOf(harness, ADMIN)
    await ORDERS[method](harness, admin, anna)
    bodies = [read_statement(row.envelope) for row in stored_statements(folder)]
    return [body for body in bodies if body.get("actor") == ADMIN or names_admin(body)]


def names_admin(body: dict[str, Any]) -> bool:
    return any(approval["party"] == ADMIN for approval in body.get("void", {}).get("approvals", ()))


@pytest.mark.parametrize("method", sorted(ORDERS.keys() - {"ApproveVoid"}))
async def test_an_order_leaves_one_signed_event_with_actor_before_and_after(
    tmp_path: Path, harness: ServiceHarness, method: str
) -> None:
    (body,) = await reported(tmp_path, harness, method)
    assert (body["kind"], body["actor"]) == ("event", ADMIN)
    assert body["before"]
    assert body["after"]
    assert body["reason"]
    assert body["before"] != body["after"]


async def test_a_void_is_told_by_the_final_with_both_admins(tmp_path: Path, harness: ServiceHarness) -> None:
    (body,) = await reported(tmp_path, harness, "ApproveVoid")
    assert (body["kind"], body["status"]) == ("round_final", "void")
    assert [approval["party"] for approval in body["void"]["approvals"]] == ["admin-1", ADMIN]
    assert body["void"]["malfunction"]
    assert int(body["returned_minor"]) == int(body["staked_minor"])


async def test_the_search_sees_a_change_without_its_values(
    tmp_path: Path, harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: the values are left out of the event."""
    genuine = Events.emit

    async def bare(self: Events, *values: Any, **fields: Any) -> Any:
        return await genuine(self, *values, **{**fields, "before": "", "after": ""})

    monkeypatch.setattr(Events, "emit", bare)
    (body,) = await reported(tmp_path, harness, "SetSwitch")
    assert "before" not in body
