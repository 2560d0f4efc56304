"""The machine's clock is set while the server runs, and while it is down.

The server runs in this process, over a real socket: no process can have a wall clock of its own, and the machine's is
not ours to set. What is moved is what the server reads of it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from structlog.testing import capture_logs

from rgs.adapters.embedded.books import receipt_line
from rgs.node.keyring import read_fingerprint
from rgs.v1 import admin_pb2, session_pb2
from rgs.v1.admin_pb2_grpc import AdminServiceStub
from tests.gamedays.transcript import Transcript
from tests.support.api.client import ApiClient, refused, request_id
from tests.support.api.harness import ApiHarness, info_in, status_in
from tests.support.clocks import ShiftedClock
from tests.support.process.served import rgs
from tests.support.waiting import until

pytestmark = pytest.mark.slow

HOUR_MS = 3_600_000


async def clock_guard(harness: ApiHarness) -> Any:
    admin: Any = AdminServiceStub(harness.channel("demo-admin"))
    found = (await admin.ListGuards(admin_pb2.ListGuardsRequest())).guards
    return next(guard for guard in found if guard.name == "clock")


async def await_guard(harness: ApiHarness, *, closed: bool) -> str:
    async def is_so() -> bool:
        return bool((await clock_guard(harness)).closed == closed)

    await until(is_so)
    return str((await clock_guard(harness)).code)


async def clear(harness: ApiHarness) -> None:
    admin: Any = AdminServiceStub(harness.channel("demo-admin"))
    await admin.ClearGuard(admin_pb2.ClearGuardRequest(request_id=request_id(), name="clock", reason="CLOCK_SET_RIGHT"))
    await await_guard(harness, closed=False)


async def restart(harness: ApiHarness, jumped_ms: int) -> None:
    """Another process, which finds the wall clock set by so much."""
    harness.clock = ShiftedClock(jumped_ms)
    await harness.restart()


async def refusal_of_a_round(player: ApiClient) -> str:
    info = info_in(status_in(await refused(player.start())))
    return f"{info.reason} {info.metadata['guard']}"


async def test_wrong_clock(tmp_path: Path, written: Transcript) -> None:
    """The clock is set forward under the server, and back while it is down"""
    openings: list[bytes] = []
    with capture_logs(), patch("rgs.node.server.BACKGROUND_S", 0.1):
        harness = ApiHarness(tmp_path / "home")
        try:
            await restart(harness, 2 * HOUR_MS)  # two hours after its keys were made
            player = await ApiClient(harness.channel()).seated()
            openings.append((await player.start()).opening)
            harness.clock.jumped_ms += HOUR_MS
            written.did("set the wall clock forward by an hour, while a round is in play")
            code = await await_guard(harness, closed=True)
            written.alarm(f"guard clock closed: {code} (alert RgsGuardClosed; with PostgreSQL RgsClockApart)")
            assert code == "TIME_JUMP"
            ended = [await player.act(action) for action in (1, 1, 7)][-1]
            assert ended.round.status == 2
            written.saw(f"the round in play is finished; a new one is refused: {await refusal_of_a_round(player)}")
            harness.clock.jumped_ms -= HOUR_MS
            await harness.server.services.monitor.poll()
            assert (await clock_guard(harness)).closed, "a clock that is right again is not vouched for by itself"
            written.operator("sets the clock right, compares it with two others, and clears the guard with a reason")
            await clear(harness)
            openings.append((await player.start()).opening)
            for action in (1, 1, 7):
                await player.act(action)
            written.saw("rounds begin again")
            await restart(harness, HOUR_MS)
            written.did("set the clock back by an hour while the server was down")
            code = await await_guard(harness, closed=True)
            assert code in {"BEHIND_STORE", "SET_WHILE_DOWN"}
            again = ApiClient(harness.channel())
            again.session_id, again.round_no = player.session_id, player.round_no
            written.alarm(f"guard clock closed from the start: {code}")
            written.saw(f"a new round is refused: {await refusal_of_a_round(again)}")
            await restart(harness, 2 * HOUR_MS)
            still = await clock_guard(harness)
            written.operator("sets the clock right and starts the server again")
            if still.closed:
                await clear(harness)
                written.operator("clears the guard with a reason: a restart alone does not open it")
            again = ApiClient(harness.channel())
            again.session_id, again.round_no = player.session_id, player.round_no
            openings.append((await again.start()).opening)
            for action in (1, 1, 7):
                await again.act(action)
            named = {"session_id": again.session_id}
            end = session_pb2.EndParticipationRequest(request_id=request_id(), **named)
            await again.sessions.EndParticipation(end)
            await again.sessions.CloseSession(session_pb2.CloseSessionRequest(request_id=request_id(), **named))
        finally:
            await harness.stop()
    prove(tmp_path, openings, written)


def prove(folder: Path, openings: list[bytes], written: Transcript) -> None:
    """The export has what the player holds, and reconciles with the embedded books."""
    home, names = folder / "home", {"statements": "all.jsonl", "wallet": "wallet.csv", "regulator": "regulator.jsonl"}
    files = {name: folder / file for name, file in names.items()}
    for export, name in (("export", "statements"), ("export-wallet", "wallet"), ("export-regulator", "regulator")):
        made = rgs(export, "--home", str(home), "--out", str(files[name]))
        assert made.returncode == 0, made.stderr
    held = files["statements"].read_bytes()
    assert all(opening in held for opening in openings)
    files["receipts"] = folder / "receipts.jsonl"
    files["receipts"].write_bytes(b"".join(receipt_line(opening) for opening in openings))
    options = [part for name, path in files.items() for part in (f"--{name}", str(path))]
    root = read_fingerprint(home / "keys")
    command = ["-m", "rgs", "reconcile", *options, "--keys", str(home / "keys/keys.json"), "--root", root]
    done = subprocess.run(
        [sys.executable, *command, "--out", str(folder / "report")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    first, *_, last = done.stdout.strip().splitlines()
    written.after(f"replayed: {first}; reconciled with the embedded books: {last.partition(';')[0]}")
