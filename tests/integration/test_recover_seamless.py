"""A backup is restored of a server that is funded bet by bet: its money transfers come back as money, not as the end of
their session.
"""

from __future__ import annotations

from pathlib import Path

from rgs.core.sessions import Session
from rgs.store.opening import open_parties, open_reads, open_store
from tests.support.clocks import ManualClock
from tests.support.service.harness import ServiceHarness
from tests.support.service.places import Place, sequence, void_all
from tests.support.service.reconciling import export_day
from tests.support.service.seamless import FUNDINGS, Better, verify_seamless

KEPT = (
    "status",
    "player",
    "funding",
    "participation",
    "round_no",
    "rounds",
    "open_round_id",
    "link_no",
    "link_hash",
    "close_ms",
)


async def a_harness(place: Place, clock: ManualClock) -> ServiceHarness:
    if isinstance(place.store, Path):
        return ServiceHarness(place.folder, clock=clock, fundings=FUNDINGS)
    store, parties = await open_store(place.store), await open_parties(place.store)
    return ServiceHarness(place.folder, clock=clock, fundings=FUNDINGS, store=store, parties=parties)


async def test_transfers_of_the_gap_are_money(place: Place, tmp_path: Path) -> None:
    """In the gap anna plays on, is owed a credit and has a round open; bert comes, plays and goes."""
    clock = ManualClock()
    harness = await a_harness(place, clock)
    await harness.start()
    anna, bert = Better(harness), Better(harness, name="bert")
    await anna.open()
    await anna.play()
    await sequence(harness, place.log)
    await harness.stop(ended=False)
    place.back_up()
    again = await a_harness(place, clock)
    await again.start()
    anna.harness = bert.harness = again
    await anna.play()
    await bert.open()
    await bert.play()
    await bert.close()
    await again.settle()
    again.wallet_script.plan("credit", *["before"] * 50)
    while await again.store.round_credit(anna.session_id) is None:
        await anna.play()
    await anna.start()
    lived = [await found(again, player) for player in (anna, bert)]
    await sequence(again, place.log)
    await again.stop(ended=False)
    place.restore()
    await place.lapse()
    assert await place.import_all() > 10
    recovered = await place.sign(clock)
    assert [round_.session_id for round_ in recovered.paused] == [anna.session_id]
    harness = await a_harness(place, clock)
    await harness.start()
    anna.harness = harness
    for before, player in zip(lived, (anna, bert), strict=True):
        after = await found(harness, player)
        for name in KEPT:
            assert getattr(after, name) == getattr(before, name), (player.name, name)
    assert await harness.store.round_credit(anna.session_id) is not None
    await void_all(harness, recovered.paused)
    await harness.settle()
    assert (await found(harness, anna)).balance_minor == 0  # the stake was credited
    await anna.play()  # funded as it was
    await anna.close()
    await harness.stop()
    if isinstance(place.store, Path):
        verify_seamless(place.folder)  # among others: every transfer that is signed is the wallet's, once
    reads = await open_reads(place.store)
    rows = [row async for row in reads.statements_in_order()]
    await reads.close()
    done = export_day(place.folder, rows, tmp_path / "books").run(tmp_path / "out", regulator=None)
    assert done.document["owed"] == {}
    assert (done.verdict, [result["class"] for result in done.document["breaks"]]) == ("clean", [])


async def found(harness: ServiceHarness, player: Better) -> Session:
    session = await harness.store.session(player.session_id)
    assert session is not None
    return session
