"""The allow-list, which admins change at the running server. Each change and its signed event are one commit, and take
effect at once. Changes made at the host (`rgs init`, `rgs party`) get an event too, as soon as a server sees them, and
before an admin whom they let in can propose or approve anything.

Certificates of admins are added at the host only (`rgs party add`), so that no admin can make himself the second one
that a void needs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import structlog

from rgs.core.clock import Clock
from rgs.core.errors import FormatError, InvalidFieldError, UnauthenticatedError
from rgs.core.times import format_time
from rgs.service.admin.admin import check_code
from rgs.service.admin.orders import Order, Orders
from rgs.service.callers import Caller, Reply, Role
from rgs.service.events import EventCode, Events, event_draft
from rgs.store.allowed import removable, verify_new, verify_scope
from rgs.store.changes import AllowListChanged, CertificateOff, CertificateOn, Change, MetaSet, PartyOn
from rgs.store.interface import Parties, PartyRow, Store

_HEX = frozenset("0123456789abcdef")
_FINGERPRINT_CHARACTERS = 64
ALLOWED, DENIED = "allowed", "denied"
ENDS_SOON_MS = 30 * 86_400_000
"""Adding a certificate that ends sooner logs a warning."""
AT_THE_MACHINE = "AT_THE_MACHINE"
"""Reason of a change that was made at the host."""
_REPORTED = "certificate"
"""Key of `meta`, with the fingerprint: the state in the last event of a certificate, and its time in milliseconds."""


@dataclass(frozen=True, slots=True)
class Presented:
    """A certificate that is fit for a client: hex SHA-256 of its DER form, role and party of its one URI, and the last
    moment of its validity.
    """

    fingerprint: str
    role: Role
    party: str
    last_ms: int


Identify = Callable[[bytes, int], Presented]
"""(PEM, now in milliseconds) -> the certificate; FormatError or InvalidFieldError."""


def ends_soon(last_ms: int, now_ms: int) -> bool:
    """Whether a certificate ends so soon that adding it logs a warning."""
    return last_ms - now_ms < ENDS_SOON_MS


@dataclass(kw_only=True, eq=False, repr=False)
class Certificates:
    """Adds, removes and lists certificates. `admit` refuses a caller whose jurisdiction does not allow the authorities
    of this server.
    """

    store: Store
    parties: Parties
    clock: Clock
    events: Events
    orders: Orders
    identify: Identify
    admit: Callable[[Caller], None]
    refresh: Callable[[], Awaitable[None]]

    _changes: int | None = field(default=None, init=False)

    async def list(self, *, removed_too: bool) -> list[PartyRow]:
        """The allow-list, oldest entry first."""
        return await self.parties.all() if removed_too else await self.parties.allowed()

    async def add(
        self,
        order: Order,
        pem: bytes,
        jurisdiction: str,
        reason: str,
        encode: Callable[[PartyRow], bytes],
        *,
        operator: str = "",
    ) -> Reply:
        """Allow a certificate; `encode` makes the answer from its row. A party keeps its role, jurisdiction and
        operator.
        """
        check_code(reason, "reason")
        if (known := await self.orders.known(order)) is not None:
            return known
        now_ms = self.clock.now_ms()
        try:
            found = self.identify(pem, now_ms)
        except FormatError as error:
            raise InvalidFieldError(error.message, field="certificate") from None
        row = PartyRow(
            found.fingerprint, found.party, found.role.value, jurisdiction, now_ms, None, found.last_ms, operator
        )
        await self._verify_new(row)
        self.admit(Caller(found.party, found.role, jurisdiction, operator))
        body = encode(row)
        signed = await self.events.emit(
            EventCode.CERTIFICATE_ADDED,
            actor=order.caller.party,
            subject=f"{row.role} {row.party} {row.fingerprint}",
            before=DENIED,
            after=_allowed(row),
            reason=reason,
            records=(
                PartyOn(row.party, row.role, jurisdiction, now_ms, operator),
                CertificateOn(row.fingerprint, now_ms, row.party, row.role, jurisdiction, found.last_ms, operator),
                _reported(row, ALLOWED, now_ms),
                AllowListChanged(),
            ),
            answer=order.answer(now_ms, body),
        )
        await self.refresh()
        if ends_soon(found.last_ms, now_ms):
            structlog.get_logger().warning(
                "certificate_ends_soon",
                party=row.party,
                role=row.role,
                fingerprint=row.fingerprint,
                ends=format_time(found.last_ms),
            )
        return Reply(body, signed.envelope)

    async def remove(self, order: Order, fingerprint: str, reason: str) -> Reply:
        """Deny a certificate; this holds from the next message on."""
        check_code(reason, "reason")
        if len(fingerprint) != _FINGERPRINT_CHARACTERS or not set(fingerprint) <= _HEX:
            limit = "64 hexadecimal digits in lowercase"
            raise InvalidFieldError(
                f"fingerprint is not {limit}", field="fingerprint", limit=limit, value=fingerprint[:80]
            )
        if (known := await self.orders.known(order)) is not None:
            return known
        now_ms = self.clock.now_ms()
        row = removable(fingerprint, await self.parties.all(), now_ms)
        signed = await self.events.emit(
            EventCode.CERTIFICATE_REMOVED,
            actor=order.caller.party,
            subject=f"{row.role} {row.party} {fingerprint}",
            before=f"{ALLOWED} {format_time(row.added_ms)}",
            after=DENIED,
            reason=reason,
            records=(AllowListChanged(), CertificateOff(now_ms, fingerprint), _reported(row, DENIED, now_ms)),
            answer=order.answer(now_ms),
        )
        await self.refresh()
        return Reply(b"", signed.envelope)

    async def poll(self) -> None:
        """Sign events for changes since the last look. One process calls this once a second."""
        changes = await self.parties.changes()
        if changes != self._changes:
            await self._emit()
            self._changes = changes

    async def verify_admin(self, party: str) -> int:
        """The time, in milliseconds, of the event that allows this admin's certificate; it is signed now if need be.

        UnauthenticatedError if no certificate of this admin is allowed.
        """
        since_ms = [
            reported_ms
            for row, reported_ms in await self._emit()
            if (row.party, row.role, row.removed_ms) == (party, Role.ADMIN, None)
        ]
        if not since_ms:
            raise UnauthenticatedError(f"no certificate of {party} as an admin is allowed", party=party)
        return min(since_ms)

    async def _emit(self) -> Sequence[tuple[PartyRow, int]]:
        """Sign an event for each row that differs from its last event; all rows, with the times of their events."""
        found = []
        for row in await self.parties.all():
            state = ALLOWED if row.removed_ms is None else DENIED
            before, _, result = (await self.store.meta(f"{_REPORTED} {row.fingerprint}")).partition(" ")
            if before != state:
                now_ms = self.clock.now_ms()
                is_added = state == ALLOWED
                draft = event_draft(
                    EventCode.CERTIFICATE_ADDED if is_added else EventCode.CERTIFICATE_REMOVED,
                    now_ms,
                    subject=f"{row.role} {row.party} {row.fingerprint}",
                    before=DENIED if is_added else f"{ALLOWED} {format_time(row.added_ms)}",
                    after=_allowed(row) if is_added else DENIED,
                    reason=AT_THE_MACHINE,
                )
                await self.store.commit(Change(drafts=(draft,), records=(_reported(row, state, now_ms),)))
                result = str(now_ms)
            found.append((row, int(result)))
        return found

    async def _verify_new(self, row: PartyRow) -> None:
        if row.role == Role.ADMIN:
            raise InvalidFieldError(
                "certificates of admins are added at the host: `rgs party add`", field="certificate", value=row.role
            )
        if (row.role == Role.OPERATOR) != bool(row.jurisdiction):
            raise InvalidFieldError(
                "an operator has a jurisdiction, and nobody else",
                field="jurisdiction",
                value=row.jurisdiction[:80],
                role=row.role,
            )
        known = await self.parties.all()
        verify_scope(row.role, row.operator, known)
        verify_new(row, known, field="certificate")


def _allowed(row: PartyRow) -> str:
    """The state behind the event: with the jurisdiction of an operator, or the operator of a support party."""
    return " ".join(filter(None, (ALLOWED, row.jurisdiction, row.operator)))


def _reported(row: PartyRow, state: str, now_ms: int) -> MetaSet:
    return MetaSet(f"{_REPORTED} {row.fingerprint}", f"{state} {now_ms}")
