# ruff: noqa: SLF001 - it looks into the writer and the connections that it counts
"""Counted figures of a played call, which no noise moves: `python -m bench.counted`.

One process serves a home as `rgs serve` does, without gRPC around it: the handlers that gRPC would call are called
directly, by 32 players whose calls come together, so that each group of the writer has 32 changes. Only the handlers'
work is counted, not the players'. The background work is done once after each 512 calls, which a loaded server answers
in about a second, and is counted by itself. The figures are per call; 3.07 calls are a round.

    unary_…, stream_…, background_…  of unary calls, of messages on streams, of the background work after both
    …_loop_python, …_loop_c          calls of Python and of C functions in the event loop's thread
    …_writer_python, …_writer_c      the same in the writer's thread
    …_sql                            SQL statements that SQLite ran, each row of `executemany` for one
    …_row_changes                    rows that SQLite inserted, changed or deleted
    bytes_written, write_calls       of the process, to all files: store, log, transparency log; of all parts together
    read_calls                       of the process, from all files

`counted.json` holds them for each minor version of Python. With `--check` the command fails when a figure is more than
5 % off: a change that costs more, or less, has to write the file anew (`--write`) in the same commit. A test runs that
(tests/integration/test_counted.py).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final, Protocol, TypeVar, cast
from unittest.mock import patch

import grpc
import uvloop

from bench.counting import CallCounts, Written
from bench.homes import PARTY, make_home
from bench.mix import CALLS_PER_ROUND
from bench.players import Player
from rgs.api.calls import Calls, Duplex, Methods, Unary
from rgs.core.ids import ULID_RANDOM_BYTES, format_request_id
from rgs.devkit.client import ClientIdentity
from rgs.devkit.requests import Requests
from rgs.integrity.manifest import make_manifest
from rgs.node.background import Work
from rgs.node.clock import SystemClock, wall_ms
from rgs.node.config import Config, load_config
from rgs.node.logging import Log
from rgs.node.server import BACKGROUND_S, Server
from rgs.store import writer as grouping
from rgs.store.interface import Store
from rgs.store.opening import open_store
from rgs.store.sqlite.store import SqliteStore
from rgs.v1 import play_pb2 as play

FIGURES: Final = Path(__file__).with_name("counted.json")
GATED: Final = "3.11"
"""The version of Python whose figures the test compares."""
SLACK: Final = 0.05
"""By how much a figure may differ from the one in the file."""
PLAYERS: Final = grouping.GROUP_MAX
WAVES: Final = 16
"""Calls of every player between two runs of the background work."""
WARM_UP: Final = 5
"""Runs that are not counted: caches fill, and the store's file gets its pages."""
RUNS: Final = 5
"""Of each way of play; the background work of all of them is done in full, also what is done every 5 s only."""
WAVE_MS: Final = 60
LOOK_S: Final = 0.03
PLAY: Final = "rgs.v1.PlayService"

Behaviour = Callable[[Any, Any], Awaitable[Any]]


class Endpoint:
    """Takes the place of the gRPC endpoint: keeps the handlers, listens nowhere."""

    def __init__(self, *, calls: Calls, services: Mapping[str, Methods], **_: object) -> None:
        self.port = 1
        self.health = _Health()
        self._calls = calls
        self._services = services
        endpoints.append(self)

    def behaviour(self, path: str) -> Behaviour:
        """The handler of `/service/method`."""
        service, _, method = path.removeprefix("/").partition("/")
        found = self._services[service][method]
        name = f"{service}/{method}"
        handler = found.handler(self._calls, name) if isinstance(found, Duplex) else self._unary(name, found)
        return cast("Behaviour", handler.stream_stream or handler.unary_unary)

    def _unary(self, name: str, found: object) -> grpc.RpcMethodHandler[bytes, bytes]:
        if not isinstance(found, Unary):
            raise TypeError(name)
        return self._calls.unary(name, found)

    async def start(self) -> None:
        """Nothing to do."""

    async def stop(self, _grace_s: float) -> None:
        """End the streams."""
        self._calls.drain()
        await self._calls.finished()


class _Health:
    def set_serving(self, service: str, *, serving: bool) -> None:
        """Nobody asks."""

    def drain(self) -> None:
        """Nobody asks."""


endpoints: Final[list[Endpoint]] = []
"""Those that were made, the newest last."""


class Background:
    """Takes the place of the server's background: keeps the work, and does it when it is told to."""

    def __init__(self, *_: object) -> None:
        self.works: list[tuple[Work, float]] = []
        """Work, and the seconds between two runs of it."""
        backgrounds.append(self)

    def run(self, _name: str, work: Work, pause_s: float | None = None, *, to_the_end: bool = False) -> None:  # noqa: ARG002
        self.works.append((work, pause_s or BACKGROUND_S))


