"""Settlement row by row: RULEBOOK U-4 to U-9 and C-2 to C-7, on hands made for each row."""

from __future__ import annotations

import pytest

from rgs.core import games
from rgs.core.cards import FULL_DECK, parse_cards
from rgs.core.errors import IllegalActionError
from rgs.core.games.types import Action, Seat, SeatStakes, Settlement
from rgs.core.hands import Category, HandValue
from rgs.core.money import format_odds
from rgs.core.rulesets import load_ruleset

UTH = ("uth-online", "uth-seven-box", "uth-lugano", "uth-solo")

# hole cards, dealer's, board
NOT_QUALIFIED_PLAYER = ("As 2d", "Kh 3c", "Qs Jd 9h 7c 5d")
NOT_QUALIFIED_DEALER = ("Kh 3c", "As 2d", "Qs Jd 9h 7c 5d")
NOT_QUALIFIED_TIE = ("2h 3c", "2s 3d", "Qs Jd 9h 7c 5d")
QUALIFIED_PLAYER = ("As Ad", "Kh Kc", "Qs Jd 9h 7c 5d")
QUALIFIED_DEALER = ("Kh Kc", "As Ad", "Qs Jd 9h 7c 5d")
QUALIFIED_TIE = ("2h 3c", "2s 3d", "Qs Qd 9h 7c 5d")
FLUSH_WINS = ("As 2s", "Kh Kc", "Qs Js 9s 7c 5d")
FLUSH_WINS_NOT_QUALIFIED = ("As 2s", "Kh 3c", "Qs Js 9s 7c 5d")
TRIPS_LOSE = ("2h 3c", "As 4d", "Qs Qd Qh 7c 5d")
ACES_ON_FLOP = ("As 2d", "Kh Kc", "Ad 9h 7c 5d 3s")


def seat_of(ruleset_id: str, cards: tuple[str, str, str], bets: dict[str, int], *actions: Action) -> Seat:
    ruleset = load_ruleset(ruleset_id)
    hole, dealer, board = (parse_cards(text.split()) for text in cards)
    blocks = {"player": hole, "dealer": dealer, "flop": board[:3], "turn": board[3:4], "river": board[4:]}
    others = iter(card for card in FULL_DECK if card not in {*hole, *dealer, *board})
    deck = [card for step in ruleset.deal_procedure for card in blocks.get(step.block) or (next(others),)]
    (seat,) = games.deal(ruleset, [*deck, *others], [SeatStakes(1, bets, 10**6)])
    for action in actions:
        seat = games.apply(seat, action)
    return seat


def settled(ruleset_id: str, cards: tuple[str, str, str], bets: dict[str, int], *actions: Action) -> Settlement:
    seat = seat_of(ruleset_id, cards, bets, *actions)
    return games.settle(seat)


def nets(settlement: Settlement) -> dict[str, int]:
    return {bet.bet: bet.net_minor for bet in settlement.bets}


@pytest.mark.parametrize("ruleset_id", UTH)
@pytest.mark.parametrize(
    ("cards", "qualifies", "outcome", "expected"),
    [
        (NOT_QUALIFIED_PLAYER, False, "player", {"ante": 0, "blind": 0, "trips": -20, "play": 400}),
        (NOT_QUALIFIED_DEALER, False, "dealer", {"ante": 0, "blind": -100, "trips": -20, "play": -400}),
        (NOT_QUALIFIED_TIE, False, "tie", {"ante": 0, "blind": 0, "trips": -20, "play": 0}),
        (QUALIFIED_PLAYER, True, "player", {"ante": 100, "blind": 0, "trips": -20, "play": 400}),
        (QUALIFIED_DEALER, True, "dealer", {"ante": -100, "blind": -100, "trips": -20, "play": -400}),
        (QUALIFIED_TIE, True, "tie", {"ante": 0, "blind": 0, "trips": -20, "play": 0}),
        (FLUSH_WINS, True, "player", {"ante": 100, "blind": 150, "trips": 140, "play": 400}),
        (FLUSH_WINS_NOT_QUALIFIED, False, "player", {"ante": 0, "blind": 150, "trips": 140, "play": 400}),
        (TRIPS_LOSE, True, "dealer", {"ante": -100, "blind": -100, "trips": 60, "play": -400}),
    ],
)
def test_uth_after_a_play_bet(
    ruleset_id: str, cards: tuple[str, str, str], qualifies: bool, outcome: str, expected: dict[str, int]
) -> None:
    settlement = settled(ruleset_id, cards, {"ante": 100, "trips": 20}, Action.PLAY_4X)
    assert (settlement.dealer_qualifies, settlement.outcome, nets(settlement)) == (qualifies, outcome, expected)
    assert settlement.staked_minor == 620
    assert settlement.net_minor == sum(expected.values())
    assert settlement.flop_hand is None


