"""What a client sees: the whole session, and the visible part of a round, from durable state and a time.

A client that lost everything continues from a view (ARCHITECTURE section 3). The game's `view` decides which cards are
visible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from rgs.core import games
from rgs.core.bet_limits import within
from rgs.core.card_texts import texts_of
from rgs.core.errors import RgsError
from rgs.core.free_bets import reclaimed_minor
from rgs.core.games.paytables import format_floor
from rgs.core.games.types import Action, LegalAction, Outcome, Pay, Phase, Seat, SeatView, Settlement, StakeLimits
from rgs.core.hands import HandValue
from rgs.core.jurisdictions import Jurisdiction
from rgs.core.limits import Headroom
from rgs.core.rounds import Round, RoundStatus, TakenAction, settlement_objects
from rgs.core.rulesets import Ruleset
from rgs.core.sessions import Session, SessionStatus


class DecidingRow(NamedTuple):
    """The row of a bet's paytable that decided it ("pair:A"), and the five cards that met it."""

    category: str
    cards: tuple[str, ...]


@dataclass(frozen=True)
class RoundView:
    """A round as its player may see it now. Cards are text, amounts minor units."""

    round_id: str
    game_code: str
    round_no: int
    round_version: int
    status: RoundStatus
    phase: Phase
    hole_cards: tuple[str, ...]
    dealer_cards: tuple[str, ...]
    board: tuple[str, ...]
    bets: tuple[tuple[str, int], ...]
    legal_actions: tuple[LegalAction, ...]
    actions: tuple[TakenAction, ...]
    player_hand: HandValue | None
    settlement: Settlement | None
    rows: tuple[DecidingRow | None, ...]
    """For each bet of the settlement."""
    start_ms: int
    end_ms: int
    deadline_ms: int
    commitment: bytes
    actions_hash: bytes
    malfunction_code: str
    """Set while the round is paused (RULEBOOK R-6)."""
    grant_id: str = ""
    granted_minor: int = 0
    reclaimed_minor: int = 0
    """The free bet that pays ante and blind, what it pays, and what of it came back at the end."""


@dataclass(frozen=True, slots=True)
class PendingOperation:
    """The operation that the session waits for. `progress` says how far money has moved: 0 not as far as we know, 1
    unknown, 2 debited, 3 to be rolled back.
    """

    kind: str
    progress: int
    request_id: str
    amount_minor: int
    since_ms: int
    attempts: int
    reason: str


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session as its client needs it. `elapsed_ms` counts until the close."""

    session: Session
    ruleset: Ruleset
    jurisdiction: Jurisdiction
    elapsed_ms: int
    largest_ante_minor: int
    purchase_left_minor: int
    open_round: RoundView | None
    headroom: Headroom
    time_left_ms: int | None
    next_start_ms: int
    """When the next round may start by the jurisdiction's pace; 0 where it may start now, as far as the pace goes."""
    inactive_ms: int
    """When the right to start rounds and to buy ends."""
    pending: PendingOperation | None = None


def round_view(
    round_: Round,
    seat: Seat,
    *,
    actions_hash: bytes,
    settlement: Settlement | None = None,
    headroom: Headroom | None = None,
) -> RoundView:
    """The view of one seat of a round after its decisions so far; `settlement` is given once it is settled.

    `headroom` is what the session offers: it names the reason why a decision is not available.
    """
    is_open = round_.status is RoundStatus.OPEN
    return _view(
        round_,
        seat.ruleset,
        games.view(seat),
        legal_actions=legal_actions_of(seat, headroom) if is_open and not round_.malfunction else (),
        settlement=settlement,
        deadline_ms=_deadline_of(round_, seat.ruleset) if is_open else 0,
        actions_hash=actions_hash,
    )


def blind_view(round_: Round, ruleset: Ruleset, *, actions_hash: bytes) -> RoundView:
    """The view of a round whose deck cannot be opened: everything but cards (ARCHITECTURE 2.9)."""
    rules = ruleset.rules
    placed = [(rules.decided_bet, taken.amount_minor) for taken in round_.actions if taken.amount_minor]
    phase = rules.first_phase
    for taken in round_.actions:
        phase = rules.transitions[phase][Action(taken.action)]
    shown = SeatView(phase, (), (), (), (*round_.bets, *placed), None, finished=False)
    return _view(round_, ruleset, shown, legal_actions=(), settlement=None, deadline_ms=0, actions_hash=actions_hash)


def deciding_rows(ruleset: Ruleset, settlement: Settlement) -> tuple[DecidingRow | None, ...]:
    """For each bet the row of its paytable that decided it; None where no paytable was asked.

    The hand that the settlement looked at is looked up again, by the tables that settled the bet.
    """
    return tuple(_deciding_row(ruleset, settlement, bet.bet) for bet in settlement.bets)


def _deciding_row(ruleset: Ruleset, settlement: Settlement, bet: str) -> DecidingRow | None:
    rules, outcome = ruleset.rules, settlement.outcome
    hand = settlement.player_hand
    if bet == rules.side_bet:
        if outcome is Outcome.FOLD and not ruleset.side_bet_survives_fold:
            return None
        hand = settlement.flop_hand or hand
    elif rules.settlement[settlement.dealer_qualifies, outcome][bet] is not Pay.TABLE:
        return None
    floor = next(floor for floor, _ in ruleset.paytables[bet].rows if floor.is_met_by(hand))
    return DecidingRow(format_floor(floor), tuple(texts_of(hand.best5)))


