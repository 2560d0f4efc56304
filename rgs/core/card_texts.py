"""The texts of the cards of a deck that has been checked, from a table: records and views show some seventy a round."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rgs.core.cards import FULL_DECK, format_cards

_TEXT_OF: Final = dict[int, str](zip(FULL_DECK, format_cards(FULL_DECK), strict=True)).__getitem__


def texts_of(cards: Iterable[int]) -> list[str]:
    """As `rgs.core.cards.format_cards`, for numbers that are cards; KeyError for any other."""
    return list(map(_TEXT_OF, cards))
