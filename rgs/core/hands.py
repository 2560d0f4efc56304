"""Poker hands: the best five of five, six or seven cards (RULEBOOK H-2 to H-5).

A hand is known by its `key`: the number of its category, then the ranks that decide inside the category, most important
first. The larger tuple is the better hand, and equal tuples are a tie (H-4: suits never decide). The keys are `(9,)`
royal flush, `(8, top)` straight flush, `(7, quads, kicker)`, `(6, trips, pair)`, `(5, five ranks)` flush, `(4, top)`
straight, `(3, trips, two kickers)`, `(2, high pair, low pair, kicker)`, `(1, pair, three kickers)`, `(0, five ranks)`.
The top of 5 4 3 2 A is 5 (H-3).

The cards are held as one 52-bit number. Pairs, trips and quads come from a few bit operations, straights from a table
over the 8,192 sets of ranks. No combination is tried out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from rgs.core.cards import RANKS, SUITS, Card
from rgs.core.errors import FormatError, InvalidFieldError

ACE: Final = 14
_WHEEL_TOP: Final = 5
_FEWEST: Final = 5
_MOST: Final = 7

_SUIT_WIDTH: Final = len(RANKS)
_ALL_RANKS: Final = (1 << _SUIT_WIDTH) - 1
_LAST_CARD: Final = _SUIT_WIDTH * len(SUITS) - 1


class Category(IntEnum):
    """The ten categories, worst first, so that the better one is the larger number (H-2)."""

    HIGH_CARD = 0
    PAIR = 1
    TWO_PAIR = 2
    TRIPS = 3
    STRAIGHT = 4
    FLUSH = 5
    FULL_HOUSE = 6
    QUADS = 7
    STRAIGHT_FLUSH = 8
    ROYAL_FLUSH = 9

    @property
    def text(self) -> str:
        """The name in small letters, as in "full_house"."""
        return self.name.lower()


def parse_category(text: str) -> Category:
    """Return the category of a text such as "full_house"; raise FormatError for any other text."""
    if text not in _CATEGORY_OF_TEXT:
        raise FormatError(f"{text!r} is not a category of hands", field="category", value=text, rule="H-2")
    return _CATEGORY_OF_TEXT[text]


_CATEGORY_OF_TEXT: Final = {category.text: category for category in Category}


@dataclass(frozen=True, order=True, slots=True)
class HandValue:
    """The worth of a hand; compares by `key` alone.

    `best5` is one valid best five, strongest first, and decides nothing. It depends on the cards, not on their order:
    of equally good cards the one of the first suit in `cdhs` is named.
    """

    category: Category
    key: tuple[int, ...]
    best5: tuple[Card, ...] = field(compare=False)


def _straight_ranks(top: int) -> tuple[int, ...]:
    """Return the five ranks of the straight with this top rank, downwards; the ace stands last below the two (H-3)."""
    return (5, 4, 3, 2, ACE) if top == _WHEEL_TOP else tuple(range(top, top - 5, -1))


def _bit(rank: int) -> int:
    return 1 << (rank - 2)


def _ranks_downwards(ranks: int) -> tuple[int, ...]:
    return tuple(rank for rank in range(ACE, 1, -1) if ranks & _bit(rank))


def _straight_top(ranks: int) -> int:
    """Return the top of the best straight within a set of ranks, 0 if there is none."""
    for top in range(ACE, _WHEEL_TOP - 1, -1):
        wanted = sum(_bit(rank) for rank in _straight_ranks(top))
        if ranks & wanted == wanted:
            return top
    return 0


# A set of ranks is a 13-bit number, bit 0 the two and bit 12 the ace.
_DOWNWARDS: Final = tuple(_ranks_downwards(ranks) for ranks in range(_ALL_RANKS + 1))
_STRAIGHT_TOP: Final = tuple(_straight_top(ranks) for ranks in range(_ALL_RANKS + 1))
_STRAIGHT_RANKS: Final = {top: _straight_ranks(top) for top in range(_WHEEL_TOP, ACE + 1)}
_CARDS_OF_RANK: Final = (
    (),
    (),
    *(tuple(Card(suit * _SUIT_WIDTH + rank - 2) for suit in range(len(SUITS))) for rank in range(2, ACE + 1)),
)


def evaluate(cards: Sequence[Card]) -> HandValue:
    """Return the best five of 5, 6 or 7 different cards (H-5); raise InvalidFieldError for any other input.

    >>> from rgs.core.cards import format_cards, parse_cards
    >>> hand = evaluate(parse_cards("As Ks Qs Js Ts 2d 2c".split()))
    >>> hand.category.name, format_cards(hand.best5)
    ('ROYAL_FLUSH', ('As', 'Ks', 'Qs', 'Js', 'Ts'))
    """
    count = len(cards)
    if not _FEWEST <= count <= _MOST or min(cards) < 0 or max(cards) > _LAST_CARD:
        raise InvalidFieldError("a hand needs 5 to 7 cards", field="cards", value=list(cards), rule="H-5")
    held = 0
    for card in cards:
        held |= 1 << card
    if held.bit_count() != count:
        raise InvalidFieldError("a hand holds a card twice", field="cards", value=list(cards), rule="H-1")
    suits = (
        held & _ALL_RANKS,
        held >> _SUIT_WIDTH & _ALL_RANKS,
        held >> 2 * _SUIT_WIDTH & _ALL_RANKS,
        held >> 3 * _SUIT_WIDTH,
    )
    # Five ranks of one suit leave at most two more cards: too few to make quads or a full house, so a flush is best.
    for suit, ranks in enumerate(suits):
        if ranks.bit_count() >= _FEWEST:
            return _flush(suit, ranks)
    return _unsuited(held, *suits)


def _unsuited(held: int, clubs: int, diamonds: int, hearts: int, spades: int) -> HandValue:
    """Return the best hand among cards without a flush, from the ranks held in each suit."""
    some = clubs | diamonds | hearts | spades
    # The ranks held twice or more, three times or more.
    pairs = (clubs & diamonds) | (hearts & spades) | ((clubs | diamonds) & (hearts | spades))
    trips = (clubs & diamonds & (hearts | spades)) | (hearts & spades & (clubs | diamonds))
    quads = clubs & diamonds & hearts & spades

    if quads:
        rank = _DOWNWARDS[quads][0]
        kicker = _DOWNWARDS[some ^ quads][0]
        return HandValue(Category.QUADS, (7, rank, kicker), _pick(held, (rank, 4), (kicker, 1)))
    # Seven cards may hold two trips; the lower one then serves as the pair.
    if trips and pairs.bit_count() > 1:
        rank = _DOWNWARDS[trips][0]
        pair = _DOWNWARDS[pairs ^ _bit(rank)][0]
        return HandValue(Category.FULL_HOUSE, (6, rank, pair), _pick(held, (rank, 3), (pair, 2)))
    top = _STRAIGHT_TOP[some]
    if top:
        return HandValue(Category.STRAIGHT, (4, top), _pick(held, *((rank, 1) for rank in _STRAIGHT_RANKS[top])))
    if trips:
        rank = _DOWNWARDS[trips][0]
        first, second = _DOWNWARDS[some ^ trips][:2]
        best5 = _pick(held, (rank, 3), (first, 1), (second, 1))
        return HandValue(Category.TRIPS, (3, rank, first, second), best5)
    # Seven cards may hold three pairs; the third may still be the kicker.
    if pairs.bit_count() > 1:
        high, low = _DOWNWARDS[pairs][:2]
        kicker = _DOWNWARDS[some ^ _bit(high) ^ _bit(low)][0]
        return HandValue(Category.TWO_PAIR, (2, high, low, kicker), _pick(held, (high, 2), (low, 2), (kicker, 1)))
    if pairs:
        rank = _DOWNWARDS[pairs][0]
        first, second, third = _DOWNWARDS[some ^ pairs][:3]
        best5 = _pick(held, (rank, 2), (first, 1), (second, 1), (third, 1))
        return HandValue(Category.PAIR, (1, rank, first, second, third), best5)
    five = _DOWNWARDS[some][:5]
    return HandValue(Category.HIGH_CARD, (0, *five), _pick(held, *((rank, 1) for rank in five)))


def _flush(suit: int, ranks: int) -> HandValue:
    top = _STRAIGHT_TOP[ranks]
    five = _STRAIGHT_RANKS[top] if top else _DOWNWARDS[ranks][:5]
    best5 = tuple(_CARDS_OF_RANK[rank][suit] for rank in five)
    if top == ACE:
        return HandValue(Category.ROYAL_FLUSH, (9,), best5)
    if top:
        return HandValue(Category.STRAIGHT_FLUSH, (8, top), best5)
    return HandValue(Category.FLUSH, (5, *five), best5)


def _pick(held: int, *wanted: tuple[int, int]) -> tuple[Card, ...]:
    """Return the first so many held cards of each rank wanted, suits in the order `cdhs`."""
    best: list[Card] = []
    for rank, count in wanted:
        best += [card for card in _CARDS_OF_RANK[rank] if held >> card & 1][:count]
    return tuple(best)
