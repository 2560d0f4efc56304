"""Sequential test of counts against an exact distribution (docs/monitoring.md, section 3).

Each function gives ln E of a test martingale. Under the distribution E starts at one and keeps mean one, so by Ville's
inequality it ever reaches 1/alpha with a chance of at most alpha, however often it is looked at.

    mean          E = average over a grid of l of  exp(l (S - n m)) / M(l)^n,  M(l) the exact mean of exp(l (X - m)):
                  the mixture SPRT of Robbins (1970) and Howard, Ramdas, McAuliffe, Sekhon (2021), with the exact
                  distribution in the place of a bound
    frequencies   E = average over k of the Dirichlet(k p) mixture of likelihood ratios, closed by gamma functions
                  (Ville; Lindon, Malek 2022)
    betting       E = average over a grid of l of  product (1 + l (X - m)): needs only that the mean is at most m and
                  that X is at least its least (Waudby-Smith, Ramdas 2024). So it holds for any way of playing

All are functions of counts: the order of rounds does not matter, and counts of several nodes add up. A key that the
distribution does not have is infinite evidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import cache
from typing import Final

from rgs.core.returns.distributions import Bound, Law

STEPS: Final = tuple(2.0**-step for step in range(1, 13))
"""Sizes of bets and tilts, in standard deviations or in the largest bet that cannot ruin: each halves the one before,
so that one of them is near the best whatever the bias is; the least is best for a bias of 1/4096 of a deviation.
"""
PRIORS: Final = (1e2, 1e4, 1e6)
"""Weights of the law in the Dirichlet mixtures: small ones see gross errors early, large ones small errors late."""
_HALVINGS: Final = 60


def law_evidence(law: Law, counts: Mapping[str, int]) -> float:
    """Return ln E of the counts of a figure with a law: of its mean, or of its frequencies."""
    if any(count and not law.chances.get(key) for key, count in counts.items()):
        return math.inf
    if not law.values:
        return average(_dirichlet(law, group, counts, prior) for group in law.groups for prior in PRIORS)
    n, total = moments(law, counts)
    return _tilted(law, n, float(total - n * law.mean))


def moments(law: Law, counts: Mapping[str, int]) -> tuple[int, Fraction]:
    """The number of rounds that a figure with values counts, and the sum of their values."""
    total = sum((count * law.values[key] for key, count in counts.items()), Fraction(0))
    return sum(counts.values()), total


def band(law: Law, n: int, limit: float) -> tuple[float, float]:
    """The measured means between which ln E of `n` rounds stays below the limit."""
    mean = float(law.mean)
    low, high = (float(worst(law.values.values())) - mean for worst in (min, max))
    # ln E is convex in the sum, and not above 0 in its middle.
    least = -_reached(lambda shift: _tilted(law, n, -shift * n) >= limit, -low)
    most = _reached(lambda shift: _tilted(law, n, shift * n) >= limit, high)
    return mean + least, mean + most


def bound_evidence(bound: Bound, counts: Mapping[str, int], shift: float = 0.0) -> float:
    """Return ln E against "the mean is at most `bound.mean`", each value moved up by the shift."""
    values = ((float(Fraction(key)) + shift, count) for key, count in counts.items())
    return betting(values, float(bound.mean), float(bound.least))


def bound_limit(bound: Bound, counts: Mapping[str, int], limit: float) -> float:
    """Return the measured mean from which on ln E would reach the limit, were every round moved up by the same."""
    measured = bound_measured(counts)
    if bound_evidence(bound, counts) >= limit:
        return measured - _reached(lambda shift: bound_evidence(bound, counts, -shift) < limit, float(-bound.least))
    return measured + _reached(lambda shift: bound_evidence(bound, counts, shift) >= limit, float(-bound.least))


def bound_measured(counts: Mapping[str, int]) -> float:
    """Return the measured mean of counts whose keys are values."""
    return float(sum(Fraction(key) * count for key, count in counts.items()) / sum(counts.values()))


def betting(values: Iterable[tuple[float, int]], mean: float, least: float) -> float:
    """Return ln E of (value, count) against "the mean is at most `mean`"; a value below `least` counts as that."""
    bets = [step / (mean - least) for step in STEPS]
    sums = [0.0] * len(bets)
    for value, count in values:
        won = max(value, least) - mean
        for place, bet in enumerate(bets):
            sums[place] += count * math.log1p(bet * won)
    return average(sums)


def average(logarithms: Iterable[float]) -> float:
    """Return ln of the average of numbers that are given by their logarithms: of several E, again an E."""
    known = list(logarithms)
    most = max(known)
    return most + math.log(math.fsum(math.exp(one - most) for one in known) / len(known))


@cache
def _tilts(law: Law) -> tuple[tuple[float, float], ...]:
    """(l, ln M(l)) of the grid, with both signs."""
    mean, deviation = law.mean, math.sqrt(law.variance)
    centred = [(float(chance), float(law.values[key] - mean)) for key, chance in law.chances.items()]
    tilts = [sign * step / deviation for step in STEPS for sign in (1, -1)]
    return tuple(
        (tilt, math.log(math.fsum(chance * math.exp(tilt * value) for chance, value in centred))) for tilt in tilts
    )


def _tilted(law: Law, n: int, excess: float) -> float:
    return average(tilt * excess - n * cost for tilt, cost in _tilts(law))


def _dirichlet(law: Law, group: Iterable[str], counts: Mapping[str, int], prior: float) -> float:
    evidence, n = 0.0, 0
    for key in group:
        count, chance = counts.get(key, 0), float(law.chances[key])
        if count:
            weight = prior * chance
            evidence += math.lgamma(weight + count) - math.lgamma(weight) - count * math.log(chance)
            n += count
    return evidence + math.lgamma(prior) - math.lgamma(prior + n)


def _reached(is_reached: Callable[[float], bool], most: float) -> float:
    """Return where, from 0 to `most`, something begins to be so, to the precision of a float; `most` if nowhere."""
    if not is_reached(most):
        return most
    below = 0.0
    for _ in range(_HALVINGS):
        middle = (below + most) / 2
        below, most = (below, middle) if is_reached(middle) else (middle, most)
    return most
