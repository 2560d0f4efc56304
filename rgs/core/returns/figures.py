"""What one round adds to the watched figures, from its signed opening and final.

The nine cards show who had the better hand (folded or not), whether the dealer qualified, which hand it was and what
the side bet was worth. A void that reveals its deck counts like any other round. The settlement shows what the main
bets brought per ante (in a void: would have brought), and what each bet was paid. Of a deal with several seats only the
first counts, because its seats share the dealer's hand. Replay verifies the statements; this module does not.

A round of a table is one observation, however many seats it has: its seats win and lose together, and a test that took
them for independent would see evidence where there is none. Cards and side bet count once. The main bets count with the
mean of all seats, whose own mean is at most that of best play, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from rgs.core.cards import Card, parse_cards
from rgs.core.games.paytables import HandFloor, format_floor
from rgs.core.hands import HandValue, evaluate
from rgs.core.returns.distributions import CARDS, HAND, MAIN, PLACES, QUALIFIED, SHOWDOWN
from rgs.core.rulesets import Ruleset

_FLOP: Final = 5
"""The player's own two cards and the flop."""
MEANS_PER_ANTE: Final = 100
"""The mean of several seats is rounded down to such a part of an ante, so that a tally keeps few values."""
Pair = tuple[Mapping[str, Any], Mapping[str, Any]]
"""The opening and the final of a seat."""


@dataclass(frozen=True, slots=True)
class Played:
    """The keys that a round adds to each figure, and by bet what was staked and returned in minor units."""

    keys: Mapping[str, Sequence[str]]
    money: Mapping[str, tuple[int, int]]
    voids: int
    unseen: int
    """Seats that gave no figures."""


def played(ruleset: Ruleset, opening: Mapping[str, Any], final: Mapping[str, Any]) -> Played:
    """Return what the round adds; no keys if it revealed no cards or is of a further seat."""
    is_void = final["status"] == "void"
    money = {} if is_void else {bet: (staked, returned) for bet, staked, returned in _settled(final["settlement"])}
    keys = keys_of(ruleset, opening, final) if final["seat_no"] == "1" else {}
    return Played(keys, money, int(is_void), int(not keys))


def played_at_table(ruleset: Ruleset, seats: Iterable[Pair], *, is_counted: bool = False) -> Played:
    """Return what a round of a table adds, from its seats in the form of solo play (`rgs.core.tables.joined`).

    `is_counted`: its deal was counted before, with other seats. Only the money of these is added then.
    """
    counted = TableCount(ruleset, is_counted=is_counted)
    for opening, final in sorted(seats, key=lambda seat: int(seat[1]["seat_no"])):
        counted.add(opening, final)
    return counted.played()


class TableCount:
    """Adds up the seats of one round of a table, which may be many, as they are read: in the order of their numbers."""

    def __init__(self, ruleset: Ruleset, *, is_counted: bool = False) -> None:
        self._ruleset = ruleset
        self._is_counted = is_counted
        self._keys: dict[str, Sequence[str]] = {}
        self._money: dict[str, tuple[int, int]] = {}
        self._net = Fraction(0)
        self._seats = self._seen = self._voids = 0

    def add(self, opening: Mapping[str, Any], final: Mapping[str, Any]) -> None:
        """Add the next seat."""
        self._seats += 1
        is_void = final["status"] == "void"
        self._voids += is_void
        for bet, staked, returned in () if is_void else _settled(final["settlement"]):
            before = self._money.get(bet, (0, 0))
            self._money[bet] = (before[0] + staked, before[1] + returned)
        keys = {} if self._is_counted else keys_of(self._ruleset, opening, final)
        if keys:
            self._seen += 1
            self._net += Fraction(keys[MAIN][0])
            self._keys = {**keys, **self._keys}  # of each figure the first seat that has it

    def played(self) -> Played:
        """What the seats add together."""
        if not self._seen:
            return Played({}, self._money, self._voids, self._seats)
        mean = self._net / self._seen
        if self._seen > 1:
            mean = Fraction(math.floor(mean * MEANS_PER_ANTE), MEANS_PER_ANTE)
        return Played({**self._keys, MAIN: (str(mean),)}, self._money, self._voids, self._seats - self._seen)


def keys_of(ruleset: Ruleset, opening: Mapping[str, Any], final: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """Return the keys of one seat; none if it revealed no cards, or does not tell what would have been settled."""
    rows = final.get("void", {}).get("would_have_been") if final["status"] == "void" else final["settlement"]
    if "cards" not in final or rows is None:
        return {}
    shown = final["cards"]
    texts = (*shown["hole_cards"], *shown["board"], *shown["dealer_cards"])
    cards = parse_cards(texts)
    player, dealer = evaluate(cards[:7]), evaluate(cards[2:])
    bets = {row["bet"]: int(row["amount_minor"]) for row in opening["seat"]["bets"]}
    side = ruleset.rules.side_bet
    net = sum(returned - staked for bet, staked, returned in _settled(rows) if bet != side)
    keys: dict[str, Sequence[str]] = {
        SHOWDOWN: ("player" if player > dealer else "dealer" if player < dealer else "tie",),
        QUALIFIED: ("yes" if ruleset.qualify.is_met_by(dealer) else "no",),
        HAND: (player.category.text,),
        CARDS: tuple(f"{place}{text}" for place, text in zip(PLACES, texts, strict=True)),
        MAIN: (str(Fraction(net, bets["ante"])),),
    }
    if side in bets:
        keys[side] = (format_floor(_row(ruleset, cards, player)),)
    return keys


def _settled(rows: Sequence[Mapping[str, str]]) -> list[tuple[str, int, int]]:
    return [(row["bet"], int(row["stake_minor"]), int(row["returned_minor"])) for row in rows]


def _row(ruleset: Ruleset, cards: Sequence[Card], player: HandValue) -> HandFloor:
    """The line of the side bet's paytable."""
    hand = evaluate(cards[:_FLOP]) if ruleset.rules.side_bet_on_flop else player
    rows = ruleset.paytables[ruleset.rules.side_bet].rows
    return next(floor for floor, _ in rows if floor.is_met_by(hand))
