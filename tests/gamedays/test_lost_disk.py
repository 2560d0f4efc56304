"""The disk of the store is lost: a backup is restored, brought up to the log, and served again."""

from __future__ import annotations

import shutil
import time

import pytest

from tests.gamedays.scene import Scene
from tests.gamedays.transcript import Transcript

pytestmark = pytest.mark.slow


def shortened(drill: str) -> str:
    """The steps of the drill, of the replay its last line."""
    lines = drill.strip().replace("\t", "  ").splitlines()
    kept = [line for line in lines if not line.startswith(("replay", "exported"))]
    return "\n".join([*kept[:-1], [line for line in lines if line.startswith("replay")][-1], kept[-1]])


def test_lost_disk(scene: Scene, written: Transcript) -> None:
    """The disk of the store is lost, and the last backup is older"""
    scene.begin()
    client = scene.client()
    players = scene.seat(6, client)
    scene.play(5)
    backups = scene.evidence.folder / "backups"
    scene.rgs("backup", "make", "--home", scene.home, "--to", backups)
    written.did("made a backup while the server runs: rgs backup make")
    scene.play(10)
    newest = scene.await_cosigned()
    scene.kill_server()
    shutil.rmtree(scene.home / "store")
    written.did(f"killed the server and removed its store, {10 * len(players)} rounds after the backup")
    drill = scene.rgs("backup", "drill", "--home", scene.home, "--from", backups, "--scratch", scene.evidence.folder)
    written.operator("tries the backup: rgs backup drill\n" + shortened(drill))
    (backup,) = backups.iterdir()
    shutil.copytree(backup / "store", scene.home / "store")
    refused = scene.refused_start()
    written.alarm(f"rgs serve over the restored store ends with status 3: {refused}")
    seen = scene.evidence.folder / "seen"
    seen.write_bytes(newest)
    trusted = ("--home", scene.home, "--witnessed", seen, "--policy", scene.evidence.policy)
    lacks = scene.rgs("recover", *trusted, status=1)
    began = time.monotonic()
    done = scene.rgs("recover", *trusted, "--yes")
    written.operator(
        "rgs recover says what the store lacks, and does it with --yes\n" + lacks.strip() + "\n" + done.strip()
    )
    written.saw(f"recovered in {time.monotonic() - began:.1f} s")
    scene.start_server()
    scene.play(5)
    written.saw("the players go on in the sessions that they had")
    scene.prove()
