"""The deal: which position of the deck goes where (RULEBOOK U-1, U-3, C-1; ARCHITECTURE 2.1).

The deal procedure is an ordered list of blocks such as "player:2" or "burn:1", dealt from the top of the deck
(`deck[0]`). Own cards are dealt seat by seat, one block after the other; a shared player hand is dealt once. All
blocks are dealt at once and recorded, whatever the players decide later (U-9).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple, cast

from rgs.core.cards import DECK_SIZE, Card, verify_deck
from rgs.core.errors import InvalidFieldError, RulesetError
from rgs.core.games.stakes import check_stakes
from rgs.core.games.types import DealStep, Ruleset, Seat, SeatStakes
from rgs.core.money import verify_amount

PLAYER: Final = "player"
DEALER: Final = "dealer"
BOARD: Final = ("flop", "turn", "river")
BURN: Final = "burn"

_CARDS_OF_BLOCK: Final = {PLAYER: 2, DEALER: 2, "flop": 3, "turn": 1, "river": 1, BURN: 1}


def parse_deal_procedure(texts: Sequence[str]) -> tuple[DealStep, ...]:
    """Return the steps of ["player:2", …]; raise RulesetError unless each block comes once, the board last."""
    steps = tuple(DealStep(block, cards) for block, cards in _CARDS_OF_BLOCK.items())
    known = {f"{step.block}:{step.cards}": step for step in steps}
    for text in texts:
        if text not in known:
            raise RulesetError(f"deal_procedure: {text!r} is not one of {', '.join(known)}", field="deal_procedure")
    dealt = [known[text].block for text in texts if known[text].block != BURN]
    if set(dealt[:2]) != {PLAYER, DEALER} or tuple(dealt[2:]) != BOARD:
        raise RulesetError(
            f"deal_procedure: player and dealer, then {', '.join(BOARD)}, each once; not {', '.join(dealt)}",
            field="deal_procedure",
        )
    return tuple(known[text] for text in texts)


def cards_needed(procedure: Sequence[DealStep], player_hands: int) -> int:
    """Return how many cards the deal takes from the deck with this number of player hands."""
    return sum(step.cards * (player_hands if step.block == PLAYER else 1) for step in procedure)


def deal(
    ruleset: Ruleset, deck: Sequence[int], seats: Sequence[SeatStakes], *, enforce_limits: bool = True
) -> tuple[Seat, ...]:
    """Return the seats of a new round, in the order given, each in its first phase.

    Raises FormatError for the deck, InvalidFieldError for the seats, and the stake errors of `check_stakes`, which says
    what `enforce_limits` is.
    """
    verify_deck(deck)
    _verify_seats(ruleset, seats)
    layout = _layout_of(ruleset, len(seats))
    bets = [check_stakes(ruleset, seat.bets, enforce_limits=enforce_limits) for seat in seats]
    return tuple(
        _seat(ruleset, deck, layout, hand, seat.seat_no, placed, seat.funds_minor)
        for hand, seat, placed in zip(layout.hands, seats, bets, strict=True)
    )


def deal_again(
    ruleset: Ruleset,
    deck: Sequence[int],
    seat_no: int,
    bets: tuple[tuple[str, int], ...],
    funds_minor: int,
    *,
    hands: int = 1,
) -> Seat:
    """Return a seat as it was dealt, from its record: the same deck, all opening bets.

    `hands` is the number of player hands dealt: 1 in solo play and where the seats share one, else that of the seats.
    Every step of a round uses it. What `deal` has checked is not checked again.
    """
    layout = _layout_of(ruleset, hands)
    hand = layout.hands[seat_no - 1 if hands > 1 else 0]
    return _seat(ruleset, deck, layout, hand, seat_no, bets, funds_minor)


class Dealt(NamedTuple):
    """Where the cards of a deal went: the hands in seat order (one where they are shared), and the table's."""

    hands: tuple[tuple[Card, ...], ...]
    dealer_cards: tuple[Card, ...]
    board: tuple[Card, ...]
    burns: tuple[Card, ...]


def dealt_cards(ruleset: Ruleset, deck: Sequence[int], hands: int) -> Dealt:
    """Return all cards of a deal with this number of player hands; raise FormatError for what is not a deck."""
    verify_deck(deck)
    layout = _layout_of(ruleset, hands)
    own = tuple(_cards(deck, hand) for hand in layout.hands)
    return Dealt(own, _cards(deck, layout.dealer), _cards(deck, layout.board), _cards(deck, layout.burns))


class _Layout(NamedTuple):
    """Where the blocks of a deal lie in the deck, as places from the top; `hands` by seat."""

    hands: tuple[tuple[int, ...], ...]
    dealer: tuple[int, ...]
    board: tuple[int, ...]
    burns: tuple[int, ...]


def _layout_of(ruleset: Ruleset, seats: int) -> _Layout:
    return _layout(ruleset.deal_procedure, seats, ruleset.hole_cards == "shared")


@lru_cache(maxsize=256)  # of the few procedures and numbers of seats that there are
def _layout(procedure: tuple[DealStep, ...], seats: int, is_shared: bool) -> _Layout:
    places = iter(range(DECK_SIZE))

    def take(count: int) -> tuple[int, ...]:
        return tuple(islice(places, count))

    hands: list[tuple[int, ...]] = []
    blocks: dict[str, tuple[int, ...]] = {}
    burns: tuple[int, ...] = ()
    for step in procedure:
        if step.block == PLAYER:
            hands = [take(step.cards)] * seats if is_shared else [take(step.cards) for _ in range(seats)]
        elif step.block == BURN:
            burns += take(step.cards)
        else:
            blocks[step.block] = take(step.cards)
    board = tuple(place for block in BOARD for place in blocks[block])
    return _Layout(tuple(hands), blocks[DEALER], board, burns)


def _seat(
    ruleset: Ruleset,
    deck: Sequence[int],
    layout: _Layout,
    hand: tuple[int, ...],
    seat_no: int,
    bets: tuple[tuple[str, int], ...],
    funds_minor: int,
) -> Seat:
    return Seat(
        ruleset=ruleset,
        seat_no=seat_no,
        hole_cards=_cards(deck, hand),
        dealer_cards=_cards(deck, layout.dealer),
        board=_cards(deck, layout.board),
        burns=_cards(deck, layout.burns),
        bets=bets,
        funds_minor=funds_minor,
        phase=ruleset.rules.first_phase,
    )


def _cards(deck: Sequence[int], places: tuple[int, ...]) -> tuple[Card, ...]:
    return cast("tuple[Card, ...]", tuple([deck[place] for place in places]))


def _verify_seats(ruleset: Ruleset, seats: Sequence[SeatStakes]) -> None:
    numbers = [seat.seat_no for seat in seats]
    if not seats or numbers != sorted(set(numbers)) or numbers[0] < 1:
        raise InvalidFieldError("seats: at least one, numbers from 1 rising", field="seats", value=numbers, rule="U-1")
    limit = ruleset.max_seats
    if limit and numbers[-1] > limit:
        raise InvalidFieldError(
            f"seats: {numbers[-1]} is beyond the table's {limit}",
            field="seats",
            value=numbers[-1],
            limit=limit,
            rule="T-5",
        )
    for seat in seats:
        verify_amount(seat.funds_minor, "funds_minor", rule=ruleset.rules.funds_rule)
