"""The life of the server: its first and last statements, starts that fail, work in the background, an orderly end."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest

from rgs.api.auth import PeerCertificate
from rgs.core.errors import FormatError, RegulatorUnavailableError, UnavailableError
from rgs.node.logging import Log
from rgs.node.pki import fingerprint_of
from rgs.node.server import Server
from rgs.node.tls_identity import read_certificate
from rgs.service.instance import Instance
from rgs.service.regulator.reports import Reporting
from rgs.store.sqlite.store import SqliteStore
from rgs.v1 import session_pb2
from tests.support.api.client import ApiClient, refused
from tests.support.api.harness import (
    ApiHarness,
    authority,
    info_in,
    manifest,
    operator_certificate,
    reason_in,
    serving,
    status_in,
)
from tests.support.service.harness import read_statement


async def statements_of(harness: ApiHarness) -> list[dict[str, Any]]:
    """All statements in the order of their commits; the server must have let go of its store."""
    store = SqliteStore(Path(str(harness.config.store)))
    try:
        return [read_statement(row.envelope) async for row in store.statements_in_order()]
    finally:
        await store.close()


async def test_the_first_and_the_last_statements(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        assert harness.server.instance == "node1-b1-w0"
        player = await ApiClient(harness.channel()).seated()
        await player.round_to_the_end()
        await harness.stop()
        result = await statements_of(harness)
        assert result[0]["kind"] == "instance_start"
        assert (result[0]["manifest"], result[0]["boot_no"]) == (manifest().sha256, "1")
        artifacts = [(body["name"], body["sha256"]) for body in result if body["kind"] == "artifact"]
        assert artifacts[0] == ("manifest", manifest().sha256)
        assert [name for name, _ in artifacts[1:]] == [
            *("uth-online", "uth-seven-box", "uth-lugano", "uth-solo", "casino-holdem"),
            *("it-adm", "gb-ukgc", "demo", "demo-seamless"),
        ]
        assert [body["kind"] for body in result[-2:]] == ["event", "instance_end"]
        assert (result[-1]["reason"], result[-1]["last_draw_no"]) == ("DRAINED", "1")
        await harness.restart()
        assert harness.server.instance == "node1-b2-w0"
        await harness.stop()
        again = await statements_of(harness)
        assert [body["kind"] for body in again[len(result) :]].count("instance_lost") == 0
        assert again[len(result)]["previous_boot"] == {
            "instance": "node1-b1-w0",
            "last_draw_no": "1",
            "last_statement_no": result[-1]["statement_no"],
        }


async def test_a_round_goes_on_after_the_server_was_stopped(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = await ApiClient(harness.channel()).seated()
        before = await player.start()
        await harness.restart()
        found = await ApiClient(harness.channel()).sessions.GetSession(
            session_pb2.GetSessionRequest(session_id=player.session_id)
        )
        assert found.session.open_round == before.round
        again = ApiClient(harness.channel())
        again.session_id, again.round_id, again.round_version = player.session_id, player.round_id, 1
        for action in (1, 1):
            await again.act(action)
        last = await again.act(7)
        assert read_statement(last.final)["instance"] == "node1-b2-w0"


async def test_a_start_that_fails_leaves_everything_closed(tmp_path: Path) -> None:
    harness = ApiHarness(tmp_path / "home")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = ApiHarness(tmp_path / "home", listen=f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(UnavailableError, match="cannot listen on 127"):  # it may pass: status 1
            await busy.start()
        assert busy.server.port == 0
    assert await statements_of(harness) == []  # it did not get as far as its first statement
    async with serving(tmp_path) as good:
        assert good.server.instance == "node1-b1-w0"


async def test_a_start_that_fails_late_signs_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = ApiHarness(tmp_path / "home")

    async def fail(_server: Any) -> None:
        raise OSError("no")

    with monkeypatch.context() as patched:
        patched.setattr("rgs.api.endpoint.Endpoint.start", fail)
        with pytest.raises(OSError, match="no"):
            await harness.start()
    result = await statements_of(harness)
    assert (result[-1]["kind"], result[-1]["reason"]) == ("instance_end", "START_FAILED")


async def test_two_servers_do_not_share_a_store(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        second = Server(harness.config, manifest())
        with pytest.raises(Exception, match="in use"):
            await second.start()
        assert (await ApiClient(harness.channel()).open()).session.session_id


async def test_a_lock_that_is_deleted_lets_a_second_server_start_and_the_first_do_nothing_more(tmp_path: Path) -> None:
    """The lock is a courtesy; what holds is the instance's row, which the second start has declared lost."""
    harness, second = ApiHarness(tmp_path / "home"), ApiHarness(tmp_path / "home")
    await harness.start()
    before = (await ApiClient(harness.channel()).open()).session.session_id
    (tmp_path / "home" / "store" / "rgs.lock").unlink()
    await second.start()
    try:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await ApiClient(harness.channel(), "late").open()
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        after = (await ApiClient(second.channel(), "other").open()).session.session_id
        async with asyncio.timeout(20):
            await harness.server.lost.wait()
        await harness.stop()
    finally:
        await second.stop()
    result = await statements_of(second)
    assert [body["session_id"] for body in result if body["kind"] == "session_open"] == [before, after]
    kinds = sorted(body["kind"] for body in result if body["kind"].startswith("instance_"))
    assert kinds == ["instance_end", "instance_lost", "instance_start", "instance_start"]


