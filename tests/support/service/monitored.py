"""Rounds as the watch over returns reads them: dealt and settled by the rules, fair or rigged, from a seed."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rgs.core import games
from rgs.core.cards import DECK_SIZE, format_cards
from rgs.core.games.types import Action, Phase, Seat, SeatStakes
from rgs.core.hands import evaluate
from rgs.core.rounds import rules_object, settlement_objects
from rgs.core.rulesets import Ruleset, load_ruleset
from rgs.core.times import format_time

UTH = load_ruleset("uth-solo")
CASINO = load_ruleset("casino-holdem")
Choose = Callable[[Sequence[Action]], Action]
Deal = Callable[[random.Random], list[int]]


def seeded(seed: str) -> random.Random:
    """Chance that is the same again and again."""
    return random.Random(hashlib.sha256(seed.encode()).digest())


def fair(chance: random.Random) -> list[int]:
    """A shuffled deck."""
    deck = list(range(DECK_SIZE))
    chance.shuffle(deck)
    return deck


def favouring_dealer(share: float) -> Deal:
    """In so many of the deals the better hand is the dealer's: own and dealer's cards are changed for one another."""

    def deal(chance: random.Random) -> list[int]:
        deck = fair(chance)
        if chance.random() < share and evaluate(deck[:2] + deck[4:9]) > evaluate(deck[2:4] + deck[4:9]):  # type: ignore[arg-type]
            deck[:4] = deck[2:4] + deck[:2]
        return deck

    return deal


def raising(legal: Sequence[Action]) -> Action:
    """The dearest way: raise at once."""
    return next(action for action in legal if action is not Action.CHECK)


def folding(legal: Sequence[Action]) -> Action:
    """Give up as soon as the rules let one."""
    return Action.FOLD if Action.FOLD in legal else Action.CHECK


def checking(legal: Sequence[Action]) -> Action:
    """Check while it is free, then stay in."""
    return Action.CHECK if Action.CHECK in legal else next(action for action in legal if action is not Action.FOLD)


def played_seat(ruleset: Ruleset, deck: Sequence[int], choose: Choose, *, ante: int = 100, side: int = 0) -> Seat:
    """A seat at its showdown."""
    bets = {"ante": ante} | ({ruleset.rules.side_bet: side} if side else {})
    (seat,) = games.deal(ruleset, deck, [SeatStakes(1, bets, 10 * ante)])
    while seat.phase is not Phase.SHOWDOWN:
        seat = games.apply(seat, choose([legal.action for legal in games.legal_actions(seat)]))
    return seat


def opening_of(seat: Seat, time_ms: int, ruleset: Ruleset | None = None) -> dict[str, Any]:
    """What of an opening is read."""
    opening = ("ante", "blind", seat.ruleset.rules.side_bet)
    return {
        "deal": {"ruleset": rules_object(ruleset or seat.ruleset)},
        "seat": {"bets": [{"amount_minor": str(amount), "bet": bet} for bet, amount in seat.bets if bet in opening]},
        "session_id": "01K4ZQ6A0B1C2D3E4F5G6H7J81",
        "time": format_time(time_ms),
    }


def final_of(seat: Seat, *, void: bool = False, seat_no: int = 1) -> dict[str, Any]:
    """What of a final is read."""
    settled = settlement_objects(games.settle(seat))
    final: dict[str, Any] = {
        "actions": [{"action": taken.action.value, "phase": taken.phase.value} for taken in seat.actions],
        "cards": {
            "board": list(format_cards(seat.board)),
            "dealer_cards": list(format_cards(seat.dealer_cards)),
            "hole_cards": list(format_cards(seat.hole_cards)),
        },
        "seat_no": str(seat_no),
        "settlement": settled,
        "status": "void" if void else "settled",
    }
    if void:
        pushed = [{**row, "result": "push", "returned_minor": row["stake_minor"]} for row in settled]
        final |= {"settlement": pushed, "void": {"would_have_been": settled}}
    return final


def seats(
    seed: str, count: int, choose: Choose = raising, deal: Deal = fair, *, ruleset: Ruleset = UTH, side: int = 0
) -> Iterator[Seat]:
    """So many seats, each at its showdown."""
    chance = seeded(seed)
    for _ in range(count):
        yield played_seat(ruleset, deal(chance), choose, side=side)


def as_people_do(seed: str, count: int) -> list[Seat]:
    """Pairs and aces are raised at once, everything else is looked at for long and given up without a pair."""
    chance, played = seeded(seed), []
    for _ in range(count):
        deck = fair(chance)
        ranks = [card % 13 for card in deck[:2]]
        quick = ranks[0] == ranks[1] or 12 in ranks
        played.append(played_seat(UTH, deck, raising if quick else checking))
    return played
