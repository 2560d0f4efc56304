"""Certificates that were allowed or removed at the machine: a server tells each by an event, once, and before their
admin proposes or approves anything.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import InvalidFieldError, UnauthenticatedError
from rgs.core.times import format_time
from rgs.service.callers import Role
from rgs.store.interface import PartyRow
from tests.support.clocks import NOW_MS
from tests.support.service.admins import AdminOf, refusals, void
from tests.support.service.harness import ServiceHarness, open_harness, read_statement
from tests.support.service.oracles import export_lines, replay_lines, stored_statements, verify_books
from tests.support.service.player import Player


def reported(folder: Path) -> list[dict[str, Any]]:
    bodies = [read_statement(row.envelope) for row in stored_statements(folder) if row.kind == "event"]
    return [body for body in bodies if body["code"].startswith("CERTIFICATE")]


async def test_what_was_done_at_the_machine_is_told_once(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        poll = harness.services.certificates.poll
        await poll()
        assert reported(tmp_path) == []
        await harness.let_in("admin-1")
        await harness.parties.add(PartyRow("b" * 64, "op-9", Role.OPERATOR, "demo", NOW_MS, None))
        for _ in range(2):
            await poll()
        added = reported(tmp_path)
        assert {(body["code"], *body["subject"].split(" ")[:2], body["after"]) for body in added} == {
            ("CERTIFICATE_ADDED", "operator", "op-9", "allowed demo"),
            ("CERTIFICATE_ADDED", "admin", "admin-1", "allowed"),
        }
        assert len(added) == len({"admin", "operator"})
        assert {body["reason"] for body in added} == {"AT_THE_MACHINE"}
        await harness.parties.remove("b" * 64, NOW_MS + 5)
        for _ in range(2):
            await poll()
        (removed,) = reported(tmp_path)[2:]
        assert (removed["code"], removed["after"]) == ("CERTIFICATE_REMOVED", "denied")
        assert removed["before"] == f"allowed {format_time(NOW_MS)}"
    async with open_harness(tmp_path) as harness:
        await harness.services.certificates.poll()
        assert len(reported(tmp_path)) == 3


async def test_an_admin_is_told_before_what_he_proposes(tmp_path: Path, harness: ServiceHarness) -> None:
    player = Player(harness)
    await player.sit()
    await player.start()
    await void(harness, player.round["round_id"])
    await player.leave()
    await harness.settle()
    assert verify_books(tmp_path).seats_void == 1
    codes = [body["code"] for body in reported(tmp_path)]
    assert codes == ["CERTIFICATE_ADDED", "CERTIFICATE_ADDED"]


async def test_an_admin_who_was_removed_a_moment_ago_approves_nothing(tmp_path: Path, harness: ServiceHarness) -> None:
    """His connection may be open still: the list is read when he approves."""
    one, two = AdminOf(harness), AdminOf(harness, "admin-2")
    player = Player(harness)
    await player.sit()
    await player.start()
    round_id = player.round["round_id"]
    await one.pause(round_id)
    assert refusals(await one.propose(round_id)) == [""]
    await harness.let_in("admin-2")
    (fingerprint,) = [row.fingerprint for row in await harness.parties.all() if row.party == "admin-2"]
    await harness.parties.remove(fingerprint, harness.clock.now_ms())
    assert refusals(await two.approve(round_id)) == ["CERTIFICATE_NOT_ALLOWED"]
    with pytest.raises(UnauthenticatedError, match="no certificate of admin-2"):
        await harness.services.certificates.verify_admin("admin-2")


async def test_a_proposal_is_not_dated_before_the_malfunction(tmp_path: Path, harness: ServiceHarness) -> None:
    """Planted: the node that proposes has a clock that is behind the one that logged the malfunction."""
    one = AdminOf(harness)
    player = Player(harness)
    await player.sit()
    await player.start()
    round_id = player.round["round_id"]
    harness.clock.tick(60_000)
    await one.pause(round_id)
    harness.clock.tick(-60_000)
    assert refusals(await one.propose(round_id)) == [""]
    result = await AdminOf(harness, "admin-2").approve(round_id)
    assert refusals(result) == [""]
    failures, _ = replay_lines(export_lines(tmp_path))
    assert failures == []


async def test_a_certificate_is_not_removed_for_a_reason_that_is_no_code(
    tmp_path: Path, harness: ServiceHarness
) -> None:
    await harness.let_in("admin-2")
    await harness.services.certificates.poll()
    (row,) = await harness.parties.all()
    certificates, admin = harness.services.certificates, AdminOf(harness)
    with pytest.raises(InvalidFieldError) as refused:
        await certificates.remove(admin.order("RemoveCertificate"), row.fingerprint, "free text")
    assert (refused.value.field, refused.value.metadata) == ("reason", {"value": "free text"})
    with pytest.raises(InvalidFieldError) as other:
        await certificates.remove(admin.order("RemoveCertificate"), "A" * 64, "LEFT")
    limit = "64 hexadecimal digits in lowercase"
    assert (other.value.field, other.value.metadata) == ("fingerprint", {"limit": limit, "value": "A" * 64})
    assert await harness.parties.all() == [row]
