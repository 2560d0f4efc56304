"""The worth of hands as dense integers, taken from the evaluator that settles rounds (`rgs.core.hands`).

Five cards without a flush are worth what their ranks are worth: 6,175 multisets of five ranks. With a flush they are
worth what the set of their ranks is worth: 1,287 sets. The production evaluator is asked once about each. These are all
7,462 different worths, and the **strength** of a hand is its place among them, 0 the worst: equal strengths tie, the
larger one wins (RULEBOOK H-2 to H-4: ranking of hands). Seven cards are worth the best five of them (H-5: best five of
seven), without a flush and within each suit apart. A test compares all of these with the production evaluator on seven
cards.

Multisets of ranks are the nodes of an automaton: `step[node, rank]` is the node with one card more. A fifth card of a
rank leads to -1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from certification.rtp.compiled import Bytes, Ints, Longs, Shorts, compiled
from rgs.core.cards import RANKS, SUITS, Card
from rgs.core.hands import HandValue, evaluate

RANK_COUNT: Final = len(RANKS)
SUIT_COUNT: Final = len(SUITS)
SEVEN_CARD_HANDS: Final = 133_784_560
_LARGEST: Final = 7


class Tables(NamedTuple):
    """What the compiled loops read.

    `step[node, rank]`, `held[node, rank]` (how many cards of a rank), `first_node[n]` (the first node of n cards),
    `rank_strength[node]` (-1 below five cards); of sets of ranks `flush_strength[set]` (-1 below five), `bits[set]`
    (its size) and `places[set]` (its place among the sets of its size, for three to five).
    """

    step: Ints
    held: Bytes
    first_node: Longs
    rank_strength: Shorts
    flush_strength: Shorts
    bits: Bytes
    places: Ints


@dataclass(frozen=True, eq=False)
class Evaluator:
    """The tables, and of each strength a hand that has it."""

    tables: Tables
    hands: tuple[HandValue, ...]


def _automaton() -> tuple[Ints, Bytes]:
    """Return the steps, and how many cards of each rank every node holds; a node's number in base 5 is its name."""
    power = 5 ** np.arange(RANK_COUNT, dtype=np.int64)
    names = [np.zeros(1, dtype=np.int64)]
    steps = []
    first = 0
    for _ in range(_LARGEST):
        full = names[-1][:, None] // power % 5 == SUIT_COUNT
        larger = names[-1][:, None] + power
        first += len(names[-1])
        names.append(np.unique(larger[~full]))
        steps.append(np.where(full, -1, first + np.searchsorted(names[-1], larger)))
    steps.append(np.full((len(names[-1]), RANK_COUNT), -1))
    held = np.concatenate(names)[:, None] // power % 5
    return np.concatenate(steps).astype(np.int32), held.astype(np.uint8)


def _unsuited_cards(held: Bytes) -> list[Card]:
    """Return cards of these ranks without a flush: suits in turn, so that equal ranks differ in suit."""
    ranks = [rank for rank in range(RANK_COUNT) for _ in range(held[rank])]
    return [Card(place % SUIT_COUNT * RANK_COUNT + rank) for place, rank in enumerate(ranks)]


@cache
def evaluator() -> Evaluator:
    """Return the tables; the production evaluator is asked about 7,462 hands of five cards."""
    step, held = _automaton()
    first_node = np.searchsorted(held.sum(axis=1), np.arange(_LARGEST + 1))
    by_node = {node: evaluate(_unsuited_cards(held[node])) for node in range(first_node[5], first_node[6])}
    by_flush = {
        sum(1 << rank for rank in ranks): evaluate([Card(rank) for rank in ranks])
        for ranks in combinations(range(RANK_COUNT), 5)
    }
    hands = sorted((*by_flush.values(), *by_node.values()))
    strength = {hand.key: place for place, hand in enumerate(hands)}
    rank_strength = np.full(len(step), -1, dtype=np.int16)
    flush_strength = np.full(1 << RANK_COUNT, -1, dtype=np.int16)
    for node, hand in by_node.items():
        rank_strength[node] = strength[hand.key]
    for ranks, hand in by_flush.items():
        flush_strength[ranks] = strength[hand.key]
    # H-5: six and seven cards are worth the best of what is left when one is taken away.
    bits = np.array([ranks.bit_count() for ranks in range(1 << RANK_COUNT)], dtype=np.uint8)
    for count in (5, 6):
        nodes = np.arange(first_node[count], first_node[count + 1])
        sets = np.flatnonzero(bits == count)
        for rank in range(RANK_COUNT):
            _raise_to(rank_strength, step[nodes, rank], rank_strength[nodes])
            _raise_to(flush_strength, np.where(sets >> rank & 1, -1, sets | 1 << rank), flush_strength[sets])
    places = np.zeros(1 << RANK_COUNT, dtype=np.int32)
    for size in (3, 4, 5):
        places[bits == size] = np.arange(comb(RANK_COUNT, size))
    return Evaluator(Tables(step, held, first_node, rank_strength, flush_strength, bits, places), tuple(hands))


def _raise_to(strengths: Shorts, places: npt.NDArray[np.signedinteger], least: Shorts) -> None:
    """Raise the strengths at these places, all different (-1: none), to at least these."""
    there = places >= 0
    strengths[places[there]] = np.maximum(strengths[places[there]], least[there])


@compiled
def count_seven_card_hands(tables: Tables) -> Longs:
    """Return how many of the 133,784,560 seven-card hands have each strength: the yardstick of the enumeration.

    Nothing but the hands: each prefix keeps its node and its four sets of ranks, the last card costs two look-ups.
    """
    counts = np.zeros(7462, np.int64)
    suits = np.zeros((8, 4), np.int64)
    node = np.zeros(8, np.int64)
    cards = np.zeros(7, np.int64)
    depth = 0
    card = 0
    while True:
        if card > 45 + depth:  # too few cards are left for the places that are left
            if depth == 0:
                return counts
            depth -= 1
            card = cards[depth] + 1
            continue
        if depth == 6:
            here, held = node[6], suits[6]
            for last in range(card, 52):
                rank, suit = last % 13, last // 13
                strength = tables.rank_strength[tables.step[here, rank]]
                flush = tables.flush_strength[held[suit] | 1 << rank]
                for other in range(4):
                    flush = max(flush, tables.flush_strength[held[other]])
                counts[max(strength, flush)] += 1
            depth = 5
            card = cards[5] + 1
            continue
        cards[depth] = card
        node[depth + 1] = tables.step[node[depth], card % 13]
        suits[depth + 1] = suits[depth]
        suits[depth + 1, card // 13] |= 1 << card % 13
        depth += 1
        card += 1
