"""The path of every call: admit the caller, check the deadline, read the request, call the service, answer.

gRPC hands over bytes and gets bytes: stored answers are sent unchanged, and a request that cannot be read gets an error
with the same details as any other. One coroutine wraps a method. (Server interceptors would add one to each call, and
do not see the messages of a stream.)

Errors are set on the context. `abort` is used only for calls that were not admitted, because gRPC's `stop` does not
wait for aborted calls (issue 37239). A call without a deadline is accepted. A call whose deadline has passed does
nothing. A call that is cancelled while its service works is not undone: what was committed stands, and a repeat with
the same request id gets its answer.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, TypeVar, cast

import grpc
import structlog
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from rgs.api.access import OK, CallLines
from rgs.api.auth import Context, Gate, certificate_of, verify_metadata
from rgs.api.errors import FAULT_NUMBERS, INTERNAL, ToActResponse, status_of
from rgs.api.parsing import parse_message
from rgs.api.quotas import RETRY_MS, Account, OpenStream, OpenStreams, PartyLimits, Quotas
from rgs.core.clock import Clock
from rgs.core.errors import DeadlineTooShortError, PartyLimitError, RgsError, UnavailableError
from rgs.observe.histogram import LATENCY_S, Histogram
from rgs.observe.traces import TRACEPARENT, Tracer
from rgs.service.callers import Caller

CANCELLED = "CANCELLED"
"""The reason in the log for a call that was cancelled while its service worked."""

WAIT_S: Final = 1.0
"""Seconds before a stream without an answer asks its method again."""
FAULT_LINES_MAX: Final = 20
"""Server faults that are logged between two calls of `poll`; of further ones only the number is."""

_Request = TypeVar("_Request", bound=Message)
_Given = TypeVar("_Given")


@dataclass(frozen=True, slots=True)
class Unary(Generic[_Request]):
    """A unary method: the type of its request, and the function that returns the bytes of the response."""

    kind: type[_Request]
    answer: Callable[[Caller, _Request], Awaitable[bytes]]


Wait = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class ServerStream(Generic[_Request]):
    """A method with a stream of responses. `answers` is an asynchronous generator of the bytes of each.

    None: nothing to send yet, ask again. A function: ask again once what it returns is done.
    """

    kind: type[_Request]
    answers: Callable[[Caller, _Request], AsyncIterator[bytes | Wait | None]]


@dataclass(frozen=True, slots=True)
class ClientStream(Generic[_Request]):
    """A method with a stream of requests and one response."""

    kind: type[_Request]
    answer: Callable[[Caller, AsyncIterator[_Request]], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class Duplex:
    """A method with a stream of requests and one of responses. It gets the calls of the server and its own name
    (`<service>/<method>`), and makes its handler for gRPC.
    """

    handler: Callable[[Calls, str], grpc.RpcMethodHandler[bytes, bytes]]


Methods = Mapping[str, Unary[Any] | ServerStream[Any] | ClientStream[Any] | Duplex]
"""The methods of one service by name."""


class Calls:
    """The calls of this server: wraps methods, counts what is under way, ends waiting streams when it drains."""

    def __init__(
        self,
        gate: Gate,
        clock: Clock,
        to_act_response: ToActResponse,
        note_fault: Callable[[str], None] = lambda _: None,
        lines: CallLines | None = None,
        limits: PartyLimits = PartyLimits(),  # noqa: B008 - frozen
        tracer: Tracer | None = None,
    ) -> None:
        """`note_fault` gets the reason of every server fault; `lines` logs every call that may change something;
        `tracer` makes a span of every call.
        """
        self._tracer = tracer
        self._lines = lines
        self._note_fault = note_fault
        self._gate = gate
        self._clock = clock
        self._to_act_response = to_act_response
        self.quotas = Quotas(limits, clock)
        self.streams = OpenStreams(limits)
        self._waiting: set[asyncio.Task[Any]] = set()
        self._draining = asyncio.Event()
        self._nothing_under_way = asyncio.Event()
        self._nothing_under_way.set()
        self._faults = 0
        self.under_way = 0
        """Calls and messages of streams that are being processed."""
        self.reasons: dict[tuple[str, str], int] = {}
        """How many have ended since the start, by method and reason."""
        self.times: dict[str, Histogram] = {}
        """How long they took, by method."""

    # --- unary --------------------------------------------------------------------------------------------------------

    def unary(self, name: str, method: Unary[Any]) -> grpc.RpcMethodHandler[bytes, bytes]:
        """The handler for gRPC; `name` is `<service>/<method>`."""

        async def behave(data: bytes, context: Context) -> bytes:
            begun_s, reason = self.begin(context), CANCELLED
            request_id = ""
            account: Account | None = None
            try:
                caller = self.admit(certificate_of(context), name, context)
                verify_metadata(context)
                account = self.quotas.enter(caller)
                message = parse_message(method.kind, data)
                request_id = getattr(message, "request_id", "")
                answer = await self.answer(name, method, caller, message)
                reason = OK
                return answer
            except Exception as error:  # noqa: BLE001 - every error becomes a status
                reason = reason_of(error)
                status = self.status(error, name, request_id)
                if account is None:
                    await refuse(context, status)
                end_with(context, status)
                return b""
            finally:
                self.end(name, reason, begun_s)

        return grpc.unary_unary_rpc_method_handler(behave)

    def server_stream(self, name: str, method: ServerStream[Any]) -> grpc.RpcMethodHandler[bytes, bytes]:
        """As `unary`, with a stream of responses. The caller is admitted again before each."""

        async def behave(data: bytes, context: Context) -> None:
            async def answer(caller: Caller, stream: OpenStream) -> bytes:
                answers = cast("AsyncGenerator[Any, None]", method.answers(caller, parse_message(method.kind, data)))
                async with contextlib.aclosing(answers):  # however the stream ends, its generator ends at once
                    async for response in answers:
                        self.admit(certificate_of(context), name, context)
                        if not isinstance(response, bytes):
                            await self.wait_for(response or partial(asyncio.sleep, WAIT_S))
                            continue
                        stream.writes_s = self.streams.now_s
                        await context.write(response)
                        stream.writes_s = None
                return b""

            await self._stream(name, context, answer)

        return grpc.unary_stream_rpc_method_handler(behave)

    def client_stream(self, name: str, method: ClientStream[Any]) -> grpc.RpcMethodHandler[bytes, bytes]:
        """As `unary`, with a stream of requests. The caller is admitted again at each. A party above its messages a
        second gets no error in the middle of a stream, but is read from more slowly.
        """

        async def behave(_requests: AsyncIterator[bytes], context: Context) -> bytes:
            async def answer(caller: Caller, stream: OpenStream) -> bytes:
                async with contextlib.aclosing(self._requests(name, method.kind, context, stream)) as messages:
                    return await method.answer(caller, messages)

            return await self._stream(name, context, answer, aborts=True)

        return grpc.stream_unary_rpc_method_handler(behave)

    async def _stream(
        self,
        name: str,
        context: Context,
        answer: Callable[[Caller, OpenStream], Awaitable[bytes]],
        *,
        aborts: bool = False,
    ) -> bytes:
        """Run a stream of an admitted caller. Every error becomes its status; `aborts`: by `refuse`, if the caller was
        not admitted.
        """
        begun_s, reason = self.begin(context), CANCELLED
        stream: OpenStream | None = None
        try:
            caller = self.admit(certificate_of(context), name, context)
            verify_metadata(context)
            stream = self.streams.open(self.quotas.enter(caller))
            answered = await answer(caller, stream)
            reason = OK
            return answered
        except asyncio.CancelledError:
            if stream is None or stream.ending is None:
                raise  # the client is gone
            reason = stream.ending.reason
            end_with(context, self.status(stream.ending, name, ""))
        except Exception as error:  # noqa: BLE001 - every error becomes a status
            reason = reason_of(error)
            status = self.status(error, name, "")
            if aborts and stream is None:
                await refuse(context, status)
            end_with(context, status)
        finally:
            self.end(name, reason, begun_s)
        return b""

    async def _requests(
        self, name: str, kind: type[Message], context: Context, stream: OpenStream
    ) -> AsyncGenerator[Any, None]:
        certificate = certificate_of(context)
        while True:
            stream.reads_s = self.streams.now_s
            if (data := await self.wait_for(context.read)) is grpc.aio.EOF:
                return
            stream.reads_s = None
            self.admit(certificate, name, context)
            while True:
                try:
                    stream.account.enter()
                    break
                except PartyLimitError:
                    await asyncio.sleep(RETRY_MS / 1000)
            try:
                yield parse_message(kind, data)
            finally:
                stream.account.leave()

    # --- also used by the stream of play ------------------------------------------------------------------------------

    async def answer(self, name: str, method: Unary[Any], caller: Caller, message: Message) -> bytes:
        """The service's answer. The call is logged if the method may change something."""
        if self._lines is None or not hasattr(message, "request_id"):
            return await method.answer(caller, message)
        time_s = asyncio.get_running_loop().time
        begun_s, answer, reason = time_s(), b"", CANCELLED
        try:
            answer = await method.answer(caller, message)
            reason = OK
        except Exception as error:
            reason = reason_of(error)
            raise
        finally:
            self._lines.emit(name, caller.party, message, answer, reason, time_s() - begun_s)
        return answer

    def admit(self, certificate: bytes | None, name: str, context: Context) -> Caller:
        """The caller, if it may call the method now and its deadline has not passed. RgsError otherwise."""
        caller = self._gate.caller(certificate, name)
        left_s: Any = context.time_remaining()  # None without a deadline; the stubs leave that out
        if left_s is not None and left_s <= 0:
            raise DeadlineTooShortError("the deadline has passed; nothing was done", method=name)
        return caller

    def status(self, error: Exception, name: str, request_id: str) -> Status:
        """The status of an error. A server fault is logged and counted."""
        status = status_of(
            error,
            logged=self._faults < FAULT_LINES_MAX,
            method=name,
            request_id=request_id[:64],
            now_ms=self._clock.now_ms(),
            to_act_response=self._to_act_response,
        )
        if status.code in FAULT_NUMBERS:
            self._faults += 1
            self._note_fault(reason_of(error))
        return status

    async def wait_for(self, receive: Callable[[], Awaitable[_Given]]) -> _Given:
        """Wait in a stream for what `receive` returns. UnavailableError as soon as the server drains."""
        if not self._draining.is_set():
            task: Any = asyncio.current_task()
            self._waiting.add(task)
            try:
                return await receive()
            except asyncio.CancelledError:
                if not self._draining.is_set():
                    raise
                task.uncancel()
            finally:
                self._waiting.discard(task)
        raise UnavailableError("this server is stopping: open the stream again, elsewhere or later") from None

    def begin(self, context: Context | None = None) -> float:
        """Count a call or message as under way; the time now, for `end`. `context` has the caller's headers."""
        if self._tracer is not None:
            self._tracer.enter("" if context is None else _traceparent_of(context))
        self.under_way += 1
        if self.under_way == 1:
            self._nothing_under_way.clear()
        return asyncio.get_running_loop().time()

    def end(self, name: str, reason: str, begun_s: float) -> None:
        """Count it as answered, under its method and OK or why not."""
        self.under_way -= 1
        if not self.under_way:
            self._nothing_under_way.set()
        self.reasons[name, reason] = self.reasons.get((name, reason), 0) + 1
        times = self.times.get(name)
        if times is None:
            times = self.times[name] = Histogram(LATENCY_S)
        times.observe(asyncio.get_running_loop().time() - begun_s)
        if self._tracer is not None:
            self._tracer.leave(name, reason)

    def poll(self) -> None:
        """To be called once a second: ends streams that have waited too long, logs how much was refused."""
        self.streams.poll(asyncio.get_running_loop().time())
        self.quotas.poll()
        if self._lines is not None:
            self._lines.poll()
        if self._faults > FAULT_LINES_MAX:
            structlog.get_logger().error("faults_left_out", count=self._faults - FAULT_LINES_MAX)
        self._faults = 0

    # --- the end of the server ----------------------------------------------------------------------------------------

    def drain(self) -> None:
        """End the waiting streams now, the others after their answer. Later waits end at once."""
        self._draining.set()
        for task in self._waiting:
            task.cancel()

    async def finished(self) -> None:
        """Wait until nothing is under way."""
        await self._nothing_under_way.wait()


def _traceparent_of(context: Context) -> str:
    """The caller's `traceparent`, empty without one. Of several gRPC keeps one."""
    for key, value in context.invocation_metadata() or ():
        if key == TRACEPARENT:
            return str(value)
    return ""


def reason_of(error: Exception) -> str:
    """The reason under which an error is logged and counted."""
    return error.reason if isinstance(error, RgsError) else INTERNAL


async def refuse(context: Context, status: Status) -> None:
    """End a call with this status and without a response. Does not return.

    With `end_with`, gRPC sends an empty response, which waits for room on the client's side and holds a place of the
    server meanwhile.
    """
    made: Any = rpc_status.to_status(status)
    await context.abort(made.code, made.details, made.trailing_metadata)


def end_with(context: Context, status: Status) -> None:
    """Let the call end with this status."""
    made: Any = rpc_status.to_status(status)
    context.set_code(made.code)
    context.set_details(made.details)
    context.set_trailing_metadata(made.trailing_metadata)
