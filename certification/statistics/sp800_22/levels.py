"""The verdict over several sequences (SP 800-22 4.2): proportion that passes, uniformity of the p-values, and Holm.

The publication's two criteria are shown for every test: the proportion within 0.99 +- 3 sqrt(0.99 0.01 / s), and
P_T >= 0.0001. Not all 188 tests must meet them: with 100 sequences a good generator misses the floor of 0.65 tests on
average. The verdict is Holm's, at the family level, over the exact binomial probability of each test's failures and
over each P_T. Tests that are not applicable do not count, and are named.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from scipy import stats

from certification.statistics.families import UNIFORMITY_LEAST, holm, uniformity
from certification.statistics.sp800_22.suite import PValue

LEVEL: Final = 0.01
"""Of a single p-value (4.2.1)."""
UNIFORMITY_FLOOR: Final = 0.0001
SEQUENCES_MOST: Final = 1000

CAUTIONS: Final = {
    "few": f"fewer than {UNIFORMITY_LEAST} sequences: the uniformity of p-values is not computed",
    "many": f"more than {SEQUENCES_MOST:,} sequences: the approximations of the publication (spectrum, rank, longest "
    "run, overlapping templates first) then make a good generator fail",
    "one": "one sequence: truly random bits have some of 188 p-values below 0.01 most of the time; the family decides",
}


@dataclass(frozen=True, slots=True)
class Family:
    """One test over all sequences. `passed` of `applicable` have p >= 0.01; `proportion_p` is the exact probability of
    so many failures or more; `uniformity_p` is None below 55 p-values.
    """

    test: str
    part: str
    sequences: int
    applicable: int
    passed: int
    proportion_p: float | None
    uniformity_p: float | None

    @property
    def floor(self) -> int:
        """The least number that must pass: 0.99 - 3 sqrt(0.99 0.01 / s), to the nearest sequence; 96 of 100."""
        return round((1 - LEVEL) * self.applicable - 3 * math.sqrt(LEVEL * (1 - LEVEL) * self.applicable))

    @property
    def is_within(self) -> bool:
        """Whether the publication's floor is reached."""
        return self.passed >= self.floor

    @property
    def miss_chance(self) -> float:
        """How likely a good generator misses the floor."""
        return float(stats.binom.sf(self.applicable - self.floor, self.applicable, LEVEL)) if self.applicable else 0.0


@dataclass(frozen=True, slots=True)
class SuiteVerdict:
    """`word` is passed | failed | not applicable; `rejected` names what Holm rejects at the family level."""

    word: str
    alpha: float
    families: tuple[Family, ...]
    rejected: tuple[str, ...]
    below_floor: int
    below_floor_expected: float
    below_uniformity: int
    cautions: tuple[str, ...]


def judge(sequences: Sequence[Sequence[PValue]], alpha: float) -> SuiteVerdict:
    """Return the verdict over the p-values of at least one sequence, at a family level."""
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for values in sequences:
        for value in values:
            found[value.test, value.part].extend(() if value.p is None else (value.p,))
    families = tuple(_family(*name, len(sequences), p_values) for name, p_values in found.items())
    rejected = holm(_members(families, found, alone=len(sequences) == 1), alpha)
    count = len(sequences)
    size = "one" if count == 1 else "few" if count < UNIFORMITY_LEAST else "many" if count > SEQUENCES_MOST else ""
    cautions = [CAUTIONS[size]] if size else []
    missing = sum(not family.applicable for family in families)
    if missing:
        cautions.append(f"{missing} of {len(families)} p-values are not applicable: no verdict on these")
    applicable = any(family.applicable for family in families)
    return SuiteVerdict(
        ("failed" if rejected else "passed") if applicable else "not applicable",
        alpha,
        families,
        tuple(rejected),
        sum(not family.is_within for family in families),
        sum(family.miss_chance for family in families),
        sum(family.uniformity_p is not None and family.uniformity_p < UNIFORMITY_FLOOR for family in families),
        tuple(cautions),
    )


def _family(test: str, part: str, sequences: int, p_values: list[float]) -> Family:
    passed = sum(p >= LEVEL for p in p_values)
    failures = len(p_values) - passed
    return Family(
        test,
        part,
        sequences,
        len(p_values),
        passed,
        float(stats.binom.sf(failures - 1, len(p_values), LEVEL)) if p_values else None,
        uniformity(p_values) if len(p_values) >= UNIFORMITY_LEAST else None,
    )


def _members(families: Sequence[Family], found: dict[tuple[str, str], list[float]], *, alone: bool) -> dict[str, float]:
    """Return the p-values that Holm judges: those of a single sequence, or of the two criteria over several."""
    members = {}
    for family in families:
        name = f"{family.test} {family.part}".rstrip()
        if alone and family.applicable:
            members[name] = found[family.test, family.part][0]
        elif family.proportion_p is not None:
            members[f"{name}: proportion"] = family.proportion_p
            if family.uniformity_p is not None:
                members[f"{name}: uniformity"] = family.uniformity_p
    return members
