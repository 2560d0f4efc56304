"""Cards and decks: one deck of 52 cards, no jokers (RULEBOOK H-1).

A card is an integer 0..51: suits `cdhs` one after the other, ranks 2..A inside a suit. 0 is "2c", 12 "Ac", 13 "2d",
51 "As". Its text is rank and suit. `parse_card` and `format_card` are inverse to each other on exactly these 52 texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NewType

from rgs.core.errors import FormatError

Card = NewType("Card", int)

RANKS: Final = "23456789TJQKA"
SUITS: Final = "cdhs"
DECK_SIZE: Final = len(RANKS) * len(SUITS)

FULL_DECK: Final[tuple[Card, ...]] = tuple(Card(number) for number in range(DECK_SIZE))
_ALL: Final = frozenset(FULL_DECK)

_TEXTS: Final[tuple[str, ...]] = tuple(rank + suit for suit in SUITS for rank in RANKS)
_CARDS: Final[dict[str, Card]] = {text: Card(number) for number, text in enumerate(_TEXTS)}
_LOWEST_RANK: Final = 2


def parse_card(text: str) -> Card:
    """Return the card of a text such as "As"; raise FormatError for any other text."""
    card = _CARDS.get(text)
    if card is None:
        raise FormatError(f"{text!r} is not a card", field="card", value=text, rule="H-1")
    return card


def format_card(card: int) -> str:
    """Return the text of a card, rank then suit; raise FormatError outside 0..51."""
    if not 0 <= card < DECK_SIZE:
        raise FormatError(f"{card} is not a card number (0..{DECK_SIZE - 1})", field="card", value=card, rule="H-1")
    return _TEXTS[card]


def parse_cards(texts: Iterable[str]) -> tuple[Card, ...]:
    """Return the cards of several texts, in their order; raise FormatError if one is no card or comes twice.

    >>> format_cards(parse_cards(["As", "Td"]))
    ('As', 'Td')
    """
    cards = tuple(parse_card(text) for text in texts)
    if len(set(cards)) != len(cards):
        raise FormatError("the same card comes twice", field="cards", value=" ".join(format_cards(cards)), rule="H-1")
    return cards


def format_cards(cards: Iterable[int]) -> tuple[str, ...]:
    """Return the texts of several cards, in their order; raise FormatError outside 0..51."""
    return tuple(format_card(card) for card in cards)


def rank_of(card: Card) -> int:
    """Return the rank of a card: 2..10, jack 11, queen 12, king 13, ace 14."""
    return card % len(RANKS) + _LOWEST_RANK


def suit_of(card: Card) -> str:
    """Return the suit of a card: "c", "d", "h" or "s"."""
    return SUITS[card // len(RANKS)]


def parse_rank(text: str) -> int:
    """Return the rank of one of the characters 23456789TJQKA, 2..14; raise FormatError for any other text."""
    if len(text) != 1 or text not in RANKS:
        raise FormatError(f"{text!r} is not a rank", field="rank", value=text, rule="H-2")
    return RANKS.index(text) + _LOWEST_RANK


def format_rank(rank: int) -> str:
    """Return the character of a rank 2..14; raise FormatError outside."""
    if not _LOWEST_RANK <= rank < _LOWEST_RANK + len(RANKS):
        raise FormatError(f"{rank} is not a rank", field="rank", value=rank, rule="H-2")
    return RANKS[rank - _LOWEST_RANK]


def verify_deck(deck: Sequence[int]) -> None:
    """Raise FormatError unless the deck is a permutation of the 52 cards; `deck[0]` is the top."""
    if set(map(type, deck)) != {int} or len(deck) != len(FULL_DECK) or set(deck) != _ALL:
        raise FormatError("the deck is not a permutation of the 52 cards", field="deck", count=len(deck), rule="H-1")
