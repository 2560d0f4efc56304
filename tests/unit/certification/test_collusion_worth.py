"""`certify collusion worth`: exact values against the production rules card by card, and the figures of a sample."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest

from certification.__main__ import main
from certification.collusion.values import (
    ALL,
    FLOPS_OF_BOARD,
    OWN,
    Own,
    flop_margin,
    game_of,
    new_memo,
    river_margin,
    value_hole,
)
from certification.collusion.worth import Worth, worth_of
from certification.rtp.enumeration import hole_numbers
from certification.rtp.strategy import Decisions, Strategy
from rgs.core import games
from rgs.core.cards import FULL_DECK, Card, parse_cards
from rgs.core.games.types import Action, Phase, Seat
from rgs.core.rulesets import load_ruleset
from tests.support.service.monitored import seeded
from tests.unit.certification.conftest import Strategies

pytestmark = pytest.mark.slow

BOXES = load_ruleset("uth-seven-box")
ANTE = 10
WAYS = {
    "raise4": [Action.PLAY_4X],
    "raise2": [Action.CHECK, Action.PLAY_2X],
    "raise1": [Action.CHECK, Action.CHECK, Action.PLAY_1X],
    "fold": [Action.CHECK, Action.CHECK, Action.FOLD],
}
Cards = tuple[Card, ...]


@pytest.fixture(scope="module")
def strategy(strategies: Strategies) -> Strategy:
    return strategies["uth-seven-box", False]


def net(hole: Cards, board: Cards, dealer: Cards, way: str) -> Fraction:
    """What the production rules pay, in antes."""
    bets = games.check_stakes(BOXES, {"ante": ANTE})
    seat = Seat(BOXES, 1, hole, dealer, board, (), bets, 100 * ANTE, Phase.PREFLOP)
    for action in WAYS[way]:
        seat = games.apply(seat, action)
    return Fraction(games.settle(seat).net_minor, ANTE)


def dealt(chance: random.Random, out: int) -> tuple[Cards, Cards, Cards]:
    """A hole, so many dead cards, and the others."""
    deck = chance.sample(FULL_DECK, 52)
    return tuple(deck[:2]), tuple(deck[2 : 2 + out]), tuple(deck[2 + out :])


def dealers(left: Cards, board: Cards) -> Iterator[Cards]:
    yield from combinations([card for card in left if card not in board], 2)


def total(values: Iterable[Fraction]) -> Fraction:
    return sum(values, Fraction(0))


def term_by_term(decisions: Decisions, hole: Cards, left: Cards) -> list[Fraction]:
    """The four values of a hole by the production rules, each deal settled by itself."""
    paid = {
        (frozenset(board), way): total(net(hole, board, dealer, way) for dealer in dealers(left, board))
        for board in combinations(left, 5)
        for way in WAYS
    }
    at_once = total(paid[frozenset(board), "raise4"] for board in combinations(left, 5))
    totals = [Fraction(0)] * 3
    for flop in combinations(left, 3):
        bet, last, own_last = Fraction(0), Fraction(0), Fraction(0)
        for rest in combinations([card for card in left if card not in flop], 2):
            board = frozenset(flop + rest)
            bet += paid[board, "raise2"]
            last += max(paid[board, "raise1"], paid[board, "fold"])
            is_bet = decisions.decide(hole, flop + rest) is Action.PLAY_1X
            own_last += paid[board, "raise1" if is_bet else "fold"]
        is_bet = decisions.decide(hole, flop) is Action.PLAY_2X
        totals = [
            so_far + more
            for so_far, more in zip(
                totals, (bet if is_bet else own_last, bet if is_bet else last, max(bet, last)), strict=True
            )
        ]
    of_raise = at_once * FLOPS_OF_BOARD
    if decisions.decide(hole, ()) is Action.PLAY_4X:
        return [of_raise, of_raise, of_raise, max(of_raise, totals[2])]
    return [*totals, max(of_raise, totals[2])]


@pytest.mark.parametrize("hole", ["Kd5c", "Jd9c", "7h4d", "Th8h"])
def test_a_hole_is_worth_what_the_production_rules_pay_over_all_that_is_left(strategy: Strategy, hole: str) -> None:
    """Most cards are dead here, so that the rest can be settled deal by deal; two suits are left, for flushes."""
    own = parse_cards([hole[:2], hole[2:]])
    others = [card for card in FULL_DECK if card not in own]
    left = tuple(seeded(hole).sample([card for card in others if card // 13 in (0, 1)], 9))
    dead = np.array([card for card in others if card not in left], np.int64)
    game = game_of(strategy.payments)
    found = value_hole(game, Own.of(strategy.decisions), new_memo(), np.array(own, np.int64), dead)
    expected = term_by_term(strategy.decisions, own, left)
    assert [Fraction(int(value), strategy.payments.scale) for value in found] == expected
    assert expected == sorted(expected)
    assert expected[ALL] > expected[OWN]


@pytest.mark.parametrize("out", [0, 2, 12])
def test_the_bet_on_the_river_against_every_hand_of_the_dealer(strategy: Strategy, out: int) -> None:
    chance, game = seeded(f"river {out}"), game_of(strategy.payments)
    for _ in range(4):
        hole, dead, left = dealt(chance, out)
        board = left[:5]
        found = river_margin(game, np.array(hole), np.array(board), np.array(dead, np.int64))
        margins = [net(hole, board, dealer, "raise1") + 2 for dealer in dealers(left, board)]
        assert len(margins) == comb(45 - out, 2)
        assert Fraction(found, strategy.payments.scale) == sum(margins)


def test_the_bet_at_the_flop_is_the_sum_over_its_boards(strategy: Strategy) -> None:
    chance, game, memo = seeded("flop"), game_of(strategy.payments), new_memo()
    for out in (0, 4, 12):
        hole, dead, left = dealt(chance, out)
        own, flop, known = np.array(hole), np.array(left[:3]), np.array(dead, np.int64)
        found = flop_margin(game, memo, own, flop, known)
        if not out:
            values = strategy.advise(hole, left[:3]).values
            margin = values[Action.PLAY_2X] - values[Action.CHECK]
            assert Fraction(found, 1081 * 990 * strategy.payments.scale) == margin
            continue
        expected = Fraction(0)
        for rest in combinations(left[3:], 2):
            board = (*left[:3], *rest)
            margin = Fraction(river_margin(game, own, np.array(board), known), strategy.payments.scale)
            # The bet of two antes pays what the bet of one does, and the play bet once more.
            expected += min(margin, Fraction(0)) + _of_play(strategy, hole, board, left)
        assert Fraction(found, strategy.payments.scale) == expected


def _of_play(strategy: Strategy, hole: Cards, board: Cards, left: Cards) -> Fraction:
    """What one ante's worth of the play bet wins over the dealer's hands."""
    game = game_of(strategy.payments)
    dead = np.array([card for card in FULL_DECK if card not in {*hole, *left}], np.int64)
    smaller, larger = (
        river_margin(game._replace(river_multiple=multiple), np.array(hole), np.array(board), dead)
        for multiple in (1, 2)
    )
    return Fraction(larger - smaller, strategy.payments.scale)


def test_with_nobody_known_a_hole_has_its_certified_value_in_every_way(strategy: Strategy) -> None:
    game, own, memo = game_of(strategy.payments), Own.of(strategy.decisions), new_memo()
    for text in ("Kd5c", "9h8h"):
        hole = parse_cards([text[:2], text[2:]])
        found = value_hole(game, own, memo, np.array(hole, np.int64), np.zeros(0, np.int64))
        unit = FLOPS_OF_BOARD * comb(50, 5) * comb(45, 2) * strategy.payments.scale
        certified = strategy.hole_value(int(hole_numbers()[hole[0], hole[1]]))
        assert [Fraction(int(value), unit) for value in found] == [certified] * 4


# --- a sample ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def few(strategy: Strategy) -> Worth:
    return worth_of(strategy.play, 6, 16, 1)


def test_nobody_known_is_worth_nothing_exactly(strategy: Strategy) -> None:
    worth = worth_of(strategy.play, 0, 3, 1)
    assert (worth.worth.value, worth.worth.error) == (0, 0)
    assert {(step.value, step.error) for step in worth.steps} == {(0, 0)}
    assert worth.informed.value == worth.exact


def test_a_sample_has_the_certified_value_and_its_parts_add_up(few: Worth) -> None:
    assert few.exact == pytest.approx(-0.021849713763, abs=1e-12)
    assert abs(few.sampled.value - few.exact) < 4.5 * few.sampled.error
    assert sum(step.value for step in few.steps) == pytest.approx(few.worth.value)
    assert all(step.value >= 0 for step in few.steps)
    assert few.worth.error < few.sampled.error / 5  # the same deals for both
    low, high = few.worth.interval
    assert low < few.worth.value < high


def test_another_seed_is_another_sample_and_the_same_seed_the_same(strategy: Strategy, few: Worth) -> None:
    assert worth_of(strategy.play, 6, 16, 1) == few
    assert worth_of(strategy.play, 6, 2, 2).sampled != worth_of(strategy.play, 6, 2, 1).sampled


@pytest.mark.slow
def test_six_neighbours_are_worth_less_than_the_edge_of_the_house(strategy: Strategy) -> None:
    """So many deals show that there is a worth, and that the first decision is most of it."""
    worth = worth_of(strategy.play, 6, 300, 7, workers=2)
    assert abs(worth.sampled.value - worth.exact) < 4.5 * worth.sampled.error
    assert worth.worth.value > 3 * worth.worth.error
    assert worth.informed.value < 3 * worth.worth.error
    assert worth.steps[2].value > worth.steps[0].value > worth.steps[1].value > 0
    assert worth_of(strategy.play, 6, 20, 7) == worth_of(strategy.play, 6, 20, 7, workers=2)


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_for_people_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["collusion", "worth", "--ruleset", "uth-lugano", "--deals", "2", "--workers", "1", "--seed", "3"]
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "uth-lugano: the hole cards of 6 neighbours (12 cards) known, 2 deals of seed 3, antes per round"
    assert main([*command, "--json", "--known", "6"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["known"], document["deals"], document["seed"]) == (6, 2, 3)
    assert document["ruleset_sha256"] == load_ruleset("uth-lugano").sha256
    (line,) = (line for line in lines if line.startswith("worth of knowing"))
    assert line.split()[3] == f"{document['worth']['mean']:.6f}"
    assert document["informed"]["mean"] == document["own_exact"] + document["worth"]["mean"]


@pytest.mark.parametrize("ruleset", ["uth-online", "uth-solo", "casino-holdem"])
def test_a_ruleset_without_boxes_is_refused(ruleset: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collusion", "worth", "--ruleset", ruleset]) == 2
    reported = capsys.readouterr().err
    assert reported.startswith(f"certify collusion worth: {ruleset}: hole_cards ")
    assert "uth-seven-box" in reported


@pytest.mark.parametrize("options", [["--known", "7"], ["--deals", "1"], ["--deals", "x"], ["--seed", "-1"]])
def test_bad_options_are_usage_errors(options: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["collusion", "worth", "--ruleset", "uth-seven-box", *options])
    assert ended.value.code == 2
