"""The tests that look at the deals in their order, with a state carried from chunk to chunk, and at all deals together.

Coupon collector, gaps, serial correlation, runs above and below the median look at the cards at the first nine places,
deal after deal. Duplicates look at whole decks, at the nine cards dealt, and at five; they keep 16 bytes a deck.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from certification.rtp.compiled import Bytes, Longs, compiled
from certification.statistics.battery import laws
from certification.statistics.battery.counting import DEALT, INDEX_VALUES
from certification.statistics.battery.laws import Judged
from rng.shuffle import DECK_SIZE

Words = npt.NDArray[np.uint64]

_COUPON_CELLS: Final = 4096
_GAP_CELLS: Final = 512
_LAGS: Final = (1, 2, 3)
_ACES: Final = np.arange(DECK_SIZE) % 13 == 12
_HEARTS: Final = np.arange(DECK_SIZE) // 13 == 2
_MULTIPLIERS: Final = np.array(
    [int.from_bytes(hashlib.sha256(b"place %d" % place).digest()[:8]) | 1 for place in range(DECK_SIZE)], np.uint64
)
"""Without structure: cards are small numbers, and small sums of multipliers that have one (powers of the place, say)
come to the same for different decks far more often than once in 2^64 pairs.
"""


@dataclass(frozen=True, slots=True)
class StreamTest:
    """One test over the order of deals, or over all of them."""

    name: str
    clause: str
    least: int
    continuous: bool
    judge: Callable[[Any], Judged]
    """Judges the streams so far, or raw output."""


@dataclass(frozen=True, slots=True)
class Lead:
    """What a chunk keeps of each deal: the first nine cards, and three keys. Made where the decks are."""

    cards: Bytes
    decks: Words
    nines: Words
    fives: Longs


def lead(decks: Bytes) -> Lead:
    """Return what is kept. A deck's key is a hash of 64 bits; that of nine cards is exact, of five their number."""
    with np.errstate(over="ignore"):
        keys = decks.astype(np.uint64) @ _MULTIPLIERS
    nines = np.left_shift(np.uint64(1), decks[:, :DEALT].astype(np.uint64)).sum(axis=1, dtype=np.uint64)
    ordered = np.sort(decks[:, :5], axis=1)
    fives = sum(_CHOOSE[size][ordered[:, size - 1]] for size in range(1, 6))
    return Lead(np.ascontiguousarray(decks[:, :DEALT]), keys, nines, np.asarray(fives))


_CHOOSE: Final = [np.array([math.comb(card, size) for card in range(DECK_SIZE)]) for size in range(6)]


@compiled
def _collect(kinds: Bytes, seen: Bytes, state: Longs, lengths: Longs) -> None:
    """Coupon collector; `state` holds how many kinds have come, and how many deals that took."""
    for kind in kinds:
        state[1] += 1
        if not seen[kind]:
            seen[kind] = 1
            state[0] += 1
            if state[0] == seen.size:
                lengths[min(state[1], lengths.size - 1)] += 1
                seen[:] = 0
                state[:] = 0


@compiled
def _measure_gaps(hits: Bytes, state: Longs, lengths: Longs) -> None:
    """Gaps between hits; `state` holds the misses since the last one."""
    for hit in hits:
        if hit:
            lengths[min(state[0], lengths.size - 1)] += 1
            state[0] = 0
        else:
            state[0] += 1


@dataclass
class _Collector:
    kinds: int
    seen: Bytes = field(init=False)
    state: Longs = field(default_factory=lambda: np.zeros(2, np.int64))
    lengths: Longs = field(default_factory=lambda: np.zeros(_COUPON_CELLS, np.int64))

    def __post_init__(self) -> None:
        self.seen = np.zeros(self.kinds, np.uint8)

    def judge(self) -> Judged:
        return laws.pooled(self.lengths, laws.coupon_collector(self.kinds, _COUPON_CELLS))


@dataclass
class _Gaps:
    is_hit: npt.NDArray[np.bool_]
    state: Longs = field(default_factory=lambda: np.zeros(1, np.int64))
    lengths: Longs = field(default_factory=lambda: np.zeros(_GAP_CELLS, np.int64))

    def feed(self, cards: Bytes) -> None:
        _measure_gaps(self.is_hit[cards].view(np.uint8), self.state, self.lengths)

    def judge(self) -> Judged:
        return laws.pooled(self.lengths, laws.gaps(float(self.is_hit.mean()), _GAP_CELLS))


