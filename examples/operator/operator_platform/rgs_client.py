"""The game server as the platform calls it: one channel with mutual TLS, and answers and errors as JSON values.

A call that may have happened is sent again under its id, a few times and with a pause. What is still not answered then
is OutcomeUnknownError: the page sends the same request again.
"""

from __future__ import annotations

import asyncio
import uuid
from hashlib import sha256
from typing import Any, Final

import grpc
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from rgs.v1 import (
    admin_pb2_grpc,
    audit_pb2_grpc,
    catalog_pb2_grpc,
    free_bet_pb2_grpc,
    history_pb2_grpc,
    play_pb2,
    play_pb2_grpc,
    reconciliation_pb2_grpc,
    session_pb2_grpc,
    table_pb2,
    table_pb2_grpc,
)

from .config import Config
from .errors import OutcomeUnknownError, PlatformError, invalid

CALL_S: Final = 10.0
ATTEMPTS: Final = 5
PAUSE_S: Final = 0.1
PAUSE_MAX_S: Final = 3.0
OPTIONS: Final = (
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.enable_retries", 0),
    # gRPC would wait for up to two minutes before it looks again for a game server that was away.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)
DETAILS: Final = "grpc-status-details-bin"
UNANSWERED: Final = frozenset(
    {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED}
)
UNFINISHED: Final = frozenset({"WALLET_UNAVAILABLE", "REGULATOR_UNAVAILABLE", "STORE_UNAVAILABLE", "UNAVAILABLE"})
"""Reasons that leave open what becomes of the request: the game server goes on with it."""
AGAIN: Final = frozenset({"REQUEST_SEEN", "OPERATION_PENDING", "PARTY_LIMIT"}) | UNFINISHED
"""Reasons after which the same request is sent again."""
HTTP_OF: Final = {
    grpc.StatusCode.INVALID_ARGUMENT.value[0]: 400,
    grpc.StatusCode.NOT_FOUND.value[0]: 404,
    grpc.StatusCode.ALREADY_EXISTS.value[0]: 409,
    grpc.StatusCode.ABORTED.value[0]: 409,
    grpc.StatusCode.FAILED_PRECONDITION.value[0]: 409,
    grpc.StatusCode.PERMISSION_DENIED.value[0]: 403,
    grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]: 429,
}
VIEWS: Final = (play_pb2.ActResponse, table_pb2.DecideResponse, table_pb2.PlaceBetsResponse)
"""What the details of an error may hold: the fresh view."""


class RefusedError(PlatformError):
    """The game server refuses. `retry_s` is set where the same request may be sent again."""

    retry_s: float | None = None


class Rgs:
    """The services of the game server. Create and close it in the event loop that uses it."""

    def __init__(self, config: Config) -> None:
        credentials = grpc.ssl_channel_credentials(
            root_certificates=config.ca.read_bytes(),
            private_key=config.key.read_bytes(),
            certificate_chain=config.certificate.read_bytes(),
        )
        self._channel = grpc.aio.secure_channel(config.rgs_address, credentials, options=OPTIONS)
        channel: Any = self._channel  # the generated stubs are typed for blocking channels
        self.catalog: Any = catalog_pb2_grpc.CatalogServiceStub(channel)
        self.free_bets: Any = free_bet_pb2_grpc.FreeBetServiceStub(channel)
        self.sessions: Any = session_pb2_grpc.SessionServiceStub(channel)
        self.play: Any = play_pb2_grpc.PlayServiceStub(channel)
        self.tables: Any = table_pb2_grpc.TableServiceStub(channel)
        self.table_admin: Any = table_pb2_grpc.TableAdminServiceStub(channel)
        self.history: Any = history_pb2_grpc.HistoryServiceStub(channel)
        self.audit: Any = audit_pb2_grpc.AuditServiceStub(channel)
        self.admin: Any = admin_pb2_grpc.AdminServiceStub(channel)
        self.reconciliation: Any = reconciliation_pb2_grpc.ReconciliationServiceStub(channel)

    async def close(self) -> None:
        """Close the channel."""
        await self._channel.close()

    async def call(self, method: Any, request: Message) -> Any:
        """One request, sent again while nobody knows whether it happened. RefusedError, OutcomeUnknownError."""

        async def once() -> Any:
            try:
                return await method(request, timeout=CALL_S)
            except grpc.aio.AioRpcError as error:
                raise refusal_of_call(error) from None

        return await patiently(once)


async def patiently(once: Any) -> Any:
    """The outcome of `once`, which is tried again where the outcome is not known or the error says when."""
    for attempt in range(ATTEMPTS):
        try:
            return await once()
        except RefusedError as error:
            if error.retry_s is not None and attempt == ATTEMPTS - 1 and error.reason in UNFINISHED:
                raise OutcomeUnknownError(cause=error.reason) from None
            if error.retry_s is None or attempt == ATTEMPTS - 1:
                raise
            pause = error.retry_s
        except OutcomeUnknownError:
            if attempt == ATTEMPTS - 1:
                raise
            pause = 0.0
        await asyncio.sleep(min(PAUSE_MAX_S, max(pause, PAUSE_S * 2**attempt)))
    raise OutcomeUnknownError


def refusal_of_call(error: grpc.aio.AioRpcError) -> PlatformError:
    """The error of a call as a value."""
    for name, value in error.trailing_metadata() or ():
        if name == DETAILS:
            return refusal_of(Status.FromString(value if isinstance(value, bytes) else value.encode()))
    if error.code() in UNANSWERED:
        return OutcomeUnknownError()
    return RefusedError(error.code().name, "the game server refuses the request", _http(error.code().value[0]))


def refusal_of(status: Status) -> PlatformError:
    """An error in band, or the details of a call's error."""
    reason, metadata, retry_s, value = "", {}, None, None
    for detail in status.details:
        info, retry = ErrorInfo(), RetryInfo()
        if detail.Unpack(info):
            reason, metadata = info.reason, dict(info.metadata)
        elif detail.Unpack(retry):
            retry_s = retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9
        else:
            value = next((as_json(view) for kind in VIEWS if detail.Unpack(view := kind())), value)
    if not reason or reason in ("STORE_OUTCOME_UNKNOWN", "STREAM_IDLE", "DEADLINE_TOO_SHORT"):
        return OutcomeUnknownError()
    found = RefusedError(reason, status.message, _http(status.code), metadata, value)
    if reason in AGAIN:
        found.retry_s = retry_s or 0.0
    return found


def _http(code: int) -> int:
    return HTTP_OF.get(code, 503)


def as_json(message: Message) -> dict[str, Any]:
    """The canonical JSON of a message, with the names of its fields as they stand in the contract."""
    found: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    return found


def message_of(kind: Any, fields: dict[str, Any]) -> Any:
    """A message of JSON fields. PlatformError for an unknown field or a value of another type."""
    try:
        return ParseDict(fields, kind())
    except (ParseError, ValueError, TypeError) as error:
        raise invalid("body", f"the message does not fit the contract: {str(error)[:160]}") from None


def own_request_id(account_id: int, request_id: str) -> str:
    """The id under which a player's request goes to the game server: two players' equal ids never meet there."""
    digest = sha256(f"operator-platform/request/v1\0{account_id}\0{request_id}".encode()).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))
