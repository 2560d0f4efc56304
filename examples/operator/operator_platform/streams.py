"""The two streams to the game server that all players of this process share: Play and Watch (docs/scaling.md).

Requests go in through a bounded queue; answers find their request by its id; what comes unasked goes to `on_event`.
When a stream ends, each request without an answer fails as unknown, and another stream is opened and told again what to
watch.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

import grpc

from rgs.v1 import play_pb2, table_pb2

from .errors import OutcomeUnknownError, PlatformError
from .rgs_client import CALL_S, Rgs, patiently, refusal_of

QUEUE_MAX: Final = 1024
PAUSE_S: Final = (0.1, 0.5, 1.0, 2.0, 5.0)

log = logging.getLogger(__name__)
Event = Callable[[str, Any], None]


class SharedStream:
    """One stream at a time. `watched` gives the messages that a new stream has to begin with."""

    def __init__(self, method: Any, request: Any, on_event: Event, watched: Callable[[], Iterable[Any]]) -> None:
        self._method = method
        self._request = request
        self._on_event = on_event
        self._watched = watched
        self._queue: asyncio.Queue[Any] = asyncio.Queue(QUEUE_MAX)
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._failures = 0

    async def run(self) -> None:
        """Keep a stream open until this is cancelled."""
        while True:
            call = self._method()
            writer = asyncio.create_task(self._write(call))
            try:
                await self._read(call)
            except grpc.aio.AioRpcError as error:
                log.info("a stream ended: %s", error.code().name)
            finally:
                writer.cancel()
                call.cancel()
                with contextlib.suppress(
                    asyncio.CancelledError, grpc.RpcError, grpc.aio.UsageError, asyncio.InvalidStateError
                ):
                    await writer
                self._fail_all()
            await asyncio.sleep(PAUSE_S[min(self._failures, len(PAUSE_S) - 1)])
            self._failures += 1

    async def ask(self, field: str, message: Any) -> Any:
        """Send a request that carries a request id, and wait for its answer; sent again like any call."""
        return await patiently(lambda: self._ask_once(field, message))

    def send(self, field: str, message: Any) -> None:
        """Send a request without an answer. A full queue drops nothing: it is refused."""
        try:
            self._queue.put_nowait(self._request(**{field: message}))
        except asyncio.QueueFull:
            raise PlatformError("BUSY", "too many requests are waiting; try again", 503) from None

    async def _ask_once(self, field: str, message: Any) -> Any:
        request_id = message.request_id
        if request_id in self._waiting:
            return await asyncio.shield(self._waiting[request_id])
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = answer
        try:
            self.send(field, message)
            return await asyncio.wait_for(asyncio.shield(answer), CALL_S)
        except TimeoutError:
            raise OutcomeUnknownError from None
        finally:
            if self._waiting.get(request_id) is answer:
                del self._waiting[request_id]
            answer.cancel()

    async def _write(self, call: Any) -> None:
        for message in list(self._watched()):
            await call.write(message)
        while True:
            await call.write(await self._queue.get())

    async def _read(self, call: Any) -> None:
        async for response in call:
            self._failures = 0
            kind = response.WhichOneof("response")
            waiting = self._waiting.get(response.request_id) if response.request_id else None
            if waiting is None:
                if kind is not None and not response.request_id:
                    self._on_event(kind, getattr(response, kind))
            elif waiting.done():
                pass
            elif kind == "error":
                waiting.set_exception(refusal_of(response.error))
            else:
                waiting.set_result(getattr(response, kind))

    def _fail_all(self) -> None:
        """Nobody knows what became of the requests without an answer. Those still in the queue were not sent."""
        while not self._queue.empty():
            self._queue.get_nowait()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(OutcomeUnknownError())


def play_stream(rgs: Rgs, on_event: Event) -> SharedStream:
    """The Play stream: rounds that are played alone, and notices of what happens to them."""
    return SharedStream(rgs.play.Play, play_pb2.PlayRequest, on_event, tuple)


def watch_stream(rgs: Rgs, on_event: Event, watched: Callable[[], Iterable[Any]]) -> SharedStream:
    """The Watch stream: tables and seats, with play on it."""
    return SharedStream(rgs.tables.Watch, table_pb2.WatchRequest, on_event, watched)