async def test_play_is_not_serving_while_the_generator_is_in_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rgs.node.server.BACKGROUND_S", 0.02)
    async with serving(tmp_path) as harness:
        player = await ApiClient(harness.channel()).seated()
        await player.start()
        statuses = []
        for healthy in (True, False):
            monkeypatch.setattr(Instance, "failure", "" if healthy else "REPETITION_COUNT")
            await asyncio.sleep(0.4)
            check: Any = player.channel.unary_unary("/grpc.health.v1.Health/Check")
            statuses += [await check(b"\x0a" + bytes([len(name)]) + name) for name in (b"", b"rgs.v1.PlayService")]
        assert statuses == [b"\x08\x01", b"\x08\x01", b"\x08\x01", b"\x08\x02"]
        for action in (1, 1, 7):  # what was dealt is played out
            await player.act(action)


async def test_work_in_the_background_is_tried_again_and_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    async def report(_reporting: Reporting) -> int:
        nonlocal tries
        tries += 1
        if tries <= 2:
            raise RegulatorUnavailableError("no answer")
        return 0

    monkeypatch.setattr(Reporting, "report_stages", report)
    monkeypatch.setattr("rgs.node.server.BACKGROUND_S", 0.02)
    harness = ApiHarness(tmp_path / "home")
    with Log(harness.config.log, "info", harness.clock, people=None):
        await harness.start()
        await asyncio.sleep(0.5)
        await harness.stop()
    assert tries >= 3
    log = harness.config.log.read_text("ascii")
    assert log.count("background_work_failed") == 1
    assert '"work":"stage_reports"' in log


async def test_the_server_itself_ends_a_stream_that_its_settings_call_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rgs.node.server.BACKGROUND_S", 0.02)
    async with serving(tmp_path, stream_idle_s=1, stream_stall_s=86_400) as harness:
        player = ApiClient(harness.channel())
        error = await refused(player.play.Play().read())
        assert reason_in(status_in(error)) == "STREAM_IDLE"
        assert info_in(status_in(error)).metadata["limit"] == "1"
        assert (await player.open()).session.session_id


async def test_calls_under_way_are_answered_by_a_stopping_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as harness:
        player = await ApiClient(harness.channel()).seated()
        working, released = asyncio.Event(), asyncio.Event()

        async def slow(self: Any, change: Any) -> Any:
            if change.round is not None:
                working.set()
                await released.wait()
            return await commit(self, change)

        commit = SqliteStore.commit
        monkeypatch.setattr(SqliteStore, "commit", slow)
        start = player.start_request()
        call = asyncio.ensure_future(player.play.StartRound(start))
        await asyncio.wait_for(working.wait(), 5)
        stopping = asyncio.create_task(harness.server.stop())
        await asyncio.sleep(0.1)
        assert not stopping.done()
        released.set()
        answer = await call
        await asyncio.wait_for(stopping, 5)
        result = await statements_of(harness)
        kinds = [body["kind"] for body in result]
        assert kinds[-3:] == ["round_opening", "event", "instance_end"]
        await harness.restart()
        again = ApiClient(harness.channel())
        assert await again.play.StartRound(start) == answer


def test_what_a_certificate_says() -> None:
    issued = operator_certificate()
    peer = read_certificate(issued.certificate_pem)
    assert peer == PeerCertificate(
        fingerprint_of(issued.certificate),
        ["rgs://party/operator/op1"],
        int(issued.certificate.not_valid_before_utc.timestamp() * 1000),
        int(issued.certificate.not_valid_after_utc.timestamp() * 1000),
    )
    assert read_certificate(authority().certificate_pem).uris == []
    for pem in (b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", issued.key_pem):
        with pytest.raises(FormatError):
            read_certificate(pem)


def test_the_process_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    home = ApiHarness(tmp_path / "home")
    command = [sys.executable, "-m", "rgs", "serve", "--home", str(tmp_path / "home"), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"listening address=127\.0\.0\.1:(\d+) instance=node1-b1-w0", line)
        assert found is not None, line
        client = home.certificate("demo-operator")
        credentials = grpc.ssl_channel_credentials(
            home.authority.certificate_pem, client.key_pem, client.certificate_pem
        )
        process.send_signal(signal.SIGHUP)  # of `systemctl reload`: nobody serves meanwhile, so it goes on
        with grpc.secure_channel(f"localhost:{found[1]}", credentials) as channel:
            list_games: Any = channel.unary_unary("/rgs.v1.CatalogService/ListGames")
            games = list_games(b"", timeout=10)
        assert b"uth-solo" in games
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, out, err) == (0, "", "")
    events = [json.loads(line)["event"] for line in home.config.log.read_text("ascii").splitlines()]
    assert events == ["listening", "reload_refused", "draining", "stopped"]
    result = asyncio.run(statements_of(home))
    assert (result[-1]["kind"], result[-1]["reason"]) == ("instance_end", "DRAINED")


@pytest.mark.parametrize("setting", ["listen", "metrics_listen"])
def test_a_port_in_use_may_pass(tmp_path: Path, setting: str) -> None:
    """Status 1, so that systemd tries again; 2 would end its trying for good."""
    ApiHarness(tmp_path / "home")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        others = [f'{name} = "127.0.0.1:0"\n' for name in ("listen", "metrics_listen") if name != setting]
        (tmp_path / "home" / "rgs.toml").write_text("".join([f'{setting} = "{address}"\n', *others]))
        command = [sys.executable, "-m", "rgs", "serve", "--home", str(tmp_path / "home")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stderr
    assert f"[UNAVAILABLE field={setting} value={address}]" in done.stderr
    assert "in use" in done.stderr
