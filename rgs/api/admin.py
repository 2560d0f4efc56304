"""rgs.v1.AdminService over `rgs.service.admin`: what admins do, and what they read of all parties."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import asdict
from typing import Any, Final

from google.protobuf.message import Message

from rgs.api.calls import Methods, ServerStream, Unary
from rgs.api.mapping import PROGRESS_NAMES, ROUND_STATUSES, reply_bytes, same_fields, time_fields
from rgs.api.pages import paged
from rgs.core.errors import InvalidFieldError
from rgs.core.returns.tally import Reading
from rgs.core.values import check_range
from rgs.service.admin.admin import Admin, VoidResult
from rgs.service.admin.certificates import Certificates
from rgs.service.admin.monitoring import Measured, Monitoring
from rgs.service.admin.orders import order_of
from rgs.service.admin.outbox import Outbox, PendingCredit
from rgs.service.audit.totals import EventRow, Reports, totals_filter
from rgs.service.availability import GuardState
from rgs.service.callers import Caller, Reply
from rgs.service.money.transfers import transaction_of
from rgs.store.interface import PartyRow, TotalsRow
from rgs.v1 import admin_pb2 as pb
from rgs.v1.common_pb2 import ROUND_STATUS_UNSPECIFIED

SERVICE = pb.DESCRIPTOR.services_by_name["AdminService"].full_name

_SUBJECTS: Final = {"play": (), "operator": ("operator",), "game": ("game",), "player": ("operator", "player")}
"""Scope of a switch -> the request fields that name its subject; a slash joins them."""
_SCOPES: Final = {scope: pb.SwitchScope.Value(f"SWITCH_SCOPE_{scope.upper()}") for scope in _SUBJECTS}
_SCOPE_OF: Final = {number: scope for scope, number in _SCOPES.items()}
_STAGES_OF_REPORTS: Final = frozenset({"stages", "held"})
"""What waits as a report, and not as an operation with a progress."""


def admin_methods(
    admin: Admin, certificates: Certificates, reports: Reports, outbox: Outbox, monitoring: Monitoring
) -> Methods:
    """The methods of the service."""
    return {
        **_changes(admin),
        **_allow_list(certificates),
        **_reads(admin, reports),
        **_outbox(outbox),
        **_returns(monitoring),
    }


def _changes(admin: Admin) -> Methods:
    async def set_switch(caller: Caller, message: pb.SetSwitchRequest) -> bytes:
        scope, subject = _subject(message)
        order = order_of(
            caller, "SetSwitch", message.request_id,
            scope=scope, subject=subject, enabled=message.enabled, reason=message.reason,
        )  # fmt: skip
        reply = await admin.set_switch(
            order, scope, subject, enabled=message.enabled, reason=message.reason, dry_run=message.dry_run
        )
        return reply_bytes("SetSwitch", reply)

    async def propose_void(caller: Caller, message: pb.ProposeVoidRequest) -> bytes:
        round_ids = list(message.round_ids)
        order = order_of(caller, "ProposeVoid", message.request_id, round_ids=round_ids, reason=message.reason)
        results = await admin.propose_void(order, round_ids, message.reason, dry_run=message.dry_run)
        return pb.ProposeVoidResponse(results=map(_void_result, results)).SerializeToString()

    async def approve_void(caller: Caller, message: pb.ApproveVoidRequest) -> bytes:
        round_ids = list(message.round_ids)
        order = order_of(caller, "ApproveVoid", message.request_id, round_ids=round_ids)
        results = await admin.approve_void(order, round_ids, dry_run=message.dry_run)
        return pb.ApproveVoidResponse(results=map(_void_result, results)).SerializeToString()

    return {
        "SetSwitch": Unary(pb.SetSwitchRequest, set_switch),
        "ClearGuard": _ordered(pb.ClearGuardRequest, admin.clear_guard, "name", "reason"),
        "ReportMalfunction": _ordered(pb.ReportMalfunctionRequest, admin.report_malfunction, "round_id", "code"),
        "ResumeRound": _ordered(pb.ResumeRoundRequest, admin.resume_round, "round_id", "reason"),
        "ProposeVoid": Unary(pb.ProposeVoidRequest, propose_void),
        "ApproveVoid": Unary(pb.ApproveVoidRequest, approve_void),
    }


def _allow_list(certificates: Certificates) -> Methods:
    async def add_certificate(caller: Caller, message: pb.AddCertificateRequest) -> bytes:
        order = order_of(
            caller, "AddCertificate", message.request_id,
            certificate=message.certificate.hex(), jurisdiction=message.jurisdiction, reason=message.reason,
            **({"operator": message.operator} if message.operator else {}),
        )  # fmt: skip
        reply = await certificates.add(
            order,
            message.certificate,
            message.jurisdiction,
            message.reason,
            _added_certificate,
            operator=message.operator,
        )
        return reply_bytes("AddCertificate", reply)

    async def list_certificates(_caller: Caller, message: pb.ListCertificatesRequest) -> bytes:
        rows = await certificates.list(removed_too=message.removed_too)
        return pb.ListCertificatesResponse(certificates=map(_certificate, rows)).SerializeToString()

    return {
        "AddCertificate": Unary(pb.AddCertificateRequest, add_certificate),
        "RemoveCertificate": _ordered(pb.RemoveCertificateRequest, certificates.remove, "fingerprint", "reason"),
        "ListCertificates": Unary(pb.ListCertificatesRequest, list_certificates),
    }


def _reads(admin: Admin, reports: Reports) -> Methods:
    async def list_switches(_caller: Caller, _message: pb.ListSwitchesRequest) -> bytes:
        switches = [
            pb.Switch(
                scope=_SCOPES[switch.scope],
                reason=switch.reason,
                admin=switch.party,
                time=time_fields(switch.time_ms),
                **dict(zip(_SUBJECTS[switch.scope], switch.subject.split("/"), strict=False)),
            )
            for switch in admin.switches()
        ]
        return pb.ListSwitchesResponse(switches=switches).SerializeToString()

    async def list_guards(_caller: Caller, _message: pb.ListGuardsRequest) -> bytes:
        return pb.ListGuardsResponse(guards=map(_guard, admin.guards())).SerializeToString()

    async def list_events(_caller: Caller, message: pb.ListEventsRequest) -> pb.ListEventsResponse:
        events, token = await reports.list_events(message.code, message.page_size, message.page_token)
        return pb.ListEventsResponse(events=map(_event, events), next_page_token=token)

    async def list_totals(_caller: Caller, message: pb.ListTotalsRequest) -> pb.ListTotalsResponse:
        wanted = totals_filter(
            message.first_day, message.last_day, operator=message.operator, player=message.player, game=message.game
        )
        rows, token = await reports.list_totals(wanted, message.page_size, message.page_token)
        return pb.ListTotalsResponse(totals=_totals(rows), next_page_token=token)

    async def export_totals(_caller: Caller, message: pb.ExportTotalsRequest) -> AsyncIterator[bytes]:
        wanted = totals_filter(message.first_day, message.last_day, operator=message.operator)
        async for rows in reports.export_totals(wanted):
            yield pb.ExportTotalsResponse(totals=_totals(rows)).SerializeToString()

    return {
        "ListSwitches": Unary(pb.ListSwitchesRequest, list_switches),
        "ListGuards": Unary(pb.ListGuardsRequest, list_guards),
        "ListEvents": paged(pb.ListEventsRequest, list_events),
        "ListTotals": paged(pb.ListTotalsRequest, list_totals),
        "ExportTotals": ServerStream(pb.ExportTotalsRequest, export_totals),
    }


def _outbox(outbox: Outbox) -> Methods:
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
                progress="" if row.kind in _STAGES_OF_REPORTS else PROGRESS_NAMES[row.progress],
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
        "ReleaseReports": _ordered(pb.ReleaseReportsRequest, outbox.release_reports, *released),
    }


def _returns(monitoring: Monitoring) -> Methods:
    async def get_returns(_caller: Caller, _message: pb.GetReturnsRequest) -> bytes:
        measured, passed_over = await monitoring.measured()
        return pb.GetReturnsResponse(rulesets=map(_ruleset, measured), passed_over=passed_over).SerializeToString()

    return {"GetReturns": Unary(pb.GetReturnsRequest, get_returns)}


def _ordered(request: type[Message], give: Callable[..., Awaitable[Reply]], *fields: str) -> Unary[Any]:
    """The method of an order, which answers with its signed event (`rgs.service.admin.orders`). `give` gets the order
    and, by their names, these fields, which are its content.
    """
    method = request.DESCRIPTOR.name.removesuffix("Request")

    async def behave(caller: Caller, message: Any) -> bytes:
        content = same_fields(message, *fields)
        order = order_of(caller, method, message.request_id, **content)
        return reply_bytes(method, await give(order, **content))

    return Unary(request, behave)


def _subject(message: pb.SetSwitchRequest) -> tuple[str, str]:
    """(scope, subject) of a switch. InvalidFieldError for a field that its scope lacks or does not have."""
    check_range(message.scope, "scope", min(_SCOPE_OF), max(_SCOPE_OF))
    scope = _SCOPE_OF[message.scope]
    needed = _SUBJECTS[scope]
    for field in ("operator", "game", "player"):
        value: str = getattr(message, field)
        if bool(value) != (field in needed) or "/" in value:
            limit = " and ".join(needed) or "nothing"
            raise InvalidFieldError(
                f"a switch of scope {scope} must name {limit}", field=field, limit=limit, value=value[:80]
            )
    return scope, "/".join(getattr(message, field) for field in needed)


def _void_result(result: VoidResult) -> pb.VoidResult:
    return pb.VoidResult(
        round_id=result.round_id,
        status=ROUND_STATUS_UNSPECIFIED if result.status is None else ROUND_STATUSES[result.status],
        statement=result.envelope,
        **same_fields(result, "refusal", "staked_minor", "currency", "reason"),
    )


def _added_certificate(row: PartyRow) -> bytes:
    return pb.AddCertificateResponse(certificate=_certificate(row)).SerializeToString()


def _certificate(row: PartyRow) -> pb.Certificate:
    return pb.Certificate(
        **same_fields(row, "fingerprint", "party", "role", "jurisdiction", "operator"),
        added_time=time_fields(row.added_ms),
        removed_time=time_fields(row.removed_ms or 0),
        end_time=time_fields(row.last_ms or 0),
    )


def _guard(state: GuardState) -> pb.Guard:
    return pb.Guard(**same_fields(state, "name", "closed", "latched", "code"), time=time_fields(state.since_ms))


def _event(event: EventRow) -> pb.Event:
    return pb.Event(
        **same_fields(event, "code", "subject", "before", "after", "actor", "reason", "session_id", "round_id"),
        time=time_fields(event.time_ms),
        statement=event.envelope,
    )


def _totals(rows: Iterable[TotalsRow]) -> list[pb.Totals]:
    counted = ("rounds", "staked_minor", "returned_minor", "void_rounds", "void_minor")
    return [pb.Totals(**asdict(row.key), **same_fields(row, *counted)) for row in rows]


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


def _ruleset(measured: Measured) -> pb.MeasuredRuleset:
    tally = measured.tally
    return pb.MeasuredRuleset(
        ruleset_id=measured.ruleset_id,
        ruleset_sha256=measured.ruleset_sha256,
        rounds=tally.life.rounds,
        void_rounds=tally.voids,
        unseen_rounds=tally.unseen,
        figures=_figures(measured.readings),
        bets=[
            pb.MeasuredBet(bet=bet, currency=currency, staked_minor=staked, returned_minor=returned)
            for currency, bets in sorted(tally.money.items())
            for bet, (staked, returned) in sorted(bets.items())
        ],
    )


def _figures(readings: Iterable[Reading]) -> list[pb.MeasuredFigure]:
    return [
        pb.MeasuredFigure(
            name=reading.figure,
            series=reading.series,
            rounds=reading.rounds,
            **{name: _decimal(getattr(reading, name)) for name in ("exact", "measured", "low", "high")},
            evidence=f"{reading.evidence:.3f}",
            limit=f"{reading.limit:.3f}",
            alarming=reading.is_alarming,
        )
        for reading in readings
    ]


def _decimal(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"
