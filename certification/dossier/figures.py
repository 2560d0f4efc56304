"""The pictures of a dossier as SVG, from the plain values of its steps: the same bytes for the same values.

Nothing is smoothed, left out or scaled away: every value of a result is in its picture.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rgs.core.cards import format_card

_BLUE: Final = "#1f5f9e"
_RED: Final = "#b3261e"
_GREY: Final = "#7a838c"
_PALE: Final = "#dbe7f3"
_STYLE: Final[dict[Any, Any]] = {
    "svg.hashsalt": "rgs",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": _GREY,
    "axes.labelcolor": "#333333",
    "text.color": "#222222",
    "xtick.color": "#333333",
    "ytick.color": "#333333",
}
_FLOOR: Final = 1e-300


def figures_of(results: Mapping[str, Mapping[str, Any]]) -> dict[str, bytes]:
    """Every picture that the results hold values for, by file name without folder."""
    with mpl.rc_context(_STYLE):
        return {name: _svg(figure) for name, figure in _figures(results)}


def _figures(results: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, Figure]]:
    for name, result in results.items():
        kind = name.partition("-")[0]
        if kind == "battery" and result.get("runs"):
            run = result["runs"][-1]
            yield f"{name}-places.svg", _places(run)
            yield f"{name}-p.svg", _p_values(run, result["alpha"])
        elif name == "replicates" and result.get("p_values"):
            yield "replicates.svg", _uniform(result["p_values"])
        elif name == "sp800-22" and result.get("judged"):
            yield "sp800-22.svg", _sp800_22(result)
        elif name == "defects" and result.get("defects"):
            yield "defects.svg", _defects(result["defects"])
        elif kind == "returns" and result.get("net_wins"):
            yield f"{name}.svg", _net_wins(result["net_wins"])
        elif kind == "simulation" and result.get("rows"):
            yield f"{name}.svg", _simulation(result)


def _svg(figure: Figure) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def _places(run: Mapping[str, Any]) -> Figure:
    """52 x 52: how many standard deviations each count lies from its mean."""
    counts = np.array(run["placements"], float)
    expected = run["decks"] / 52
    scores = (counts - expected) / np.sqrt(expected * (1 - 1 / 52))
    figure, axes = _figure(7.2, 6.2)
    image = axes.imshow(scores, cmap="RdBu_r", vmin=-4.5, vmax=4.5, interpolation="none", aspect="equal")
    suits = [0, 13, 26, 39]
    axes.set_xticks(suits, [format_card(card) for card in suits])
    axes.set_yticks([0, 12, 25, 38, 51], ["1", "13", "26", "39", "52"])
    for suit in suits[1:]:
        axes.axvline(suit - 0.5, color=_GREY, linewidth=0.4)
    axes.set_xlabel("card (2 to ace of clubs, diamonds, hearts, spades)")
    axes.set_ylabel("place in the deck, from the top")
    bar = figure.colorbar(image, ax=axes, shrink=0.85)
    bar.set_label("standard deviations from the expected count")
    return figure


def _p_values(run: Mapping[str, Any], alpha: float) -> Figure:
    """One dot a test."""
    rows = [row for row in run["results"] if row["p"] is not None][::-1]
    figure, axes = _figure(7.2, 0.6 + 0.185 * len(rows))
    for place, row in enumerate(rows):
        color = _RED if row["name"] in run["rejected"] else _BLUE
        axes.plot([row["p"]], [place], "o", color=color, markersize=4.5)
    limit = alpha / max(len(rows), 1)
    axes.axvline(limit, color=_RED, linewidth=0.8, linestyle="--")
    axes.text(limit, len(rows) - 0.3, f" {limit:.1e}", color=_RED, fontsize=7, va="bottom")
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows])
    axes.set_xscale("log")
    axes.set_xlim(min(limit / 3, *(max(row["p"], _FLOOR) for row in rows)) / 1.5, 1.3)
    axes.set_ylim(-0.7, len(rows) + 0.3)
    axes.grid(axis="both", color="#eeeeee")
    axes.set_axisbelow(True)
    axes.set_xlabel("p-value (logarithmic)")
    return figure


def _uniform(p_values: Mapping[str, Sequence[float]]) -> Figure:
    """The share of p-values below each level, a line a test; and how many fall in each tenth."""
    figure = Figure(figsize=(7.2, 3.1), layout="constrained")
    left, right = figure.subplots(1, 2)
    for values in p_values.values():
        ordered = np.sort(values)
        left.plot(ordered, np.arange(1, len(ordered) + 1) / len(ordered), color=_BLUE, linewidth=0.6, alpha=0.55)
    left.plot([0, 1], [0, 1], color=_RED, linewidth=1.1)
    left.set(xlim=(0, 1), ylim=(0, 1), xlabel="level", ylabel="share of p-values at or below", aspect="equal")
    pooled = np.concatenate([np.asarray(values) for values in p_values.values()])
    counts, edges = np.histogram(pooled, bins=10, range=(0, 1))
    right.bar(edges[:-1], counts, width=0.1, align="edge", color=_PALE, edgecolor=_BLUE, linewidth=0.6)
    right.axhline(len(pooled) / 10, color=_RED, linewidth=1.1)
    right.set(xlim=(0, 1), xlabel="p-value, all tests together", ylabel="count")
    return figure


def _sp800_22(result: Mapping[str, Any]) -> Figure:
    """Of several sequences: the share of each test that passed, and P_T. Of one: its p-values."""
    figure = Figure(figsize=(7.2, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    families = [row for row in result["judged"]["families"] if row["applicable"]]
    if result["sequences"] == 1:
        values = [found[0] for found in result["p_values"].values() if found[0] is not None]
        left.plot(range(len(values)), values, "o", color=_BLUE, markersize=2.5)
        left.set(xlabel="p-values in the order of the publication", ylabel="p-value", ylim=(0, 1))
        uniform = values
    else:
        shares = [row["passed"] / row["applicable"] for row in families]
        left.plot(range(len(shares)), shares, "o", color=_BLUE, markersize=2.5)
        left.plot(range(len(shares)), [row["floor"] / row["applicable"] for row in families], color=_RED, linewidth=1)
        left.axhline(0.99, color=_GREY, linewidth=0.8, linestyle=":")
        left.set(xlabel="tests and their parts, in the order of the publication", ylabel="share with p of 0.01 or more")
        uniform = [row["uniformity_p"] for row in families if row["uniformity_p"] is not None]
    counts, edges = np.histogram(uniform, bins=10, range=(0, 1))
    right.bar(edges[:-1], counts, width=0.1, align="edge", color=_PALE, edgecolor=_BLUE, linewidth=0.6)
    right.axhline(len(uniform) / 10, color=_RED, linewidth=1)
    right.set(xlim=(0, 1), xlabel="p-value" if result["sequences"] == 1 else "uniformity of each test (P_T)")
    return figure


def _defects(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """How far below the limit each defect's smallest p-value lies."""
    ordered = list(rows)[::-1]
    figure, axes = _figure(7.2, 0.6 + 0.19 * len(ordered))
    depth = [-np.log10(max(row["p"], 1e-60)) for row in ordered]
    colors = [_BLUE if row["is_caught"] else _RED for row in ordered]
    axes.barh(range(len(ordered)), depth, color=colors, height=0.62)
    axes.axvline(4, color=_RED, linewidth=1, linestyle="--")
    axes.set_yticks(range(len(ordered)), [row["defect"] for row in ordered])
    axes.set_ylim(-0.7, len(ordered) - 0.3)
    axes.set_xlabel("smallest p-value as -log10 (4: one in ten thousand; drawn up to 60)")
    return figure


