"""The whole server over the shared store: a player's life, an export that replays, a database that goes and comes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import grpc
import pytest

from rgs.cli import export, init, migrate, party
from rgs.core.replay import KeyBook, Replay, Rulebook
from rgs.integrity.isolation import HOPELESS
from rgs.service.callers import Role
from rgs.store.address import PostgresAddress
from rgs.v1 import common_pb2, session_pb2
from tests.support.api.client import ApiClient, request_id
from tests.support.api.harness import reason_in, serving, status_in
from tests.support.store.postgres import Server

ROOT = Path(__file__).resolve().parents[2]


async def round_of(player: ApiClient) -> None:
    """One round, checked to the end and folded."""
    await player.start()
    for action in (common_pb2.ACTION_CHECK, common_pb2.ACTION_CHECK, common_pb2.ACTION_FOLD):
        await player.act(action)


def replayed(home: Path, out: Path) -> tuple[list[str], int]:
    """Every failed check of an export, and how many rounds it holds."""
    export.command(out=str(out), session=[], instance=[], private=True, home=home)
    root = (home / "keys" / "root.fingerprint").read_text().strip()
    run = Replay(KeyBook((home / "keys" / "keys.json").read_bytes(), root=root), Rulebook())
    failures = [failure.message for line in out.read_bytes().splitlines() for failure in run.feed(line)]
    failures += [failure.message for failure in run.finish()]
    return failures, run.summary.rounds_verified


async def test_a_players_life_over_a_database(tmp_path: Path, database: PostgresAddress) -> None:
    async with serving(tmp_path, database) as harness:
        player = ApiClient(harness.channel())
        await player.open()
        await player.buy()
        for _ in range(3):
            await round_of(player)
        await player.sessions.EndParticipation(
            session_pb2.EndParticipationRequest(request_id=request_id(), session_id=player.session_id)
        )
        await harness.restart()
        player = ApiClient(harness.channel())
        await player.open()
        await player.buy()
        await round_of(player)
    home = tmp_path / "home"
    failures, rounds = await asyncio.to_thread(replayed, home, tmp_path / "export.jsonl")
    assert (failures, rounds) == ([], 4)
    assert not (home / "store" / "rgs.db").exists()


def test_the_command_lines_work_on_a_database(
    tmp_path: Path, database: PostgresAddress, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    assert init.command(home, "node1", database.url) == 0
    assert ((home / "rgs.toml").stat().st_mode & 0o777) == 0o600, "the URL may hold a password"
    assert party.add(Role.AUDITOR, "second", "", None, True, home) == 0
    assert party.list_(False, home) == 0
    listed = [line for line in capsys.readouterr().out.splitlines() if "\tallowed" in line]
    assert "second" in listed[-1]
    assert party.remove(listed[-1].split("\t")[0], home) == 0
    assert migrate.command(home) == 0
    assert "nothing to do" in capsys.readouterr().out


@pytest.mark.slow
def test_workers_whose_start_is_hopeless_are_begun_once(tmp_path: Path, database: PostgresAddress) -> None:
    """The supervisor finds nothing wrong; each worker does: its node key is another's."""
    home, other = tmp_path / "home", tmp_path / "other"
    for place in (home, other):
        assert init.command(place, "node1", database.url if place is home else None) == 0
    (other / "keys" / "node.key").replace(home / "keys" / "node.key")
    command = [sys.executable, "-m", "rgs", "serve", "--home", str(home), "--listen", "127.0.0.1:0", "--workers", "2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == HOPELESS, done.stderr
    result = [line for line in done.stderr.splitlines() if "must be the private key of" in line]
    assert 1 <= len(result) <= 2, "each worker says why, once"
    assert all(line.endswith("[FILE_REFUSED]") for line in result)
    logged = [json.loads(line)["event"] for line in (home / "log" / "rgs.log").read_text("ascii").splitlines()]
    assert "worker_hopeless" in logged
    assert "worker_ended" not in logged, "none is begun again"


@pytest.mark.slow
async def test_a_database_that_is_gone_is_told_as_unavailable_and_found_again(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rgs.store.writer.COMMIT_WAIT_S", 1.0)
    async with serving(tmp_path, PostgresAddress(server.url())) as harness:
        player = ApiClient(harness.channel())
        await player.open()
        await player.buy()
        await round_of(player)
        server.freeze()
        try:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await player.start()
        finally:
            server.thaw()
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        assert reason_in(status_in(refused.value)) in {"STORE_OUTCOME_UNKNOWN", "STORE_UNAVAILABLE"}
        for _ in range(100):
            try:
                found = await player.sessions.GetSession(session_pb2.GetSessionRequest(session_id=player.session_id))
                again = ApiClient(harness.channel())
                await again.open()
                break
            except grpc.aio.AioRpcError as error:
                if error.code() not in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.FAILED_PRECONDITION}:
                    raise
                await asyncio.sleep(0.1)
        else:
            raise AssertionError("the server did not find its database again")
        assert found.session.next_round_no in {2, 3}
        await again.buy()
        await round_of(again)
