"""The whole home is put back to an older day, log and all: a second history would be signed. A witness has seen more."""

from __future__ import annotations

import shutil

import pytest

from tests.gamedays.house import House
from tests.gamedays.transcript import Transcript

pytestmark = pytest.mark.slow


def test_forked_log(house: House, written: Transcript) -> None:
    """Store and log are put back together, and signed on"""
    house.begin()
    client = house.client()
    house.seat(4, client)
    house.play(3)
    house.await_cosigned()
    house.server.stop()
    kept = house.evidence.folder / "kept"
    parts = ("store", "translog")
    for part in parts:
        shutil.copytree(house.home / part, kept / part)
    house.start_server()
    house.play(5)
    house.await_cosigned()
    written.saw(f"an auditor reads the log: {house.audit().splitlines()[-1]}")
    house.server.stop()
    later = house.evidence.folder / "later"
    for part in parts:
        shutil.move(house.home / part, later / part)
        shutil.copytree(kept / part, house.home / part)
    written.did("stopped the server, put store and log back to a copy of before the last rounds, and started it")
    house.start_server_unready()
    line = house.await_line("guard_closed", guard="log")
    assert line["code"] == "FORKED"
    written.told("line guard_closed: log FORKED (alert RgsGuardClosed); the witness shows what it has cosigned")
    written.told("rgs admin guards:\n" + "\n".join(house.guards()))
    written.told("certify log, with the memory of the auditor's last run:\n" + house.audit(status=1))
    house.server.stop()
    for part in parts:
        shutil.rmtree(house.home / part)
        shutil.move(later / part, house.home / part)
    written.operator("stops all nodes and puts the newest store and log back (log.md, FORKED)")
    house.start_server()
    house.play(3)
    written.saw("the players go on in the sessions that they had")
    house.prove()
