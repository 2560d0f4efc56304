"""The exact distributions of what is watched, as fractions, from the certificate of the ruleset (docs/returns.md).

How often each hand is dealt, who wins at a showdown, whether the dealer qualifies and what a side bet pays follow from
the cards alone. What the main bets return depends on the player: only a bound is known, the mean of best play.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Final

from rgs.core.cards import DECK_SIZE, FULL_DECK, format_card
from rgs.core.errors import RulesetError
from rgs.core.games.paytables import format_floor
from rgs.core.games.stakes import dearest_round
from rgs.core.returns.certified import load_certified_returns
from rgs.core.rulesets import Ruleset

PLACES: Final = ("h1", "h2", "b1", "b2", "b3", "b4", "b5", "d1", "d2")
"""The nine cards of a round: the player's own, the board, the dealer's."""
SHOWDOWN, QUALIFIED, HAND, CARDS, MAIN = "showdown", "dealer", "hand", "cards", "main"


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """A figure with a known distribution: the chance of each key. With `values` its mean is watched, else its
    frequencies.

    Each round has one key of each group (the card of a place); most figures have one group.
    """

    chances: Mapping[str, Fraction]
    values: Mapping[str, Fraction]
    groups: tuple[tuple[str, ...], ...]

    @property
    def mean(self) -> Fraction:
        """The exact mean."""
        return sum((chance * self.values[key] for key, chance in self.chances.items()), Fraction(0))

    @property
    def variance(self) -> Fraction:
        """The exact variance."""
        squares = (chance * self.values[key] ** 2 for key, chance in self.chances.items())
        return sum(squares, Fraction(0)) - self.mean**2


@dataclass(frozen=True, slots=True)
class Bound:
    """A figure with a known bound: its mean is at most `mean`, however anybody plays, and it is never below `least`.
    `variance` is that of best play, for display only.
    """

    mean: Fraction
    least: Fraction
    variance: Fraction


@dataclass(frozen=True, slots=True)
class Laws:
    """All figures of a ruleset: those with a known distribution by name, in the order of reports, and the main bets."""

    figures: Mapping[str, Law]
    main: Bound


@cache
def load_laws(ruleset: Ruleset) -> Laws | None:
    """The distributions of this ruleset, None without a certificate; RulesetError if that contradicts itself."""
    certificate = load_certified_returns(ruleset)
    if certificate is None:
        return None
    file = resources.files("rgs.core") / "certificate_data" / f"{ruleset.sha256}.json"
    laws = parse_laws(json.loads(file.read_text(encoding="ascii")), ruleset)
    side = ruleset.rules.side_bet
    if laws.figures[side].mean + 1 != certificate.side_bets[side]:
        raise RulesetError(f"{ruleset.id}: the hands of {side} do not come to its return", field="certificate")
    return laws


def parse_laws(document: Mapping[str, Any], ruleset: Ruleset) -> Laws:
    """The distributions of a certificate's document; RulesetError if chances do not add up to one."""
    deals, side = int(document["deals"]), ruleset.rules.side_bet
    ways = {"dealer": 0, "player": 0, "tie": 0}
    qualified = 0
    hands: dict[str, int] = {}
    for lines in document["outcomes"].values():
        for hand, line in lines.items():
            for outcome, count in line.items():
                qualifies, _, winner = outcome.partition("_")
                ways[winner] += count
                qualified += count * (qualifies == "qualified")
                hands[hand] = hands.get(hand, 0) + count
    paid = {format_floor(floor): odds.returned_per_unit - 1 for floor, odds in ruleset.paytables[side].rows}
    figures = {
        SHOWDOWN: _law(
            {way: Fraction(count, deals) for way, count in ways.items()},
            {"dealer": Fraction(-1), "player": Fraction(1), "tie": Fraction(0)},
        ),
        QUALIFIED: _law(
            {"no": Fraction(deals - qualified, deals), "yes": Fraction(qualified, deals)},
            {"no": Fraction(0), "yes": Fraction(1)},
        ),
        HAND: _law({hand: Fraction(count, deals) for hand, count in hands.items()}, {}),
        CARDS: _law(
            {f"{place}{format_card(card)}": Fraction(1, DECK_SIZE) for place in PLACES for card in FULL_DECK},
            {},
            groups=tuple(tuple(f"{place}{format_card(card)}" for card in FULL_DECK) for place in PLACES),
        ),
        side: _law({hand: Fraction(text) for hand, text in document["side_bets"][side]["hands"].items()}, paid),
    }  # fmt: skip
    bound = Bound(
        Fraction(document["expected_value_per_ante"]),
        Fraction(-dearest_round(ruleset.rules)),
        Fraction(document["variance"]),
    )
    return Laws(MappingProxyType(figures), bound)


def _law(
    chances: Mapping[str, Fraction], values: Mapping[str, Fraction], groups: tuple[tuple[str, ...], ...] = ()
) -> Law:
    groups = groups or (tuple(chances),)
    if any(sum(chances[key] for key in group) != 1 for group in groups):
        raise RulesetError("the chances of the certificate do not add up to one", field="certificate")
    return Law(MappingProxyType(dict(chances)), MappingProxyType(dict(values)), groups)
