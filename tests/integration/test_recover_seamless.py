"""A backup is restored of a house that is funded bet by bet: its money legs come back as money, not as the end of their
session.
"""

from __future__ import annotations

from pathlib import Path

from rgs.core.sessions import Session
from tests.house import FakeClock, House
from tests.integration.test_recover import Place, sequence, void_all
from tests.oracles import replay
from tests.seamless import FUNDINGS, Better

KEPT = ("status", "funding", "participation", "stage_no", "rounds", "open_round_id", "link_no", "link_hash", "close_ms")


def a_house(place: Place, clock: FakeClock) -> House:
    return House(place.folder, clock=clock, fundings=FUNDINGS)


async def test_money_legs_of_the_gap_are_money(tmp_path: Path) -> None:
    """In the gap anna plays on, and has a round open at its end; bert comes, plays and goes."""
    place, clock = Place(tmp_path, None), FakeClock()
    house = a_house(place, clock)
    await house.start()
    anna, bert = Better(house), Better(house, name="bert")
    await anna.open()
    await anna.play()
    await sequence(house, place.log)
    await house.stop(ended=False)
    place.back_up()
    again = a_house(place, clock)
    await again.start()
    anna.house = bert.house = again
    await anna.play()
    await anna.start()
    await bert.open()
    await bert.play()
    await bert.close()
    await again.settle()
    lived = [await found(again, player) for player in (anna, bert)]
    await sequence(again, place.log)
    await again.stop(ended=False)
    place.restore()
    assert await place.import_all() > 10
    recovered = await place.sign(clock)
    assert [round_.session_id for round_ in recovered.paused] == [anna.session_id]
    house = a_house(place, clock)
    await house.start()
    anna.house = house
    for before, player in zip(lived, (anna, bert), strict=True):
        after = await found(house, player)
        for name in KEPT:
            assert getattr(after, name) == getattr(before, name), (player.name, name)
    await void_all(house, recovered.paused)
    await house.settle()
    assert (await found(house, anna)).balance_minor == 0  # the stake was credited
    await anna.play()  # funded as it was
    await anna.close()
    await house.stop()
    assert replay(tmp_path).failures == 0


async def found(house: House, player: Better) -> Session:
    session = await house.store.session(player.session_id)
    assert session is not None
    return session
