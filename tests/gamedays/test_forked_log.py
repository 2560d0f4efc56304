"""Store and log are put back to an older day together: a second history would be signed. A witness has seen more."""

from __future__ import annotations

import shutil

import pytest

from tests.gamedays.scene import Scene
from tests.gamedays.transcript import Transcript

pytestmark = pytest.mark.slow


def test_forked_log(scene: Scene, written: Transcript) -> None:
    """Store and log are put back together, and signed on"""
    scene.begin()
    client = scene.client()
    scene.seat(4, client)
    scene.play(3)
    scene.await_cosigned()
    scene.server.stop()
    kept = scene.evidence.folder / "kept"
    parts = ("store", "translog")
    for part in parts:
        shutil.copytree(scene.home / part, kept / part)
    scene.start_server()
    scene.play(5)
    scene.await_cosigned()
    written.saw(f"an auditor reads the log: {scene.audit().splitlines()[-1]}")
    scene.server.stop()
    later = scene.evidence.folder / "later"
    for part in parts:
        shutil.move(scene.home / part, later / part)
        shutil.copytree(kept / part, scene.home / part)
    written.did("stopped the server, put store and log back to a copy of before the last rounds, and started it")
    scene.start_server_unready()
    line = scene.await_line("guard_closed", guard="log")
    assert line["code"] == "FORKED"
    written.alarm("line guard_closed: log FORKED (alert RgsGuardClosed); the witness shows what it has cosigned")
    written.alarm("rgs admin guards:\n" + "\n".join(scene.guards()))
    written.alarm("certify log, with the memory of the auditor's last run:\n" + scene.audit(status=1))
    scene.server.stop()
    for part in parts:
        shutil.rmtree(scene.home / part)
        shutil.move(later / part, scene.home / part)
    written.operator("stops all nodes and puts the newest store and log back (log.md, FORKED)")
    scene.start_server()
    scene.play(3)
    written.saw("the players go on in the sessions that they had")
    scene.prove()
