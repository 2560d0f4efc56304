"""What the node does while it serves: follows its keys, warns of certificates that end, lists what it told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from rgs.core.errors import InvalidFieldError, VerificationError
from rgs.core.statements import Ed25519Signer, Signer
from rgs.core.statements.lines import format_key_bundle, parse_key_bundle
from rgs.core.times import format_time
from rgs.node.keys import KeyFiles, NodeKeys
from rgs.service.admin.certificates import ENDS_SOON_MS, Presented
from rgs.service.audit.totals import totals_filter
from rgs.service.callers import Role
from rgs.store.interface import PartyRow
from tests.support.clocks import NOW_MS
from tests.support.service.admins import AdminOf
from tests.support.service.harness import NODE, NODE_KEY, ROOT_KEY, ServiceHarness, key_bundle, read_statement, sealed
from tests.support.service.oracles import stored_statements

SECOND_KEY = Ed25519Signer.from_seed(b"the next key of that node: 32 by")


def reported(folder: Path, *codes: str) -> list[tuple[str, ...]]:
    bodies = [read_statement(row.envelope) for row in stored_statements(folder)]
    return [
        (body["code"], body["subject"], body["before"], body["after"]) for body in bodies if body.get("code") in codes
    ]


# --- keys -------------------------------------------------------------------------------------------------------------


@dataclass
class Disk:
    """The key bundle on disk, and the private key that is there."""

    bundle: bytes
    signer: Signer | None = NODE_KEY

    def signer_of(self, bundle: bytes) -> Signer:
        if self.signer is None:
            raise VerificationError("the node key is not in force")
        return self.signer

    def grow(self, signer: Signer) -> None:
        node = {
            "development": True, "kind": "node_key", "node": NODE, "public_key": signer.public_key.hex(),
            "time": format_time(NOW_MS),
        }  # fmt: skip
        self.bundle = format_key_bundle([*parse_key_bundle(self.bundle), sealed(node, ROOT_KEY)])


def follow(harness: ServiceHarness) -> tuple[Disk, NodeKeys]:
    disk = Disk(key_bundle())
    files = KeyFiles(lambda: disk.bundle, disk.signer_of)
    return disk, harness.services.node_keys(disk.bundle, NODE_KEY.keyid, files)


def digest(bundle: bytes) -> str:
    return sha256(bundle).hexdigest()


async def test_a_bundle_and_a_key_are_taken_up_and_told_once(tmp_path: Path, harness: ServiceHarness) -> None:
    disk, keys = follow(harness)
    await keys.poll()
    before, first = disk.bundle, harness.instance.name
    disk.grow(SECOND_KEY)
    disk.signer = SECOND_KEY
    with capture_logs() as logs:
        for _ in range(2):
            await keys.poll()
    assert reported(tmp_path, "KEYS_CHANGED") == [
        ("KEYS_CHANGED", "bundle", digest(before), digest(disk.bundle)),
        ("KEYS_CHANGED", NODE, NODE_KEY.keyid, SECOND_KEY.keyid),
    ]
    assert harness.instance.name != first
    assert [line for line in logs if line["event"] in {"key_bundle_taken", "node_key_taken"}] == [
        {"event": "key_bundle_taken", "log_level": "info", "statements": 3},
        {"event": "node_key_taken", "log_level": "info", "before": first, "instance": harness.instance.name},
    ]


async def test_a_bundle_that_names_no_newer_key_of_this_node_is_told_too(
    tmp_path: Path, harness: ServiceHarness
) -> None:
    disk, keys = follow(harness)
    before, first = disk.bundle, harness.instance.name
    disk.grow(SECOND_KEY)
    for _ in range(2):
        await keys.poll()
    assert reported(tmp_path, "KEYS_CHANGED") == [("KEYS_CHANGED", "bundle", digest(before), digest(disk.bundle))]
    assert harness.instance.name == first


async def test_without_a_key_in_force_the_guard_closes_and_with_one_it_opens(
    tmp_path: Path, harness: ServiceHarness
) -> None:
    disk, keys = follow(harness)
    disk.grow(SECOND_KEY)
    disk.signer = None
    for _ in range(2):
        await keys.poll()
    closed = ("GUARD_CLOSED", "keys", "OPEN", "CLOSED")
    assert reported(tmp_path, "GUARD_CLOSED", "GUARD_OPENED") == [closed]
    assert harness.services.availability.guard("keys").closed
    disk.signer = SECOND_KEY
    for _ in range(2):
        await keys.poll()
    assert reported(tmp_path, "GUARD_CLOSED", "GUARD_OPENED") == [closed, ("GUARD_OPENED", "keys", "CLOSED", "OPEN")]
    assert not harness.services.availability.guard("keys").closed


# --- certificates -----------------------------------------------------------------------------------------------------

FINGERPRINT = "b" * 64


async def added(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch, left_ms: int, jurisdiction: str = ""
) -> list[Any]:
    """Add a laboratory's certificate that ends so soon; what the log says of it."""
    found = Presented(FINGERPRINT, Role.LAB, "lab-9", harness.clock.now_ms() + left_ms)
    monkeypatch.setattr(harness.services.certificates, "identify", lambda pem, now_ms: found)
    encode: Callable[[PartyRow], bytes] = lambda row: row.fingerprint.encode()  # noqa: E731 - a type for it
    order = AdminOf(harness).order("AddCertificate", jurisdiction=jurisdiction)
    with capture_logs() as logs:
        await harness.services.certificates.add(order, b"", jurisdiction, "NEW_LAB", encode)
    return [line for line in logs if line["event"] == "certificate_ends_soon"]


