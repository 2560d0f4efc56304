"""The server's side of the generator process: one connection, which is the generator of one instance.

Requests are sent as they come, and answers come in their order, so many draws can be on their way. Nothing is read
ahead. Each answer is checked before anybody gets it: the number that is due, one reseed a draw, the name of this
instance, the transcript of exactly one shuffle, and the health tests of `rng.health` over all bytes that have come.

Any of these, a lost connection, and an answer that is late are failures like a failed health test: the generator is
ended for good, every waiting draw fails, and nothing more is asked for. Salts, ids and keys come from the entropy
source of this process.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from rgs.integrity.manifest import Manifest
from rgs.node.config import Config
from rgs.node.generator.wire import (
    CLOSE,
    DRAW,
    ENDED,
    HELLO,
    LENGTH_BYTES,
    PASSED,
    REFUSED,
    SELFTEST,
    WireError,
    format_hello,
    framed,
    length_of,
    parse_begun,
    parse_drawn,
    parse_ended,
    parse_refused,
    rng_sha256,
)
from rgs.service.generators import BeginGenerator, EmbeddedGenerator
from rng.entropy import EntropySource
from rng.errors import GeneratorFailedError, HealthTestError, RngError, TranscriptError
from rng.generator import Draw, LifeEvent
from rng.health import HealthTests
from rng.shuffle import transcript_to_deck

ANSWER_S: Final = 5.0
"""An answer that has not come by then is late."""
LOST, LATE, WRONG = "GENERATOR_LOST", "GENERATOR_LATE", "GENERATOR_WRONG"
"""Reasons of a failure that the generator process did not report itself."""


def begins_generators(config: Config, manifest: Manifest) -> BeginGenerator:
    """What makes the generators of this process's instances, by the settings."""
    if config.generator is None:
        return EmbeddedGenerator.begin
    return partial(begin_served, config.generator, rng_sha256(manifest))


async def begin_served(path: Path, rng_hash: bytes, instance: str) -> ServedGenerator:
    """Begin the generator of `instance` in the process at `path`. RngError if there is none, or not this software."""
    generator = ServedGenerator(instance)
    try:
        await asyncio.get_running_loop().create_unix_connection(lambda: generator, str(path))
    except OSError as error:
        raise RngError(
            "GENERATOR_UNREACHABLE",
            f"no generator process answers at {path} ({error.strerror or error}): start"
            f" `rgs generator serve --socket {path}` first, or set generator to embedded",
        ) from None
    found = await generator.hello()
    if found != rng_hash:
        await generator.close()
        raise RngError(
            "GENERATOR_DIFFERS",
            f"the generator process at {path} runs other files of rng than this server: start both from one version",
        )
    return generator


