"""`certify monitor`: what the server counts, from its export or its log; what decisions cost; a server that cheats."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from certification import monitor
from certification.__main__ import main
from certification.decided import Decided, cost_of
from certification.rtp.strategy import Strategy
from rgs.core.hands import evaluate
from rgs.core.returns.distributions import load_laws
from rgs.core.returns.tally import format_tally, parse_tally
from rgs.core.statements import parse_line
from rgs.service.admin.monitoring import PATIENCE_MS
from rng.shuffle import transcript_to_deck
from tests.support.log.logs import make_log
from tests.support.records.factory import RecordFactory
from tests.support.records.ready_made import large_factory
from tests.support.records.table_day import table_day
from tests.support.service.harness import open_harness
from tests.support.service.monitored import UTH, as_people_do, checking, final_of, folding, raising, seats
from tests.support.service.oracles import export_lines
from tests.support.service.player import Player

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def strategy() -> Strategy:
    return Strategy(UTH)


def written(folder: Path, lines: list[bytes], name: str = "export.jsonl") -> str:
    path = folder / name
    path.write_bytes(b"".join(line.rstrip(b"\n") + b"\n" for line in lines))
    return str(path)


class Cheating(RecordFactory):
    """Where the player's seven cards are the better ones, it shuffles again."""

    def draw(self, worker: Any) -> tuple[int, int, bytes]:
        draw_no, reseeds, transcript = super().draw(worker)
        deck = transcript_to_deck(transcript)
        if evaluate(deck[:2] + deck[4:9]) > evaluate(deck[2:9]):  # type: ignore[arg-type]
            transcript = self.random.transcript()
        return draw_no, reseeds, transcript


