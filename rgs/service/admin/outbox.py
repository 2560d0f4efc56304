"""Pending credits and held reports, and how much of the outbox is unknown since when (ARCHITECTURE 2.17: one way
forward).

An operator sees its own credits only. A credit is never cancelled. A report that the regulator refused is sent again
once an admin says so; one that can never be accepted is closed out by an admin with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog

from rgs.core.clock import Clock
from rgs.core.errors import NotFoundError
from rgs.ports.readings import CircuitReading
from rgs.service.admin.admin import check_code
from rgs.service.admin.orders import Order, Orders
from rgs.service.callers import Caller, Reply, Role
from rgs.service.events import EventCode, Events
from rgs.service.pages import check_page_size, format_key_token, parse_key_token
from rgs.service.regulator.reports import STAGES
from rgs.store.changes import (
    DayClosedOut,
    Operation,
    OperationProgress,
    Record,
    ReportsHeld,
    ReportsReleased,
    StagesClosedOut,
)
from rgs.store.interface import Store
from rgs.store.outbox import OutboxRow

LOG_PERIOD_MS = 60_000
OLD_MS = 300_000
"""What waits so long makes the line a warning."""


@dataclass(frozen=True, slots=True)
class PendingCredit:
    """A credit that the operator's wallet has not accepted yet."""

    operation: Operation
    operator: str
    player: str
    currency: str
    age_ms: int


@dataclass(kw_only=True, eq=False, repr=False)
class Outbox:
    """Reads the outbox, and releases held reports."""

    store: Store
    clock: Clock
    events: Events
    orders: Orders
    readings: Callable[[], Sequence[CircuitReading]]

    _logged_ms: int = field(default=0, init=False)
    _logged_waiting: int = field(default=0, init=False)

    async def pending_credits(
        self, caller: Caller, page_size: int, page_token: str
    ) -> tuple[tuple[PendingCredit, ...], str]:
        """Pending credits, oldest first: an operator's own, for other roles all."""
        limit = check_page_size(page_size)
        (after,) = parse_key_token(page_token, 1)
        operator = caller.party if caller.role is Role.OPERATOR else ""
        rows = await self.store.pending_credits(operator, after, limit + 1)
        now_ms = self.clock.now_ms()
        found = []
        for operation in rows[:limit]:
            session = await self.store.session(operation.session_id)
            if session is None:
                raise NotFoundError(
                    f"no session {operation.session_id}", kind="session", session_id=operation.session_id
                )
            age_ms = max(0, now_ms - operation.created_ms)
            found.append(PendingCredit(operation, session.operator, session.player, session.currency, age_ms))
        return tuple(found), format_key_token(rows[limit - 1].operation_id) if len(rows) > limit else ""

    async def figures(self) -> tuple[tuple[OutboxRow, ...], tuple[CircuitReading, ...]]:
        """The outbox by kind and stage, and the state of this process's connections."""
        return tuple(await self.store.outbox()), tuple(self.readings())

    async def log(self) -> None:
        """Log the size of the outbox, and how much of it is unknown, once a minute while it is not empty: a warning
        where it has grown since the last line, or the oldest waits for OLD_MS.
        """
        running_ms, now_ms = self.clock.running_ms(), self.clock.now_ms()
        if running_ms - self._logged_ms < LOG_PERIOD_MS:
            return
        self._logged_ms = running_ms
        rows, _ = await self.figures()
        waiting, before = sum(row.count for row in rows), self._logged_waiting
        self._logged_waiting = waiting
        if not rows:
            return
        unknown = sum(row.count for row in rows if row.progress == OperationProgress.UNKNOWN)
        oldest_ms = max(0, now_ms - min(row.oldest_ms for row in rows))
        has_grown = 0 < before < waiting or oldest_ms >= OLD_MS
        log = structlog.get_logger()
        (log.warning if has_grown else log.info)("outbox", waiting=waiting, unknown=unknown, oldest_ms=oldest_ms)

    async def held_reports(self, page_size: int, page_token: str) -> tuple[tuple[ReportsHeld, ...], str]:
        """The reports that the regulator refused, by kind and subject."""
        limit = check_page_size(page_size)
        kind, subject = parse_key_token(page_token, 2)
        rows = await self.store.held_reports((kind, subject), limit + 1)
        token = format_key_token(rows[limit - 1].kind, rows[limit - 1].subject) if len(rows) > limit else ""
        return tuple(rows[:limit]), token

    async def release_reports(
        self, order: Order, kind: str, subject: str, reason: str, *, close_out: bool = False
    ) -> Reply:
        """Send a held report again, or with `close_out` drop it for good; the signed event."""
        check_code(reason, "reason")
        if (known := await self.orders.known(order)) is not None:
            return known
        held = await self.store.held_report(kind, subject)
        if held is None:
            raise NotFoundError(
                f"no held report of kind {kind[:20]} and subject {subject[:80]}; ListHeldReports lists them",
                kind="report",
                field="subject",
                value=subject[:80],
            )
        dropped: tuple[Record, ...] = ()
        if close_out:
            dropped = (StagesClosedOut(subject) if kind == STAGES else DayClosedOut(subject),)
        signed = await self.events.emit(
            EventCode.REPORTS_CLOSED_OUT if close_out else EventCode.REPORTS_RELEASED,
            actor=order.caller.party,
            subject=f"{kind} {subject}",
            before=held.reason,
            after="QUEUED",
            reason=reason,
            records=(ReportsReleased(kind, subject), *dropped),
            answer=order.answer(self.clock.now_ms()),
        )
        return Reply(b"", signed.envelope)
