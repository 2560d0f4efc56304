"""A wallet, and a regulator, that are gone: killed under load, away, and back at their address over their book.

Here the outage is of real processes and lasts for seconds. `test_peers_away_a_day.py` has the whole day.
"""

from __future__ import annotations

import time
from collections import Counter

import pytest

from rgs.devkit.client import Client, ClientIdentity
from rgs.devkit.demo.player import DemoPlayer
from rgs.v1.admin_pb2 import GetOutboxRequest
from tests.gamedays.house import Doing, House, until
from tests.gamedays.transcript import Transcript

pytestmark = pytest.mark.slow

AWAY_S = 20


def waiting(house: House) -> Counter[str]:
    """What waits for wallet and regulator: kind -> how many."""
    found = Counter[str]()
    with Client(house.server.address, ClientIdentity.of_party(house.config, "demo-admin")) as admin:
        for figure in admin.call(admin.admin.GetOutbox, GetOutboxRequest()).figures:
            found[figure.kind] += figure.count
    return found


def listed(found: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(found.items()))


def test_wallet_killed(house: House, written: Transcript) -> None:
    """The wallet is killed under load and comes back"""
    house.begin()
    client = house.client()
    players = house.seat(9, client)
    house.play(3)
    leaving, buying, playing = players[:3], players[3:6], players[6:]
    with house.playing(playing):
        house.wallet.kill()
        written.did("killed the wallet (SIGKILL); three players leave, three buy, three play on")
        moving = Doing(DemoPlayer.leave, leaving), Doing(lambda player: player._buy(5_000), buying)
        line = house.await_line("circuit_open")
        written.told(f"line circuit_open: peer {line['peer']}, {line['failures']} failures (alert RgsCircuitOpen)")
        until(lambda: waiting(house).total() >= 6)
        written.told(f"GetOutbox: {listed(waiting(house))} (alerts RgsCreditOwed, RgsOutboxOld after minutes)")
        played = house.rounds
        time.sleep(AWAY_S)
        assert house.rounds > played, "rounds need no wallet"
        written.saw(f"{house.rounds - played} rounds were played meanwhile: the money is in the participation")
        written.operator("calls the wallet's operator, credits nobody by hand, restarts nothing (runbook)")
        house.start_wallet()
        began = time.monotonic()
        for doing in moving:
            doing.join()
        until(lambda: not {"end", "purchase"} & set(waiting(house)))
        written.after(f"what waited was settled {time.monotonic() - began:.1f} s after the wallet answered again")
        house.await_line("circuit_closed")
    house.prove()


def test_regulator_killed(house: House, written: Transcript) -> None:
    """The regulator is killed under load and comes back"""
    house.begin()
    client = house.client()
    players = house.seat(6, client)
    house.play(3)
    late = house.seat(2, house.client())
    with house.playing(players):
        house.regulator.kill()
        written.did("killed the regulator (SIGKILL) while six play")
        opening = Doing(DemoPlayer.make_ready, late)
        house.await_line("guard_closed", guard="regulator")
        written.told("line guard_closed: regulator (alerts RgsGuardClosed, RgsCircuitOpen)\n" + "\n".join(house.guards()))
        played = house.rounds
        time.sleep(AWAY_S)
        held = waiting(house)["stages"]
        assert held
        assert house.rounds > played, "rounds need no regulator"
        assert not late[0].sessions
        written.saw(f"{house.rounds - played} rounds were played meanwhile; two new players wait for their session")
        written.told(f"GetOutbox: {held} reports of rounds wait (alerts RgsOutboxGrows, RgsOutboxOld after minutes)")
        written.operator("calls the regulator, restarts nothing, closes out nothing (runbook)")
        house.start_regulator()
        began = time.monotonic()
        opening.join()
        written.after(f"the two could open {time.monotonic() - began:.1f} s after the regulator answered again")
    until(lambda: not waiting(house).total())
    written.after("every report has been delivered")
    house.prove()
