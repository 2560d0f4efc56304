"""`rgs recover` and `rgs erase-player` over a home: what they say, and that nothing happens unasked."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from rgs.core.replay import KeyBook, Replay, Rulebook
from rgs.core.statements import Ed25519Signer, ExportLine, format_line
from rgs.core.tlog.note import (
    COSIGNATURE,
    ED25519,
    NoteKey,
    add_signatures,
    cosign,
    format_note,
    format_vkey,
    parse_note,
)
from rgs.node.clock import SystemClock
from rgs.node.config import Config, load_config
from rgs.node.keyring import load_bundle, load_log_signer
from rgs.node.log_folder import log_prefix
from rgs.node.server import Server
from rgs.node.signing import signing
from rgs.store.opening import open_reads
from rgs.tlog.directory import LogRefusedError
from rgs.tlog.sequencer import Sequencer
from tests.support.process.commands import MANIFEST, Cli

WITNESS = Ed25519Signer.from_seed(b"\x42" * 32)


async def live(config: Config) -> None:
    """An instance that lives and ends, and the log of it."""
    async with signing(config, MANIFEST, "DRAINED") as (store, _):
        sequencer = Sequencer(
            store=store,
            clock=SystemClock(),
            folder=config.translog,
            prefix=await log_prefix(config, store),
            signer=load_log_signer(config.keys),
            delay_ms=60_000,
        )
        await sequencer.close()


async def failures_of(config: Config) -> list[str]:
    reads = await open_reads(config.store)
    replay = Replay(KeyBook(load_bundle(config)), Rulebook())
    failures = []
    async for row in reads.statements_in_order():
        failures += replay.feed(format_line(ExportLine(row.envelope, None)))
    await reads.close()
    return [failure.message for failure in (*failures, *replay.finish())]


async def count_of(config: Config) -> int:
    reads = await open_reads(config.store)
    count = len([row async for row in reads.statements_in_order()])
    await reads.close()
    return count


def test_recovery_is_told_first_and_done_when_asked(cli: Cli, tmp_path: Path) -> None:
    config = load_config(cli.home)
    assert isinstance(config.store, Path)
    shutil.copytree(config.store.parent, tmp_path / "backup")
    asyncio.run(live(config))
    home = ("--home", str(cli.home))
    assert "nothing to do" in cli("recover", *home)
    shutil.rmtree(config.store.parent)
    shutil.copytree(tmp_path / "backup", config.store.parent)
    (checkpoint,) = config.translog.glob("*/checkpoint")
    note, policy, seen = parse_note(checkpoint.read_bytes()), tmp_path / "policy.txt", tmp_path / "seen"
    origin = note.text.split("\n")[0]
    seen.write_bytes(format_note(add_signatures(note, [cosign(note.text, "witness.example", WITNESS, 1_795_000_000)])))
    log_key, witness_key = (
        format_vkey(NoteKey(name, kind, signer.public_key))
        for name, kind, signer in (
            (origin, ED25519, load_log_signer(config.keys)),
            ("witness.example", COSIGNATURE, WITNESS),
        )
    )
    policy.write_text(f"log {log_key}\nwitness outside {witness_key}\nquorum outside\n")
    trusted = ("--witnessed", str(seen), "--policy", str(policy))
    with pytest.raises(LogRefusedError, match="run `rgs recover`"):
        asyncio.run(Server(load_config(cli.home, {"listen": "127.0.0.1:0"}), MANIFEST).start())
    result = cli("recover", *trusted, *home, status=1)
    assert "the store lacks 3 statements\n" in result
    assert result.endswith("nothing was changed; give --yes to do it\n")
    assert cli("recover", *home, status=1) == result
    assert "it is not checked" in cli.err
    result = cli("recover", *trusted, "--yes", *home)
    assert "store epoch " in result
    assert asyncio.run(failures_of(config)) == []
    asyncio.run(live(config))  # under the name that it had, whatever the store epoch is now
    assert len(list(config.translog.glob("*/checkpoint"))) == 1
    assert "nothing to do" in cli("recover", *home)
    assert "--policy together" in cli.refused("recover", "--policy", str(policy), *home)


def test_an_artifact_is_imported_as_it_was_named_and_only_if_it_is_missing(cli: Cli, tmp_path: Path) -> None:
    """Planted: another file under the hash that was signed, and none."""
    config = load_config(cli.home)
    assert isinstance(config.store, Path)
    shutil.copytree(config.store.parent, tmp_path / "backup")
    asyncio.run(live(config))
    home = ("--home", str(cli.home))
    artifacts = next(config.translog.glob("*/artifact"))
    (artifact,) = artifacts.iterdir()
    content = artifact.read_bytes()
    artifact.unlink()
    assert "nothing to do" in cli("recover", *home)  # the store has it
    shutil.rmtree(config.store.parent)
    shutil.copytree(tmp_path / "backup", config.store.parent)
    assert "artifact " + artifact.name + " is missing" in cli.refused("recover", "--yes", *home)
    artifact.write_bytes(content + b"x")
    assert "another content than its hash says" in cli.refused("recover", "--yes", *home)
    artifact.write_bytes(content)
    assert "store epoch " in cli("recover", "--yes", *home)
    assert asyncio.run(failures_of(config)) == []
    shutil.rmtree(config.translog)
    assert "there is no folder" in cli.refused("recover", *home)


def test_who_is_not_there_is_not_erased(cli: Cli) -> None:
    config = load_config(cli.home)
    asyncio.run(live(config))
    assert "nothing to do" in cli("recover", "--home", str(cli.home))
    before = asyncio.run(count_of(config))
    assert "NOT_FOUND" in cli.refused("erase-player", "op-1", "nobody", "--home", str(cli.home))
    assert asyncio.run(count_of(config)) == before  # a refusal signs nothing
    assert asyncio.run(failures_of(config)) == []
