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
from tests.gamedays.scene import Doing, Scene, until
from tests.gamedays.transcript import Transcript

pytestmark = pytest.mark.slow

AWAY_S = 20


def waiting(scene: Scene) -> Counter[str]:
    """What waits for wallet and regulator: kind -> how many."""
    found = Counter[str]()
    with Client(scene.server.address, ClientIdentity.of_party(scene.config, "demo-admin")) as admin:
        for figure in admin.call(admin.admin.GetOutbox, GetOutboxRequest()).figures:
            found[figure.kind] += figure.count
    return found


def listed(found: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(found.items()))


def test_wallet_killed(scene: Scene, written: Transcript) -> None:
    """The wallet is killed under load and comes back"""
    scene.begin()
    client = scene.client()
    players = scene.seat(9, client)
    scene.play(3)
    leaving, buying, playing = players[:3], players[3:6], players[6:]
    with scene.playing(playing):
        scene.wallet.kill()
        written.did("killed the wallet (SIGKILL); three players leave, three buy, three play on")
        moving = Doing(DemoPlayer.leave, leaving), Doing(lambda player: player._buy(5_000), buying)
        line = scene.await_line("circuit_open")
        written.alarm(f"line circuit_open: peer {line['peer']}, {line['failures']} failures (alert RgsCircuitOpen)")
        until(lambda: waiting(scene).total() >= 6)
        written.alarm(f"GetOutbox: {listed(waiting(scene))} (alerts RgsCreditOwed, RgsOutboxOld after minutes)")
        played = scene.rounds
        time.sleep(AWAY_S)
        assert scene.rounds > played, "rounds need no wallet"
        written.saw(f"{scene.rounds - played} rounds were played meanwhile: the money is in the participation")
        written.operator("calls the wallet's operator, credits nobody by hand, restarts nothing (runbook)")
        scene.start_wallet()
        began = time.monotonic()
        for doing in moving:
            doing.join()
        until(lambda: not {"end", "purchase"} & set(waiting(scene)))
        written.after(f"what waited was settled {time.monotonic() - began:.1f} s after the wallet answered again")
        scene.await_line("circuit_closed")
    scene.prove()


def test_regulator_killed(scene: Scene, written: Transcript) -> None:
    """The regulator is killed under load and comes back"""
    scene.begin()
    client = scene.client()
    players = scene.seat(6, client)
    scene.play(3)
    late = scene.seat(2, scene.client())
    with scene.playing(players):
        scene.regulator.kill()
        written.did("killed the regulator (SIGKILL) while six play")
        opening = Doing(DemoPlayer.make_ready, late)
        scene.await_line("guard_closed", guard="regulator")
        written.alarm(
            "line guard_closed: regulator (alerts RgsGuardClosed, RgsCircuitOpen)\n" + "\n".join(scene.guards())
        )
        played = scene.rounds
        time.sleep(AWAY_S)
        held = waiting(scene)["stages"]
        assert held
        assert scene.rounds > played, "rounds need no regulator"
        assert not late[0].sessions
        written.saw(f"{scene.rounds - played} rounds were played meanwhile; two new players wait for their session")
        written.alarm(f"GetOutbox: {held} reports of rounds wait (alerts RgsOutboxGrows, RgsOutboxOld after minutes)")
        written.operator("calls the regulator, restarts nothing, closes out nothing (runbook)")
        scene.start_regulator()
        began = time.monotonic()
        opening.join()
        written.after(f"the two could open {time.monotonic() - began:.1f} s after the regulator answered again")
    until(lambda: not waiting(scene).total())
    written.after("every report has been delivered")
    scene.prove()
