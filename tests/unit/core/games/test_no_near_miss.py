"""The cards that are shown are the deck's, whatever was staked, decided or lost: no near miss is made, no outcome is
put in the place of another (UKGC RTS 7B, 7C; GLI-19 4.6).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from rgs.core import games
from rgs.core.cards import Card
from rgs.core.games.types import Seat, SeatStakes
from rgs.core.rulesets import Ruleset, load_ruleset

DECKS = 60
STAKES = ({"ante": 100}, {"ante": 400}, {"ante": 2000})
SOLO = ("uth-solo", "casino-holdem")


def decks() -> Iterator[list[int]]:
    shuffled = random.Random("near misses")
    for _ in range(DECKS):
        yield shuffled.sample(range(52), 52)


def laid_out(ruleset: Ruleset, deck: list[int]) -> dict[str, tuple[Card, ...]]:
    """Block -> cards, taken from the top of the deck in the order of the ruleset's procedure, by hand."""
    blocks: dict[str, tuple[Card, ...]] = {}
    top = 0
    for step in ruleset.deal_procedure:
        blocks[step.block] = (*blocks.get(step.block, ()), *(Card(card) for card in deck[top : top + step.cards]))
        top += step.cards
    return blocks


def ends(ruleset: Ruleset, seat: Seat) -> Iterator[Seat]:
    """Every end that the player's decisions can bring the seat to."""
    legal = [row.action for row in games.legal_actions(seat) if row.available]
    if not legal:
        yield seat
    for action in legal:
        yield from ends(ruleset, games.apply(seat, action))


def dealt(ruleset: Ruleset, deck: list[int], stakes: dict[str, int]) -> Seat:
    (seat,) = games.deal(ruleset, deck, [SeatStakes(1, stakes, 10**6)])
    return seat


def shown(ruleset: Ruleset, seat: Seat) -> tuple[Any, ...]:
    view = games.view(seat)
    return view.hole_cards, view.dealer_cards, view.board


@pytest.mark.parametrize("name", SOLO)
def test_what_is_shown_is_what_lies_in_the_deck_at_its_place(name: str) -> None:
    ruleset = load_ruleset(name)
    outcomes = set()
    for deck in decks():
        blocks = laid_out(ruleset, deck)
        board = tuple(card for block in ("flop", "turn", "river") for card in blocks.get(block, ()))
        for stakes in STAKES:
            seats = list(ends(ruleset, dealt(ruleset, deck, stakes)))
            assert len(seats) > 1
            for seat in seats:
                assert shown(ruleset, seat) == (blocks["player"], blocks["dealer"], board or blocks["board"])
                settlement = games.settle(seat)
                outcomes.add(settlement.outcome)
    assert len(outcomes) == 4, "won, lost, tied and folded, and never another card"


@pytest.mark.parametrize("name", SOLO)
def test_a_view_never_shows_a_card_that_is_not_the_ends(name: str) -> None:
    """No card that is shown before the end is another one at the end."""
    ruleset = load_ruleset(name)
    for deck in decks():
        seat = dealt(ruleset, deck, STAKES[0])
        before: list[tuple[Any, ...]] = []
        while True:
            before.append(shown(ruleset, seat))
            legal = [row.action for row in games.legal_actions(seat) if row.available]
            if not legal:
                break
            seat = games.apply(seat, legal[0])
        for earlier in before:
            for early, late in zip(earlier, before[-1], strict=True):
                assert tuple(late)[: len(early)] == tuple(early)


def test_the_comparison_sees_a_near_miss() -> None:
    """Planted: of a lost round the last card of the board is exchanged for one that is not there."""
    ruleset = load_ruleset("uth-solo")
    seen = 0
    for deck in decks():
        blocks = laid_out(ruleset, deck)
        for seat in ends(ruleset, dealt(ruleset, deck, STAKES[0])):
            if games.settle(seat).outcome.value == "dealer":
                there = {*seat.hole_cards, *seat.dealer_cards, *seat.board}
                near = next(Card(card) for card in deck if Card(card) not in there)
                shifted = replace(seat, board=(*seat.board[:4], near))
                seen += shown(ruleset, shifted) != shown(ruleset, seat)
                assert blocks["player"] == seat.hole_cards
    assert seen > DECKS
