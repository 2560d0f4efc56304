"""A node's key is in strange hands: the thief serves with it, until it is replaced and revoked from a position on."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rgs.core.tlog.checkpoints import parse_checkpoint
from rgs.core.tlog.note import parse_note
from rgs.devkit.processes.server import ServerProcess
from rgs.node.keyring import load_node_signer, read_bundle
from tests.gamedays.scene import Scene
from tests.gamedays.transcript import Transcript
from tests.support.process.served import PARTY, rgs_here

pytestmark = pytest.mark.slow

CLIENT = Path(__file__).parents[2] / "examples" / "minimal_client.py"


def serve_stolen(scene: Scene, folder: Path) -> Path:
    """A home of the thief's with the stolen key and the bundle of that time; it serves two rounds. Its export."""
    home = folder / "home"
    assert rgs_here("init", "--home", str(home)).returncode == 0
    for name in ("node.key", "keys.json", "root.fingerprint"):
        shutil.copy2(scene.evidence.folder / "stolen" / name, home / "keys" / name)
    with ServerProcess(home, folder / "server.txt", PARTY) as server:
        server.await_serving()
        tls = home / "tls"
        files = (tls / "ca.pem", tls / "clients" / f"{PARTY}.pem", tls / "clients" / f"{PARTY}.key")
        command = [sys.executable, str(CLIENT), server.address, *map(str, files), "2"]
        subprocess.run(
            command, check=True, capture_output=True, timeout=60, cwd=CLIENT.parents[1], env={"PYTHONPATH": "."}
        )
        server.stop()
    scene.rgs("export", "--home", home, "--out", folder / "export.jsonl")
    return folder / "export.jsonl"


def replayed(export: Path, keys: Path, root: str) -> tuple[int, list[str]]:
    command = [sys.executable, "-m", "certification", "replay", str(export), "--keys", str(keys), "--root", root]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip().splitlines()


def test_leaked_node_key(scene: Scene, written: Transcript, tmp_path: Path) -> None:
    """A node's key has leaked, and a thief serves with it"""
    scene.begin()
    stolen = load_node_signer(scene.config).keyid
    players = scene.seat(4, scene.client())
    scene.play(5)
    shutil.copytree(scene.home / "keys", tmp_path / "stolen")
    (tmp_path / "thief").mkdir()
    export = serve_stolen(scene, tmp_path / "thief")
    bundle = tmp_path / "before.json"
    bundle.write_bytes(read_bundle(scene.config.keys))
    status, lines = replayed(export, bundle, scene.root)
    assert status == 0, lines
    written.did("copied the node's key; a server of the thief's has dealt two rounds with it")
    written.saw(f"an auditor who does not know yet replays the thief's export: {lines[-1]}")

    with scene.playing(players):
        began = time.monotonic()
        scene.rgs("keys", "node-new", "--node", "node1", "--home", scene.home)
        scene.await_line("node_key_taken")
        written.operator(
            "rgs keys node-new: the running server ends its instance and goes on under the new key"
            f" {time.monotonic() - began:.1f} s later, while all play (line node_key_taken)"
        )
        seen = parse_checkpoint(parse_note(scene.await_cosigned()).text)
        before = read_bundle(scene.config.keys)
        written.alarm(
            scene.audit().splitlines()[-1] + ": certify log, which keeps the checkpoint that the witness cosigned"
        )
        position = ("--origin", seen.origin, "--size", str(seen.size))
        scene.rgs("keys", "revoke", stolen, "--reason", "STOLEN", *position, "--home", scene.home)
        written.operator(
            f"rgs keys revoke, from entry {seen.size} of the log on; sends the new bundle to every auditor"
        )
        bundle.write_bytes(read_bundle(scene.config.keys))
        status, lines = replayed(export, bundle, scene.root)
        assert status == 1
        refused = [line for line in lines if "3 key" in line or "revoked" in line]
        assert refused, lines
        written.alarm(
            f"certify replay of the thief's export ends with status 1, {lines[-1]}; first of all:\n{refused[0]}"
        )
        scene.await_rounds(10)
    written.saw(f"the players noticed nothing; the longest wait was {scene.longest_s:.1f} s")
    shutil.copy2(bundle, tmp_path / "thief/home/keys/keys.json")
    scene.leave()
    scene.await_cosigned()
    said = scene.audit()
    written.after(f"certify log under the new bundle, with its memory: {said.splitlines()[-1]}")
    scene.stop()
    # In an export nothing shows a position: under the bundle with the revocation all that the old key began is refused.
    scene.prove_books(before)
    written.after("that was under the bundle of before the revocation: an export shows no position in the log")
