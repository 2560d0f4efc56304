"""Windows of load on the server under test, and the figures that they give.

A window goes from rest to rest: the counts of the server are read while nothing happens, N players call in a closed
loop for half a second, and the counts are read again once all that the calls left behind is done. Echo, unary and
streamed play take turns, in another order each time, those of several servers among each other; a repeat pools several
windows of each, so that one that fell into a busy moment of the machine does not decide its ratio.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

import grpc.aio
from google.protobuf.empty_pb2 import Empty
from google.protobuf.wrappers_pb2 import BytesValue

from bench.disk import fdatasync_s
from bench.figures import BenchError, Figure, ratio
from bench.floor import REQUEST_BYTES
from bench.mix import CALLS_PER_ROUND
from bench.players import CALL_TIMEOUT_S, Player
from bench.process import Subject
from bench.subject import ECHO_METHOD, ECHO_SERVICE, YARDSTICKS

CONCURRENCIES: Final = (1, 16, 64)
QUICK_CONCURRENCIES: Final = (1, 64)
CHANNELS: Final = 4
"""Connections of the load, to the server and to the echo; the players share them evenly."""
WINDOW_S: Final = 0.5
SQLITE: Final = "sqlite"
"""The server whose figures need no suffix, and beside which the echo runs."""
POSTGRES: Final = "postgres"
ECHO: Final = "echo"
YARDSTICK_CONCURRENCY: Final = 64
"""Where the sized echo and the floor are measured too."""

Step = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Window:
    """The result of one window; times in seconds."""

    calls: int
    elapsed_s: float
    cpu_s: float
    latency_s: float
    """Median over the calls; of pooled windows the median of theirs."""
    groups: int
    changes: int
    database_cpu_s: float = 0.0
    """Of the database's own processes, where it has any."""
    tree_cpu_s: float = 0.0
    """Of the server process and its children."""

    @property
    def cpu_per_call_s(self) -> float:
        return self.cpu_s / self.calls

    @property
    def all_cpu_per_call_s(self) -> float:
        """Of all processes: the server's with its children, and the database's."""
        return (self.tree_cpu_s + self.database_cpu_s) / self.calls

    @property
    def batch(self) -> float:
        """Changes per commit; those of the server's own housekeeping are among them."""
        return self.changes / self.groups


def pooled(windows: Sequence[Window]) -> Window:
    """Several windows as one."""
    return Window(
        calls=sum(window.calls for window in windows),
        elapsed_s=sum(window.elapsed_s for window in windows),
        cpu_s=sum(window.cpu_s for window in windows),
        latency_s=median(window.latency_s for window in windows),
        groups=sum(window.groups for window in windows),
        changes=sum(window.changes for window in windows),
        database_cpu_s=sum(window.database_cpu_s for window in windows),
        tree_cpu_s=sum(window.tree_cpu_s for window in windows),
    )


@dataclass(slots=True)
class Played:
    """One window of each way of playing on one server a repeat."""

    unary: list[Window]
    stream: list[Window]


@dataclass(slots=True)
class Repeats:
    """One window of each kind a repeat, of one concurrency, and the disk's yardstick beside them."""

    echo: list[Window]
    played: dict[str, Played]
    """By the name of the server."""
    fdatasync_s: list[float]
    yardsticks: dict[tuple[str, str], list[Window]] = field(default_factory=dict)
    """By name and way; empty where they were not measured."""


