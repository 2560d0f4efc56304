"""Best play of a ruleset: `certify strategy RULESET [HOLE [BOARD]] [--picture FILE] [--with-side-bet]`.

Without cards, prints the 169 holes as a grid, suited above the diagonal. With two cards, or two and a board ("AsKd
2c3d4h"), prints the exact value of every possible action, in antes. `--picture` draws the grid into a PNG or SVG file.
Exit 2: usage, a board without a hole, a card twice, a board on which nothing is decided, another kind of picture.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from certification.replay import refused
from certification.rtp.returns import ACTION_WORDS, format_decimal, format_fraction
from certification.rtp.strategy import Strategy, hole_name, hole_shares
from rgs.core.cards import RANKS, Card, parse_cards
from rgs.core.errors import RgsError
from rgs.core.games.types import Action, Phase
from rgs.core.rulesets import SHIPPED_RULESETS, load_ruleset

_DOWNWARDS: Final = range(len(RANKS) - 1, -1, -1)
_RAISED: Final = "#2a6f97"
_CHECKED: Final = "#edf2f4"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the grid or the advice, draw the grid if asked; the exit status."""
    parser = argparse.ArgumentParser(prog="certify strategy", description="Best play of a ruleset, exactly.")
    parser.add_argument("ruleset", metavar="RULESET", help=", ".join(SHIPPED_RULESETS))
    parser.add_argument("hole", nargs="?", default="", metavar="HOLE", help='two cards, as "AsKd"')
    parser.add_argument("board", nargs="?", default="", metavar="BOARD", help='three or five cards, as "2c3d4h"')
    parser.add_argument("--picture", type=_picture, metavar="FILE", help="draw the grid: .png or .svg")
    parser.add_argument("--with-side-bet", action="store_true", help="for a player who always makes the side bet, too")
    arguments = parser.parse_args(argv)
    if arguments.board and not arguments.hole:
        parser.error("argument BOARD: a board needs the two cards of HOLE")
    try:
        ruleset = load_ruleset(arguments.ruleset)
        cards = [_cards(text) for text in (arguments.hole, arguments.board)]
        strategy = Strategy(ruleset, with_side_bet=arguments.with_side_bet)
        lines = list(_advice(strategy, *cards) if cards[0] else _grid(strategy))
        if arguments.picture:
            draw_grid(strategy, arguments.picture)
    except (RgsError, OSError, ValueError) as error:
        return refused("strategy", error)
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


def _picture(text: str) -> Path:
    if Path(text).suffix not in {".png", ".svg"}:
        raise argparse.ArgumentTypeError(f"{text[:80]!r} does not end in .png or .svg")
    return Path(text)


def _cards(text: str) -> tuple[Card, ...]:
    plain = text.replace(" ", "")
    return parse_cards(plain[place : place + 2] for place in range(0, len(plain), 2))


def _advice(strategy: Strategy, hole: Sequence[Card], board: Sequence[Card]) -> Iterator[str]:
    advice = strategy.advise(hole, board)
    for action, value in advice.values.items():
        mark = "best" if action in advice.best else ""
        yield f"{_word(action):<8}{format_decimal(value):>18}  {mark:<6}{format_fraction(value)}"
    if len(advice.best) > 1:
        yield "the best of these are worth exactly the same"


def _word(action: Action) -> str:
    return ACTION_WORDS.get(action, action.value)


def _cells(strategy: Strategy) -> dict[int, tuple[str, Fraction]]:
    """Return for each hole what is done at the first decision, and how readily: 1 always, 0 never."""
    if Phase.PREFLOP in strategy.ruleset.rules.transitions:
        bests = {number: strategy.advise_hole(number).best[0] for number in range(len(RANKS) ** 2)}
        return {number: (_word(best), Fraction(best is not Action.CHECK)) for number, best in bests.items()}
    shares = hole_shares(strategy)
    return {number: (_reported_share(share), share) for number, share in shares.items()}


def _reported_share(share: Fraction) -> str:
    """A share in percent; 0 and 100 are never and always, and nothing that is rounded to them."""
    result = format_decimal(100 * share, 1)
    return ("99.9" if result == "100.0" and share < 1 else "0.1" if result == "0.0" and share else result) + "%"


def _title(strategy: Strategy) -> str:
    rules = strategy.ruleset.rules
    who = f" by who makes {rules.side_bet} too" if strategy.play.with_side_bet else ""
    if Phase.PREFLOP in rules.transitions:
        return f"{strategy.ruleset.id}: best play before the flop{who}"
    return f"{strategy.ruleset.id}: share of flops that are called{who}"


def _grid(strategy: Strategy) -> Iterator[str]:
    cells = _cells(strategy)
    yield f"{_title(strategy)}; suited above the diagonal"
    for row in _DOWNWARDS:
        numbers = [row * len(RANKS) + column for column in _DOWNWARDS]
        yield "  ".join(f"{hole_name(number):<3} {cells[number][0]:<6}" for number in numbers).rstrip()


def grid(strategy: Strategy) -> dict[str, Any]:
    """Return the grid as plain values, for others to draw: its title and 13 rows of 13 holes, aces first."""
    cells = _cells(strategy)
    rows = [
        [
            {
                "hole": hole_name(number),
                "reported": cells[number][0],
                "share": float(cells[number][1]),
                "value": format_decimal(strategy.hole_value(number), 2),
            }
            for number in (row * len(RANKS) + column for column in _DOWNWARDS)
        ]
        for row in _DOWNWARDS
    ]
    return {"title": _title(strategy), "rows": rows}


def draw_grid(strategy: Strategy, path: Path) -> None:
    """Draw the 169 holes: the darker, the readier to bet; under what is done, the value of the hole in antes."""
    cells = _cells(strategy)
    figure = Figure(figsize=(11, 11.6), layout="constrained")
    axes = figure.subplots()
    axes.set(xlim=(0, len(RANKS)), ylim=(len(RANKS), 0), xticks=[], yticks=[], aspect="equal")
    legend = "suited above the diagonal; the last line of a field is the value of the hole in antes"
    axes.set_title(f"{_title(strategy)}\n{legend}", fontsize=13)
    for place_y, row in enumerate(_DOWNWARDS):
        for place_x, column in enumerate(_DOWNWARDS):
            number = row * len(RANKS) + column
            result, share = cells[number]
            axes.add_patch(
                Rectangle((place_x, place_y), 1, 1, facecolor=_shade(float(share)), edgecolor="white", linewidth=1.5)
            )
            ink = "white" if share > Fraction(3, 4) else "#222222"
            value = format_decimal(strategy.hole_value(number), 2)
            for text, height, size in ((hole_name(number), 0.28, 12), (result, 0.58, 8), (value, 0.8, 8)):
                axes.text(place_x + 0.5, place_y + height, text, ha="center", va="center", color=ink, fontsize=size)
    with mpl.rc_context({"svg.hashsalt": "rgs"}):  # the same picture at every run
        figure.savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else None)


def _shade(share: float) -> tuple[float, float, float]:
    ends = [[int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)] for colour in (_CHECKED, _RAISED)]
    red, green, blue = (least + (most - least) * share for least, most in zip(*ends, strict=True))
    return red, green, blue