@pytest.mark.parametrize(
    ("ruleset_id", "trips"), [("uth-online", 60), ("uth-seven-box", 60), ("uth-lugano", -20), ("uth-solo", 60)]
)
def test_uth_after_a_fold(ruleset_id: str, trips: int) -> None:
    """U-8, U-9: ante and blind are lost; trips that would win are the ruleset's."""
    folds = (Action.CHECK, Action.CHECK, Action.FOLD)
    settlement = settled(ruleset_id, TRIPS_LOSE, {"ante": 100, "trips": 20}, *folds)
    assert settlement.outcome == "fold"
    assert nets(settlement) == {"ante": -100, "blind": -100, "trips": trips}
    without = settled(ruleset_id, TRIPS_LOSE, {"ante": 100}, *folds)
    assert nets(without) == {"ante": -100, "blind": -100}
    losing = settled(ruleset_id, QUALIFIED_PLAYER, {"ante": 100, "trips": 20}, *folds)
    assert nets(losing) == {"ante": -100, "blind": -100, "trips": -20}


@pytest.mark.parametrize(
    ("cards", "qualifies", "outcome", "expected"),
    [
        # C-3: the ante is paid whoever has the better hand; the call pushes.
        (NOT_QUALIFIED_PLAYER, False, "player", {"ante": 100, "aa": -20, "call": 0}),
        (NOT_QUALIFIED_DEALER, False, "dealer", {"ante": 100, "aa": -20, "call": 0}),
        (NOT_QUALIFIED_TIE, False, "tie", {"ante": 100, "aa": -20, "call": 0}),
        (FLUSH_WINS_NOT_QUALIFIED, False, "player", {"ante": 200, "aa": 400, "call": 0}),
        # C-4.
        (QUALIFIED_PLAYER, True, "player", {"ante": 100, "aa": 140, "call": 200}),
        (QUALIFIED_DEALER, True, "dealer", {"ante": -100, "aa": -20, "call": -200}),
        (QUALIFIED_TIE, True, "tie", {"ante": 0, "aa": -20, "call": 0}),
        (FLUSH_WINS, True, "player", {"ante": 200, "aa": 400, "call": 200}),
        (ACES_ON_FLOP, True, "player", {"ante": 100, "aa": 140, "call": 200}),
    ],
)
def test_casino_holdem_after_a_call(
    cards: tuple[str, str, str], qualifies: bool, outcome: str, expected: dict[str, int]
) -> None:
    settlement = settled("casino-holdem", cards, {"ante": 100, "aa": 20}, Action.CALL)
    assert (settlement.dealer_qualifies, settlement.outcome, nets(settlement)) == (qualifies, outcome, expected)
    assert settlement.flop_hand is not None


@pytest.mark.parametrize(("dealer", "qualifies"), [("3s 3d", False), ("4s 4d", True), ("3s 2d", False)])
def test_casino_holdem_qualifies_from_a_pair_of_fours(dealer: str, qualifies: bool) -> None:
    """C-2."""
    settlement = settled("casino-holdem", ("Ah Kc", dealer, "Qs Jd 9h 7c 5d"), {"ante": 100}, Action.CALL)
    assert settlement.dealer_qualifies is qualifies


def test_a_fold_loses_aa_even_on_winning_cards() -> None:
    """C-7."""
    settlement = settled("casino-holdem", ACES_ON_FLOP, {"ante": 100, "aa": 20}, Action.FOLD)
    assert nets(settlement) == {"ante": -100, "aa": -20}
    assert nets(settled("casino-holdem", ACES_ON_FLOP, {"ante": 100}, Action.FOLD)) == {"ante": -100}


def by_category(odds: str) -> dict[Category, str]:
    return dict(zip(sorted(Category, reverse=True), odds.split(), strict=True))


BLIND = by_category("500:1 50:1 10:1 3:1 3:2 1:1 push push push push")
TRIPS = by_category("50:1 40:1 30:1 8:1 7:1 4:1 3:1 lost lost lost")
ANTE = by_category("100:1 20:1 10:1 3:1 2:1 1:1 1:1 1:1 1:1 1:1")
AA = by_category("100:1 50:1 40:1 30:1 20:1 7:1 7:1 7:1 lost lost")


@pytest.mark.parametrize(
    ("ruleset_id", "bet", "expected"),
    [
        *((ruleset_id, "blind", BLIND) for ruleset_id in UTH),
        *((ruleset_id, "trips", TRIPS) for ruleset_id in UTH),
        ("casino-holdem", "ante", ANTE),
        ("casino-holdem", "aa", AA),
    ],
)
def test_the_paytables_are_the_rulebooks(ruleset_id: str, bet: str, expected: dict[Category, str]) -> None:
    """U-6, U-7, C-5, C-6, typed out a second time; kings for the pair."""
    paytable = load_ruleset(ruleset_id).paytables[bet]
    paid = {c: format_odds(paytable.odds_for(HandValue(c, (int(c), 13), ()))) for c in Category}
    assert paid == expected
    aces = format_odds(paytable.odds_for(HandValue(Category.PAIR, (1, 14, 4, 3, 2), ())))
    assert aces == ("7:1" if bet == "aa" else expected[Category.PAIR])


@pytest.mark.parametrize("actions", [(), (Action.CHECK,), (Action.CHECK, Action.CHECK)])
def test_an_open_seat_is_not_settled(actions: tuple[Action, ...]) -> None:
    seat = seat_of("uth-solo", QUALIFIED_PLAYER, {"ante": 100}, *actions)
    with pytest.raises(IllegalActionError) as caught:
        games.settle(seat)
    assert caught.value.metadata["rule"] == "U-2"
