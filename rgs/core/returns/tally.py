"""The counts of one ruleset for as long as it is played, and when they are alarming.

Two series are counted: the whole **life**, and the **block** of 2^20 rounds under way, because good rounds before a
late error would hide it for long. The chance `ALPHA` of a false alarm, ever, is shared out: half to the life, half to
the blocks, 1 / (j (j + 1)) of it to block j, and within a series evenly to its figures. So a figure alarms when E
reaches 2 m / ALPHA, in block j 2 m j (j + 1) / ALPHA (m figures). Each alarms once a series.

A tally holds whole numbers only, and its text is canonical: it is kept in the store, and anybody can count the
statements again and compare. Counts are never taken back, and an alarm of the life stays.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from rgs.core.errors import FormatError
from rgs.core.returns.distributions import MAIN, Laws
from rgs.core.returns.evidence import band, bound_evidence, bound_limit, bound_measured, law_evidence, moments
from rgs.core.returns.figures import Played

NO_CURRENCY: Final = "XXX"
"""ISO 4217 for "no currency": rounds whose session the reader does not know."""
ALPHA: Final = 0.001
"""Chance that a fair ruleset ever alarms at one operator of the RGS."""
BLOCK: Final = 1 << 20
"""Rounds of a block."""
LIFE, BLOCK_SERIES = "life", "block"

FigureCounts = dict[str, dict[str, int]]


@dataclass(slots=True)
class Series:
    """Counts by figure and key, and the figures that have alarmed. `number` is the block's, 0 for the life."""

    number: int = 0
    rounds: int = 0
    counts: FigureCounts = field(default_factory=dict)
    reported: list[str] = field(default_factory=list)

    def limit(self, figures: int) -> float:
        """Return the ln E at which one of so many figures alarms."""
        shares = self.number * (self.number + 1) if self.number else 1
        return math.log(2 * figures * shares / ALPHA)


@dataclass(frozen=True, slots=True)
class Reading:
    """One figure of one series. `exact`, `measured`, `low` and `high` are means per round, None for frequencies; `low`
    is also None if only a bound is known. `evidence` is ln E, and it alarms at `limit`.
    """

    series: str
    figure: str
    rounds: int
    exact: float | None
    measured: float | None
    low: float | None
    high: float | None
    evidence: float
    limit: float

    @property
    def is_alarming(self) -> bool:
        """Whether the evidence has reached its limit."""
        return self.evidence >= self.limit

    @property
    def direction(self) -> str:
        """The code of an alarm: ABOVE, BELOW, or FREQUENCIES if no mean is watched."""
        if self.measured is None or self.exact is None:
            return "FREQUENCIES"
        return "ABOVE" if self.measured > self.exact else "BELOW"


@dataclass(slots=True)
class ReturnTally:
    """Counts of rounds in the order of their start, money by currency and bet, and what was not counted."""

    life: Series = field(default_factory=Series)
    block: Series = field(default_factory=lambda: Series(1))
    money: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """Currency -> bet -> staked and returned, minor units, of settled seats."""
    voids: int = 0
    unseen: int = 0
    """Seats that gave no figures: further seats of a deal, voids that revealed nothing."""

    def add(self, played: Played, currency: str) -> None:
        """Count one seat of one round, or one round of a table."""
        self.voids += played.voids
        self.unseen += played.unseen
        for bet, amounts in played.money.items():
            sums = self.money.setdefault(currency, {}).setdefault(bet, [0, 0])
            sums[0] += amounts[0]
            sums[1] += amounts[1]
        if not played.keys:
            return
        if self.block.rounds >= BLOCK:
            self.block = Series(self.block.number + 1)
        for series in (self.life, self.block):
            series.rounds += 1
            for figure, keys in played.keys.items():
                counts = series.counts.setdefault(figure, {})
                for key in keys:
                    counts[key] = counts.get(key, 0) + 1

    def readings(self, laws: Laws) -> list[Reading]:
        """The reading of every figure that has counts, the life first."""
        return [
            _reading(name, series, figure, evidence, laws)
            for name, series in ((LIFE, self.life), (BLOCK_SERIES, self.block))
            for figure, evidence in _evidence(series, laws)
        ]

    def alarms(self, laws: Laws) -> list[Reading]:
        """The new alarms. Each is returned once."""
        found = []
        for name, series in ((LIFE, self.life), (BLOCK_SERIES, self.block)):
            for figure, evidence in _evidence(series, laws):
                if evidence >= _limit(series, laws) and figure not in series.reported:
                    series.reported.append(figure)
                    found.append(_reading(name, series, figure, evidence, laws))
        return found


def _limit(series: Series, laws: Laws) -> float:
    return series.limit(len(laws.figures) + 1)


def _evidence(series: Series, laws: Laws) -> Iterator[tuple[str, float]]:
    for figure, law in laws.figures.items():
        if counts := series.counts.get(figure):
            yield figure, law_evidence(law, counts)
    if counts := series.counts.get(MAIN):
        yield MAIN, bound_evidence(laws.main, counts)


def _reading(name: str, series: Series, figure: str, evidence: float, laws: Laws) -> Reading:
    counts, limit = series.counts[figure], _limit(series, laws)
    if figure == MAIN:
        n, bound = sum(counts.values()), laws.main
        high = bound_limit(bound, counts, limit)
        return Reading(name, figure, n, float(bound.mean), bound_measured(counts), None, high, evidence, limit)
    law = laws.figures[figure]
    if not law.values or math.isinf(evidence):
        n = sum(counts.values()) // len(law.groups)
        return Reading(name, figure, n, None, None, None, None, evidence, limit)
    n, total = moments(law, counts)
    low, high = band(law, n, limit)
    return Reading(name, figure, n, float(law.mean), float(total / n), low, high, evidence, limit)


def format_tally(tally: ReturnTally) -> str:
    """Return the canonical text."""
    document = {
        "block": _document(tally.block),
        "life": _document(tally.life),
        "money": tally.money,
        "unseen": tally.unseen,
        "voids": tally.voids,
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def _document(series: Series) -> dict[str, object]:
    """Its fields, not copied: `asdict` would copy every count."""
    return {name: getattr(series, name) for name in series.__match_args__}


def parse_tally(text: str) -> ReturnTally:
    """Return the tally of a canonical text; raise FormatError for any other text."""
    try:
        document = json.loads(text)
        tally = ReturnTally(
            life=Series(**document["life"]),
            block=Series(**document["block"]),
            money=document["money"],
            voids=document["voids"],
            unseen=document["unseen"],
        )
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise FormatError("the text is not a tally of returns", field="tally") from error
    return tally
