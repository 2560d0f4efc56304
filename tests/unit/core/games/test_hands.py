"""RULEBOOK H-2 to H-5: by example, and against two evaluators that others wrote."""

from __future__ import annotations

import itertools
import random

import eval7
import pytest
from phevaluator import evaluate_cards

from rgs.core.cards import FULL_DECK, RANKS, SUITS, Card, format_card, format_cards, parse_cards
from rgs.core.errors import FormatError, InvalidFieldError
from rgs.core.hands import Category, HandValue, evaluate, parse_category

RANDOM_HANDS = 210_000
FEWER_HANDS = 60_000
"""Of the ordinary run."""

EXAMPLES = [
    # cards, category, key, best five
    ("As Ks Qs Js Ts 2c 3d", "royal_flush", (9,), "As Ks Qs Js Ts"),
    ("9s Ks Qs Js Ts Ac 3d", "straight_flush", (8, 13), "Ks Qs Js Ts 9s"),
    ("As 2s 3s 4s 5s Kd Kh", "straight_flush", (8, 5), "5s 4s 3s 2s As"),
    ("As 2s 3s 4s 5s 6s Kh", "straight_flush", (8, 6), "6s 5s 4s 3s 2s"),
    ("9s 9d 9h 9c Ks Kd Ah", "quads", (7, 9, 14), "9c 9d 9h 9s Ah"),
    ("9s 9d 9h 9c Ks Kd Kh", "quads", (7, 9, 13), "9c 9d 9h 9s Kd"),
    ("9s 9d 9h Kc Ks 2d 3h", "full_house", (6, 9, 13), "9d 9h 9s Kc Ks"),
    ("9s 9d 9h Kc Ks Kd 3h", "full_house", (6, 13, 9), "Kc Kd Ks 9d 9h"),
    ("9s 9d 9h Kc Ks 2d 2h", "full_house", (6, 9, 13), "9d 9h 9s Kc Ks"),
    ("As 9s 7s 4s 2s Ad Ah", "flush", (5, 14, 9, 7, 4, 2), "As 9s 7s 4s 2s"),
    ("As Ks 9s 7s 4s 3s 2s", "flush", (5, 14, 13, 9, 7, 4), "As Ks 9s 7s 4s"),
    ("As Kd Qs Js Ts 2c 3d", "straight", (4, 14), "As Kd Qs Js Ts"),
    ("As 2d 3s 4s 5s Kd Kh", "straight", (4, 5), "5s 4s 3s 2d As"),
    ("As 2d 3s 4s 5d 6h Kh", "straight", (4, 6), "6h 5d 4s 3s 2d"),
    ("5s 5d 5h 4s 3d 2h 6c", "straight", (4, 6), "6c 5d 4s 3d 2h"),
    ("Ks As 2d 3h 4c 7d 9h", "high_card", (0, 14, 13, 9, 7, 4), "As Ks 9h 7d 4c"),  # H-3: it never wraps
    ("9s 9d 9h Kc Qs 2d 3h", "trips", (3, 9, 13, 12), "9d 9h 9s Kc Qs"),
    ("9s 9d Kh Kc Qs 2d 3h", "two_pair", (2, 13, 9, 12), "Kc Kh 9d 9s Qs"),
    ("9s 9d Kh Kc Qs Qd 3h", "two_pair", (2, 13, 12, 9), "Kc Kh Qd Qs 9d"),
    ("9s 9d Kh Kc Qs Qd Ah", "two_pair", (2, 13, 12, 14), "Kc Kh Qd Qs Ah"),
    ("9s 9d Kh Ac Qs 2d 3h", "pair", (1, 9, 14, 13, 12), "9d 9s Ac Kh Qs"),
    ("9s 7d Kh Ac Qs 2d 3h", "high_card", (0, 14, 13, 12, 9, 7), "Ac Kh Qs 9s 7d"),
]


@pytest.mark.parametrize(("cards", "category", "key", "best5"), EXAMPLES)
def test_examples(cards: str, category: str, key: tuple[int, ...], best5: str) -> None:
    dealt = parse_cards(cards.split())
    hand = evaluate(dealt)
    assert hand.category is parse_category(category)
    assert hand.category.text == category
    assert hand.key == key
    assert " ".join(format_cards(hand.best5)) == best5
    assert evaluate(dealt[::-1]).best5 == hand.best5
    assert evaluate(hand.best5) == hand


def test_categories_rise_as_the_rulebook_lists_them() -> None:
    assert [category.text for category in sorted(Category, reverse=True)] == [
        "royal_flush",
        "straight_flush",
        "quads",
        "full_house",
        "flush",
        "straight",
        "trips",
        "two_pair",
        "pair",
        "high_card",
    ]


@pytest.mark.parametrize("text", ["", "Pair", "PAIR", "three_of_a_kind"])
def test_other_texts_are_no_categories(text: str) -> None:
    with pytest.raises(FormatError, match="not a category"):
        parse_category(text)


