"""An operator's side of reconciliation over the wire, for tests: its books as streams, and a report awaited."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import grpc

from rgs.store.wallet import WalletEntry, WalletStore
from rgs.v1 import audit_pb2, session_pb2
from rgs.v1 import reconciliation_pb2 as pb
from rgs.v1.reconciliation_pb2_grpc import ReconciliationServiceStub
from tests.support.api.client import ApiClient, refused, request_id
from tests.support.api.harness import ApiHarness, reason_in, status_in

OPERATOR = "demo-operator"
FIRST, LAST = "2026-01-01", "2099-12-31"
DAYS = {"first_day": FIRST, "last_day": LAST}
KINDS_OF = {"debit": 1, "credit": 2, "rollback": 3}


def books(harness: ApiHarness, certificate: Any = OPERATOR) -> Any:
    return ReconciliationServiceStub(harness.channel(certificate))


async def play(harness: ApiHarness) -> ApiClient:
    """A session of two rounds, from its opening to its close."""
    player = await ApiClient(harness.channel()).seated()
    for _ in range(2):
        await player.round_to_the_end()
    session = {"session_id": player.session_id}
    await player.sessions.EndParticipation(session_pb2.EndParticipationRequest(request_id=request_id(), **session))
    await player.sessions.CloseSession(session_pb2.CloseSessionRequest(request_id=request_id(), **session))
    return player


def wallet_rows(harness: ApiHarness) -> list[pb.WalletRow]:
    """What the embedded wallet moved."""
    store = WalletStore(harness.config.wallet)
    with closing(store):
        return [wallet_row(entry) for entry in store.rows() if entry.kind in KINDS_OF]


def wallet_row(entry: WalletEntry) -> pb.WalletRow:
    row = pb.WalletRow(
        transaction_id=entry.transaction_id or "", player=entry.player, amount_minor=entry.amount_minor,
        reference=entry.reference, kind=KINDS_OF[entry.kind],  # type: ignore[arg-type]
    )  # fmt: skip
    row.time.FromJsonString(entry.recorded_time)
    return row


async def openings(player: ApiClient) -> list[bytes]:
    request = audit_pb2.ListStatementsRequest(session_id=player.session_id)
    statements = (await player.audit.ListStatements(request)).statements
    return [statement.envelope for statement in statements if statement.kind == "round_opening"]


def receipt(line: bytes) -> pb.Receipt:
    row = json.loads(line)
    receipt = pb.Receipt(
        session_id=row["session_id"], round_no=int(row["round_no"]), opening_hash=bytes.fromhex(row["opening_hash"]),
        round_id=row["round_id"],
    )  # fmt: skip
    receipt.time.FromJsonString(row["time"])
    return receipt


def header(**changes: str) -> pb.SubmissionHeader:
    return pb.SubmissionHeader(**{"request_id": request_id(), "currency": "EUR", **DAYS, **changes})


def wallet_stream(rows: Sequence[pb.WalletRow], head: pb.SubmissionHeader | None = None) -> list[Any]:
    requested = pb.SubmitWalletStatementRequest
    batches = [requested(rows=rows[at : at + 2]) for at in range(0, len(rows), 2)]
    return [requested(header=head or header()), *batches, requested(total_rows=len(rows))]


async def submit_wallet(harness: ApiHarness, rows: Sequence[pb.WalletRow]) -> pb.Submission:
    submission: pb.Submission = (await books(harness).SubmitWalletStatement(iter(wallet_stream(rows)))).submission
    return submission


async def submit_receipts(harness: ApiHarness, lines: Sequence[bytes]) -> pb.Submission:
    requested = pb.SubmitReceiptsRequest
    stream = [
        requested(header=header(currency="")),
        requested(receipts=map(receipt, lines)),
        requested(total_rows=len(lines)),
    ]
    submission: pb.Submission = (await books(harness).SubmitReceipts(iter(stream))).submission
    return submission


async def started(stub: Any, request: Any) -> str:
    """Begin a run, again where the process of the run before has not ended yet; the report's id."""
    for _ in range(100):
        try:
            return str((await stub.RunReconciliation(request)).report_id)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
                raise
        await asyncio.sleep(0.2)
    raise AssertionError("the run before did not end within 20 s")


async def finished(stub: Any, report_id: str, operator: str = "") -> pb.ReportSummary:
    """The summary, once the run has ended."""
    while True:
        request = pb.GetReportRequest(report_id=report_id, operator=operator)
        (only,) = [part async for part in stub.GetReport(request)]
        if only.summary.state != pb.REPORT_STATE_RUNNING:
            summary: pb.ReportSummary = only.summary
            return summary
        await asyncio.sleep(0.05)


async def download(stub: Any, report_id: str, file: str, operator: str = "") -> bytes:
    request = pb.GetReportRequest(report_id=report_id, operator=operator, file=file)
    return b"".join([part.data async for part in stub.GetReport(request)])


async def reason_of(call: Any) -> str:
    return reason_in(status_in(await refused(call)))
