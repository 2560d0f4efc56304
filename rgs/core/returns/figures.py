"""What one round adds to the watched figures, from its signed opening and final.

The nine cards show who had the better hand (folded or not), whether the dealer qualified, which hand it was and what
the side bet was worth. A void that reveals its deck counts like any other round. The settlement shows what the main
bets brought per ante (in a void: would have brought), and what each bet was paid. Of a deal with several seats only the
first counts, because its seats share the dealer's hand. Replay verifies the statements; this module does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


@dataclass(frozen=True, slots=True)
class Played:
    """The keys that a round adds to each figure, and by bet what was staked and returned in minor units."""

    keys: Mapping[str, Sequence[str]]
    money: Mapping[str, tuple[int, int]]
    is_void: bool


def played(ruleset: Ruleset, opening: Mapping[str, Any], final: Mapping[str, Any]) -> Played:
    """Return what the round adds; no keys if it revealed no cards or is of a further seat."""
    is_void = final["status"] == "void"
    money = {} if is_void else {bet: (staked, returned) for bet, staked, returned in _settled(final["settlement"])}
    if final["seat_no"] != "1" or "cards" not in final:
        return Played({}, money, is_void)
    shown = final["cards"]
    texts = (*shown["hole_cards"], *shown["board"], *shown["dealer_cards"])
    cards = parse_cards(texts)
    player, dealer = evaluate(cards[:7]), evaluate(cards[2:])
    bets = {row["bet"]: int(row["amount_minor"]) for row in opening["seat"]["bets"]}
    side = ruleset.rules.side_bet
    settled = _settled(final["void"]["would_have_been"] if is_void else final["settlement"])
    net = sum(returned - staked for bet, staked, returned in settled if bet != side)
    keys = {
        SHOWDOWN: ("player" if player > dealer else "dealer" if player < dealer else "tie",),
        QUALIFIED: ("yes" if ruleset.qualify.is_met_by(dealer) else "no",),
        HAND: (player.category.text,),
        CARDS: tuple(f"{place}{text}" for place, text in zip(PLACES, texts, strict=True)),
        MAIN: (str(Fraction(net, bets["ante"])),),
    }
    if side in bets:
        keys[side] = (format_floor(_row(ruleset, cards, player)),)
    return Played(keys, money, is_void)


def _settled(rows: Sequence[Mapping[str, str]]) -> list[tuple[str, int, int]]:
    return [(row["bet"], int(row["stake_minor"]), int(row["returned_minor"])) for row in rows]


def _row(ruleset: Ruleset, cards: Sequence[Card], player: HandValue) -> HandFloor:
    """The line of the side bet's paytable."""
    hand = evaluate(cards[:_FLOP]) if ruleset.rules.side_bet_on_flop else player
    rows = ruleset.paytables[ruleset.rules.side_bet].rows
    return next(floor for floor, _ in rows if floor.is_met_by(hand))
