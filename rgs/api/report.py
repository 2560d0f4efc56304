"""rgs.v1.ReportService over `rgs.service.audit`: the calling operator's own totals and finals."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict

from rgs.api.calls import Methods, ServerStream
from rgs.api.history import summary_message
from rgs.api.mapping import same_fields
from rgs.api.pages import paged
from rgs.api.parsing import check_currency
from rgs.service.audit.finals import FinalsReader, PlacedFinal
from rgs.service.audit.totals import Reports
from rgs.service.callers import Caller
from rgs.service.play.history import RoundSummary
from rgs.store.interface import DayTotalsRow
from rgs.v1 import audit_pb2
from rgs.v1 import report_pb2 as pb

SERVICE = pb.DESCRIPTOR.services_by_name["ReportService"].full_name


def report_methods(reports: Reports, finals: FinalsReader) -> Methods:
    """The methods of the service."""

    async def list_day_totals(caller: Caller, message: pb.ListDayTotalsRequest) -> pb.ListDayTotalsResponse:
        if message.currency:
            check_currency(message.currency)
        wanted = same_fields(message, "first_day", "last_day", "game", "currency")
        rows, token = await reports.list_day_totals(
            caller.party, **wanted, page_size=message.page_size, page_token=message.page_token
        )
        return pb.ListDayTotalsResponse(totals=map(_totals, rows), next_page_token=token)

    async def watch_finals(caller: Caller, message: pb.WatchFinalsRequest) -> AsyncIterator[bytes | None]:
        async for final in finals.watch(caller, **same_fields(message, "resume_token", "first_no", "follow")):
            yield None if final is None else _final(final)

    return {
        "ListDayTotals": paged(pb.ListDayTotalsRequest, list_day_totals),
        "WatchFinals": ServerStream(pb.WatchFinalsRequest, watch_finals),
    }


def _totals(row: DayTotalsRow) -> pb.DayTotals:
    amounts = same_fields(row, "rounds", "staked_minor", "returned_minor", "void_rounds", "void_minor")
    return pb.DayTotals(**asdict(row.key), **amounts)


def _final(final: PlacedFinal) -> bytes:
    listed = final.listed
    statement = audit_pb2.Statement(
        **same_fields(listed, "kind", "instance", "statement_no", "session_id", "link_no", "round_id"),
        **same_fields(listed, "hash", "envelope", "private"),
        path=final.path,
    )
    return pb.WatchFinalsResponse(
        final_no=listed.final_no,
        statement=statement,
        summary=summary_message(RoundSummary(final.round, final.session)),
        resume_token=final.resume_token,
    ).SerializeToString()
