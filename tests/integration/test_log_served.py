"""The log that a whole server leaves behind, and what it does when log and store do not agree."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rgs.core.statements import parse_envelope, parse_statement
from rgs.core.statements.lines import parse_key_bundle
from rgs.core.tlog.note import parse_vkey
from rgs.node.keyring import load_log_signer
from rgs.node.log_folder import leave_log, shards, vkey_now
from rgs.store.opening import open_reads
from rgs.tlog.directory import LogRefusedError
from tests.integration.test_api_server import statements_of
from tests.integration.test_key_rotation import rgs, until_instance
from tests.support.api.client import ApiClient, refused
from tests.support.api.harness import ApiHarness, info_in, serving, status_in
from tests.support.log.logcheck import LogCheck, logcheck
from tests.support.log.sequencing import Logged

__all__ = ["logcheck"]


async def envelopes(harness: ApiHarness) -> list[bytes]:
    reads = await open_reads(harness.config.store)
    try:
        return [row.envelope async for row in reads.statements_in_order()]
    finally:
        await reads.close()


async def live(harness: ApiHarness, player: str) -> None:
    seated = await ApiClient(harness.channel(), player).seated()
    await seated.round_to_the_end()


async def test_every_statement_of_two_lives_is_in_the_log_in_order(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        await live(harness, "player-1")
        await harness.restart()
        await live(harness, "player-2")
    (shard,) = shards(harness.config)
    logged = Logged(shard, signer=load_log_signer(harness.config.keys))
    keys = parse_key_bundle(harness.config.bundle.read_bytes())
    assert logged.entries == [*keys, *await envelopes(harness)]
    result = await statements_of(harness)
    assert [body["kind"] for body in result].count("instance_end") == 2
    begun = [body for body in result if body.get("code") == "LOG_KEY_STARTED"]
    assert [(body["after"], "before" in body) for body in begun] == [(vkey_now(harness.config), False)]
    assert parse_vkey(begun[0]["after"]).name == logged.checkpoint.origin == begun[0]["subject"]
    named = {body["sha256"] for body in result if body["kind"] == "artifact"}
    assert named == {path.name for path in (shard / "artifact").iterdir()}
    assert len(named) >= 5


async def test_a_key_that_comes_while_the_server_runs_is_logged_before_what_it_signs(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        await live(harness, "player-1")
        await rgs(harness.config, "keys", "node-new", "--node", "node1")
        await until_instance(harness, 2)
        await live(harness, "player-2")
    (shard,) = shards(harness.config)
    entries = Logged(shard, signer=load_log_signer(harness.config.keys)).entries
    keys = parse_key_bundle(harness.config.bundle.read_bytes())
    bodies = [parse_statement(parse_envelope(entry))[1] for entry in entries]
    starts = [at for at, body in enumerate(bodies) if body["kind"] == "instance_start"]
    assert len(starts) == 2
    assert [entries.index(key) < starts[0] for key in keys] == [True, True, False]
    assert entries.index(keys[2]) < starts[1]
    assert sorted(entries) == sorted([*keys, *await envelopes(harness)])


async def test_an_outsider_accepts_the_log_that_a_demo_leaves(tmp_path: Path, logcheck: LogCheck) -> None:
    async with serving(tmp_path) as harness:
        await live(harness, "player-1")
    vkey = leave_log(harness.config, tmp_path / "left", tmp_path / "left.vkey")
    assert (tmp_path / "left.vkey").read_text() == f"{vkey}\n"
    assert logcheck(tmp_path / "left", vkey) == ""
    assert not list((tmp_path / "left").rglob(".*"))


async def test_a_restored_backup_of_the_store_is_not_served_and_nothing_is_signed(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        await live(harness, "player-1")
        await harness.stop()
        shutil.copytree(tmp_path / "home" / "store", tmp_path / "backup")
        await harness.restart()
        await live(harness, "player-2")
        await harness.stop()
        (shard,) = shards(harness.config)
        signed = (shard / "checkpoint").read_bytes()
        newest = tmp_path / "newest"
        shutil.move(tmp_path / "home" / "store", newest)
        shutil.copytree(tmp_path / "backup", tmp_path / "home" / "store")
        for _ in range(2):
            with pytest.raises(LogRefusedError, match="run `rgs recover`"):
                await harness.restart()
        assert (shard / "checkpoint").read_bytes() == signed
        shutil.rmtree(tmp_path / "home" / "store")
        shutil.move(newest, tmp_path / "home" / "store")
        await harness.restart()
        await live(harness, "player-3")


@pytest.mark.parametrize("what", ["tile", "key"])
async def test_a_log_that_was_touched_stops_new_rounds(tmp_path: Path, what: str) -> None:
    async with serving(tmp_path) as harness:
        await live(harness, "player-1")
        await harness.stop()
        (shard,) = shards(harness.config)
        if what == "tile":
            (path,) = sorted((shard / "tile" / "0" / "000.p").iterdir(), key=lambda one: int(one.name))[-1:]
            path.write_bytes(path.read_bytes()[::-1])
        else:
            shutil.copy(harness.config.keys / "node.key", harness.config.keys / "log.key")
        await harness.restart()
        info = info_in(status_in(await refused(ApiClient(harness.channel(), "player-2").open())))
        assert (info.metadata["guard"], info.metadata["code"]) in {("log", "KEY_DIFFERS"), ("log", "FILE_DIFFERS")}
