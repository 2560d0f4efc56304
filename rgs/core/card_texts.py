"""The texts of the cards of a deck that has been checked, and of categories, from tables: records and views show some
seventy cards a round.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rgs.core.cards import FULL_DECK, format_cards
from rgs.core.hands import Category

_TEXT_OF: Final = dict[int, str](zip(FULL_DECK, format_cards(FULL_DECK), strict=True)).__getitem__


CATEGORY_TEXTS: Final = {category: category.text for category in Category}
"""The name of each category of hands."""


def texts_of(cards: Iterable[int]) -> list[str]:
    """As `rgs.core.cards.format_cards`, for numbers that are cards; KeyError for any other."""
    return list(map(_TEXT_OF, cards))
