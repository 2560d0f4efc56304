"""Reports to the regulator outside the operations: played stages, each day's totals, the running software.

It implements regulation ID-05, ID-06, PG-08 and LG-07. Stages of one session are sent in order; a batch is accepted
whole or not at all. A refused report is set aside with a signed event until an admin releases it, so that it delays
nothing else. A repeated alignment has the same id, and so has a repeated report of software until a restart; a report
of stages has a new one at every attempt. A day is not aligned while something of it or of an earlier day is pending.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import astuple, dataclass, field
from typing import Final

from rgs.core.clock import Clock
from rgs.core.errors import RgsError, UnavailableError
from rgs.core.ids import ULID_RANDOM_BYTES, format_ulid
from rgs.core.sessions import Session
from rgs.core.times import format_date
from rgs.observe.traces import Span
from rgs.ports.regulator import DayAlignment, DayTotals, ModuleReport, Regulator, SoftwareModule, StageReport
from rgs.service.events import EventCode, Events
from rgs.service.instance import Instance
from rgs.store.changes import Change, DayAligned, DayCount, ReportsHeld, ReportsReleased
from rgs.store.interface import Store

REPORT_BATCH: Final = 256
"""Most stage reports in one call."""
ALIGN_AFTER_MS: Final = 600_000
"""Time between a day's end and its alignment: the regulator's clock may be behind ours."""
ALIGN_BATCH: Final = 100
DAY_MS: Final = 86_400_000
STAGES, ALIGNMENT = "stages", "alignment"


@dataclass(kw_only=True, eq=False, repr=False)
class Reporting:
    """Sends the reports. One process for the whole store calls each method again and again."""

    store: Store
    instance: Instance
    events: Events
    clock: Clock
    regulator: Regulator
    node: str

    _modules_day: str = field(init=False, default="")
    """The day of the last report of the software."""
    _modules: ModuleReport | None = field(init=False, default=None)
    """The report of the software that waits for its answer: it is the same message until then."""

    # --- stages ---------------------------------------------------------------------------------------------------

    async def report_stages(self) -> int:
        """Send the queued stage reports in order; return how many were accepted. UnavailableError: they stay queued."""
        result = 0
        while queued := await self.store.reports(REPORT_BATCH):
            try:
                result += await self._send(queued)
            except UnavailableError:
                raise
            except RgsError:
                result += await self._send_apart(queued)
        return result

    async def report_stages_of(self, session: Session) -> None:
        """Send the queued reports of one session, held ones too. Any RgsError: they stay queued."""
        session_id = session.session_id
        while await self._send(await self.store.reports_of(session_id, REPORT_BATCH)):
            pass
        # Asked also if nothing was queued: the process may have died between the last report and this.
        if (held := await self.store.held_report(STAGES, session_id)) is not None:
            await self.events.emit(
                EventCode.REPORTS_RELEASED,
                subject=f"{STAGES} {session_id}",
                before=held.reason,
                after="ACCEPTED",
                session_id=session_id,
                records=(ReportsReleased(STAGES, session_id),),
            )

    async def _send_apart(self, queued: list[tuple[int, StageReport]]) -> int:
        """Send session by session. The reports of a refused session are set aside."""
        result = 0
        for session_id in dict.fromkeys(report.session_id for _, report in queued):
            try:
                result += await self._send([row for row in queued if row[1].session_id == session_id])
            except UnavailableError:
                raise
            except RgsError as refusal:
                await self._hold(STAGES, session_id, refusal, session_id=session_id)
        return result

    async def _send(self, queued: list[tuple[int, StageReport]]) -> int:
        if queued:
            transaction_id = self.instance.new_id(
                self.clock.now_ms()
            )  # the regulator skips stages it has, whatever the id
            reports = [report for _, report in queued]
            with self._traced(reports, transaction_id) as span:
                try:
                    await self.regulator.report_stages(transaction_id, reports)
                except UnavailableError:
                    raise
                except RgsError as refusal:
                    if span is not None:
                        span.reason = _rejection(refusal)
                    raise
                if span is not None:
                    span.reason = "OK"
            await self.store.forget_reports([row_id for row_id, _ in queued])
        return len(queued)

    def _traced(self, reports: Sequence[StageReport], transaction_id: str) -> AbstractContextManager[Span | None]:
        """The sending of a report belongs to the trace of the call that made it."""
        if self.store.tracer is None:
            return nullcontext()
        made_by = [report.traceparent for report in reports if report.traceparent is not None]
        return self.store.tracer.together(made_by, "report stage", {"rgs.transaction_id": transaction_id})

    async def _hold(self, kind: str, subject: str, refusal: RgsError, *, session_id: str = "") -> None:
        reason = _rejection(refusal)
        await self.events.emit(
            EventCode.REPORTS_HELD,
            subject=f"{kind} {subject}",
            reason=reason,
            session_id=session_id,
            records=(ReportsHeld(kind, subject, reason, self.clock.now_ms()),),
        )

    # --- days -----------------------------------------------------------------------------------------------------

    async def align_days(self) -> int:
        """Send the totals of days that are over, also of days that late reports have changed; return how many were
        accepted. While time is not trusted, no day is over.
        """
        if not self.clock.is_trusted:
            return 0
        until_ms = self.clock.now_ms() - ALIGN_AFTER_MS
        day = format_date(until_ms)
        counts = await self.store.days_to_align(day, until_ms - until_ms % DAY_MS, ALIGN_BATCH)
        aligned = 0
        for count in counts:
            try:
                await self.regulator.align_day(_alignment(count))
            except UnavailableError:
                raise
            except RgsError as refusal:
                await self._hold(ALIGNMENT, f"{count.operator}:{count.currency}:{count.day}", refusal)
            else:
                record = DayAligned(_sums(count), count.operator, count.day, count.currency)
                await self.store.commit(Change(records=(record,)))
                aligned += 1
        return aligned

    # --- software -------------------------------------------------------------------------------------------------

    async def report_modules(self, modules: Sequence[SoftwareModule]) -> bool:
        """Report the software of this node, once a day and after the start; whether it was reported now."""
        now_ms = self.clock.now_ms()
        day = format_date(now_ms)
        if day == self._modules_day:
            return False
        if self._modules is None:
            self._modules = ModuleReport(self.instance.new_id(now_ms), self.node, tuple(modules), now_ms)
        try:
            await self.regulator.report_modules(self._modules)
        except UnavailableError:
            raise
        except RgsError as refusal:
            reason = _rejection(refusal)
            await self.events.emit(EventCode.REPORTS_HELD, subject=f"modules {self.node}", reason=reason)
        self._modules, self._modules_day = None, day
        return True


def _rejection(refusal: RgsError) -> str:
    return refusal.metadata.get("rejection", refusal.reason)


def _sums(count: DayCount) -> str:
    return ",".join(str(value) for value in astuple(count)[3:])


def _alignment(count: DayCount) -> DayAlignment:
    """The message, with an id that follows from its content."""
    sums = _sums(count)
    named = f"rgs/alignment/v1\0{count.operator} {count.currency} {count.day} {sums}"
    digest = hashlib.sha256(named.encode("ascii")).digest()
    return DayAlignment(
        transaction_id=format_ulid(0, digest[:ULID_RANDOM_BYTES]),
        operator=count.operator,
        currency=count.currency,
        day=count.day,
        totals=DayTotals(*astuple(count)[3:]),
    )