class ServedGenerator(asyncio.Protocol):
    """The generator of one instance in another process (`rgs.service.generators.RunningGenerator`)."""

    def __init__(self, instance: str) -> None:
        self.instance: Final = instance
        self.entropy: Final = EntropySource()
        self._no_more: Final = f"{instance} draws no more"
        self._tests = HealthTests()
        self._transport: asyncio.WriteTransport | None = None
        self._unread = b""
        self._waiting: deque[tuple[bytes, asyncio.Future[object]]] = deque()
        """The requests without an answer, each by its kind."""
        self._newest: asyncio.Future[None] | None = None
        """Done when whoever made the newest request has gone on with its answer."""
        self._draws = 0
        self._events: list[LifeEvent] = []
        self._ended: LifeEvent | None = None

    @property
    def failure(self) -> str:
        """Why it draws no more, as a code; empty while it can draw."""
        if self._ended is None:
            return "" if self.entropy.healthy else "GENERATOR_ENDED"
        return self._ended.reason if self._ended.kind == "failed" else "GENERATOR_ENDED"

    async def hello(self) -> bytes:
        """Begin it; the hash of the software that draws. RngError."""
        try:
            found = await self._request(HELLO, format_hello(self.instance))
        except GeneratorFailedError as error:
            raise RngError(error.reason, f"the generator process began no generator for {self.instance}") from None
        self._events.append(LifeEvent("instantiated", self.instance, 0, "POWER_UP"))
        return cast("bytes", found)

    async def draw(self) -> Draw:
        """The next draw. GeneratorFailedError after a failure, then and at every later call."""
        return cast("Draw", await self._request(DRAW, DRAW))

    async def selftest(self) -> object:
        """Have the process run its known answers. A failure ends the generator: GeneratorFailedError."""
        return await self._request(SELFTEST, SELFTEST)

    async def close(self) -> LifeEvent:
        """End it. Returns the event that ended it, also when it had ended before."""
        with contextlib.suppress(GeneratorFailedError):
            await self._request(CLOSE, CLOSE)
        return cast("LifeEvent", self._ended)  # an answer ends it, and so does a failure

    def events(self) -> tuple[LifeEvent, ...]:
        """The life events so far, oldest first."""
        return tuple(self._events)

    def __repr__(self) -> str:
        return f"<ServedGenerator {self.instance} {self.failure or 'healthy'}>"

    # --- the connection -----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - why it was lost changes nothing
        self._fail(LOST)

    def data_received(self, data: bytes) -> None:
        """Take the answers that are whole."""
        self._unread += data
        try:
            while self._ended is None and len(self._unread) >= LENGTH_BYTES:
                end = LENGTH_BYTES + length_of(self._unread[:LENGTH_BYTES])
                if len(self._unread) < end:
                    return
                message, self._unread = self._unread[LENGTH_BYTES:end], self._unread[end:]
                self._take(message)
        except HealthTestError as error:
            self._fail(error.reason)
        except (WireError, TranscriptError):
            self._fail(WRONG)

    async def _request(self, kind: bytes, request: bytes) -> object:
        """Send a request; its answer. GeneratorFailedError.

        Who asked first goes on first. Who is cancelled meanwhile gets the answer all the same, and the cancellation at
        the next wait: a draw that was made must be accounted for.
        """
        if self._ended is not None or self._transport is None:
            raise GeneratorFailedError(LOST if self._ended is None else self._ended.reason, self._no_more)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[object] = loop.create_future()
        before, gone = self._newest, loop.create_future()
        self._newest = gone
        self._waiting.append((kind, answer))
        self._transport.write(framed(request))
        cancelled: list[tuple[object, ...]] = []
        try:
            while not await _settled(answer, ANSWER_S, cancelled):
                self._fail(LATE)
            if before is not None:
                await _settled(before, None, cancelled)
            return answer.result()
        finally:
            gone.set_result(None)
            for message in cancelled:
                cast("asyncio.Task[object]", asyncio.current_task()).cancel(*message)

    def _take(self, message: bytes) -> None:
        """One answer. WireError, TranscriptError, HealthTestError."""
        if not self._waiting:
            raise WireError("an answer to nothing")
        kind = self._waiting[0][0]
        if message[:1] == ENDED:
            self._take_end(kind, message)
        elif kind == HELLO and message[:1] == REFUSED:
            self._fail(parse_refused(message))
        else:
            found = self._read(kind, message)
            self._waiting.popleft()[1].set_result(found)

    def _read(self, kind: bytes, message: bytes) -> object:
        if kind == HELLO:
            return parse_begun(message)
        if kind == DRAW:
            return self._read_draw(message)
        if kind != SELFTEST or message != PASSED:
            raise WireError(f"an answer of {len(message)} bytes that was not due")
        return None

    def _read_draw(self, message: bytes) -> Draw:
        draw = parse_drawn(message)
        due = self._draws + 1
        if (draw.instance, draw.draw_no, draw.reseed_counter) != (self.instance, due, due):
            raise WireError(f"a draw that is not number {due} of this instance, after as many reseeds")
        transcript_to_deck(draw.transcript)
        self._tests.check(draw.transcript)
        self._draws = due
        return draw

    def _take_end(self, kind: bytes, message: bytes) -> None:
        event = parse_ended(message, self.instance)
        if event.kind == "failed":
            self._fail(event.reason)
        elif kind != CLOSE or event.draws != self._draws:
            raise WireError("an end that nobody asked for, or after another number of draws")
        else:
            self._waiting.popleft()[1].set_result(None)
            self._end(event)

    def _fail(self, reason: str) -> None:
        """The first failure ends the generator and every request that waits."""
        if self._ended is None:
            self._end(LifeEvent("failed", self.instance, self._draws, reason))

    def _end(self, event: LifeEvent) -> None:
        self._ended = event
        while self._waiting:
            _, answer = self._waiting.popleft()
            answer.set_exception(GeneratorFailedError(event.reason, self._no_more))
            answer.exception()  # whoever waits gets it; nobody else has to
        self._events.append(event)
        self._unread = b""
        if self._transport is not None:
            self._transport.abort()


async def _settled(future: asyncio.Future[Any], limit_s: float | None, cancelled: list[tuple[object, ...]]) -> bool:
    """Wait for a future, at most so long; whether it is done. A cancellation is put aside, to be made up for."""
    task = cast("asyncio.Task[object]", asyncio.current_task())
    while not future.done():
        try:
            await asyncio.wait([future], timeout=limit_s)
        except asyncio.CancelledError as error:
            cancelled.append(error.args)
            task.uncancel()
        else:
            break
    return future.done()
