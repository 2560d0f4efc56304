"""A simulator's gRPC server over mutual TLS: it loses, delays, repeats and reorders messages by its plan.

The faults of the way are committed here, the same for every simulator; the faults of a book by the simulator itself. A
call that has begun runs to its end even if the caller has gone: no fault leaves half a transfer. Clients need a
certificate of the CA, and messages have at most MESSAGE_BYTES_MAX bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from rgs.adapters.grpc.peer import DETAILS, RefusalRow
from rgs.core.errors import InvalidFieldError, RegulatorUnavailableError, RgsError, WalletUnavailableError
from rgs.devkit.simulators.faults import Call, Fault, Faults

MESSAGE_BYTES_MAX: Final = 1024 * 1024
AFTER_DEADLINE_S: Final = 0.05
"""Seconds after the caller's deadline at which a delayed message takes effect."""
RETRY_MS: Final = 500
"""Milliseconds in the RetryInfo of a refusal with UNAVAILABLE."""

_Port = TypeVar("_Port")


class WireError(Exception):
    """A refusal of the contract: its reason and metadata."""

    def __init__(self, reason: str, message: str, metadata: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.metadata = dict(metadata or {})


class NobodyError(Exception):
    """The caller gets UNAVAILABLE without a reason: it cannot know what was done."""


@dataclass(frozen=True, slots=True)
class SimulatedMethod:
    """One method of the contract: its request type, and the function that answers."""

    request: type[Message]
    answer: Callable[[Any, Call], Awaitable[Message]]


class Simulator(ABC):
    """A book behind a gRPC contract, and false answers about it. A subclass names the contract and its methods."""

    service: str
    domain: str
    refusals: Mapping[str, RefusalRow]

    def __init__(self, path: Path, faults: Faults) -> None:
        self.faults = faults
        self._path = path
        self._turn = asyncio.Lock()
        """One message at a time: a lookup and its false answer are one step, and a plan has one outcome."""
        self._open()

    @abstractmethod
    def methods(self) -> Mapping[str, SimulatedMethod]:
        """The methods of the contract by name."""

    @abstractmethod
    def subject(self, request: Any) -> str:
        """The transaction id of a request, "" where it has none."""

    @abstractmethod
    async def close(self) -> None:
        """Close the book."""

    @abstractmethod
    def _open(self) -> None:
        """Open the book."""

    @abstractmethod
    def _forget(self) -> None:
        """Forget the false answers: the book is a new one."""

    @abstractmethod
    def _reason(self, error: RgsError, request: Any) -> str:
        """The reason of the contract for an error of the book."""

    async def restart(self, *, empty: bool) -> None:
        """Start again with the same book, or with an empty one."""
        async with self._turn:
            await self.close()
            if empty:
                put_aside(self._path)
                self._forget()
            self._open()

    async def answer(self, method: SimulatedMethod, request: Any, call: Call) -> Message:
        """Answer a request. WireError, NobodyError."""
        try:
            async with self._turn:
                return await method.answer(request, call)
        except (WalletUnavailableError, RegulatorUnavailableError):
            raise NobodyError from None
        except RgsError as error:
            metadata = {name: value for name, value in error.metadata.items() if name != "rejection"}
            if error.field is not None:
                metadata["field"] = error.field
            raise WireError(self._reason(error, request), error.message, metadata) from None


def copied(kind: type[_Port], message: Any, **given: Any) -> _Port:
    """The message as a type of the port: the fields given, and all others from the message by their names."""
    names = (found.name for found in fields(kind) if found.name not in given)  # type: ignore[arg-type]
    return kind(**{name: getattr(message, name) for name in names}, **given)


def put_aside(path: Path) -> None:
    """Rename a book's file and its log; nothing is deleted."""
    number = 1
    while (aside := path.with_name(f"{path.name}.lost-{number}")).exists():
        number += 1
    for suffix in ("", "-wal", "-shm"):
        found = path.with_name(path.name + suffix)
        if found.exists():
            found.rename(aside.with_name(aside.name + suffix))


@dataclass(frozen=True, slots=True)
class ServerTls:
    """PEM: the server's key and chain, and the CA of the clients."""

    key: bytes = field(repr=False)
    chain: bytes
    client_ca: bytes


class SimulatorServer:
    """A simulator on a port. Create, start and stop it in one event loop."""

    def __init__(self, simulator: Simulator, listen: str, tls: ServerTls) -> None:
        self._simulator = simulator
        self._held: defaultdict[str, list[tuple[SimulatedMethod, Any, Call]]] = defaultdict(list)
        """Messages held back for reordering, by transaction id."""
        self._outage_left = 0
        self._late: set[asyncio.Task[Any]] = set()
        self._server = grpc.aio.server(
            options=(("grpc.max_receive_message_length", MESSAGE_BYTES_MAX), ("grpc.so_reuseport", 0))
        )
        handlers = {name: self._handler(name, method) for name, method in simulator.methods().items()}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(simulator.service, handlers),))
        credentials = grpc.ssl_server_credentials([(tls.key, tls.chain)], tls.client_ca, require_client_auth=True)
        try:
            self.port = self._server.add_secure_port(listen, credentials)
        except RuntimeError:
            raise InvalidFieldError(f"cannot listen on {listen}", field="listen", value=listen) from None

    async def start(self) -> None:
        """Accept calls."""
        await self._server.start()

    async def switch_faults(self, on: bool) -> None:
        """Switch the faults on or off; off also delivers the messages that were held back."""
        self._simulator.faults.is_on = on
        if not on:
            self._outage_left = 0
            for subject in list(self._held):
                await self._deliver_held(subject)

    async def drain(self) -> None:
        """Accept no more calls, and finish those that have begun."""
        await self._server.stop(1.0)
        while self._late:
            await asyncio.gather(*self._late, return_exceptions=True)

    async def stop(self) -> None:
        """Drain, and close the book."""
        await self.drain()
        await self._simulator.close()

    def _handler(self, name: str, method: SimulatedMethod) -> grpc.RpcMethodHandler[Any, Any]:
        async def handle(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Message:
            call = self._simulator.faults.next(name)
            # A task of its own, so that the call runs to its end if the caller goes.
            task = asyncio.ensure_future(self._answer(method, request, call, context.time_remaining()))
            self._late.add(task)
            task.add_done_callback(self._forget)
            try:
                return await asyncio.shield(task)
            except WireError as error:
                await self._refuse(context, error, call, self._simulator.subject(request))
            except NobodyError:
                await context.abort(grpc.StatusCode.UNAVAILABLE, "nobody is here")

        return grpc.unary_unary_rpc_method_handler(
            handle,
            request_deserializer=method.request.FromString,
            response_serializer=lambda response: response.SerializeToString(),
        )

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._late.discard(task)
        if not task.cancelled():
            task.exception()  # read it, so that asyncio does not warn if the caller has gone

    async def _answer(self, method: SimulatedMethod, request: Any, call: Call, remaining_s: float | None) -> Message:
        faults, subject = self._simulator.faults, self._simulator.subject(request)
        if Fault.OUTAGE in call.faults:
            self._outage_left = max(self._outage_left, call.outage_calls)
        if self._outage_left:
            self._outage_left -= 1
            faults.commit(call, Fault.OUTAGE, subject)
            raise NobodyError
        if faults.commit_if_due(call, Fault.LOST_REQUEST, subject):
            raise NobodyError
        if subject and faults.commit_if_due(call, Fault.REORDER, subject):
            self._held[subject].append((method, request, call))
            raise NobodyError
        if remaining_s is not None and faults.commit_if_due(call, Fault.DELAY, subject):
            await asyncio.sleep(max(0.0, remaining_s) + AFTER_DEADLINE_S)
        try:
            response = await self._simulator.answer(method, request, call)
            if faults.commit_if_due(call, Fault.DUPLICATE, subject):
                await self._simulator.answer(method, request, call)
        finally:
            await self._deliver_held(subject)
        for fault in (Fault.RESTART, Fault.RESTART_EMPTY):
            if faults.commit_if_due(call, fault, subject):
                await self._simulator.restart(empty=fault is Fault.RESTART_EMPTY)
                raise NobodyError
        if faults.commit_if_due(call, Fault.LOST_REPLY, subject):
            raise NobodyError
        return response

    async def _deliver_held(self, subject: str) -> None:
        for method, request, call in self._held.pop(subject, ()):
            with contextlib.suppress(WireError, NobodyError):  # the caller has gone
                await self._simulator.answer(method, request, call)

    async def _refuse(
        self, context: grpc.aio.ServicerContext[Any, Any], error: WireError, call: Call, subject: str
    ) -> NoReturn:
        code = self._simulator.refusals[error.reason].code
        is_wrong = self._simulator.faults.commit_if_due(call, Fault.WRONG_CODE, subject)
        named = grpc.StatusCode.UNKNOWN if is_wrong else code
        status = Status(code=named.value[0], message=error.message)
        details: list[Message] = [
            ErrorInfo(reason=error.reason, domain=self._simulator.domain, metadata=error.metadata)
        ]
        if code is grpc.StatusCode.UNAVAILABLE:
            retry = RetryInfo()
            retry.retry_delay.FromMilliseconds(RETRY_MS)
            details.append(retry)
        for detail in details:
            packed = AnyMessage()
            packed.Pack(detail, deterministic=True)
            status.details.append(packed)
        await context.abort(code, error.message, ((DETAILS, status.SerializeToString()),))
        raise AssertionError  # abort raises
