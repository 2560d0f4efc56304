"""Exact null laws of a fair 52-card shuffle, and the comparison of counts with them.

Every law is a tuple of probabilities. `pooled` is the chi-square with neighbouring cells merged until five are expected
in each. With fewer than two cells left a comparison shows nothing, and its p-value is 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Final

import numpy as np
from scipy import stats
from scipy.special import gammaincc

from certification.rtp.compiled import Longs
from rng.shuffle import DECK_SIZE

LEAST_EXPECTED: Final = 5.0
MANY: Final = 50.0
"""Expected from which a number is taken as normal."""
HANDS_OF_FIVE: Final = math.comb(DECK_SIZE, 5)
POKER: Final = (1302540, 1098240, 123552, 54912, 10200, 5108, 3744, 624, 40)
"""Of five cards: high card, pair, two pair, trips, straight, flush, full house, quads, straight flush."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A statistic, told with its law, and its p-value."""

    p: float
    statistic: float
    law: str


def chi_square(statistic: float, df: float) -> Judged:
    """Judge a chi-square statistic."""
    return Judged(float(gammaincc(df / 2, statistic / 2)), statistic, f"chi2 {df:g}")


def even(observed: Longs, df: int | None = None, factor: float = 1.0) -> Judged:
    """Judge counts against equal shares; `factor` scales the sum where draws without replacement shrink it."""
    expected = observed.sum() / observed.size
    statistic = factor * float(((observed - expected) ** 2).sum()) / expected
    return chi_square(statistic, observed.size - 1 if df is None else df)


def pooled(observed: Longs, law: Sequence[float]) -> Judged:
    """Judge counts against a law, neighbouring cells merged until five are expected in each."""
    expected = np.array(law) * observed.sum()
    cells: list[tuple[float, float]] = []
    waiting = [0.0, 0.0]
    for seen, mean in zip(observed.tolist(), expected.tolist(), strict=True):
        waiting[0] += seen
        waiting[1] += mean
        if waiting[1] >= LEAST_EXPECTED:
            cells.append((waiting[0], waiting[1]))
            waiting = [0.0, 0.0]
    if cells:
        cells[-1] = (cells[-1][0] + waiting[0], cells[-1][1] + waiting[1])
    if len(cells) < 2:
        return Judged(1.0, 0.0, "one cell")
    return chi_square(sum((seen - mean) ** 2 / mean for seen, mean in cells), len(cells) - 1)


def normal(z: float) -> Judged:
    """Judge a standard score, two-sided."""
    return Judged(math.erfc(abs(z) / math.sqrt(2)), z, "N(0,1)")


def binomial(successes: int, trials: int) -> Judged:
    """Judge a count of fair coins, two-sided."""
    return Judged(float(stats.binomtest(successes, trials, 0.5).pvalue), successes, f"Bin({trials},1/2)")


def poisson(count: int, mean: float) -> Judged:
    """Judge a rare count, two-sided."""
    tails = (float(stats.poisson.cdf(count, mean)), float(stats.poisson.sf(count - 1, mean)))
    return Judged(min(1.0, 2 * min(tails)), count, f"Poisson({mean:.4g})")


def repeats(drawn: int, distinct: int, cells: int) -> Judged:
    """Judge how many of `drawn` were drawn before, of `cells` that are equally likely: Poisson while few are expected,
    normal then, and again Poisson of the cells never drawn once these are few.
    """
    missed = math.exp(drawn * math.log1p(-1 / cells))
    mean = drawn + cells * math.expm1(drawn * math.log1p(-1 / cells))
    if mean < MANY:
        return poisson(drawn - distinct, mean)
    if cells * missed < MANY:
        return poisson(cells - distinct, cells * missed)
    variance = cells * missed * (1 - (1 + drawn / cells) * missed)
    return normal((drawn - distinct - mean) / math.sqrt(variance))


def largest(scores: Sequence[float]) -> Judged:
    """Judge the largest of many standard scores, two-sided (Sidak)."""
    worst = max(map(abs, scores))
    single = math.erfc(worst / math.sqrt(2))
    return Judged(-math.expm1(len(scores) * math.log1p(-min(single, 1 - 1e-16))), worst, f"max |z| of {len(scores)}")


# --- laws ---


@cache
def fixed_points() -> tuple[float, ...]:
    """Of 0..52 cards in their own place: D(52-k) / ((52-k)! k!)."""
    kept = [Fraction(0)] * (DECK_SIZE + 1)  # D(m) / m!
    for size in range(DECK_SIZE + 1):
        kept[size] = sum((Fraction((-1) ** k, math.factorial(k)) for k in range(size + 1)), Fraction(0))
    return tuple(float(kept[DECK_SIZE - k] / math.factorial(k)) for k in range(DECK_SIZE + 1))


