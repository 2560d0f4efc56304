"""What tables need of the rules of the games: all cards of a deal, hands evaluated once, a table's own limits."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core import games
from rgs.core.cards import FULL_DECK, parse_cards
from rgs.core.errors import FormatError, IllegalActionError, StakeAboveMaximumError, StakeBelowMinimumError
from rgs.core.games import settling
from rgs.core.games.dealing import deal_again, dealt_cards
from rgs.core.games.settling import showdown
from rgs.core.games.types import Action, Phase, Ruleset, SeatStakes, StakeLimits
from rgs.core.hands import HandValue, evaluate
from rgs.core.rounds import actions_hash_from, default_end, settle_by_default
from rgs.core.rulesets import load_ruleset
from rgs.core.statements import format_canonical
from tests.support.records.known_deal import DECK, make_round, taken

ONLINE, SEVEN, LUGANO = (load_ruleset(name) for name in ("uth-online", "uth-seven-box", "uth-lugano"))
CASINO = load_ruleset("casino-holdem")
BETS = (("ante", 100), ("blind", 100), ("trips", 20))


def test_all_cards_of_a_deal_with_a_hand_for_each_box() -> None:
    """One block after the other, a burn before the flop and one before turn and river (U-3)."""
    dealt = dealt_cards(SEVEN, FULL_DECK[::-1], 2)
    assert dealt.hands == (parse_cards(["As", "Ks"]), parse_cards(["Qs", "Js"]))
    assert dealt.dealer_cards == parse_cards(["Ts", "9s"])
    assert dealt.board == parse_cards(["7s", "6s", "5s", "3s", "2s"])
    assert dealt.burns == parse_cards(["8s", "4s"])


def test_all_cards_of_a_deal_with_one_hand() -> None:
    dealt = dealt_cards(ONLINE, FULL_DECK[::-1], 1)
    assert dealt.hands == (parse_cards(["As", "Ks"]),)
    assert (dealt.dealer_cards, dealt.burns) == (parse_cards(["Qs", "Js"]), ())
    assert dealt.board == parse_cards(["Ts", "9s", "8s", "7s", "6s"])


@pytest.mark.parametrize("deck", [FULL_DECK[:-1], (*FULL_DECK[:-1], FULL_DECK[0])])
def test_what_is_no_deck_is_not_dealt(deck: tuple[int, ...]) -> None:
    with pytest.raises(FormatError):
        dealt_cards(ONLINE, deck, 1)


@given(st.permutations(range(52)), st.sampled_from([ONLINE, SEVEN, LUGANO]), st.integers(1, 7))
def test_a_seat_of_a_table_is_dealt_again_as_it_was(deck: list[int], ruleset: Ruleset, seats: int) -> None:
    """The same cards as the deal of all seats at once, and as the table's statement shows them."""
    hands = 1 if ruleset.hole_cards == "shared" else seats
    dealt = dealt_cards(ruleset, deck, hands)
    together = games.deal(
        ruleset, deck, [SeatStakes(seat_no, {"ante": 100, "trips": 20}, 500) for seat_no in range(1, seats + 1)]
    )
    for seat in together:
        again = deal_again(ruleset, deck, seat.seat_no, BETS, 500, hands=hands)
        assert again == seat
        assert again.hole_cards == dealt.hands[seat.seat_no - 1 if hands > 1 else 0]
        assert (again.dealer_cards, again.board, again.burns) == (dealt.dealer_cards, dealt.board, dealt.burns)


def test_hands_that_are_known_are_not_evaluated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seat = default_end(deal_again(ONLINE, DECK, 1, BETS, 500))
    hands = showdown(ONLINE, seat.hole_cards, seat.dealer_cards, seat.board)
    expected = games.settle(seat)
    counted: list[int] = []

    def count(cards: tuple[int, ...]) -> HandValue:
        counted.append(len(cards))
        return evaluate(cards)  # type: ignore[arg-type]

    monkeypatch.setattr(settling, "evaluate", count)
    assert games.settle(seat, hands) == expected
    assert counted == []
    assert games.settle(seat) == expected
    assert counted == [7, 7]


