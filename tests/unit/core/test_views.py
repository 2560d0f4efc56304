"""Views: what a player may see in each phase and nothing else, deadlines, and what a session's view counts."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from rgs.core import games
from rgs.core.cards import format_card, format_cards
from rgs.core.games.paytables import format_floor
from rgs.core.games.types import Action, Phase, Seat, SeatStakes, SeatView, Timers
from rgs.core.jurisdictions import load_jurisdiction
from rgs.core.ledger import Participation
from rgs.core.limits import SessionLimits
from rgs.core.rounds import Round, RoundStatus
from rgs.core.rulesets import load_ruleset
from rgs.core.sessions import Session, SessionStatus
from rgs.core.views import DecidingRow, RoundView, deciding_rows, round_view, session_view
from tests.support.records.known_deal import START_MS, make_round, seat_after, taken

SEEN = [
    ("uth-solo", (), ["As", "Ac"], [], []),
    ("uth-solo", (Action.CHECK,), ["As", "Ac"], ["Ah", "7c", "2d"], []),
    ("uth-solo", (Action.CHECK, Action.CHECK), ["As", "Ac"], ["Ah", "7c", "2d", "9s", "4h"], []),
    ("uth-solo", (Action.PLAY_4X,), ["As", "Ac"], ["Ah", "7c", "2d", "9s", "4h"], ["Kd", "Kh"]),
    ("casino-holdem", (), ["As", "Ac"], ["Ah", "7c", "2d"], []),
    ("casino-holdem", (Action.FOLD,), ["As", "Ac"], ["Ah", "7c", "2d", "9s", "4h"], ["Kd", "Kh"]),
]


def played(game: str, *actions: Action) -> tuple[Round, Seat]:
    round_ = make_round(game)
    round_ = replace(round_, actions=taken(round_, *actions), version=1 + len(actions))
    seat = seat_after(round_)
    if seat.phase is Phase.SHOWDOWN:
        round_ = replace(round_, status=RoundStatus.SETTLED, end_ms=START_MS + 9000)
    return round_, seat


def cards_in(value: Any) -> set[str]:
    """Every card named anywhere in a value, as text or number."""
    texts = {format_card(card) for card in range(52)}
    if isinstance(value, str):
        return {value} & texts
    if isinstance(value, tuple | list | frozenset):
        return set().union(*map(cards_in, value))
    if hasattr(value, "best5"):
        return {format_card(card) for card in value.best5}
    if hasattr(value, "__dataclass_fields__"):
        return set().union(*(cards_in(getattr(value, field.name)) for field in fields(value)))
    return set()


def view_of(game: str, *actions: Action) -> RoundView:
    round_, seat = played(game, *actions)
    settlement = games.settle(seat) if seat.phase is Phase.SHOWDOWN else None
    return round_view(round_, seat, actions_hash=round_.actions_hash(), settlement=settlement)


@pytest.mark.parametrize(("game", "actions", "hole_cards", "board", "dealer_cards"), SEEN)
def test_a_view_holds_the_cards_of_its_phase_and_no_other(
    game: str, actions: tuple[Action, ...], hole_cards: list[str], board: list[str], dealer_cards: list[str]
) -> None:
    view = view_of(game, *actions)
    assert (list(view.hole_cards), list(view.board), list(view.dealer_cards)) == (hole_cards, board, dealer_cards)
    assert cards_in(view) == {*hole_cards, *board, *dealer_cards}


def test_the_oracle_sees_a_card_too_many(monkeypatch: pytest.MonkeyPatch) -> None:

    def careless(seat: Seat) -> SeatView:
        return shown(seat)._replace(board=seat.board)

    shown = games.view
    monkeypatch.setattr(games, "view", careless)
    with pytest.raises(AssertionError):
        test_a_view_holds_the_cards_of_its_phase_and_no_other(*SEEN[0])


def test_an_open_round_shows_what_may_be_done() -> None:
    view = view_of("uth-solo", Action.CHECK)
    assert [(legal.action, legal.cost_minor, legal.available) for legal in view.legal_actions] == [
        (Action.CHECK, 0, True),
        (Action.PLAY_2X, 200, True),
    ]
    assert (view.phase, view.round_version, view.status, view.settlement) == (Phase.FLOP, 2, RoundStatus.OPEN, None)
    assert view.bets == (("ante", 100), ("blind", 100), ("trips", 20))
    assert [action.action for action in view.actions] == ["check"]
    assert (view.round_no, view.game_code, view.start_ms, view.end_ms) == (3, "#12:00:00", START_MS, 0)
    assert view.player_hand is not None
    assert view_of("uth-solo").player_hand is None


def test_a_settled_round_offers_nothing_and_tells_all() -> None:
    view = view_of("casino-holdem", Action.CALL)
    assert (view.legal_actions, view.deadline_ms, view.phase) == ((), 0, Phase.SHOWDOWN)
    assert view.settlement is not None
    assert (view.settlement.staked_minor, view.settlement.returned_minor) == (320, 760)
    assert view.end_ms == START_MS + 9000


@pytest.mark.parametrize(
    ("actions", "since_ms"), [((), 0), ((Action.CHECK,), 1000), ((Action.CHECK, Action.CHECK), 2000)]
)
def test_a_deadline_runs_from_the_last_step(actions: tuple[Action, ...], since_ms: int) -> None:
    round_, seat = played("uth-solo", *actions)
    timed = replace(seat, ruleset=replace(seat.ruleset, timers=Timers(0, 0, 15_000, 0)))
    hash_ = round_.actions_hash()
    assert round_view(round_, timed, actions_hash=hash_).deadline_ms == START_MS + since_ms + 15_000
    assert round_view(round_, seat, actions_hash=hash_).deadline_ms == 0


# --- the rows that decided --------------------------------------------------------------------------------------------

FOLDED = (Action.CHECK, Action.CHECK, Action.FOLD)
ACES_OF_FIVE = ("Ac", "Ah", "As", "9s", "7c")  # the best five of As Ac and the board Ah 7c 2d 9s 4h


def rows_of(view: RoundView) -> dict[str, DecidingRow | None]:
    assert view.settlement is not None
    return {bet.bet: row for bet, row in zip(view.settlement.bets, view.rows, strict=True)}


def test_a_row_is_named_for_each_bet_that_a_paytable_decided() -> None:
    view = view_of("uth-solo", Action.PLAY_4X)
    best = DecidingRow("trips", ACES_OF_FIVE)
    # The blind is asked of its table because the player wins; it pays from a straight on, and is pushed here.
    assert rows_of(view) == {"ante": None, "blind": best, "trips": best, "play": None}
    assert all(set(row.cards) <= {*view.hole_cards, *view.board} for row in view.rows if row)


def test_aa_names_the_first_five_cards_and_the_ante_the_best_five() -> None:
    view = view_of("casino-holdem", Action.CALL)
    first_five = DecidingRow("trips", ("Ac", "Ah", "As", "7c", "2d"))
    assert rows_of(view) == {"ante": DecidingRow("trips", ACES_OF_FIVE), "aa": first_five, "call": None}


@pytest.mark.parametrize(
    ("game", "survives"), [("casino-holdem", False), ("uth-lugano", False), ("uth-solo", True), ("uth-online", True)]
)
def test_after_a_fold_only_a_side_bet_that_survives_has_a_row(game: str, survives: bool) -> None:
    seat = any_seat(game, 0, *((Action.FOLD,) if game == "casino-holdem" else FOLDED))
    settlement = games.settle(seat)
    rows = deciding_rows(load_ruleset(game), settlement)
    assert [bet.bet for bet, row in zip(settlement.bets, rows, strict=True) if row] == ["trips"] * survives


def test_the_rows_are_those_that_the_settlement_paid() -> None:
    """Over many decks, the odds of the row named, on the stake, are what the bet returned."""
    named = 0
    for game in ("uth-solo", "casino-holdem"):
        ruleset = load_ruleset(game)
        for shift in range(0, 52, 3):
            seat = any_seat(game, shift, Action.PLAY_4X if game == "uth-solo" else Action.CALL)
            settlement = games.settle(seat)
            for bet, row in zip(settlement.bets, deciding_rows(ruleset, settlement), strict=True):
                if row is None:
                    assert bet.returned_minor in {0, bet.stake_minor, 2 * bet.stake_minor}
                    continue
                named += 1
                odds = {format_floor(floor): odds for floor, odds in ruleset.paytables[bet.bet].rows}
                assert odds[row.category].returned_minor(bet.stake_minor) == bet.returned_minor
                assert len(set(row.cards)) == 5
                seen = seat.board[:3] if bet.bet == "aa" else seat.board
                assert set(row.cards) <= {*format_cards(seat.hole_cards), *format_cards(seen)}
    assert named > 40


def any_seat(game: str, shift: int, *actions: Action) -> Seat:
    """A seat with all bets after these decisions, on a deck in no order."""
    ruleset = load_ruleset(game)
    deck = [(card * 31 + shift * 7) % 52 for card in range(52)]
    bets = dict.fromkeys(ruleset.rules.placed_bets, 100)
    (seat,) = games.deal(ruleset, deck, [SeatStakes(1, bets, 10_000)])
    for action in actions:
        seat = games.apply(seat, action)
    return seat


# --- sessions ---------------------------------------------------------------------------------------------------------

RULESET, DEMO = load_ruleset("uth-solo"), load_jurisdiction("demo")
SESSION = Session(
    session_id="0" * 26,
    operator="op-1",
    player="anna",
    operator_reference="ref",
    ruleset_id="uth-solo",
    jurisdiction_id="demo",
    currency="EUR",
    status=SessionStatus.OPEN,
    open_ms=START_MS,
    last_ms=START_MS + 5000,
    participation=Participation(bought_minor=61_200, staked_minor=60_600),
)


@pytest.mark.parametrize(("passed_ms", "next_ms"), [(0, 5_000), (4_999, 5_000), (5_000, 0)])
def test_the_next_start_follows_the_jurisdictions_pace(passed_ms: int, next_ms: int) -> None:
    british = load_jurisdiction("gb-ukgc")
    assert british.min_round_interval_ms == 5_000
    session = replace(SESSION, last_start_ms=START_MS, last_ms=START_MS)
    view = session_view(session, load_ruleset("uth-solo"), british, START_MS + passed_ms)
    assert view.next_start_ms == (START_MS + next_ms if next_ms else 0)
    none_yet = session_view(replace(session, last_start_ms=0), load_ruleset("uth-solo"), british, START_MS)
    assert none_yet.next_start_ms == 0
    closed = replace(session, status=SessionStatus.CLOSED, close_ms=START_MS + 1)
    assert session_view(closed, load_ruleset("uth-solo"), british, START_MS + 1).next_start_ms == 0


def test_a_session_view_counts_what_is_left() -> None:
    view = session_view(SESSION, RULESET, DEMO, START_MS + 7000)
    assert view.elapsed_ms == 7000
    # 600 cover an ante, its blind and four times the ante on top: six antes of 100.
    assert view.largest_ante_minor == 100
    assert view.purchase_left_minor == DEMO.cap_minor("EUR") - 61_200
    assert view.open_round is None
    assert (view.session, view.ruleset, view.jurisdiction) == (SESSION, RULESET, DEMO)


def test_time_does_not_run_backwards_in_a_view() -> None:
    assert session_view(SESSION, RULESET, DEMO, START_MS + 10).elapsed_ms == 5000


def test_a_closed_session_has_stopped() -> None:
    closed = replace(
        SESSION,
        status=SessionStatus.CLOSED,
        close_ms=START_MS + 6000,
        participation=Participation(bought_minor=10, paid_out_minor=10, ended=True),
    )
    view = session_view(closed, RULESET, DEMO, START_MS + 99_000)
    assert (view.elapsed_ms, view.largest_ante_minor, view.purchase_left_minor) == (6000, 0, 0)


NO_ROUND: dict[str, tuple[dict[str, Any], int]] = {
    "pending": ({"status": SessionStatus.PENDING}, 7_000),
    "closed": ({"status": SessionStatus.CLOSED, "close_ms": START_MS + 6_000}, 7_000),
    "participation ended": ({"participation": Participation(61_200, 60_600, 0, 600, ended=True)}, 7_000),
    "operation under way": ({"pending_operation": "01" + "0" * 24}, 7_000),
    "time is up": ({"limits": SessionLimits(duration_ms=7_000)}, 7_000),
    "inactive": ({}, 5_001 + DEMO.inactivity_ms),
}


@pytest.mark.parametrize(("changes", "passed_ms"), NO_ROUND.values(), ids=NO_ROUND)
def test_no_ante_is_offered_where_no_round_may_start(changes: dict[str, Any], passed_ms: int) -> None:
    assert session_view(SESSION, RULESET, DEMO, START_MS + 6_000).largest_ante_minor == 100
    view = session_view(replace(SESSION, **changes), RULESET, DEMO, START_MS + passed_ms)
    assert view.largest_ante_minor == 0


def test_the_last_moment_still_offers_one() -> None:
    timed = replace(SESSION, limits=SessionLimits(duration_ms=7_000))
    assert session_view(timed, RULESET, DEMO, START_MS + 6_999).largest_ante_minor == 100
    assert session_view(SESSION, RULESET, DEMO, START_MS + 5_000 + DEMO.inactivity_ms).largest_ante_minor == 100


def test_nothing_is_left_above_the_cap() -> None:
    full = replace(SESSION, participation=Participation(bought_minor=DEMO.cap_minor("EUR") + 5))
    assert session_view(full, RULESET, DEMO, START_MS).purchase_left_minor == 0
