"""Figures: a name, one value a repeat, a unit; their arithmetic, their table and their file.

Refuses fewer than REPEATS_MIN repeats: a spread of less says nothing. Knows nothing about how a value was measured.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

REPEATS_MIN: Final = 5
RATIO: Final = "ratio"
"""The unit of ours over the yardstick of the same repeat: smaller is better."""


class BenchError(Exception):
    """Something went otherwise than in a measurement that counts; there are no figures."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One value a repeat, in the order in which they were measured."""

    name: str
    values: tuple[float, ...]
    unit: str = RATIO

    def __post_init__(self) -> None:
        if len(self.values) < REPEATS_MIN:
            raise BenchError(f"{self.name}: {len(self.values)} repeats, at least {REPEATS_MIN} are needed")

    @property
    def median(self) -> float:
        return median(self.values)

    def entry(self) -> dict[str, float | str]:
        """What stands in the file under the name."""
        return {
            "median": rounded(self.median),
            "min": rounded(min(self.values)),
            "max": rounded(max(self.values)),
            "unit": self.unit,
        }


def ratio(name: str, ours: Sequence[float], yardstick: Sequence[float]) -> Figure:
    """Ours over the yardstick, repeat by repeat; BenchError if a yardstick is not above zero."""
    if any(value <= 0 for value in yardstick):
        raise BenchError(f"{name}: the yardstick measured nothing")
    return Figure(name, tuple(one / other for one, other in zip(ours, yardstick, strict=True)))


def rounded(value: float) -> float:
    """Four significant digits: more than any of these figures has."""
    return float(f"{value:.4g}")


def format_results(figures: Sequence[Figure]) -> str:
    """The file: name -> {median, min, max, unit}. BenchError if a name stands twice."""
    entries = {figure.name: figure.entry() for figure in figures}
    if len(entries) != len(figures):
        raise BenchError("two figures have one name")
    return json.dumps(entries, indent=2) + "\n"


def format_table(figures: Sequence[Figure]) -> str:
    """The table that people read."""
    rows = [("figure", "median", "min", "max", "unit")]
    for figure in figures:
        middle, least, most = (
            f"{rounded(value):g}" for value in (figure.median, min(figure.values), max(figure.values))
        )
        rows.append((figure.name, middle, least, most, figure.unit))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            text.ljust(width) if column in {0, 4} else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