def _net_wins(rows: Sequence[Mapping[str, str]]) -> Figure:
    """The exact distribution of the net win of the main bets."""
    antes = [float(Fraction(row["antes"])) for row in rows]
    total = sum(int(row["deals"]) for row in rows)
    shares = [int(row["deals"]) / total for row in rows]
    figure, axes = _figure(7.2, 2.7)
    axes.vlines(antes, min(shares) / 3, shares, color=_BLUE, linewidth=1.6)
    axes.plot(antes, shares, "o", color=_BLUE, markersize=2.6)
    axes.set_yscale("log")
    axes.set_xscale("symlog", linthresh=10, linscale=1.2)
    ticks = [
        tick for tick in (-6, -4, -2, 0, 2, 4, 6, 10, 20, 50, 100, 200, 500) if antes[0] - 1 <= tick <= antes[-1] * 1.1
    ]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.axvline(0, color=_GREY, linewidth=0.6)
    axes.set_ylim(min(shares) / 3, 1)
    axes.set(
        xlabel="net win of the main bets in a round, in antes (logarithmic beyond 10)", ylabel="share of all deals"
    )
    return figure


def _simulation(result: Mapping[str, Any]) -> Figure:
    """How many standard errors each measured figure lies from the exact one."""
    rows = result["rows"][::-1]
    figure, axes = _figure(7.2, 0.75 + 0.2 * len(rows))
    axes.axvspan(-result["z"], result["z"], color=_PALE, alpha=0.6, linewidth=0)
    axes.axvline(0, color=_GREY, linewidth=0.8)
    for place, row in enumerate(rows):
        color = _RED if row["name"] in result["outside"] else _BLUE
        axes.plot([row["z"]], [place], "o", color=color, markersize=5)
    axes.set_yticks(range(len(rows)), [f"{row['kind']} {row['name']}" for row in rows])
    widest = max(result["z"], *(abs(row["z"]) for row in rows))
    axes.set(xlim=(-widest - 0.7, widest + 0.7), ylim=(-0.7, len(rows) - 0.3))
    axes.set_xlabel("standard errors from the exact figure; shaded: allowed")
    return figure
