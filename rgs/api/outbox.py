"""The part of rgs.v1.AdminService over `rgs.service.admin.outbox`: pending credits and held reports."""

from __future__ import annotations

from typing import Final

from rgs.api.calls import Methods, Unary
from rgs.api.mapping import PROGRESS_NAMES, same_fields, time_fields
from rgs.api.orders import ordered
from rgs.api.pages import paged
from rgs.service.admin.outbox import Outbox, PendingCredit
from rgs.service.callers import Caller
from rgs.service.money.transfers import transaction_of
from rgs.v1 import admin_pb2 as pb

_STAGE_OF_REPORTS: Final = frozenset({"stages", "held"})


def outbox_methods(outbox: Outbox) -> Methods:
    """The methods of pending credits, reports and peers."""

    async def list_pending_credits(
        caller: Caller, message: pb.ListPendingCreditsRequest
    ) -> pb.ListPendingCreditsResponse:
        owed, token = await outbox.pending_credits(caller, message.page_size, message.page_token)
        return pb.ListPendingCreditsResponse(credits=map(_owed, owed), next_page_token=token)

    async def get_outbox(_caller: Caller, _message: pb.GetOutboxRequest) -> bytes:
        rows, readings = await outbox.figures()
        figures = [
            pb.OutboxFigure(
                kind=row.kind,
                progress="" if row.kind in _STAGE_OF_REPORTS else PROGRESS_NAMES[row.progress],
                count=row.count,
                oldest_time=time_fields(row.oldest_ms),
            )
            for row in rows
        ]
        peers = [
            pb.PeerFigure(
                **same_fields(reading, "name", "in_flight", "unknown", "turned_away"), circuit=reading.state.value
            )
            for reading in readings
        ]
        return pb.GetOutboxResponse(figures=figures, peers=peers).SerializeToString()

    async def list_held_reports(_caller: Caller, message: pb.ListHeldReportsRequest) -> pb.ListHeldReportsResponse:
        held, token = await outbox.held_reports(message.page_size, message.page_token)
        reports = [
            pb.HeldReports(kind=row.kind, subject=row.subject, reason=row.reason, since_time=time_fields(row.since_ms))
            for row in held
        ]
        return pb.ListHeldReportsResponse(reports=reports, next_page_token=token)

    released = ("kind", "subject", "reason", "close_out")
    return {
        "ListPendingCredits": paged(pb.ListPendingCreditsRequest, list_pending_credits),
        "GetOutbox": Unary(pb.GetOutboxRequest, get_outbox),
        "ListHeldReports": paged(pb.ListHeldReportsRequest, list_held_reports),
        "ReleaseReports": ordered(pb.ReleaseReportsRequest, outbox.release_reports, *released),
    }


def _owed(credit: PendingCredit) -> pb.PendingCredit:
    operation = credit.operation
    return pb.PendingCredit(
        transaction_id=transaction_of(operation),
        **same_fields(operation, "session_id", "amount_minor", "kind", "attempts"),
        **same_fields(credit, "operator", "player", "currency", "age_ms"),
        since_time=time_fields(operation.created_ms),
        next_time=time_fields(operation.next_ms),
        last_reason=operation.reason,
        unknown=PROGRESS_NAMES[operation.progress] == "unknown",
    )
