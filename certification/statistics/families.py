"""Verdicts over many p-values: Holm's step-down at a family level, and whether p-values are uniform.

"Collectively at 99 %" (GLI-19 3.2.2, ST-05) is a family level of 1 %. Seven independent tests at 1 % each reject a
perfect source 7 % of the time. Holm's procedure rejects it at most 1 % of the time, however the tests depend on each
other. ValueError for a family level or a p-value outside 0..1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import numpy as np
from scipy import stats
from scipy.special import gammaincc

Name = TypeVar("Name")
_BINS: Final = 10
UNIFORMITY_LEAST: Final = 55
"""P-values at least for the chi-square of their tenths (SP 800-22 4.2.2)."""


def holm(p_values: Mapping[Name, float], alpha: float) -> list[Name]:
    """Return the names that Holm's procedure rejects at the family level, the smallest p-value first."""
    if not 0 < alpha < 1:
        raise ValueError(f"the family level is {alpha}, it lies between 0 and 1")
    if not all(0 <= p <= 1 for p in p_values.values()):
        raise ValueError("a p-value is a number from 0 to 1")
    rejected: list[Name] = []
    for name, p in sorted(p_values.items(), key=lambda item: item[1]):
        if p > alpha / (len(p_values) - len(rejected)):
            break
        rejected.append(name)
    return rejected


def uniformity(p_values: Sequence[float]) -> float:
    """Return P_T of SP 800-22 4.2.2: the chi-square of p-values in ten equal bins."""
    bins = np.minimum((np.asarray(p_values) * _BINS).astype(int), _BINS - 1)
    expected = len(p_values) / _BINS
    return float(
        gammaincc((_BINS - 1) / 2, ((np.bincount(bins, minlength=_BINS) - expected) ** 2 / expected).sum() / 2)
    )


def kolmogorov(p_values: Sequence[float]) -> float:
    """Return the p-value of Kolmogorov's test that these come from the uniform law; for continuous statistics only."""
    return float(stats.kstest(p_values, "uniform").pvalue)
