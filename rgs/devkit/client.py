"""A small client of the server: one channel over mutual TLS, deadlines, request ids, and repeats.

For `rgs play`, `rgs call` and `rgs demo`. A request without an answer (UNAVAILABLE, DEADLINE_EXCEEDED) is sent again
with the same request id, so that it takes effect once. Play goes over unary calls or over the stream, with the same
messages. A request that stays unanswered raises OutcomeUnknownError: it may have taken effect.
"""

from __future__ import annotations

import time
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

from rgs.core.ids import ULID_RANDOM_BYTES, format_request_id
from rgs.devkit.requests import Requests
from rgs.node.clock import wall_ms
from rgs.node.config import Config
from rgs.node.files import read_whole
from rgs.v1 import play_pb2 as play
from rgs.v1.admin_pb2_grpc import AdminServiceStub
from rgs.v1.audit_pb2_grpc import AuditServiceStub
from rgs.v1.catalog_pb2_grpc import CatalogServiceStub
from rgs.v1.history_pb2_grpc import HistoryServiceStub
from rgs.v1.play_pb2_grpc import PlayServiceStub
from rgs.v1.session_pb2_grpc import SessionServiceStub
from rgs.v1.table_pb2_grpc import TableAdminServiceStub, TableServiceStub
from rng.entropy import EntropySource

TIMEOUT_S: Final = 10.0
"""Deadline of one attempt."""
STREAM_S: Final = 60.0
"""Deadline of one Play stream; the next request opens another."""
PAUSES_S: Final = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Before the second to the sixth attempt; longer where the server asks for it."""
UNREQUESTED: Final = ("notice", "update")
"""What a Play stream sends between answers. The answers hold all that the devkit shows."""
PATIENCE_S: Final = 3.0
"""A request is not repeated if the server asks for a longer pause."""
_UNANSWERED: Final = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED})
_UNANSWERED_REASONS: Final = frozenset({"REQUEST_SEEN"})
"""The server has the answer already, and gives it at the next attempt."""
_ANY_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 - a server listens there; we do not bind it

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)


class CallError(Exception):
    """The server refused a call: `reason` is stable (docs/errors.md), the message may change."""

    def __init__(self, status: Status, code: grpc.StatusCode) -> None:
        super().__init__(status.message)
        self.code = code
        self.message = status.message
        self.reason = ""
        self.metadata: dict[str, str] = {}
        self.pause_s = 0.0
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
    """No attempt was answered. The request may have taken effect: repeat it later with the same request id."""


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
    """The address at which a client on this machine reaches a node with these settings."""
    return reached_at(config.listen)


def reached_at(listen: str) -> str:
    """The address at which a client on this machine reaches a server that listens there."""
    host, _, port = listen.rpartition(":")
    return f"{_ANY_ADDRESS.get(host, host)}:{port}"


class Client:
    """One channel and its stubs. Thread-safe, except for Play streams: each belongs to one thread."""

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
        self.tables = TableServiceStub(self.channel)
        self.table_admin = TableAdminServiceStub(self.channel)

    def request_id(self) -> str:
        """A new UUID that sorts by its time."""
        return format_request_id(wall_ms(), self._entropy.read(ULID_RANDOM_BYTES))

    def call(self, method: grpc.UnaryUnaryMultiCallable[Request, Response], request: Request) -> Response:
        """Send the request, and repeat it while there is no answer. CallError, OutcomeUnknownError."""
        return _patiently(lambda: self.call_once(method, request))

    def call_once(self, method: grpc.UnaryUnaryMultiCallable[Request, Response], request: Request) -> Response:
        """Send the request once. CallError, OutcomeUnknownError."""
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

    def start_round(self, request: play.StartRoundRequest) -> play.StartRoundResponse:
        return self._client.call(self._client.play.StartRound, request)

    def act(self, request: play.ActRequest) -> play.ActResponse:
        return self._client.call(self._client.play.Act, request)

    def close(self) -> None:
        """Do nothing: unary calls hold nothing open."""


class StreamRounds(UnaryRounds):
    """Rounds are played over one Play stream, one request at a time, with the same answers.

    A stream that ends is opened again, and the request is repeated.
    """

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self._requests: SimpleQueue[play.PlayRequest | None] = SimpleQueue()
        self._responses: Iterator[play.PlayResponse] | None = None

    def start_round(self, request: play.StartRoundRequest) -> play.StartRoundResponse:
        return self._ask(play.PlayRequest(start_round=request), request.request_id).start_round

    def act(self, request: play.ActRequest) -> play.ActResponse:
        return self._ask(play.PlayRequest(act=request), request.request_id).act

    def close(self) -> None:
        """End our side, and wait until the server ends the stream."""
        responses = self._responses
        if responses is not None:
            self._drop()
            with suppress(grpc.RpcError):  # every answer has arrived already
                for _ in responses:
                    pass

    def _ask(self, request: play.PlayRequest, request_id: str) -> play.PlayResponse:
        return _patiently(lambda: self._ask_once(request, request_id))

    def _ask_once(self, request: play.PlayRequest, request_id: str) -> play.PlayResponse:
        if self._responses is None:
            self._responses = self._client.play.Play(iter(self._requests.get, None), timeout=STREAM_S)
        self._requests.put(request)
        try:
            response = next(one for one in self._responses if one.WhichOneof("response") not in UNREQUESTED)
        except grpc.RpcError as error:
            self._drop()
            raise refusal_of(error) from None
        except StopIteration:
            self._drop()
            raise made_here(grpc.StatusCode.UNAVAILABLE, "the server ended the stream") from None
        if response.request_id != request_id:
            raise made_here(grpc.StatusCode.DATA_LOSS, "the answer is that of another request")
        if response.HasField("error"):
            raise error_of(response.error)
        return response

    def _drop(self) -> None:
        """Give up the stream: the next request opens another."""
        self._requests.put(None)
        self._requests = SimpleQueue()  # a request that the old stream has not sent must not go out on the new one
        self._responses = None


def _patiently(ask: Callable[[], Response]) -> Response:
    """The first answer in up to six attempts; the error of the last attempt if none is answered."""
    for pause_s in PAUSES_S:
        try:
            return ask()
        except OutcomeUnknownError as error:
            if error.pause_s > PATIENCE_S:
                raise
            time.sleep(max(pause_s, error.pause_s))
    return ask()


def refusal_of(error: grpc.RpcError) -> CallError:
    """The error of a call: the server's refusal, or OutcomeUnknownError if there was no answer."""
    call = cast("grpc.Call", error)  # the library raises an object that is both; its stubs do not say so
    status = from_call(call)
    if status is None:  # from the transport, not from our server
        return made_here(call.code(), call.details() or "no answer")
    return error_of(status)


def made_here(code: grpc.StatusCode, message: str) -> CallError:
    """An error of the way, which no server has sent."""
    return error_of(Status(code=code.value[0], message=message))


def error_of(status: Status) -> CallError:
    """The error that a status says; OutcomeUnknownError if it says that nobody has answered."""
    code = next((code for code in grpc.StatusCode if code.value[0] == status.code), grpc.StatusCode.UNKNOWN)
    error = CallError(status, code)
    if code in _UNANSWERED or error.reason in _UNANSWERED_REASONS:
        return OutcomeUnknownError(status, code)
    return error