class DeckStreams:
    """The state of these tests; fed chunk after chunk, in order."""

    def __init__(self) -> None:
        self._n = 0
        self.cards = _Collector(DECK_SIZE)
        self.ranks = _Collector(13)
        self.aces = _Gaps(_ACES)
        self.hearts = _Gaps(_HEARTS)
        self._last = np.zeros((0, DEALT))
        self._products = np.zeros((len(_LAGS), DEALT))
        self._pairs = [0] * len(_LAGS)
        self._alike = np.zeros(DEALT, np.int64)
        self._decks: list[Words] = []
        self._nines: list[Words] = []
        self._fives = np.zeros(laws.HANDS_OF_FIVE, np.bool_)

    def feed(self, lead: Lead) -> None:
        """Take in the next deals."""
        cards = lead.cards
        self._n += len(cards)
        top = np.ascontiguousarray(cards[:, 0])
        _collect(top, self.cards.seen, self.cards.state, self.cards.lengths)
        _collect(top % 13, self.ranks.seen, self.ranks.state, self.ranks.lengths)
        self.aces.feed(top)
        self.hearts.feed(np.ascontiguousarray(cards[:, DEALT - 1]))
        fresh = len(cards)
        values = np.concatenate((self._last, np.array(INDEX_VALUES, np.float64)[cards]))
        for place, lag in enumerate(_LAGS):
            later = values[max(lag, len(values) - fresh) :]
            earlier = values[len(values) - len(later) - lag : len(values) - lag]
            self._products[place] += (later * earlier).sum(axis=0)
            self._pairs[place] += len(later)
            if lag == 1:
                self._alike += ((later > 0) == (earlier > 0)).sum(axis=0)
        self._last = values[-max(_LAGS) :]
        self._decks.append(lead.decks)
        self._nines.append(lead.nines)
        self._fives[lead.fives] = True

    def serial(self) -> Judged:
        """Of nine places and three lags; each product has mean 0 and variance that of a card, squared."""
        variance = sum(value**2 for value in INDEX_VALUES) / DECK_SIZE
        scores = self._products / variance / np.sqrt(np.array(self._pairs))[:, None]
        return laws.chi_square(float((scores**2).sum()), scores.size)

    def runs(self) -> Judged:
        """A run goes on with probability 1/2: cards above and below the median are equally many."""
        pairs = self._pairs[0]
        return laws.chi_square(float((((2 * self._alike - pairs) ** 2) / pairs).sum()), DEALT)

    def duplicate_decks(self) -> Judged:
        repeats = self._n - len(np.unique(np.concatenate(self._decks)))
        # 52! decks, and a hash of 64 bits of them
        return laws.poisson(repeats, math.comb(self._n, 2) * (1 / math.factorial(DECK_SIZE) + 2.0**-64))

    def duplicate_nines(self) -> Judged:
        return laws.repeats(self._n, len(np.unique(np.concatenate(self._nines))), math.comb(DECK_SIZE, DEALT))

    def duplicate_fives(self) -> Judged:
        return laws.repeats(self._n, int(np.count_nonzero(self._fives)), laws.HANDS_OF_FIVE)


STREAMED: Final = (
    StreamTest("coupon collector, cards", "3.2.2 coupon collector", 100_000, False, lambda found: found.cards.judge()),
    StreamTest("coupon collector, ranks", "3.2.2 coupon collector", 10_000, False, lambda found: found.ranks.judge()),
    StreamTest("gaps of aces on top", "3.2.2 runs", 10_000, False, lambda found: found.aces.judge()),
    StreamTest("gaps of hearts on the river", "3.2.2 runs", 10_000, False, lambda found: found.hearts.judge()),
    StreamTest("serial correlation", "3.2.2 serial correlation", 1_000, True, DeckStreams.serial),
    StreamTest("runs about the median", "3.2.2 runs", 1_000, True, DeckStreams.runs),
    StreamTest("duplicate decks", "3.2.2 duplicates", 2, False, DeckStreams.duplicate_decks),
    StreamTest("duplicates of nine", "3.2.2 duplicates", 100_000, False, DeckStreams.duplicate_nines),
    StreamTest("duplicates of five", "3.2.2 duplicates", 5_000, False, DeckStreams.duplicate_fives),
)
