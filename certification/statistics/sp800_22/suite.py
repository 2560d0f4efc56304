"""All fifteen tests on one sequence: 188 p-values of 10^6 bits, with the least lengths of the publication enforced.

A test gives no p-value, and says why, if the sequence is too short for it or its walk has too few cycles. It is then
not applicable: neither passed nor failed. ValueError for anything but a flat array of 0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from certification.rtp.compiled import Bytes
from certification.statistics.sp800_22 import counts, patterns, structure, walk

P_VALUES: Final = 188
CYCLES_LEAST: Final = 500
_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Variant:
    """Constants in which implementations differ. `dft_divisor` is the publication's 4; 3.8 fits the true spread."""

    name: str = "corrected"
    overlapping: tuple[float, ...] = patterns.OVERLAPPING_CORRECTED
    complexity_lowest: float = structure.COMPLEXITY_CORRECTED
    dft_divisor: float = 4.0


CORRECTED: Final = Variant()
NIST_2_1_2: Final = Variant("nist-2.1.2", patterns.OVERLAPPING_OLD, structure.COMPLEXITY_MISPRINT)
"""The constants of NIST's C program, for comparisons with it."""


@dataclass(frozen=True, slots=True)
class PValue:
    """One p-value: `test` and, where it has several, `part` (template, state, direction). `p` is None and `reason`
    says why where the test is not applicable.
    """

    test: str
    part: str
    p: float | None
    reason: str = ""


Found = Iterable[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class Test:
    """One of the fifteen: `least` bits, the parts, and what computes them."""

    name: str
    section: str
    least: int
    parts: tuple[str, ...]
    run: Callable[[Bytes, Variant], list[float]]
    needs_cycles: bool = False

    def missing(self, bits: Bytes) -> str:
        """Return why the test is not applicable, or nothing."""
        if len(bits) < self.least:
            return f"needs {self.least:,} bits, there are {len(bits):,}"
        if self.needs_cycles:
            count = walk.cycles(walk.steps_of(bits))
            least = max(CYCLES_LEAST, math.ceil(0.005 * math.sqrt(len(bits))))
            if count < least:
                return f"needs {least} cycles, there are {count}"
        return ""


def _universal(bits: Bytes, _: Variant) -> list[float]:
    length = patterns.universal_length(len(bits))
    return [patterns.universal(bits, length, 10 << length)]


ONE: Final = ("",)
TESTS: Final = (
    Test("frequency", "2.1", 100, ONE, lambda bits, _: [counts.frequency(bits)]),
    # 100 by the publication, but blocks are of 128 bits: one at least.
    Test("block_frequency", "2.2", 128, ONE, lambda bits, _: [counts.block_frequency(bits)]),
    Test(
        "cusum",
        "2.13",
        100,
        ("forward", "reverse"),
        lambda bits, _: list(walk.cumulative_sums(walk.steps_of(bits))),
    ),
    Test("runs", "2.3", 100, ONE, lambda bits, _: [counts.runs(bits)]),
    Test("longest_run", "2.4", 128, ONE, lambda bits, _: [counts.longest_run(bits)]),
    Test("rank", "2.5", 38 * 32 * 32, ONE, lambda bits, _: [structure.rank(bits)]),
    Test("dft", "2.6", 1000, ONE, lambda bits, variant: [structure.dft(bits, variant.dft_divisor)]),
    Test(
        "nonoverlapping",
        "2.7",
        _MILLION,
        patterns.aperiodic_templates(),
        lambda bits, _: patterns.nonoverlapping(bits, patterns.aperiodic_templates()),
    ),
    Test(
        "overlapping",
        "2.8",
        _MILLION,
        ONE,
        lambda bits, variant: [patterns.overlapping(bits, variant.overlapping)],
    ),
    Test("universal", "2.9", patterns.UNIVERSAL_LEAST[0], ONE, _universal),
    # m < floor(log2 n) - 5 with m = 10, and m < floor(log2 n) - 2 with m = 16.
    Test("approximate_entropy", "2.12", 1 << 16, ONE, lambda bits, _: [patterns.approximate_entropy(bits)]),
    Test(
        "random_excursions",
        "2.14",
        _MILLION,
        tuple(f"{state:+d}" for state in walk.EXCURSION_STATES),
        lambda bits, _: walk.excursions(walk.steps_of(bits)),
        needs_cycles=True,
    ),
    Test(
        "random_excursions_variant",
        "2.15",
        _MILLION,
        tuple(f"{state:+d}" for state in walk.VARIANT_STATES),
        lambda bits, _: walk.excursions_variant(walk.steps_of(bits)),
        needs_cycles=True,
    ),
    Test("serial", "2.11", 1 << 19, ("p1", "p2"), lambda bits, _: list(patterns.serial(bits))),
    Test(
        "linear_complexity",
        "2.10",
        _MILLION,
        ONE,
        lambda bits, variant: [structure.linear_complexity(bits, variant.complexity_lowest)],
    ),
)


def run(bits: Bytes, variant: Variant = CORRECTED) -> list[PValue]:
    """Return all 188 p-values of the sequence, in the order of `TESTS`. Raises ValueError for no sequence of bits."""
    if bits.ndim != 1 or bits.dtype != np.uint8 or not len(bits) or bits.max() > 1:
        raise ValueError("a sequence is a flat array of uint8, 0 or 1, and not empty")
    return [value for test in TESTS for value in _one(test, bits, variant)]


def _one(test: Test, bits: Bytes, variant: Variant) -> Iterator[PValue]:
    reason = test.missing(bits)
    values = [None] * len(test.parts) if reason else test.run(bits, variant)
    for part, p in zip(test.parts, values, strict=True):
        yield PValue(test.name, part, p, reason)
