"""A whole server whose log is watched by witnesses that are programs of their own: what they cosign, what is done
without them, and the server that was put back to an older day.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from certification.log import main as certify_log
from rgs.cli import witness as witness_command
from rgs.cli.log import show
from rgs.cli.options import run_app
from rgs.core.errors import InvalidFieldError
from rgs.core.tlog.checkpoints import parse_checkpoint
from rgs.core.tlog.note import parse_note
from rgs.devkit.processes.server import WitnessProcess, free_address
from rgs.node.log_folder import leave_log, newest_cosigned, shards, vkey_now
from rgs.node.log_server import EntryReaders, LogServer, tls_context
from rgs.tlog import cosigning
from rgs.tlog.directory import LogDirectory
from tests.integration.test_api_server import statements_of
from tests.support.api.client import ApiClient, refused
from tests.support.api.harness import ApiHarness, info_in, status_in
from tests.support.waiting import until


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cosigning, "RETRY_MS", 300)


class MonitoredParts:
    """A server with a policy of one witness, which is not running yet."""

    def __init__(self, folder: Path, *, policy: str = "") -> None:
        self.folder = folder
        self.policy = folder / "policy.txt"
        self.harness = ApiHarness(folder / "home", log_policy=str(self.policy))
        self.address = free_address()
        log = vkey_now(self.harness.config)
        making = ["init", str(folder / "w"), "--name", "w.example", "--log", log]
        assert run_app(witness_command.app, "witness", making) == 0
        vkey = (folder / "w" / "witness.vkey").read_text().strip()
        self.policy.write_text(policy or f"log {log}\nwitness w {vkey} http://{self.address}\nquorum w\n")

    @contextlib.contextmanager
    def witness(self) -> Iterator[None]:
        with WitnessProcess(self.folder / "w", self.folder / "w.txt", self.address) as process:
            process.await_listening()
            yield

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[ApiHarness]:
        await self.harness.restart()
        try:
            yield self.harness
        finally:
            await self.harness.stop()

    @property
    def shard(self) -> LogDirectory:
        return LogDirectory(shards(self.harness.config)[-1])

    @property
    def is_cosigned(self) -> bool:
        """Whether what is published is what the witness has seen."""
        return bool(self.shard.cosigned()) and self.shard.checkpoint() == self.shard.cosigned()

    async def live(self, player: str) -> None:
        await (await ApiClient(self.harness.channel(), player).seated()).round_to_the_end()


async def test_what_is_published_is_cosigned_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watched = MonitoredParts(tmp_path)
    with watched.witness():
        async with watched.serving() as harness:
            await watched.live("player-1")
            await until(lambda: watched.is_cosigned)
            first = newest_cosigned(harness.config)
            await watched.live("player-2")
        assert watched.is_cosigned  # the end of the instance, too
        last = newest_cosigned(harness.config)
        assert first is not None
        assert last is not None
        assert last.size > first.size
        async with watched.serving():
            pass
    starts = [body for body in await statements_of(harness) if body["kind"] == "instance_start"]
    assert ["checkpoint" in body for body in starts] == [False, True]
    assert starts[1]["checkpoint"] == last.body()
    capsys.readouterr()
    show(tmp_path / "home")
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in lines] == [last.origin, "cosigned", "next"]
    assert lines[1][1:4] == [last.origin, lines[0][1], "w.example"]
    leave_log(harness.config, tmp_path / "left", tmp_path / "left.vkey")
    files = ["--policy", str(watched.policy), "--keys", str(harness.config.bundle), "--workers", "1"]
    assert certify_log([str(tmp_path / "left"), "--state", str(tmp_path / "state"), *files]) == 0
    assert capsys.readouterr().out.endswith("PASSED WITNESSED UNANCHORED\n")
    # Where the newest is not cosigned yet the one that is counts; where none is nothing does.
    LogDirectory(tmp_path / "left").publish(_bare(watched.shard.checkpoint()))
    assert certify_log([str(tmp_path / "left"), "--state", str(tmp_path / "anew"), *files]) == 0
    (tmp_path / "left" / "checkpoint.cosigned").unlink()
    assert certify_log([str(tmp_path / "left"), "--state", str(tmp_path / "none"), *files]) == 1
    assert "FAILED log quorum: cosigned by nobody" in capsys.readouterr().out


async def test_an_auditor_reads_the_guarded_log_of_a_server_at_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    watched = MonitoredParts(tmp_path)
    with watched.witness():
        async with watched.serving() as harness:
            await watched.live("player-1")
            await until(lambda: watched.is_cosigned)
            config = harness.config
            with LogServer(config.translog, "127.0.0.1:0", tls_context(config), EntryReaders(config.store)) as server:
                thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
                thread.start()
                url = f"https://localhost:{server.port}/{watched.shard.folder.name}"
                files = ["--policy", str(watched.policy), "--keys", str(config.bundle), "--workers", "1"]
                status = []
                for number, (ca, party) in enumerate(((config.ca, "demo-auditor"), (config.ca, ""), (None, ""))):
                    tls = ["--tls-ca", str(ca)] if ca else []
                    if party:
                        stem = config.tls / "clients" / party
                        tls += ["--tls-cert", f"{stem}.pem", "--tls-key", f"{stem}.key"]
                    status.append(
                        await asyncio.to_thread(
                            certify_log, [url, "--state", str(tmp_path / f"state{number}"), *files, *tls]
                        )
                    )
                server.shutdown()
                thread.join()
    said = capsys.readouterr()
    assert status == [0, 2, 2]
    assert said.out.endswith("PASSED WITNESSED UNANCHORED\n")
    assert "tile/entries/000" in said.err
    assert "HTTP status 403" in said.err
    assert "CERTIFICATE_VERIFY_FAILED" in said.err
    keys = ["--tls-cert", str(watched.policy)]
    assert certify_log([url, "--state", str(tmp_path / "state"), *files, *keys]) == 2
    assert "certify log: --tls-ca, --tls-cert, --tls-key: " in capsys.readouterr().err


def _bare(note: bytes) -> bytes:
    """A checkpoint as it was before its witnesses."""
    lines = note.decode().split("\n")
    assert len(parse_note(note).signatures) == 2
    return "\n".join([*lines[:5], ""]).encode()


async def test_play_goes_on_without_the_witness_and_it_cosigns_when_it_comes(tmp_path: Path) -> None:
    watched = MonitoredParts(tmp_path)
    with capture_logs() as logs:
        async with watched.serving() as harness:
            await watched.live("player-1")
            assert newest_cosigned(harness.config) is None
            await until(lambda: [log for log in logs if log["event"] == "witness_failed"])
            with watched.witness():
                await until(lambda: watched.is_cosigned)
            await watched.live("player-2")  # it has gone again
    result = [(log["event"], log["witness"]) for log in logs if log["event"].startswith("witness_")]
    assert result[:2] == [("witness_failed", "w"), ("witness_cosigns", "w")]
    assert [body for body in await statements_of(harness) if body.get("code") == "GUARD_CLOSED"] == []
    assert not watched.is_cosigned
    assert newest_cosigned(harness.config) is not None  # of before, and not lost


async def test_a_server_that_was_put_back_to_an_older_day_signs_no_second_history(tmp_path: Path) -> None:
    """Store, log and all: nothing in the server knows of what was lost. The witness does."""
    watched = MonitoredParts(tmp_path)
    with watched.witness():
        async with watched.serving() as harness:
            await watched.live("player-1")
        shutil.copytree(tmp_path / "home", tmp_path / "backup")
        async with watched.serving():
            await watched.live("player-2")
        assert watched.is_cosigned
        known = watched.shard.cosigned()
        shutil.rmtree(tmp_path / "home")
        shutil.move(tmp_path / "backup", tmp_path / "home")
        await harness.restart()
        try:
            player = ApiClient(harness.channel(), "player-3")
            await until(lambda: watched.harness.server.services.availability.guard("log").closed)
            info = info_in(status_in(await refused(player.open())))
            assert (info.metadata["guard"], info.metadata["code"]) == ("log", "FORKED")
            store = watched.harness.server.services.events._store
            for _ in range(100):  # it is told in the cosigner's next turn
                if await store.events("WITNESS_REFUSED", before=0, limit=1):
                    break
                await asyncio.sleep(0.05)
        finally:
            await harness.stop()
    result = {body["code"]: body for body in await statements_of(harness) if body["kind"] == "event"}
    assert result["GUARD_CLOSED"]["reason"] == result["WITNESS_REFUSED"]["reason"] == "FORKED"
    seen = parse_checkpoint(parse_note(known).text)
    assert result["WITNESS_REFUSED"]["subject"] == f"w {seen.origin}"
    assert result["WITNESS_REFUSED"]["before"] == f"{seen.size} {seen.root.hex()}"


@pytest.mark.parametrize(
    ("quorum", "witness", "limit", "value"),
    [
        ("none", "https://w.example", "the name of a witness or of a group", "none"),
        ("w", "", "w", "0"),
        ("w", "http://w.example", "https, or http on this machine (loopback)", "'http://w.example'"),
    ],
)
async def test_a_policy_that_is_no_evidence_or_cannot_be_asked_is_not_served(
    tmp_path: Path, quorum: str, witness: str, limit: str, value: str
) -> None:
    watched = MonitoredParts(tmp_path)
    vkey = (tmp_path / "w" / "witness.vkey").read_text().strip()
    watched.policy.write_text(f"log {vkey_now(watched.harness.config)}\nwitness w {vkey} {witness}\nquorum {quorum}\n")
    with pytest.raises(InvalidFieldError) as refusal:
        await watched.harness.start()
    error = refusal.value
    assert (error.field, error.metadata["limit"], error.metadata["value"]) == ("log_policy", limit, value)


async def test_what_is_no_policy_and_no_authority_is_refused(tmp_path: Path) -> None:
    watched = MonitoredParts(tmp_path, policy="whoever\n")
    with pytest.raises(InvalidFieldError, match="line 1: unknown line of a policy"):
        await watched.harness.start()
    other = MonitoredParts(tmp_path / "other")
    other.harness = ApiHarness(
        other.folder / "home", log_policy=str(other.policy), witness_ca=str(other.folder / "w" / "witness.vkey")
    )
    with pytest.raises(InvalidFieldError, match="holds no certificates"):
        await other.harness.start()
