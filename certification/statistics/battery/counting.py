"""The tests whose counts add up over chunks: what is counted in a chunk, and the law that the sum is compared with.

Each names the clause that it answers. GLI-19 3.2.2 names chi-square (total distribution), overlaps, coupon collector,
runs, interplay correlation, serial correlation, duplicates; the other tests go further. `least` is the number of decks
below which a test gives no p-value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from certification.rtp.compiled import Bytes, Longs, compiled
from certification.statistics.battery import laws
from certification.statistics.battery.decks import DeckChunk
from certification.statistics.battery.laws import Judged
from rng.shuffle import DECK_SIZE

DEALT: Final = 9
"""Two hole cards for a player and the dealer, and the board."""
_CARDS: Final = np.arange(DECK_SIZE)
_SUIT_SIZE: Final = 13
INDEX_VALUES: Final = tuple(2 * card - (DECK_SIZE - 1) for card in range(DECK_SIZE))
RANK_VALUES: Final = tuple(card % _SUIT_SIZE - _SUIT_SIZE // 2 for card in range(DECK_SIZE))


@dataclass(frozen=True, slots=True)
class CountedTest:
    """One test: `count` of a chunk (None if the chunk does not know), `judge` of the sum of counts and of decks."""

    name: str
    clause: str
    least: int
    continuous: bool
    counts: str
    judge: Callable[[Longs, int], Judged]


def placements(rows: Bytes) -> Longs:
    """Count place x value, 52 x 52, flat."""
    return np.bincount((rows + DECK_SIZE * _CARDS).ravel(), minlength=DECK_SIZE**2)


def neighbours(decks: Bytes) -> Longs:
    """Count ordered pairs of neighbours, 52 x 52, flat."""
    return np.bincount((decks[:, :-1].astype(np.int64) * DECK_SIZE + decks[:, 1:]).ravel(), minlength=DECK_SIZE**2)


def orderings(decks: Bytes) -> Longs:
    """Count the order patterns of the ten blocks of five cards, by Lehmer's code."""
    blocks = decks[:, :50].reshape(-1, 5)
    code = np.zeros(len(blocks), np.int64)
    for place in range(4):
        smaller = (blocks[:, place + 1 :] < blocks[:, place, None]).sum(axis=1)
        code = code * (5 - place) + smaller
    return np.bincount(code, minlength=math.factorial(5))


