"""A backup is restored of a server with free bets: campaigns keep their money, and no free bet is played twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from rgs.core.errors import FreeBetRefusedError
from rgs.core.sessions import Session
from tests.support.clocks import ManualClock
from tests.support.service.guests import Guest, verify_campaign
from tests.support.service.harness import ServiceHarness
from tests.support.service.places import Place, sequence, void_all

KEPT = ("status", "participation", "round_no", "rounds", "open_round_id", "link_no", "link_hash")


async def test_free_bets_of_the_gap_are_the_campaigns_money(place: Place) -> None:
    """In the gap anna plays two free bets, is owed nothing, and has a third one open."""
    clock = ManualClock()
    harness = await place.harness(clock)
    await harness.start()
    anna = Guest(harness)
    await anna.open()
    await anna.buy(10_000)
    grants = await anna.grant(5)
    await anna.play_free(grants[0].grant_id)
    await sequence(harness, place.log)
    await harness.stop(ended=False)
    place.back_up()
    anna.harness = again = await place.harness(clock)
    await again.start()
    await anna.play_free(grants[1].grant_id)
    again.wallet_script.plan("credit", *["before"] * 50)
    await anna.play_free(grants[2].grant_id)
    await anna.start_free(grants[3].grant_id)
    lived = await found(again, anna)
    await sequence(again, place.log)
    await again.stop(ended=False)
    place.restore()
    await place.lapse()
    assert await place.import_all() > 10
    recovered = await place.sign(clock)
    anna.harness = harness = await place.harness(clock)
    await harness.start()
    after = await found(harness, anna)
    for name in KEPT:
        assert getattr(after, name) == getattr(lived, name), name
    await void_all(harness, recovered.paused)
    await harness.settle()
    left = await anna.open_grants()
    assert len(left) == 2, "the one that was not played, and one in the place of the void round's"
    assert grants[4].grant_id in left
    anna.session["next_round_no"] = (await found(harness, anna)).round_no + 1
    for grant in grants[1:4]:
        with pytest.raises(FreeBetRefusedError):
            await anna.start_free(grant.grant_id)
    await anna.play_free(left[0])
    await anna.send(anna.ending())
    await harness.settle()
    await harness.stop()
    if isinstance(place.store, Path):
        verify_campaign(place.folder, rounds=5)


async def found(harness: ServiceHarness, player: Guest) -> Session:
    session = await harness.store.session(player.session_id)
    assert session is not None
    return session
