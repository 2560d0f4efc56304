"""One peer over gRPC: a long-lived channel over mutual TLS, a deadline on every call, and a strict reading of answers.

It implements ARCHITECTURE 2.17 (a timeout is never read as a failure) and 3 (canonical code and exactly one ErrorInfo).
An answer is a response, or a refusal of the contract: an ErrorInfo of its domain with a reason of its table, for this
method and under this code. Everything else is unknown: DEADLINE_EXCEEDED, UNAVAILABLE, CANCELLED, INTERNAL, a code
alone, a reason under another code, two ErrorInfos.

A call is sent once: gRPC's own retries are off, transparent ones too, because each attempt has an id of its own. The
peer needs a certificate. At most TEXT_MAX characters of a peer's text are repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, TypeVar

import grpc
import structlog
from google.protobuf.message import DecodeError, Message
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from rgs.adapters.grpc.circuit import Circuit
from rgs.core.errors import UnavailableError
from rgs.observe.histogram import LATENCY_S, Histogram
from rgs.observe.traces import TRACEPARENT, SpanKind, Tracer, format_traceparent
from rgs.ports.readings import CircuitReading

DETAILS: Final = "grpc-status-details-bin"
OK, CANCELLED, NOT_SENT = "OK", "CANCELLED", "NOT_SENT"
"""Reasons of calls that were answered, whose caller or channel went away, and that were not sent."""
TEXT_MAX: Final = 200
"""Longest text of a peer that we repeat, in characters."""
DEADLINE_MS: Final = 3_000
MESSAGE_BYTES_MAX: Final = 1024 * 1024
"""Largest answer. The largest request, a report of 1000 stages, is less than half as large."""
_OPTIONS: Final = (
    ("grpc.enable_retries", 0),
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.ping_timeout_ms", 5_000),  # the longer of the two counts, and this one is 60 s by default
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
)

_Response = TypeVar("_Response", bound=Message)


@dataclass(frozen=True, slots=True)
class PeerSettings:
    """Address, keys and limits of a peer. Keys and certificates are PEM, times are milliseconds.

    `server_name` is the name in the peer's certificate if it differs from that of `target`.
    """

    target: str
    ca: bytes
    certificate: bytes
    key: bytes = field(repr=False)
    server_name: str = ""
    deadline_ms: int = DEADLINE_MS
    failures_max: int = 5
    open_ms: int = 5_000
    in_flight_max: int = 256


@dataclass(frozen=True, slots=True)
class RefusalRow:
    """One reason of a contract: its canonical code, its meaning, and the methods that may answer it (empty: all)."""

    code: grpc.StatusCode
    meaning: str
    methods: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PeerContract:
    """How a kind of peer refuses: the domain and the table of its reasons, and our error for an unknown outcome."""

    domain: str
    refusals: Mapping[str, RefusalRow]
    unavailable: type[UnavailableError]


class RefusedError(Exception):
    """The peer's definite refusal, before an adapter maps it. It never leaves this room."""

    def __init__(self, reason: str, message: str, metadata: Mapping[str, str], retry_after_ms: int) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.metadata = metadata
        self.retry_after_ms = retry_after_ms


OnContradiction = Callable[[str, str, str, str], None]
"""Called with peer, method, transaction id and the contradicting field of an answer."""


def log_contradiction(peer: str, method: str, transaction_id: str, what: str) -> None:
    """Write one line to the technical log."""
    structlog.get_logger().error(
        "peer_contradiction", peer=peer, method=method, transaction_id=transaction_id, what=what
    )


@dataclass(frozen=True, slots=True)
class PeerCall:
    """A call to a peer that has ended: `reason` is OK, the reason of a refusal, gRPC's code, CONTRADICTION or
    NOT_SENT. Ids are empty where the method has none.
    """

    peer: str
    method: str
    transaction_id: str
    attempt_id: str
    reason: str
    passed_s: float


