"""The watch over returns in a server that plays: voids, rounds that outlive their instance, and a generator that is
rigged in this test only, whose every round is signed, replays and pays by the rules.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from rgs.core.cards import Card
from rgs.core.hands import evaluate
from rgs.core.returns.tally import Reading, ReturnTally
from rgs.core.times import format_time
from rgs.service.admin import monitoring
from rgs.service.admin.monitoring import LATE_PERIOD_MS, PATIENCE_MS, Monitoring, alarm_draft
from rgs.store.changes import Change, OvertakenError, Signed
from rng.generator import Draw
from rng.shuffle import transcript_to_deck
from tests.support.clocks import NOW_MS
from tests.support.seeded import Bytes
from tests.support.service.admins import void
from tests.support.service.harness import ServiceHarness, open_harness, read_statement
from tests.support.service.oracles import replay
from tests.support.service.player import Player


async def tally_of(harness: ServiceHarness, ruleset_id: str = "uth-solo") -> ReturnTally:
    while await harness.services.monitoring.poll():
        pass
    measured, _ = await harness.services.monitoring.measured()
    return next(one.tally for one in measured if one.ruleset_id == ruleset_id)


def deal_by(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch, seed: str, *, favours_the_dealer: bool = False
) -> None:
    """Decks that follow from the seed: fresh ones would fail the test once in some hundred runs. Or the server shuffles
    once again where the player's seven cards are the better ones, and says nothing.
    """
    genuine, stream = harness.instance._generator.draw, Bytes(seed)

    async def draw() -> Draw:
        drawn, transcript = await genuine(), stream.transcript()
        deck = [Card(card) for card in transcript_to_deck(transcript)]
        if favours_the_dealer and evaluate(deck[:2] + deck[4:9]) > evaluate(deck[2:9]):
            transcript = stream.transcript()
        return replace(drawn, transcript=transcript)

    monkeypatch.setattr(harness.instance._generator, "draw", draw)


@pytest.mark.slow
async def test_a_rigged_generator_passes_replay_and_is_told_by_its_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_harness(tmp_path) as harness:
        deal_by(harness, monkeypatch, "rigged", favours_the_dealer=True)
        for number in range(12):
            player = Player(harness, name=f"player-{number}")
            await player.sit(30_000)
            for _ in range(20):
                await player.play(50, trips=50)
            await player.leave()
        with capture_logs() as logs:
            tally = await tally_of(harness)
        assert tally.life.rounds == 240
        alarms = [line for line in logs if line["event"] == "return_out_of_band"]
        assert {"event": "return_out_of_band", "log_level": "error", "game": "uth-solo", "figure": "showdown",
                "series": "life"} in alarms  # fmt: skip
        assert "showdown" in tally.life.reported
        rows = await harness.store.events("RETURN_OUT_OF_BAND", before=0, limit=9)
        events = [read_statement(row.envelope) for row in rows]
        assert ("uth-solo showdown life", "BELOW") in {(event["subject"], event["reason"]) for event in events}
        anna = Player(harness)
        await anna.sit()
        await anna.play()  # the operator has not set that an alarm stops it
    assert replay(tmp_path).failures == 0


async def test_a_fair_server_does_not_alarm_and_its_money_is_that_of_its_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    staked = returned = 0
    async with open_harness(tmp_path) as harness:
        deal_by(harness, monkeypatch, "fair")
        for game in ("uth-solo", "casino-holdem"):
            player = Player(harness, game=game, name=game)
            await player.sit(50_000)
            for _ in range(30):
                final = read_statement((await player.play(50)).envelope)
                staked += int(final["staked_minor"])
                returned += int(final["returned_minor"])
        tallies = [await tally_of(harness, game) for game in ("uth-solo", "casino-holdem")]
        money = [sums for tally in tallies for sums in tally.money["EUR"].values()]
        assert (sum(one for one, _ in money), sum(one for _, one in money)) == (staked, returned)
        assert [tally.life.rounds for tally in tallies] == [30, 30]
        assert await harness.store.events("RETURN_OUT_OF_BAND", before=0, limit=9) == []


async def test_a_round_that_outlives_its_instance_is_counted_where_it_began(tmp_path: Path) -> None:
    async with open_harness(tmp_path, ended=False) as harness:
        anna = Player(harness)
        await anna.sit()
        await anna.play()
        harness.clock.tick(1500)
        await anna.start()
        tally = await tally_of(harness)
        assert tally.life.rounds == 1
        clock = harness.clock
    async with open_harness(tmp_path, clock=clock) as harness:
        anna.harness = harness
        bert = Player(harness, name="bert")
        await bert.sit()
        await bert.play()
        assert (await tally_of(harness)).life.rounds == 2  # his instance has another order
        await anna.finish_round()
        assert (await tally_of(harness)).life.rounds == 3
    async with open_harness(tmp_path, clock=clock) as harness:
        assert (await tally_of(harness)).life.rounds == 3


async def test_a_round_that_was_passed_over_brings_its_money_when_it_ends(
    harness: ServiceHarness, anna: Player
) -> None:
    await anna.sit()
    harness.clock.tick(1500)
    await anna.start()
    harness.clock.tick(PATIENCE_MS)
    await harness.services.monitoring.poll()
    assert await harness.services.monitoring.measured() == ([], 1)
    final = read_statement((await anna.finish_round()).envelope)
    harness.clock.tick(LATE_PERIOD_MS)
    tally = await tally_of(harness)
    assert sum(staked for staked, _ in tally.money["EUR"].values()) == int(final["staked_minor"])
    assert (await harness.services.monitoring.measured())[1] == 0


async def test_a_void_is_counted_by_what_would_have_been(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    harness.clock.tick(1500)
    await anna.start(100, trips=50)
    await void(harness, anna.round["round_id"])
    tally = await tally_of(harness)
    assert (tally.life.rounds, tally.voids, tally.unseen, tally.money) == (1, 1, 0, {})
    assert sum(tally.life.counts["trips"].values()) == 1
    assert tally.life.counts["main"] == {"-2": 1}  # the default decisions give the round up


async def test_one_look_reads_no_more_than_its_batches_and_the_next_goes_on(
    harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitoring, "BATCH", 2)
    monkeypatch.setattr(monitoring, "BATCHES_MAX", 3)
    await anna.sit()
    for _ in range(4):
        await anna.play()
    count = (await harness.store.instances(alive_only=True))[0].statement_no
    assert count > 6
    before = harness.store.writer.changes
    assert await harness.services.monitoring.poll() == 6
    assert harness.store.writer.changes == before + 1  # all batches of a look are one commit
    assert await harness.services.monitoring.poll() == min(6, count - 6)


async def test_while_a_round_is_waited_for_nothing_is_committed(
    harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    await anna.sit()
    harness.clock.tick(1500)
    await anna.start()
    while await harness.services.monitoring.poll():
        pass
    commits: list[object] = []
    monkeypatch.setattr(harness.store, "commit", commits.append)
    for _ in range(3):
        assert await harness.services.monitoring.poll() == 0
    assert commits == []


@pytest.mark.parametrize(
    ("alarm", "before", "after", "reason"),
    [
        (
            Reading("life", "main", 240, 0.97825, 0.5, 0.91234567, 1.04, 12.345, 9.21),
            "exact 0.978250",
            "measured 0.500000, band 0.912346..1.040000, 240 rounds, ln E 12.35, limit 9.21",
            "BELOW",
        ),
        (
            Reading("recent", "trips", 3, 0.965, 7.0, None, 1.04, math.inf, 9.21),
            "exact 0.965000",
            "measured 7.000000, band ..1.040000, 3 rounds, no fair deal gives this, limit 9.21",
            "ABOVE",
        ),
        (
            Reading("life", "showdown", 240, None, None, None, None, 10.0, 9.21),
            "",
            "240 rounds, ln E 10.00, limit 9.21",
            "FREQUENCIES",
        ),
    ],
    ids=["a band", "a bound", "frequencies"],
)
def test_the_event_of_an_alarm_has_the_exact_and_the_measured_return(
    alarm: Reading, before: str, after: str, reason: str
) -> None:
    body = dict(alarm_draft("uth-solo", alarm, NOW_MS).body)
    expected = {
        "after": after,
        "code": "RETURN_OUT_OF_BAND",
        "reason": reason,
        "subject": f"uth-solo {alarm.figure} {alarm.series}",
        "time": format_time(NOW_MS),
        **({"before": before} if before else {}),
    }
    assert {name: value for name, value in body.items() if value != ""} == expected


async def test_a_leader_that_was_overtaken_closes_no_guard(
    harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lead has moved in the middle of a look: the second of the two commits is refused, and rounds go on."""
    await anna.sit()
    await anna.play()
    genuine = harness.store.commit

    async def overtaken(change: Change) -> tuple[Signed, ...]:
        monkeypatch.setattr(harness.store, "commit", genuine)
        assert await Monitoring(store=harness.store, clock=harness.clock).poll()
        return await genuine(change)

    monkeypatch.setattr(harness.store, "commit", overtaken)
    with pytest.raises(OvertakenError):
        await harness.services.monitoring.poll()
    assert not harness.services.availability.guard("store").closed
    await anna.play()
    assert (await tally_of(harness)).life.rounds == 2
