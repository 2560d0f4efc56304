"""rgs.core.card_texts: the texts are those of `rgs.core.cards`, for cards and for nothing else."""

from __future__ import annotations

import pytest

from rgs.core.card_texts import texts_of
from rgs.core.cards import FULL_DECK, format_cards


def test_every_card_has_its_text() -> None:
    assert texts_of(FULL_DECK) == list(format_cards(FULL_DECK))
    assert texts_of(()) == []


@pytest.mark.parametrize("number", [-1, 52])
def test_a_number_that_is_no_card_has_none(number: int) -> None:
    with pytest.raises(KeyError):
        texts_of([number])