def test_a_settlement_goes_by_the_hands_that_it_gets() -> None:
    played = games.apply(deal_again(ONLINE, DECK, 1, BETS, 500), Action.PLAY_4X)
    hands = showdown(ONLINE, played.hole_cards, played.dealer_cards, played.board)
    assert (hands.player_hand > hands.dealer_hand, hands.dealer_qualifies, hands.flop_hand) == (True, True, None)
    turned = hands._replace(player_hand=hands.dealer_hand, dealer_hand=hands.player_hand)
    assert games.settle(played, hands).returned_minor == 200 + 100 + 80 + 800
    assert games.settle(played, turned).returned_minor == 0
    with pytest.raises(IllegalActionError):
        games.settle(deal_again(ONLINE, DECK, 1, BETS, 500), hands)


def test_a_side_bet_on_the_flop_has_a_hand_of_its_own() -> None:
    """C-6."""
    dealt = dealt_cards(CASINO, DECK, 1)
    hands = showdown(CASINO, dealt.hands[0], dealt.dealer_cards, dealt.board)
    assert hands.flop_hand == evaluate((*dealt.hands[0], *dealt.board[:3]))


def test_the_limits_of_a_table_stand_before_those_of_the_ruleset() -> None:
    """U-10. Without limits of a table those of the ruleset hold."""
    limits = {"ante": StakeLimits(200, 400), "trips": StakeLimits(50, 60)}
    assert games.check_stakes(ONLINE, {"ante": 200}, limits=limits) == (("ante", 200), ("blind", 200))
    for ante, error, limit in ((198, StakeBelowMinimumError, "200"), (402, StakeAboveMaximumError, "400")):
        with pytest.raises(error) as caught:
            games.check_stakes(ONLINE, {"ante": ante}, limits=limits)
        assert caught.value.metadata == {"bet": "ante", "value": str(ante), "limit": limit, "rule": "U-10"}
        assert games.check_stakes(ONLINE, {"ante": ante}) == (("ante", ante), ("blind", ante))
    assert games.check_stakes(ONLINE, {"ante": 198}, enforce_limits=False, limits=limits)


@pytest.mark.parametrize("ruleset", [ONLINE, SEVEN, LUGANO], ids=lambda ruleset: ruleset.id)
@pytest.mark.parametrize(
    ("first", "added"),
    [
        ((), [Action.CHECK, Action.CHECK, Action.FOLD]),
        ((Action.CHECK,), [Action.CHECK, Action.FOLD]),
        ((Action.CHECK, Action.CHECK), [Action.FOLD]),
        ((Action.PLAY_4X,), []),
    ],
)
def test_default_decisions_end_a_seat_from_where_it_stands(
    ruleset: Ruleset,
    first: tuple[Action, ...],
    added: list[Action],
) -> None:
    """T-2: check, check, fold."""
    seat = deal_again(ruleset, DECK, 1, BETS, 500)
    for action in first:
        seat = games.apply(seat, action)
    ended = default_end(seat)
    assert ended.phase is Phase.SHOWDOWN
    assert [one.action for one in ended.actions] == [*first, *added]
    assert settle_by_default(seat) == games.settle(ended)


def test_the_running_hash_begins_where_it_is_told_to() -> None:
    actions = taken(make_round("uth-solo"), Action.CHECK, Action.PLAY_2X)
    for start in (bytes(32), bytes(range(32))):
        running = hashlib.sha256(b"rgs/actions/v1\x00" + start).digest()
        assert actions_hash_from(start, ()) == running
        for action in actions:
            running = hashlib.sha256(b"rgs/actions/v1\x00" + running + format_canonical(action.body())).digest()
        assert actions_hash_from(start, actions) == running
