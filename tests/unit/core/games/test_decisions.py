"""Every (phase, action) cell, the whole action tree, defaults and views (RULEBOOK U-0, U-2, U-11, C-1, T-2, C-10)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rgs.core import games
from rgs.core.cards import FULL_DECK
from rgs.core.errors import IllegalActionError, InsufficientBalanceError, InvalidFieldError
from rgs.core.games import FAMILIES
from rgs.core.games.types import Action, ActionTaken, LegalAction, Phase, Seat, SeatStakes
from rgs.core.hands import evaluate
from rgs.core.rulesets import SHIPPED_RULESETS, load_ruleset

UTH = "ultimate_texas_holdem"
SAMPLE = {UTH: "uth-solo", "casino_holdem": "casino-holdem"}

# What the rulebook allows, typed out a second time: (game, phase, action) -> (phase after, price in antes).
ALLOWED = {
    (UTH, Phase.PREFLOP, Action.CHECK): (Phase.FLOP, 0),
    (UTH, Phase.PREFLOP, Action.PLAY_4X): (Phase.SHOWDOWN, 4),
    (UTH, Phase.PREFLOP, Action.PLAY_3X): (Phase.SHOWDOWN, 3),
    (UTH, Phase.FLOP, Action.CHECK): (Phase.RIVER, 0),
    (UTH, Phase.FLOP, Action.PLAY_2X): (Phase.SHOWDOWN, 2),
    (UTH, Phase.RIVER, Action.PLAY_1X): (Phase.SHOWDOWN, 1),
    (UTH, Phase.RIVER, Action.FOLD): (Phase.SHOWDOWN, 0),
    ("casino_holdem", Phase.FLOP, Action.CALL): (Phase.SHOWDOWN, 2),
    ("casino_holdem", Phase.FLOP, Action.FOLD): (Phase.SHOWDOWN, 0),
}
TREE = {
    UTH: {"play_4x", "play_3x", "check play_2x", "check check play_1x", "check check fold"},
    "casino_holdem": {"call", "fold"},
}
PHASES_OF = {UTH: tuple(Phase), "casino_holdem": (Phase.FLOP, Phase.SHOWDOWN)}


def new_seat(ruleset_id: str, *, funds_minor: int = 10_000) -> Seat:
    ruleset = load_ruleset(ruleset_id)
    (seat,) = games.deal(ruleset, FULL_DECK[::-1], [SeatStakes(1, {"ante": 100}, funds_minor)])
    return seat


def every_seat(seat: Seat) -> Iterator[Seat]:
    """The seat and all that can become of it."""
    yield seat
    for legal in games.legal_actions(seat):
        yield from every_seat(games.apply(seat, legal.action))


def path_of(seat: Seat) -> str:
    return " ".join(taken.action for taken in seat.actions)


@pytest.mark.parametrize("ruleset_id", SHIPPED_RULESETS)
def test_the_whole_tree(ruleset_id: str) -> None:
    seats = list(every_seat(new_seat(ruleset_id)))
    leaves = [seat for seat in seats if seat.phase is Phase.SHOWDOWN]
    assert sorted(map(path_of, leaves)) == sorted(TREE[seats[0].ruleset.family])
    for seat in leaves:
        settlement = games.settle(seat)
        assert (settlement.outcome == "fold") is seat.has_folded
        staked = sum(amount for _, amount in seat.bets)
        assert staked + seat.funds_minor == 10_000 + sum(amount for bet, amount in new_seat(ruleset_id).bets)
        assert settlement.staked_minor == staked


@pytest.mark.parametrize("game", FAMILIES)
@pytest.mark.parametrize("action", Action)
def test_every_cell(game: str, action: Action) -> None:
    visited = set()
    for seat in every_seat(new_seat(SAMPLE[game])):
        visited.add(seat.phase)
        allowed = ALLOWED.get((game, seat.phase, action))
        if allowed is None:
            with pytest.raises(IllegalActionError) as caught:
                games.apply(seat, action)
            legal = [there for g, phase, there in ALLOWED if (g, phase) == (game, seat.phase)]
            assert caught.value.metadata == {
                "action": action,
                "phase": seat.phase,
                "legal": " ".join(legal),
                "rule": "U-2" if game == UTH else "C-1",
            }
            continue
        phase, antes = allowed
        after = games.apply(seat, action)
        assert after.phase is phase
        assert after.funds_minor == seat.funds_minor - 100 * antes
        bet = "play" if game == UTH else "call"
        assert after.bets == seat.bets + (((bet, 100 * antes),) if antes else ())
        assert after.actions == (*seat.actions, ActionTaken(seat.phase, action, 100 * antes))
    assert visited == set(PHASES_OF[game])


@pytest.mark.parametrize("game", FAMILIES)
def test_the_transitions_are_data(game: str) -> None:
    cells = {
        (game, phase, action): after
        for phase, row in FAMILIES[game].transitions.items()
        for action, after in row.items()
    }
    assert cells == {cell: after for cell, (after, _) in ALLOWED.items() if cell[0] == game}


@pytest.mark.parametrize(
    ("ruleset_id", "funds_minor", "expected"),
    [
        ("uth-solo", 400, {"check": (0, True), "play_4x": (400, True), "play_3x": (300, True)}),
        ("uth-solo", 399, {"check": (0, True), "play_4x": (400, False), "play_3x": (300, True)}),
        ("uth-solo", 0, {"check": (0, True), "play_4x": (400, False), "play_3x": (300, False)}),
        ("casino-holdem", 199, {"call": (200, False), "fold": (0, True)}),
    ],
)
def test_what_the_funds_do_not_cover_is_listed_with_the_reason(
    ruleset_id: str, funds_minor: int, expected: dict[str, tuple[int, bool]]
) -> None:
    """U-11: check and fold never need funds."""
    seat = new_seat(ruleset_id, funds_minor=funds_minor)
    legal = games.legal_actions(seat)
    assert {str(action.action): (action.cost_minor, action.available) for action in legal} == expected
    assert {action.reason for action in legal if not action.available} <= {"INSUFFICIENT_BALANCE"}
    assert all(action.reason is None for action in legal if action.available)
    for action in legal:
        if action.available:
            assert games.apply(seat, action.action).funds_minor >= 0
        else:
            with pytest.raises(InsufficientBalanceError) as caught:
                games.apply(seat, action.action)
            assert caught.value.metadata == {
                "action": action.action,
                "value": str(action.cost_minor),
                "limit": str(funds_minor),
                "rule": "U-11" if ruleset_id == "uth-solo" else "R-3",
            }


def test_legal_actions_come_in_the_order_of_the_table() -> None:
    seat = new_seat("casino-holdem")
    assert games.legal_actions(seat) == (
        LegalAction(Action.CALL, 200, True, None),
        LegalAction(Action.FOLD, 0, True, None),
    )
    done = games.apply(seat, Action.CALL)
    assert games.legal_actions(done) == ()


@pytest.mark.parametrize("ruleset_id", SHIPPED_RULESETS)
def test_defaults_finish_every_round_without_money(ruleset_id: str) -> None:
    """T-2, C-10: check, check, fold; fold."""
    seat = new_seat(ruleset_id, funds_minor=0)
    while seat.phase is not Phase.SHOWDOWN:
        seat = games.apply(seat, games.default_action(seat))
    assert path_of(seat) == ("fold" if ruleset_id == "casino-holdem" else "check check fold")
    with pytest.raises(IllegalActionError, match="no decision is open"):
        games.default_action(seat)


SHOWN = {Phase.PREFLOP: 0, Phase.FLOP: 3, Phase.RIVER: 5, Phase.SHOWDOWN: 5}


@pytest.mark.parametrize("game", FAMILIES)
def test_the_table_of_cards_shown_never_exceeds_the_board(game: str) -> None:
    assert FAMILIES[game].board_shown == {phase: SHOWN[phase] for phase in PHASES_OF[game]}


@pytest.mark.parametrize("ruleset_id", SHIPPED_RULESETS)
def test_a_view_shows_what_is_turned_and_no_more(ruleset_id: str) -> None:
    for seat in every_seat(new_seat(ruleset_id)):
        for shown_phase in PHASES_OF[seat.ruleset.family]:
            phase = min(seat.phase, shown_phase, key=tuple(Phase).index)
            for to_owner in (True, False):
                seen = games.view(seat, shown_phase=shown_phase, to_owner=to_owner)
                finished = phase is Phase.SHOWDOWN
                secret = seat.ruleset.visibility == "secret" and not to_owner and not finished
                assert (seen.phase, seen.finished, seen.bets) == (phase, finished, seat.bets)
                assert seen.board == seat.board[: SHOWN[phase]]
                assert seen.dealer_cards == (seat.dealer_cards if finished else ())
                assert seen.hole_cards == (() if secret else seat.hole_cards)
                known = seen.hole_cards + seen.board
                assert seen.player_hand == (evaluate(known) if seen.hole_cards and len(known) >= 5 else None)
                hidden = set(FULL_DECK) - {*seat.hole_cards, *seat.board[: SHOWN[phase]]}
                assert finished or hidden.isdisjoint({*known, *seen.dealer_cards})


@pytest.mark.parametrize("ruleset_id", SHIPPED_RULESETS)
def test_alone_the_owner_sees_his_own_phase_and_at_a_table_the_tables(ruleset_id: str) -> None:
    for seat in every_seat(new_seat(ruleset_id)):
        view = games.view
        if seat.ruleset.table_only:
            with pytest.raises(InvalidFieldError, match="played at a table"):
                view(seat)
        else:
            assert view(seat) == view(seat, shown_phase=Phase.SHOWDOWN, to_owner=True)


def test_a_view_is_the_owners_unless_said_otherwise() -> None:
    seat = new_seat("uth-lugano")  # hole cards are the seat's secret
    view = games.view
    assert view(seat, shown_phase=Phase.PREFLOP).hole_cards == seat.hole_cards
    assert view(seat, shown_phase=Phase.PREFLOP, to_owner=False).hole_cards == ()


def test_a_table_shows_what_its_slowest_seat_may_see() -> None:
    ruleset = load_ruleset("uth-lugano")
    first, second = games.deal(ruleset, FULL_DECK, [SeatStakes(seat_no, {"ante": 100}, 1000) for seat_no in (1, 2)])
    early = games.apply(first, Action.PLAY_4X)
    assert games.table_phase([early, second]) is Phase.PREFLOP
    assert games.view(early, shown_phase=Phase.PREFLOP).board == ()
    checked = games.apply(second, Action.CHECK)
    assert games.table_phase([early, checked]) is Phase.FLOP
    assert games.view(early, shown_phase=Phase.FLOP).dealer_cards == ()
    assert games.table_phase([early, games.apply(checked, Action.PLAY_2X)]) is Phase.SHOWDOWN
