"""Windows of load on the server under test, and the figures that they give.

A window goes from rest to rest: the counts of the server are read while nothing happens, N players call in a closed
loop for half a second, and the counts are read again once all that the calls left behind is done. Echo, unary and
streamed play take turns, in another order each time; a repeat pools several windows of each, so that one that fell
into a busy moment of the machine does not decide its ratio.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

import grpc.aio
from google.protobuf.empty_pb2 import Empty

from bench.disk import fdatasync_s
from bench.figures import BenchError, Figure, ratio
from bench.mix import CALLS_PER_ROUND
from bench.players import CALL_TIMEOUT_S, Player
from bench.process import Subject
from bench.subject import ECHO_METHOD

CONCURRENCIES: Final = (1, 16, 64)
CHANNELS: Final = 4
"""Connections of the load, to the server and to the echo; the players share them evenly."""
WINDOW_S: Final = 0.5
STORE: Final = "sqlite"

Step = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Window:
    """What one window gave; times in seconds."""

    calls: int
    elapsed_s: float
    cpu_s: float
    latency_s: float
    """Median over the calls; of pooled windows the median of theirs."""
    groups: int
    changes: int

    @property
    def cpu_per_call_s(self) -> float:
        return self.cpu_s / self.calls

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
    )


@dataclass(slots=True)
class Repeats:
    """One window of each kind a repeat, of one concurrency, and the disk's yardstick beside them."""

    echo: list[Window]
    unary: list[Window]
    stream: list[Window]
    fdatasync_s: list[float]


class Load:
    """The load on one server: echo calls, and players."""

    def __init__(self, subject: Subject, credentials: grpc.ChannelCredentials) -> None:
        self._subject = subject
        options = (("grpc.use_local_subchannel_pool", 1),)  # otherwise equal channels share one connection
        self._channels = [
            grpc.aio.secure_channel(subject.address, credentials, options=options) for _ in range(CHANNELS)
        ]
        self._echo_channels = [
            grpc.aio.secure_channel(subject.echo_address, credentials, options=options) for _ in range(CHANNELS)
        ]
        self._players = 0

    async def players(self, count: int) -> list[Player]:
        """New players with sessions that are paid for."""
        first, self._players = self._players, self._players + count
        players = [Player(number, self._channels[number % CHANNELS]) for number in range(first, self._players)]
        await asyncio.gather(*(player.refill() for player in players))
        return players

    def echoes(self, count: int) -> list[Step]:
        """Empty unary calls."""
        return [_echo_step(self._echo_channels[number % CHANNELS]) for number in range(count)]

    async def window(self, steps: Sequence[Step]) -> Window:
        """One window; every step is repeated by a task of its own."""
        before = await self._subject.rest()
        begin = perf_counter()
        latencies = [
            latency for some in await asyncio.gather(*(_repeat(step, begin + WINDOW_S) for step in steps))
            for latency in some
        ]  # fmt: skip
        elapsed_s = perf_counter() - begin
        used = await self._subject.rest() - before
        return Window(len(latencies), elapsed_s, used.cpu_s, median(latencies), used.groups, used.changes)

    async def close(self) -> None:
        for channel in (*self._channels, *self._echo_channels):
            await channel.close(grace=None)


async def measure(
    load: Load, folder: Path, concurrency: int, repeats: int, pool: int, tell: Callable[[str], None]
) -> Repeats:
    """Repeats of `pool` windows of each kind, after one of each that is not counted."""
    players = await load.players(concurrency)
    kinds: dict[str, Sequence[Step]] = {
        "echo": load.echoes(concurrency),
        "unary": [player.play_unary for player in players],
        "stream": [player.play_streamed for player in players],
    }
    for steps in kinds.values():
        await load.window(steps)
    windows: dict[str, list[Window]] = {kind: [] for kind in kinds}
    probes = []
    for turn in range(repeats * pool):
        tell(f"{concurrency} concurrent, {turn + 1} of {repeats * pool} windows")
        await asyncio.gather(*(player.refill() for player in players))
        first = turn % len(kinds)
        for kind in [*kinds, *kinds][first : first + len(kinds)]:
            windows[kind].append(await load.window(kinds[kind]))
        probes.append(fdatasync_s(folder, count=100))
    await asyncio.gather(*(player.hang_up() for player in players))
    pools = [slice(first, first + pool) for first in range(0, repeats * pool, pool)]
    return Repeats(
        **{kind: [pooled(all_of_it[part]) for part in pools] for kind, all_of_it in windows.items()},
        fdatasync_s=[median(probes[part]) for part in pools],
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
    for way, windows in (("unary", repeats.unary), ("stream", repeats.stream)):
        cpu_s = [window.cpu_per_call_s for window in windows]
        round_cpu_s = [seconds * CALLS_PER_ROUND for seconds in cpu_s]
        figures += [
            ratio(f"{way}_cpu_ratio_{concurrency}_{STORE}", cpu_s, echo_cpu_s),
            ratio(f"{way}_round_cpu_ratio_{concurrency}_{STORE}", round_cpu_s, echo_cpu_s),
            Figure(f"commit_batch_{concurrency}_{way}", tuple(window.batch for window in windows), "changes/commit"),
            Figure(f"{way}_calls_per_s_{concurrency}", tuple(one.calls / one.elapsed_s for one in windows), "1/s"),
        ]
    if concurrency == 1:
        yardstick = [echo.latency_s + sync_s for echo, sync_s in zip(repeats.echo, repeats.fdatasync_s, strict=True)]
        figures += [
            ratio("latency_ratio_1", [window.latency_s for window in repeats.unary], yardstick),
            ratio("stream_latency_ratio_1", [window.latency_s for window in repeats.stream], yardstick),
            Figure("fdatasync_us", tuple(seconds * 1e6 for seconds in repeats.fdatasync_s), "us"),
        ]
    return figures


def _echo_step(channel: grpc.aio.Channel) -> Step:
    call: grpc.aio.UnaryUnaryMultiCallable[Empty, Empty] = channel.unary_unary(
        ECHO_METHOD, request_serializer=Empty.SerializeToString, response_deserializer=Empty.FromString
    )
    empty = Empty()

    async def step() -> None:
        if await call(empty, timeout=CALL_TIMEOUT_S) != empty:
            raise BenchError("the echo says something else")

    return step


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
