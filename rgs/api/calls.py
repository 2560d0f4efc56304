"""From bytes to an answer and back, the same way for every method: who, how long, what; then the service.

A behaviour of gRPC gets and gives bytes (no serializer in between), so that stored answers leave untouched and a
request that cannot be read is told so with the same details as any other. One coroutine wraps a method; server
interceptors would be one more for each call, and see no message of a stream.

Errors are set on the context instead of raised through `abort` (gRPC's `stop` does not wait for aborted calls, issue
37239), but for those of calls that are not let in. A call without a deadline is accepted: a client that waits for ever
harms itself only. A call whose deadline has passed does nothing. A call that is cancelled once its service works is not
undone: what was committed stands, and the same request id tells.
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
from rgs.api.quotas import RETRY_MS, Account, Limits, OpenStream, Quotas, Streams
from rgs.core.clock import Clock
from rgs.core.errors import DeadlineTooShortError, PartyLimitError, RgsError, UnavailableError
from rgs.service.callers import Caller

CANCELLED = "CANCELLED"
"""How a call ended that was cancelled while its service worked."""

WAIT_S: Final = 1.0
"""How long a stream waits that has nothing to answer."""
FAULT_LINES_MAX: Final = 20
"""Faults of ours that the log tells between two looks; of more it tells the number."""

_Request = TypeVar("_Request", bound=Message)
_Given = TypeVar("_Given")


@dataclass(frozen=True, slots=True)
class Unary(Generic[_Request]):
    """A method: the message that it takes, and what answers it with the bytes of the response."""

    kind: type[_Request]
    answer: Callable[[Caller, _Request], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class Download(Generic[_Request]):
    """A method that answers one message with a stream: the bytes of its responses, one by one; None where there is
    nothing to answer now, and the method wants to be asked again.
    """

    kind: type[_Request]
    answers: Callable[[Caller, _Request], AsyncIterator[bytes | None]]


@dataclass(frozen=True, slots=True)
class Upload(Generic[_Request]):
    """A method that answers a stream of messages with one: it takes them as they come."""

    kind: type[_Request]
    answer: Callable[[Caller, AsyncIterator[_Request]], Awaitable[bytes]]


Methods = Mapping[str, Unary[Any] | Download[Any] | Upload[Any]]
"""The methods of one service by name, but for the stream of play."""


class Calls:
    """The calls of this server: wraps methods, counts what is under way, ends waiting streams when it drains."""

    def __init__(
        self,
        gate: Gate,
        clock: Clock,
        to_act_response: ToActResponse,
        note_fault: Callable[[str], None] = lambda _: None,
        lines: CallLines | None = None,
        limits: Limits = Limits(),  # noqa: B008 - frozen
    ) -> None:
        """`note_fault` is told the reason of every fault of ours; `lines` every call that may change something."""
        self._lines = lines
        self._note_fault = note_fault
        self._gate = gate
        self._clock = clock
        self._to_act_response = to_act_response
        self.quotas = Quotas(limits, clock)
        self.streams = Streams(limits)
        self._waiting: set[asyncio.Task[Any]] = set()
        self._draining = asyncio.Event()
        self._nothing_under_way = asyncio.Event()
        self._nothing_under_way.set()
        self._faults = 0
        self.under_way = 0
        """Calls and messages of streams that are being worked on."""

    # --- unary --------------------------------------------------------------------------------------------------------

    def unary(self, name: str, method: Unary[Any]) -> grpc.RpcMethodHandler[bytes, bytes]:
        """The method as gRPC takes it; `name` is `<service>/<method>`."""

        async def behave(data: bytes, context: Context) -> bytes:
            self.begin()
            request_id = ""
            account: Account | None = None
            try:
                caller = self.admit(certificate_of(context), name, context)
                verify_metadata(context)
                account = self.quotas.enter(caller)
                message = parse_message(method.kind, data)
                request_id = getattr(message, "request_id", "")
                return await self.answer(name, method, caller, message)
            except Exception as error:  # noqa: BLE001 - every error becomes a status, here and nowhere else
                status = self.status(error, name, request_id)
                if account is None:
                    await refuse(context, status)
                end_with(context, status)
                return b""
            finally:
                self.end()

        return grpc.unary_unary_rpc_method_handler(behave)

    def download(self, name: str, method: Download[Any]) -> grpc.RpcMethodHandler[bytes, bytes]:
        """As `unary`, with a stream of responses. Who calls is asked again before each."""

        async def behave(data: bytes, context: Context) -> None:
            self.begin()
            stream: OpenStream | None = None
            try:
                certificate = certificate_of(context)
                caller = self.admit(certificate, name, context)
                verify_metadata(context)
                stream = self.streams.open(self.quotas.enter(caller))
                async for answer in method.answers(caller, parse_message(method.kind, data)):
                    self.admit(certificate, name, context)
                    if answer is None:
                        await self.wait_for(partial(asyncio.sleep, WAIT_S))
                        continue
                    stream.writes_s = self.streams.now_s
                    await context.write(answer)
                    stream.writes_s = None
            except asyncio.CancelledError:
                if stream is None or stream.ending is None:
                    raise  # the client has gone
                end_with(context, self.status(stream.ending, name, ""))
            except Exception as error:  # noqa: BLE001 - as above
                end_with(context, self.status(error, name, ""))
            finally:
                self.end()

        return grpc.unary_stream_rpc_method_handler(behave)

    def upload(self, name: str, method: Upload[Any]) -> grpc.RpcMethodHandler[bytes, bytes]:
        """As `unary`, with a stream of requests. Who calls is asked again at each; a party above its messages a second
        is not refused in the middle, but read from more slowly.
        """

        async def behave(_requests: AsyncIterator[bytes], context: Context) -> bytes:
            self.begin()
            stream: OpenStream | None = None
            try:
                certificate = certificate_of(context)
                caller = self.admit(certificate, name, context)
                verify_metadata(context)
                stream = self.streams.open(self.quotas.enter(caller))
                async with contextlib.aclosing(self._uploaded(name, method.kind, context, stream)) as messages:
                    return await method.answer(caller, messages)
            except asyncio.CancelledError:
                if stream is None or stream.ending is None:
                    raise  # the client has gone
                end_with(context, self.status(stream.ending, name, ""))
                return b""
            except Exception as error:  # noqa: BLE001 - as above
                status = self.status(error, name, "")
                if stream is None:
                    await refuse(context, status)
                end_with(context, status)
                return b""
            finally:
                self.end()

        return grpc.stream_unary_rpc_method_handler(behave)

    async def _uploaded(
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

    # --- what a stream needs besides ----------------------------------------------------------------------------------

    async def answer(self, name: str, method: Unary[Any], caller: Caller, message: Message) -> bytes:
        """What the service answers; the log is told of it where the method may change something."""
        if self._lines is None or not hasattr(message, "request_id"):
            return await method.answer(caller, message)
        time_s = asyncio.get_running_loop().time
        begun_s, answer, reason = time_s(), b"", CANCELLED
        try:
            answer = await method.answer(caller, message)
            reason = OK
        except Exception as error:
            reason = error.reason if isinstance(error, RgsError) else INTERNAL
            raise
        finally:
            self._lines.tell(name, caller.party, message, answer, reason, time_s() - begun_s)
        return answer

    def admit(self, certificate: bytes | None, name: str, context: Context) -> Caller:
        """The caller, if he may call the method now and his deadline has not passed."""
        caller = self._gate.caller(certificate, name)
        left_s = cast("float | None", context.time_remaining())  # None without a deadline, which the stubs do not know
        if left_s is not None and left_s <= 0:
            raise DeadlineTooShortError("the deadline has passed; nothing was done", method=name)
        return caller

    def status(self, error: Exception, name: str, request_id: str) -> Status:
        """The status of an error; a fault of ours is logged with it."""
        told = status_of(
            error,
            logged=self._faults < FAULT_LINES_MAX,
            method=name,
            request_id=request_id[:64],
            now_ms=self._clock.now_ms(),
            to_act_response=self._to_act_response,
        )
        if told.code in FAULT_NUMBERS:
            self._faults += 1
            self._note_fault(error.reason if isinstance(error, RgsError) else INTERNAL)
        return told

    async def wait_for(self, receive: Callable[[], Awaitable[_Given]]) -> _Given:
        """What a stream waits for while it has nothing to do; UnavailableError as soon as the server drains."""
        if not self._draining.is_set():
            task = cast("asyncio.Task[Any]", asyncio.current_task())
            self._waiting.add(task)
            try:
                return await receive()
            except asyncio.CancelledError:
                if not self._draining.is_set():
                    raise
                task.uncancel()
            finally:
                self._waiting.discard(task)
        raise UnavailableError("this server stops: open the stream again, elsewhere or later") from None

    def begin(self) -> None:
        """Something is under way."""
        self.under_way += 1
        self._nothing_under_way.clear()

    def end(self) -> None:
        """It has been answered."""
        self.under_way -= 1
        if not self.under_way:
            self._nothing_under_way.set()

    def look(self) -> None:
        """To be called once a second: ends streams that have waited too long, logs what was refused."""
        self.streams.look(asyncio.get_running_loop().time())
        self.quotas.look()
        if self._lines is not None:
            self._lines.look()
        if self._faults > FAULT_LINES_MAX:
            structlog.get_logger().error("faults_left_out", count=self._faults - FAULT_LINES_MAX)
        self._faults = 0

    # --- the end of the server ----------------------------------------------------------------------------------------

    def drain(self) -> None:
        """End the streams that wait; those that work end after their answer. Later waits end at once."""
        self._draining.set()
        for task in self._waiting:
            task.cancel()

    async def finished(self) -> None:
        """Returns once nothing is under way."""
        await self._nothing_under_way.wait()


async def refuse(context: Context, status: Status) -> None:
    """End a unary call with this status and no response, which gRPC sends with `end_with`: an empty one waits for room
    on the client's side, and holds a place of the server meanwhile. Does not return.
    """
    told: Any = rpc_status.to_status(status)
    await context.abort(told.code, told.details, told.trailing_metadata)


def end_with(context: Context, status: Status) -> None:
    """Let the call end with this status."""
    told: Any = rpc_status.to_status(status)
    context.set_code(told.code)
    context.set_details(told.details)
    context.set_trailing_metadata(told.trailing_metadata)