def test_equal_ranks_tie_whatever_the_suits() -> None:
    hand, other = (evaluate(parse_cards(cards.split())) for cards in ("As Kd 9h 5c 3s", "Ad Kh 9c 5s 3d"))
    assert hand == other
    assert hash(hand) == hash(other)
    assert hand.best5 != other.best5
    assert not hand < other


def test_only_the_best_five_count() -> None:
    """H-4: an unused ace does not decide."""
    board = "Ks Kd Qh Qc Js"
    assert evaluate(parse_cards(f"{board} Th 2c".split())) == evaluate(parse_cards(f"{board} 9h 9c".split()))


@pytest.mark.parametrize(
    "cards", [FULL_DECK[:4], FULL_DECK[:8], (), (-1, 1, 2, 3, 4), (1, 2, 3, 4, 52), (0, 0, 1, 2, 3), (0, 1, 2, 3, 4, 4)]
)
def test_what_is_no_hand_is_refused(cards: tuple[Card, ...]) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        evaluate(cards)
    assert caught.value.metadata["rule"] in {"H-1", "H-5"}


@pytest.fixture(scope="module", params=[FEWER_HANDS, pytest.param(RANDOM_HANDS, marks=pytest.mark.slow_exhaustive)])
def hands(request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> list[tuple[Card, ...]]:
    """Seven random cards each, by the seed that the run's header prints."""
    generator = random.Random(str(pytestconfig.getoption("hypothesis_seed")))
    return [tuple(generator.sample(FULL_DECK, 7)) for _ in range(request.param)]


@pytest.fixture(scope="module")
def values(hands: list[tuple[Card, ...]]) -> list[HandValue]:
    return [evaluate(cards) for cards in hands]


def test_order_and_category_agree_with_phevaluator(hands: list[tuple[Card, ...]], values: list[HandValue]) -> None:
    # Its best rank is 1; the worst rank of each category follows from the numbers of distinct hands in it.
    worst = [7462, 6185, 3325, 2467, 1609, 1599, 322, 166, 10, 1]
    numbers = [(card % 13) * 4 + card // 13 for card in FULL_DECK]
    theirs: dict[tuple[int, ...], int] = {}
    for cards, value in zip(hands, values, strict=True):
        rank = evaluate_cards(*(numbers[card] for card in cards))
        assert theirs.setdefault(value.key, rank) == rank, format_cards(cards)
        assert (worst[value.category + 1] if value.category < Category.ROYAL_FLUSH else 0) < rank, format_cards(cards)
        assert rank <= worst[value.category], format_cards(cards)
    # Equal keys have equal ranks; here, better keys have better ranks, so that all pairs of hands compare alike.
    ranks = [rank for _, rank in sorted(theirs.items())]
    assert all(better < worse for worse, better in itertools.pairwise(ranks))


def test_order_and_category_agree_with_eval7(hands: list[tuple[Card, ...]], values: list[HandValue]) -> None:
    names = ["High Card", "Pair", "Two Pair", "Trips", "Straight", "Flush", "Full House", "Quads"]
    names += ["Straight Flush"] * 2  # it knows no royal flush
    theirs_of_ours = [eval7.Card(format_card(card)) for card in FULL_DECK]
    theirs: dict[tuple[int, ...], int] = {}
    for cards, value in zip(hands, values, strict=True):
        rank = eval7.evaluate([theirs_of_ours[card] for card in cards])
        assert theirs.setdefault(value.key, rank) == rank, format_cards(cards)
    for key, rank in theirs.items():
        assert eval7.handtype(rank) == names[key[0]]
    ranks = [rank for _, rank in sorted(theirs.items())]
    assert all(worse < better for worse, better in itertools.pairwise(ranks))


def test_the_best_five_are_of_the_seven_and_worth_as_much(
    hands: list[tuple[Card, ...]], values: list[HandValue]
) -> None:
    for cards, value in itertools.islice(zip(hands, values, strict=True), 40_000):
        assert set(value.best5) <= set(cards)
        assert evaluate(value.best5).key == value.key
        assert evaluate(value.best5).best5 == value.best5


def test_no_five_of_the_seven_are_better(hands: list[tuple[Card, ...]], values: list[HandValue]) -> None:
    """H-5 taken literally: all 21 combinations."""
    for cards, value in itertools.islice(zip(hands, values, strict=True), 2_000):
        assert max(evaluate(five) for five in itertools.combinations(cards, 5)) == value
        assert max(evaluate(six) for six in itertools.combinations(cards, 6)) == value


def test_suits_may_be_exchanged(hands: list[tuple[Card, ...]], values: list[HandValue]) -> None:
    for cards, value in itertools.islice(zip(hands, values, strict=True), 20_000):
        rotated = [Card((card + len(RANKS)) % (len(RANKS) * len(SUITS))) for card in cards]
        assert evaluate(rotated) == value
