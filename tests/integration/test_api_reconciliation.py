"""Reconciliation over the wire, at the whole server: submitted, run, read, resolved, countersigned; whose it is."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from rgs import __version__
from rgs.adapters.embedded.books import receipt_line
from rgs.core.statements import KINDS, Ed25519Signer, format_canonical, leaf_hash, parse_line, seal_envelope
from rgs.node.keyring import load_node_signer
from rgs.service.callers import Role
from rgs.service.reconciliation.countersigning import verify_report
from rgs.service.reconciliation.reconciliation import ReconcileRequest, Reconciliation
from rgs.v1 import reconciliation_pb2 as pb
from tests.support.api.client import refused, request_id
from tests.support.api.harness import ApiHarness, info_in, serving, status_in
from tests.support.api.submitting import (
    OPERATOR,
    books,
    download,
    finished,
    header,
    openings,
    play,
    reason_of,
    started,
    submit_receipts,
    submit_wallet,
    wallet_rows,
)
from tests.support.store.databases import fresh_database

pytestmark = pytest.mark.slow


@pytest.fixture
def plain_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of runs that are not isolated, and start sooner; in the other tests they are."""
    command = [sys.executable, "-m", "rgs"]
    monkeypatch.setattr("rgs.node.reconcile_process.isolated_command", lambda *arguments: [*command, *arguments])


async def run_with_a_break(harness: ApiHarness) -> tuple[Any, str]:
    """A run over a wallet that lacks the payout: the operator's stub, and the report's id."""
    await play(harness)
    wallet = await submit_wallet(harness, [row for row in wallet_rows(harness) if row.kind != 2])
    stub = books(harness)
    request = pb.RunReconciliationRequest(request_id=request_id(), wallet_submission_ids=[wallet.submission_id])
    report_id = await started(stub, request)
    assert (await finished(stub, report_id)).state == pb.REPORT_STATE_DONE
    return stub, report_id


# --- the whole way ----------------------------------------------------------------------------------------------------


