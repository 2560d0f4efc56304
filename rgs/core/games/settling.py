"""Settlement: who has the better hand, and the result of every bet (RULEBOOK U-4 to U-9, C-2 to C-7).

The game's table says how a main bet is settled, by (dealer qualifies, outcome). The ruleset's paytables say what is
paid. Nothing is rounded.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from rgs.core.cards import Card
from rgs.core.errors import IllegalActionError
from rgs.core.games.types import BetResult, BetSettlement, Outcome, Pay, Phase, Ruleset, Seat, Settlement
from rgs.core.hands import HandValue, evaluate
from rgs.core.money import EVEN, LOST, PUSH, Odds

_FLOP: Final = 3
_FIXED: Final = {Pay.LOST: LOST, Pay.PUSH: PUSH, Pay.EVEN: EVEN}


class Showdown(NamedTuple):
    """The hands of a seat and of the dealer. Seats that share their cards share it: it is evaluated once."""

    player_hand: HandValue
    dealer_hand: HandValue
    flop_hand: HandValue | None
    dealer_qualifies: bool


def showdown(
    ruleset: Ruleset, hole_cards: tuple[Card, ...], dealer_cards: tuple[Card, ...], board: tuple[Card, ...]
) -> Showdown:
    """Return the hands of a round whose cards are all known."""
    dealer_hand = evaluate(dealer_cards + board)
    return Showdown(
        player_hand=evaluate(hole_cards + board),
        dealer_hand=dealer_hand,
        flop_hand=evaluate(hole_cards + board[:_FLOP]) if ruleset.rules.side_bet_on_flop else None,
        dealer_qualifies=ruleset.qualify.is_met_by(dealer_hand),
    )


def settle(seat: Seat, hands: Showdown | None = None) -> Settlement:
    """Return the seat's result; raise IllegalActionError before the showdown, StakeStepError rather than round.

    `hands` are those of the seat, where they are known already.
    """
    if seat.phase is not Phase.SHOWDOWN:
        raise IllegalActionError(
            f"a seat at {seat.phase} still has a decision to take",
            field="phase",
            phase=seat.phase,
            rule=seat.ruleset.rules.decision_rule,
        )
    hands = hands or showdown(seat.ruleset, seat.hole_cards, seat.dealer_cards, seat.board)
    outcome = _outcome(seat, hands)
    bets = tuple(settle_bet(bet, stake_minor, _odds(seat, bet, outcome, hands)) for bet, stake_minor in seat.bets)
    return Settlement(
        outcome=outcome,
        dealer_qualifies=hands.dealer_qualifies,
        player_hand=hands.player_hand,
        dealer_hand=hands.dealer_hand,
        flop_hand=hands.flop_hand,
        bets=bets,
        staked_minor=sum(bet.stake_minor for bet in bets),
        returned_minor=sum(bet.returned_minor for bet in bets),
    )


def settle_bet(bet: str, stake_minor: int, odds: Odds) -> BetSettlement:
    """Return one bet settled at these odds; raise StakeStepError if they pay part of a minor unit."""
    result = BetResult.LOSE if odds.lost else BetResult.WIN if odds.wins else BetResult.PUSH
    return BetSettlement(bet, stake_minor, odds.returned_minor(stake_minor), result)


def _outcome(seat: Seat, hands: Showdown) -> Outcome:
    if seat.has_folded:
        return Outcome.FOLD
    if hands.player_hand == hands.dealer_hand:
        return Outcome.TIE
    return Outcome.PLAYER if hands.player_hand > hands.dealer_hand else Outcome.DEALER


def _odds(seat: Seat, bet: str, outcome: Outcome, hands: Showdown) -> Odds:
    rules = seat.ruleset.rules
    if bet == rules.side_bet:
        # U-8, C-7: whether a fold forfeits the side bet is the ruleset's.
        if outcome is Outcome.FOLD and not seat.ruleset.side_bet_survives_fold:
            return LOST
        return seat.ruleset.paytables[bet].odds_for(hands.flop_hand or hands.player_hand)
    pay = rules.settlement[hands.dealer_qualifies, outcome][bet]
    return seat.ruleset.paytables[bet].odds_for(hands.player_hand) if pay is Pay.TABLE else _FIXED[pay]
