"""The allow-list as admins change it at the running server (ARCHITECTURE section 3): each change with its signed event,
in one commit, and in force at once.

Refuses certificates of admins: they are added at the machine (`rgs party add`), so that no admin can make himself the
second one that a void needs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from rgs.clock import Clock
from rgs.core.errors import FormatError, InvalidFieldError, NotFoundError
from rgs.core.times import format_time
from rgs.service.admin import check_code
from rgs.service.callers import Caller, Reply, Role
from rgs.service.events import EventCode, Events
from rgs.service.orders import Order, Orders
from rgs.store.changes import AllowListChanged, CertificateOff, CertificateOn, PartyOn
from rgs.store.interface import Parties, PartyRow

_HEX = frozenset("0123456789abcdef")
_FINGERPRINT_CHARACTERS = 64
ALLOWED, DENIED = "allowed", "denied"


@dataclass(frozen=True, slots=True)
class Presented:
    """A certificate that was read and is fit for a client: hex SHA-256 of its DER form, whom its one URI names."""

    fingerprint: str
    role: Role
    party: str


Identify = Callable[[bytes, int], Presented]
"""(PEM, now in milliseconds) -> whom it names; FormatError or InvalidFieldError saying what is wrong with it."""


async def _nobody_asks() -> None:
    """Where no gate stands."""


class Certificates:
    """Adds, removes, lists. `admit` refuses callers whose jurisdiction does not allow this server's authorities."""

    def __init__(
        self,
        *,
        parties: Parties,
        clock: Clock,
        events: Events,
        orders: Orders,
        identify: Identify,
        admit: Callable[[Caller], None],
    ) -> None:
        self._parties = parties
        self._clock = clock
        self._events = events
        self._orders = orders
        self._identify = identify
        self._admit = admit
        self.refresh: Callable[[], Awaitable[None]] = _nobody_asks
        """Called after every change: the gate's."""

    async def list(self, *, removed_too: bool) -> list[PartyRow]:
        """The allow-list, in the order of its growth."""
        return await self._parties.all() if removed_too else await self._parties.allowed()

    async def add(
        self, order: Order, pem: bytes, jurisdiction: str, reason: str, encode: Callable[[PartyRow], bytes]
    ) -> Reply:
        """Allow a certificate; `encode` makes the answer of its row. A party keeps its role and jurisdiction."""
        check_code(reason, "reason")
        if (known := await self._orders.known(order)) is not None:
            return known
        now_ms = self._clock.now_ms()
        try:
            found = self._identify(pem, now_ms)
        except FormatError as error:
            raise InvalidFieldError(error.message, field="certificate") from None
        row = PartyRow(found.fingerprint, found.party, found.role.value, jurisdiction, now_ms, None)
        await self._verify_new(row)
        self._admit(Caller(found.party, found.role, jurisdiction))
        body = encode(row)
        signed = await self._events.tell(
            EventCode.CERTIFICATE_ADDED,
            actor=order.caller.party,
            subject=f"{row.role} {row.party} {row.fingerprint}",
            before=DENIED,
            after=f"{ALLOWED} {jurisdiction}".rstrip(),
            reason=reason,
            records=(
                PartyOn(row.party, row.role, jurisdiction, now_ms),
                CertificateOn(row.fingerprint, now_ms, row.party, row.role, jurisdiction),
                AllowListChanged(),
            ),
            answer=order.answer(now_ms, body),
        )
        await self.refresh()
        return Reply(body, signed.envelope)

    async def remove(self, order: Order, fingerprint: str, reason: str) -> Reply:
        """Deny a certificate, from the next message on."""
        check_code(reason, "reason")
        if len(fingerprint) != _FINGERPRINT_CHARACTERS or not set(fingerprint) <= _HEX:
            limit = "64 hexadecimal digits in lowercase"
            raise InvalidFieldError(
                f"fingerprint is not {limit}", field="fingerprint", limit=limit, value=fingerprint[:80]
            )
        if (known := await self._orders.known(order)) is not None:
            return known
        row = next((row for row in await self._parties.allowed() if row.fingerprint == fingerprint), None)
        if row is None:
            raise NotFoundError("no such certificate is allowed", kind="certificate", fingerprint=fingerprint)
        now_ms = self._clock.now_ms()
        signed = await self._events.tell(
            EventCode.CERTIFICATE_REMOVED,
            actor=order.caller.party,
            subject=f"{row.role} {row.party} {fingerprint}",
            before=f"{ALLOWED} {format_time(row.added_ms)}",
            after=DENIED,
            reason=reason,
            records=(CertificateOff(now_ms, fingerprint), AllowListChanged()),
            answer=order.answer(now_ms),
        )
        await self.refresh()
        return Reply(b"", signed.envelope)

    async def _verify_new(self, row: PartyRow) -> None:
        if row.role == Role.ADMIN:
            raise InvalidFieldError(
                "certificates of admins are added at the machine: `rgs party add`", field="certificate", value=row.role
            )
        if (row.role == Role.OPERATOR) != bool(row.jurisdiction):
            raise InvalidFieldError(
                "an operator has a jurisdiction, and nobody else",
                field="jurisdiction",
                value=row.jurisdiction[:80],
                role=row.role,
            )
        for known in await self._parties.all():
            if known.fingerprint == row.fingerprint:
                raise InvalidFieldError(
                    "this certificate is or was in the allow-list", field="certificate", fingerprint=row.fingerprint
                )
            if known.party == row.party and (known.role, known.jurisdiction) != (row.role, row.jurisdiction):
                raise InvalidFieldError(
                    f"party {row.party} is {known.role} in jurisdiction {known.jurisdiction or '-'} already",
                    field="certificate",
                    limit=known.role,
                    value=row.role,
                )
