"""When a look at the peers and clocks is due, to the millisecond, and which latches a process knows as its own."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from rgs.core.errors import RegulatorUnavailableError
from rgs.ports.regulator import SessionClose
from rgs.service.admin.health_monitor import REGULATOR_FAILURES_MAX
from rgs.service.timekeeping import ASK_PERIOD_MS
from rgs.store.changes import Change, LatchCleared, LatchSet, StoreError
from tests.support.service.harness import ServiceHarness, read_statement
from tests.support.service.oracles import stored_statements
from tests.unit.service.admin.test_health_monitor import clearing, closed, guard, poll


def codes(folder: Path) -> list[str]:
    bodies = [read_statement(row.envelope) for row in stored_statements(folder) if row.kind == "event"]
    return [body["code"] for body in bodies if not body["code"].startswith("RNG_")]


async def test_certified_files_that_differ_are_looked_at_again_after_ten_seconds(harness: ServiceHarness) -> None:
    harness.software = "SOFTWARE_CHANGED"
    harness.clock.tick(600_000)
    await poll(harness)
    harness.software = ""
    harness.clock.tick(9_999)
    await poll(harness)
    assert closed(harness) == ["rules"]
    harness.clock.tick()
    await poll(harness)
    assert closed(harness) == []


async def test_files_measured_before_an_admin_set_them_right_close_nothing(harness: ServiceHarness) -> None:
    """A look takes a second under load; what it finds is older than the admin's order by then."""
    begun, ended, found = threading.Event(), threading.Event(), ["SOFTWARE_CHANGED", "", ""]

    def measure() -> str:
        if len(found) < 3:
            return found.pop(0)
        code = found.pop(0)
        begun.set()
        assert ended.wait(10)
        return code

    monitor = harness.services.monitor
    monitor.monitored = replace(monitor.monitored, measure=measure)
    harness.clock.tick(600_000)
    looking = asyncio.create_task(monitor.poll())
    assert await asyncio.to_thread(begun.wait, 10)
    reply = await harness.services.admin.clear_guard(clearing("rules"), "rules", "RESTORED")
    assert read_statement(reply.envelope)["after"] == "OPEN"
    ended.set()
    await looking
    assert (found, closed(harness)) == ([], [])


