"""Who is let in, and to what: every role at every method, and every way in which a certificate may be wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from rgs.api.auth import FAILED_POLLS_MAX, KNOWN_MAX, ROLES, Gate, PeerCertificate, certificate_of
from rgs.core.errors import (
    FormatError,
    JurisdictionError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnavailableError,
)
from rgs.service.callers import Caller, Role
from rgs.store.interface import PartyRow
from rgs.v1 import (
    admin_pb2,
    audit_pb2,
    catalog_pb2,
    free_bet_pb2,
    history_pb2,
    play_pb2,
    reconciliation_pb2,
    report_pb2,
    session_pb2,
    support_pb2,
    table_pb2,
)
from tests.support.clocks import NOW_MS, ManualClock
from tests.support.waiting import at_once

ACT = "rgs.v1.PlayService/Act"
LIST_GAMES = "rgs.v1.CatalogService/ListGames"


@dataclass(frozen=True)
class Row(PartyRow):
    fingerprint: str = "f1"
    party: str = "op1"
    role: str = "operator"
    jurisdiction: str = "demo"
    added_ms: int = 0
    removed_ms: int | None = None


class Parties:
    def __init__(self, *rows: Row) -> None:
        self.rows = list(rows)
        self.count = 0
        self.reads = 0
        self.broken = False

    async def changes(self) -> int:
        if self.broken:
            raise OSError("the disk is gone")
        return self.count

    async def allowed(self) -> list[Row]:
        self.reads += 1
        return list(self.rows)


GOOD = PeerCertificate("f1", ["rgs://party/operator/op1"], NOW_MS - 1, NOW_MS + 1)


class GateHarness:
    """A gate with what stands around it. The PEM of a certificate is the name of an entry of `peers`."""

    def __init__(self, *rows: Row, admit: Callable[[Caller], None] = lambda _: None) -> None:
        self.clock = ManualClock()
        self.parties = Parties(*(rows or (Row(),)))
        self.peers: dict[bytes, PeerCertificate] = {b"good": GOOD}
        self.read: list[bytes] = []
        self.gate = Gate(self.parties, self.clock, self._read, admit)
        at_once(self.gate.refresh())

    def _read(self, pem: bytes) -> PeerCertificate:
        self.read.append(pem)
        if pem not in self.peers:
            raise FormatError("no certificate", value=pem)
        return self.peers[pem]

    def caller(self, pem: bytes | None = b"good", method: str = ACT) -> Caller:
        return self.gate.caller(pem, method)


# --- roles ------------------------------------------------------------------------------------------------------------

SERVICES = {
    "CatalogService": (catalog_pb2, {"operator", "auditor", "regulator", "lab", "admin", "support"}),
    "SessionService": (session_pb2, {"operator"}),
    "PlayService": (play_pb2, {"operator"}),
    "TableService": (table_pb2, {"operator"}),
    "TableAdminService": (table_pb2, {"admin"}),
    "FreeBetService": (free_bet_pb2, {"operator"}),
    "HistoryService": (history_pb2, {"operator", "auditor", "regulator"}),
    "ReportService": (report_pb2, {"operator"}),
    "SupportService": (support_pb2, {"support"}),
    "AuditService": (audit_pb2, {"operator", "auditor", "regulator", "lab"}),
    "AdminService": (admin_pb2, {"admin"}),
    "ReconciliationService": (reconciliation_pb2, {"operator", "auditor", "regulator", "admin"}),
}
OVERSIGHT = {"admin", "auditor", "regulator"}
OPERATOR, ADMIN = {"operator"}, {"admin"}
OTHERWISE = {
    "GetTerms": OPERATOR,
    "ListOpenRounds": OVERSIGHT | {"operator"},
    "ListPendingCredits": OVERSIGHT | {"operator"},
    **dict.fromkeys(("SubmitWalletStatement", "SubmitReceipts", "Countersign"), OPERATOR),
    **dict.fromkeys(("SubmitRegulatorBook", "ResolveBreak"), ADMIN),
    "RunReconciliation": {"operator", "auditor", "admin"},
    "StreamEntries": {"auditor", "regulator", "lab"},
    **dict.fromkeys(
        ("ListSwitches", "ListGuards", "ListEvents", "ListTotals", "ExportTotals", "GetReturns"), OVERSIGHT
    ),
    **dict.fromkeys(("GetOutbox", "ListHeldReports"), OVERSIGHT),
    **dict.fromkeys(("ListTables", "WatchLobby", "GetTable"), OVERSIGHT | OPERATOR),
    **dict.fromkeys(("ListMessages", "BarPlayer"), ADMIN | OPERATOR),
}
METHODS = [
    (f"rgs.v1.{service}/{method.name}", OTHERWISE.get(method.name, roles))
    for service, (module, roles) in SERVICES.items()
    for method in module.DESCRIPTOR.services_by_name[service].methods
]


def test_the_table_has_every_method_of_the_contract_and_no_other() -> None:
    assert sorted(ROLES) == sorted(method for method, _ in METHODS)


@pytest.mark.parametrize(("method", "roles"), METHODS, ids=[method for method, _ in METHODS])
@pytest.mark.parametrize("role", list(Role))
def test_every_role_at_every_method(method: str, roles: set[str], role: Role) -> None:
    harness = GateHarness(Row(role=role.value))
    harness.peers[b"good"] = replace(GOOD, uris=[f"rgs://party/{role.value}/op1"])
    if role.value in roles:
        assert harness.caller(method=method) == Caller("op1", role, "demo")
    else:
        with pytest.raises(PermissionDeniedError) as caught:
            harness.caller(method=method)
        assert caught.value.metadata == {"role": role.value, "method": method}


def test_a_method_without_a_row_is_nobodys() -> None:
    for role in Role:
        harness = GateHarness(Row(role=role.value))
        harness.peers[b"good"] = replace(GOOD, uris=[f"rgs://party/{role.value}/op1"])
        with pytest.raises(PermissionDeniedError):
            harness.caller(method="rgs.v1.PlayService/Peek")


# --- certificates -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"fingerprint": "f2"},
        {"uris": []},
        {"uris": ["rgs://party/operator/op2"]},
        {"uris": ["rgs://party/auditor/op1"]},
        {"uris": ["rgs://party/operator/op1", "rgs://party/operator/op1"]},
        {"uris": ["rgs://party/operator/op1", "https://example.org"]},
        {"uris": ["rgs://party/operator/op1/"]},
        {"uris": ["RGS://party/operator/op1"]},
        {"first_ms": NOW_MS + 1},
        {"last_ms": NOW_MS - 1},
    ],
    ids=str,
)
def test_a_certificate_that_is_wrong_in_one_thing(change: dict[str, Any]) -> None:
    harness = GateHarness()
    assert harness.caller().party == "op1"
    harness.peers[b"wrong"] = replace(GOOD, **change)
    for _ in range(2):
        with pytest.raises(UnauthenticatedError):
            harness.caller(b"wrong", LIST_GAMES)


def test_no_certificate_and_one_that_cannot_be_read() -> None:
    harness = GateHarness()
    for pem in (None, b"", b"garbage"):
        with pytest.raises(UnauthenticatedError):
            harness.caller(pem, LIST_GAMES)


def test_a_row_of_an_unknown_role_lets_nobody_in() -> None:
    harness = GateHarness(Row(role="owner"))
    harness.peers[b"good"] = replace(GOOD, uris=["rgs://party/owner/op1"])
    with pytest.raises(UnauthenticatedError):
        harness.caller(method=LIST_GAMES)


def test_the_dates_are_looked_at_in_every_call() -> None:
    harness = GateHarness()
    for now_ms in (NOW_MS - 1, NOW_MS, NOW_MS + 1):
        harness.clock.time_ms = now_ms
        assert harness.caller().party == "op1"
    for now_ms in (NOW_MS - 2, NOW_MS + 2):
        harness.clock.time_ms = now_ms
        with pytest.raises(UnauthenticatedError):
            harness.caller()


def test_a_certificate_is_read_once() -> None:
    harness = GateHarness()
    for _ in range(3):
        harness.caller()
        with pytest.raises(UnauthenticatedError):
            harness.caller(b"garbage")
    assert harness.read == [b"good", b"garbage"]


def test_a_refusal_said_again_does_not_grow() -> None:
    harness = GateHarness()
    depths = []
    for _ in range(3):
        with pytest.raises(UnauthenticatedError) as caught:
            harness.caller(b"garbage")
        depths.append(len(caught.traceback))
    assert len(set(depths[1:])) == 1
    assert depths[0] <= depths[1] + 1


def test_strangers_do_not_fill_the_memory() -> None:
    harness = GateHarness()
    for nth in range(KNOWN_MAX + 10):
        with pytest.raises(UnauthenticatedError), capture_logs():
            harness.caller(b"stranger %d" % nth)
    assert len(harness.gate._known) <= KNOWN_MAX
    assert harness.caller().party == "op1"


def test_a_stranger_is_logged_once_with_his_fingerprint() -> None:
    harness = GateHarness()
    harness.peers[b"stranger"] = replace(GOOD, fingerprint="f9")
    with capture_logs() as logs:
        for _ in range(3):
            with pytest.raises(UnauthenticatedError):
                harness.caller(b"stranger")
    assert logs == [
        {
            "event": "certificate_refused",
            "reason": "CERTIFICATE_NOT_ALLOWED",
            "metadata": {"fingerprint": "f9"},
            "log_level": "warning",
        }
    ]


def test_whoever_is_not_admitted_gets_that_reason_at_every_call() -> None:
    def admit(caller: Caller) -> None:
        raise JurisdictionError("not with this authority", jurisdiction=caller.jurisdiction)

    harness = GateHarness(admit=admit)
    for _ in range(2):
        with pytest.raises(JurisdictionError) as caught:
            harness.caller()
        assert caught.value.metadata == {"jurisdiction": "demo"}


# --- the list ---------------------------------------------------------------------------------------------------------


async def test_a_change_of_the_list_bites_with_the_next_poll() -> None:
    harness = GateHarness()
    assert harness.caller().party == "op1"
    harness.parties.rows, harness.parties.count = [], 1
    assert harness.caller().party == "op1"  # not looked at in between
    await harness.gate.poll()
    with pytest.raises(UnauthenticatedError):
        harness.caller()
    harness.parties.rows, harness.parties.count = [Row()], 2
    await harness.gate.poll()
    assert harness.caller().party == "op1"


async def test_an_unchanged_list_is_not_read_again() -> None:
    harness = GateHarness()
    for _ in range(5):
        await harness.gate.poll()
    assert harness.parties.reads == 1


async def test_a_list_that_cannot_be_read_closes_the_gate_until_it_can() -> None:
    harness = GateHarness()
    harness.parties.broken = True
    for nth in itertools.count(1):
        with pytest.raises(OSError, match="disk"):
            await harness.gate.poll()
        if nth == FAILED_POLLS_MAX:
            break
        assert harness.caller().party == "op1"
    with pytest.raises(UnavailableError):
        harness.caller()
    harness.parties.broken = False
    await harness.gate.poll()
    assert harness.caller().party == "op1"


def test_a_list_that_cannot_be_read_at_the_start_is_an_error() -> None:
    parties = Parties()
    parties.broken = True
    with pytest.raises(OSError, match="disk"):
        at_once(Gate(parties, ManualClock(), lambda _: GOOD).refresh())


# --- the call's certificate -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({}, None),
        ({"transport_security_type": [b"ssl"]}, None),
        ({"x509_pem_cert": []}, None),
        ({"x509_pem_cert": [b"pem"], "x509_common_name": [b"other"]}, b"pem"),
    ],
    ids=str,
)
def test_the_certificate_of_a_call(context: dict[str, list[bytes]], expected: bytes | None) -> None:
    class Call:
        def auth_context(self) -> dict[str, list[bytes]]:
            return context

    call: Any = Call()
    assert certificate_of(call) == expected
