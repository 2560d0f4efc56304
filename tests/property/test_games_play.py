"""Properties of whole rounds: any ruleset, any deck, any stakes within limits, any decisions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core import games
from rgs.core.cards import FULL_DECK, Card
from rgs.core.errors import IllegalActionError, InsufficientBalanceError, RgsError
from rgs.core.games.types import Action, BetResult, Outcome, Phase, Seat, SeatStakes
from rgs.core.hands import evaluate
from rgs.core.rulesets import SHIPPED_RULESETS, Ruleset, load_ruleset

RULESETS = [load_ruleset(ruleset_id) for ruleset_id in SHIPPED_RULESETS]

decks = st.permutations(FULL_DECK)


@st.composite
def bets(draw: st.DrawFn, ruleset: Ruleset) -> dict[str, int]:
    """An ante and perhaps a side bet, within limits and on the step."""
    placed = {}
    for bet, limits in ruleset.limits.items():
        if bet == "ante" or draw(st.booleans()):
            steps = st.integers(limits.min_minor // ruleset.step_minor, limits.max_minor // ruleset.step_minor)
            placed[bet] = draw(steps) * ruleset.step_minor
    return placed


@st.composite
def seats(draw: st.DrawFn) -> Seat:
    """One seat of a new round, anywhere at the table, with funds for all, some or none of the options."""
    ruleset = draw(st.sampled_from(RULESETS))
    numbers = sorted(draw(st.sets(st.integers(1, ruleset.max_seats or 20), min_size=1)))
    stakes = []
    for seat_no in numbers:
        placed = draw(bets(ruleset))
        stakes.append(SeatStakes(seat_no, placed, draw(st.integers(0, 5 * placed["ante"]))))
    return draw(st.sampled_from(games.deal(ruleset, draw(decks), stakes)))


def played(data: st.DataObject, seat: Seat) -> list[Seat]:
    """The seat after each decision, until the showdown; decisions at random among those that are available."""
    states = [seat]
    while states[-1].phase is not Phase.SHOWDOWN:
        available = [legal.action for legal in games.legal_actions(states[-1]) if legal.available]
        states.append(games.apply(states[-1], data.draw(st.sampled_from(available))))
    return states


@given(data=st.data(), seat=seats())
def test_chips_are_conserved(data: st.DataObject, seat: Seat) -> None:
    states = played(data, seat)
    settlement = games.settle(states[-1])
    opening = sum(amount for _, amount in seat.bets) + seat.funds_minor
    for state in states:
        assert sum(amount for _, amount in state.bets) + state.funds_minor == opening
        assert state.funds_minor >= 0
    assert tuple((bet.bet, bet.stake_minor) for bet in settlement.bets) == states[-1].bets
    assert settlement.staked_minor == sum(amount for _, amount in states[-1].bets)
    assert settlement.returned_minor == sum(bet.returned_minor for bet in settlement.bets)
    assert settlement.net_minor == sum(bet.net_minor for bet in settlement.bets)
    for bet in settlement.bets:
        assert bet.returned_minor >= 0
        assert (bet.returned_minor > bet.stake_minor) is (bet.result is BetResult.WIN)
        assert (bet.returned_minor == bet.stake_minor) is (bet.result is BetResult.PUSH)
        assert (bet.returned_minor == 0) is (bet.result is BetResult.LOSE)


@given(data=st.data(), seat=seats())
def test_the_outcome_is_the_comparison_of_the_hands(data: st.DataObject, seat: Seat) -> None:
    seat = played(data, seat)[-1]
    settlement = games.settle(seat)
    player, dealer = evaluate(seat.hole_cards + seat.board), evaluate(seat.dealer_cards + seat.board)
    assert (settlement.player_hand, settlement.dealer_hand) == (player, dealer)
    if seat.actions[-1].action is Action.FOLD:
        assert settlement.outcome is Outcome.FOLD
    else:
        assert (settlement.outcome is Outcome.PLAYER) is (player > dealer)
        assert (settlement.outcome is Outcome.TIE) is (player == dealer)


@given(data=st.data(), ruleset=st.sampled_from(RULESETS), deck=decks)
def test_a_better_hand_never_gets_less(data: st.DataObject, ruleset: Ruleset, deck: list[Card]) -> None:
    """Two players against the same dealer and board, with the same bets and decisions."""
    placed = data.draw(bets(ruleset))
    board, dealer, first, second = deck[:5], deck[5:7], deck[7:9], deck[9:11]
    ways = data.draw(st.lists(st.sampled_from(Action), max_size=3))

    def side_hand(hole: list[Card]) -> object:
        """The hand that the side bet is settled by."""
        return evaluate(hole + board[:3]) if ruleset.rules.side_bet_on_flop else evaluate(hole + board)

    def returned(hole: list[Card]) -> dict[str, int]:
        blocks = {"player": hole, "dealer": dealer, "flop": board[:3], "turn": board[3:4], "river": board[4:]}
        others = [card for card in deck if card not in {*hole, *dealer, *board}]
        top = [
            card
            for number, step in enumerate(ruleset.deal_procedure)
            for card in blocks.get(step.block) or [others[number]]
        ]
        rest = [card for card in deck if card not in top]
        (seat,) = games.deal(ruleset, top + rest, [SeatStakes(1, placed, 10**6)])
        for way in ways:
            if way in [legal.action for legal in games.legal_actions(seat)]:
                seat = games.apply(seat, way)
        while seat.phase is not Phase.SHOWDOWN:
            seat = games.apply(seat, games.default_action(seat))
        return {bet.bet: bet.returned_minor for bet in games.settle(seat).bets}

    better, worse = sorted((first, second), key=lambda hole: evaluate(hole + board), reverse=True)
    of_better, of_worse = returned(better), returned(worse)
    side = ruleset.rules.side_bet
    assert all(of_better[bet] >= of_worse[bet] for bet in of_better if bet != side)
    if side in placed:
        best, least = sorted((first, second), key=side_hand, reverse=True)  # type: ignore[arg-type]
        assert returned(best)[side] >= returned(least)[side]


@given(data=st.data(), seat=seats(), action=st.sampled_from(Action))
def test_what_is_refused_changes_nothing_and_names_its_rule(data: st.DataObject, seat: Seat, action: Action) -> None:
    seat = data.draw(st.sampled_from(played(data, seat)))
    before = (repr(seat), seat.hole_cards, seat.dealer_cards, seat.board, seat.burns)
    legal = {option.action: option.available for option in games.legal_actions(seat)}
    if legal.get(action):
        assert games.apply(seat, action) is not seat
    else:
        with pytest.raises(InsufficientBalanceError if action in legal else IllegalActionError) as caught:
            games.apply(seat, action)
        rules = seat.ruleset.rules
        assert caught.value.field == "action"
        assert caught.value.metadata["rule"] == (rules.funds_rule if action in legal else rules.decision_rule)
    assert (repr(seat), seat.hole_cards, seat.dealer_cards, seat.board, seat.burns) == before


@given(
    ruleset=st.sampled_from(RULESETS),
    placed=st.dictionaries(
        st.sampled_from(["ante", "trips", "aa", "blind", "play", "call"]), st.integers(-(10**6), 10**6)
    ),
)
def test_stakes_are_taken_as_they_are_or_refused_by_name(ruleset: Ruleset, placed: dict[str, int]) -> None:
    before = dict(placed)
    side = ruleset.rules.side_bet
    fits = "ante" in placed and placed.keys() <= {"ante", side}
    for bet, amount in placed.items():
        limits = ruleset.limits.get(bet)
        fits = fits and limits is not None and limits.min_minor <= amount <= limits.max_minor
        fits = fits and amount % ruleset.step_minor == 0
    if fits:
        opening = dict(games.check_stakes(ruleset, placed))
        assert opening.pop("blind", placed["ante"]) == placed["ante"]
        assert opening == placed
    else:
        with pytest.raises(RgsError) as caught:
            games.check_stakes(ruleset, placed)
        assert str(caught.value.field).startswith("bets.")
        assert caught.value.metadata["rule"] == ruleset.rules.stake_rule
    assert placed == before


@given(ruleset=st.sampled_from(RULESETS), balance_minor=st.integers(0, 10**6), data=st.data())
def test_the_largest_ante_covers_every_option_and_no_larger_one_does(
    ruleset: Ruleset, balance_minor: int, data: st.DataObject
) -> None:
    side_bets = {bet: stake for bet, stake in data.draw(bets(ruleset)).items() if bet != "ante"}

    def is_covered(ante_minor: int) -> bool:
        placed = {"ante": ante_minor, **side_bets}
        opening = sum(amount for _, amount in games.check_stakes(ruleset, placed))
        return opening + games.dearest_finish(ruleset, placed) <= balance_minor

    ante_minor = games.largest_ante(ruleset, balance_minor, side_bets)
    limits = ruleset.limits["ante"]
    larger = ante_minor + ruleset.step_minor if ante_minor else limits.min_minor
    assert ante_minor == 0 or is_covered(ante_minor)
    assert larger > limits.max_minor or not is_covered(larger)


@given(seat=seats())
def test_no_card_is_dealt_twice(seat: Seat) -> None:
    dealt = [*seat.hole_cards, *seat.dealer_cards, *seat.board, *seat.burns]
    assert len(set(dealt)) == len(dealt)
    assert set(dealt) <= set(FULL_DECK)
