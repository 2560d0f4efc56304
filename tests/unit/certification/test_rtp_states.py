"""The parts of the enumeration, each against the production code or a count by hand."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations
from math import comb
from pathlib import Path
from random import Random

import numpy as np
import pytest
from numba.core import config

import certification
from certification.rtp import boards
from certification.rtp.boards import count_boards, fill_cells
from certification.rtp.compiled import compiled
from certification.rtp.decisions import DECIDED, EITHER, OPENING, PASS, RAISE, REST
from certification.rtp.enumeration import hole_numbers
from certification.rtp.evaluator import SEVEN_CARD_HANDS, count_seven_card_hands, evaluator
from certification.rtp.flops import STATES, find_entry, flops, sum_boards
from certification.rtp.payments import payments_of
from certification.rtp.strategy import Strategy, hole_count
from rgs.core import games
from rgs.core.cards import FULL_DECK, Card, parse_cards
from rgs.core.games.types import Action, SeatStakes
from rgs.core.hands import Category, evaluate
from rgs.core.rulesets import Ruleset, load_ruleset
from tests.support.seeded import turn

pytestmark = pytest.mark.slow

# (hole, board): three, four and five of a suit, a board that plays, quads on board, a wheel, a royal, nothing at all.
SPOTS = [
    ("As Kd", "Qs Js 2s 7h 7d"),
    ("2c 2d", "Th 9h 8h 7h 2s"),
    ("4c 3c", "Ah Kh 9h 5h 2h"),
    ("7c 2d", "As Ks Qs Js Ts"),
    ("Ac 3d", "9c 9d 9h 9s Kd"),
    ("Ad 8h", "2c 3d 4s 5h Kd"),
    ("8s 9s", "Ts Js Qs 2d 3c"),
    ("2h 7c", "Ah Kc Td 9s 4h"),
]


def spots(count: int, seed: int) -> list[tuple[tuple[Card, ...], tuple[Card, ...]]]:
    """The spots above and random ones, as cards."""
    random = Random(seed)
    found = [(parse_cards(hole.split()), parse_cards(board.split())) for hole, board in SPOTS]
    for _ in range(count):
        cards = tuple(random.sample(FULL_DECK, 7))
        found.append((cards[:2], cards[2:]))
    return found


def settled(ruleset: Ruleset, hole: tuple[Card, ...], board: tuple[Card, ...], actions: list[Action]) -> Fraction:
    """The net win of these actions in antes, side bet included, over all dealer hands, by the production code."""
    limit = max(limits.min_minor for limits in ruleset.limits.values())
    bets = dict.fromkeys(ruleset.limits, limit)
    stakes = SeatStakes(1, bets, games.dearest_finish(ruleset, bets))
    total = 0
    left = [card for card in FULL_DECK if card not in hole + board]
    for dealer in combinations(left, 2):
        others = iter([card for card in left if card not in dealer])
        blocks = {"player": hole, "dealer": dealer, "flop": board[:3], "turn": board[3:4], "river": board[4:]}
        deck = [card for step in ruleset.deal_procedure for card in blocks.get(step.block) or (next(others),)]
        (seat,) = games.deal(ruleset, [*deck, *others], [stakes])
        for action in actions:
            seat = games.apply(seat, action)
        total += games.settle(seat).net_minor
    return Fraction(total, limit)


def test_seven_cards_are_worth_what_the_production_evaluator_says() -> None:
    tables, hands = evaluator().tables, evaluator().hands
    assert len(hands) == len({hand.key for hand in hands}) == 7462
    for node in range(tables.first_node[7], len(tables.step)):
        ranks = [rank for rank in range(13) for _ in range(tables.held[node, rank])]
        cards = [Card(place % 4 * 13 + rank) for place, rank in enumerate(ranks)]
        assert evaluate(cards) == hands[tables.rank_strength[node]]
    for size in (5, 6, 7):
        for suited in combinations(range(13), size):
            cards = [Card(rank) for rank in suited]
            strength = tables.flush_strength[sum(1 << rank for rank in suited)]
            assert evaluate(cards) == hands[strength]
            # Two more cards that pair the flush make no full house: it is still the flush.
            if size == 5:
                assert evaluate([*cards, Card(13 + suited[4]), Card(26 + suited[4])]) == hands[strength]


def test_seven_card_hands_come_as_often_as_is_known() -> None:
    counts = count_seven_card_hands(evaluator().tables)
    found: Counter[Category] = Counter()
    for hand, count in zip(evaluator().hands, counts.tolist(), strict=True):
        found[hand.category] += count
    assert sum(found.values()) == SEVEN_CARD_HANDS == comb(52, 7)
    # Closed forms: royal flushes, and quads with any three other cards.
    assert found[Category.ROYAL_FLUSH] == 4 * comb(47, 2)
    assert found[Category.QUADS] == 13 * comb(48, 3)
    assert found[Category.FULL_HOUSE] == 3_473_184


def test_states_stand_for_all_holes_and_flops_and_find_them_again() -> None:
    found, random = flops(), Random(1)
    states = found.states
    assert states.flop_weight.sum() == comb(52, 3)
    assert states.first_state[-1] == STATES
    weights = np.add.reduceat(states.weight, states.first_state[:-1])
    assert (weights == comb(49, 2)).all()
    for _ in range(500):
        cards = random.sample(range(52), 5)
        state = found.state(cards[:2], cards[2:])
        flop = int(np.searchsorted(states.first_state, state, side="right")) - 1
        alike = [*states.hole[state].tolist()], [*states.cards[flop].tolist()]
        # The same ranks, and the same pattern of suits: some renaming takes one to the other.
        assert any(
            {turn[card // 13] * 13 + card % 13 for card in cards[:2]} == set(alike[0])
            and {turn[card // 13] * 13 + card % 13 for card in cards[2:]} == set(alike[1])
            for turn in found.renamings.tolist()
        )


@pytest.mark.parametrize("exactly_two", [False, True])
def test_every_pair_of_hands_is_counted_on_a_board(exactly_two: bool) -> None:
    qualify = payments_of(load_ruleset("casino-holdem")).least_qualified
    boards, hands = count_boards(evaluator().tables, qualify, exactly_two=exactly_two), evaluator().hands
    cells = np.zeros((2, 3), dtype=np.int64)
    for hole, board in spots(6, 2):

        def worth(own: tuple[Card, ...], board: tuple[Card, ...] = board) -> tuple[int, ...]:
            if not exactly_two:
                return evaluate(own + board).key
            return max(evaluate(own + three).key for three in combinations(board, 3))

        expected: Counter[tuple[bool, int]] = Counter()
        mine = worth(hole)
        for dealer in combinations([card for card in FULL_DECK if card not in hole + board], 2):
            theirs = worth(dealer)
            expected[theirs >= hands[qualify].key, 0 if mine > theirs else 1 if mine < theirs else 2] += 1
        entry = find_entry(evaluator().tables, hole[0], hole[1], np.array(board))
        assert hands[boards.strength[entry]].key == mine
        fill_cells(cells, boards, entry, qualify)
        assert {(bool(row), column): int(cells[row, column]) for row in (0, 1) for column in (0, 1, 2)} == {
            (row, column): expected[row, column] for row in (False, True) for column in (0, 1, 2)
        }


RIVERS_OF = pytest.mark.parametrize(
    ("ruleset_id", "with_side_bet"), [("uth-solo", False), ("uth-lugano", True)]
)  # fmt: skip


@RIVERS_OF
def test_the_river_is_worth_what_the_production_code_pays(
    ruleset_id: str,
    with_side_bet: bool,
    strategies: dict[tuple[str, bool], Strategy],
    pytestconfig: pytest.Config,
) -> None:
    verify_rivers(strategies[ruleset_id, with_side_bet], spots(2, 3)[turn(pytestconfig, 3) :: 3])


@pytest.mark.slow_exhaustive
@RIVERS_OF
def test_each_of_these_rivers_is_worth_what_the_production_code_pays(
    ruleset_id: str, with_side_bet: bool, strategies: dict[tuple[str, bool], Strategy]
) -> None:
    verify_rivers(strategies[ruleset_id, with_side_bet], spots(12, 3))


def verify_rivers(strategy: Strategy, some: list[tuple[tuple[Card, ...], tuple[Card, ...]]]) -> None:
    with_side_bet, ruleset = strategy.play.with_side_bet, strategy.ruleset
    for hole, board in some:
        advice = strategy.advise(hole, board)
        # The side bet is settled by the production code too; where it is no part of the play, it is taken off.
        odds = ruleset.paytables["trips"].odds_for(evaluate(hole + board))
        trips = 0 if with_side_bet else -1 if odds.lost else Fraction(odds.wins, odds.per)
        for action, value in advice.values.items():
            paid = settled(ruleset, hole, board, [Action.CHECK, Action.CHECK, action])
            assert value == paid / 990 - trips


def test_the_flop_is_worth_the_sum_of_its_rivers(strategies: dict[tuple[str, bool], Strategy]) -> None:
    strategy = strategies["uth-lugano", True]
    hole, flop = parse_cards(["9s", "8s"]), parse_cards(["7s", "7d", "2s"])
    best = Fraction(0)
    for later in combinations([card for card in FULL_DECK if card not in hole + flop], 2):
        best += max(strategy.advise(hole, flop + later).values.values())
    assert strategy.advise(hole, flop).values[Action.CHECK] == best / 1081


def test_the_call_is_worth_what_the_production_code_pays(strategies: dict[tuple[str, bool], Strategy]) -> None:
    strategy = strategies["casino-holdem", True]
    hole, flop = parse_cards(["Ac", "Ad"]), parse_cards(["Ah", "9d", "8d"])
    random = Random(5)
    later = [tuple(random.sample([c for c in FULL_DECK if c not in hole + flop], 2)) for _ in range(4)]
    payments, values = strategy.payments, strategy.play.values
    for pair in later:  # every entry that the flop sums, without AA, which pays 7:1 on these five cards
        entry = find_entry(evaluator().tables, hole[0], hole[1], np.array(flop + pair))
        call = int(values[entry * 3 + OPENING]) + 2 * int(values[entry * 3 + DECIDED])
        assert Fraction(call, payments.scale) == settled(strategy.ruleset, hole, flop + pair, [Action.CALL]) - 7 * 990
    assert strategy.advise(hole, flop).values[Action.FOLD] == -2
    total = sum_boards(evaluator().tables, values, hole[0], hole[1], np.array(flop))
    called = Fraction(int(total[OPENING]) + 2 * int(total[DECIDED]), 1081 * 990 * payments.scale)
    assert strategy.advise(hole, flop).values[Action.CALL] == called + 7


@pytest.mark.parametrize(
    ("ruleset_id", "with_side_bet"), [("uth-solo", False), ("uth-lugano", True), ("casino-holdem", True)]
)
def test_flop_decisions_are_those_of_the_sums_term_by_term(
    ruleset_id: str, with_side_bet: bool, strategies: dict[tuple[str, bool], Strategy]
) -> None:
    strategy, random = strategies[ruleset_id, with_side_bet], Random(6)
    states = flops().states
    seen: Counter[int] = Counter()
    chosen = [random.randrange(STATES) for _ in range(600)]
    chosen += np.flatnonzero(strategy.play.flop == EITHER).tolist()
    for state in chosen:
        flop = int(np.searchsorted(states.first_state, state, side="right")) - 1
        hole = [Card(int(card)) for card in states.hole[state]]
        best = strategy.advise(hole, [Card(int(card)) for card in states.cards[flop]]).best
        decision = int(strategy.play.flop[state])
        seen[decision] += 1
        bets = [action in strategy.ruleset.rules.multiples for action in best]
        assert bets == {RAISE: [True], PASS: [False], EITHER: bets if len(bets) == 2 else []}[decision]
    assert min(seen[RAISE], seen[PASS]) > 50


@pytest.mark.slow_exhaustive
def test_a_hole_is_worth_the_sum_of_its_flops(strategies: dict[tuple[str, bool], Strategy]) -> None:
    strategy = strategies["uth-solo", False]
    hole = parse_cards(["Kc", "4d"])  # the closest decision before the flop
    raised = checked = 0
    values, tables = strategy.play.values, evaluator().tables
    for flop in combinations([card for card in FULL_DECK if card not in hole], 3):
        total = sum_boards(tables, values, hole[0], hole[1], np.array(flop)).tolist()
        raised += total[OPENING] + 4 * total[DECIDED]
        checked += max(total[OPENING] + 2 * total[DECIDED], total[REST])
    number = hole_numbers()[hole[0], hole[1]]
    assert strategy.play.raised(number) == raised * hole_count(number)
    assert strategy.play.holes[number, REST] == checked * hole_count(number)
    assert raised < checked


def test_what_is_compiled_is_kept_nowhere_beside_the_source() -> None:
    # A file there is in no listing: a server beside it would not start any more.
    place = Path(boards._count_board._cache.cache_path)  # type: ignore[attr-defined]
    assert place.is_dir()
    assert not place.is_relative_to(Path(certification.__file__).parents[1])


def test_where_no_folder_can_be_written_it_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "CACHE_LOCATOR_CLASSES", "ZipCacheLocator")  # none that fits

    def double(number: int) -> int:
        return 2 * number

    assert compiled(double)(21) == 42
