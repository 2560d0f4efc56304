"""Voids and views of what cannot be shown: stakes back in full, what would have been, no card without a deck."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core import games
from rgs.core.cards import format_cards
from rgs.core.games.types import Action, Phase
from rgs.core.limits import Headroom
from rgs.core.rounds import (
    DECK_UNRECOVERABLE,
    Round,
    RoundStatus,
    UnsealedDeck,
    Void,
    outcome_object,
    settle_by_default,
    settlement_objects,
    staked_so_far,
    void_body,
)
from rgs.core.rulesets import load_ruleset
from rgs.core.statements import KINDS, LINK_ZERO
from rgs.core.statements.shapes import check_shape
from rgs.core.views import blind_view, round_view
from tests.support.records.known_deal import DECK, SALT, START_MS, TRANSCRIPT, make_round, seat_after, taken

HEAD = {
    "instance": "node-1-b1-w0",
    "kind": "round_final",
    "link_no": "3",
    "previous": LINK_ZERO,
    "session_id": "0" * 25 + "S",
    "statement_no": "5",
    "time": "2026-11-21T22:30:00.123Z",
}
APPROVALS = (("admin-1", START_MS + 8000), ("admin-2", START_MS + 9000))
WAYS = [
    ("uth-solo", ()),
    ("uth-solo", (Action.CHECK,)),
    ("uth-solo", (Action.CHECK, Action.CHECK)),
    ("casino-holdem", ()),
]
"""Every point at which a round can be open."""


def stopped(game: str, actions: tuple[Action, ...]) -> Round:
    round_ = make_round(game)
    return replace(round_, actions=taken(round_, *actions), version=1 + len(actions))


def body_of(round_: Round, reason: str, *, revealed: bool) -> dict[str, Any]:
    shown = UnsealedDeck(seat_after(round_), DECK, SALT, TRANSCRIPT) if revealed else None
    void = Void(reason, "ef" * 32, APPROVALS)
    body = void_body(round_, void, staked_minor=staked_so_far(round_), revealed=shown)
    check_shape(KINDS["round_final"].shape, {**body, **HEAD})
    return body


@pytest.mark.parametrize(("game", "actions"), WAYS)
def test_a_void_gives_every_stake_back_and_tells_what_would_have_been(game: str, actions: tuple[Action, ...]) -> None:
    round_ = stopped(game, actions)
    body = body_of(round_, "DISPLAY_FAULT", revealed=True)
    rows = [
        {"bet": bet, "result": "push", "returned_minor": str(amount), "stake_minor": str(amount)}
        for bet, amount in round_.bets
    ]
    assert body["settlement"] == rows
    staked = str(sum(amount for _, amount in round_.bets))
    assert (body["staked_minor"], body["returned_minor"]) == (staked, staked)
    assert (body["balance_before_minor"], body["balance_after_minor"], body["status"]) == ("1000", "1000", "void")
    assert [action["action"] for action in body["actions"]] == list(actions)
    assert body["actions_hash"] == round_.actions_hash().hex()
    assert (body["deck"], body["salt"]) == (list(format_cards(DECK)), SALT.hex())
    assert body["transcript"] == TRANSCRIPT.hex()
    assert body["cards"]["hole_cards"] == ["As", "Ac"]
    # By the default decisions the player would have folded his aces; trips of a fold are still settled at uth-solo.
    void = body["void"]
    assert void["would_have_outcome"]["outcome"] == "fold"
    assert {row["bet"]: row["result"] for row in void["would_have_been"]} == (
        {"ante": "lose", "blind": "lose", "trips": "win"} if game == "uth-solo" else {"ante": "lose", "aa": "lose"}
    )
    assert (void["reason"], void["malfunction"]) == ("DISPLAY_FAULT", "ef" * 32)
    assert void["approvals"] == [
        {"party": "admin-1", "time": "2026-11-18T11:06:48.000Z"},
        {"party": "admin-2", "time": "2026-11-18T11:06:49.000Z"},
    ]
    assert "outcome" not in body


@pytest.mark.parametrize(("game", "actions"), WAYS)
def test_a_void_without_its_deck_reveals_nothing(game: str, actions: tuple[Action, ...]) -> None:
    body = body_of(stopped(game, actions), DECK_UNRECOVERABLE, revealed=False)
    assert not body.keys() & {"cards", "deck", "salt", "settlement", "transcript", "outcome"}
    assert body["void"].keys() == {"approvals", "malfunction", "reason"}
    staked = "220" if game == "uth-solo" else "120"
    assert (body["staked_minor"], body["returned_minor"]) == (staked, staked)


def test_a_void_of_a_decided_bet_gives_it_back_too() -> None:
    """No solo round stands so; a table's does, where one seat has bet and another has not."""
    round_ = stopped("uth-solo", (Action.PLAY_4X,))
    assert staked_so_far(round_) == 620
    body = body_of(round_, "DISPLAY_FAULT", revealed=True)
    assert body["returned_minor"] == "620"
    assert body["settlement"][-1] == {
        "bet": "play", "result": "push", "returned_minor": "400", "stake_minor": "400",
    }  # fmt: skip
    # Nothing was left to decide: what would have been is what the player had earned.
    assert body["void"]["would_have_been"] == settlement_objects(game_of_settled(round_))
    assert body["void"]["would_have_outcome"]["outcome"] == "player"