@cache
def cycles() -> tuple[float, ...]:
    """Of 0..52 cycles: Stirling numbers of the first kind over 52!."""
    row = [1]
    for size in range(DECK_SIZE):
        row = [
            (row[k - 1] if k else 0) + (size * row[k] if k <= size else 0) for k in range(size + 2)
        ]  # c(m+1, k) = c(m, k-1) + m c(m, k)
    return _over_factorial(row)


@cache
def descents() -> tuple[float, ...]:
    """Of 0..51 descents: Eulerian numbers over 52!; mean 25.5, variance 53/12."""
    row = [1]
    for size in range(2, DECK_SIZE + 1):
        row = [((k + 1) * row[k] if k < size - 1 else 0) + ((size - k) * row[k - 1] if k else 0) for k in range(size)]
    return _over_factorial(row)


def _over_factorial(row: list[int]) -> tuple[float, ...]:
    return tuple(float(Fraction(count, math.factorial(DECK_SIZE))) for count in row)


@cache
def overlap(size: int) -> tuple[float, ...]:
    """Of cards common to the first `size` of two decks: hypergeometric."""
    whole = math.comb(DECK_SIZE, size)
    return tuple(math.comb(size, k) * math.comb(DECK_SIZE - size, size - k) / whole for k in range(size + 1))


@cache
def coupon_collector(kinds: int, cells: int) -> tuple[float, ...]:
    """Of the number of deals until all kinds have come, 0..cells-2; the last cell holds the rest."""
    shares = np.zeros(kinds + 1)
    shares[0] = 1.0
    stay = np.arange(kinds + 1) / kinds
    law = [0.0]
    for _ in range(cells - 2):
        moved = shares * (1 - stay)
        shares = shares * stay
        shares[1:] += moved[:-1]
        law.append(float(shares[kinds]))
        shares[kinds] = 0.0
    return (*law, float(shares.sum()))


@cache
def gaps(share: float, cells: int) -> tuple[float, ...]:
    """Of the misses between two hits: geometric; the last cell holds the rest."""
    return (*(share * (1 - share) ** misses for misses in range(cells - 1)), (1 - share) ** (cells - 1))


ADJACENT_DF: Final = 1274 + 1275 * 53 / 51 + 102 / 51
"""Adjacent ordered pairs: the 2,652 counts have covariance 1 on 1,274 directions, 53/51 on 1,275 and 1/51 on 102 (the
representation of S(52) on ordered pairs), so the sum is chi2(1274) + 53/51 chi2(1275) + 1/51 chi2(102); mean 2,601."""
ADJACENT_VARIANCE: Final = 2 * (1274 + 1275 * (53 / 51) ** 2 + 102 / 51**2)


def adjacent(observed: Longs) -> Judged:
    """Judge counts of ordered neighbours, 52 x 52, the diagonal empty: a scaled chi-square of equal mean, variance."""
    off = observed.reshape(DECK_SIZE, DECK_SIZE)[~np.eye(DECK_SIZE, dtype=bool)]
    scale = ADJACENT_VARIANCE / (2 * ADJACENT_DF)
    judged = even(off)
    return chi_square(judged.statistic / scale, round(ADJACENT_DF / scale, 2))


def correlations(products: Longs, values: Sequence[int], n: int) -> list[float]:
    """Return standard scores of the sums of products of all 1,326 pairs of places, exact moments without replacement.

    `products[i, j]` is the sum over n decks of value x value at places i and j; the values of all cards sum to zero.
    """
    squares = sum(value**2 for value in values)
    fourths = sum(value**4 for value in values)
    pairs = DECK_SIZE * (DECK_SIZE - 1)
    mean = -squares / pairs
    variance = (squares**2 - fourths) / pairs - mean**2
    table = products.reshape(DECK_SIZE, DECK_SIZE)[np.triu_indices(DECK_SIZE, 1)]
    return [float(score) for score in (table - n * mean) / math.sqrt(n * variance)]


@cache
def rejections(size: int = DECK_SIZE) -> tuple[float, float]:
    """Return mean and variance of the bytes that one shuffle rejects."""
    rejected = [256 % n / 256 for n in range(2, size + 1)]
    return sum(q / (1 - q) for q in rejected), sum(q / (1 - q) ** 2 for q in rejected)