@pytest.mark.parametrize(("left_ms", "warned"), [(ENDS_SOON_MS - 1, True), (ENDS_SOON_MS, False)])
async def test_a_certificate_that_ends_within_thirty_days_is_added_with_a_warning(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch, left_ms: int, *, warned: bool
) -> None:
    logs = await added(harness, monkeypatch, left_ms)
    ends = format_time(harness.clock.now_ms() + left_ms)
    line = {"event": "certificate_ends_soon", "log_level": "warning", "party": "lab-9", "role": "lab"}
    assert logs == ([{**line, "fingerprint": FINGERPRINT, "ends": ends}] if warned else [])
    assert ENDS_SOON_MS == 30 * 86_400_000


async def test_a_jurisdiction_that_is_none_is_told_by_its_beginning(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidFieldError) as error:
        await added(harness, monkeypatch, ENDS_SOON_MS, "x" * 81)
    assert (error.value.field, error.value.metadata) == ("jurisdiction", {"value": "x" * 80, "role": "lab"})


async def test_a_fingerprint_that_is_none_is_told_by_its_beginning(harness: ServiceHarness) -> None:
    order = AdminOf(harness).order("RemoveCertificate", fingerprint="")
    with pytest.raises(InvalidFieldError) as error:
        await harness.services.certificates.remove(order, "b" * 81, "GONE")
    limit = "64 hexadecimal digits in lowercase"
    assert (error.value.field, error.value.metadata) == ("fingerprint", {"limit": limit, "value": "b" * 80})


# --- lists ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "pages"), [(1, 3), (2, 2), (3, 1), (4, 1)])
async def test_the_last_page_of_events_names_no_other(harness: ServiceHarness, size: int, pages: int) -> None:
    admin = AdminOf(harness)
    for nth in range(3):
        await admin.switch("game", "uth-solo", enabled=bool(nth % 2))
    seen, token, turned = [], "", 0
    while token or not turned:
        rows, token = await harness.services.reports.list_events("SWITCH_CHANGED", size, token)
        seen += [row.after for row in rows]
        turned += 1
    assert (seen, turned) == (["disabled", "enabled", "disabled"], pages)


async def test_a_day_that_is_none_is_told_by_its_beginning(harness: ServiceHarness) -> None:
    with pytest.raises(InvalidFieldError) as error:
        await harness.services.reports.list_totals(totals_filter("x" * 21, "", operator=""), 1, "")
    limit = "a date of the form 2026-11-21"
    assert (error.value.field, error.value.metadata) == ("first_day", {"limit": limit, "value": "x" * 20})
