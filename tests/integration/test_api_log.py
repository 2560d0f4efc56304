"""The log over the wire: a real server's log, read by gRPC alone and verified by what was read."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import grpc
import pytest

from rgs.core.statements import parse_envelope, parse_statement
from rgs.core.tlog.checkpoints import parse_checkpoint
from rgs.core.tlog.merkle import leaf_hash, root_of, verify_consistency
from rgs.core.tlog.note import parse_note, parse_vkey, verify_note
from rgs.core.tlog.proofs import parse_log_proof, verify_log_proof
from rgs.service.callers import Role
from rgs.v1 import audit_pb2 as pb
from rgs.v1.audit_pb2_grpc import AuditServiceStub
from tests.support.api.client import ApiClient, refused
from tests.support.api.harness import ApiHarness, info_in, reason_in, serving, status_in


def audit(harness: ApiHarness, party: str) -> Any:
    return AuditServiceStub(harness.channel(party))


async def logged(ask: Any, request: pb.GetRecordRequest) -> pb.GetRecordResponse:
    """The record, as soon as the log has it."""
    while True:
        try:
            return cast(pb.GetRecordResponse, await ask(request))
        except grpc.aio.AioRpcError as error:
            if reason_in(status_in(error)) != "NOT_LOGGED_YET":
                raise
            await asyncio.sleep(0.05)


async def entries_of(stub: Any, **given: Any) -> list[pb.StreamEntriesResponse]:
    return [one async for one in stub.StreamEntries(pb.StreamEntriesRequest(**given), timeout=60)]


async def test_the_whole_log_is_read_and_verified_over_the_wire(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        anna = await ApiClient(harness.channel(), "player-1").seated()
        first = await audit(harness, "demo-auditor").GetCheckpoint(pb.GetCheckpointRequest())
        final = (await anna.round_to_the_end()).round
        requested = {"round_id": final.round_id, "session_id": anna.session_id}
        operator, auditor = audit(harness, "demo-operator"), audit(harness, "demo-auditor")
        for kind in ("round_opening", "round_final"):
            request = pb.GetRecordRequest(**requested, kind=kind)
            record = await logged(operator.GetRecord, request)
            proof = parse_log_proof(record.log_proof)
            verify_log_proof(proof, leaf_hash(record.statement.envelope))
            assert parse_statement(parse_envelope(record.statement.envelope))[0].name == kind

        newest = await auditor.GetCheckpoint(pb.GetCheckpointRequest())
        entries = await entries_of(auditor)
        leaves = [leaf_hash(one.entry) for one in entries]
        assert len(leaves) >= newest.size > first.size
        assert root_of(leaves[: newest.size]) == newest.root
        assert root_of(leaves[: first.size]) == first.root
        verify_note(parse_note(newest.note), [parse_vkey(newest.vkey)])
        assert parse_checkpoint(parse_note(newest.note).text).root == newest.root
        asking = pb.GetConsistencyProofRequest(origin=newest.origin, old_size=first.size, new_size=newest.size)
        for party in ("operator", "auditor", "regulator", "lab"):
            stub = audit(harness, f"demo-{party}")
            result = await stub.GetConsistencyProof(asking)
            verify_consistency(first.size, first.root, newest.size, newest.root, list(result.hashes))
            assert (await stub.GetCheckpoint(pb.GetCheckpointRequest(origin=newest.origin))).size >= newest.size
        # Cut off anywhere, it goes on; on another connection, by another party that may.
        rest = await entries_of(audit(harness, "demo-regulator"), resume_token=entries[3].resume_token)
        assert [one.entry for one in rest[: len(entries) - 4]] == [one.entry for one in entries[4:]]
        assert [one.index for one in rest] == list(range(4, 4 + len(rest)))


async def test_another_operator_s_records_are_not_found(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        anna = await ApiClient(harness.channel(), "player-1").seated()
        done = await anna.round_to_the_end()
        requested = pb.GetRecordRequest(round_id=done.round.round_id, session_id=anna.session_id, kind="round_final")
        mine = await logged(audit(harness, "demo-operator").GetRecord, requested)
        other = harness.issue(Role.OPERATOR, "other")
        await harness.allow(other, Role.OPERATOR, "other", "demo")
        channel = harness.channel(other)
        stub: Any = AuditServiceStub(channel)
        while True:  # until the server has read the list again
            error = await refused(stub.GetRecord(requested))
            if error.code() is not grpc.StatusCode.UNAUTHENTICATED:
                break
            await asyncio.sleep(0.1)
        assert error.code() is grpc.StatusCode.NOT_FOUND
        by_hash = pb.GetRecordRequest(hash=mine.statement.hash)
        assert (await refused(stub.GetRecord(by_hash))).code() is grpc.StatusCode.NOT_FOUND
        assert (await stub.GetCheckpoint(pb.GetCheckpointRequest())).size
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await entries_of(stub)
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_who_follows_hears_of_new_entries_and_of_the_end_of_the_server(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        stub = audit(harness, "demo-auditor")
        before = (await stub.GetCheckpoint(pb.GetCheckpointRequest())).size
        call = stub.StreamEntries(pb.StreamEntriesRequest(start_index=before, follow=True))
        await ApiClient(harness.channel(), "player-1").seated()
        kinds = []
        while "purchase" not in kinds:
            kinds.append(parse_statement(parse_envelope((await call.read()).entry))[0].name)
        assert "session_open" in kinds

        async def to_the_end() -> None:
            while await call.read() is not grpc.aio.EOF:
                pass

        ended = asyncio.create_task(to_the_end())
        await asyncio.sleep(0.2)
        stopping = asyncio.create_task(harness.server.stop())
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await asyncio.wait_for(ended, 20)
        assert (caught.value.code(), info_in(status_in(caught.value)).reason) == (
            grpc.StatusCode.UNAVAILABLE,
            "UNAVAILABLE",
        )
        await stopping


MALFORMED: list[tuple[str, dict[str, Any], str]] = [
    ("GetCheckpoint", {"origin": "../order.db"}, "origin"),
    ("GetRecord", {}, "hash"),
    ("GetRecord", {"hash": b"x"}, "hash"),
    ("GetRecord", {"round_id": "x"}, "hash"),
    ("GetConsistencyProof", {"old_size": -1}, "old_size"),
    ("GetConsistencyProof", {"new_size": 1 << 62}, "new_size"),
    ("GetConsistencyProof", {"new_size": -1}, "new_size"),
    ("StreamEntries", {"start_index": -1}, "start_index"),
    ("StreamEntries", {"start_index": 1 << 62}, "start_index"),
    ("StreamEntries", {"resume_token": "x"}, "resume_token"),
    ("StreamEntries", {"resume_token": "x" * 10_000}, "resume_token"),
]


async def test_what_is_malformed_is_refused_by_its_field(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        stub = audit(harness, "demo-auditor")
        for method, given, field in MALFORMED:
            requested = getattr(stub, method)(getattr(pb, f"{method}Request")(**given), timeout=20)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await (requested.read() if method == "StreamEntries" else requested)
            result = status_in(caught.value)
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT, (method, given)
            assert info_in(result).reason == "INVALID_FIELD"
            assert any(field.encode() in detail.value for detail in result.details), (method, given)
