"""Charts as plain numbers, which a template draws as SVG: bars and labels, no script. A chart has one unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from rgs.core.amounts import format_money

WIDTH: Final = 720
ROW: Final = 26
LABEL: Final = 250
NUMBER: Final = 130


@dataclass(frozen=True, slots=True)
class Bar:
    """One rectangle: place and size in the chart's units, its series, and the text that a pointer shows."""

    x: float
    y: int
    width: float
    series: int
    reported: str


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the chart: its label, its bars, the number at its end."""

    label: str
    y: int
    bars: tuple[Bar, ...]
    end: float
    number: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Rows of bars."""

    height: int
    lines: tuple[Line, ...]
    series: tuple[str, ...]


def stacked(
    rows: Sequence[tuple[str, Sequence[int]]], series: Sequence[str], reported: Callable[[int], str] = "{:,}".format
) -> Chart:
    """One bar a row, with one part for each series; empty parts are left out. `reported` formats a number."""
    most = max((sum(parts) for _, parts in rows), default=0) or 1
    room = WIDTH - LABEL - NUMBER
    lines = []
    for place, (label, parts) in enumerate(rows):
        x, bars = float(LABEL), []
        for number, value in enumerate(parts):
            width = room * value / most
            if value:
                words = f"{label}, {series[number]}: {reported(value)}"
                bars.append(Bar(x, place * ROW + 4, max(width, 2.0), number, words))
            x += width
        lines.append(Line(label, place * ROW + 17, tuple(bars), x + 6, reported(sum(parts))))
    return Chart(len(rows) * ROW + 4, tuple(lines), tuple(series))


def sources(totals: Sequence[Mapping[str, Any]], name: str, word: str) -> list[tuple[str, Chart]]:
    """(currency, chart with one bar for each day and source) of one amount: the three sources side by side."""
    sums: dict[tuple[str, str, str], int] = {}
    for row in totals:
        key = (row["currency"], row["date"], row["source"])
        sums[key] = sums.get(key, 0) + row[name]
    charts = []
    for currency in sorted({key[0] for key in sums}):
        keys = sorted(key for key in sums if key[0] == currency)
        rows = [(f"{date} {source}", [sums[currency, date, source]]) for _, date, source in keys]
        charts.append((currency, stacked(rows, (word,), partial(format_money, currency=currency))))
    return charts
