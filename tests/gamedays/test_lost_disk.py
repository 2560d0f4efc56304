"""The disk of the store is lost: a backup is restored, brought up to the log, and served again."""

from __future__ import annotations

import shutil
import time

import pytest

from tests.gamedays.house import House
from tests.gamedays.transcript import Transcript

pytestmark = pytest.mark.slow


def test_lost_disk(house: House, written: Transcript) -> None:
    """The disk of the store is lost, and the last backup is older"""
    house.begin()
    client = house.client()
    players = house.seat(6, client)
    house.play(5)
    backups = house.evidence.folder / "backups"
    house.rgs("backup", "make", "--home", house.home, "--to", backups)
    written.did("made a backup while the server runs: rgs backup make")
    house.play(10)
    newest = house.await_cosigned()
    house.kill_server()
    shutil.rmtree(house.home / "store")
    written.did(f"killed the server and removed its store, {10 * len(players)} rounds after the backup")
    drill = house.rgs("backup", "drill", "--home", house.home, "--from", backups, "--scratch", house.evidence.folder)
    written.operator("tries the backup: rgs backup drill\n" + drill.strip().replace("\t", "  "))
    (backup,) = backups.iterdir()
    shutil.copytree(backup / "store", house.home / "store")
    refused = house.refused_start()
    written.told(f"rgs serve over the restored store ends with status 3: {refused}")
    seen = house.evidence.folder / "seen"
    seen.write_bytes(newest)
    trusted = ("--home", house.home, "--witnessed", seen, "--policy", house.evidence.policy)
    lacks = house.rgs("recover", *trusted, status=1)
    began = time.monotonic()
    done = house.rgs("recover", *trusted, "--yes")
    written.operator("rgs recover says what the store lacks, and does it with --yes\n" + lacks.strip() + "\n" + done.strip())
    written.saw(f"recovered in {time.monotonic() - began:.1f} s")
    house.start_server()
    house.play(5)
    written.saw("the players go on in the sessions that they had")
    house.prove()
