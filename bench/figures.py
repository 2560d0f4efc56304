"""Figures: a name, one value for each repeat, a unit; with their arithmetic, table and file.

Fewer than REPEATS_MIN repeats are an error: their spread says nothing.
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
    """The measurement failed; there are no figures."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One value for each repeat, in the order of measurement."""

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
        """The value of the name in the file."""
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
    """Four significant digits, more than the accuracy of any figure here."""
    return float(f"{value:.4g}")


def format_results(figures: Sequence[Figure]) -> str:
    """The file: name -> {median, min, max, unit}. BenchError if two figures have one name."""
    entries = {figure.name: figure.entry() for figure in figures}
    if len(entries) != len(figures):
        raise BenchError("two figures have one name")
    return json.dumps(entries, indent=2) + "\n"


def format_table(figures: Sequence[Figure]) -> str:
    """The table for people."""
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
