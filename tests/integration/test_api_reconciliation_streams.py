"""What submits to reconciliation in bad faith, two runs at once, and the end of a process in the middle."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from rgs.core.errors import ReconciliationBusyError
from rgs.node import reconcile_process
from rgs.service.reconciliation.files import Shelf
from rgs.v1 import reconciliation_pb2 as pb
from rgs.v1.reconciliation_pb2_grpc import ReconciliationServiceStub
from tests.support.api.client import refused, request_id
from tests.support.api.harness import ApiHarness, info_in, serving, status_in
from tests.support.api.submitting import (
    FIRST,
    LAST,
    OPERATOR,
    books,
    finished,
    header,
    play,
    reason_of,
    started,
    submit_wallet,
    wallet_rows,
    wallet_stream,
)
from tests.support.waiting import until

pytestmark = pytest.mark.slow

# --- hostile streams --------------------------------------------------------------------------------------------------


def left(harness: ApiHarness) -> list[str]:
    """Every file of submissions."""
    return sorted(path.name for path in harness.config.reconciliation.glob("*/submissions/*/*"))


async def test_a_repeat_is_the_same_submission_and_other_content_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        await play(harness)
        rows, head, stub = wallet_rows(harness), header(), books(harness)
        answers = [await stub.SubmitWalletStatement(iter(wallet_stream(rows, head))) for _ in range(2)]
        assert answers[0] == answers[1]
        assert (
            await reason_of(stub.SubmitWalletStatement(iter(wallet_stream(rows[:1], head)))) == "IDEMPOTENCY_CONFLICT"
        )
        assert left(harness) == ["rows.jsonl", "submission.json"]
        assert len((await stub.ListSubmissions(pb.ListSubmissionsRequest())).submissions) == 1


def _rows(count: int = 3, **changes: Any) -> list[pb.WalletRow]:
    rows = [
        pb.WalletRow(transaction_id=f"t{n}", kind=1, amount_minor=5, time={"seconds": 1_790_000_000})  # type: ignore[arg-type]
        for n in range(count)
    ]
    for name, value in changes.items():
        if name == "time":
            rows[-1].time.FromJsonString(value)
        else:
            setattr(rows[-1], name, value)
    return rows


requested = pb.SubmitWalletStatementRequest
HOSTILE: dict[str, tuple[list[Any], str]] = {
    "nothing": ([], "header"),
    "no header": ([requested(rows=_rows())], "header"),
    "header with rows": ([requested(header=header(), rows=_rows())], "header"),
    "header twice": ([requested(header=header()), requested(header=header())], "rows"),
    "end first": ([requested(total_rows=3)], "header"),
    "no end": ([requested(header=header()), requested(rows=_rows())], "total_rows"),
    "nothing between": ([requested(header=header()), requested(total_rows=1)], "total_rows"),
    "an empty message": ([requested(header=header()), requested(), requested(total_rows=1)], "rows"),
    "rows behind the end": ([*wallet_stream(_rows()), requested(rows=_rows())], "total_rows"),
    "another number": ([requested(header=header()), requested(rows=_rows()), requested(total_rows=4)], "total_rows"),
    "end with rows": ([requested(header=header()), requested(rows=_rows(), total_rows=3)], "rows"),
    "too many rows": (wallet_stream(_rows(11)), "rows"),
    "no kind": (wallet_stream(_rows(kind=0)), "rows.kind"),
    "kind of tomorrow": (wallet_stream(_rows(kind=9)), "rows.kind"),
    "status of tomorrow": (wallet_stream(_rows(status=9)), "rows.status"),
    "no id": (wallet_stream(_rows(transaction_id="")), "rows"),
    "a long id": (wallet_stream(_rows(transaction_id="x" * 257)), "rows"),
    "a line feed": (wallet_stream(_rows(player="a\nb")), "rows"),
    "below zero": (wallet_stream(_rows(amount_minor=-1)), "rows"),
    "another day": (wallet_stream(_rows(time="2025-12-31T23:59:59.999Z")), "rows"),
    "half a millisecond": (wallet_stream(_rows(time="2026-12-31T23:59:59.9995Z")), "rows.time"),
    "no request id": (wallet_stream(_rows(), header(request_id="")), "request_id"),
    "no currency": (wallet_stream(_rows(), header(currency="")), "currency"),
    "no day": (wallet_stream(_rows(), header(first_day="today")), "first_day"),
    "days backwards": (wallet_stream(_rows(), header(first_day=LAST, last_day=FIRST)), "last_day"),
    "somebody else's": (wallet_stream(_rows(), header(operator="other")), "operator"),
}  # fmt: skip


async def refusal_of(harness: ApiHarness, messages: list[Any], method: str = "SubmitWalletStatement") -> ErrorInfo:
    """How a stream is refused, by gRPC's blocking client: that of asyncio loses the status if it is just writing."""
    own = harness.certificate(OPERATOR)
    credentials = grpc.ssl_channel_credentials(harness.authority.certificate_pem, own.key_pem, own.certificate_pem)

    def send() -> bytes:
        with grpc.secure_channel(f"localhost:{harness.server.port}", credentials) as channel:
            with pytest.raises(grpc.RpcError) as caught:
                getattr(ReconciliationServiceStub(channel), method)(iter(messages))
            error: Any = caught.value
            return bytes(dict(error.trailing_metadata())["grpc-status-details-bin"])

    return info_in(Status.FromString(await asyncio.to_thread(send)))


