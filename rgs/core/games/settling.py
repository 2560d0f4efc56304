"""Settlement: who has the better hand, and the result of every bet (RULEBOOK U-4 to U-9, C-2 to C-7).

The game's table says how a main bet is settled, by (dealer qualifies, outcome). The ruleset's paytables say what is
paid. Nothing is rounded.
"""

from __future__ import annotations

from typing import Final

from rgs.core.errors import IllegalActionError
from rgs.core.games.types import BetResult, BetSettlement, Outcome, Pay, Phase, Seat, Settlement
from rgs.core.hands import HandValue, evaluate
from rgs.core.money import EVEN, LOST, PUSH, Odds

_FLOP: Final = 3
_FIXED: Final = {Pay.LOST: LOST, Pay.PUSH: PUSH, Pay.EVEN: EVEN}


def settle(seat: Seat) -> Settlement:
    """Return the seat's result; raise IllegalActionError before the showdown, StakeStepError rather than round."""
    if seat.phase is not Phase.SHOWDOWN:
        raise IllegalActionError(
            f"a seat at {seat.phase} still has a decision to take",
            field="phase",
            phase=seat.phase,
            rule=seat.ruleset.rules.decision_rule,
        )
    player_hand = evaluate(seat.hole_cards + seat.board)
    dealer_hand = evaluate(seat.dealer_cards + seat.board)
    flop_hand = evaluate(seat.hole_cards + seat.board[:_FLOP]) if seat.ruleset.rules.side_bet_on_flop else None
    outcome = _outcome(seat, player_hand, dealer_hand)
    dealer_qualifies = seat.ruleset.qualify.is_met_by(dealer_hand)
    bets = tuple(
        settle_bet(bet, stake_minor, _odds(seat, bet, dealer_qualifies, outcome, player_hand, flop_hand))
        for bet, stake_minor in seat.bets
    )
    return Settlement(
        outcome=outcome,
        dealer_qualifies=dealer_qualifies,
        player_hand=player_hand,
        dealer_hand=dealer_hand,
        flop_hand=flop_hand,
        bets=bets,
        staked_minor=sum(bet.stake_minor for bet in bets),
        returned_minor=sum(bet.returned_minor for bet in bets),
    )


def settle_bet(bet: str, stake_minor: int, odds: Odds) -> BetSettlement:
    """Return one bet settled at these odds; raise StakeStepError if they pay part of a minor unit."""
    result = BetResult.LOSE if odds.lost else BetResult.WIN if odds.wins else BetResult.PUSH
    return BetSettlement(bet, stake_minor, odds.returned_minor(stake_minor), result)


def _outcome(seat: Seat, player_hand: HandValue, dealer_hand: HandValue) -> Outcome:
    if seat.has_folded:
        return Outcome.FOLD
    if player_hand == dealer_hand:
        return Outcome.TIE
    return Outcome.PLAYER if player_hand > dealer_hand else Outcome.DEALER


def _odds(
    seat: Seat,
    bet: str,
    dealer_qualifies: bool,
    outcome: Outcome,
    player_hand: HandValue,
    flop_hand: HandValue | None,
) -> Odds:
    rules = seat.ruleset.rules
    if bet == rules.side_bet:
        # U-8, C-7: whether a fold forfeits the side bet is the ruleset's.
        if outcome is Outcome.FOLD and not seat.ruleset.side_bet_survives_fold:
            return LOST
        return seat.ruleset.paytables[bet].odds_for(flop_hand or player_hand)
    pay = rules.settlement[dealer_qualifies, outcome][bet]
    return seat.ruleset.paytables[bet].odds_for(player_hand) if pay is Pay.TABLE else _FIXED[pay]
