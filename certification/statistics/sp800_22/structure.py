"""SP 800-22 sections 2.5, 2.6, 2.10: rank of binary matrices, spectrum, linear complexity. Any length is accepted."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import scipy.fft

from certification.rtp.compiled import Bytes, Longs, compiled
from certification.statistics.sp800_22.counts import chi_square

COMPLEXITY_CORRECTED: Final = 0.010417
"""The probability of the lowest class of 2.10; publication and C program misprint it as `COMPLEXITY_MISPRINT`."""
COMPLEXITY_MISPRINT: Final = 0.01047
_COMPLEXITY: Final = (0.03125, 0.125, 0.5, 0.25, 0.0625, 0.020833)


def rank(bits: Bytes, size: int = 32) -> float:
    """Section 2.5, square matrices of at most 64 rows; the probabilities are the exact ones of the size."""
    matrices = len(bits) // size**2
    weights = np.left_shift(np.uint64(1), np.arange(size, dtype=np.uint64))
    rows = (bits[: matrices * size**2].reshape(matrices, size, size) * weights).sum(axis=2, dtype=np.uint64)
    missing = np.minimum(size - _ranks(rows, size), 2)
    full, less = _rank_share(size, size), _rank_share(size, size - 1)
    return chi_square(np.bincount(missing, minlength=3), (full, less, 1 - full - less))


def _rank_share(size: int, of: int) -> float:
    product = math.prod(
        (1 - 2.0 ** (step - size)) ** 2 / (1 - 2.0 ** (step - of)) for step in range(of)
    )  # fmt: skip
    return float(2.0 ** (of * (2 * size - of) - size**2) * product)


def _ranks(rows: np.ndarray[tuple[int, int], np.dtype[np.uint64]], size: int) -> Longs:
    """Return the ranks over GF(2) of all matrices at once; `rows` is used up."""
    ranks = np.zeros(len(rows), np.int64)
    every = np.arange(len(rows))
    for column in range(size):
        has = (rows >> np.uint64(column)) & np.uint64(1) == 1
        pivot = has.argmax(axis=1)
        found = has[every, pivot]
        row = np.where(found, rows[every, pivot], 0)
        has[every, pivot] &= False
        rows ^= np.where(has, row[:, None], np.uint64(0))
        rows[every[found], pivot[found]] = 0
        ranks += found
    return ranks


def dft(bits: Bytes, divisor: float = 4.0) -> float:
    """Section 2.6. The variance of the publication is n 0.95 0.05 / 4, found too small; 3.8 fits better."""
    n = len(bits)
    heights = np.abs(scipy.fft.rfft(bits * 2.0 - 1.0)[: n // 2])
    low = int(np.count_nonzero(heights < math.sqrt(2.995732274 * n)))
    return math.erfc(abs(low - 0.95 * n / 2) / math.sqrt(n * 0.95 * 0.05 / divisor) / math.sqrt(2))


def linear_complexity(bits: Bytes, lowest: float, block: int = 500) -> float:
    """Section 2.10; `lowest` is the probability of the lowest class."""
    blocks = len(bits) // block
    complexities = _complexities(bits[: blocks * block].reshape(blocks, block))
    sign = -1 if block % 2 else 1
    mean = block / 2 + (9 - sign) / 36 - (block / 3 + 2 / 9) / 2.0**block
    deviations = sign * (complexities - mean) + 2 / 9
    classes = np.searchsorted((-2.5, -1.5, -0.5, 0.5, 1.5, 2.5), deviations)
    return chi_square(np.bincount(classes, minlength=7), (lowest, *_COMPLEXITY))


def complexity(bits: Bytes) -> int:
    """Return the length of the shortest linear feedback shift register that gives the bits (Berlekamp, Massey)."""
    return int(_complexities(bits.reshape(1, -1))[0])


@compiled
def _complexities(blocks: Bytes) -> Longs:
    """Berlekamp-Massey on words of 64 bits: bit i of `reach` is the bit i places before the one looked at."""
    n = blocks.shape[1]
    words = n // 64 + 1
    found = np.zeros(blocks.shape[0], np.int64)
    one = np.uint64(1)
    top = np.uint64(63)
    for number in range(blocks.shape[0]):
        reach = np.zeros(words, np.uint64)
        now = np.zeros(words, np.uint64)
        last = np.zeros(words, np.uint64)  # the register before its last change, shifted as time went on
        kept = np.zeros(words, np.uint64)
        now[0] = last[0] = one
        length = 0
        for place in range(n):
            high = min(place // 64 + 1, words - 1)
            low = min(length // 64, high)
            for word in range(high, 0, -1):
                reach[word] = (reach[word] << one) | (reach[word - 1] >> top)
                last[word] = (last[word] << one) | (last[word - 1] >> top)
            reach[0] = (reach[0] << one) | np.uint64(blocks[number, place])
            last[0] <<= one
            parity = np.uint64(0)
            for word in range(low + 1):
                parity ^= now[word] & reach[word]
            for half in (32, 16, 8, 4, 2, 1):
                parity ^= parity >> np.uint64(half)
            if not parity & one:
                continue
            if 2 * length <= place:
                kept[: high + 1] = now[: high + 1]
            for word in range(high + 1):
                now[word] ^= last[word]
            if 2 * length <= place:
                last[: high + 1] = kept[: high + 1]
                length = place + 1 - length
        found[number] = length
    return found
