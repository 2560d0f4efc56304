"""A server whose lock file was deleted, and whose store another server has taken: it says who, to everybody."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from rgs.store.changes import InstanceLostError
from rgs.v1 import session_pb2
from tests.support.api.client import ApiClient, refused, request_id
from tests.support.api.harness import ApiHarness, info_in, reason_in, status_in

pytestmark = pytest.mark.slow


async def reported_by(harness: ApiHarness, name: str) -> Any:
    return info_in(status_in(await refused(ApiClient(harness.channel(), name).open())))


@pytest.mark.parametrize("background_s", [0.02, 3600])
async def test_a_server_whose_store_was_taken_says_by_whom_and_since_when(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, background_s: float
) -> None:
    """Whether it looks at its lease first, or a client comes first."""
    monkeypatch.setattr("rgs.node.server.BACKGROUND_S", background_s)
    harness, second = ApiHarness(tmp_path / "home"), ApiHarness(tmp_path / "home")
    with capture_logs() as logs:
        await harness.start()
        player = await ApiClient(harness.channel()).seated()
        (tmp_path / "home" / "store" / "rgs.lock").unlink()
        await second.start()
        try:
            if background_s > 1:
                first = await reported_by(harness, "first")
                # The store refuses it; or the first look at the lease came late and has closed the guard.
                assert "INSTANCE_LOST" in (first.reason, first.metadata["code"])
            else:
                async with asyncio.timeout(20):
                    await harness.server.lost.wait()
                (line,) = [line for line in logs if line["event"] == "instance_lost"]
                assert (line["instance"], line["taken_by"]) == ("node1-b1-w0", "node1-b2-w0")
                assert line["since"].startswith("20")
                assert line["since"].endswith("Z")
                for part in ("node1-b1-w0", f"node1-b2-w0 has taken its place since {line['since']}", "end"):
                    assert part in line["why"]
                assert harness.server.lost_why == line["why"]
            result = await reported_by(harness, "late")
            assert (result.reason, result.metadata["guard"], result.metadata["code"]) == (
                "GUARD_CLOSED", "store", "INSTANCE_LOST",
            )  # fmt: skip
            # What needs no guard asks the store, which says the same: a purchase, a session's end.
            end = session_pb2.EndParticipationRequest(request_id=request_id(), session_id=player.session_id)
            error = await refused(player.sessions.EndParticipation(end))
            assert reason_in(status_in(error)) == "INSTANCE_LOST"
            assert error.code().name == "UNAVAILABLE"
            guard = harness.server.services.availability.guard("store")
            assert (guard.code, guard.latched) == ("INSTANCE_LOST", True)
            await ApiClient(second.channel(), "other").open()
            if harness.server.lost.is_set():
                await harness.stop()
            else:
                with pytest.raises(InstanceLostError):  # its last statement is refused as well
                    await harness.stop()
        finally:
            await second.stop()


def served(home: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "rgs", "serve", "--home", str(home), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    log, deadline = home / "log" / "rgs.log", time.monotonic() + 60
    before = log.read_text().count('"listening"') if log.exists() else 0
    while not (log.exists() and log.read_text().count('"listening"') > before):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return process


def test_the_process_ends_and_says_so(tmp_path: Path) -> None:
    home = tmp_path / "home"
    ApiHarness(home)
    first = served(home)
    second = None
    try:
        os.unlink(home / "store" / "rgs.lock")  # noqa: PTH108
        os.unlink(home / "serve.lock")  # noqa: PTH108
        second = served(home)
        _, stderr = first.communicate(timeout=60)
        assert first.returncode == 1
        last = stderr.splitlines()[-1]
        assert "node1-b2-w0 has taken its place" in last
        assert "[INSTANCE_LOST" in last
        assert second.poll() is None
        second.send_signal(signal.SIGTERM)
        second.communicate(timeout=60)
        assert second.returncode == 0
    finally:
        for process in (first, second):
            if process is not None and process.poll() is None:
                process.kill()
            if process is not None:
                process.communicate()
