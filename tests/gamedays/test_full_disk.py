"""The disk of the store and of the log is full for a while: a small file system that nothing else shares."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.gamedays.house import House, until
from tests.gamedays.transcript import Transcript

pytestmark = pytest.mark.slow

DISK_MB = 96


def mount(folder: Path) -> None:
    """A file system of its own there; the test is skipped where this user may mount none."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=0700", "gameday", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"this user may mount no small disk ({done.stderr.strip()}); test_full_disk.py limits files instead")


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


def test_full_disk(house: House, written: Transcript, tmp_path: Path) -> None:
    """A full disk under store, log and technical log"""
    disk = tmp_path / "disk"
    mount(disk)
    try:

        def onto_the_disk() -> None:
            for name in ("store", "translog", "log"):
                if (house.home / name).exists():
                    shutil.move(house.home / name, disk / name)

        moved = f'store = "{disk}/store/rgs.db"\ntranslog = "{disk}/translog"\nlog = "{disk}/log/rgs.log"\n'
        house.begin(settings=moved, prepare=onto_the_disk)
        client = house.client()
        players = house.seat(6, client)
        house.play(3)
        written.saw(f"{len(players)} players play; a disk of {DISK_MB} MB holds store, log and technical log")
        before = client.unanswered
        with house.playing():
            fill(disk / "ballast")
            written.did("filled the disk to the last byte, while all play")
            until(lambda: client.unanswered > before + 6, what="a refusal")
            written.saw(f"calls are answered UNAVAILABLE with a reason: {', '.join(sorted(client.reasons))}")
            stood, closed = house.rounds, house.guards()
            assert any("store" in line or "log" in line for line in closed), closed
            written.told("rgs admin guards:\n" + "\n".join(closed))
            time.sleep(5)
            house.server.verify_running()
            assert house.rounds == stood, "nothing can have been committed"
            (disk / "ballast").unlink()
            written.operator("gives the disk room (runbook, RgsDiskFull), and does not restart the server")
            house.await_rounds(12)
        written.saw(f"the same process plays on; the longest wait of a player was {client.longest_s:.1f} s")
        assert not house.guards()
        house.play(2)
        house.prove()
    finally:
        house.server.kill()
        subprocess.run(["umount", str(disk)], check=True)
