"""The deal procedure of every ruleset, card by card (RULEBOOK U-1, U-3, C-1)."""

from __future__ import annotations

import pytest

from rgs.core import games
from rgs.core.cards import FULL_DECK, parse_cards
from rgs.core.errors import FormatError, InvalidFieldError, StakeBelowMinimumError, UnknownBetError
from rgs.core.games.types import Phase, Seat, SeatStakes
from rgs.core.rulesets import SHIPPED_RULESETS, load_ruleset

DECK = FULL_DECK[::-1]  # As Ks Qs Js Ts 9s 8s 7s 6s 5s ...


def dealt(ruleset_id: str, *seat_numbers: int) -> tuple[Seat, ...]:
    ruleset = load_ruleset(ruleset_id)
    return games.deal(ruleset, DECK, [SeatStakes(number, {"ante": 100}, 1000) for number in seat_numbers])


@pytest.mark.parametrize("ruleset_id", ["uth-solo", "casino-holdem", "uth-online"])
def test_without_burns(ruleset_id: str) -> None:
    (seat,) = dealt(ruleset_id, 1)
    assert seat.hole_cards == parse_cards(["As", "Ks"])
    assert seat.dealer_cards == parse_cards(["Qs", "Js"])
    assert seat.board == parse_cards(["Ts", "9s", "8s", "7s", "6s"])
    assert seat.burns == ()


@pytest.mark.parametrize("ruleset_id", ["uth-seven-box", "uth-lugano"])
def test_with_burns_and_own_cards(ruleset_id: str) -> None:
    """One block after the other in seat order, then the dealer's; a burn before flop and one before turn and river."""
    seats = dealt(ruleset_id, 2, 5, 7)
    assert [seat.seat_no for seat in seats] == [2, 5, 7]
    assert [seat.hole_cards for seat in seats] == [
        parse_cards(["As", "Ks"]),
        parse_cards(["Qs", "Js"]),
        parse_cards(["Ts", "9s"]),
    ]
    for seat in seats:
        assert seat.dealer_cards == parse_cards(["8s", "7s"])
        assert seat.burns == parse_cards(["6s", "2s"])
        assert seat.board == parse_cards(["5s", "4s", "3s", "Ah", "Kh"])


def test_one_hand_for_all_at_the_online_table() -> None:
    seats = dealt("uth-online", *range(1, 301))
    assert len(seats) == 300
    assert {seat.hole_cards for seat in seats} == {parse_cards(["As", "Ks"])}
    assert {seat.board for seat in seats} == {parse_cards(["Ts", "9s", "8s", "7s", "6s"])}


@pytest.mark.parametrize("ruleset_id", SHIPPED_RULESETS)
def test_a_new_seat(ruleset_id: str) -> None:
    (seat,) = dealt(ruleset_id, 1)
    assert seat.phase is (Phase.FLOP if ruleset_id == "casino-holdem" else Phase.PREFLOP)
    assert dict(seat.bets) == ({"ante": 100} if ruleset_id == "casino-holdem" else {"ante": 100, "blind": 100})
    assert (seat.ante_minor, seat.funds_minor, seat.actions, seat.has_folded) == (100, 1000, (), False)


@pytest.mark.parametrize("ruleset_id", SHIPPED_RULESETS)
def test_no_card_stands_in_the_repr(ruleset_id: str) -> None:
    (seat,) = dealt(ruleset_id, 1)
    for attribute in ("hole_cards", "dealer_cards", "board", "burns"):
        assert attribute not in repr(seat)
    assert str(seat.board) not in repr(seat)
    assert str(seat.dealer_cards) not in repr(seat)


@pytest.mark.parametrize("deck", [DECK[:-1], (*DECK[:-1], DECK[0]), ()])
def test_a_deck_is_a_permutation(deck: tuple[int, ...]) -> None:
    ruleset = load_ruleset("uth-solo")
    with pytest.raises(FormatError, match="permutation"):
        games.deal(ruleset, deck, [SeatStakes(1, {"ante": 100}, 0)])


@pytest.mark.parametrize(
    ("ruleset_id", "numbers"),
    [
        ("uth-solo", ()),
        ("uth-solo", (0,)),
        ("uth-solo", (2,)),
        ("uth-solo", (1, 2)),
        ("casino-holdem", (2,)),
        ("uth-lugano", (2, 1)),
        ("uth-lugano", (1, 1)),
        ("uth-lugano", (1, 8)),
        ("uth-online", (-1, 3)),
    ],
)
def test_seats_that_the_table_does_not_have(ruleset_id: str, numbers: tuple[int, ...]) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        dealt(ruleset_id, *numbers)
    assert caught.value.metadata["rule"] in {"T-5", "U-1"}


def test_stakes_are_checked_again_at_the_deal() -> None:
    ruleset = load_ruleset("uth-solo")
    deal = games.deal
    with pytest.raises(StakeBelowMinimumError):
        deal(ruleset, DECK, [SeatStakes(1, {"ante": 2}, 0)])
    with pytest.raises(UnknownBetError):
        deal(ruleset, DECK, [SeatStakes(1, {"ante": 100, "blind": 100}, 0)])
    with pytest.raises(InvalidFieldError):
        deal(ruleset, DECK, [SeatStakes(1, {"ante": 100}, -1)])
    (seat,) = deal(ruleset, DECK, [SeatStakes(1, {"ante": 3}, 0)], enforce_limits=False)
    assert seat.ante_minor == 3
