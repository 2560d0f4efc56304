"""A whole server whose generator is a process of its own: an evening, a killed process, other users, the command."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from structlog.testing import capture_logs

from rgs.node.generator.wire import format_hello, framed, rng_sha256
from rgs.node.keyring import load_bundle, load_node_signer
from rgs.v1 import admin_pb2
from rgs.v1.admin_pb2_grpc import AdminServiceStub
from rng.errors import RngError
from tests.integration.test_api_server import statements_of
from tests.support.api.client import ApiClient, health, refused, request_id
from tests.support.api.harness import ApiHarness, info_in, manifest, serving, status_in
from tests.support.process.generator import answers_at, serving_thread, started

pytestmark = pytest.mark.slow

PLAY = "rgs.v1.PlayService"
SERVING, NOT_SERVING = b"\x08\x01", b"\x08\x02"
NOBODY = 65_534


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rgs.node.server.BACKGROUND_S", 0.02)


@contextmanager
def process_at(path: Path, *options: str, signal_no: int = signal.SIGTERM) -> Iterator[subprocess.Popen[str]]:
    """A generator process that is ended with the block."""
    process = started(path, *options)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal_no)
        process.wait(60)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


async def until(channel: grpc.aio.Channel, wanted: bytes) -> None:
    async with asyncio.timeout(30):
        while await health(channel, PLAY) != wanted:  # noqa: ASYNC110 - it is the server's
            await asyncio.sleep(0.01)


def run(*command: str, status: int = 0) -> str:
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout + done.stderr


def replayed(home: Path, folder: Path) -> str:
    """The last line of `certify replay` over the whole export, under the fingerprint of this home."""
    export, keys = folder / "export.jsonl", home / "keys"
    run("rgs", "export", "--home", str(home), "--out", str(export))
    root = (keys / "root.fingerprint").read_text().strip()
    said = run("certification", "replay", str(export), "--keys", str(keys / "keys.json"), "--root", root)
    return said.splitlines()[-1]


def deals(statements: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """(instance, draw number, reseed counter) of the rounds, in the order of their openings."""
    found = [body["deal"] for body in statements if body["kind"] == "round_opening"]
    return [(deal["instance"], deal["draw_no"], deal["reseed_counter"]) for deal in found]


# --- an evening -------------------------------------------------------------------------------------------------------


async def test_an_evening_replays_and_counts_as_with_the_embedded_one(tmp_path: Path) -> None:
    counted, lives, statements = [], [], list[dict[str, Any]]()
    with serving_thread(tmp_path / "g.sock", rng_hash=rng_sha256(manifest())) as reported, capture_logs() as logs:
        for name, generator in (("embedded", "embedded"), ("served", f"unix:{tmp_path}/g.sock")):
            async with serving(tmp_path / name, generator=generator) as harness:
                channel = harness.channel()
                players = [await ApiClient(channel, f"player-{number}").seated() for number in range(20)]
                await asyncio.gather(*[player.round_to_the_end() for player in players])
                await players[0].round_to_the_end()
            statements = await statements_of(harness)
            counted.append(deals(statements))
            events = [body for body in statements if body["kind"] == "event" and body["code"].startswith("RNG_")]
            lives.append([(body["code"], body["reason"], body["subject"]) for body in events])
            assert replayed(harness.config.home, tmp_path / name) == "21 rounds verified, 0 failed, ANCHORED"
    assert counted[0] == counted[1] == [("node1-b1-w0", str(number), str(number)) for number in range(1, 22)]
    assert lives[0] == lives[1] == [
        ("RNG_INSTANTIATED", "POWER_UP", "node1-b1-w0"), ("RNG_UNINSTANTIATED", "CLOSED", "node1-b1-w0"),
    ]  # fmt: skip
    # What the process counted is what the record says; and neither it nor the server's log names a byte.
    assert reported == [
        {"event": "generator_instantiated", "instance": "node1-b1-w0"},
        {"event": "generator_uninstantiated", "instance": "node1-b1-w0", "reason": "CLOSED", "draws": 21},
    ]
    finals = [body for body in statements if body["kind"] == "round_final"]
    said = repr((reported, logs))
    for body in finals:
        raw = bytes.fromhex(body["transcript"])
        for form in (body["transcript"][:12], repr(raw[:6]), repr(list(raw[:6]))):
            assert form not in said
    assert len(finals) == 21


async def test_the_setting_is_in_the_hash_of_the_configuration_and_a_change_is_signed(tmp_path: Path) -> None:
    with serving_thread(tmp_path / "g.sock", rng_hash=rng_sha256(manifest())):
        async with serving(tmp_path):
            pass
        async with serving(tmp_path, generator=f"unix:{tmp_path}/g.sock") as harness:
            pass
        changed = [body for body in await statements_of(harness) if body.get("code") == "CONFIGURATION_CHANGED"]
        assert len(changed) == 1
        assert changed[0]["before"] != changed[0]["after"]


async def test_a_server_hands_over_to_its_next_instance_over_a_new_connection(tmp_path: Path) -> None:
    with serving_thread(tmp_path / "g.sock", rng_hash=rng_sha256(manifest())) as reported:
        async with serving(tmp_path, generator=f"unix:{tmp_path}/g.sock") as harness:
            player = await ApiClient(harness.channel()).seated()
            await player.round_to_the_end()
            instance = harness.server.services.monitor.instance
            await instance.hand_over(load_node_signer(harness.config, load_bundle(harness.config)), ())
            await player.round_to_the_end()
        assert deals(await statements_of(harness)) == [("node1-b1-w0", "1", "1"), ("node1-b2-w0", "1", "1")]
    ends = [(line["instance"], line["draws"]) for line in reported if line["event"] == "generator_uninstantiated"]
    assert ends == [("node1-b1-w0", 1), ("node1-b2-w0", 1)]


# --- a process that dies ----------------------------------------------------------------------------------------------


async def test_a_killed_process_stops_new_rounds_and_no_dealt_one(tmp_path: Path) -> None:
    path = tmp_path / "g.sock"
    harness = ApiHarness(tmp_path / "home", generator=f"unix:{path}")
    with pytest.raises(RngError) as missing:  # not without it
        await harness.start()
    assert missing.value.reason == "GENERATOR_UNREACHABLE"
    assert f"rgs generator serve --socket {path}" in missing.value.detail
    with process_at(path, signal_no=signal.SIGKILL) as process:
        await harness.restart()
        player, late = await ApiClient(harness.channel()).seated(), await ApiClient(harness.channel(), "late").seated()
        await player.round_to_the_end()
        await player.start()
        process.kill()
        await until(player.channel, NOT_SERVING)
        info = info_in(status_in(await refused(late.play.StartRound(late.start_request()))))
        assert (info.reason, info.metadata["guard"], info.metadata["code"]) == ("GUARD_CLOSED", "rng", "GENERATOR_LOST")
        for action in (1, 1, 7):  # the dealt round is played out and settled
            await player.act(action)
    with pytest.raises(RngError):
        await harness.restart()
    with process_at(path):
        await harness.restart()
        channel = harness.channel()
        await until(channel, NOT_SERVING)  # it is back, and still nothing is dealt
        again = ApiClient(channel, "late")
        again.session_id, again.round_no = late.session_id, late.round_no
        assert (
            info_in(status_in(await refused(again.play.StartRound(again.start_request())))).metadata["guard"] == "rng"
        )
        clear = admin_pb2.ClearGuardRequest(request_id=request_id(), name="rng", reason="PROCESS_REPLACED")
        await AdminServiceStub(harness.channel("demo-admin")).ClearGuard(clear)
        await until(channel, SERVING)
        await again.round_to_the_end()
        await harness.stop()
    statements = await statements_of(harness)
    events = [(body["code"], body.get("reason")) for body in statements if body["kind"] == "event"]
    wanted = ("RNG_FAILED", "GUARD_CLOSED", "GUARD_CLEARED")
    assert [event for event in events if event[0] in wanted] == [
        ("RNG_FAILED", "GENERATOR_LOST"),
        ("GUARD_CLOSED", "GENERATOR_LOST"),
        ("RNG_FAILED", "GENERATOR_LOST"),  # how the generator's life ended, before `instance_end`
        ("GUARD_CLEARED", "PROCESS_REPLACED"),
    ]
    assert [deal[1] for deal in deals(statements)] == ["1", "2", "1"]
    assert replayed(harness.config.home, tmp_path) == "3 rounds verified, 0 failed, ANCHORED"


# --- the command ------------------------------------------------------------------------------------------------------


def test_a_server_without_its_generator_process_does_not_start(tmp_path: Path) -> None:
    home = tmp_path / "home"
    ApiHarness(home)
    with (home / "rgs.toml").open("a") as file:
        file.write('generator = "unix:none.sock"\n')
    said = run("rgs", "serve", "--home", str(home), "--listen", "127.0.0.1:0", status=1)
    assert f"no generator process answers at {home}/none.sock" in said
    assert "[GENERATOR_UNREACHABLE]" in said
    assert "Traceback" not in said


def test_the_process_reports_lives_and_no_byte_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "g.sock"
    with process_at(path) as process:
        with closing(socket.socket(socket.AF_UNIX)) as connection:
            connection.connect(str(path))
            connection.sendall(framed(format_hello("node-1-b1-w0")) + framed(b"D") * 3)
            begun, *drawn = [_message(connection) for _ in range(4)]
        assert (begun[:1], [message[:1] for message in drawn]) == (b"b", [b"d"] * 3)
        assert begun[2:] == rng_sha256(manifest()), "both run the same files"
        second = subprocess.run(
            [sys.executable, "-m", "rgs", "generator", "serve", "--socket", str(path)],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert second.returncode != 0
        assert "SOCKET_TAKEN" in second.stderr
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert not path.exists()
    lines = [json.loads(line) for line in out.splitlines()]
    events = [line["event"] for line in lines if line.get("why") != "the connection has ended"]
    assert events == ["listening", "generator_instantiated", "generator_uninstantiated", "stopped"]
    assert [line["draws"] for line in lines if "draws" in line] == [3]
    for message in drawn:
        transcript = message[30:]
        assert transcript[:6].hex() not in out
        assert repr(transcript[:6]) not in out


def _message(connection: socket.socket) -> bytes:
    length = int.from_bytes(connection.recv(2, socket.MSG_WAITALL), "big")
    return connection.recv(length, socket.MSG_WAITALL)


@pytest.mark.parametrize(
    ("arguments", "status", "what"),
    [
        ([], 2, "say `rgs generator serve --socket PATH`"),
        (["serve"], 2, "say `rgs generator serve --socket PATH`"),
        (["serve", "--sock", "x"], 2, "unrecognized arguments"),
        (["serve", "--socket", "x", "--user", "no such user"], 2, "there is no user"),
        (["serve", "--socket", "x", "--home", "none"], 3, "none has no certified.json"),
        (["serve", "--socket", "x" * 120], 2, "at most 107 bytes"),
    ],
)
def test_what_the_command_refuses(arguments: list[str], status: int, what: str) -> None:
    said = run("rgs", "generator", *arguments, status=status)
    assert what in said
    assert "Traceback" not in said


@pytest.mark.skipif(os.geteuid() != 0, reason="another user can be taken by root alone")
@pytest.mark.parametrize("user", ["0", str(NOBODY)])
def test_only_the_user_that_was_named_draws(user: str) -> None:
    """Both reach the socket; the kernel says who they are."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        folder.chmod(0o755)
        path = folder / "g.sock"
        with process_at(path, "--user", user):
            path.chmod(0o666)
            hello = framed(format_hello("node-1-b1-w0"))
            answers = {"0": _first_answer(path, hello), str(NOBODY): as_nobody(lambda: _first_answer(path, hello))}
        assert {name: answer[:1] for name, answer in answers.items()} == {
            name: b"b" if name == user else b"r" for name in answers
        }
        assert next(answer for name, answer in answers.items() if name != user)[2:] == b"ANOTHER_USER"
    finally:
        shutil.rmtree(folder)


def _first_answer(path: Path, request: bytes) -> bytes:
    with closing(socket.socket(socket.AF_UNIX)) as connection:
        connection.connect(str(path))
        connection.sendall(request)
        return _message(connection)


def as_nobody(step: Callable[[], bytes]) -> bytes:
    """Run it in a child that has given up root."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(writes, step())
        finally:
            os._exit(0)
    os.close(writes)
    with open(reads, "rb") as file:  # noqa: PTH123
        found = file.read()
    os.waitpid(child, 0)
    return found


async def test_a_stale_socket_is_taken_over_and_a_server_finds_the_new_process(tmp_path: Path) -> None:
    path = tmp_path / "g.sock"
    with process_at(path, signal_no=signal.SIGKILL):
        pass
    assert path.exists()
    assert not answers_at(path)
    with process_at(path):
        async with serving(tmp_path, generator=f"unix:{path}") as harness:
            await (await ApiClient(harness.channel()).seated()).round_to_the_end()
