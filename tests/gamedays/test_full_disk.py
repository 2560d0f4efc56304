"""The disk of the store and of the log is full for a while: a small file system that nothing else shares."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.gamedays.scene import Scene, until
from tests.gamedays.transcript import Transcript

pytestmark = pytest.mark.slow

DISK_MB = 96


def mount(folder: Path) -> None:
    """A file system of its own there; the test is skipped where this user may mount none."""
    folder.mkdir()
    command = ["/bin/mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=0700", "gameday", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(
            f"this user may mount no small disk ({done.stderr.strip()}); test_full_disk.py limits files instead"
        )


def fill(ballast: Path) -> None:
    """Until no byte is left."""
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 16))
        except OSError:
            pass
        try:
            while True:
                file.write(b"x")
        except OSError:
            pass


def test_full_disk(scene: Scene, written: Transcript, tmp_path: Path) -> None:
    """A full disk under store, log and technical log"""
    disk = tmp_path / "disk"
    mount(disk)
    try:

        def onto_the_disk() -> None:
            for name in ("store", "translog", "log"):
                if (scene.home / name).exists():
                    shutil.move(scene.home / name, disk / name)

        moved = f'store = "{disk}/store/rgs.db"\ntranslog = "{disk}/translog"\nlog = "{disk}/log/rgs.log"\n'
        scene.begin(settings=moved, prepare=onto_the_disk)
        client = scene.client()
        players = scene.seat(6, client)
        scene.play(3)
        written.saw(f"{len(players)} players play; a disk of {DISK_MB} MB holds store, log and technical log")
        before = client.unanswered
        with scene.playing():
            fill(disk / "ballast")
            written.did("filled the disk to the last byte, while all play")
            until(lambda: client.unanswered > before + 6, what="a refusal")
            written.saw(f"calls are answered UNAVAILABLE with a reason: {', '.join(sorted(client.reasons))}")
            stood, closed = scene.rounds, scene.guards()
            assert any("store" in line or "log" in line for line in closed), closed
            written.alarm("rgs admin guards:\n" + "\n".join(closed))
            time.sleep(5)
            scene.server.verify_running()
            assert scene.rounds == stood, "nothing can have been committed"
            (disk / "ballast").unlink()
            written.operator("gives the disk room (runbook, RgsDiskFull), and does not restart the server")
            scene.await_rounds(12)
        written.saw(f"the same process plays on; the longest wait of a player was {client.longest_s:.1f} s")
        assert not scene.guards()
        scene.play(2)
        scene.prove()
    finally:
        scene.server.kill()
        subprocess.run(["/bin/umount", str(disk)], check=True)
