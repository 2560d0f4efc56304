"""The regulator's system over gRPC: `rgs.regulator.v1.RegulatorService` behind the port `Regulator`.

It implements ARCHITECTURE 2.17 (stable ids, unknown is a state) and regulation PG-11 (transaction ids). Each call is
sent once, with an attempt id of its own; the caller repeats it with the same transaction id. Only a rejection in
REFUSALS, under its code, is a refusal; ALIGNMENT_RUNNING means "later" and is unavailable. An answer for another
transaction, with a malformed id, or with another id for a further purchase than for the first is unknown and reported.
A test regulator is refused if the jurisdiction allows none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.timestamp_pb2 import Timestamp
from grpc import StatusCode

from rgs.adapters.grpc.peer import (
    OnContradiction,
    Peer,
    PeerContract,
    PeerSettings,
    RefusalRow,
    RefusedError,
    log_contradiction,
)
from rgs.core.errors import RegulatorUnavailableError, RgsError
from rgs.core.ids import check_ulid
from rgs.ports.regulator import (
    DayAlignment,
    ModuleReport,
    ParticipationEnd,
    Purchase,
    RegulatorParticipation,
    RegulatorReceipt,
    RegulatorSession,
    Rejection,
    SessionClose,
    SessionOpening,
    StageReport,
    checked_fields,
    is_regulator_id,
    refusal_of,
    verify_test_regulator_allowed,
)
from rgs.regulator.v1 import regulator_pb2 as pb
from rgs.regulator.v1.regulator_pb2_grpc import RegulatorServiceStub

if TYPE_CHECKING:  # the typed stubs know it, the generated code does not
    from rgs.regulator.v1.regulator_pb2_grpc import RegulatorServiceAsyncStub

DOMAIN: Final = "rgs.regulator.v1"
ALIGNMENT_RUNNING: Final = "ALIGNMENT_RUNNING"

_INVALID: Final = StatusCode.INVALID_ARGUMENT
_EXISTS: Final = StatusCode.ALREADY_EXISTS
_STATE: Final = StatusCode.FAILED_PRECONDITION
_MISSING: Final = StatusCode.NOT_FOUND

REFUSALS: Final[Mapping[str, RefusalRow]] = {
    "INVALID_FIELD": RefusalRow(_INVALID, "A field is missing, malformed or outside its limit; `field`."),
    "AMOUNT_NOT_POSITIVE": RefusalRow(_INVALID, "A purchase of nothing, or of less."),
    "TRANSACTION_CONFLICT": RefusalRow(_EXISTS, "The transaction id was used with other data."),
    "REFERENCE_USED": RefusalRow(_EXISTS, "The game server's own id stands for another session or participation."),
    "STAGE_CONFLICT": RefusalRow(_EXISTS, "The stage was reported before with other data; `index`."),
    "UNKNOWN_SESSION": RefusalRow(_MISSING, "There is no such session."),
    "UNKNOWN_PARTICIPATION": RefusalRow(_MISSING, "There is no such participation in that session; `index`."),
    "SESSION_CLOSED": RefusalRow(_STATE, "The session is closed."),
    "DATE_IN_FUTURE": RefusalRow(
        _STATE,
        "A time in the future, or a day that is not over. Clocks differ: allow a second.",
    ),
    "ALREADY_SEATED": RefusalRow(_STATE, "The player has, or had, a participation in the session."),
    "PARTICIPATION_ENDED": RefusalRow(_STATE, "The participation has ended."),
    "PURCHASE_GAP": RefusalRow(_STATE, "Not the purchase number that comes next; `limit` is."),
    "ABOVE_MAXIMUM": RefusalRow(_STATE, "All purchases of the participation together would exceed the cap."),
    "LIMIT_REACHED": RefusalRow(_STATE, "A limit of the player's that the regulator keeps."),
    "STAGE_GAP": RefusalRow(_STATE, "Not the stage number that comes next; `limit` is; `index`."),
    "AVAILABLE_MISMATCH": RefusalRow(_STATE, "Not a balance that the purchases and stages before it leave; `index`."),
    "STAKE_NOT_COVERED": RefusalRow(_STATE, "More staked than was bought and returned; `index`."),
    "ENDED_TWICE": RefusalRow(_STATE, "The participation has ended before."),
    "ROUNDS_MISMATCH": RefusalRow(
        _STATE, "The number of reported stages is not the number of rounds of the end; `limit`."
    ),
    "BALANCE_MISMATCH": RefusalRow(_STATE, "The final balance is not bought - staked + returned; `limit`."),
    "SEATED": RefusalRow(_STATE, "A participation of the session has not ended."),
    "TOTALS_MISMATCH": RefusalRow(_STATE, "The day's totals are not those of the messages; `limit`."),
    "JURISDICTION_REFUSED": RefusalRow(_STATE, "This system does not serve that jurisdiction, or that game in it."),
    ALIGNMENT_RUNNING: RefusalRow(
        StatusCode.UNAVAILABLE, "An alignment is running: nothing was entered, send it again later."
    ),
}
"""All reasons of `Rejection`, and ALIGNMENT_RUNNING. A reason under another code is unknown."""
CONTRACT: Final = PeerContract(DOMAIN, REFUSALS, RegulatorUnavailableError)


class GrpcRegulator(Peer):
    """The regulator. `new_id` makes ULIDs for attempts, `now_ms` is a monotonic clock.

    It is made and used in one event loop.
    """

    def __init__(
        self,
        name: str,
        settings: PeerSettings,
        *,
        new_id: Callable[[], str],
        now_ms: Callable[[], int],
        on_contradiction: OnContradiction = log_contradiction,
    ) -> None:
        super().__init__(name, settings, CONTRACT, now_ms=now_ms, on_contradiction=on_contradiction)
        self._new_id = new_id
        self._stub: RegulatorServiceAsyncStub = RegulatorServiceStub(self.channel)

    async def open_session(self, opening: SessionOpening) -> RegulatorSession:
        """As in `Regulator`; JurisdictionError if a test regulator answers and none is allowed."""
        request = pb.OpenSessionRequest(attempt_id=self._new_id(), **_fields(opening))
        judge = _issuing(request, "regulator_session_id")
        response: pb.OpenSessionResponse = await self._call(self._stub.OpenSession, "OpenSession", request, judge)
        if response.test_regulator:
            verify_test_regulator_allowed(opening)
        return RegulatorSession(response.regulator_session_id, response.test_regulator)

    async def buy_participation(self, purchase: Purchase, issued: str = "") -> RegulatorParticipation:
        """As in `Regulator`."""
        request = pb.BuyParticipationRequest(attempt_id=self._new_id(), **_fields(purchase))
        judge = _issuing(request, "regulator_participation_id", issued)
        response: pb.BuyParticipationResponse = await self._call(
            self._stub.BuyParticipation, "BuyParticipation", request, judge
        )
        return RegulatorParticipation(response.regulator_participation_id, response.test_regulator)

    async def report_stages(self, transaction_id: str, stages: Sequence[StageReport]) -> RegulatorReceipt:
        """As in `Regulator`."""
        request = pb.ReportStagesRequest(
            attempt_id=self._new_id(),
            transaction_id=check_ulid(transaction_id, "transaction_id"),
            stages=[pb.Stage(**_fields(stage)) for stage in stages],
        )
        return await self._reported(self._stub.ReportStages, "ReportStages", request)

    async def end_participation(self, end: ParticipationEnd) -> RegulatorReceipt:
        """As in `Regulator`."""
        request = pb.EndParticipationRequest(attempt_id=self._new_id(), **_fields(end))
        return await self._reported(self._stub.EndParticipation, "EndParticipation", request)

    async def close_session(self, close: SessionClose) -> RegulatorReceipt:
        """As in `Regulator`."""
        request = pb.CloseSessionRequest(attempt_id=self._new_id(), **_fields(close))
        return await self._reported(self._stub.CloseSession, "CloseSession", request)

    async def align_day(self, alignment: DayAlignment) -> RegulatorReceipt:
        """As in `Regulator`."""
        totals = pb.DayTotals(**checked_fields(alignment.totals))
        request = pb.AlignDayRequest(attempt_id=self._new_id(), **{**_fields(alignment), "totals": totals})
        return await self._reported(self._stub.AlignDay, "AlignDay", request)

    async def report_modules(self, report: ModuleReport) -> RegulatorReceipt:
        """As in `Regulator`."""
        request = pb.ReportModulesRequest(
            attempt_id=self._new_id(),
            transaction_id=check_ulid(report.transaction_id, "transaction_id"),
            node=report.node,
            modules=[
                pb.Module(name=module.name, version=module.version, sha256=module.sha256, sha1=module.sha1)
                for module in report.modules
            ],
            report_time=_timestamp(report.report_ms),
        )
        return await self._reported(self._stub.ReportModules, "ReportModules", request)

    async def _reported(self, method: Any, name: str, request: Any) -> RegulatorReceipt:
        response = await self._call(method, name, request, partial(disbelieved, request))
        return RegulatorReceipt(response.transaction_id, response.test_regulator)

    async def _call(self, method: Any, name: str, request: Any, judge: Callable[[Any], str]) -> Any:
        try:
            return await self.call(method, name, request, judge, transaction_id=request.transaction_id)
        except RefusedError as refused:
            if refused.reason == Rejection.TRANSACTION_CONFLICT:
                # Nobody else makes our ids: the caller takes it for no answer, and somebody has to hear of it.
                self._on_contradiction(self.name, name, request.transaction_id, refused.reason)
            raise _refusal(refused) from None


def disbelieved(request: Any, response: Any) -> str:
    """The field for which a response to the request is not believed, "" if there is none."""
    return "" if response.transaction_id == request.transaction_id else "transaction_id"


def _issuing(request: Any, name: str, issued: str = "") -> Callable[[Any], str]:
    """Names the field of a response that is no regulator's id, is not the one `issued`, or contradicts the request."""

    def judge(response: Any) -> str:
        found = getattr(response, name)
        return disbelieved(request, response) if is_regulator_id(found) and issued in ("", found) else name

    return judge


def _fields(message: Any) -> dict[str, Any]:
    """The checked fields as those of the protobuf message: a time in milliseconds is a timestamp there."""
    sent = checked_fields(message)
    for name in [name for name in sent if name.endswith("_ms")]:
        sent[f"{name.removesuffix('_ms')}_time"] = _timestamp(sent.pop(name))
    return sent


def _timestamp(time_ms: int) -> Timestamp:
    timestamp = Timestamp()
    timestamp.FromMilliseconds(time_ms)
    return timestamp


def _refusal(refused: RefusedError) -> RgsError:
    if refused.reason == ALIGNMENT_RUNNING:
        later = RegulatorUnavailableError(refused.message, rejection=ALIGNMENT_RUNNING)
        if refused.retry_after_ms:
            later.metadata["retry_after_ms"] = str(refused.retry_after_ms)
        return later
    result = {key: refused.metadata[key] for key in ("limit", "value", "index") if key in refused.metadata}
    return refusal_of(Rejection(refused.reason), refused.message, field=refused.metadata.get("field"), **result)
