"""The key path of a server, from its root to the key of each instance, and statements read with it.

Keys without a root fingerprint from outside make every verdict UNANCHORED.
"""

from __future__ import annotations

import grpc

from rgs.core import statements
from rgs.core.replay import KeyBook
from rgs.core.replay.checks import KEY, Check
from rgs.core.replay.reading import Statement, read_statement
from rgs.core.statements.lines import format_key_bundle
from rgs.devkit.client import CallError, Client
from rgs.v1.audit_pb2 import GetStatementRequest, ListKeyStatementsRequest
from rgs.v1.audit_pb2 import Statement as StoredStatement


class Keys:
    """The key path from the server: the key statements, and the start of each instance that is met."""

    def __init__(self, client: Client, root: str | None) -> None:
        """`root`: 64 hex digits from outside, or None. VerificationError if the keys have another root."""
        self._client = client
        answer = client.call(client.audit.ListKeyStatements, ListKeyStatementsRequest())
        self._book = KeyBook(format_key_bundle(list(answer.envelopes)), root=root)
        self._instances: set[str] = set()
        self.root = self._book.root
        self.anchored = self._book.anchored
        if root is not None and not self.anchored:
            raise KEY.failure(f"the server's keys begin with root {self.root}, expected was {root}")

    def read(self, stored: StoredStatement) -> Statement:
        """Parse a statement, with checks 1 to 5. VerificationError."""
        _, body = statements.parse_statement(statements.parse_envelope(stored.envelope))
        if body["instance"] not in self._instances:
            self._learn(body["instance"])
        return read_statement(_line(stored), self._book)

    def _learn(self, instance: str) -> None:
        request = GetStatementRequest(instance=instance, statement_no=1)
        stored = stored_statement(
            self._client, request, KEY, f"the server does not have the start of instance {instance}"
        )
        start = read_statement(_line(stored), self._book)
        if start.kind.name != "instance_start" or start.body["instance"] != instance:
            raise KEY.failure(f"statement 1 of instance {instance} is not its start")
        self._book.add_instance(start.body, start.keyid)
        self._instances.add(instance)


def stored_statement(client: Client, request: GetStatementRequest, check: Check, otherwise: str) -> StoredStatement:
    """A stored statement. VerificationError of `check` if there is none; CallError for any other refusal."""
    try:
        return client.call(client.audit.GetStatement, request).statement
    except CallError as error:
        if error.code is not grpc.StatusCode.NOT_FOUND:
            raise
        raise check.failure(otherwise) from None


def _line(stored: StoredStatement) -> bytes:
    private = statements.parse_canonical(stored.private) if stored.private else None
    return statements.format_line(statements.ExportLine(stored.envelope, private, tuple(stored.path)))
