"""All 2,598,960 five-card hands: how many are of each category, and one digest of their whole order."""

from __future__ import annotations

import hashlib
from collections import Counter
from itertools import combinations

import pytest

from rgs.core.cards import FULL_DECK
from rgs.core.hands import Category, evaluate

# Combinatorics, by hand: C(52, 5) split into the categories.
COUNTS = {
    "royal_flush": 4,
    "straight_flush": 9 * 4,
    "quads": 13 * 48,
    "full_house": 13 * 4 * 12 * 6,
    "flush": 1287 * 4 - 40,
    "straight": 10 * 4**5 - 40,
    "trips": 13 * 4 * 66 * 4**2,
    "two_pair": 78 * 6**2 * 44,
    "pair": 13 * 6 * 220 * 4**3,
    "high_card": (1287 - 10) * (4**5 - 4),
}

# Of the 7,462 classes of equal hands, worst 1, the class of each hand as two bytes big-endian, hands in the order of
# itertools.combinations over the full deck. The same digest came out of phevaluator 0.6.0 (7463 minus its rank) and of
# eval7 0.1.11 (its values numbered upwards), which know nothing of this evaluator.
ORDER_SHA256 = "28615b6d7153ff052f210b8161e48c4270c849c8125f268423c462072c3a134a"


@pytest.mark.slow_exhaustive
def test_all_five_card_hands() -> None:
    keys = [evaluate(cards).key for cards in combinations(FULL_DECK, 5)]
    assert len(keys) == 2_598_960
    assert Counter(Category(key[0]).text for key in keys) == COUNTS
    classes = {key: number.to_bytes(2) for number, key in enumerate(sorted(set(keys)), start=1)}
    assert len(classes) == 7462
    assert hashlib.sha256(b"".join(classes[key] for key in keys)).hexdigest() == ORDER_SHA256