def cheated(rounds: int, seed: str = "cheating") -> list[bytes]:
    factory = Cheating(seed)
    one = factory.start("rgs-1")
    for _ in range(rounds // 25):
        player = factory.open(one)
        factory.buy(one, player, 90_000)
        for _ in range(25):
            factory.deal(one, [player], {"ante": 100, "trips": 50})
            factory.act(player, ["play_4x"])
            factory.settle(one, player)
    return factory.lines


async def test_it_counts_what_the_server_counts(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        for game in ("uth-solo", "casino-holdem"):
            player = Player(harness, game=game, name=game)
            await player.sit(50_000)
            for _ in range(8):
                await (player.play(50, trips=50) if game == "uth-solo" else player.play(50, aa=50))
        while await harness.services.monitoring.poll():
            pass
        measured, _ = await harness.services.monitoring.measured()
    watch = monitor.run([written(tmp_path, list(export_lines(tmp_path)))])
    assert watch.finish() == 0
    for one in measured:
        assert format_tally(watch.rulesets[one.ruleset_sha256].tally) == format_tally(one.tally)
        assert parse_tally(format_tally(one.tally)).life.rounds == 8
    assert monitor.PATIENCE_MS == PATIENCE_MS


def test_a_large_record_from_its_export_and_from_its_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    factory = large_factory()
    export = written(tmp_path, factory.lines)
    make_log(
        tmp_path / "log",
        [b"a first entry that names another shard", *(parse_line(line).envelope for line in factory.lines)],
    )
    assert main(["monitor", export]) == 0
    result = capsys.readouterr().out
    assert main(["monitor", str(tmp_path / "log")]) == 0
    assert capsys.readouterr().out == result
    # A table of three: its first seat counts. Of the two voids one has revealed its cards.
    assert "uth-seven-box: 1 rounds (0 void, 2 seats not counted)" in result
    assert "uth-solo: 3 rounds (2 void, 1 seats not counted)" in result
    assert "casino-holdem: 2 rounds" in result
    assert result.endswith("0 rounds are open, or wait for one that began before them\nwithin the bands\n")


def test_a_server_that_cheats_alarms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export = written(tmp_path, cheated(1_000))
    assert main(["monitor", export]) == 1
    result = capsys.readouterr().out
    assert "ALARM" in result
    assert "showdown life: alarmed, first seen at 1,000 rounds" in result
    assert result.endswith("alarm\n")
    assert main(["monitor", "--json", export]) == 1
    document = json.loads(capsys.readouterr().out)
    (ruleset,) = document["rulesets"]
    assert (document["verdict"], ruleset["rounds"], ruleset["decisions"]) == ("alarm", 1_000, None)
    showdown = ruleset["readings"][0]
    assert showdown["measured"] < showdown["low"]
    assert float(showdown["evidence"]) > showdown["limit"]


def test_rounds_wait_for_those_that_began_before_them_and_not_for_ever(tmp_path: Path) -> None:
    factory = RecordFactory("waiting")
    one = factory.start("rgs-1")
    anna, bert = factory.open(one), factory.open(one)
    for player in (anna, bert):
        factory.buy(one, player, 90_000)
    factory.deal(one, [anna], {"ante": 100})
    for _ in range(3):
        factory.deal(one, [bert], {"ante": 100})
        factory.act(bert, ["play_4x"])
        factory.settle(one, bert)
    watch = monitor.run([written(tmp_path, factory.lines)])
    assert (watch.finish(), watch.rulesets) == (4, {})
    factory.clock_ms += PATIENCE_MS
    factory.deal(one, [bert], {"ante": 100})
    factory.act(bert, ["play_4x"])
    factory.settle(one, bert)
    watch = monitor.run([written(tmp_path, factory.lines)])
    assert (watch.finish(), watch.rulesets[UTH.sha256].tally.life.rounds) == (1, 4)
    factory.act(anna, ["check", "check", "fold"], by="rule")
    factory.settle(one, anna)
    watch = monitor.run([written(tmp_path, factory.lines)])
    assert (watch.finish(), watch.rulesets[UTH.sha256].tally.life.rounds) == (0, 5)


def test_files_that_overlap_count_each_round_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = large_factory().lines
    whole = monitor.run([written(tmp_path, lines)])
    # the second ends a deal of three seats, and begins with what was open
    first, second = written(tmp_path, lines[:29], "a"), written(tmp_path, [*lines[:4], *lines[20:]], "b")
    for places, again in (([first, second], 4), ([first, first, second], 11), ([first, second, second], 13)):
        watch = monitor.run(places)
        assert watch.finish() == whole.finish() == 0
        assert {name: format_tally(one.tally) for name, one in watch.rulesets.items()} == {
            name: format_tally(one.tally) for name, one in whole.rulesets.items()
        }
        assert watch.unread["rounds that came before"] == again
    assert main(["monitor", first, second]) == 0
    assert "not counted: 4 rounds that came before" in capsys.readouterr().out
    cut = written(tmp_path, lines[:10], "cut")  # an opening, its final in the next file, the opening once more before
    assert monitor.run([cut, written(tmp_path, lines[:13], "next")]).unread == {"rounds that came before": 1}


def test_another_server_with_instances_of_the_same_names_counts(tmp_path: Path) -> None:
    both = [written(tmp_path, cheated(25, seed), seed) for seed in ("one", "two")]
    (watched,) = monitor.run(both).rulesets.values()
    assert watched.tally.life.rounds == 50


def test_what_cannot_be_judged_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    factory = large_factory()
    finals = [line for line in factory.lines if b"round-final" in line]
    assert main(["monitor", written(tmp_path, finals)]) == 2
    result = capsys.readouterr().out
    assert f"not counted: {len(finals)} finals without their opening\n" in result
    assert result.endswith("nothing to judge\n")
    for place, reason in (
        (str(tmp_path / "none.jsonl"), "No such file"),
        (written(tmp_path, [b"{}"], "broken.jsonl"), "line 1"),
        (str(tmp_path), "there is no checkpoint"),
    ):
        assert main(["monitor", place]) == 2
        assert reason in capsys.readouterr().err
    envelope = parse_line(factory.lines[0]).envelope
    make_log(tmp_path / "log", [envelope, b"{}"])
    assert main(["monitor", str(tmp_path / "log")]) == 2
    assert "statement 2" in capsys.readouterr().err


def test_rulesets_that_are_not_shipped_are_counted_and_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = written(tmp_path, large_factory().lines)
    monkeypatch.setattr(monitor, "load_laws", lambda ruleset: None if ruleset.id == "uth-solo" else load_laws(ruleset))

    def renamed(kind: str, _: int, body: dict[str, Any]) -> None:
        if kind == "round_opening" and body["deal"]["ruleset"]["id"] == "casino-holdem":
            body["deal"]["ruleset"]["id"] = "elsewhere"

    assert monitor.run([export]).unread == {"rounds of uth-solo, which has no certificate here": 4}
    watch = monitor.run([written(tmp_path, large_factory(renamed, seed="other").lines, "other.jsonl")])
    assert watch.unread["rounds of elsewhere, which has no certificate here"] == 2
    assert UTH.sha256 not in watch.rulesets


# --- decisions --------------------------------------------------------------------------------------------------------


def test_best_play_costs_nothing_and_a_mistake_what_it_is_worth(strategy: Strategy) -> None:
    for seat in seats("costs", 30, raising):
        final = final_of(seat)
        advice = strategy.advise(seat.hole_cards)
        (taken,) = seat.actions
        assert cost_of(strategy, final) == max(advice.values.values()) - advice.values[taken.action]
    by_best_play = 0
    for seat in as_people_do("costs", 60):
        final = final_of(seat)
        costs = [strategy.advise(seat.hole_cards, seat.board[:shown]) for shown in (0, 3, 5)[: len(seat.actions)]]
        expected = sum(
            max(one.values.values()) - one.values[taken.action] for one, taken in zip(costs, seat.actions, strict=True)
        )
        assert cost_of(strategy, final) == expected
        by_best_play += not expected
    assert by_best_play > 10


def test_what_a_void_cut_off_costs_what_the_default_decisions_do(strategy: Strategy) -> None:
    for seat in seats("cut", 5, folding):
        whole = final_of(seat)
        assert cost_of(strategy, {**whole, "actions": whole["actions"][:1]}) == cost_of(strategy, whole)


@pytest.mark.parametrize("choose", [raising, folding, checking])
def test_with_its_costs_any_play_has_the_mean_of_best_play(strategy: Strategy, choose: Any) -> None:
    laws = load_laws(UTH)
    assert laws is not None
    watched = Decided(strategy, laws)
    assert watched.adjusted() is None
    n = 1_200
    for seat in seats("any play", n, choose):
        final = final_of(seat)
        won = sum(int(row["returned_minor"]) - int(row["stake_minor"]) for row in final["settlement"])
        watched.add([(final, Fraction(won, 100))])
    found = watched.adjusted()
    assert found is not None
    assert found.rounds == n
    assert not found.is_alarming
    assert found.expected == pytest.approx(float(laws.main.mean) - found.cost)
    assert found.cost > 0.1
    assert abs(found.measured - found.expected) < 4 * math.sqrt(float(laws.main.variance) / n)


def test_decisions_are_told_and_a_cheat_is_seen_through_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, strategy: Strategy
) -> None:
    monkeypatch.setattr(monitor, "_strategy", lambda _: strategy)
    export = written(tmp_path, cheated(500))
    assert main(["monitor", "--decisions", export]) == 1
    result = capsys.readouterr().out
    assert "decisions of 500 rounds cost" in result
    assert "expected of these players" in result
    assert main(["monitor", "--decisions", "--json", export]) == 1
    decisions = json.loads(capsys.readouterr().out)["rulesets"][0]["decisions"]
    assert decisions["evidence"] >= decisions["limit"]
    assert decisions["measured"] < decisions["expected"]


@pytest.mark.parametrize("ruleset", ["uth-online", "uth-seven-box"])
def test_decisions_at_a_table_count_with_the_mean_of_its_seats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strategy: Strategy, ruleset: str
) -> None:
    monkeypatch.setattr(monitor, "_strategy", lambda _: strategy)
    watch = monitor.run([written(tmp_path, table_day(ruleset).factory.lines)], decisions=True)
    assert watch.finish() == 0
    (watched,) = watch.rulesets.values()
    assert watched.decided is not None
    found = watched.decided.adjusted()
    assert found is not None
    assert (found.rounds, found.is_alarming) == (3, False)
    assert found.cost > 0
    # Rounding of three means, each by less than a hundredth.
    (main,) = [one for one in watched.tally.readings(watched.laws) if (one.figure, one.series) == ("main", "life")]
    assert main.measured is not None
    assert 0 <= found.measured - main.measured < 0.01