class Peer:
    """A channel and its circuit.

    `now_ms` is a monotonic clock (`rgs.node.clock.monotonic_ms`) for the circuit. A peer is made and used in one event
    loop, as grpc.aio requires.
    """

    def __init__(
        self,
        name: str,
        settings: PeerSettings,
        contract: PeerContract,
        *,
        now_ms: Callable[[], int],
        on_contradiction: OnContradiction = log_contradiction,
    ) -> None:
        self.name = name
        self._deadline_s = settings.deadline_ms / 1000
        self._contract = contract
        self._unavailable = contract.unavailable
        self._on_contradiction = on_contradiction
        self._closed = False
        self.now_ms = now_ms
        """The clock of the circuit's readings."""
        self.tracer: Tracer | None = None
        """Makes a span of each call within a traced one, whose trace the peer gets as `traceparent`."""
        self.on_call: Callable[[PeerCall], None] = lambda _: None
        """Called with every call that has ended."""
        self.reasons: dict[tuple[str, str], int] = {}
        """Calls since the start, by method and reason."""
        self.times: dict[str, Histogram] = {}
        """How long they took, by method."""
        self._circuit = Circuit(
            name,
            now_ms,
            contract.unavailable,
            failures_max=settings.failures_max,
            open_ms=settings.open_ms,
            in_flight_max=settings.in_flight_max,
        )
        credentials = grpc.ssl_channel_credentials(settings.ca, settings.key, settings.certificate)
        named = (("grpc.ssl_target_name_override", settings.server_name),) if settings.server_name else ()
        self.channel = grpc.aio.secure_channel(settings.target, credentials, options=(*_OPTIONS, *named))

    def reading(self) -> CircuitReading:
        """The state of the circuit now."""
        return self._circuit.reading()

    async def call(
        self,
        method: Any,  # a stub's method: the types of the generated stubs differ from release to release
        name: str,
        request: Message,
        judge: Callable[[_Response], str],
        *,
        transaction_id: str = "",
    ) -> _Response:
        """Send the request once. `judge` names the field of the response that contradicts the request, or "".

        RefusedError, or the unavailable error: the call may have had its effect.
        """
        begun_s, reason = asyncio.get_running_loop().time(), CANCELLED
        try:
            if self.tracer is None:
                response: _Response = await self._send(method, name, request, judge, transaction_id)
            else:
                response = await self._traced(self.tracer, method, name, request, judge, transaction_id)
            reason = OK
            return response
        except (RefusedError, UnavailableError) as error:
            reason = _reason_of(error)
            raise
        finally:
            passed_s = asyncio.get_running_loop().time() - begun_s
            self.reasons[name, reason] = self.reasons.get((name, reason), 0) + 1
            self.times.setdefault(name, Histogram(LATENCY_S)).observe(passed_s)
            attempt_id = getattr(request, "attempt_id", "")
            self.on_call(PeerCall(self.name, name, transaction_id, attempt_id, reason, passed_s))

    async def _traced(
        self,
        tracer: Tracer,
        method: Any,
        name: str,
        request: Message,
        judge: Callable[[_Response], str],
        transaction_id: str,
    ) -> _Response:
        known = {"rgs.peer": self.name, "rgs.transaction_id": transaction_id}
        with tracer.inner(name, SpanKind.CLIENT, known) as span:
            carried = {} if span is None else {"metadata": ((TRACEPARENT, format_traceparent(span.context)),)}
            try:
                response = await self._send(method, name, request, judge, transaction_id, **carried)
            except (RefusedError, UnavailableError) as error:
                if span is not None:
                    span.reason = _reason_of(error)
                raise
            if span is not None:
                span.reason = OK
            return response

    async def _send(
        self,
        method: Any,
        name: str,
        request: Message,
        judge: Callable[[_Response], str],
        transaction_id: str,
        **carried: Any,
    ) -> _Response:
        """Send it with the metadata that is `carried`, if any."""
        if self._closed:
            raise self._unavailable(f"{self.name} is closed", code=CANCELLED)
        with self._circuit.call() as outcome:
            try:
                response: _Response | None = await method(request, timeout=self._deadline_s, **carried)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                # Nobody cancelled the caller: the channel was closed under the call.
                raise self._unavailable(f"{self.name} is closed", code=CANCELLED) from None
            except grpc.aio.AioRpcError as error:
                refused = read_refusal(error, name, self._contract)
                if isinstance(refused, str):
                    code = error.code().name
                    raise self._unavailable(f"{self.name} did not answer {name}: {code}", code=code) from None
                outcome.is_answered = True
                raise refused from None
            if response is None:  # gRPC could not decode the bytes
                self._contradicted(name, transaction_id, "message")
            if what := judge(response):
                self._contradicted(name, transaction_id, what)
            outcome.is_answered = True
            return response

    async def close(self) -> None:
        """Wait for running calls, at most one deadline, and close the channel."""
        self._closed = True
        await self.channel.close(self._deadline_s)

    def _contradicted(self, method: str, transaction_id: str, what: str) -> NoReturn:
        self._on_contradiction(self.name, method, transaction_id, what)
        raise self._unavailable(f"{self.name} answered {method} with another {what}", contradiction=what)


def read_refusal(error: grpc.aio.AioRpcError, method: str, contract: PeerContract) -> RefusedError | str:
    """The refusal that a call of the method was answered with, or what keeps it from being one of the contract: then
    the outcome of the call is unknown.
    """
    code = error.code()
    try:
        status = Status.FromString(dict(error.trailing_metadata() or ())[DETAILS])
        infos, retry = [], RetryInfo()
        for detail in status.details:
            info = ErrorInfo()
            if detail.Unpack(info):
                infos.append(info)
            else:
                detail.Unpack(retry)
    except KeyError:
        return "no google.rpc.Status"
    except DecodeError:
        return "a google.rpc.Status that cannot be read"
    if len(infos) != 1:
        return f"{len(infos)} ErrorInfos, not one"
    if status.code != code.value[0]:
        return f"code {status.code} in the google.rpc.Status, not {code.value[0]}"
    (info,) = infos
    reason = info.reason[:TEXT_MAX]
    row = contract.refusals.get(info.reason)
    if info.domain != contract.domain:
        return f"{reason} of the domain {info.domain[:TEXT_MAX]}, not {contract.domain}"
    if row is None:
        return f"{reason}, which the contract does not know"
    if row.code is not code:
        return f"{reason} as {code.name}, not {row.code.name}"
    if row.methods and method not in row.methods:
        return f"{reason}, which {method} may not answer"
    metadata = {key[:TEXT_MAX]: value[:TEXT_MAX] for key, value in info.metadata.items()}
    wait_ms = retry.retry_delay.ToMilliseconds()
    return RefusedError(info.reason, status.message[:TEXT_MAX], metadata, wait_ms)


def _reason_of(error: RefusedError | UnavailableError) -> str:
    if isinstance(error, RefusedError):
        return error.reason
    return "CONTRADICTION" if "contradiction" in error.metadata else error.metadata.get("code", NOT_SENT)
