"""SP 800-22 sections 2.7 to 2.9, 2.11, 2.12: templates and windows.

Non-overlapping and overlapping templates, Maurer's universal test, serial, approximate entropy. As in `counts`, any
length is accepted.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Final

import numpy as np
from scipy.special import gammaincc

from certification.rtp.compiled import Bytes, Ints, Longs
from certification.statistics.sp800_22.counts import chi_square

OVERLAPPING_CORRECTED: Final = (0.364091, 0.185659, 0.139381, 0.100571, 0.0704323, 0.139865)
"""Section 3.8; the C program holds these and then overwrites them by `OVERLAPPING_OLD`."""
_E: Final = math.exp(-1)
_OLD: Final = (_E, _E / 2, _E * 3 / 8, _E * 13 / 48, _E * 73 / 384)
OVERLAPPING_OLD: Final = (*_OLD, 1 - sum(_OLD))
"""The approximation by which the C program overwrites them: the compound Poisson law of mean 1."""

UNIVERSAL_LEAST: Final = (387_840, 904_960, 2_068_480, 4_654_080, 10_342_400, 22_753_280, 49_643_520, 107_560_960)
"""Bits at least for blocks of 6, 7, … bits (2.9.7)."""
_UNIVERSAL: Final = {
    # block length: expected value, variance (2.9.4)
    2: (1.5374383, 1.338),
    6: (5.2177052, 2.954),
    7: (6.1962507, 3.125),
    8: (7.1836656, 3.238),
    9: (8.1764248, 3.311),
    10: (9.1723243, 3.356),
    11: (10.170032, 3.384),
    12: (11.168765, 3.401),
    13: (12.168070, 3.410),
}


def windows(bits: Bytes, length: int) -> Ints:
    """Return the number that each window of so many bits is, 1 <= length <= 24, the first bit the highest."""
    codes: Ints = bits.astype(np.int32)
    known = 1
    while known < length:
        step = min(known, length - known)
        codes = (codes[:-step] << step) | (codes[step:] & ((1 << step) - 1))
        known += step
    return codes


def circular_counts(bits: Bytes, length: int) -> Longs:
    """Return how often each window comes when the sequence closes to a ring."""
    return np.bincount(windows(np.concatenate((bits, bits[: length - 1])), length), minlength=1 << length)


@cache
def aperiodic_templates(length: int = 9) -> tuple[str, ...]:
    """Return the templates that cannot overlap themselves, in the order of their numbers: 148 of 9 bits."""
    texts = (format(number, f"0{length}b") for number in range(1 << length))
    return tuple(
        text for text in texts if not any(text.startswith(text[-shared:]) for shared in range(1, length))
    )  # fmt: skip


def nonoverlapping(bits: Bytes, templates: tuple[str, ...], blocks: int = 8) -> list[float]:
    """Section 2.7, one p-value a template. No template overlaps itself, so every occurrence counts."""
    length = len(templates[0])
    size = len(bits) // blocks
    counts = np.array(
        [
            np.bincount(windows(bits[start : start + size], length), minlength=1 << length)
            for start in range(0, blocks * size, size)
        ]
    )
    share = 0.5**length
    mean = (size - length + 1) * share
    variance = size * (share - (2 * length - 1) * share**2)
    statistics = ((counts[:, [int(text, 2) for text in templates]] - mean) ** 2 / variance).sum(axis=0)
    return [float(p) for p in gammaincc(blocks / 2, statistics / 2)]


def overlapping(bits: Bytes, probabilities: tuple[float, ...], length: int = 9, block: int = 1032) -> float:
    """Section 2.8, the template of ones."""
    blocks = len(bits) // block
    matches = np.zeros((blocks, block), np.int16)
    found = windows(bits[: blocks * block], length) == (1 << length) - 1
    matches.reshape(-1)[: len(found)] = found
    counts = matches[:, : block - length + 1].sum(axis=1)
    largest = len(probabilities) - 1
    return chi_square(np.bincount(np.minimum(counts, largest), minlength=largest + 1), probabilities)


def universal_statistic(bits: Bytes, length: int, first: int) -> float:
    """Return the mean of log2 of the distance to the last equal block, over the blocks after the `first` ones."""
    blocks = len(bits) // length
    weights = 1 << np.arange(length - 1, -1, -1)
    codes = bits[: blocks * length].reshape(blocks, length) @ weights
    order = np.argsort(codes, kind="stable")  # equal blocks side by side, each in the order of the sequence
    ordered = codes[order]
    before = np.zeros(blocks, np.int64)  # of a block never seen before: place 0, counted from 1
    before[order[1:]] = np.where(ordered[1:] == ordered[:-1], order[:-1] + 1, 0)
    distances = np.arange(1, blocks + 1) - before
    return float(np.log2(distances[first:]).mean())


def universal_length(n: int) -> int:
    """Return the block length for so many bits, 5 if there are too few."""
    return 5 + sum(n >= least for least in UNIVERSAL_LEAST)


def universal(bits: Bytes, length: int, first: int, *, with_factor: bool = True) -> float:
    """Section 2.9, Maurer; `with_factor` false leaves out c(L, K), as the publication's small example does."""
    mean, variance = _UNIVERSAL[length]
    tested = len(bits) // length - first
    factor = 0.7 - 0.8 / length + (4 + 32 / length) * tested ** (-3 / length) / 15
    spread = factor * math.sqrt(variance / tested) if with_factor else math.sqrt(variance)
    return math.erfc(abs(universal_statistic(bits, length, first) - mean) / (math.sqrt(2) * spread))


def serial(bits: Bytes, length: int = 16) -> tuple[float, float]:
    """Section 2.11, two p-values. Where all windows come equally often rounding goes below zero, and is cut off."""
    n = len(bits)
    counts = circular_counts(bits, length)
    psi = []
    for shorter in (length, length - 1, length - 2):
        squares = float((counts.astype(np.float64) ** 2).sum())
        psi.append((1 << shorter) / n * squares - n if shorter else 0.0)
        counts = counts.reshape(-1, min(2, len(counts))).sum(axis=1)
    first, second = psi[0] - psi[1], psi[0] - 2 * psi[1] + psi[2]
    return (
        float(gammaincc(2.0 ** (length - 2), max(first, 0.0) / 2)),
        float(gammaincc(2.0 ** (length - 3), max(second, 0.0) / 2)),
    )


def approximate_entropy(bits: Bytes, length: int = 10) -> float:
    """Section 2.12. Where all windows come equally often rounding goes below zero, and is cut off."""
    n = len(bits)
    counts = circular_counts(bits, length + 1)
    longer = _phi(counts, n)
    entropy = _phi(counts.reshape(-1, 2).sum(axis=1), n) - longer
    return float(gammaincc(2.0 ** (length - 1), max(0.0, n * (math.log(2) - entropy))))


def _phi(counts: Longs, n: int) -> float:
    shares = counts[counts > 0] / n
    return float((shares * np.log(shares)).sum())