backgrounds: Final[list[Background]] = []
"""Those that were made, the newest last."""


class _SteppedClock(SystemClock):
    """Stands still while a wave runs, so that what is kept by its time is found as often in each run."""

    def __init__(self) -> None:
        self.ms = (wall_ms() // 60_000 + 1) * 60_000
        super().__init__(lambda: self.ms, lambda: self.ms, lambda: "")


class Context:
    """The context of a call or stream, as far as the handlers use it. `answers` get what a stream writes."""

    def __init__(self, certificate: bytes) -> None:
        self._auth: Mapping[str, list[bytes]] = {"x509_pem_cert": [certificate]}
        self.requests: asyncio.Future[Any] | None = None
        self.answers: list[bytes] = []
        self.status: object = None

    def auth_context(self) -> Mapping[str, list[bytes]]:
        return self._auth

    def time_remaining(self) -> float:
        return 30.0

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return (("user-agent", "bench"),)

    async def read(self) -> Any:
        self.requests = asyncio.get_running_loop().create_future()
        return await self.requests

    def send(self, message: object) -> None:
        """Give the handler what it waits for."""
        if self.requests is not None and not self.requests.done():
            self.requests.set_result(message)

    async def write(self, message: bytes) -> None:
        self.answers.append(message)

    def set_code(self, code: object) -> None:
        self.status = code

    def set_details(self, details: str) -> None:
        self.status = (self.status, details)

    def set_trailing_metadata(self, metadata: object) -> None:
        """Only gRPC sends it."""

    async def abort(self, code: object, details: str, _metadata: object = ()) -> None:
        raise RuntimeError(f"refused: {code} {details}")


class _Serializer(Protocol):
    def __call__(self, message: Any) -> bytes: ...


@dataclass(eq=False)
class Channel:
    """What the players' stubs take for a connection: unary calls go to the handlers."""

    endpoint: Endpoint
    certificate: bytes

    def unary_unary(
        self, path: str, request_serializer: _Serializer, response_deserializer: Callable[[bytes], Any], **_: object
    ) -> Callable[..., Awaitable[Any]]:
        async def call(message: Any, timeout: float) -> Any:  # noqa: ARG001, ASYNC109 - as gRPC's
            context = Context(self.certificate)
            answer = await self.endpoint.behaviour(path)(request_serializer(message), context)
            if context.status is not None:
                raise RuntimeError(f"{path} was refused: {context.status}")
            return response_deserializer(answer)

        return call

    def _none(self, *_: object, **__: object) -> None:
        """Methods of the stubs that no player calls."""

    stream_stream = unary_stream = stream_unary = _none


@dataclass(slots=True)
class _Part:
    """The counts of one kind of work."""

    loop: CallCounts = field(default_factory=CallCounts)
    writer: CallCounts = field(default_factory=CallCounts)
    sql: int = 0
    rows: int = 0
    bytes: int = 0
    writes: int = 0
    reads: int = 0

    def ran(self, _text: str) -> None:
        """SQLite begins a statement."""
        self.sql += 1


class Counter:
    """A server in this process, its players, and what was counted of them."""

    def __init__(self, server: Server, store: SqliteStore, clock: _SteppedClock, certificate: bytes, log: Log) -> None:
        self._server, self._store, self._clock, self._log = server, store, clock, log
        self._certificate = certificate
        self._endpoint, self._works = endpoints[-1], backgrounds[-1].works
        ids = Random(1)  # noqa: S311 - ids, not chance
        requests = Requests(lambda: format_request_id(clock.ms, ids.randbytes(ULID_RANDOM_BYTES)))
        channel: Any = Channel(self._endpoint, certificate)
        self._players = {
            way: [Player(first + number, channel, requests) for number in range(PLAYERS)]
            for way, first in (("unary", 0), ("stream", PLAYERS))
        }
        self.parts = {name: _Part() for name in ("unary", "stream", "background")}
        self._seconds = 0
        """How often the background work was done."""
        self._streams: list[Context] = []
        self._tasks: list[asyncio.Task[Any]] = []

    async def prepare(self) -> None:
        """Open the sessions and the streams, and start a round in each: so many at once make the draw window grow."""
        for player in (player for some in self._players.values() for player in some):
            self._alone()
            await player.refill()
        behaviour = self._endpoint.behaviour(f"/{PLAY}/Play")
        for _ in range(PLAYERS):
            context = Context(self._certificate)
            self._streams.append(context)
            self._tasks.append(asyncio.create_task(cast("Any", behaviour(None, context))))
        await asyncio.sleep(0)
        for way in self._players:
            await self._wave(way, _Part())

    async def end(self) -> None:
        """End the streams."""
        for context in self._streams:
            context.send(grpc.aio.EOF)
        await asyncio.gather(*self._tasks)

    async def run(self, way: str, *, is_counted: bool) -> None:
        """`WAVES` calls of every player, then the background work."""
        part, background = (self.parts[way], self.parts["background"]) if is_counted else (_Part(), _Part())
        with self._whole_groups():
            for _ in range(WAVES):
                await self._wave(way, part)
        self._alone()
        self._seconds += 1
        async with self._counted(background):
            for work, pause_s in self._works:
                if self._seconds % max(1, round(pause_s)) == 0:
                    for _ in range(max(1, round(BACKGROUND_S / pause_s))):
                        await work()
        self._log.flush()

    async def _wave(self, way: str, part: _Part) -> None:
        players = self._players[way]
        requests = [player.next_request() for player in players]
        self._clock.ms += WAVE_MS
        if way == "unary":
            answers = await self._unary_wave(requests, part)
        else:
            answers = await self._streamed_wave(requests, part)
        for player, answer in zip(players, answers, strict=True):
            player.take(answer)

    async def _unary_wave(self, requests: list[Any], part: _Part) -> list[Any]:
        starts = self._endpoint.behaviour(f"/{PLAY}/StartRound")
        acts = self._endpoint.behaviour(f"/{PLAY}/Act")
        pairs = [
            (starts, play.StartRoundResponse) if isinstance(request, play.StartRoundRequest)
            else (acts, play.ActResponse)
            for request in requests
        ]  # fmt: skip
        calls = [
            behaviour(request.SerializeToString(), Context(self._certificate))
            for request, (behaviour, _) in zip(requests, pairs, strict=True)
        ]
        loop = asyncio.get_running_loop()
        async with self._counted(part):
            tasks = [loop.create_task(cast("Any", call)) for call in calls]
            await _until(lambda: all(task.done() for task in tasks))
        return [kind.FromString(task.result()) for task, (_, kind) in zip(tasks, pairs, strict=True)]

    async def _streamed_wave(self, requests: list[Any], part: _Part) -> list[Any]:
        messages = [
            (
                play.PlayRequest(start_round=request) if isinstance(request, play.StartRoundRequest)
                else play.PlayRequest(act=request)
            ).SerializeToString()
            for request in requests
        ]  # fmt: skip
        async with self._counted(part):
            for context, message in zip(self._streams, messages, strict=True):
                context.send(message)
            await _until(lambda: all(context.answers for context in self._streams))
        answers = [play.PlayResponse.FromString(context.answers.pop()) for context in self._streams]
        return [getattr(answer, cast("str", answer.WhichOneof("response"))) for answer in answers]

    @asynccontextmanager
    async def _counted(self, part: _Part) -> AsyncIterator[None]:
        """Count everything until the block ends."""
        store, thread = self._store, self._store.writer.thread
        await part.writer.begin_in(thread)
        rows, written = store._db.total_changes, Written.now()
        self._trace(part.ran)
        part.loop.begin()
        try:
            yield
        finally:
            part.loop.end()
            self._trace(None)
            await part.writer.end_in(thread)
            now = Written.now()
            part.rows += store._db.total_changes - rows
            part.bytes += now.bytes - written.bytes
            part.writes += now.calls - written.calls
            part.reads += now.reads - written.reads

    def _trace(self, hear: Callable[[str], None] | None) -> None:
        for connection in (self._store._db, self._store._reader):
            connection.set_trace_callback(hear)

    @contextmanager
    def _whole_groups(self) -> Iterator[None]:
        """The writer waits for the change of every player, however long that takes."""
        with ExitStack() as patched:
            patched.enter_context(patch.object(grouping, "QUIET_S", 60.0))
            patched.enter_context(patch.object(grouping, "LINGER_S", 60.0))
            self._store.writer._load = float(10**12)
            yield

    def _alone(self) -> None:
        """The next change is not grouped with others."""
        self._store.writer._load = 1.0

    def figures(self) -> dict[str, float]:
        """Per call, in each part; bytes and writes in all, because SQLite moves them between the parts."""
        found: dict[str, float] = {}
        for name, part in self.parts.items():
            per = calls_of(name)
            for thread, counts in (("loop", part.loop), ("writer", part.writer)):
                # The trace is heard in Python, for the count alone.
                heard = counts.python[_Part.ran.__code__]
                found[f"{name}_{thread}_python"] = (counts.python.total() - heard) / per
                found[f"{name}_{thread}_c"] = counts.c.total() / per
            found[f"{name}_sql"], found[f"{name}_row_changes"] = part.sql / per, part.rows / per
        calls = calls_of("background")
        found["bytes_written"] = sum(part.bytes for part in self.parts.values()) / calls
        found["write_calls"] = sum(part.writes for part in self.parts.values()) / calls
        found["read_calls"] = sum(part.reads for part in self.parts.values()) / calls
        return {name: round(value, 2 if value < 1000 else 0) for name, value in found.items()}


_C = TypeVar("_C", bound=Counter)


def calls_of(part: str) -> int:
    """The played calls that stand behind the counts of a part: the background works for both ways of play."""
    return PLAYERS * WAVES * RUNS * (2 if part == "background" else 1)


async def _until(is_done: Callable[[], bool]) -> None:
    """Look now and then: a callback of each task would be counted with it."""
    while not is_done():  # noqa: ASYNC110
        await asyncio.sleep(LOOK_S)


async def count(config: Config, kind: type[_C]) -> _C:
    """Serve the home, play, count."""
    opened: list[Store] = []

    async def open_and_keep(where: Any) -> Store:
        opened.append(await open_store(where))
        return opened[-1]

    clock = _SteppedClock()
    certificate = ClientIdentity.of_party(config, PARTY).certificate.read_bytes()
    with ExitStack() as patched:
        for name, value in (("Endpoint", Endpoint), ("Background", Background), ("open_store", open_and_keep)):
            patched.enter_context(patch(f"rgs.node.server.{name}", value))
        log = patched.enter_context(Log(config.log, config.logging_level, clock, people=None))
        server = Server(config, make_manifest(), clock=clock, log=log)
        await server.start()
        try:
            (store,) = opened
            assert isinstance(store, SqliteStore)  # noqa: S101
            counter = kind(server, store, clock, certificate, log)
            await counter.prepare()
            for run in range(WARM_UP + RUNS):
                for way in ("unary", "stream"):
                    await counter.run(way, is_counted=run >= WARM_UP)
            await counter.end()
        finally:
            await server.stop()
    return counter


def measure(home: Path, kind: type[_C]) -> _C:
    """Count in a new home, on the loop that a server has, by this kind of counter."""
    make_home(home)
    config = load_config(home, {"listen": "127.0.0.1:0", "party_messages_per_s": 1_000_000})
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(count(config, kind))


def python_version() -> str:
    """`3.11`."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def differences(figures: Mapping[str, float], kept: Mapping[str, float]) -> list[str]:
    """Sentences on the figures that are more than `SLACK` away from those that were kept, or stand on one side only."""
    found = [f"{name} is in one of the two only" for name in sorted(figures.keys() ^ kept.keys())]
    for name in sorted(figures.keys() & kept.keys()):
        now, before = figures[name], kept[name]
        if abs(now - before) > SLACK * before:
            way = "grown" if now > before else "shrunk"
            found.append(f"{name} has {way} from {before:g} to {now:g} a call, by more than {SLACK:.0%}")
    return found


def kept_figures() -> dict[str, dict[str, float]]:
    """The file, by version of Python."""
    kept: dict[str, dict[str, float]] = json.loads(FIGURES.read_text("ascii")) if FIGURES.exists() else {}
    return kept


def main() -> int:
    """Print the figures, keep or compare them; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.counted", description="Count what a played call runs.")
    parser.add_argument("--write", action="store_true", help=f"keep the figures of this Python in {FIGURES.name}")
    parser.add_argument("--check", action="store_true", help="fail if they differ from those in the file")
    parser.add_argument("--most", type=int, default=0, help="so many functions of each part, the most called first")
    parser.add_argument("--folder", type=Path, default=Path("var"), help="where the store is made")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="counted-", dir=arguments.folder) as folder:
        counter = measure(Path(folder) / "home", Counter)
    figures, kept = counter.figures(), kept_figures()
    before = kept.get(python_version(), {})
    print(f"{'a call':28} {'now':>10} {'kept':>10}")
    for name, value in figures.items():
        print(f"{name:28} {value:10g} {before.get(name, float('nan')):10g}")
    for name, part in counter.parts.items():
        for thread, counts in (("loop", part.loop), ("writer", part.writer)):
            for line in counts.lines(calls_of(name), arguments.most):
                print(f"{name} {thread}: {line}")
    print(f"{CALLS_PER_ROUND:.2f} calls are a round.")
    if arguments.write:
        FIGURES.write_text(json.dumps({**kept, python_version(): figures}, indent=2, sort_keys=True) + "\n", "ascii")
    if not arguments.check:
        return 0
    wrong = differences(figures, before)
    for line in wrong:
        print(f"counted: {line}", file=sys.stderr)
    if wrong:
        print(f"counted: if that is meant, run `python -m bench.counted --write` and commit {FIGURES.name} with it",
              file=sys.stderr)  # fmt: skip
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
