"""What it costs a call to be counted and traced: calls of Python functions in the server's thread for one RPC of play,
how many of them are there only to count, how many more there are with traces; and the processor's time of that thread.

`python -m bench.observing` prints the counts, which no load moves; `--check` fails if they are above METRICS_MAX and
TRACES_MAX. `make bench` has the figures of `measure`.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeVar
from unittest.mock import patch

import grpc

from bench.figures import Figure, ratio
from bench.homes import PARTY, make_home
from bench.players import new_request_id
from rgs.devkit.client import ClientIdentity
from rgs.integrity.manifest import make_manifest
from rgs.node.clock import SystemClock
from rgs.node.config import load_config
from rgs.node.logging import Log
from rgs.node.server import Server
from rgs.v1 import play_pb2, session_pb2
from rgs.v1.common_pb2 import Bet
from rgs.v1.play_pb2_grpc import PlayServiceStub
from rgs.v1.session_pb2_grpc import SessionServiceStub

_Answer = TypeVar("_Answer")
ROUNDS: Final = 100
WARM_UP: Final = 5
CALLS_A_ROUND: Final = 4
METRICS_MAX: Final = 0.02
"""Of the calls of Python functions, so many may be there only to count: that is always done."""
TRACES_MAX: Final = 0.08
"""So many more calls there may be with traces, which are off unless somebody sets them."""
OBSERVING: Final = "/rgs/observe/"
BESIDE: Final = frozenset({"trace_field", "reason_of", "_traced", "_traceparent_of", "bind_contextvars", "keep"})
"""Functions elsewhere that are called only to observe."""
NEVER_S: Final = 3_600.0
PAUSES: Final = (
    *(f"rgs.node.server.{name}_S" for name in ("BACKGROUND", "TABLES", "TABLES_SCAN", "SEATS_SCAN", "SESSIONS_SCAN")),
    *("rgs.node.server.RETURNS_S", "rgs.node.transparency_log.LOG_S"),
)
"""The pauses of background work. It is done once, at the start, and not while calls are counted: how much of it falls
into a call depends on the speed of the machine.
"""
VARIANTS: Final[dict[str, dict[str, str]]] = {
    "off": {},
    "metrics": {"metrics_listen": "127.0.0.1:0"},
    "traces": {"metrics_listen": "127.0.0.1:0", "traces": "log/traces.jsonl"},
}


@dataclass(frozen=True, slots=True)
class Served:
    """A server in a thread of its own."""

    server: Server
    loop: asyncio.AbstractEventLoop
    counted: Counter[str]
    """Events of the profile of that thread, while it is counted; `observing` are the calls only to observe."""

    def ask(self, what: Callable[[], _Answer]) -> _Answer:
        """Call a function in the server's thread."""

        async def call() -> _Answer:
            return what()

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result()

    def count(self, is_on: bool) -> None:
        """Count the calls from here on, or no more."""

        def take(frame: FrameType, event: str, _argument: object) -> None:
            self.counted[event] += 1
            if event == "call" and (OBSERVING in frame.f_code.co_filename or frame.f_code.co_name in BESIDE):
                self.counted["observing"] += 1

        self.ask(lambda: sys.setprofile(take if is_on else None))


@contextmanager
def served(home: Path, options: dict[str, str]) -> Iterator[Served]:
    """Serve the home with these settings within the context, without work in the background."""
    config = load_config(home, {"listen": "127.0.0.1:0", **options})
    started: Future[Served] = Future()
    stopping = asyncio.Event()

    async def serve() -> None:
        with Log(config.log, "info", SystemClock(), people=None) as log:
            server = Server(config, make_manifest(), log=log)
            await server.start()
            started.set_result(Served(server, asyncio.get_running_loop(), Counter()))
            await stopping.wait()
            sys.setprofile(None)
            await server.stop()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            if not started.done():
                started.set_exception(error)
            raise

    with ExitStack() as patched:
        for pause in PAUSES:
            patched.enter_context(patch(pause, NEVER_S))
        thread = threading.Thread(target=run)
        thread.start()
        patched.callback(thread.join)
        found = started.result()
        try:
            yield found
        finally:
            found.loop.call_soon_threadsafe(stopping.set)


