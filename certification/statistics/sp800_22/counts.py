"""SP 800-22 sections 2.1 to 2.4: frequency, frequency within blocks, runs, longest run of ones in a block.

Every function takes bits as 0 and 1 in uint8 and returns p-values. Short sequences are accepted, so that the
publication's examples can be computed; `suite` enforces the least lengths.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy.special import gammaincc

from certification.rtp.compiled import Bytes, Longs, compiled

_LONGEST_RUN: Final = (
    # bits at least, block length, shortest class, probabilities of the classes (3.4)
    (750_000, 10_000, 10, (0.0882, 0.2092, 0.2483, 0.1933, 0.1208, 0.0675, 0.0727)),
    (6_272, 128, 4, (0.1174035788, 0.242955959, 0.249363483, 0.17517706, 0.102701071, 0.112398847)),
    (0, 8, 1, (0.21484375, 0.3671875, 0.23046875, 0.1875)),
)


def chi_square(observed: Longs, probabilities: tuple[float, ...]) -> float:
    """Return the p-value of counts against probabilities that sum to 1."""
    expected = np.array(probabilities) * observed.sum()
    return float(gammaincc((len(probabilities) - 1) / 2, ((observed - expected) ** 2 / expected).sum() / 2))


def frequency(bits: Bytes) -> float:
    """Section 2.1, monobit."""
    n = len(bits)
    return math.erfc(abs(2 * int(bits.sum(dtype=np.int64)) - n) / math.sqrt(2 * n))


def block_frequency(bits: Bytes, block: int = 128) -> float:
    """Section 2.2."""
    blocks = len(bits) // block
    shares = bits[: blocks * block].reshape(blocks, block).mean(axis=1)
    return float(gammaincc(blocks / 2, 4 * block * ((shares - 0.5) ** 2).sum() / 2))


def runs(bits: Bytes) -> float:
    """Section 2.3; 0 where the frequency alone shows the sequence to be none (step 2)."""
    n = len(bits)
    share = float(bits.mean())
    if abs(share - 0.5) >= 2 / math.sqrt(n):
        return 0.0
    count = 1 + int(np.count_nonzero(bits[1:] != bits[:-1]))
    spread = share * (1 - share)
    return math.erfc(abs(count - 2 * n * spread) / (2 * math.sqrt(2 * n) * spread))


def longest_run(bits: Bytes) -> float:
    """Section 2.4; all floor(n / M) blocks are used, as in the C program (the text stops at 75 of 10,000 bits)."""
    _, block, shortest, probabilities = next(row for row in _LONGEST_RUN if len(bits) >= row[0])
    blocks = len(bits) // block
    longest = _longest_runs(bits[: blocks * block].reshape(blocks, block))
    classes = np.clip(longest, shortest, shortest + len(probabilities) - 1) - shortest
    return chi_square(np.bincount(classes, minlength=len(probabilities)), probabilities)


@compiled
def _longest_runs(blocks: Bytes) -> Longs:
    longest = np.zeros(blocks.shape[0], np.int64)
    for number in range(blocks.shape[0]):
        run = 0
        for place in range(blocks.shape[1]):
            run = run + 1 if blocks[number, place] else 0
            longest[number] = max(longest[number], run)
    return longest
