"""rgs.v1.AuditService over `rgs.service.audit`. Hands out stored bytes as they are; refuses to serialize any anew."""

from __future__ import annotations

from typing import Protocol

from rgs.api.calls import Methods, Unary
from rgs.api.parsing import verify_range, verify_statement_request
from rgs.service.audit import Audit
from rgs.service.callers import Caller
from rgs.v1 import audit_pb2 as pb

SERVICE = pb.DESCRIPTOR.services_by_name["AuditService"].full_name


class StoredStatement(Protocol):
    """A statement as the service gives it: `private` is empty where it is not for the caller."""

    @property
    def kind(self) -> str: ...
    @property
    def instance(self) -> str: ...
    @property
    def statement_no(self) -> int: ...
    @property
    def session_id(self) -> str: ...
    @property
    def link_no(self) -> int: ...
    @property
    def round_id(self) -> str: ...
    @property
    def hash(self) -> bytes: ...
    @property
    def envelope(self) -> bytes: ...
    @property
    def private(self) -> bytes: ...


def audit_methods(audit: Audit) -> Methods:
    """The methods of the service."""

    async def get_statement(caller: Caller, message: pb.GetStatementRequest) -> bytes:
        verify_statement_request(message)
        row = await audit.get_statement(
            caller, hash=message.hash, instance=message.instance, statement_no=message.statement_no
        )
        return pb.GetStatementResponse(statement=_statement(row)).SerializeToString()

    async def list_statements(caller: Caller, message: pb.ListStatementsRequest) -> bytes:
        verify_range(message)
        rows, token = await audit.list_statements(
            caller,
            session_id=message.session_id,
            round_id=message.round_id,
            instance=message.instance,
            first_no=message.first_no,
            last_no=message.last_no,
            page_size=message.page_size,
            page_token=message.page_token,
        )
        return pb.ListStatementsResponse(statements=map(_statement, rows), next_page_token=token).SerializeToString()

    async def list_key_statements(_caller: Caller, _message: pb.ListKeyStatementsRequest) -> bytes:
        return pb.ListKeyStatementsResponse(envelopes=audit.key_statements()).SerializeToString()

    return {
        "GetStatement": Unary(pb.GetStatementRequest, get_statement),
        "ListStatements": Unary(pb.ListStatementsRequest, list_statements),
        "ListKeyStatements": Unary(pb.ListKeyStatementsRequest, list_key_statements),
    }


def _statement(row: StoredStatement) -> pb.Statement:
    return pb.Statement(
        kind=row.kind,
        instance=row.instance,
        statement_no=row.statement_no,
        session_id=row.session_id,
        link_no=row.link_no,
        round_id=row.round_id,
        hash=row.hash,
        envelope=row.envelope,
        private=row.private,
    )