class Player:
    """A player over one connection. `sit` opens a session, `play` plays in it."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._sessions, self._play = SessionServiceStub(channel), PlayServiceStub(channel)
        self._session_id, self._round_no = "", 0

    def sit(self) -> None:
        """A new session, with money for 500 rounds, and a few rounds to begin with."""
        wanted: dict[str, Any] = {"game": "uth-solo", "player": f"p-{uuid.uuid4().hex[:8]}", "currency": "EUR"}
        wanted["operator_reference"] = str(uuid.uuid4())
        opened = self._sessions.OpenSession(session_pb2.OpenSessionRequest(request_id=new_request_id(), **wanted))
        self._session_id, self._round_no = opened.session.session_id, 0
        money: dict[str, Any] = {"purchase_no": 1, "amount_minor": 100_000}
        self._sessions.BuyParticipation(
            session_pb2.BuyParticipationRequest(request_id=new_request_id(), session_id=self._session_id, **money)
        )
        self.play(WARM_UP)

    def play(self, many: int) -> int:
        """So many rounds; how many calls that took."""
        for _ in range(many):
            self._round_no += 1
            _round(self._play, self._session_id, self._round_no)
        return CALLS_A_ROUND * many


@contextmanager
def player(home: Path, server: Server) -> Iterator[Player]:
    """A player of the server."""
    credentials = ClientIdentity.of_party(load_config(home), PARTY).credentials()
    with grpc.secure_channel(f"localhost:{server.port}", credentials) as channel:
        yield Player(channel)


def calls_an_rpc(one: Served, sitter: Player, rounds: int = ROUNDS) -> tuple[float, float]:
    """Calls of Python functions for one start or action, and how many of them are there only to observe."""
    sitter.sit()
    one.counted.clear()
    one.count(True)
    rpcs = sitter.play(rounds)
    one.count(False)
    return one.counted["call"] / rpcs, one.counted["observing"] / rpcs


def measure(folder: Path, repeats: int, emit: Callable[[str], None]) -> list[Figure]:
    """The processor's time of an RPC with metrics, and with traces too, over that without; and the shares of calls."""
    cpu_s: dict[str, list[float]] = {name: [] for name in VARIANTS}
    shares: dict[str, list[float]] = {"metrics": [], "traces": []}
    with ExitStack() as opened:
        parts: dict[str, tuple[Served, Player]] = {}
        for name, options in VARIANTS.items():
            home = folder / name
            make_home(home)
            one = opened.enter_context(served(home, options))
            parts[name] = one, opened.enter_context(player(home, one.server))
        for number in range(repeats):
            emit(f"observing, repeat {number + 1} of {repeats}")
            for name, (one, sitter) in parts.items():
                sitter.sit()
                before_s = one.ask(time.thread_time)
                rpcs = sitter.play(ROUNDS)
                cpu_s[name].append((one.ask(time.thread_time) - before_s) / rpcs)
        for number in range(repeats):
            emit(f"observing, counts {number + 1} of {repeats}")
            metrics, traces = shares_of({name: calls_an_rpc(*parts[name], ROUNDS // 5) for name in shares})
            shares["metrics"].append(100 * metrics)
            shares["traces"].append(100 * traces)
    return [
        *(ratio(f"observing_cpu_{name}", cpu_s[name], cpu_s["off"]) for name in shares),
        *(Figure(f"observing_calls_{name}", tuple(values), "percent") for name, values in shares.items()),
    ]


def shares_of(counts: Mapping[str, tuple[float, float]]) -> tuple[float, float]:
    """Of the calls with metrics those that only count; and how many more there are with traces, over those without."""
    (calls, counting), (traced, _) = counts["metrics"], counts["traces"]
    return counting / calls, traced / calls - 1


def _round(play: Any, session_id: str, round_no: int) -> None:
    """A start, two checks, a fold."""
    bets = [Bet(bet="ante", amount_minor=100)]
    answer = play.StartRound(
        play_pb2.StartRoundRequest(request_id=new_request_id(), session_id=session_id, round_no=round_no, bets=bets)
    )
    actions: tuple[Any, ...] = (1, 1, 7)
    for action in actions:
        known = {"round_id": answer.round.round_id, "round_version": answer.round.round_version}
        answer = play.Act(
            play_pb2.ActRequest(request_id=new_request_id(), session_id=session_id, action=action, **known)
        )


def main(argv: list[str]) -> int:
    """Print a line for each variant, and the two shares; the exit status."""
    counts = {}
    for name, options in VARIANTS.items():
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            home = Path(folder) / "home"
            make_home(home)
            with served(home, options) as one, player(home, one.server) as sitter:
                counts[name] = calls_an_rpc(one, sitter)
        print(f"{name:8} {counts[name][0]:7.1f} Python calls an RPC, {counts[name][1]:5.1f} of them to observe")
    metrics, traces = shares_of(counts)
    print(f"to count: {100 * metrics:.2f} % of the calls; traces: {100 * traces:.2f} % more calls")
    if "--check" in argv and (metrics > METRICS_MAX or traces > TRACES_MAX):
        limits = f"{100 * METRICS_MAX:g} % to count and {100 * TRACES_MAX:g} % more for traces"
        print(f"that is above the limits: {limits}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