def starting_hands(decks: Bytes) -> Longs:
    """Count unordered first two cards."""
    high = decks[:, :2].max(axis=1).astype(np.int64)
    return np.bincount(high * (high - 1) // 2 + decks[:, :2].min(axis=1), minlength=math.comb(DECK_SIZE, 2))


def poker(decks: Bytes) -> Longs:
    """Count the categories of the first five cards, in the order of `laws.POKER`."""
    ranks = np.sort(decks[:, :5] % _SUIT_SIZE, axis=1)
    suits = decks[:, :5] // _SUIT_SIZE
    equal = sum((ranks[:, low] == ranks[:, high]).astype(np.int64) for low in range(5) for high in range(low + 1, 5))
    flush = (suits == suits[:, :1]).all(axis=1)
    wheel = (ranks == np.array([0, 1, 2, 3, 12])).all(axis=1)
    straight = (equal == 0) & ((ranks[:, 4] - ranks[:, 0] == 4) | wheel)
    category = np.array([0, 1, 2, 3, 6, -1, 7])[equal]  # by the number of equal pairs
    category[straight] = 4
    category[flush] = 5
    category[straight & flush] = 8
    return np.bincount(category, minlength=len(laws.POKER))


def fixed_points(rows: Bytes) -> Longs:
    """Count rows by the number of values in their own place."""
    return np.bincount((rows == _CARDS).sum(axis=1), minlength=DECK_SIZE + 1)


@compiled
def cycles(decks: Bytes) -> Longs:
    """Count decks by their number of cycles."""
    found = np.zeros(decks.shape[1] + 1, np.int64)
    for number in range(decks.shape[0]):
        seen = np.zeros(decks.shape[1], np.bool_)
        count = 0
        for start in range(decks.shape[1]):
            if not seen[start]:
                count += 1
                card = start
                while not seen[card]:
                    seen[card] = True
                    card = decks[number, card]
        found[count] += 1
    return found


def descents(rows: Bytes) -> Longs:
    """Count rows by their number of descents."""
    return np.bincount((rows[:, :-1] > rows[:, 1:]).sum(axis=1), minlength=DECK_SIZE)


def overlaps(steps: Bytes, size: int) -> Longs:
    """Count consecutive deals by the cards common to their first ones."""
    return np.bincount((steps[:, :size] < size).sum(axis=1), minlength=size + 1)


def products(decks: Bytes, values: tuple[int, ...]) -> Longs:
    """Sum products of the values at all pairs of places, 52 x 52, flat; exact, for every sum stays below 2^53."""
    valued = np.array(values, np.float64)[decks]
    return np.rint(valued.T @ valued).astype(np.int64).ravel()


COUNTS: Final[dict[str, Callable[[DeckChunk], Longs | None]]] = {
    "placements": lambda chunk: placements(chunk.decks),
    "dealt": lambda chunk: np.bincount(chunk.decks[:, :DEALT].ravel(), minlength=DECK_SIZE),
    "neighbours": lambda chunk: neighbours(chunk.decks),
    "orderings": lambda chunk: orderings(chunk.decks),
    "starting_hands": lambda chunk: starting_hands(chunk.decks),
    "poker": lambda chunk: poker(chunk.decks),
    "fixed_points": lambda chunk: fixed_points(chunk.decks),
    "cycles": lambda chunk: cycles(chunk.decks),
    "descents": lambda chunk: descents(chunk.decks),
    "rising": lambda chunk: descents(chunk.places),
    "next_placements": lambda chunk: placements(chunk.steps),
    "next_fixed_points": lambda chunk: fixed_points(chunk.steps),
    "overlaps_9": lambda chunk: overlaps(chunk.steps, DEALT),
    "overlaps_26": lambda chunk: overlaps(chunk.steps, DECK_SIZE // 2),
    "index_products": lambda chunk: products(chunk.decks, INDEX_VALUES),
    "rank_products": lambda chunk: products(chunk.decks, RANK_VALUES),
    "bytes": lambda chunk: chunk.byte_counts,
}


def _table(counts: Longs, _: int) -> Judged:
    """Place x card: a permutation matrix has covariance P(x)P / 51, so the sum is scaled by 51/52 (verified: without
    it a fair shuffle is rejected 5 % of the time at 1 %).
    """
    return laws.even(counts, df=(DECK_SIZE - 1) ** 2, factor=(DECK_SIZE - 1) / DECK_SIZE)


def _parity(counts: Longs, n: int) -> Judged:
    return laws.binomial(int(counts[1::2].sum()), n)  # 52 - cycles is odd


def _pooled(law: Callable[[], Sequence[float]]) -> Callable[[Longs, int], Judged]:
    """The judge of counts that follow a law, which is computed when it is first needed."""
    return lambda counts, _: laws.pooled(counts, law())


def _interplay(values: tuple[int, ...]) -> Callable[[Longs, int], Judged]:
    return lambda counts, n: laws.largest(laws.correlations(counts, values, n))


def _mean_descents(counts: Longs, n: int) -> Judged:
    mean = float((counts * np.arange(DECK_SIZE)).sum()) / n
    return laws.normal((mean - (DECK_SIZE - 1) / 2) / math.sqrt((DECK_SIZE + 1) / 12 / n))


def _rejections(counts: Longs, n: int) -> Judged:
    mean, variance = laws.rejections()
    return laws.normal((int(counts.sum()) - n * (DECK_SIZE - 1 + mean)) / math.sqrt(n * variance))


_POKER: Final = tuple(count / laws.HANDS_OF_FIVE for count in laws.POKER)

COUNTED: Final = (
    CountedTest("position x card", "3.2.2 chi-square; 3.2.3", 260, True, "placements", _table),
    CountedTest(
        "cards dealt",
        "3.2.2 total distribution",
        100,
        True,
        "dealt",
        # k of N cards without replacement: (N-1)/(N-k) times Pearson's sum (ST-06).
        lambda counts, _: laws.even(counts, factor=(DECK_SIZE - 1) / (DECK_SIZE - DEALT)),
    ),
    CountedTest("adjacent pairs", "3.2.4", 260, True, "neighbours", lambda counts, _: laws.adjacent(counts)),
    CountedTest("ordering of five", "3.2.4", 60, True, "orderings", lambda counts, _: laws.even(counts)),
    CountedTest("starting hands", "3.2.3", 7_000, True, "starting_hands", lambda counts, _: laws.even(counts)),
    CountedTest("poker categories", "3.2.3", 1_000, False, "poker", _pooled(lambda: _POKER)),
    CountedTest("fixed points", "3.2.3", 100, False, "fixed_points", _pooled(laws.fixed_points)),
    CountedTest("cycles", "3.2.3", 100, False, "cycles", _pooled(laws.cycles)),
    CountedTest("parity", "3.2.3", 100, False, "cycles", _parity),
    CountedTest("descents", "3.2.2 runs", 100, False, "descents", _pooled(laws.descents)),
    CountedTest("mean descents", "3.2.2 runs", 100, True, "descents", _mean_descents),
    CountedTest("rising sequences", "3.2.2 runs", 100, False, "rising", _pooled(laws.descents)),
    CountedTest("mean rising sequences", "3.2.2 runs", 100, True, "rising", _mean_descents),
    CountedTest("consecutive deals", "3.2.2 serial correlation; 3.2.4", 261, True, "next_placements", _table),
    CountedTest("cards that stay", "3.2.4", 101, False, "next_fixed_points", _pooled(laws.fixed_points)),
    CountedTest("overlaps of nine", "3.2.2 overlaps", 200, False, "overlaps_9", _pooled(lambda: laws.overlap(DEALT))),
    CountedTest(
        "overlaps of half a deck",
        "3.2.2 overlaps",
        200,
        False,
        "overlaps_26",
        _pooled(lambda: laws.overlap(DECK_SIZE // 2)),
    ),
    CountedTest(
        "interplay of cards", "3.2.2 interplay correlation", 1_000, True, "index_products", _interplay(INDEX_VALUES)
    ),
    CountedTest(
        "interplay of ranks", "3.2.2 interplay correlation", 1_000, True, "rank_products", _interplay(RANK_VALUES)
    ),
    CountedTest("bytes consumed", "3.2.2 chi-square", 100, True, "bytes", lambda counts, _: laws.even(counts)),
    CountedTest("bytes rejected", "3.2.3 scaling", 100, True, "bytes", _rejections),
)