async def test_hostile_streams_leave_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path, reconciliation_rows_max=10) as harness:
        stub = books(harness)
        for name, (messages, field) in HOSTILE.items():
            info = await refusal_of(harness, messages)
            assert (info.reason, info.metadata["field"]) == ("INVALID_FIELD", field), name
            assert left(harness) == [], name
        # A stream that is cut, or that nobody ends, leaves nothing; and one at a time is taken.
        call = stub.SubmitWalletStatement()
        await call.write(requested(header=header()))
        await call.write(requested(rows=_rows()))
        await until(lambda: bool(left(harness)))
        assert (await refusal_of(harness, wallet_stream(_rows()))).reason == "RECONCILIATION_BUSY"
        call.cancel()
        await until(lambda: not left(harness))
        assert (await stub.SubmitWalletStatement(iter(wallet_stream(_rows(10))))).submission.rows == 10
        receipts = [
            pb.SubmitReceiptsRequest(header=header(currency="")),
            pb.SubmitReceiptsRequest(receipts=[pb.Receipt(session_id="s", round_no=1, opening_hash=b"short")]),
        ]
        info = await refusal_of(harness, receipts, "SubmitReceipts")
        assert (info.reason, info.metadata["row"]) == ("INVALID_FIELD", "1")


async def test_an_operators_room_is_limited(tmp_path: Path) -> None:
    async with serving(tmp_path, reconciliation_stored_mb=1) as harness:
        stub, rows = books(harness), _rows(150)
        for row in rows:
            row.reference = "r" * 250
        many = [requested(header=header()), *[requested(rows=rows)] * 30, requested(total_rows=4_500)]
        info = await refusal_of(harness, many)
        assert (info.reason, info.metadata["field"]) == ("RECONCILIATION_FULL", "reconciliation_stored_mb")
        assert left(harness) == []
        # What is there counts, for new submissions and for runs.
        (harness.config.reconciliation / OPERATOR / "kept").write_bytes(bytes(1 << 20))
        assert (await refusal_of(harness, wallet_stream(rows[:2]))).reason == "RECONCILIATION_FULL"
        run = pb.RunReconciliationRequest(request_id=request_id(), embedded_regulator=True)
        assert await reason_of(stub.RunReconciliation(run)) == "RECONCILIATION_FULL"


# --- one at a time, and the end of the process ------------------------------------------------------------------------


