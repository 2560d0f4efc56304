"""Guards at the whole server: what health says, which calls stop, and that everything comes back."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from structlog.testing import capture_logs

from rgs.core.errors import RegulatorUnavailableError
from rgs.integrity.manifest import Manifest, ManifestError
from rgs.integrity.manifest_verify import Surroundings
from rgs.node import software_identity
from rgs.node.server import Server
from rgs.node.software_identity import SURROUNDINGS_CHANGED, changed_software, changed_surroundings
from rgs.service.availability import GUARDS
from rgs.store.sqlite.store import SqliteStore
from rgs.v1 import admin_pb2, session_pb2
from rgs.v1.admin_pb2_grpc import AdminServiceStub
from tests.support.api.client import ApiClient, health, refused, request_id
from tests.support.api.harness import ApiHarness, info_in, manifest, reason_in, serving, status_in
from tests.support.service.harness import read_statement

PLAY, SESSION, ADMIN = "rgs.v1.PlayService", "rgs.v1.SessionService", "rgs.v1.AdminService"
SERVING, NOT_SERVING = b"\x08\x01", b"\x08\x02"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rgs.node.server.BACKGROUND_S", 0.02)


async def until(channel: grpc.aio.Channel, service: str, wanted: bytes) -> None:
    for _ in range(500):
        if await health(channel, service) == wanted:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{service} is not {wanted!r}")


def admin_of(harness: ApiHarness) -> Any:
    return AdminServiceStub(harness.channel("demo-admin"))


async def guards(harness: ApiHarness) -> dict[str, admin_pb2.Guard]:
    found = await admin_of(harness).ListGuards(admin_pb2.ListGuardsRequest())
    return {guard.name: guard for guard in found.guards}


async def events(harness: ApiHarness, *codes: str) -> list[tuple[str, str, str]]:
    """(code, subject, reason) of the events of these codes, oldest first."""
    found = await admin_of(harness).ListEvents(admin_pb2.ListEventsRequest(page_size=200))
    result = [(event.code, event.subject, event.reason) for event in found.events if event.code in codes]
    return result[::-1]


async def settle_and_leave(player: ApiClient) -> None:
    for action in (1, 1, 7):
        await player.act(action)


async def test_all_guards_are_open_at_the_start(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        found = await guards(harness)
        assert list(found) == list(GUARDS)
        assert not any(guard.closed or guard.latched or guard.code for guard in found.values())
        for service in ("", PLAY, SESSION, ADMIN):
            assert await health(harness.channel(), service) == SERVING


async def test_a_changed_byte_of_the_certified_files(tmp_path: Path) -> None:
    """The real measure over a copy of a certified file: one byte is changed, and put back."""
    harness = ApiHarness(tmp_path / "home", rules_check_s=1)
    changed: list[Exception | str] = []

    def measure() -> Manifest:
        if changed and isinstance(changed[0], Exception):
            raise changed[0]
        entries = list(manifest().entries)
        if changed:
            first = entries[0]
            entries[0] = type(first)(first.path, "0" * 64, first.bytes)
        return Manifest(tuple(entries), manifest().locked)

    harness.server = Server(harness.config, manifest(), clock=harness.clock, measure=measure)
    await harness.start()
    try:
        player, late = await ApiClient(harness.channel()).seated(), await ApiClient(harness.channel(), "late").seated()
        await player.start()
        for code, fault in (("SOFTWARE_CHANGED", "byte"), ("SOFTWARE_UNREADABLE", ManifestError("gone"))):
            changed[:] = [fault]
            await until(player.channel, PLAY, NOT_SERVING)
            assert await health(player.channel, SESSION) == SERVING
            error = await refused(late.play.StartRound(late.start_request()))
            info = info_in(status_in(error))
            assert (error.code().name, info.reason) == ("UNAVAILABLE", "GUARD_CLOSED")
            assert (info.metadata["guard"], info.metadata["code"]) == ("rules", code)
            changed.clear()
            clear = admin_pb2.ClearGuardRequest(request_id=request_id(), name="rules", reason="RESTORED")
            cleared = await admin_of(harness).ClearGuard(clear)
            assert read_statement(cleared.statement)["after"] == "OPEN"
            await until(player.channel, PLAY, SERVING)
        await settle_and_leave(player)
        await late.start()
        assert await events(harness, "GUARD_CLOSED", "GUARD_CLEARED") == [
            ("GUARD_CLOSED", "rules", "SOFTWARE_CHANGED"), ("GUARD_CLEARED", "rules", "RESTORED"),
            ("GUARD_CLOSED", "rules", "SOFTWARE_UNREADABLE"), ("GUARD_CLEARED", "rules", "RESTORED"),
        ]  # fmt: skip
    finally:
        await harness.stop()


def _changed(server: Server) -> str:
    return changed_software(server._manifest, server._measure)


def test_the_measure_of_the_server_sees_a_changed_byte(tmp_path: Path) -> None:
    harness = ApiHarness(tmp_path / "home")
    assert _changed(harness.server) == ""
    entries = tuple(entry for entry in manifest().entries if entry.path != "rng/drbg.py")
    other = Server(harness.config, Manifest(entries, manifest().locked))
    with capture_logs() as logs:
        assert _changed(other) == "SOFTWARE_CHANGED"
    assert [(line["event"], line["what"]) for line in logs] == [("software_changed", "unlisted rng/drbg.py")]


def test_the_log_names_what_a_server_runs_on_that_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Surroundings("3.11.7", {"/p": "0"}, {"os.py": "1"}, {"a==1": {"a.py": "2"}}, {"rgs/node/server.py": "3"})
    again = first
    monkeypatch.setattr(software_identity, "measure_surroundings", lambda _objects: again)
    started = Manifest((), locked=True, surroundings=first)
    assert changed_surroundings(started) == ""
    for change, result in (
        ({"server": {"rgs/node/server.py": "9"}}, "changed rgs/node/server.py"),
        ({"stdlib": {}}, "missing standard library: os.py"),
        ({"objects": {"/p": "9"}, "dependencies": {"a==1": {"a.py": "9"}}}, "changed /p; changed a==1: a.py"),
        ({"server": {f"rgs/{n:02}.py": "" for n in range(20)}}, "and 9 more"),
    ):
        again = replace(first, **change)
        with capture_logs() as logs:
            assert changed_surroundings(started) == SURROUNDINGS_CHANGED
        assert logs[0]["event"] == "surroundings_changed"
        assert logs[0]["what"].endswith(result)


async def test_a_clock_that_was_set(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player, late = await ApiClient(harness.channel()).seated(), await ApiClient(harness.channel(), "late").seated()
        await player.start()
        harness.clock.jumped_ms = 3_000
        await until(player.channel, PLAY, NOT_SERVING)
        error = await refused(late.play.StartRound(late.start_request()))
        assert info_in(status_in(error)).metadata["guard"] == "clock"
        await settle_and_leave(player)
        await harness.restart()  # makes nothing trusted
        channel = harness.channel()
        found = (await guards(harness))["clock"]
        assert (found.closed, found.latched, found.code) == (True, True, "TIME_JUMP")
        clear = admin_pb2.ClearGuardRequest(request_id=request_id(), name="clock", reason="SET_BY_HAND")
        await admin_of(harness).ClearGuard(clear)
        await until(channel, PLAY, SERVING)
        again = ApiClient(channel)
        again.session_id, again.round_no = late.session_id, 1
        await again.start()
        result = await events(harness, "GUARD_CLOSED", "TIME_JUMP", "GUARD_OPENED", "GUARD_CLEARED")
        assert [code for code, _, _ in result] == ["GUARD_CLOSED", "TIME_JUMP", "GUARD_CLEARED"]


async def test_a_store_that_is_locked_by_another(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player, late = await ApiClient(harness.channel()).seated(), await ApiClient(harness.channel(), "late").seated()
        await player.start()
        store = harness.server.services.monitor.store
        assert isinstance(store, SqliteStore)
        store._db.execute("PRAGMA busy_timeout = 5")
        with closing(sqlite3.connect(str(harness.config.store), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            error = await refused(late.play.StartRound(late.start_request()))
            assert reason_in(status_in(error)) == "STORE_UNAVAILABLE"
            error = await refused(late.play.StartRound(late.start_request()))
            assert (reason_in(status_in(error)), error.code().name) == ("GUARD_CLOSED", "UNAVAILABLE")
            for service in (PLAY, SESSION):
                await until(player.channel, service, NOT_SERVING)
            other.execute("ROLLBACK")
        for service in (PLAY, SESSION):
            await until(player.channel, service, SERVING)
        await settle_and_leave(player)
        await late.start()
        result = await events(harness, "GUARD_CLOSED", "GUARD_OPENED")
        assert result == [("GUARD_CLOSED", "store", "COMMIT_FAILED"), ("GUARD_OPENED", "store", "COMMIT_FAILED")]


async def test_a_regulator_that_is_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(tmp_path) as harness:
        player = await ApiClient(harness.channel()).seated()

        async def silent(*_: Any) -> Any:
            raise RegulatorUnavailableError("no answer")

        with monkeypatch.context() as patched:
            patched.setattr("rgs.adapters.embedded.regulator.EmbeddedRegulator.open_session", silent)
            late = ApiClient(harness.channel(), "late")
            opening = late.open_request()
            error = await refused(late.sessions.OpenSession(opening))
            assert reason_in(status_in(error)) == "REGULATOR_UNAVAILABLE"
            await until(player.channel, SESSION, NOT_SERVING)  # recovery asks again and again
            assert await health(player.channel, PLAY) == SERVING
            found = await guards(harness)
            assert [name for name, guard in found.items() if guard.closed] == ["regulator"]
            await player.round_to_the_end()  # it has its ids; that the regulator takes its report is an answer
        await until(player.channel, SESSION, SERVING)
        assert (await late.sessions.OpenSession(opening)).session.regulator_session_id


async def test_a_latched_generator_over_a_restart(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = await ApiClient(harness.channel()).seated()
        await player.start()
        await harness.server.services.monitor.instance._generator.close()
        await until(player.channel, PLAY, NOT_SERVING)
        await settle_and_leave(player)
        await harness.restart()
        channel = harness.channel()
        await until(channel, PLAY, NOT_SERVING)
        found = (await guards(harness))["rng"]
        assert (found.closed, found.latched, found.code) == (True, True, "GENERATOR_ENDED")
        again = ApiClient(channel)
        again.session_id, again.round_no = player.session_id, 2
        error = await refused(again.play.StartRound(again.start_request()))
        assert info_in(status_in(error)).metadata["guard"] == "rng"
        clear = admin_pb2.ClearGuardRequest(request_id=request_id(), name="rng", reason="REPLACED")
        first = await admin_of(harness).ClearGuard(clear)
        assert await admin_of(harness).ClearGuard(clear) == first
        await until(channel, PLAY, SERVING)
        await again.start()
        await harness.restart()
        assert not (await guards(harness))["rng"].closed
        result = await events(harness, "RNG_FAILED", "GUARD_CLOSED", "GUARD_CLEARED")
        assert [code for code, _, _ in result] == ["RNG_FAILED", "GUARD_CLOSED", "GUARD_CLEARED"]


async def test_what_happens_at_the_door_and_inside_is_counted_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as harness:
        lab, player = ApiClient(harness.channel("demo-lab")), await ApiClient(harness.channel()).seated()
        for _ in range(3):
            assert (await refused(lab.open())).code().name == "PERMISSION_DENIED"

        async def broken(*_: Any) -> Any:
            raise ZeroDivisionError("planned")

        with monkeypatch.context() as patched:
            patched.setattr(SqliteStore, "round_envelopes", broken)
            await player.start()
            for _ in range(2):
                found = player.sessions.GetSession(session_pb2.GetSessionRequest(session_id=player.session_id))
                assert (await refused(found)).code().name == "INTERNAL"
        await harness.restart()  # the end tells what is left
        page = await admin_of(harness).ListEvents(admin_pb2.ListEventsRequest(page_size=200))
        counted: dict[tuple[str, str], int] = {}
        for event in page.events:
            if event.code in ("AUTHENTICATION_FAILED", "SERVER_FAULT"):
                key = (event.code, event.reason)
                counted[key] = counted.get(key, 0) + int(event.after)
        assert counted == {("AUTHENTICATION_FAILED", "ROLE_NOT_ALLOWED"): 3, ("SERVER_FAULT", "INTERNAL"): 2}


async def test_a_configuration_that_changed_is_told_by_its_hashes(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        assert await events(harness, "CONFIGURATION_CHANGED") == []
        first = harness.config.sha256
        await harness.restart()
        assert await events(harness, "CONFIGURATION_CHANGED") == []
        await harness.stop()
        other = ApiHarness(tmp_path / "home", large_win_minor=5)
        await other.start()
        page = await admin_of(other).ListEvents(admin_pb2.ListEventsRequest(code="CONFIGURATION_CHANGED"))
        (event,) = page.events
        assert (event.subject, event.before, event.after) == ("node1", first, other.config.sha256)
        await other.stop()


async def test_a_large_win_is_told_once_after_its_round(tmp_path: Path) -> None:
    async with serving(tmp_path, large_win_minor=1) as harness:
        player = await ApiClient(harness.channel()).seated()
        won: dict[str, int] = {}
        while len(won) < 2:
            started = await player.start()
            while started.round.status == 1:
                action = next(legal.action for legal in started.round.legal_actions if legal.available)
                cheap = [legal.action for legal in started.round.legal_actions if legal.available]
                started = await player.act(5 if 5 in cheap else action)
            gain = started.round.returned_minor - started.round.staked_minor
            if gain > 0:
                won[started.round.round_id] = gain
            if started.session.balance_minor < 1_000:
                player = await ApiClient(harness.channel(), f"player-{len(won)}-{player.round_no}").seated()
        page = admin_pb2.ListEventsResponse()
        while len(page.events) < len(won):
            page = await admin_of(harness).ListEvents(admin_pb2.ListEventsRequest(code="LARGE_WIN"))
        assert {event.round_id: int(event.after) for event in page.events} == won
        await harness.restart()
        page = await admin_of(harness).ListEvents(admin_pb2.ListEventsRequest(code="LARGE_WIN"))
        assert len(page.events) == len(won)
