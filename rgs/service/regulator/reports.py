"""What the central system is told beside the affairs: played stages, each day's totals, the software that runs
(regulation ID-05, ID-06, PG-08, LG-07).

Stages of one session go in order, all of a batch or none. What the central system refuses is set aside with a signed
event, so that it holds up nobody else, until an admin releases it. Every message has an id that follows from what it
says, or that it keeps: a repeat is the same message. Refuses to align a day of which something is still under way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import astuple
from typing import Final

from rgs.core.clock import Clock
from rgs.core.errors import RgsError, UnavailableError
from rgs.core.ids import ULID_RANDOM_BYTES, format_ulid
from rgs.core.sessions import Session
from rgs.core.times import format_date
from rgs.ports.regulator import CentralSystem, DayAlignment, DayTotals, ModuleReport, SoftwareModule, StageReport
from rgs.service.events import EventCode, Events
from rgs.service.instance import Instance
from rgs.store.changes import Change, DayAligned, DayCount, ReportsHeld
from rgs.store.interface import Store

REPORT_BATCH: Final = 256
"""Stage reports sent in one call."""
ALIGN_AFTER_MS: Final = 600_000
"""So long after a day's end it is aligned: the other's clock may be behind ours."""
ALIGN_BATCH: Final = 100
DAY_MS: Final = 86_400_000
STAGES, ALIGNMENT = "stages", "alignment"


class Reporting:
    """Tells; each method is to be called again and again, by one process for all over the store."""

    def __init__(
        self, *, store: Store, instance: Instance, events: Events, clock: Clock, central: CentralSystem, node: str
    ) -> None:
        self._store = store
        self._instance = instance
        self._events = events
        self._clock = clock
        self._central = central
        self._node = node
        self._modules_day = ""
        """The day on which the software was told last."""
        self._modules: ModuleReport | None = None
        """What is being told of it: the same message until it is answered."""

    # --- stages ---------------------------------------------------------------------------------------------------

    async def report_stages(self) -> int:
        """Send the queued stage reports in order; how many were taken. Unavailable: they stay queued."""
        told = 0
        while queued := await self._store.reports(REPORT_BATCH):
            try:
                told += await self._send(queued)
            except UnavailableError:
                raise
            except RgsError:
                told += await self._send_apart(queued)
        return told

    async def report_stages_of(self, session: Session) -> None:
        """Send what is queued of one session. Any RgsError: it stays queued."""
        while await self._send(await self._store.reports_of(session.session_id, REPORT_BATCH)):
            pass

    async def _send_apart(self, queued: list[tuple[int, StageReport]]) -> int:
        """Session by session: what is refused of one is set aside, and the others' is told."""
        told = 0
        for session_id in dict.fromkeys(report.session_id for _, report in queued):
            try:
                told += await self._send([row for row in queued if row[1].session_id == session_id])
            except UnavailableError:
                raise
            except RgsError as refusal:
                await self._hold(STAGES, session_id, refusal, session_id=session_id)
        return told

    async def _send(self, queued: list[tuple[int, StageReport]]) -> int:
        if queued:
            transaction_id = self._instance.new_id(self._clock.now_ms())  # told stages are passed over, whatever the id
            await self._central.report_stages(transaction_id, [report for _, report in queued])
            await self._store.forget_reports([row_id for row_id, _ in queued])
        return len(queued)

    async def _hold(self, kind: str, subject: str, refusal: RgsError, *, session_id: str = "") -> None:
        reason = refusal.metadata.get("rejection", refusal.reason)
        await self._events.tell(
            EventCode.REPORTS_HELD,
            subject=f"{kind} {subject}",
            reason=reason,
            session_id=session_id,
            records=(ReportsHeld(kind, subject, reason, self._clock.now_ms()),),
        )

    # --- days -----------------------------------------------------------------------------------------------------

    async def align_days(self) -> int:
        """Tell the totals of days that are over, again where later reports have changed them; how many were taken. No
        day is over while time is not trusted.
        """
        if not self._clock.is_trusted:
            return 0
        until_ms = self._clock.now_ms() - ALIGN_AFTER_MS
        day = format_date(until_ms)
        counts = await self._store.days_to_align(day, until_ms - until_ms % DAY_MS, ALIGN_BATCH)
        aligned = 0
        for count in counts:
            try:
                await self._central.align_day(_alignment(count))
            except UnavailableError:
                raise
            except RgsError as refusal:
                await self._hold(ALIGNMENT, f"{count.operator}:{count.currency}:{count.day}", refusal)
            else:
                record = DayAligned(_sums(count), count.operator, count.day, count.currency)
                await self._store.commit(Change(records=(record,)))
                aligned += 1
        return aligned

    # --- software -------------------------------------------------------------------------------------------------

    async def report_modules(self, modules: Sequence[SoftwareModule]) -> bool:
        """Tell what runs on this node, once a day and after the start; whether it was told now."""
        now_ms = self._clock.now_ms()
        day = format_date(now_ms)
        if day == self._modules_day:
            return False
        if self._modules is None:
            self._modules = ModuleReport(self._instance.new_id(now_ms), self._node, tuple(modules), now_ms)
        try:
            await self._central.report_modules(self._modules)
        except UnavailableError:
            raise
        except RgsError as refusal:
            reason = refusal.metadata.get("rejection", refusal.reason)
            await self._events.tell(EventCode.REPORTS_HELD, subject=f"modules {self._node}", reason=reason)
        self._modules, self._modules_day = None, day
        return True


def _sums(count: DayCount) -> str:
    return ",".join(str(value) for value in astuple(count)[3:])


def _alignment(count: DayCount) -> DayAlignment:
    """The message, under an id that follows from it."""
    sums = _sums(count)
    named = f"rgs/alignment/v1\0{count.operator} {count.currency} {count.day} {sums}"
    digest = hashlib.sha256(named.encode("ascii")).digest()
    return DayAlignment(
        transaction_id=format_ulid(0, digest[:ULID_RANDOM_BYTES]),
        operator=count.operator,
        currency=count.currency,
        day=count.day,
        totals=DayTotals(
            purchases=count.purchases,
            bought_minor=count.bought_minor,
            stages=count.stages,
            staked_minor=count.staked_minor,
            returned_minor=count.returned_minor,
            ends=count.ends,
            final_balance_minor=count.final_balance_minor,
        ),
    )