def _view(
    round_: Round,
    ruleset: Ruleset,
    shown: SeatView,
    *,
    legal_actions: tuple[LegalAction, ...],
    settlement: Settlement | None,
    deadline_ms: int,
    actions_hash: bytes,
) -> RoundView:
    return RoundView(
        round_id=round_.round_id,
        game_code=round_.game_code,
        round_no=round_.round_no,
        round_version=round_.version,
        status=round_.status,
        phase=shown.phase,
        hole_cards=tuple(texts_of(shown.hole_cards)),
        dealer_cards=tuple(texts_of(shown.dealer_cards)),
        board=tuple(texts_of(shown.board)),
        bets=shown.bets,
        legal_actions=legal_actions,
        actions=round_.actions,
        player_hand=shown.player_hand,
        settlement=settlement,
        rows=() if settlement is None else deciding_rows(ruleset, settlement),
        start_ms=round_.start_ms,
        end_ms=round_.end_ms,
        deadline_ms=deadline_ms,
        commitment=round_.commitment,
        actions_hash=actions_hash,
        malfunction_code=round_.malfunction_code,
        grant_id=round_.grant_id,
        granted_minor=round_.granted_minor,
        reclaimed_minor=_reclaimed(round_, settlement),
    )


def _reclaimed(round_: Round, settlement: Settlement | None) -> int:
    """What of a free bet's stakes came back: of a void round all of them."""
    if not round_.free_bet or settlement is None:
        return round_.granted_minor if round_.status is RoundStatus.VOID else 0
    return reclaimed_minor(settlement_objects(settlement))


def legal_actions_of(seat: Seat, headroom: Headroom | None) -> tuple[LegalAction, ...]:
    """The actions with what the headroom covers too; in a session funded bet by bet that may be less than the funds."""
    legal = games.legal_actions(seat)
    if headroom is None:
        return legal
    most_minor = headroom.minor
    if not [action for action in legal if not action.available or action.cost_minor > most_minor]:
        return legal
    return tuple(
        action
        if action.available and action.cost_minor <= most_minor
        else action._replace(available=False, reason=headroom.reason_against(action.cost_minor))
        for action in legal
    )


def session_view(
    session: Session,
    ruleset: Ruleset,
    jurisdiction: Jurisdiction,
    now_ms: int,
    *,
    open_round: RoundView | None = None,
    idle_from_ms: int = 0,
) -> SessionView:
    """The view of a session at `now_ms`. Inactivity counts from the later of `idle_from_ms` and the last event."""
    until_ms = session.close_ms if session.status is SessionStatus.CLOSED else max(now_ms, session.last_ms)
    headroom = session.offer
    inactive_ms = max(session.last_ms, idle_from_ms) + jurisdiction.inactivity_ms
    may_start = session.may_start(until_ms, inactive_ms)
    limits = within(ruleset.limits, session.bet_limits)["ante"]
    return SessionView(
        session=session,
        ruleset=ruleset,
        jurisdiction=jurisdiction,
        elapsed_ms=until_ms - session.open_ms,
        largest_ante_minor=_largest_ante(ruleset, headroom.minor, limits) if may_start else 0,
        purchase_left_minor=_purchase_left(session, jurisdiction),
        open_round=open_round,
        headroom=headroom,
        time_left_ms=session.time_left_ms(until_ms),
        next_start_ms=_next_start(session, jurisdiction, until_ms),
        inactive_ms=inactive_ms,
    )


def _deadline_of(round_: Round, ruleset: Ruleset) -> int:
    """When the default decision is taken: the decision timer after the last step, 0 where nothing is timed."""
    if not ruleset.timers.decision_ms:
        return 0
    since_ms = round_.actions[-1].time_ms if round_.actions else round_.start_ms
    return since_ms + ruleset.timers.decision_ms


def _next_start(session: Session, jurisdiction: Jurisdiction, now_ms: int) -> int:
    """The end of the least time between two starts; 0 if it has passed, or if the session takes no rounds any more."""
    if session.status is SessionStatus.CLOSED or not session.last_start_ms:
        return 0
    next_ms = session.last_start_ms + jurisdiction.min_round_interval_ms
    return next_ms if next_ms > now_ms else 0


def _largest_ante(ruleset: Ruleset, balance_minor: int, limits: StakeLimits) -> int:
    """As `games.largest_ante`, within the limits of the session: both lie on the ruleset's step."""
    ante_minor = min(games.largest_ante(ruleset, balance_minor, {}), limits.max_minor)
    return ante_minor if ante_minor >= limits.min_minor else 0


def _purchase_left(session: Session, jurisdiction: Jurisdiction) -> int:
    """What may still be bought; 0 in a session funded bet by bet."""
    if session.participation.ended or session.is_seamless:
        return 0
    return max(0, jurisdiction.cap_minor(session.currency) - session.participation.bought_minor)


class RoundChangedError(RgsError, reason="ROUND_CHANGED"):
    """The round is not at the version that the request names. It may carry session and round as they are now."""

    def __init__(
        self,
        message: str,
        *,
        session: SessionView | None = None,
        round_: RoundView | None = None,
        field: str | None = None,
        **metadata: object,
    ) -> None:
        super().__init__(message, field=field, **metadata)
        self.session, self.round = session, round_
