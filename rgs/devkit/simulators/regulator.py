"""A simulated regulator's system: `rgs.regulator.v1.RegulatorService` over the test regulator and a plan of faults.

The embedded test regulator (`rgs.adapters.embedded.regulator`) keeps an honest book; every false answer is made here.
With `counts=True` answers have `test_regulator` false, as a real system's do, so that jurisdictions without a test
regulator can be tried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from rgs.adapters.embedded.regulator import EmbeddedRegulator
from rgs.adapters.grpc.regulator import ALIGNMENT_RUNNING, DOMAIN, REFUSALS
from rgs.core import errors
from rgs.devkit.simulators.faults import Call, Fault, Faults
from rgs.devkit.simulators.serving import SimulatedMethod, Simulator, WireError, copied
from rgs.ports import regulator as port
from rgs.regulator.v1 import regulator_pb2 as pb
from rgs.store.regulator import RegulatorStore, RegulatorTransaction

NO_CAP_MINOR: Final = 10**17
CLOCKS_APART_MS: Final = 1_000
"""The sender's clock may be ahead by this much: two machines' clocks always differ."""
_FOREIGN: Final = "X"
"""First character of an id that was never issued."""

State = TypeVar("State")
Answer = TypeVar("Answer", bound=Message)


class SimulatedRegulator(Simulator):
    """The regulator's system. `new_id(prefix)` makes ids as for `EmbeddedRegulator`; `now_ms` is the injected clock."""

    service = "rgs.regulator.v1.RegulatorService"
    domain = DOMAIN
    refusals = REFUSALS

    def __init__(
        self,
        path: Path,
        now_ms: Callable[[], int],
        faults: Faults,
        new_id: Callable[[str], str],
        *,
        counts: bool = False,
    ) -> None:
        self._now_ms = now_ms
        self._new_id = new_id
        self._test_regulator = not counts
        self._seen: set[str] = set()
        """Transaction ids answered so far, for false answers to repeats."""
        super().__init__(path, faults)

    def _open(self) -> None:
        self.store = RegulatorStore(self._path)
        self._book = EmbeddedRegulator(self.store, self._new_id, self._now_ms, CLOCKS_APART_MS)

    def _forget(self) -> None:
        self._seen.clear()

    async def close(self) -> None:
        await self._book.close()

    def methods(self) -> Mapping[str, SimulatedMethod]:
        return {
            "OpenSession": SimulatedMethod(pb.OpenSessionRequest, self._open_session),
            "BuyParticipation": SimulatedMethod(pb.BuyParticipationRequest, self._buy),
            "EndParticipation": SimulatedMethod(pb.EndParticipationRequest, self._end),
            "ReportStages": SimulatedMethod(pb.ReportStagesRequest, self._report),
            "AlignDay": SimulatedMethod(pb.AlignDayRequest, self._align),
            "CloseSession": SimulatedMethod(pb.CloseSessionRequest, self._close_session),
            "ReportModules": SimulatedMethod(pb.ReportModulesRequest, self._report_modules),
            "GetSession": SimulatedMethod(pb.GetSessionRequest, self._get_session),
            "GetParticipation": SimulatedMethod(pb.GetParticipationRequest, self._get_participation),
        }

    def subject(self, request: Any) -> str:
        return getattr(request, "transaction_id", "")

    # --- the methods --------------------------------------------------------------------------------------------------

    async def _open_session(self, request: pb.OpenSessionRequest, call: Call) -> pb.OpenSessionResponse:
        cap_minor = request.participation_cap_minor
        if cap_minor > 0 and self._commit_if_due(call, Fault.NO_CAP, request):
            cap_minor = NO_CAP_MINOR
        opening = copied(
            port.SessionOpening,
            request,
            test_regulator_allowed=True,  # the game server decides that: it knows what system answers
            participation_cap_minor=cap_minor,
            open_ms=self._time(request.open_time, call, request),
        )
        granted = await self._book.open_session(opening)
        issued = self._issued(granted.regulator_session_id, call, request)
        return pb.OpenSessionResponse(regulator_session_id=issued)

    async def _buy(self, request: pb.BuyParticipationRequest, call: Call) -> pb.BuyParticipationResponse:
        purchase = copied(port.Purchase, request, purchase_ms=self._time(request.purchase_time, call, request))
        right = await self._book.buy_participation(purchase)
        issued = self._issued(right.regulator_participation_id, call, request)
        return pb.BuyParticipationResponse(regulator_participation_id=issued)

    async def _end(self, request: pb.EndParticipationRequest, call: Call) -> pb.EndParticipationResponse:
        end = copied(port.ParticipationEnd, request, end_ms=self._time(request.end_time, call, request))
        try:
            await self._book.end_participation(end)
        except errors.ParticipationEndedError:
            if not self._commit_if_due(call, Fault.ENDS_TWICE, request):
                raise
        return pb.EndParticipationResponse()

    async def _report(self, request: pb.ReportStagesRequest, call: Call) -> pb.ReportStagesResponse:
        stages = [
            copied(
                port.StageReport,
                stage,
                session_id="",
                traceparent=None,
                end_ms=self._time(stage.end_time, call, request),
            )
            for stage in request.stages
        ]
        if any(
            stage.available_bonus_minor or stage.staked_bonus_minor or stage.returned_bonus_minor
            for stage in request.stages
        ):
            raise errors.InvalidFieldError("this system keeps no bonus money", field="stages")
        if self._commit_if_due(call, Fault.CHANGED_HASH, request):
            stages = [replace(stage, final_hash=stage.final_hash[::-1]) for stage in stages]
        await self._book.report_stages(request.transaction_id, stages)
        return pb.ReportStagesResponse()

    async def _align(self, request: pb.AlignDayRequest, _call: Call) -> pb.AlignDayResponse:
        alignment = copied(port.DayAlignment, request, totals=copied(port.DayTotals, request.totals))
        await self._book.align_day(alignment)
        return pb.AlignDayResponse()

    async def _close_session(self, request: pb.CloseSessionRequest, call: Call) -> pb.CloseSessionResponse:
        close_ms = self._time(request.close_time, call, request)
        try:
            await self._book.close_session(
                port.SessionClose(request.transaction_id, request.regulator_session_id, close_ms)
            )
        except errors.ParticipationOpenError:
            if not self._commit_if_due(call, Fault.CLOSES_SEATED, request):
                raise
        return pb.CloseSessionResponse()

    async def _report_modules(self, request: pb.ReportModulesRequest, call: Call) -> pb.ReportModulesResponse:
        modules = tuple(copied(port.SoftwareModule, module) for module in request.modules)
        report_ms = self._time(request.report_time, call, request)
        await self._book.report_modules(port.ModuleReport(request.transaction_id, request.node, modules, report_ms))
        return pb.ReportModulesResponse()

    async def _get_session(self, request: pb.GetSessionRequest, _call: Call) -> pb.GetSessionResponse:
        state = await self._read(lambda book: book.session(request.regulator_session_id))
        if state is None:
            raise WireError(port.Rejection.UNKNOWN_SESSION, "there is no such session")
        return _shown(pb.GetSessionResponse, state)

    async def _get_participation(self, request: pb.GetParticipationRequest, _call: Call) -> pb.GetParticipationResponse:
        state = await self._read(lambda book: book.participation(request.regulator_participation_id))
        if state is None:
            raise WireError(port.Rejection.UNKNOWN_PARTICIPATION, "there is no such participation")
        return _shown(pb.GetParticipationResponse, state)

    async def _read(self, read: Callable[[RegulatorTransaction], State]) -> State:
        def poll() -> State:
            with self.store.transaction("", self._now_ms()) as book:
                return read(book)

        return await asyncio.to_thread(poll)

    # --- what they share ----------------------------------------------------------------------------------------------

    def _time(self, timestamp: Timestamp, call: Call, request: Any) -> int:
        """The time in a message; with `future_dates`, at most the time of the clock."""
        if not timestamp.seconds:
            raise errors.InvalidFieldError("a time is missing", field="time")
        time_ms, now_ms = timestamp.ToMilliseconds(), self._now_ms()
        return now_ms if time_ms > now_ms and self._commit_if_due(call, Fault.FUTURE_DATES, request) else time_ms

    def _issued(self, regulator_id: str, call: Call, request: Any) -> str:
        if self._commit_if_due(call, Fault.WRONG_ID, request):
            return regulator_id.lower()
        if request.transaction_id in self._seen and self._commit_if_due(call, Fault.NEW_IDS, request):
            return _FOREIGN + regulator_id[1:]
        return regulator_id

    def _commit_if_due(self, call: Call, fault: Fault, request: Any) -> bool:
        return self.faults.commit_if_due(call, fault, request.transaction_id)

    async def answer(self, method: SimulatedMethod, request: Any, call: Call) -> Message:
        """Answer a request, with the false answers that all methods share. WireError, NobodyError."""
        return await super().answer(replace(method, answer=partial(self._lied, method.answer)), request, call)

    async def _lied(self, method: Callable[[Any, Call], Awaitable[Message]], request: Any, call: Call) -> Any:
        transaction_id = self.subject(request)
        if transaction_id and self._commit_if_due(call, Fault.ALIGNMENT_RUNNING, request):
            raise WireError(ALIGNMENT_RUNNING, "an alignment is running: send it again later")
        if transaction_id in self._seen and self._commit_if_due(call, Fault.CONFLICTING_RETRY, request):
            raise WireError(port.Rejection.TRANSACTION_CONFLICT, "the transaction id was used with other data")
        response: Any = await method(request, call)
        if transaction_id:
            self._seen.add(transaction_id)
            response.transaction_id, response.test_regulator = transaction_id, self._test_regulator
            if self._commit_if_due(call, Fault.WRONG_TRANSACTION, request):
                response.transaction_id = _FOREIGN + transaction_id[1:]
        return response

    def _reason(self, error: errors.RgsError, _request: Any) -> str:
        if rejection := error.metadata.get("rejection", ""):
            return rejection
        if isinstance(error, errors.JurisdictionError):
            return port.Rejection.JURISDICTION_REFUSED
        return port.Rejection.INVALID_FIELD if isinstance(error, errors.InvalidFieldError | errors.FormatError) else ""


def _shown(kind: type[Answer], state: object) -> Answer:
    """The answer that shows a row of the book, by the names of its fields."""
    return kind(**{field.name: getattr(state, field.name) for field in kind.DESCRIPTOR.fields})
