"""Streams that wait: many open `Play` streams on one process, on which nobody plays.

Opened in five steps: what each stream adds to the server's resident memory, and to that of the load generator. Then the
CPU that the server uses at rest with all of them, and how long another party's call takes, each beside the same before
the first stream. The server itself takes `CALLS_MAX` calls and open streams; for more, this limit is lifted here. If
the machine has too little memory for all of them, as many are measured as it takes, and how many is said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

import grpc.aio

from bench.figures import REPEATS_MIN, BenchError, Figure, ratio
from bench.homes import PARTY, make_home
from bench.process import Subject
from bench.shares import process_of
from bench.waiting import CONNECTION_STREAMS, OTHER, PLAY, call_ms, resident_kib
from rgs.api.endpoint import CALLS_MAX
from rgs.devkit.client import ClientIdentity
from rgs.node.config import Config, load_config

STREAMS: Final = 20_000
CHUNKS: Final = REPEATS_MIN
AT_ONCE: Final = 100
"""Streams that are being opened at the same time."""
REST_S: Final = 2.0
SETTLE_S: Final = 2.0
LEFT_KIB: Final = 2_000_000
"""Memory that stays free."""
STREAM_KIB: Final = 200
"""What a stream may take of the machine's memory, on both sides together: about twice what was seen."""


class _Crowd:
    """The idle streams, and their connections."""

    def __init__(self, config: Config, address: str) -> None:
        self._config, self._address = config, address
        self._channels: list[grpc.aio.Channel] = []
        self.streams: list[Any] = []

    def channel(self, party: str = PARTY) -> grpc.aio.Channel:
        credentials = ClientIdentity.of_party(self._config, party).credentials()
        options = (("grpc.use_local_subchannel_pool", 1),)
        self._channels.append(grpc.aio.secure_channel(self._address, credentials, options=options))
        return self._channels[-1]

    async def grow(self, count: int) -> None:
        """So many streams more. An empty request is refused on the stream, which is open then, and waits."""
        left = count
        while left:
            some = min(left, CONNECTION_STREAMS)
            channel = self.channel()
            for first in range(0, some, AT_ONCE):
                await asyncio.gather(*(self._open(channel) for _ in range(min(AT_ONCE, some - first))))
            left -= some

    async def _open(self, channel: grpc.aio.Channel) -> None:
        call: Any = channel.stream_stream(PLAY)()
        await call.write(b"")
        if not isinstance(await call.read(), bytes):
            raise BenchError(
                f"stream {len(self.streams) + 1} was not opened: {await call.code()} {await call.details()}"
            )
        self.streams.append(call)

    async def close(self) -> None:
        for call in self.streams:
            call.cancel()
        for channel in self._channels:
            await channel.close(grace=None)


async def run(home: Path, wanted: int, emit: Callable[[str], None]) -> list[Figure]:
    """The figures of so many streams; prints how many there are."""
    make_home(home)
    subject = await Subject.start(home, streams_max=wanted + CALLS_MAX)
    crowd = _Crowd(load_config(home), subject.address)
    try:
        return await _measure(subject, crowd, wanted, emit)
    finally:
        await crowd.close()
        await subject.stop()


async def _measure(subject: Subject, crowd: _Crowd, wanted: int, emit: Callable[[str], None]) -> list[Figure]:
    taken = min(wanted, (_available_kib() - LEFT_KIB) // STREAM_KIB)
    if taken < CHUNKS:
        raise BenchError(f"{LEFT_KIB} KiB of memory must stay free, and there is less")
    quiet = crowd.channel(OTHER)
    await call_ms(quiet)
    await subject.rest()
    alone_ms = [await call_ms(quiet) for _ in range(CHUNKS)]
    alone_cpu_s = await _rest_cpu_s(subject)
    own_kib, begin = resident_kib("self"), perf_counter()
    kib: list[float] = []
    for _ in range(CHUNKS):
        emit(f"idle, {len(crowd.streams)} of {taken} streams")
        before, size = resident_kib(subject.process_id), taken // CHUNKS
        await crowd.grow(size)
        await asyncio.sleep(SETTLE_S)
        kib.append((resident_kib(subject.process_id) - before) / size)
    opened_s, count = perf_counter() - begin - CHUNKS * SETTLE_S, len(crowd.streams)
    beside_cpu_s = await _rest_cpu_s(subject)
    beside_ms = [await call_ms(quiet) for _ in range(CHUNKS)]
    ours_kib, theirs_kib = resident_kib(subject.process_id), resident_kib("self") - own_kib
    print(
        f"{'idle':20} {count} streams (asked for: {wanted}; {count / CALLS_MAX:.3g} times the server's own limit of"
        f" {CALLS_MAX}), opened in {opened_s:.0f} s; the server has {ours_kib / 1024:.0f} MiB; the load generator's"
        f" side took {theirs_kib / count:.1f} KiB a stream;"
        f" a call took {median(beside_ms):.1f} ms beside them, {median(alone_ms):.1f} ms alone",
        flush=True,
    )
    return [
        Figure("idle_stream_kib", tuple(kib), "KiB"),
        Figure("idle_cpu_ms_per_s", tuple(1000 * one for one in beside_cpu_s), "ms/s"),
        Figure("idle_alone_cpu_ms_per_s", tuple(1000 * one for one in alone_cpu_s), "ms/s"),
        ratio("idle_call_latency_growth", beside_ms, alone_ms),
    ]


async def _rest_cpu_s(subject: Subject) -> list[float]:
    """CPU seconds a second of a server that nobody calls."""
    result = []
    for _ in range(CHUNKS):
        before, begin = process_of(subject.process_id).cpu_s, perf_counter()
        await asyncio.sleep(REST_S)
        result.append((process_of(subject.process_id).cpu_s - before) / (perf_counter() - begin))
    return result


def _available_kib() -> int:
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1])
    raise BenchError("/proc/meminfo does not say how much memory is available")
