"""Paytables: what a bet pays by the worth of a hand (RULEBOOK U-6, U-7, C-5, C-6), and floors: "a pair of fours".

A floor is a category, "pair", or a category from a rank upwards, "pair:4". A hand's key begins with category and first
rank, so "this hand or better" is one comparison of tuples. A paytable has a row for each of the ten categories and
never pays a better hand less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rgs.core.cards import format_rank, parse_rank
from rgs.core.errors import FormatError, RulesetError
from rgs.core.hands import Category, HandValue, parse_category
from rgs.core.money import Odds, format_odds, parse_odds

_LOWEST_RANK: Final = 2


@dataclass(frozen=True, order=True, slots=True)
class HandFloor:
    """The least hand that meets a demand; `key` is the beginning of that hand's key."""

    key: tuple[int, ...]

    def is_met_by(self, hand: HandValue) -> bool:
        """Whether the hand is at least this good."""
        return hand.key >= self.key


def parse_floor(text: str) -> HandFloor:
    """Return the floor of "category" or "category:rank", rank 3..A; raise FormatError for any other text."""
    name, colon, rank_text = text.partition(":")
    category = parse_category(name)
    if not colon:
        return HandFloor((int(category),))
    rank = parse_rank(rank_text)
    # "from a two upwards" is the whole category and has that text already; a royal flush has no rank.
    if rank == _LOWEST_RANK or category is Category.ROYAL_FLUSH:
        raise FormatError(f"{text!r}: write {name!r} for the whole category", field="floor", value=text)
    return HandFloor((int(category), rank))


def format_floor(floor: HandFloor) -> str:
    """Return the text of a floor."""
    category, *ranks = floor.key
    return ":".join((Category(category).text, *(format_rank(rank) for rank in ranks)))


@dataclass(frozen=True, slots=True)
class Paytable:
    """Rows of (floor, odds), best first; the last row is the high card, so that every hand meets one."""

    rows: tuple[tuple[HandFloor, Odds], ...]

    def odds_for(self, hand: HandValue) -> Odds:
        """Return what the bet pays on this hand: the odds of the first row that it meets."""
        return next(odds for floor, odds in self.rows if floor.is_met_by(hand))


def parse_paytable(name: str, rows: Mapping[str, str]) -> Paytable:
    """Return the paytable of {floor: odds}; raise RulesetError naming table and row."""
    table: dict[HandFloor, Odds] = {}
    for floor_text, odds_text in rows.items():
        row = f"{name}.{floor_text}"
        try:
            table[parse_floor(floor_text)] = parse_odds(odds_text)
        except FormatError as error:
            raise RulesetError(f"{row}: {error.message}", field=row) from error
    for category in Category:
        if HandFloor((category,)) not in table:
            row = f"{name}.{category.text}"
            raise RulesetError(f"{row}: the paytable has a hole, this row is missing", field=row)
    paytable = Paytable(tuple(sorted(table.items(), key=lambda row: row[0], reverse=True)))
    for (better, odds), (worse, lower_odds) in zip(paytable.rows, paytable.rows[1:], strict=False):
        if odds.returned_per_unit < lower_odds.returned_per_unit:
            row = f"{name}.{format_floor(better)}"
            raise RulesetError(
                f"{row}: pays {format_odds(odds)}, less than {format_floor(worse)} ({format_odds(lower_odds)})",
                field=row,
            )
    return paytable
