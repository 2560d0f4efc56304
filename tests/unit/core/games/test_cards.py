"""RULEBOOK H-1: 52 cards, each with one number and one text."""

from __future__ import annotations

import pytest

from rgs.core.cards import (
    FULL_DECK,
    Card,
    format_card,
    format_cards,
    format_rank,
    parse_card,
    parse_cards,
    parse_rank,
    rank_of,
    suit_of,
    verify_deck,
)
from rgs.core.errors import FormatError


def test_numbers_are_suits_times_ranks() -> None:
    assert format_cards(FULL_DECK) == tuple(rank + suit for suit in "cdhs" for rank in "23456789TJQKA")
    assert [parse_card(text) for text in ("2c", "Ac", "2d", "As")] == [0, 12, 13, 51]


@pytest.mark.parametrize("card", FULL_DECK)
def test_text_and_number_are_inverse(card: Card) -> None:
    text = format_card(card)
    assert parse_card(text) == card
    assert format_rank(rank_of(card)) + suit_of(card) == text


@pytest.mark.parametrize("rank", range(2, 15))
def test_ranks(rank: int) -> None:
    assert parse_rank(format_rank(rank)) == rank


@pytest.mark.parametrize("text", ["", "A", "as", "AS", "1c", "10c", "Asd", " As", "Xs", "Ax"])
def test_other_texts_are_no_cards(text: str) -> None:
    with pytest.raises(FormatError, match="not a card"):
        parse_card(text)


@pytest.mark.parametrize("number", [-1, 52, 1000])
def test_other_numbers_are_no_cards(number: int) -> None:
    with pytest.raises(FormatError, match="not a card number"):
        format_card(number)


@pytest.mark.parametrize("text", ["", "1", "TJ", "t", "23"])
def test_other_texts_are_no_ranks(text: str) -> None:
    with pytest.raises(FormatError, match="not a rank"):
        parse_rank(text)


@pytest.mark.parametrize("rank", [0, 1, 15])
def test_other_numbers_are_no_ranks(rank: int) -> None:
    with pytest.raises(FormatError, match="not a rank"):
        format_rank(rank)


def test_a_list_keeps_its_order_and_holds_no_card_twice() -> None:
    assert parse_cards(["As", "2c"]) == (51, 0)
    with pytest.raises(FormatError, match="twice"):
        parse_cards(["As", "2c", "As"])


@pytest.mark.parametrize(
    "deck",
    [
        [],
        FULL_DECK[:-1],
        [*FULL_DECK, 0],
        [0, *FULL_DECK[:-1]],
        [*FULL_DECK[:-1], 52],
        [-1, *FULL_DECK[1:]],
        [False, *FULL_DECK[1:]],
        [0.0, *FULL_DECK[1:]],
    ],
)
def test_what_is_no_permutation_is_no_deck(deck: list[int]) -> None:
    with pytest.raises(FormatError, match="permutation"):
        verify_deck(deck)


def test_any_order_is_a_deck() -> None:
    verify_deck(FULL_DECK)
    verify_deck(FULL_DECK[::-1])
