"""A seat from the record of its round is the seat that was played: `deal_again` and `apply_again` beside the rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core import games
from rgs.core.errors import IllegalActionError
from rgs.core.games.dealing import deal_again
from rgs.core.games.decisions import apply_again
from rgs.core.games.types import Action, ActionTaken, Phase, Seat, SeatStakes
from rgs.core.rulesets import load_ruleset

SOLO = {"uth-solo": ("ante", "trips"), "casino-holdem": ("ante", "aa")}


def again(seat: Seat, deck: list[int]) -> Seat:
    first = games.deal(seat.ruleset, deck, [SeatStakes(1, {"ante": 100}, 10_000)])[0]
    cost = sum(taken.amount_minor for taken in seat.actions)
    bets = tuple(bet for bet in seat.bets if bet[0] != seat.ruleset.rules.decided_bet)
    dealt = deal_again(seat.ruleset, deck, first.seat_no, bets, seat.funds_minor + cost)
    return apply_again(dealt, seat.actions)


@given(st.permutations(range(52)), st.sampled_from(sorted(SOLO)), st.booleans(), st.data())
def test_a_seat_from_its_record_is_the_seat(deck: list[int], name: str, with_side: bool, data: st.DataObject) -> None:
    ruleset = load_ruleset(name)
    bets = dict.fromkeys(SOLO[name][: 1 + with_side], 100)
    (seat,) = games.deal(ruleset, deck, [SeatStakes(1, bets, 10_000)])
    assert again(seat, deck) == seat
    while seat.phase is not Phase.SHOWDOWN:
        legal = [one.action for one in games.legal_actions(seat) if one.available]
        seat = games.apply(seat, data.draw(st.sampled_from(legal)))
        assert again(seat, deck) == seat


@pytest.mark.parametrize(
    "record",
    [
        [ActionTaken(Phase.PREFLOP, Action.FOLD, 0)],  # not legal there
        [ActionTaken(Phase.FLOP, Action.CHECK, 0)],  # not where the seat stands
        [ActionTaken(Phase.PREFLOP, Action.PLAY_4X, 400), ActionTaken(Phase.FLOP, Action.CHECK, 0)],  # after the end
    ],
)
def test_a_record_that_does_not_follow_the_table_is_refused(record: list[ActionTaken]) -> None:
    ruleset = load_ruleset("uth-solo")
    seat = deal_again(ruleset, range(52), 1, (("ante", 100), ("blind", 100)), 1_000)
    with pytest.raises(IllegalActionError):
        apply_again(seat, record)