class Load:
    """The load on one server: echo calls and players. `database_s` returns the CPU seconds of its database so far."""

    def __init__(
        self,
        subject: Subject,
        credentials: grpc.ChannelCredentials,
        database_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.subject = subject
        self._database_s = database_s
        options = (("grpc.use_local_subchannel_pool", 1),)  # otherwise equal channels share one connection
        self._channels = [
            grpc.aio.secure_channel(subject.address, credentials, options=options) for _ in range(CHANNELS)
        ]
        self._echo_channels = [
            grpc.aio.secure_channel(subject.echo_address, credentials, options=options) for _ in range(CHANNELS)
        ]
        self._players = 0

    async def players(self, count: int) -> list[Player]:
        """New players, each with a session and money."""
        first, self._players = self._players, self._players + count
        players = [Player(number, self._channels[number % CHANNELS]) for number in range(first, self._players)]
        await asyncio.gather(*(player.refill() for player in players))
        return players

    def echoes(self, count: int) -> list[Step]:
        """Empty unary calls."""
        return [_echo_step(self._echo_channels[number % CHANNELS]) for number in range(count)]

    def yardsticks(self, name: str, way: str, count: int) -> list[Step]:
        """Calls of our sizes, each step another player's."""
        return [
            _sized_step(self._echo_channels[number % CHANNELS], name, way, number + (0 if way == "unary" else count))
            for number in range(count)
        ]

    async def window(self, steps: Sequence[Step]) -> Window:
        """Run one window; a task of its own repeats each step."""
        before, database_before_s = await self.subject.rest(), self._database_s()
        begin = perf_counter()
        latencies = [
            latency for some in await asyncio.gather(*(_repeat(step, begin + WINDOW_S) for step in steps))
            for latency in some
        ]  # fmt: skip
        elapsed_s = perf_counter() - begin
        used = await self.subject.rest() - before
        return Window(
            calls=len(latencies),
            elapsed_s=elapsed_s,
            cpu_s=used.cpu_s,
            latency_s=median(latencies),
            groups=used.groups,
            changes=used.changes,
            database_cpu_s=self._database_s() - database_before_s,
            tree_cpu_s=used.tree_cpu_s,
        )

    def channel(self) -> grpc.aio.Channel:
        """One of the connections to the server."""
        return self._channels[0]

    async def close(self) -> None:
        for channel in (*self._channels, *self._echo_channels):
            await channel.close(grace=None)


async def measure(
    loads: Mapping[str, Load],
    folder: Path,
    concurrency: int,
    repeats: int,
    pool: int,
    emit: Callable[[str], None],
    *,
    with_yardsticks: bool = True,
) -> Repeats:
    """Repeats of `pool` windows of each kind on each server, after one of each that is not counted. The echo runs
    beside the first server only: it is the same program in all of them; so do the yardsticks, if they are wanted.
    """
    # Each way has players of its own: a session with an open stream would get the view of each unary call pushed there,
    # as a second device does.
    players = {
        (name, way): await load.players(concurrency) for name, load in loads.items() for way in ("unary", "stream")
    }
    first_load = next(iter(loads.values()))
    kinds: dict[tuple[str, str], tuple[Load, Sequence[Step]]] = {
        ("", ECHO): (first_load, first_load.echoes(concurrency))
    }
    for name, load in loads.items():
        kinds[name, "unary"] = load, [player.play_unary for player in players[name, "unary"]]
        kinds[name, "stream"] = load, [player.play_streamed for player in players[name, "stream"]]
    if with_yardsticks and concurrency == YARDSTICK_CONCURRENCY:
        for name in YARDSTICKS:
            for way in ("unary", "stream"):
                kinds[name, way] = first_load, first_load.yardsticks(name, way, concurrency)
    for load, steps in kinds.values():
        await load.window(steps)
    windows: dict[tuple[str, str], list[Window]] = {kind: [] for kind in kinds}
    probes = []
    for turn in range(repeats * pool):
        emit(f"{concurrency} concurrent, {turn + 1} of {repeats * pool} windows")
        await asyncio.gather(*(player.refill() for some in players.values() for player in some))
        first = turn % len(kinds)
        for kind in [*kinds, *kinds][first : first + len(kinds)]:
            load, steps = kinds[kind]
            windows[kind].append(await load.window(steps))
        probes.append(fdatasync_s(folder, count=100))
    await asyncio.gather(*(player.hang_up() for some in players.values() for player in some))
    parts = [slice(first, first + pool) for first in range(0, repeats * pool, pool)]

    def repeated(name: str, way: str) -> list[Window]:
        return [pooled(windows[name, way][part]) for part in parts]

    return Repeats(
        echo=repeated("", ECHO),
        played={name: Played(repeated(name, "unary"), repeated(name, "stream")) for name in loads},
        fdatasync_s=[median(probes[part]) for part in parts],
        yardsticks={(name, way): repeated(name, way) for name, way in kinds if name in YARDSTICKS},
    )


async def play_to_the_end(load: Load, rounds: int, players: int = 16) -> None:
    """About so many rounds on the stream; then every session is closed."""
    calls = int(rounds * CALLS_PER_ROUND / players)

    async def play(player: Player) -> None:
        for _ in range(calls):
            await player.play_streamed()
        await player.finish()

    await asyncio.gather(*(play(player) for player in await load.players(players)))


def figures_of(concurrency: int, repeats: Repeats) -> list[Figure]:
    """The figures of one concurrency."""
    echo_cpu_s = [window.cpu_per_call_s for window in repeats.echo]
    figures = [Figure(f"echo_cpu_us_{concurrency}", tuple(seconds * 1e6 for seconds in echo_cpu_s), "us")]
    if concurrency == 1:
        figures.append(Figure("fdatasync_us", tuple(seconds * 1e6 for seconds in repeats.fdatasync_s), "us"))
    for (name, way), windows in repeats.yardsticks.items():
        cpu_s = [window.cpu_per_call_s for window in windows]
        figures.append(ratio(f"{name.lower()}_{way}_cpu_ratio_{concurrency}", cpu_s, echo_cpu_s))
    for name, played in repeats.played.items():
        for way, windows in (("unary", played.unary), ("stream", played.stream)):
            figures += _figures_of_way(name, way, concurrency, windows, echo_cpu_s)
            figures += [
                ratio(
                    f"{way}_cpu_over_{yardstick.lower()}_{concurrency}_{name}",
                    [window.cpu_per_call_s for window in windows],
                    [window.cpu_per_call_s for window in repeats.yardsticks[yardstick, way]],
                )
                for yardstick in YARDSTICKS
                if repeats.yardsticks and name == SQLITE  # the floor is over SQLite
            ]
        if concurrency == 1:
            figures += _latencies(name, played, repeats)
    return figures


def _figures_of_way(
    name: str, way: str, concurrency: int, windows: Sequence[Window], echo_cpu_s: Sequence[float]
) -> list[Figure]:
    cpu_s = [window.cpu_per_call_s for window in windows]
    round_cpu_s = [seconds * CALLS_PER_ROUND for seconds in cpu_s]
    tail = suffix(name)
    figures = [
        ratio(f"{way}_cpu_ratio_{concurrency}_{name}", cpu_s, echo_cpu_s),
        ratio(f"{way}_round_cpu_ratio_{concurrency}_{name}", round_cpu_s, echo_cpu_s),
        Figure(f"commit_batch_{concurrency}_{way}{tail}", tuple(one.batch for one in windows), "changes/commit"),
        Figure(f"{way}_calls_per_s_{concurrency}{tail}", tuple(one.calls / one.elapsed_s for one in windows), "1/s"),
    ]
    if any(window.tree_cpu_s for window in windows):
        all_cpu_s = [window.all_cpu_per_call_s for window in windows]
        figures.append(ratio(f"{way}_all_cpu_ratio_{concurrency}_{name}", all_cpu_s, echo_cpu_s))
    if any(window.database_cpu_s for window in windows):
        database_us = tuple(window.database_cpu_s / window.calls * 1e6 for window in windows)
        figures.append(Figure(f"{way}_database_cpu_us_{concurrency}{tail}", database_us, "us"))
    return figures


def _latencies(name: str, played: Played, repeats: Repeats) -> list[Figure]:
    yardstick = [echo.latency_s + sync_s for echo, sync_s in zip(repeats.echo, repeats.fdatasync_s, strict=True)]
    tail = suffix(name)
    return [
        ratio(f"latency_ratio_1{tail}", [window.latency_s for window in played.unary], yardstick),
        ratio(f"stream_latency_ratio_1{tail}", [window.latency_s for window in played.stream], yardstick),
    ]


def suffix(name: str) -> str:
    """What stands behind the name of a figure of this store."""
    return "" if name == SQLITE else f"_{name}"


def _echo_step(channel: grpc.aio.Channel) -> Step:
    call: grpc.aio.UnaryUnaryMultiCallable[Empty, Empty] = channel.unary_unary(
        ECHO_METHOD, request_serializer=Empty.SerializeToString, response_deserializer=Empty.FromString
    )
    empty = Empty()

    async def step() -> None:
        if await call(empty, timeout=CALL_TIMEOUT_S) != empty:
            raise BenchError("the echo says something else")

    return step


def _sized_step(channel: grpc.aio.Channel, name: str, way: str, number: int) -> Step:
    request = BytesValue(value=number.to_bytes(4, "big") + bytes(REQUEST_BYTES - 4))
    codec: dict[str, Any] = {
        "request_serializer": BytesValue.SerializeToString, "response_deserializer": BytesValue.FromString
    }  # fmt: skip
    if way == "unary":
        call: Any = channel.unary_unary(f"/{ECHO_SERVICE}/{name}", **codec)

        async def step() -> None:
            await call(request, timeout=CALL_TIMEOUT_S)

        return step
    streams: list[Any] = []

    async def stream_step() -> None:
        if not streams:
            streams.append(channel.stream_stream(f"/{ECHO_SERVICE}/{name}Stream", **codec)())
        await streams[0].write(request)
        if not isinstance(await streams[0].read(), BytesValue):
            raise BenchError(f"the stream of {name} ended: {await streams[0].code()}")

    return stream_step


async def _repeat(step: Step, until: float) -> list[float]:
    """The latency of every call that began before `until`."""
    latencies = []
    begin = perf_counter()
    while begin < until:
        await step()
        end = perf_counter()
        latencies.append(end - begin)
        begin = end
    return latencies
