"""Measures clients that keep the server waiting: `python -m bench.waiting [STREAMS] [UNREAD]`.

Opens STREAMS `Play` streams that send nothing, then UNREAD streams that send thousands of requests and read no answer.
Prints the server's resident memory per stream, and the time of another party's call meanwhile. No test depends on these
figures.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

import grpc.aio

from bench.homes import PARTY, make_home
from bench.process import Subject
from rgs.devkit.client import ClientIdentity
from rgs.node.config import load_config
from rgs.v1 import play_pb2

STREAMS: Final = 2_000
UNREAD: Final = 64
REQUESTED: Final = 2_000
CONNECTION_STREAMS: Final = 500
"""Streams of one connection; the server takes 1,024."""
OTHER: Final = "demo-auditor"
PLAY: Final = "/rgs.v1.PlayService/Play"
LIST_GAMES: Final = "/rgs.v1.CatalogService/ListGames"


def resident_kib(process: int | str) -> int:
    """VmRSS of a process."""
    for line in Path(f"/proc/{process}/status").read_text("ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise ValueError("there is no VmRSS")


async def call_ms(channel: Any) -> float:
    """Median time of a small call, over fifty."""
    times = []
    for _ in range(50):
        begun = perf_counter()
        await channel.unary_unary(LIST_GAMES)(b"", timeout=60)
        times.append((perf_counter() - begun) * 1000)
    return median(times)


async def measure(home: Path, streams: int, unread: int) -> None:
    """Print the lines."""
    config = load_config(home)
    subject = await Subject.start(home)
    process = subject.process_id

    def channel(party: str = PARTY) -> Any:
        credentials = ClientIdentity.of_party(config, party).credentials()
        return grpc.aio.secure_channel(subject.address, credentials, options=(("grpc.use_local_subchannel_pool", 1),))

    quiet = channel(OTHER)
    await call_ms(quiet)
    rest, before = resident_kib(process), await call_ms(quiet)
    print(f"at rest: {rest / 1024:.0f} MiB, a call {before:.1f} ms")
    channels = [channel() for _ in range(-(-streams // CONNECTION_STREAMS))]
    idle = []
    for nth in range(streams):  # an empty request is refused in band: the stream is open and waits
        call = channels[nth // CONNECTION_STREAMS].stream_stream(PLAY)()
        await call.write(b"")
        await call.read()
        idle.append(call)
    now = resident_kib(process)
    print(f"{streams} idle streams: {(now - rest) / streams:.1f} KiB each, a call {await call_ms(quiet):.1f} ms")
    flooding = [channel() for _ in range(4)]
    deaf = [flooding[nth % 4].stream_stream(PLAY)() for nth in range(unread)]
    request = play_pb2.PlayRequest(get_round=play_pb2.GetRoundRequest(session_id="0" * 26, round_id="0" * 26))

    async def ask(call: Any) -> None:
        for _ in range(REQUESTED):
            await call.write(request.SerializeToString())

    asking = [asyncio.create_task(ask(call)) for call in deaf]
    peak = now
    for _ in range(100):
        await asyncio.sleep(0.1)
        peak = max(peak, resident_kib(process))
    result = f"{(peak - now) / unread:.1f} KiB each at most"
    print(
        f"{unread} streams that ask {REQUESTED} times and do not read: {result}, a call {await call_ms(quiet):.1f} ms"
    )
    for task in asking:
        task.cancel()
    for call in (*idle, *deaf):
        call.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    for one in (quiet, *channels, *flooding):
        await one.close()
    await subject.stop()


def main() -> None:
    """Measure with the numbers of the command line, in a new home."""
    streams, unread = [int(given) for given in sys.argv[1:3]] or (STREAMS, UNREAD)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        make_home(home)
        asyncio.run(measure(home, streams, unread))


if __name__ == "__main__":
    main()
