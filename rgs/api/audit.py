"""rgs.v1.AuditService over `rgs.service.audit`. It hands out the stored bytes of statements unchanged."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict

from rgs.api.calls import Methods, ServerStream, Unary
from rgs.api.mapping import same_fields
from rgs.api.pages import paged
from rgs.api.parsing import verify_logged_request, verify_range, verify_statement_request
from rgs.service.audit.audit import StatementReader
from rgs.service.audit.log import PublicLog
from rgs.service.callers import Caller
from rgs.store.interface import StatementRow
from rgs.v1 import audit_pb2 as pb

SERVICE = pb.DESCRIPTOR.services_by_name["AuditService"].full_name


def audit_methods(audit: StatementReader, log: PublicLog) -> Methods:
    """The methods of the service."""
    return {**_statements(audit), **_log(audit, log)}


def _statements(audit: StatementReader) -> Methods:

    async def get_statement(caller: Caller, message: pb.GetStatementRequest) -> bytes:
        verify_statement_request(message)
        row = await audit.get_statement(
            caller, hash=message.hash, instance=message.instance, statement_no=message.statement_no
        )
        return pb.GetStatementResponse(statement=_statement(row, await audit.path_of(row))).SerializeToString()

    async def list_statements(caller: Caller, message: pb.ListStatementsRequest) -> pb.ListStatementsResponse:
        verify_range(message)
        rows, token = await audit.list_statements(
            caller,
            **same_fields(message, "session_id", "round_id", "instance", "first_no", "last_no"),
            **same_fields(message, "page_size", "page_token"),
        )
        statements = [_statement(row, await audit.path_of(row)) for row in rows]
        return pb.ListStatementsResponse(statements=statements, next_page_token=token)

    async def list_key_statements(_caller: Caller, _message: pb.ListKeyStatementsRequest) -> bytes:
        return pb.ListKeyStatementsResponse(envelopes=audit.key_statements()).SerializeToString()

    return {
        "GetStatement": Unary(pb.GetStatementRequest, get_statement),
        "ListStatements": paged(pb.ListStatementsRequest, list_statements),
        "ListKeyStatements": Unary(pb.ListKeyStatementsRequest, list_key_statements),
    }


def _log(audit: StatementReader, log: PublicLog) -> Methods:
    async def get_checkpoint(_caller: Caller, message: pb.GetCheckpointRequest) -> bytes:
        found = await log.checkpoint(message.origin)
        return pb.GetCheckpointResponse(**asdict(found)).SerializeToString()

    async def get_record(caller: Caller, message: pb.GetRecordRequest) -> bytes:
        verify_logged_request(message)
        row, proof = await log.record(caller, **same_fields(message, "hash", "round_id", "session_id", "kind"))
        statement = _statement(row, await audit.path_of(row))
        return pb.GetRecordResponse(statement=statement, log_proof=proof).SerializeToString()

    async def get_consistency_proof(_caller: Caller, message: pb.GetConsistencyProofRequest) -> bytes:
        found = await log.consistency(message.origin, message.old_size, message.new_size)
        return pb.GetConsistencyProofResponse(
            origin=found.origin, old_size=found.old, new_size=found.new, hashes=found.hashes
        ).SerializeToString()

    async def stream_entries(_caller: Caller, message: pb.StreamEntriesRequest) -> AsyncIterator[bytes | None]:
        where = same_fields(message, "origin", "start_index", "resume_token", "follow")
        async for one in log.entries(**where):
            yield None if one is None else pb.StreamEntriesResponse(**asdict(one)).SerializeToString()

    return {
        "GetCheckpoint": Unary(pb.GetCheckpointRequest, get_checkpoint),
        "GetRecord": Unary(pb.GetRecordRequest, get_record),
        "GetConsistencyProof": Unary(pb.GetConsistencyProofRequest, get_consistency_proof),
        "StreamEntries": ServerStream(pb.StreamEntriesRequest, stream_entries),
    }


def _statement(row: StatementRow, path: tuple[bytes, ...]) -> pb.Statement:
    return pb.Statement(
        **same_fields(row, "kind", "instance", "statement_no", "session_id", "link_no", "round_id"),
        **same_fields(row, "hash", "envelope", "private"),
        path=path,
    )
