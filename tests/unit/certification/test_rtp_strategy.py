"""Best play as it is told: the grid, the advice, the picture; and the rounds that are played by it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from certification import simulate as simulation
from certification import strategy as command
from certification.__main__ import main
from certification.engines import EngineChoice, EngineError
from certification.rtp.certificate import Enumerated
from certification.rtp.returns import action_frequencies
from certification.rtp.strategy import Decisions, Strategy, hole_count, hole_name, hole_shares
from rgs.core.cards import parse_cards
from rgs.core.errors import InvalidFieldError
from rgs.core.games.types import Action
from rgs.core.rulesets import load_ruleset

pytestmark = pytest.mark.slow


@pytest.fixture
def uth_strategy(strategies: dict[tuple[str, bool], Strategy]) -> Strategy:
    return strategies["uth-solo", False]


def decisions_of(enumerated: Enumerated) -> Decisions:
    best = enumerated.play
    return Decisions(enumerated.payments.ruleset, best.preflop, best.flop, best.river)


def test_holes_have_their_usual_names_and_numbers() -> None:
    names = [hole_name(number) for number in range(169)]
    assert len(set(names)) == 169
    assert sum(hole_count(number) for number in range(169)) == 1326
    assert [hole_count(names.index(name)) for name in ("AA", "AKs", "AKo")] == [6, 4, 12]


def test_the_grid_is_the_known_strategy(uth_strategy: Strategy) -> None:
    """The largest bet before the flop is made with 69 holes: any ace, any pair but twos, and so downwards."""
    raised = {hole_name(number) for number in range(169) if uth_strategy.advise_hole(number).best == (Action.PLAY_4X,)}
    ranks = "AKQJT98765432"
    expected = {rank * 2 for rank in ranks[:-1]} | {f"A{rank}{suit}" for rank in ranks[1:] for suit in "so"}
    expected |= {f"K{rank}s" for rank in ranks[2:]} | {f"K{rank}o" for rank in "QJT98765"}
    expected |= {f"Q{rank}s" for rank in "JT9876"} | {f"Q{rank}o" for rank in "JT98"} | {"JTs", "J9s", "J8s", "JTo"}
    assert raised == expected
    assert len(raised) == 69
    value = sum(uth_strategy.hole_value(number) * hole_count(number) for number in range(169)) / 1326
    assert value == Fraction(-50643648973, 2317817502000)


def test_calls_come_as_often_as_they_are_counted(
    strategies: dict[tuple[str, bool], Strategy], casino: Enumerated
) -> None:
    strategy = strategies["casino-holdem", True]
    shares = hole_shares(strategy)
    # A player who also makes AA calls more often.
    assert sum(share * hole_count(number) for number, share in shares.items()) / 1326 == Fraction(31846, 38675)
    assert action_frequencies(casino.payments, casino.counts)["call"] < Fraction(31846, 38675)


def test_advice_names_both_actions_where_they_are_worth_the_same(casino: Enumerated) -> None:
    decisions, hole, flop = decisions_of(casino), parse_cards(["7h", "9s"]), parse_cards(["2c", "Qd", "Ah"])
    assert decisions.decide(hole, flop) is Action.FOLD
    assert decisions.decide(hole, flop, raise_ties=True) is Action.CALL


def test_decisions_are_those_of_the_advice(uth_strategy: Strategy) -> None:
    hole, board = parse_cards(["Kc", "4d"]), parse_cards(["4c", "9d", "Th", "2s", "2d"])
    for shown in (0, 3, 5):
        best = uth_strategy.advise(hole, board[:shown]).best
        assert best == (uth_strategy.decisions.decide(hole, board[:shown]),)


@pytest.mark.parametrize(
    ("hole", "board"), [("As", ""), ("As As", ""), ("As Kd", "As 2c 3c"), ("As Kd", "2c"), ("As Kd", "2c 3c 4c 5c")]
)
def test_other_cards_are_refused(hole: str, board: str, uth_strategy: Strategy) -> None:
    with pytest.raises(InvalidFieldError):
        uth_strategy.advise([parse_cards([card])[0] for card in hole.split()], parse_cards(board.split()))


def test_the_command_tells_grid_and_advice(
    strategies: dict[tuple[str, bool], Strategy],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    made = {"uth-solo": strategies["uth-solo", False], "casino-holdem": strategies["casino-holdem", True]}
    monkeypatch.setattr(command, "Strategy", lambda ruleset, **_: made[ruleset.id])
    pictures = [tmp_path / name for name in ("one.png", "two.svg", "three.svg")]
    assert main(["strategy", "uth-solo", "--picture", str(pictures[0])]) == 0
    grid = capsys.readouterr().out.splitlines()
    assert grid[1].startswith("AA  raise4  AKs raise4")
    assert grid[13].endswith("22  check")
    for picture in pictures[1:]:
        assert main(["strategy", "casino-holdem", "--picture", str(picture)]) == 0
    assert "share of flops that are called" in capsys.readouterr().out
    assert pictures[0].read_bytes().startswith(b"\x89PNG")
    assert pictures[1].read_bytes() == pictures[2].read_bytes()
    assert main(["strategy", "uth-solo", "AsKd", "2c 3d 4h"]) == 0
    said = capsys.readouterr().out
    assert "check" in said
    assert "raise2" in said
    assert main(["strategy", "uth-solo", "AsAs"]) == 2
    assert "twice" in capsys.readouterr().err
    assert main(["strategy", "uth-solo", "AsKd", "2c"]) == 2
    assert "decides on 0, 3, 5 cards" in capsys.readouterr().err


def test_a_grid_says_whose_it_is(strategies: dict[tuple[str, bool], Strategy]) -> None:
    kinds = [("uth-solo", False), ("uth-lugano", True), ("casino-holdem", True)]
    titles = [command.grid(strategies[kind])["title"] for kind in kinds]
    assert titles == [
        "uth-solo: best play before the flop",
        "uth-lugano: best play before the flop by who makes trips too",
        "casino-holdem: share of flops that are called by who makes aa too",
    ]


def test_a_share_is_always_or_never_only_if_it_is() -> None:
    reported = [command._reported_share(Fraction(share, 100_000)) for share in (0, 1, 49_950, 99_949, 99_999, 100_000)]
    assert reported == ["0.0%", "0.1%", "50.0%", "99.9%", "99.9%", "100.0%"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["", "2c3d4h"], "needs the two cards"),
        (["--picture", "grid.pdf"], "does not end in .png or .svg"),
        (["--picture", "grid"], "does not end in .png or .svg"),
    ],
)
def test_other_arguments_are_refused_before_the_work(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["strategy", "uth-solo", *arguments])
    assert caught.value.code == 2
    assert problem in capsys.readouterr().err


# --- rounds played by it ---


@pytest.mark.parametrize("name", ["uth", "casino"])
def test_rounds_of_the_production_code_agree_with_the_exact_figures(name: str, request: pytest.FixtureRequest) -> None:
    enumerated: Enumerated = request.getfixturevalue(name)
    ruleset = enumerated.payments.ruleset
    tally = simulation.simulate(decisions_of(enumerated), 6_000, seed=b"\x01")
    assert tally.rounds == sum(tally.actions.values()) == 6_000
    comparisons = simulation.compare(ruleset, enumerated, tally)
    assert {"ante", ruleset.rules.side_bet, ruleset.rules.decided_bet, "fold"} <= {row.name for row in comparisons}
    assert max(abs(row.z) for row in comparisons) < 4.5
    assert simulation.simulate(decisions_of(enumerated), 6_000, seed=b"\x02") != tally


def test_a_player_who_plays_otherwise_is_seen(casino: Enumerated) -> None:
    calls = replace(decisions_of(casino), flop=np.ones_like(casino.play.flop))
    tally = simulation.simulate(calls, 4_000, seed=b"\x01")
    outside = {row.name for row in simulation.compare(load_ruleset("casino-holdem"), casino, tally) if abs(row.z) > 4.5}
    assert {"fold", "call"} <= outside


def test_the_simulation_is_the_same_in_other_processes(casino: Enumerated, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "_CHUNK", 150)
    seen: list[int] = []
    alone = simulation.simulate(decisions_of(casino), 400, seed=b"\x03", reported=seen.append)
    assert seen == [150, 300, 400]
    assert simulation.simulate(decisions_of(casino), 400, seed=b"\x03", engine=EngineChoice(workers=2)) == alone


def test_the_command_simulates(
    casino: Enumerated, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulation, "Enumerated", lambda _: casino)
    # Of fresh decks one run of three hundred rounds in twenty thousand lies beyond 4.5: the pay-outs are so skewed.
    assert main(["simulate", "casino-holdem", "--rounds", "300", "--workers", "1", "--z", "30"]) == 0
    said = capsys.readouterr().out
    assert "decks from the production generator" in said
    assert "all 5 figures lie within 30.0" in said
    assert main(["simulate", "casino-holdem", "--rounds", "300", "--workers", "1", "--seed", "00"]) == 0
    assert "all 5 figures lie within 4.5" in capsys.readouterr().out
    assert main(["simulate", "casino-holdem", "--rounds", "300", "--workers", "1", "--seed", "00", "--z", "0.001"]) == 1
    assert "outside 0.001 standard errors" in capsys.readouterr().out
    assert main(["simulate", "baccarat"]) == 2
    with pytest.raises(SystemExit):
        main(["simulate", "casino-holdem", "--rounds", "0"])


def test_a_simulation_that_has_lost_a_process_has_no_verdict(
    casino: Enumerated, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object) -> NoReturn:
        raise EngineError("a process of the pool was lost")

    monkeypatch.setattr(simulation, "Enumerated", lambda _: casino)
    monkeypatch.setattr(simulation, "over", lost)
    assert main(["simulate", "casino-holdem", "--rounds", "10"]) == 2
    assert capsys.readouterr().err == "certify simulate: a process of the pool was lost\n"


@pytest.mark.parametrize("interval", ["nan", "inf", "-1", "0", "x"])
def test_an_interval_that_everything_lies_within_is_refused(interval: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["simulate", "casino-holdem", "--rounds", "300", "--z", interval])
    assert caught.value.code == 2
    assert "argument --z" in capsys.readouterr().err