async def test_a_clean_day_and_the_same_report_from_the_files(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = await play(harness)
        rows = wallet_rows(harness)
        lines = [receipt_line(opening) for opening in await openings(player)]
        assert (len(rows), len(lines)) == (2, 2)
        wallet, receipts = await submit_wallet(harness, rows), await submit_receipts(harness, lines)
        assert (wallet.rows, receipts.rows) == (2, 2)
        # The receipts are, to the byte, the file that `receipt_line` would have made.
        assert receipts.sha256 == hashlib.sha256(b"".join(lines)).hexdigest()
        stub = books(harness)
        listed = await stub.ListSubmissions(pb.ListSubmissionsRequest(page_size=1))
        rest = await stub.ListSubmissions(pb.ListSubmissionsRequest(page_token=listed.next_page_token))
        assert {one.submission_id for one in (*listed.submissions, *rest.submissions)} == {
            wallet.submission_id, receipts.submission_id,
        }  # fmt: skip
        root = (harness.config.keys / "root.fingerprint").read_text().strip()
        request = pb.RunReconciliationRequest(
            request_id=request_id(), root=root, embedded_regulator=True,
            wallet_submission_ids=[wallet.submission_id], receipts_submission_ids=[receipts.submission_id],
        )  # fmt: skip
        report_id = await started(stub, request)
        assert await started(stub, request) == report_id
        summary = await finished(stub, report_id)
        assert (summary.state, summary.verdict, summary.open_breaks) == (pb.REPORT_STATE_DONE, "clean", 0), summary
        assert (summary.party, summary.operator, summary.signed) == (OPERATOR, OPERATOR, True)

        # The same files through the use case of `rgs reconcile`: the same bytes, the signature too.
        folder = tmp_path / "again"
        folder.mkdir()
        for name in ("statements.jsonl", "wallet.jsonl", "receipts.jsonl", "regulator.jsonl", "keys.json"):
            (folder / name).write_bytes(await download(stub, report_id, name))
        assert hashlib.sha256((folder / "wallet.jsonl").read_bytes()).hexdigest() == wallet.sha256
        given = {name: folder / f"{name}.jsonl" for name in ("statements", "wallet", "receipts", "regulator")}
        Reconciliation(version=__version__, signer=load_node_signer(harness.config)).run(
            ReconcileRequest(**given, keys=folder / "keys.json", out=folder / "out", root=root, operator=OPERATOR)  # type: ignore[arg-type]
        )
        for path in (folder / "out").iterdir():
            assert await download(stub, report_id, path.name) == path.read_bytes(), path.name
        assert hashlib.sha256((folder / "out" / "report.json").read_bytes()).hexdigest() == summary.sha256
        assert json.loads((folder / "out" / "report.json").read_bytes())["key_path"]["anchored"]


@pytest.mark.slow
async def test_a_run_over_postgresql(tmp_path: Path) -> None:
    with fresh_database() as database:
        async with serving(tmp_path, database) as harness:
            await play(harness)
            wallet, stub = await submit_wallet(harness, wallet_rows(harness)), books(harness)
            request = pb.RunReconciliationRequest(
                request_id=request_id(), wallet_submission_ids=[wallet.submission_id], embedded_regulator=True
            )
            summary = await finished(stub, await started(stub, request))
            assert (summary.state, summary.verdict) == (pb.REPORT_STATE_DONE, "clean"), summary


@pytest.mark.usefixtures("plain_jobs")
async def test_a_break_is_told_resolved_by_two_and_countersigned(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        second = harness.issue(Role.ADMIN, "admin-2")
        await harness.allow(second, Role.ADMIN, "admin-2")
        await harness.restart()
        stub, report_id = await run_with_a_break(harness)
        (found,) = (await stub.ListBreaks(pb.ListBreaksRequest(report_id=report_id))).breaks
        assert (found.break_class, found.owed, found.resolved) == ("missing_credit_in_wallet", True, False)
        result = next(csv.DictReader(io.StringIO((await download(stub, report_id, "breaks.csv")).decode())))
        assert (found.break_id, found.amount_minor) == (result["break_id"], int(result["amount_minor"]))
        assert not (await stub.ListBreaks(pb.ListBreaksRequest(report_id=report_id, break_class="duplicate"))).breaks

        admins = [books(harness, "demo-admin"), books(harness, second)]
        names = {"operator": OPERATOR, "report_id": report_id, "break_id": found.break_id}

        def settled(evidence: str) -> pb.ResolveBreakRequest:
            return pb.ResolveBreakRequest(request_id=request_id(), reason="RESENT", evidence=evidence, **names)

        for _ in range(2):  # one person, however often, is one
            assert not (await admins[0].ResolveBreak(settled("ticket 7"))).resolved
        assert not (await admins[1].ResolveBreak(settled("ticket 8"))).resolved
        assert not (await admins[1].ResolveBreak(settled("ticket 8"))).resolved
        for admin in (*admins, admins[0]):
            done = await admin.ResolveBreak(settled("ticket 8"))
            assert (done.resolved, done.entry_no) == (True, 1)
        for change, reason in (
            ({"break_id": "0" * 32}, "NOT_FOUND"), ({"evidence": ""}, "INVALID_FIELD"),
            ({"reason": "x"}, "INVALID_FIELD"), ({"report_id": "0" * 32}, "NOT_FOUND"),
            ({"request_id": "7"}, "INVALID_FIELD"),
        ):  # fmt: skip
            wrong = settled("ticket 9")
            wrong.MergeFrom(pb.ResolveBreakRequest(**change))
            if "evidence" in change:
                wrong.evidence = ""
            assert await reason_of(admins[0].ResolveBreak(wrong)) == reason
        # The report stands; the next one shows the break as resolved.
        wallet = (await stub.ListSubmissions(pb.ListSubmissionsRequest())).submissions[0]
        request = pb.RunReconciliationRequest(
            request_id=request_id(), operator=OPERATOR, wallet_submission_ids=[wallet.submission_id]
        )
        auditor = books(harness, "demo-auditor")
        later = await started(auditor, request)
        summary = await finished(auditor, later, OPERATOR)
        assert (summary.verdict, summary.resolved_breaks, summary.party) == ("clean", 1, "demo-auditor")
        (resolved,) = (await stub.ListBreaks(pb.ListBreaksRequest(report_id=later))).breaks
        assert (resolved.resolved, resolved.resolved_by, resolved.approved_by) == (True, "admin-2", "demo-admin")
        reports = (await stub.ListReports(pb.ListReportsRequest())).reports
        assert {one.report_id: one.open_breaks for one in reports} == {report_id: 1, later: 0}

        signed = await download(stub, report_id, "report.jsonl")
        signer = Ed25519Signer.from_seed(b"the key of an operator: 32 bytes")
        body = {
            "kind": "countersignature", "party": OPERATOR, "time": "2026-11-22T10:00:00.000Z",
            "statement": leaf_hash(parse_line(signed.splitlines()[0]).envelope).hex(),
        }  # fmt: skip

        def countersignature(**changes: str) -> pb.CountersignRequest:
            content = format_canonical({**body, **changes})
            envelope = seal_envelope(KINDS["countersignature"].payload_type, content, signer)
            given = {"report_id": report_id, "envelope": envelope, "public_key": signer.public_key}
            return pb.CountersignRequest(request_id=request_id(), **given)  # type: ignore[arg-type]

        for changes in ({"party": "somebody"}, {"statement": "0" * 64}):
            assert await reason_of(stub.Countersign(countersignature(**changes))) == "INVALID_FIELD"
        foreign = countersignature()
        foreign.public_key = bytes(32)
        assert await reason_of(stub.Countersign(foreign)) == "INVALID_FIELD"
        foreign.envelope = b"{}"
        assert await reason_of(stub.Countersign(foreign)) == "INVALID_FIELD"
        assert await download(stub, report_id, "report.jsonl") == signed
        for _ in range(2):
            assert (await stub.Countersign(countersignature())).countersignatures == 1
        folder = harness.config.reconciliation / OPERATOR / "reports" / report_id / "report"
        bundle = (harness.config.keys / "keys.json").read_bytes()
        assert len(verify_report(folder, bundle, None, frozenset({signer.keyid}))) == 3


@pytest.mark.usefixtures("plain_jobs")
async def test_breaks_come_in_pages_owed_players_first(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        await play(harness)
        rows = [row for row in wallet_rows(harness) if row.kind != pb.WALLET_ROW_KIND_CREDIT]
        for number in range(5):
            row = pb.WalletRow(transaction_id=f"=x{number}", kind=pb.WALLET_ROW_KIND_DEBIT, amount_minor=number + 1)
            row.time.CopyFrom(rows[0].time)
            row.player = '"quoted", = and ,'
            rows.append(row)
        wallet, stub = await submit_wallet(harness, rows), books(harness)
        request = pb.RunReconciliationRequest(request_id=request_id(), wallet_submission_ids=[wallet.submission_id])
        report_id = await started(stub, request)
        assert (await finished(stub, report_id)).open_breaks == 6
        whole = (await stub.ListBreaks(pb.ListBreaksRequest(report_id=report_id))).breaks
        assert [one.owed for one in whole] == sorted((one.owed for one in whole), reverse=True)
        assert {one.player for one in whole if one.break_class == "missing_in_rgs"} == {'"quoted", = and ,'}
        for kind in ("", "missing_in_rgs"):
            wanted = [one for one in whole if kind in {"", one.break_class}]
            token = ""
            pages: list[pb.ListBreaksResponse] = []
            while not pages or token:
                requested = pb.ListBreaksRequest(report_id=report_id, break_class=kind, page_size=2, page_token=token)
                page = await stub.ListBreaks(requested)
                assert len(page.breaks) <= 2
                pages.append(page)
                token = page.next_page_token
            assert [one for page in pages for one in page.breaks] == wanted
            assert len(pages) == -(-len(wanted) // 2)
        for token in ("cDEuNw", "cDEuOTk5OTk5OTk", "x"):  # inside the header, behind the end, none
            wrong = pb.ListBreaksRequest(report_id=report_id, page_token=token)
            info = info_in(status_in(await refused(stub.ListBreaks(wrong))))
            assert (info.reason, info.metadata["field"]) == ("INVALID_FIELD", "page_token")
        wrong = pb.ListBreaksRequest(report_id=report_id, break_class="late")
        assert info_in(status_in(await refused(stub.ListBreaks(wrong)))).metadata["field"] == "break_class"


@pytest.mark.usefixtures("plain_jobs")
@pytest.mark.slow
async def test_an_admin_submits_the_regulator_and_gets_no_private_blocks(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        await play(harness)
        admin = books(harness, "demo-admin")
        named = {"operator": OPERATOR}
        request = pb.RunReconciliationRequest(request_id=request_id(), embedded_regulator=True, **named)  # type: ignore[arg-type]
        first = await started(admin, request)
        assert (await finished(admin, first, OPERATOR)).verdict == "clean"
        regulator = await download(admin, first, "regulator.jsonl", OPERATOR)
        rows = [line for line in regulator.splitlines(keepends=True) if b'"kind":"close"' not in line]
        data, requested = b"".join(rows).rstrip(b"\n"), pb.SubmitRegulatorBookRequest
        pieces = [requested(data=data[at : at + 100]) for at in range(0, len(data), 100)]
        stream = [requested(header=header(currency="", operator=OPERATOR)), *pieces, requested(total_rows=len(rows))]
        stored = (await admin.SubmitRegulatorBook(iter(stream))).submission
        assert (stored.party, stored.operator, stored.rows) == ("demo-admin", OPERATOR, len(rows))
        request = pb.RunReconciliationRequest(
            request_id=request_id(),
            regulator_submission_ids=[stored.submission_id],
            **named,  # type: ignore[arg-type]
        )
        second = await started(admin, request)
        assert (await finished(admin, second, OPERATOR)).verdict == "breaks"
        found = (await admin.ListBreaks(pb.ListBreaksRequest(report_id=second, **named))).breaks  # type: ignore[arg-type]
        assert [one.break_class for one in found] == ["state_differs"]
        for file in ("statements.jsonl", "../run.json", "run.json"):
            stream_call = admin.GetReport(pb.GetReportRequest(report_id=second, file=file, **named))
            assert await reason_of(_all(stream_call)) == "INVALID_FIELD"
        assert await download(books(harness, "demo-auditor"), second, "statements.jsonl", OPERATOR)


async def _all(call: Any) -> list[Any]:
    return [part async for part in call]


# --- whose it is ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("plain_jobs")
async def test_another_operators_books_are_not_there(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        other = harness.issue(Role.OPERATOR, "other")
        await harness.allow(other, Role.OPERATOR, "other", "demo")
        await harness.restart()
        _, report_id = await run_with_a_break(harness)
        wallet = (await books(harness).ListSubmissions(pb.ListSubmissionsRequest())).submissions[0]
        stub = books(harness, other)
        assert not (await stub.ListSubmissions(pb.ListSubmissionsRequest())).submissions
        assert not (await stub.ListReports(pb.ListReportsRequest())).reports
        run = pb.RunReconciliationRequest
        for call in (
            stub.ListBreaks(pb.ListBreaksRequest(report_id=report_id)),
            _all(stub.GetReport(pb.GetReportRequest(report_id=report_id))),
            _all(stub.GetReport(pb.GetReportRequest(report_id=report_id, operator=OPERATOR))),
            stub.ListReports(pb.ListReportsRequest(operator=OPERATOR)),
            stub.Countersign(pb.CountersignRequest(request_id=request_id(), report_id=report_id)),
            stub.RunReconciliation(run(request_id=request_id(), wallet_submission_ids=[wallet.submission_id])),
            stub.RunReconciliation(run(request_id=request_id(), operator=OPERATOR, embedded_regulator=True)),
        ):
            assert await reason_of(call) == "NOT_FOUND"
        # Of its own it has nothing: the run fails, and what is told of it holds no path and nobody else's numbers.
        own = await started(stub, run(request_id=request_id(), embedded_regulator=True))
        summary = await finished(stub, own)
        assert (summary.state, summary.failure_reason) == (pb.REPORT_STATE_FAILED, "INVALID_FIELD")
        assert summary.failure == "inputs/statements.jsonl is empty: there are no statements"
        info = info_in(status_in(await refused(stub.ListBreaks(pb.ListBreaksRequest(report_id=own)))))
        assert (info.reason, info.metadata["state"]) == ("REPORT_NOT_DONE", "REPORT_STATE_FAILED")
        folder = harness.config.reconciliation / "other" / "reports" / own
        assert {path.name for path in folder.iterdir()} == {"failed.json", "run.json"}
        # Those who see all must say whose.
        auditor = books(harness, "demo-auditor")
        assert await reason_of(auditor.ListReports(pb.ListReportsRequest())) == "INVALID_FIELD"
        assert (
            await reason_of(auditor.ListReports(pb.ListReportsRequest(operator="../demo-operator"))) == "INVALID_FIELD"
        )


@pytest.mark.usefixtures("plain_jobs")
async def test_a_run_that_is_none(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        await play(harness)
        wallet = await submit_wallet(harness, wallet_rows(harness))
        stub, own = books(harness), wallet.submission_id
        for fields, field in (
            ({}, "wallet_submission_ids"),
            ({"wallet_submission_ids": [own, own]}, "wallet_submission_ids"),
            ({"embedded_regulator": True, "regulator_submission_ids": [own]}, "embedded_regulator"),
            ({"embedded_regulator": True, "root": "abc"}, "root"),
            ({"embedded_regulator": True, "cut_off_s": -1}, "cut_off_s"),
            ({"embedded_regulator": True, "period_start_time": {"seconds": 5}}, "period_end_time"),
            ({"embedded_regulator": True, "period_start_time": {"seconds": 5}, "period_end_time": {"seconds": 5}},
             "period_end_time"),
            ({"embedded_regulator": True, "period_start_time": {"nanos": 5}, "period_end_time": {"seconds": 5}},
             "period_start_time"),
        ):  # fmt: skip
            request = pb.RunReconciliationRequest(request_id=request_id(), **fields)
            info = info_in(status_in(await refused(stub.RunReconciliation(request))))
            assert (info.reason, info.metadata["field"]) == ("INVALID_FIELD", field)
        # A submission of another kind, and one that is none.
        for name in (own, "0" * 32, "../../x"):
            request = pb.RunReconciliationRequest(request_id=request_id(), receipts_submission_ids=[name])
            assert await reason_of(stub.RunReconciliation(request)) == "NOT_FOUND"
        request = pb.RunReconciliationRequest(request_id=request_id(), wallet_submission_ids=[own])
        await finished(stub, await started(stub, request))
        request.allow_rejects = True
        assert await reason_of(stub.RunReconciliation(request)) == "IDEMPOTENCY_CONFLICT"