async def test_a_jump_that_waits_for_the_store_is_signed_once_whatever_else_waits(
    tmp_path: Path, harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = harness.services.monitor
    harness.services.availability.close_guard("clock", "BEHIND_STORE", harness.clock.now_ms(), latched=True)
    monitor._close("keys", "KEY_ENDED")

    async def down(_change: object) -> None:
        raise StoreError("planned")

    with monkeypatch.context() as patched:
        patched.setattr(harness.store, "commit", down)
        for _ in range(2):
            harness.clock.jump(-3_600_000)
            await poll(harness)
    assert codes(tmp_path) == []
    await poll(harness)
    assert codes(tmp_path).count("TIME_JUMP") == 1
    assert codes(tmp_path).count("GUARD_CLOSED") == 1


async def test_each_look_asks_the_databases_clock_when_it_is_time(
    tmp_path: Path, harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await poll(harness)
    requested: list[int] = []

    async def clock_ms() -> int:
        requested.append(harness.clock.running_ms())
        return harness.clock.wall_ms() + (60_000 if len(requested) == 2 else 0)

    monkeypatch.setattr(harness.store, "clock_ms", clock_ms)
    began_ms = harness.clock.running_ms()
    for _ in range(3):
        harness.clock.tick(ASK_PERIOD_MS // 2)
        await poll(harness)
    assert requested == [began_ms + ASK_PERIOD_MS]
    harness.clock.tick(ASK_PERIOD_MS // 2)
    await poll(harness)
    assert len(requested) == 2
    assert guard(harness, "clock").code == "CLOCKS_DIFFER"
    assert "TIME_JUMP" not in codes(tmp_path), "no clock has jumped"


async def test_a_silent_regulator_keeps_its_guard_closed_until_it_has_been_left_alone_for_a_while(
    harness: ServiceHarness,
) -> None:
    regulator = harness.services.monitor.regulator
    harness.regulator_script.is_down = True
    for number in range(REGULATOR_FAILURES_MAX):
        assert regulator.failures == number
        with pytest.raises(RegulatorUnavailableError):
            await regulator.close_session(SessionClose(f"{number:026d}", "M" * 16, harness.clock.now_ms()))
    for _ in range(3):
        await poll(harness)
        assert closed(harness) == ["regulator"]
    harness.clock.tick(60_000)
    for _ in range(2):
        await poll(harness)
        assert closed(harness) == ["regulator"]
    harness.clock.tick()
    for _ in range(2):
        await poll(harness)
    assert closed(harness) == []


async def test_a_latch_that_this_process_set_is_found_cleared_by_another(
    tmp_path: Path, harness: ServiceHarness
) -> None:
    monitor, now_ms = harness.services.monitor, harness.clock.now_ms()
    monitor._close("keys", "KEY_ENDED", LatchSet("node-1", "keys", "KEY_ENDED", now_ms))
    await poll(harness)
    assert guard(harness, "keys").latched
    with closing(sqlite3.connect(tmp_path / "rgs.db", isolation_level=None)) as other:
        assert other.execute("DELETE FROM latches").rowcount == 1
    await monitor.follow()
    assert not guard(harness, "keys").latched
    assert guard(harness, "keys").code == "KEY_ENDED", "what it stands for has not changed"


async def test_a_latch_that_another_process_set_and_cleared_is_followed(harness: ServiceHarness) -> None:
    monitor, now_ms = harness.services.monitor, harness.clock.now_ms()
    for _ in range(2):
        await harness.store.commit(Change(records=(LatchSet("node-1", "keys", "KEY_ENDED", now_ms),)))
        await monitor.follow()
        assert guard(harness, "keys").latched
        await harness.store.commit(Change(records=(LatchCleared("node-1", "keys"),)))
        await monitor.follow()
        assert not guard(harness, "keys").latched
        assert guard(harness, "keys").code == "KEY_ENDED", "what it stands for has not changed"


async def test_the_clock_is_believed_again_once_the_database_agrees(
    tmp_path: Path, harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness.store, "clock_ms", harness._database_ms)
    await poll(harness)
    harness.clock.jump(3_600_000)
    await poll(harness)
    assert (closed(harness), guard(harness, "clock").latched) == (["clock"], True)
    harness.clock.jump(-3_600_000)
    for _ in range(3):
        harness.clock.tick(ASK_PERIOD_MS)
        await poll(harness)
    assert closed(harness) == []
    assert await harness.store.latches("node-1") == []
    assert codes(tmp_path) == ["GUARD_CLOSED", "TIME_JUMP", "GUARD_OPENED"]


async def test_the_stores_guard_is_logged_when_a_commit_opens_it(harness: ServiceHarness) -> None:
    harness.services.availability.close_guard("store", "COMMIT_FAILED", harness.clock.now_ms())
    with capture_logs() as logs:
        await poll(harness)
    assert closed(harness) == []
    assert logs == [{"event": "guard_opened", "log_level": "warning", "guard": "store", "code": "COMMIT_FAILED"}]


async def test_an_instance_signs_its_first_jump_though_the_guard_is_closed_already(
    tmp_path: Path, harness: ServiceHarness
) -> None:
    """Replay learns from it why later dates are before the instance's start."""
    harness.services.availability.close_guard("clock", "BEHIND_STORE", harness.clock.now_ms(), latched=True)
    for _ in range(2):
        harness.clock.jump(-3_600_000)
        await poll(harness)
    bodies = [read_statement(row.envelope) for row in stored_statements(tmp_path) if row.kind == "event"]
    jumps = [(body.get("subject"), body.get("after")) for body in bodies if body["code"] == "TIME_JUMP"]
    assert jumps[0] == ("clock", "-3600000 ms")
    assert len(jumps) == 1, "further ones are counted"


async def test_a_clock_that_is_held_has_its_jump_signed_by_the_next_instance(
    tmp_path: Path, harness: ServiceHarness
) -> None:
    """An admin has accepted the earlier time, and the instance before ended without signing: the clock stands."""
    harness.clock.jump(-3_600_000)
    harness.clock.accept()
    assert harness.clock.take_jump() == -3_600_000
    assert harness.clock.is_held
    await poll(harness)
    assert codes(tmp_path).count("TIME_JUMP") == 1
    assert not harness.clock.is_held


async def test_each_further_jump_is_counted_once(harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[tuple[str, ...]] = []
    monkeypatch.setattr(harness.services.monitor.events, "count", lambda *what: counted.append(what))
    for expected in (0, 1, 2):
        harness.clock.jump(3_600_000)
        for _ in range(2):
            await poll(harness)
        assert counted == [("TIME_JUMP", "TIME_JUMP")] * expected
