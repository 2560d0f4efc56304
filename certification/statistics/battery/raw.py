"""The tests on raw output, before anything is scaled: bytes, words, and the linear complexity of one bit of each word.

Linear complexity over 50,000 words of 32 bits is what unmasks MT19937 and every register like it: of a good generator
one bit of each word has complexity n/2 within a few, of MT19937 19,937. Its law is exact.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy import stats

from certification.statistics.battery import laws
from certification.statistics.battery.laws import Judged
from certification.statistics.battery.streams import StreamTest
from certification.statistics.sp800_22.structure import complexity

RAW_BYTES: Final = 1 << 21
COMPLEXITY_WORDS: Final = 50_000


def _bytes(data: bytes) -> Judged:
    return laws.even(np.bincount(np.frombuffer(data, np.uint8), minlength=256))


def _words(data: bytes) -> Judged:
    words = np.frombuffer(data[: len(data) // 8 * 8], np.dtype(">u8")) / 2.0**64
    found = stats.kstest(words, "uniform")
    return Judged(float(found.pvalue), float(found.statistic), "Kolmogorov")


def _complexity(data: bytes) -> Judged:
    words = np.frombuffer(data[: 4 * COMPLEXITY_WORDS], np.dtype(">u4"))
    found = complexity((words >> 31).astype(np.uint8))
    return Judged(complexity_p(found, len(words)), found, f"complexity of {len(words)} bits")


def complexity_p(found: int, n: int) -> float:
    """Return how likely the complexity of n random bits is as far from n/2 or farther: min(2n-2L, 2L-1) bits of 2^n."""
    away = abs(2 * found - n)
    return float(
        min(
            1.0,
            sum(
                2.0 ** (min(2 * n - 2 * length, 2 * length - 1) - n)
                for length in range(max(1, (n - away) // 2 - 64), min(n, (n + away) // 2 + 64) + 1)
                if abs(2 * length - n) >= away
            ),
        )
    )


COMPLEXITY: Final = StreamTest("raw words, linear complexity", "3.3.1", RAW_BYTES, False, _complexity)
RAW: Final = (
    StreamTest("raw bytes", "3.2.2 chi-square", RAW_BYTES, True, _bytes),
    StreamTest("raw words, uniform", "3.2.2 total distribution", RAW_BYTES, True, _words),
    COMPLEXITY,
)
