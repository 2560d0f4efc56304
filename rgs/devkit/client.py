"""A small client of the server: one channel over mutual TLS, deadlines, request ids, and repeats.

Used by `rgs play` and `rgs demo`. A request that is not answered (UNAVAILABLE, DEADLINE_EXCEEDED) is sent again with
the same request id, so that doing it twice has the effect of doing it once; play goes over unary calls or over the
stream, with the same messages. Refuses to speak without a certificate of its own, to make up a new request id for a
repeat, and to read silence as a failure: what stays unanswered is raised as OutcomeUnknownError.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, Self, TypeVar, cast

import grpc
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_status.rpc_status import from_call

from rgs.devkit.requests import Requests
from rgs.node.config import Config
from rgs.node.files import read_whole
from rgs.v1.admin_pb2_grpc import AdminServiceStub
from rgs.v1.audit_pb2_grpc import AuditServiceStub
from rgs.v1.catalog_pb2_grpc import CatalogServiceStub
from rgs.v1.history_pb2_grpc import HistoryServiceStub
from rgs.v1.play_pb2 import (
    ActRequest,
    ActResponse,
    PlayRequest,
    PlayResponse,
    StartRoundRequest,
    StartRoundResponse,
)
from rgs.v1.play_pb2_grpc import PlayServiceStub
from rgs.v1.session_pb2_grpc import SessionServiceStub
from rng.entropy import EntropySource

TIMEOUT_S: Final = 10.0
"""Deadline of one attempt."""
STREAM_S: Final = 60.0
"""Deadline of one Play stream; the next request opens another."""
PAUSES_S: Final = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Before the second to the sixth attempt; longer where the server asks for it."""
PATIENCE_S: Final = 3.0
"""A server that asks for a longer pause is not asked again."""
_UNANSWERED: Final = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED})
_UNANSWERED_REASONS: Final = frozenset({"REQUEST_SEEN"})
"""Its answer exists, and comes with the next attempt."""
_ANY_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 - what a server listens on, not what we bind

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)


class CallError(Exception):
    """The server's refusal: `reason` is stable (docs/errors.md), the message may change."""

    def __init__(self, status: Status, code: grpc.StatusCode) -> None:
        super().__init__(status.message)
        self.code = code
        self.message = status.message
        self.reason = ""
        self.metadata: dict[str, str] = {}
        self.pause_s = 0.0
        self.details = status.details
        for detail in status.details:
            info, retry = ErrorInfo(), RetryInfo()
            if detail.Unpack(info):
                self.reason, self.metadata = info.reason, dict(info.metadata)
            elif detail.Unpack(retry):
                self.pause_s = retry.retry_delay.ToMilliseconds() / 1000

    def __str__(self) -> str:
        facts = [f"{name}={self.metadata[name]}" for name in ("field", "limit", "value") if self.metadata.get(name)]
        return f"{self.message} [{' '.join([self.reason or self.code.name, *facts])}]"


class OutcomeUnknownError(CallError):
    """Not answered, however often it was sent. It may have happened: the same request id settles it, later."""


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """The files of a party: the authority of servers, its own certificate, its own key."""

    ca: Path
    certificate: Path
    key: Path

    @classmethod
    def of_party(cls, config: Config, party: str) -> ClientIdentity:
        """The files that `rgs init` made for a party."""
        stem = config.tls / "clients" / party
        return cls(config.ca, stem.with_name(f"{party}.pem"), stem.with_name(f"{party}.key"))

    def credentials(self) -> grpc.ChannelCredentials:
        """FileRefusedError if a file is missing, or the key is open to others."""
        return grpc.ssl_channel_credentials(
            root_certificates=read_whole(self.ca, "authority"),
            private_key=read_whole(self.key, "private key", secret=True),
            certificate_chain=read_whole(self.certificate, "certificate"),
        )


def address_of(config: Config) -> str:
    """Where a client on this machine finds a node that listens as configured."""
    host, _, port = config.listen.rpartition(":")
    return f"{_ANY_ADDRESS.get(host, host)}:{port}"


