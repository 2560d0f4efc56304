"""What it costs a call to be counted and traced: calls of Python functions in the server's thread for one RPC of play,
and how many of them are there only to observe. `python -m bench.observing [off|metrics|traces ...]`.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import grpc

from bench.homes import PARTY, make_home
from rgs.devkit.client import ClientIdentity
from rgs.integrity.manifest import make_manifest
from rgs.node.config import load_config
from rgs.node.logging import Log
from rgs.node.server import Server
from rgs.v1 import play_pb2, session_pb2
from rgs.v1.common_pb2 import Bet
from rgs.v1.play_pb2_grpc import PlayServiceStub
from rgs.v1.session_pb2_grpc import SessionServiceStub

ROUNDS: Final = 100
OBSERVING: Final = "/rgs/observe/"
BESIDE: Final = frozenset({"trace_field", "reason_of", "_traced", "_traceparent_of", "bind_contextvars", "keep"})
"""Functions elsewhere that are called only to observe."""
IDLE_S: Final = 4.0
"""How long the background is counted alone."""
VARIANTS: Final[dict[str, dict[str, str]]] = {
    "off": {},
    "metrics": {"metrics_listen": "127.0.0.1:0"},
    "traces": {"metrics_listen": "127.0.0.1:0", "traces": "log/traces.jsonl"},
}


@contextmanager
def served(home: Path, options: dict[str, str]) -> Iterator[tuple[Server, Counter[str]]]:
    """A server in a thread of its own, and the calls of Python functions in that thread."""
    config = load_config(home, {"listen": "127.0.0.1:0", **options})
    counted: Counter[str] = Counter()
    started, stopping = threading.Event(), asyncio.Event()
    found: list[Any] = []

    def count(frame: FrameType, event: str, _argument: object) -> None:
        counted[event] += 1
        if event == "call" and (OBSERVING in frame.f_code.co_filename or frame.f_code.co_name in BESIDE):
            counted["observing"] += 1

    async def serve() -> None:
        with Log(config.log, "info", _clock(), people=None) as log:
            server = Server(config, make_manifest(), log=log)
            await server.start()
            found[:] = [server, asyncio.get_running_loop()]
            started.set()
            sys.setprofile(count)
            await stopping.wait()
            sys.setprofile(None)
            await server.stop()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    started.wait()
    try:
        yield found[0], counted
    finally:
        found[1].call_soon_threadsafe(stopping.set)
        thread.join()


def _clock() -> Any:
    from rgs.node.clock import SystemClock  # noqa: PLC0415

    return SystemClock()


def calls_an_rpc(home: Path, options: dict[str, str]) -> tuple[float, float]:
    """Calls of Python functions for one start or action, without those of the background in that time, and how many of
    them are there only to observe.
    """
    with served(home, options) as (server, counted):
        credentials = ClientIdentity.of_party(load_config(home), PARTY).credentials()
        with grpc.secure_channel(f"localhost:{server.port}", credentials) as channel:
            sessions, play = SessionServiceStub(channel), PlayServiceStub(channel)
            wanted: dict[str, Any] = {"game": "uth-solo", "player": f"p-{uuid.uuid4().hex[:8]}", "currency": "EUR"}
            wanted["operator_reference"] = _id()
            opened = sessions.OpenSession(session_pb2.OpenSessionRequest(request_id=_id(), **wanted))
            session_id = opened.session.session_id
            money: dict[str, Any] = {"purchase_no": 1, "amount_minor": 50_000}
            sessions.BuyParticipation(
                session_pb2.BuyParticipationRequest(request_id=_id(), session_id=session_id, **money)
            )
            _rounds(play, session_id, 1, 5)
            before, begun_s = counted["call"], time.monotonic()
            time.sleep(IDLE_S)
            idle_a_second = (counted["call"] - before) / (time.monotonic() - begun_s)
            before, begun_s = counted["call"], time.monotonic()
            observing = counted["observing"]
            rpcs = _rounds(play, session_id, 6, ROUNDS)
            passed_s = time.monotonic() - begun_s
            calls = counted["call"] - before - idle_a_second * passed_s
            return calls / rpcs, (counted["observing"] - observing) / rpcs


def _rounds(play: Any, session_id: str, first: int, many: int) -> int:
    """Play rounds: start, two checks, a fold; how many calls that took."""
    for round_no in range(first, first + many):
        bets = [Bet(bet="ante", amount_minor=100)]
        answer = play.StartRound(
            play_pb2.StartRoundRequest(request_id=_id(), session_id=session_id, round_no=round_no, bets=bets)
        )
        actions: tuple[Any, ...] = (1, 1, 7)
        for action in actions:
            known = {"round_id": answer.round.round_id, "round_version": answer.round.round_version}
            answer = play.Act(play_pb2.ActRequest(request_id=_id(), session_id=session_id, action=action, **known))
    return 4 * many


def _id() -> str:
    return str(uuid.uuid4())


def main(wanted: list[str]) -> None:
    """Print a line for each variant."""
    for name in wanted or VARIANTS:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            make_home(Path(folder) / "home")
            calls, observing = calls_an_rpc(Path(folder) / "home", VARIANTS[name])
        print(
            f"{name:8} {calls:7.0f} Python calls an RPC, {observing:5.1f} to observe ({100 * observing / calls:.2f} %)"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
