"""rgs.v1.ReconciliationService over `rgs.service.reconciliation`.

Rows of the contract become the records that the strict readers check. Errors found here: a stream out of order, an
unknown enum value, a time that is not a whole millisecond.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from rgs.api.calls import ClientStream, Methods, ServerStream, Unary
from rgs.api.mapping import same_fields, time_fields
from rgs.api.pages import paged
from rgs.core.errors import InvalidFieldError
from rgs.core.times import TIME_MS_MAX, format_time, parse_time
from rgs.service.callers import Caller
from rgs.service.reconciliation import runs
from rgs.service.reconciliation.files import operator_of
from rgs.service.reconciliation.reports import ReconciliationReports, Report, Settling
from rgs.service.reconciliation.runs import ReconciliationRuns, RunRequest
from rgs.service.reconciliation.submissions import (
    RECEIPTS,
    REGULATOR,
    WALLET,
    Header,
    Submission,
    Submissions,
    SubmissionUpload,
)
from rgs.v1 import reconciliation_pb2 as pb

SERVICE = pb.DESCRIPTOR.services_by_name["ReconciliationService"].full_name

Record = dict[str, str]
_KINDS: Final = {
    pb.WalletRowKind.Value(f"WALLET_ROW_KIND_{kind.upper()}"): kind for kind in ("debit", "credit", "rollback")
}
_STATUSES: Final = {
    pb.WALLET_ROW_STATUS_UNSPECIFIED: "accepted",
    **{
        pb.WalletRowStatus.Value(f"WALLET_ROW_STATUS_{status.upper()}"): status
        for status in ("accepted", "refused", "pending", "tombstone")
    },
}
_SOURCES: Final = {
    source: pb.SubmissionSource.Value(f"SUBMISSION_SOURCE_{source.upper()}") for source in (WALLET, RECEIPTS, REGULATOR)
}
_STATES: Final = {
    state: pb.ReportState.Value(f"REPORT_STATE_{state.upper()}")
    for state in (runs.RUNNING, runs.DONE, runs.FAILED_STATE, runs.INTERRUPTED)
}
_BREAK_TEXTS: Final = (
    *("subject", "player", "currency", "game", "age", "action", "found"),
    *("resolved_by", "approved_by", "reason", "evidence"),
)


def reconciliation_methods(
    submissions: Submissions, running: ReconciliationRuns, reports: ReconciliationReports
) -> Methods:
    """The methods of the service."""
    return {**_submissions(submissions), **_runs(running, reports), **_reports(reports)}


# --- submissions ------------------------------------------------------------------------------------------------------


def _submissions(submissions: Submissions) -> Methods:
    def submitting(source: str, rows: _RowReader | None, response: type[Message]) -> Callable[..., Awaitable[bytes]]:
        async def submit(caller: Caller, messages: AsyncIterator[Any]) -> bytes:
            stored = await _take(submissions, caller, source, messages, rows)
            return response(submission=_submission(stored)).SerializeToString()

        return submit

    wallet = submitting(WALLET, _RowReader("rows", _wallet_record), pb.SubmitWalletStatementResponse)
    receipts = submitting(RECEIPTS, _RowReader("receipts", _receipt_record), pb.SubmitReceiptsResponse)
    regulator = submitting(REGULATOR, None, pb.SubmitRegulatorBookResponse)

    async def list_submissions(caller: Caller, message: pb.ListSubmissionsRequest) -> pb.ListSubmissionsResponse:
        operator = operator_of(caller, message.operator)
        found, token = await submissions.page(operator, message.page_size, message.page_token)
        return pb.ListSubmissionsResponse(submissions=map(_submission, found), next_page_token=token)

    return {
        "SubmitWalletStatement": ClientStream(pb.SubmitWalletStatementRequest, wallet),
        "SubmitReceipts": ClientStream(pb.SubmitReceiptsRequest, receipts),
        "SubmitRegulatorBook": ClientStream(pb.SubmitRegulatorBookRequest, regulator),
        "ListSubmissions": paged(pb.ListSubmissionsRequest, list_submissions),
    }


@dataclass(frozen=True, slots=True)
class _RowReader:
    """How the rows of a message are read: the field that holds them, and what makes a record of a row."""

    field: str
    record: Callable[[Any, int], Record]


async def _take(
    submissions: Submissions, caller: Caller, source: str, messages: AsyncIterator[Any], rows: _RowReader | None
) -> Submission:
    """Store a submission. The stream must have this order: the header, then rows, then their number."""
    first = await anext(messages, None)
    if first is None or [field.name for field, _ in first.ListFields()] != ["header"]:
        raise _order("header", "the first message must hold the header, and nothing else")
    upload = await submissions.begin(caller, source, _header(caller, source, first.header))
    try:
        before = 0
        async for message in messages:
            names = [field.name for field, _ in message.ListFields()]
            if names == ["total_rows"]:
                if await anext(messages, None) is not None:
                    raise _order("total_rows", "total_rows must be in the last message")
                return await upload.finish(message.total_rows)
            before += await _add(upload, message, names, rows, before)
        raise _order("total_rows", "the stream was cut off: its last message must hold total_rows")
    finally:
        upload.close()


async def _add(upload: SubmissionUpload, message: Any, names: list[str], rows: _RowReader | None, before: int) -> int:
    due = "data" if rows is None else rows.field
    if names != [due]:
        raise _order(due, f"a message between header and total_rows must hold {due}, and nothing else")
    if rows is None:
        await upload.add_data(message.data)
        return 0
    records = [rows.record(row, number) for number, row in enumerate(getattr(message, due), before + 1)]
    await upload.add(records)
    return len(records)


def _order(field: str, limit: str) -> InvalidFieldError:
    return InvalidFieldError(limit, field=field, limit=limit)


def _header(caller: Caller, source: str, header: pb.SubmissionHeader) -> Header:
    if source != REGULATOR and header.operator:
        raise InvalidFieldError(
            "operator must be empty: it is the caller", field="operator", value=header.operator[:80]
        )
    operator = header.operator if source == REGULATOR else caller.party
    return Header(header.request_id, header.first_day, header.last_day, header.currency, operator)


def _wallet_record(row: pb.WalletRow, number: int) -> Record:
    if row.kind not in _KINDS or row.status not in _STATUSES:
        field = "kind" if row.kind not in _KINDS else "status"
        raise InvalidFieldError(f"row {number}: {field} has an unknown value", field=f"rows.{field}", row=number)
    record = {
        "transaction_id": row.transaction_id, "kind": _KINDS[row.kind], "player": row.player,
        "amount_minor": str(row.amount_minor), "reference": row.reference, "status": _STATUSES[row.status],
    }  # fmt: skip
    if row.HasField("time"):
        record["time"] = format_time(_milliseconds(row.time, "rows.time", number))
    if row.HasField("balance_after_minor"):
        record["balance_after_minor"] = str(row.balance_after_minor)
    return record


def _receipt_record(receipt: pb.Receipt, number: int) -> Record:
    record = {
        "session_id": receipt.session_id, "round_no": str(receipt.round_no),
        "opening_hash": receipt.opening_hash.hex(), "round_id": receipt.round_id,
    }  # fmt: skip
    if receipt.HasField("time"):
        record["time"] = format_time(_milliseconds(receipt.time, "receipts.time", number))
    return record


def _milliseconds(time: Timestamp, field: str, number: int = 0) -> int:
    time_ms, rest = divmod(time.seconds * 1_000_000_000 + time.nanos, 1_000_000)
    if rest or not 0 <= time_ms <= TIME_MS_MAX or not 0 <= time.nanos < 1_000_000_000:
        row = f"row {number}: " if number else ""
        raise InvalidFieldError(
            f"{row}time must be a whole millisecond in the years 1970 to 9999", field=field, row=number
        )
    return time_ms


def _submission(stored: Submission) -> pb.Submission:
    return pb.Submission(
        submission_id=stored.submission_id,
        **asdict(stored.header),
        **same_fields(stored, "party", "rows", "sha256"),
        source=_SOURCES[stored.source],
        time=time_fields(stored.time_ms),
    )


# --- runs and reports -------------------------------------------------------------------------------------------------


def _runs(running: ReconciliationRuns, reports: ReconciliationReports) -> Methods:
    async def run(caller: Caller, message: pb.RunReconciliationRequest) -> bytes:
        request = RunRequest(
            operator=operator_of(caller, message.operator),
            wallet=list(message.wallet_submission_ids),
            receipts=list(message.receipts_submission_ids),
            regulator=list(message.regulator_submission_ids),
            embedded_regulator=message.embedded_regulator,
            root=message.root,
            period=_period(message),
            cut_off_s=message.cut_off_s if message.HasField("cut_off_s") else None,
            allow_rejects=message.allow_rejects,
        )
        report_id = await running.run(caller, message.request_id, request)
        return pb.RunReconciliationResponse(report_id=report_id).SerializeToString()

    async def get_report(caller: Caller, message: pb.GetReportRequest) -> AsyncIterator[bytes]:
        operator = operator_of(caller, message.operator)
        report = await reports.report(operator, message.report_id)
        yield pb.GetReportResponse(summary=_summary(report)).SerializeToString()
        if message.file:
            async for data in reports.data(caller, operator, message.report_id, message.file):
                yield pb.GetReportResponse(data=data).SerializeToString()

    return {
        "RunReconciliation": Unary(pb.RunReconciliationRequest, run),
        "GetReport": ServerStream(pb.GetReportRequest, get_report),
    }


def _reports(reports: ReconciliationReports) -> Methods:
    async def list_reports(caller: Caller, message: pb.ListReportsRequest) -> pb.ListReportsResponse:
        operator = operator_of(caller, message.operator)
        found, token = await reports.page(operator, message.page_size, message.page_token)
        return pb.ListReportsResponse(reports=map(_summary, found), next_page_token=token)

    async def list_breaks(caller: Caller, message: pb.ListBreaksRequest) -> pb.ListBreaksResponse:
        rows, token = await reports.breaks(
            operator_of(caller, message.operator),
            message.report_id,
            message.break_class,
            message.page_size,
            message.page_token,
        )
        return pb.ListBreaksResponse(breaks=map(_break, rows), next_page_token=token)

    async def resolve_break(caller: Caller, message: pb.ResolveBreakRequest) -> bytes:
        entry_no = await reports.resolve(
            caller,
            message.request_id,
            operator_of(caller, message.operator),
            message.report_id,
            Settling(message.break_id, message.reason, message.evidence),
        )
        return pb.ResolveBreakResponse(resolved=entry_no > 0, entry_no=entry_no).SerializeToString()

    async def countersign(caller: Caller, message: pb.CountersignRequest) -> bytes:
        count = await reports.countersign(
            caller, message.request_id, message.report_id, message.envelope, message.public_key
        )
        return pb.CountersignResponse(countersignatures=count).SerializeToString()

    return {
        "ListReports": paged(pb.ListReportsRequest, list_reports),
        "ListBreaks": paged(pb.ListBreaksRequest, list_breaks),
        "ResolveBreak": Unary(pb.ResolveBreakRequest, resolve_break),
        "Countersign": Unary(pb.CountersignRequest, countersign),
    }


def _period(message: pb.RunReconciliationRequest) -> tuple[int, int] | None:
    names = ("period_start_time", "period_end_time")
    given = [message.HasField("period_start_time"), message.HasField("period_end_time")]
    if not any(given):
        return None
    if not all(given):
        missing = names[given.index(False)]
        raise InvalidFieldError(f"{missing} is missing: a period needs start and end", field=missing)
    return _milliseconds(message.period_start_time, names[0]), _milliseconds(message.period_end_time, names[1])


def _summary(report: Report) -> pb.ReportSummary:
    summary, failure = report.summary, report.failure
    return pb.ReportSummary(
        report_id=report.report_id,
        operator=report.operator,
        party=report.party,
        time=time_fields(report.time_ms),
        state=_STATES[report.state],
        failure_reason=failure.get("reason", ""),
        failure=failure.get("message", ""),
        verdict=summary.get("verdict", ""),
        open_breaks=summary.get("open", 0),
        resolved_breaks=summary.get("resolved", 0),
        rejected_rows=summary.get("rejected", 0),
        sha256=summary.get("sha256", ""),
        signed=summary.get("signed", False),
    )


def _break(row: dict[str, str]) -> pb.Break:
    return pb.Break(
        break_id=row["break_id"],
        break_class=row["class"],
        resolved=row["state"] == "resolved",
        owed=row["owed"] == "yes",
        time=time_fields(parse_time(row["time"])),
        amount_minor=int(row["amount_minor"]),
        **{name: row[name] for name in _BREAK_TEXTS},
    )