class Client:
    """One channel and its stubs. Thread-safe, but for the Play streams: each belongs to one thread."""

    def __init__(self, address: str, identity: ClientIdentity) -> None:
        self.address = address
        self._entropy = EntropySource()
        self.requests = Requests(self.request_id)
        self.channel = grpc.secure_channel(address, identity.credentials())
        self.sessions = SessionServiceStub(self.channel)
        self.play = PlayServiceStub(self.channel)
        self.history = HistoryServiceStub(self.channel)
        self.audit = AuditServiceStub(self.channel)
        self.admin = AdminServiceStub(self.channel)
        self.catalog = CatalogServiceStub(self.channel)

    def request_id(self) -> str:
        """A new UUID (RFC 9562 version 4)."""
        return str(uuid.UUID(bytes=self._entropy.read(16), version=4))

    def call(self, method: grpc.UnaryUnaryMultiCallable[Request, Response], request: Request) -> Response:
        """Ask, and ask again while there is no answer. CallError, OutcomeUnknownError."""
        return _patiently(lambda: self.call_once(method, request))

    def call_once(self, method: grpc.UnaryUnaryMultiCallable[Request, Response], request: Request) -> Response:
        """Ask once. CallError, OutcomeUnknownError."""
        try:
            return method(request, timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            raise refusal_of(error) from None

    def pages(self, method: grpc.UnaryUnaryMultiCallable[Request, Response], request: Request) -> Iterator[Response]:
        """All pages of a list, each when it is wanted. CallError, OutcomeUnknownError."""
        listing: Any = request  # every request of a list has a page token, and every page the next one
        while True:
            page: Any = self.call(method, listing)
            yield page
            if not page.next_page_token:
                return
            listing.page_token = page.next_page_token

    def close(self) -> None:
        self.channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class UnaryRounds:
    """Rounds are played by unary calls: each request is a call of its own."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def start_round(self, request: StartRoundRequest) -> StartRoundResponse:
        return self._client.call(self._client.play.StartRound, request)

    def act(self, request: ActRequest) -> ActResponse:
        return self._client.call(self._client.play.Act, request)

    def close(self) -> None:
        """Nothing is held."""


class StreamRounds(UnaryRounds):
    """Rounds are played over one Play stream, one request at a time, with the same answers.

    A stream that ends is opened again, and the request is repeated.
    """

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self._requests: SimpleQueue[PlayRequest | None] = SimpleQueue()
        self._responses: Iterator[PlayResponse] | None = None

    def start_round(self, request: StartRoundRequest) -> StartRoundResponse:
        return self._ask(PlayRequest(start_round=request), request.request_id).start_round

    def act(self, request: ActRequest) -> ActResponse:
        return self._ask(PlayRequest(act=request), request.request_id).act

    def close(self) -> None:
        """Say that nothing more comes, and let the server end the stream."""
        responses = self._responses
        if responses is not None:
            self._drop()
            with suppress(grpc.RpcError):  # every answer has come: how the stream ends changes nothing
                for _ in responses:
                    pass

    def _ask(self, request: PlayRequest, request_id: str) -> PlayResponse:
        return _patiently(lambda: self._ask_once(request, request_id))

    def _ask_once(self, request: PlayRequest, request_id: str) -> PlayResponse:
        if self._responses is None:
            self._responses = self._client.play.Play(iter(self._requests.get, None), timeout=STREAM_S)
        self._requests.put(request)
        try:
            response = next(self._responses)
        except grpc.RpcError as error:
            self._drop()
            raise refusal_of(error) from None
        except StopIteration:
            self._drop()
            raise _made_here(grpc.StatusCode.UNAVAILABLE, "the server ended the stream") from None
        if response.request_id != request_id:
            raise _made_here(grpc.StatusCode.DATA_LOSS, "the answer is that of another request")
        if response.HasField("error"):
            raise _error(response.error)
        return response

    def _drop(self) -> None:
        """Give the stream up: the next request opens another."""
        self._requests.put(None)
        self._requests = SimpleQueue()  # what the old stream has not taken is not sent by the new one
        self._responses = None


def _patiently(ask: Callable[[], Response]) -> Response:
    """The answer of the first attempt that gets one; the error of the last, where none does."""
    for pause_s in PAUSES_S:
        try:
            return ask()
        except OutcomeUnknownError as error:
            if error.pause_s > PATIENCE_S:
                raise
            time.sleep(max(pause_s, error.pause_s))
    return ask()


def refusal_of(error: grpc.RpcError) -> CallError:
    """What a call ended with: the server's refusal, or that nothing was answered (OutcomeUnknownError)."""
    call = cast("grpc.Call", error)  # what the library raises is both; its stubs do not say so
    status = from_call(call)
    if status is None:  # not made by our server: the transport's own word
        return _made_here(call.code(), call.details() or "no answer")
    return _error(status)


def _made_here(code: grpc.StatusCode, message: str) -> CallError:
    return _error(Status(code=code.value[0], message=message))


def _error(status: Status) -> CallError:
    code = next((code for code in grpc.StatusCode if code.value[0] == status.code), grpc.StatusCode.UNKNOWN)
    error = CallError(status, code)
    if code in _UNANSWERED or error.reason in _UNANSWERED_REASONS:
        return OutcomeUnknownError(status, code)
    return error
