"""Admits callers: certificate -> allow-list -> party and role -> methods (ARCHITECTURE section 3).

The TLS handshake has shown that the peer holds the key of a certificate that the CA signed. Here its fingerprint must
be in the allow-list, its one URI must name the same role and party, and it must be within its dates. This is checked at
every call and every message of a stream, so that a removal or an expiry takes effect on open connections. A certificate
is parsed once; the list is read again when its counter has changed, which is checked once a second.

While the list cannot be read, nobody is admitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import grpc
import structlog

from rgs.core import errors
from rgs.core.clock import Clock
from rgs.service.callers import Caller, Role
from rgs.store.interface import PartyRow

FAILED_POLLS_MAX: Final = 10
"""After so many failed reads of the list in a row nobody is admitted."""
KNOWN_MAX: Final = 4096
"""Parsed certificates that are kept."""
METADATA_ENTRIES_MAX: Final = 64
METADATA_BYTES_MAX: Final = 8 * 1024
"""Headers of one call, names and values together; a gRPC client sends about twelve headers."""

Context = grpc.aio.ServicerContext[Any, Any]

_PLAYS: Final = frozenset({Role.OPERATOR})
_HISTORY: Final = frozenset({Role.OPERATOR, Role.AUDITOR, Role.REGULATOR})
_AUDIT: Final = _HISTORY | {Role.LAB}
_READS_ALL: Final = _AUDIT - _PLAYS
_ALL: Final = frozenset(Role)
_ADMIN: Final = frozenset({Role.ADMIN})
_SUPPORT: Final = frozenset({Role.SUPPORT})
_READS_BOOKS: Final = _HISTORY | _ADMIN
_OVERSIGHT: Final = frozenset({Role.ADMIN, Role.AUDITOR, Role.REGULATOR})

ROLES: Final[Mapping[str, frozenset[Role]]] = {
    "rgs.v1.CatalogService/ListGames": _ALL,
    "rgs.v1.CatalogService/GetGame": _ALL,
    "rgs.v1.CatalogService/GetTerms": _PLAYS,
    "rgs.v1.CatalogService/GetTexts": _ALL,
    "rgs.v1.SessionService/CreateLaunch": _PLAYS,
    "rgs.v1.SessionService/OpenSession": _PLAYS,
    "rgs.v1.SessionService/GetSession": _PLAYS,
    "rgs.v1.SessionService/BuyParticipation": _PLAYS,
    "rgs.v1.SessionService/EndParticipation": _PLAYS,
    "rgs.v1.SessionService/CloseSession": _PLAYS,
    "rgs.v1.SessionService/ListSessions": _PLAYS,
    "rgs.v1.SessionService/ListOpenRounds": _HISTORY | _ADMIN,
    "rgs.v1.PlayService/StartRound": _PLAYS,
    "rgs.v1.PlayService/Act": _PLAYS,
    "rgs.v1.PlayService/GetRound": _PLAYS,
    "rgs.v1.PlayService/Play": _PLAYS,
    "rgs.v1.TableService/ListTables": _READS_BOOKS,
    "rgs.v1.TableService/WatchLobby": _READS_BOOKS,
    "rgs.v1.TableService/GetTable": _READS_BOOKS,
    "rgs.v1.TableService/Join": _PLAYS,
    "rgs.v1.TableService/Leave": _PLAYS,
    "rgs.v1.TableService/PlaceBets": _PLAYS,
    "rgs.v1.TableService/Decide": _PLAYS,
    "rgs.v1.TableService/Say": _PLAYS,
    "rgs.v1.TableService/ListMessages": _PLAYS | _ADMIN,
    "rgs.v1.TableService/Watch": _PLAYS,
    "rgs.v1.TableService/WatchSeat": _PLAYS,
    "rgs.v1.TableAdminService/ConfigureTable": _ADMIN,
    "rgs.v1.TableAdminService/SetTableOpen": _ADMIN,
    "rgs.v1.TableAdminService/PauseTable": _ADMIN,
    "rgs.v1.TableAdminService/ResumeTable": _ADMIN,
    "rgs.v1.TableAdminService/CancelBets": _ADMIN,
    "rgs.v1.TableAdminService/VoidTableRound": _ADMIN,
    "rgs.v1.TableAdminService/BarPlayer": _ADMIN | _PLAYS,
    "rgs.v1.TableAdminService/ReserveBox": _ADMIN,
    "rgs.v1.TableAdminService/EraseMessage": _ADMIN,
    "rgs.v1.FreeBetService/GrantFreeBets": _PLAYS,
    "rgs.v1.FreeBetService/ListFreeBets": _PLAYS,
    "rgs.v1.FreeBetService/CancelFreeBet": _PLAYS,
    "rgs.v1.HistoryService/ListRounds": _HISTORY,
    "rgs.v1.HistoryService/GetRoundRecord": _HISTORY,
    "rgs.v1.ReportService/ListDayTotals": _PLAYS,
    "rgs.v1.ReportService/WatchFinals": _PLAYS,
    "rgs.v1.SupportService/Find": _SUPPORT,
    "rgs.v1.SupportService/GetPlayer": _SUPPORT,
    "rgs.v1.SupportService/GetSupportSession": _SUPPORT,
    "rgs.v1.SupportService/ListSupportSessions": _SUPPORT,
    "rgs.v1.SupportService/ListSupportRounds": _SUPPORT,
    "rgs.v1.SupportService/ExplainRound": _SUPPORT,
    "rgs.v1.AuditService/GetStatement": _AUDIT,
    "rgs.v1.AuditService/ListStatements": _AUDIT,
    "rgs.v1.AuditService/ListKeyStatements": _AUDIT,
    "rgs.v1.AuditService/GetCheckpoint": _AUDIT,
    "rgs.v1.AuditService/GetRecord": _AUDIT,
    "rgs.v1.AuditService/GetConsistencyProof": _AUDIT,
    "rgs.v1.AuditService/StreamEntries": _READS_ALL,
    "rgs.v1.AdminService/SetSwitch": _ADMIN,
    "rgs.v1.AdminService/ListSwitches": _OVERSIGHT,
    "rgs.v1.AdminService/AddCertificate": _ADMIN,
    "rgs.v1.AdminService/RemoveCertificate": _ADMIN,
    "rgs.v1.AdminService/ListCertificates": _ADMIN,
    "rgs.v1.AdminService/ClearGuard": _ADMIN,
    "rgs.v1.AdminService/ListGuards": _OVERSIGHT,
    "rgs.v1.AdminService/ReportMalfunction": _ADMIN,
    "rgs.v1.AdminService/ResumeRound": _ADMIN,
    "rgs.v1.AdminService/ProposeVoid": _ADMIN,
    "rgs.v1.AdminService/ApproveVoid": _ADMIN,
    "rgs.v1.AdminService/ListEvents": _OVERSIGHT,
    "rgs.v1.AdminService/ListTotals": _OVERSIGHT,
    "rgs.v1.AdminService/GetReturns": _OVERSIGHT,
    "rgs.v1.AdminService/ExportTotals": _OVERSIGHT,
    "rgs.v1.AdminService/ListPendingCredits": _OVERSIGHT | _PLAYS,
    "rgs.v1.AdminService/GetOutbox": _OVERSIGHT,
    "rgs.v1.AdminService/ListHeldReports": _OVERSIGHT,
    "rgs.v1.AdminService/ReleaseReports": _ADMIN,
    "rgs.v1.ReconciliationService/SubmitWalletStatement": _PLAYS,
    "rgs.v1.ReconciliationService/SubmitReceipts": _PLAYS,
    "rgs.v1.ReconciliationService/SubmitRegulatorBook": _ADMIN,
    "rgs.v1.ReconciliationService/ListSubmissions": _READS_BOOKS,
    "rgs.v1.ReconciliationService/RunReconciliation": _PLAYS | _ADMIN | {Role.AUDITOR},
    "rgs.v1.ReconciliationService/GetReport": _READS_BOOKS,
    "rgs.v1.ReconciliationService/ListReports": _READS_BOOKS,
    "rgs.v1.ReconciliationService/ListBreaks": _READS_BOOKS,
    "rgs.v1.ReconciliationService/ResolveBreak": _ADMIN,
    "rgs.v1.ReconciliationService/Countersign": _PLAYS,
}
"""Which roles may call a method. Nobody may call a method without a row. The services decide what a party sees."""


@dataclass(frozen=True, slots=True)
class PeerCertificate:
    """A parsed certificate: hex SHA-256 of its DER form, its URIs, first and last millisecond of its validity."""

    fingerprint: str
    uris: Sequence[str]
    first_ms: int
    last_ms: int


class AllowList(Protocol):
    """The allow-list of the store. `changes` grows with every change."""

    async def changes(self) -> int: ...
    async def allowed(self) -> Iterable[PartyRow]: ...


@dataclass(frozen=True, slots=True)
class _Known:
    """A certificate that was seen before: its caller, or the reason why it has none."""

    caller: Caller | None
    refusal: errors.RgsError
    first_ms: int = 0
    last_ms: int = 0


_UNKNOWN: Final = errors.UnauthenticatedError("the certificate is not allowed")


@dataclass(eq=False, repr=False)
class Gate:
    """Admits callers, from the first `refresh` on. `read` parses a PEM certificate (FormatError), `admit` raises for a
    caller that must not be served, `note` gets the reason of every refusal.
    """

    parties: AllowList
    clock: Clock
    read: Callable[[bytes], PeerCertificate]
    admit: Callable[[Caller], None] = lambda _: None
    note: Callable[[str], None] = lambda _: None

    _changes: int = field(default=-1, init=False)
    _allowed: dict[str, PartyRow] = field(default_factory=dict, init=False)
    _known: dict[bytes, _Known] = field(default_factory=dict, init=False)
    _failed_polls: int = field(default=0, init=False)

    async def refresh(self) -> None:
        """Read the list again if it has changed."""
        changes = await self.parties.changes()
        if changes != self._changes:
            self._allowed = {row.fingerprint: row for row in await self.parties.allowed()}
            self._known.clear()
            self._changes = changes
        self._failed_polls = 0

    async def poll(self) -> None:
        """Refresh; to be called once a second. Errors are raised, and FAILED_POLLS_MAX of them close the gate."""
        try:
            await self.refresh()
        except Exception:
            self._failed_polls += 1
            raise

    def caller(self, certificate: bytes | None, method: str) -> Caller:
        """The party of a certificate, if it may call the method now.

        UnauthenticatedError, PermissionDeniedError, or what `admit` raised; UnavailableError if the list is unreadable.
        """
        if self._failed_polls >= FAILED_POLLS_MAX:
            raise errors.UnavailableError("the allow-list cannot be read", failed_polls=self._failed_polls)
        try:
            return self._let_in(certificate, method)
        except errors.RgsError as error:
            self.note(error.reason)
            raise

    def _let_in(self, certificate: bytes | None, method: str) -> Caller:
        if certificate is None:
            raise errors.UnauthenticatedError("the call has no client certificate")
        known = self._known.get(certificate)
        if known is None:
            known = self._recognise(certificate)
        if known.caller is None:
            raise known.refusal.with_traceback(None)  # the same object again: its traceback would grow without end
        if not known.first_ms <= self.clock.now_ms() <= known.last_ms:
            raise errors.UnauthenticatedError("the certificate is not valid now", limit=known.last_ms)
        if known.caller.role not in ROLES.get(method, ()):
            raise errors.PermissionDeniedError(
                f"role {known.caller.role.value} may not call {method}", role=known.caller.role.value, method=method
            )
        return known.caller

    def _recognise(self, certificate: bytes) -> _Known:
        try:
            peer = self.read(certificate)
            caller = self._caller_of(peer)
            self.admit(caller)
            known = _Known(caller, _UNKNOWN, peer.first_ms, peer.last_ms)
        except errors.RgsError as error:
            refusal = error
            if isinstance(error, errors.FormatError):
                refusal = errors.UnauthenticatedError("the client certificate cannot be read")
            structlog.get_logger().warning("certificate_refused", reason=refusal.reason, metadata=refusal.metadata)
            known = _Known(None, refusal)
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[certificate] = known
        return known

    def _caller_of(self, peer: PeerCertificate) -> Caller:
        row = self._allowed.get(peer.fingerprint)
        if row is None:
            raise errors.UnauthenticatedError("the certificate is not in the allow-list", fingerprint=peer.fingerprint)
        expected = f"rgs://party/{row.role}/{row.party}"
        if row.role not in set(Role) or list(peer.uris) != [expected]:
            raise errors.UnauthenticatedError(
                f"the certificate must have the one URI {expected}",
                fingerprint=peer.fingerprint,
                limit=expected,
                value=" ".join(peer.uris)[:200],
            )
        return Caller(row.party, Role(row.role), row.jurisdiction, row.operator)


def verify_metadata(context: Context) -> None:
    """InvalidFieldError for too many or too large headers. gRPC's own limit is several times as large, and its error
    says nothing: it would be too long to be sent.
    """
    entries = context.invocation_metadata() or ()
    if len(entries) > METADATA_ENTRIES_MAX:
        raise _too_much("headers", METADATA_ENTRIES_MAX, len(entries))
    size = sum([len(key) + len(value) for key, value in entries])
    if size > METADATA_BYTES_MAX:
        raise _too_much("bytes of headers", METADATA_BYTES_MAX, size)


def _too_much(what: str, limit: int, value: int) -> errors.InvalidFieldError:
    return errors.InvalidFieldError(
        f"the call has {value} {what}, at most {limit} are allowed", field="metadata", limit=limit, value=value
    )


def certificate_of(context: Context) -> bytes | None:
    """The peer's certificate in PEM, from the TLS handshake of this call's connection."""
    found = context.auth_context().get("x509_pem_cert")
    return next(iter(found), None) if found else None
