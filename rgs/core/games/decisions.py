"""Decisions: what a seat may do, how an action changes it, and what may be seen of it.

U-2 and C-1 are the game's transition table; U-11: a play bet needs funds, check and fold never do; T-2 and C-10:
default decisions; U-0: open or secret hole cards. No card is shown before it is turned.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rgs.core.errors import IllegalActionError, InsufficientBalanceError, InvalidFieldError
from rgs.core.games.types import INSUFFICIENT_BALANCE, Action, ActionTaken, LegalAction, Phase, Seat, SeatView
from rgs.core.hands import evaluate
from rgs.core.values import changed

_FEWEST_CARDS_OF_A_HAND: Final = 5


def legal_actions(seat: Seat) -> tuple[LegalAction, ...]:
    """Return the actions of the seat's phase with cost and availability, in the table's order; none at showdown."""
    return tuple(_priced(seat, action) for action in seat.ruleset.rules.transitions.get(seat.phase, ()))


def apply(seat: Seat, action: Action) -> Seat:
    """Return the seat after the action; raise IllegalActionError or InsufficientBalanceError."""
    rules = seat.ruleset.rules
    following = rules.transitions.get(seat.phase, {}).get(action)
    if following is None:
        legal = " ".join(rules.transitions.get(seat.phase, {}))
        raise IllegalActionError(
            f"{action} is not legal at {seat.phase}; legal: {legal or 'none'}",
            field="action",
            action=action,
            phase=seat.phase,
            legal=legal,
            rule=rules.decision_rule,
        )
    cost_minor = _priced(seat, action).cost_minor
    if cost_minor > seat.funds_minor:
        raise InsufficientBalanceError(
            f"{action} costs {cost_minor}, the balance is {seat.funds_minor}",
            field="action",
            action=action,
            value=cost_minor,
            limit=seat.funds_minor,
            rule=rules.funds_rule,
        )
    return changed(
        seat,
        bets=seat.bets + (((rules.decided_bet, cost_minor),) if cost_minor else ()),
        funds_minor=seat.funds_minor - cost_minor,
        phase=following,
        actions=(*seat.actions, ActionTaken(seat.phase, action, cost_minor)),
    )


def apply_again(seat: Seat, taken: Iterable[ActionTaken]) -> Seat:
    """Return the seat after its recorded decisions, without checking prices again.

    IllegalActionError if the record does not follow the table of the game.
    """
    rules = seat.ruleset.rules
    phase, bets, funds_minor, actions = seat.phase, seat.bets, seat.funds_minor, list(seat.actions)
    for decided in taken:
        following = rules.transitions.get(phase, {}).get(decided.action)
        if following is None or decided.phase is not phase:
            raise IllegalActionError(
                f"{decided.action} at {decided.phase} is recorded where the seat stood at {phase}",
                field="action",
                action=decided.action,
                phase=phase,
                rule=rules.decision_rule,
            )
        if decided.amount_minor:
            bets = (*bets, (rules.decided_bet, decided.amount_minor))
            funds_minor -= decided.amount_minor
        actions.append(decided)
        phase = following
    return changed(seat, phase=phase, bets=bets, funds_minor=funds_minor, actions=tuple(actions))


def default_action(seat: Seat) -> Action:
    """Return the decision taken in the player's stead (T-2, C-10); raise IllegalActionError where none is open."""
    action = seat.ruleset.default_decisions.get(seat.phase)
    if action is None:
        raise IllegalActionError(
            f"no decision is open at {seat.phase}",
            field="action",
            phase=seat.phase,
            rule=seat.ruleset.rules.decision_rule,
        )
    return action


def table_phase(seats: Iterable[Seat]) -> Phase:
    """Return what a table with these seats shows: their earliest phase. No card is turned before all decided."""
    return min((seat.phase for seat in seats), key=tuple(Phase).index)


def view(seat: Seat, *, shown_phase: Phase | None = None, to_owner: bool = True) -> SeatView:
    """Return what may be seen of the seat now: the cards turned by its own phase or by `shown_phase`, the earlier one.

    A table's ruleset needs `shown_phase=table_phase(seats)` (InvalidFieldError without it): a seat that bets early is
    done, but the board waits for the others. `to_owner=False` is the view of other players: secret hole cards are left
    out until the showdown (U-0).
    """
    if shown_phase is None and seat.ruleset.table_only:
        raise InvalidFieldError(
            f"{seat.ruleset.id} is played at a table: its phase is needed", field="shown_phase", rule="U-1"
        )
    phase = min(seat.phase, shown_phase or seat.phase, key=tuple(Phase).index)
    finished = phase is Phase.SHOWDOWN
    board = seat.board[: seat.ruleset.rules.board_shown[phase]]
    hole_cards = seat.hole_cards if to_owner or finished or seat.ruleset.visibility == "open" else ()
    visible = hole_cards + board
    return SeatView(
        phase=phase,
        hole_cards=hole_cards,
        dealer_cards=seat.dealer_cards if finished else (),
        board=board,
        bets=seat.bets,
        player_hand=evaluate(visible) if hole_cards and len(visible) >= _FEWEST_CARDS_OF_A_HAND else None,
        finished=finished,
    )


def _priced(seat: Seat, action: Action) -> LegalAction:
    cost_minor = seat.ruleset.rules.multiples.get(action, 0) * seat.ante_minor
    # Check and fold cost nothing and so never need funds (U-11).
    available = cost_minor <= seat.funds_minor
    return LegalAction(action, cost_minor, available, None if available else INSUFFICIENT_BALANCE)
