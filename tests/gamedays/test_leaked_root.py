"""The root's key is in strange hands: it is revoked with itself, and a new root begins."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rgs.devkit.demo.checks import verify_export, verify_wallet
from rgs.devkit.demo.player import DemoPlayer, rounds_of
from rgs.node.keyring import read_bundle
from tests.gamedays.scene import AT_HOME, Scene
from tests.gamedays.test_leaked_node_key import replayed, serve_stolen
from tests.gamedays.transcript import Transcript

pytestmark = pytest.mark.slow


def test_leaked_root(scene: Scene, written: Transcript, tmp_path: Path) -> None:
    """The root's key has leaked, and a thief has made a node of its own with it"""
    scene.begin()
    old, before, revoked = scene.root, tmp_path / "before.json", tmp_path / "revoked.json"
    players = scene.seat(4, scene.client())
    scene.play(5)
    before.write_bytes(read_bundle(scene.config.keys))
    stolen = tmp_path / "stolen"
    shutil.copytree(scene.home / "keys", stolen)
    scene.rgs("keys", "node-new", "--node", "node1", "--keys", stolen)
    (stolen / "node-node1.key").replace(stolen / "node.key")
    (tmp_path / "thief").mkdir()
    export = serve_stolen(scene, tmp_path / "thief")
    status, lines = replayed(export, stolen / "keys.json", old)
    assert status == 0, lines
    written.did("copied the root's key; the thief has made a node key with it and dealt two rounds")
    written.saw(f"an auditor with the old fingerprint replays them: {lines[-1]}")

    scene.rgs("keys", "revoke", old, "--reason", "STOLEN", "--home", scene.home)
    written.operator("rgs keys revoke: the root is revoked with itself; sends every auditor the bundle")
    scene.await_line("guard_closed", guard="keys")
    closed = "\n".join(scene.guards())
    written.alarm(f"line guard_closed: keys (alert RgsGuardClosed)\n{closed}")
    scene.leave()
    written.saw("no new round begins; the players end their sessions and are paid")
    scene.server.stop()
    revoked.write_bytes(read_bundle(scene.config.keys))
    first = tmp_path / "first.jsonl"
    scene.rgs("export", "--home", scene.home, "--out", first)
    status, lines = replayed(first, revoked, old)
    assert status == 1
    written.alarm(f"certify replay under the bundle with the revocation: status 1, {lines[-1]}")

    medium, keys = tmp_path / "medium", scene.home / "keys"
    scene.rgs("keys", "root-new", medium)
    scene.rgs("keys", "node-new", "--production", "--node", "node1", "--keys", medium)
    (keys / "root.key").unlink()
    for name, place in (("keys.json", "keys.json"), ("node-node1.key", "node.key"), ("root.fingerprint",) * 2):
        shutil.copy2(medium / name, keys / place)
    assert scene.root != old
    written.operator("rgs keys root-new and node-new on a medium; key and bundle to the node, the fingerprint by hand")
    scene.start_server()
    scene.play(5, scene.seat(2, scene.client()))
    written.saw("new players play under the new root, over the same store and log")
    scene.leave()
    scene.stop()
    prove(scene)
    prove_parts(scene, players, replayed(first, before, old))
    status, lines = replayed(export, stolen / "keys.json", scene.root)
    assert status == 1
    written.after(f"who has the new fingerprint refuses the thief's export: status 1, {lines[-1]}")


def prove(scene: Scene) -> None:
    """By the export of everything, and the wallet's book."""
    after = scene.written.after
    scene.rgs("export", "--home", scene.home, "--out", scene.evidence.statements)
    compared = verify_export(scene.evidence.statements, scene.sessions)
    after(f"all {compared} statements of players are in the export")
    moved_minor = verify_wallet(scene.home / AT_HOME, scene.sessions)
    after(f"the wallet moved {moved_minor / 100:.2f} EUR, what the sessions come to")


def prove_parts(scene: Scene, players: list[DemoPlayer], before: tuple[int, list[str]]) -> None:
    """Each root's part by itself: no replay follows two roots. `before`: status and lines of the first one."""
    rounds = rounds_of([session for player in players for session in player.sessions])
    assert (before[0], before[1][-1]) == (0, f"{rounds} rounds verified, 0 failed, ANCHORED")
    scene.written.after(f"of before, under the bundle of before the revocation: {before[1][-1]}")
    second = scene.evidence.folder / "second.jsonl"
    scene.rgs("export", "--home", scene.home, "--instance", "node1-b2-w0", "--out", second)
    status, lines = replayed(second, scene.config.bundle, scene.root)
    assert (status, lines[-1]) == (0, f"{scene.rounds - rounds} rounds verified, 0 failed, ANCHORED"), lines
    scene.written.after(f"of afterwards, under the new root: {lines[-1]}")
