"""Properties of the evaluator and of the parse/format pairs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rgs.core.cards import FULL_DECK, RANKS, Card, format_cards, parse_cards
from rgs.core.errors import FormatError
from rgs.core.games.paytables import format_floor, parse_floor
from rgs.core.hands import Category, evaluate, parse_category
from rgs.core.money import format_odds, parse_odds

hands = st.integers(5, 7).flatmap(
    lambda count: st.lists(st.sampled_from(FULL_DECK), min_size=count, max_size=count, unique=True)
)


@given(hand=hands, data=st.data())
def test_the_order_of_the_cards_is_nothing(hand: list[Card], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(hand))
    assert evaluate(shuffled) == evaluate(hand)
    assert evaluate(shuffled).best5 == evaluate(hand).best5


@given(hand=st.lists(st.sampled_from(FULL_DECK), min_size=6, max_size=7, unique=True))
def test_a_further_card_never_makes_a_hand_worse(hand: list[Card]) -> None:
    assert evaluate(hand) >= evaluate(hand[:-1])


@given(hand=hands)
def test_key_category_and_best_five_agree(hand: list[Card]) -> None:
    value = evaluate(hand)
    assert value.key[0] == value.category
    assert parse_category(value.category.text) is value.category
    assert len(set(value.best5)) == 5
    assert set(value.best5) <= set(hand)
    assert evaluate(value.best5) == value


@given(cards=st.lists(st.sampled_from(FULL_DECK), unique=True))
def test_cards_and_texts_are_inverse(cards: list[Card]) -> None:
    assert parse_cards(format_cards(cards)) == tuple(cards)


@given(text=st.one_of(st.text(max_size=8), st.from_regex(r"[0-9]{1,5}:[0-9]{1,5}", fullmatch=True)))
def test_odds_have_one_text(text: str) -> None:
    try:
        odds = parse_odds(text)
    except FormatError:
        return
    assert format_odds(odds) == text


@given(category=st.sampled_from(Category), rank=st.one_of(st.just(""), st.text(RANKS, max_size=2)), colon=st.booleans())
def test_floors_have_one_text(category: Category, rank: str, colon: bool) -> None:
    text = category.text + ":" * colon + rank
    try:
        floor = parse_floor(text)
    except FormatError:
        return
    assert format_floor(floor) == text