async def stopped_job(
    harness: ApiHarness, monkeypatch: pytest.MonkeyPatch
) -> tuple[Any, pb.RunReconciliationRequest, int]:
    """A run whose process is stopped where it has just begun: its stub, its request, its process id."""
    begun: list[int] = []
    begin = reconcile_process.begin_job

    async def begin_stopped(*arguments: Any) -> Any:
        job: Any = await begin(*arguments)
        os.kill(job.pid, signal.SIGSTOP)
        begun.append(job.pid)
        return job

    monkeypatch.setattr("rgs.node.server.begin_job", begin_stopped)
    await harness.restart()
    await play(harness)
    wallet = await submit_wallet(harness, wallet_rows(harness))
    request = pb.RunReconciliationRequest(request_id=request_id(), wallet_submission_ids=[wallet.submission_id])
    stub = books(harness)
    await stub.RunReconciliation(request)
    monkeypatch.setattr("rgs.node.server.begin_job", begin)
    return stub, request, begun[0]


async def test_the_second_run_is_refused_and_play_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(tmp_path) as harness:
        stub, request, pid = await stopped_job(harness, monkeypatch)
        report_id = (await stub.RunReconciliation(request)).report_id  # the same again: no other run
        other = pb.RunReconciliationRequest(request_id=request_id(), embedded_regulator=True)
        assert await reason_of(stub.RunReconciliation(other)) == "RECONCILIATION_BUSY"
        info = info_in(status_in(await refused(stub.ListBreaks(pb.ListBreaksRequest(report_id=report_id)))))
        assert (info.reason, info.metadata["state"]) == ("REPORT_NOT_DONE", "REPORT_STATE_RUNNING")
        await play(harness)
        os.kill(pid, signal.SIGCONT)
        assert (await finished(stub, report_id)).state == pb.REPORT_STATE_DONE
        assert await started(stub, other) != report_id


async def test_a_process_that_is_killed_is_a_run_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(tmp_path) as harness:
        stub, request, pid = await stopped_job(harness, monkeypatch)
        report_id = (await stub.RunReconciliation(request)).report_id
        os.kill(pid, signal.SIGKILL)
        (folder,) = harness.config.reconciliation.glob("*/reports/*")
        await until((folder / "failed.json").exists)
        assert (await finished(stub, report_id)).failure_reason == "RECONCILIATION_FAILED"


async def test_a_restart_in_the_middle_leaves_no_half_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(tmp_path) as harness:
        _, request, _ = await stopped_job(harness, monkeypatch)
        (folder,) = harness.config.reconciliation.glob("*/reports/*")
        # What a run and an upload that were killed leave behind.
        for path in (folder / "inputs", folder / ".report.unfinished" / "work", folder / "report"):
            path.mkdir(parents=True)
            (path / "half").write_text("half")
        upload = harness.config.reconciliation / OPERATOR / "submissions" / f".{'0' * 32}.1"
        upload.mkdir()
        (upload / "rows.jsonl").write_text("half")
        await harness.restart()
        assert [path.name for path in folder.iterdir()] == ["run.json"]
        assert not upload.exists()
        stub = books(harness)
        assert (await finished(stub, folder.name)).state == pb.REPORT_STATE_INTERRUPTED
        assert await reason_of(stub.ListBreaks(pb.ListBreaksRequest(report_id=folder.name))) == "REPORT_NOT_DONE"
        # The same request begins it again.
        assert (await stub.RunReconciliation(request)).report_id == folder.name
        assert (await finished(stub, folder.name)).verdict == "clean"


def test_the_lock_is_one_and_a_live_upload_is_not_swept(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    descriptor = shelf.lock("a" * 32)
    try:
        assert shelf.running() == "a" * 32
        with pytest.raises(ReconciliationBusyError):
            shelf.lock("b" * 32)
    finally:
        os.close(descriptor)
    assert shelf.running() == ""
    rows = tmp_path / "op" / "submissions" / f".{'0' * 32}.1" / "rows.jsonl"
    rows.parent.mkdir(parents=True)
    with rows.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        shelf.sweep()
        assert rows.exists()
    shelf.sweep()
    assert not rows.parent.exists()
