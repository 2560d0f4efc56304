"""SP 800-22 sections 2.13 to 2.15: cumulative sums, random excursions and their variant. Any length is accepted."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy.special import gammaincc, ndtr

from certification.rtp.compiled import Bytes, Longs

EXCURSION_STATES: Final = (-4, -3, -2, -1, 1, 2, 3, 4)
VARIANT_STATES: Final = tuple(state for state in range(-9, 10) if state)
_VISITS: Final = 5
"""Visits of a cycle are counted up to five or more."""


def steps_of(bits: Bytes) -> Longs:
    """Return the sums of the walk after each bit, a one upwards."""
    return np.cumsum(bits * np.int64(2) - 1)


def cumulative_sums(walk: Longs) -> tuple[float, float]:
    """Section 2.13: forward, backward. The limits of the sums are cut toward zero, as in the C program."""
    total = int(walk[-1])
    forward = int(np.abs(walk).max())
    backward = int(max(abs(total), np.abs(total - walk).max()))
    return _farthest(len(walk), forward), _farthest(len(walk), backward)


def _farthest(n: int, farthest: int) -> float:
    ratio = n // farthest
    unit = farthest / math.sqrt(n)
    last = int((ratio - 1) / 4)
    near = 4 * np.arange(int((1 - ratio) / 4), last + 1)
    far = 4 * np.arange(int((-3 - ratio) / 4), last + 1)
    inside = (ndtr((near + 1) * unit) - ndtr((near - 1) * unit)).sum()
    p = float(1 - inside + (ndtr((far + 3) * unit) - ndtr((far + 1) * unit)).sum())
    return min(max(p, 0.0), 1.0)  # a walk that hardly leaves zero has so many terms that their rounding shows


def cycles(walk: Longs) -> int:
    """Return the number of cycles, a last one that does not come back to zero included."""
    return int(np.count_nonzero(walk == 0)) + int(walk[-1] != 0)


def excursions(walk: Longs) -> list[float]:
    """Section 2.14, one p-value for each of `EXCURSION_STATES`."""
    count = cycles(walk)
    cycle = np.cumsum(walk == 0)
    found = []
    for state in EXCURSION_STATES:
        visits = np.minimum(np.bincount(cycle[walk == state], minlength=count)[:count], _VISITS)
        observed = np.bincount(visits, minlength=_VISITS + 1)
        expected = count * np.array(_visit_shares(abs(state)))
        found.append(float(gammaincc(_VISITS / 2, ((observed - expected) ** 2 / expected).sum() / 2)))
    return found


def _visit_shares(distance: int) -> list[float]:
    away = 1 - 1 / (2 * distance)
    some = [away ** (visits - 1) / (4 * distance**2) for visits in range(1, _VISITS)]
    return [away, *some, away ** (_VISITS - 1) / (2 * distance)]


def excursions_variant(walk: Longs) -> list[float]:
    """Section 2.15, one p-value for each of `VARIANT_STATES`."""
    count = cycles(walk)
    return [
        math.erfc(abs(int(np.count_nonzero(walk == state)) - count) / math.sqrt(2 * count * (4 * abs(state) - 2)))
        for state in VARIANT_STATES
    ]