def game_of_settled(round_: Round) -> Any:
    seat = seat_after(round_)
    return games.settle(seat)


@pytest.mark.parametrize(("game", "actions"), WAYS)
def test_defaults_from_any_point_come_to_the_same_end(game: str, actions: tuple[Action, ...]) -> None:
    """The default decisions are the same whoever takes them: those of a player who takes them all."""
    defaults = {Phase.PREFLOP: Action.CHECK, Phase.FLOP: Action.CHECK, Phase.RIVER: Action.FOLD}
    if game == "casino-holdem":
        defaults = {Phase.FLOP: Action.FOLD}
    seat = seat_after(make_round(game))
    while seat.phase is not Phase.SHOWDOWN:
        seat = games.apply(seat, defaults[seat.phase])
    by_hand = games.settle(seat)
    assert settle_by_default(seat_after(stopped(game, actions))) == by_hand
    assert outcome_object(by_hand)["outcome"] == "fold"


# --- views ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("game", "actions", "phase"),
    [(*way, phase) for way, phase in zip(WAYS, ["preflop", "flop", "river", "flop"], strict=True)],
)
def test_a_round_whose_deck_is_lost_is_told_without_cards(game: str, actions: tuple[Action, ...], phase: str) -> None:
    round_ = replace(stopped(game, actions), malfunction="ef" * 32, malfunction_code="DECK_LOST")
    view = blind_view(round_, load_ruleset(game), actions_hash=round_.actions_hash())
    assert (view.hole_cards, view.dealer_cards, view.board, view.legal_actions) == ((), (), (), ())
    assert (view.phase, view.bets, view.malfunction_code) == (phase, round_.bets, "DECK_LOST")
    assert (view.player_hand, view.settlement, view.deadline_ms) == (None, None, 0)
    # In everything else it is the view of the same round with its deck.
    seen = round_view(round_, seat_after(round_), actions_hash=round_.actions_hash())
    for name in ("round_id", "round_version", "status", "phase", "bets", "actions", "commitment", "actions_hash"):
        assert getattr(view, name) == getattr(seen, name), name


def test_a_decided_bet_stands_in_the_blind_view_too() -> None:
    round_ = replace(stopped("uth-solo", (Action.CHECK, Action.PLAY_2X)), status=RoundStatus.VOID)
    view = blind_view(round_, load_ruleset("uth-solo"), actions_hash=round_.actions_hash())
    assert view.bets == (*round_.bets, ("play", 200))
    assert view.phase is Phase.SHOWDOWN
    assert staked_so_far(round_) == sum(amount for _, amount in view.bets)


def test_a_paused_round_offers_nothing() -> None:
    round_ = stopped("uth-solo", (Action.CHECK,))
    paused = replace(round_, malfunction="ef" * 32, malfunction_code="DISPLAY_FAULT")
    hash_ = round_.actions_hash()
    assert round_view(round_, seat_after(round_), actions_hash=hash_).legal_actions
    view = round_view(paused, seat_after(paused), actions_hash=hash_)
    assert (view.legal_actions, view.malfunction_code) == ((), "DISPLAY_FAULT")
    assert view.board == ("Ah", "7c", "2d")


REASONS = [
    (Headroom(399, None, None), "INSUFFICIENT_BALANCE"),
    (Headroom(400, 399, None), "LOSS_LIMIT"),
    (Headroom(400, 400, 399), "STAKE_LIMIT"),
    (Headroom(400, None, 399), "STAKE_LIMIT"),
]


@pytest.mark.parametrize(("room", "reason"), REASONS)
def test_what_is_not_covered_says_why(room: Headroom, reason: str) -> None:
    round_ = replace(make_round("uth-solo"), funds_minor=room.minor)
    view = round_view(round_, seat_after(round_), actions_hash=bytes(32), headroom=room)
    result = {legal.action: (legal.available, legal.reason) for legal in view.legal_actions}
    assert result == {
        Action.CHECK: (True, None),
        Action.PLAY_4X: (False, reason),
        Action.PLAY_3X: (True, None),
    }


def test_what_is_covered_needs_no_reason() -> None:
    round_ = make_round("uth-solo")
    view = round_view(round_, seat_after(round_), actions_hash=bytes(32), headroom=Headroom(780, 780, 780))
    assert all(legal.available and legal.reason is None for legal in view.legal_actions)


@given(st.integers(0, 900), st.none() | st.integers(0, 900), st.none() | st.integers(0, 900))
def test_a_free_way_on_is_always_open(balance: int, loss: int | None, stake: int | None) -> None:
    room = Headroom(balance, loss, stake)
    for game, actions in WAYS:
        round_ = replace(stopped(game, actions), funds_minor=room.minor)
        legal = round_view(round_, seat_after(round_), actions_hash=bytes(32), headroom=room).legal_actions
        assert any(action.available and action.cost_minor == 0 for action in legal)
        for action in legal:
            assert action.available is (action.cost_minor <= room.minor)
            assert (action.reason or "") == room.reason_against(action.cost_minor)
