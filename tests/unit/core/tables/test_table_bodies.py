"""The bodies of a table's statements: what each says of two known deals, in the one shape that is signed."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from rgs.core import games
from rgs.core.cards import FULL_DECK, format_cards
from rgs.core.games.dealing import deal_again
from rgs.core.games.settling import showdown
from rgs.core.games.types import Action, Outcome, Phase, Seat, StakeLimits
from rgs.core.jurisdictions import load_jurisdiction
from rgs.core.rounds import DECK_UNRECOVERABLE, TakenAction, Void
from rgs.core.rulesets import load_ruleset
from rgs.core.statements import KINDS, LINK_ZERO, format_canonical
from rgs.core.statements.shapes import check_shape
from rgs.core.tables.bodies import (
    EndedSeat,
    RevealedDeal,
    RoundPlace,
    RoundRules,
    box_seat_object,
    player_hands_object,
    revealed_object,
    seat_final_body,
    seat_opening_body,
    seat_outcome_object,
    seat_result,
    seat_void_body,
    table_deal_body,
    table_deal_object,
    table_final_body,
    table_round_body,
    table_seats_body,
)
from rgs.core.tables.seating import seat_in_play
from rgs.core.tables.windows import Window, WindowEnd
from tests.support.records.known_deal import DECK, SALT, TRANSCRIPT

ONLINE, SEVEN, CASINO = (load_ruleset(name) for name in ("uth-online", "uth-seven-box", "casino-holdem"))
LAW = load_jurisdiction("it-adm")
SESSION, ROUND = "0" * 25 + "S", "0" * 25 + "R"
T0 = 1_795_000_000_000
TIME = "2026-11-18T11:06:40.000Z"
CONFIG, TABLE_ROUND, DEAL, OPENING, FINAL = ("a1" * 32, "b2" * 32, "c3" * 32, "d4" * 32, "e5" * 32)
NUMBERS = {"instance": "node-1-b1-w0", "statement_no": "5", "time": TIME}
LINKS = {"link_no": "3", "previous": LINK_ZERO, "session_id": SESSION}
BETS = (("ante", 100), ("blind", 100), ("trips", 20))

# The player's three aces beat the dealer's kings (one hand for all), and three flushes of spades at the boxes.
SHARED = RevealedDeal(ONLINE, 1, DECK, SALT, TRANSCRIPT)
OWN = RevealedDeal(SEVEN, 2, FULL_DECK[::-1], SALT, TRANSCRIPT)
ACES = {"best5": ["Ac", "Ah", "As", "9s", "7c"], "category": "trips"}
KINGS = {"best5": ["Kd", "Kh", "Ah", "9s", "7c"], "category": "pair"}
TEN_HIGH = {"best5": ["Ts", "9s", "7s", "6s", "5s"], "category": "flush"}
ACE_HIGH = {"best5": ["As", "Ks", "7s", "6s", "5s"], "category": "flush"}
QUEEN_HIGH = {"best5": ["Qs", "Js", "7s", "6s", "5s"], "category": "flush"}
WINDOWS = tuple(
    Window(phase, T0 + 1_000 * number, T0 + 1_000 * number + 900, WindowEnd.DECIDED)
    for number, phase in enumerate((Phase.PREFLOP, Phase.FLOP, Phase.RIVER))
)


def check_body(kind: str, body: dict[str, Any]) -> None:
    """The body has the one shape of its kind, once numbers and links are there."""
    links = LINKS if kind in {"seat_opening", "seat_final"} else {}
    check_shape(KINDS[kind].shape, {**body, "kind": kind, **NUMBERS, **links})


# --- before the draw ---


def test_a_table_round_says_all_that_is_fixed_before_the_draw() -> None:
    limits = (("ante", StakeLimits(50, 20_000)), ("trips", StakeLimits(50, 5_000)))
    rules = RoundRules("table-1", CONFIG, ONLINE, LAW, limits, 20_000, 15_000, early_close=True)
    place = RoundPlace(ROUND, "#11:06:40", 7, FINAL)
    body = table_round_body(rules, place, betting=(T0, T0 + 20_050), hands=1, leaves=128, seats_root=bytes(range(32)))
    assert body == {
        "betting_close_time": "2026-11-18T11:07:00.050Z",
        "betting_ms": "20000",
        "betting_open_time": TIME,
        "config": CONFIG,
        "decision_ms": "15000",
        "early_close": True,
        "game_code": "#11:06:40",
        "hands": "1",
        "jurisdiction": {"id": "it-adm", "sha256": LAW.sha256, "version": "3"},
        "leaves": "128",
        "limits": [
            {"bet": "ante", "max_minor": "20000", "min_minor": "50"},
            {"bet": "trips", "max_minor": "5000", "min_minor": "50"},
        ],
        "previous": FINAL,
        "round_id": ROUND,
        "ruleset": {"id": "uth-online", "sha256": ONLINE.sha256, "version": "1"},
        "seats_root": bytes(range(32)).hex(),
        "table": "table-1",
        "table_round_no": "7",
    }
    check_body("table_round", body)


def test_the_number_of_seats_stands_in_a_statement_of_its_own() -> None:
    body = table_seats_body(TABLE_ROUND, ROUND, 65, SALT)
    assert body == {"round_id": ROUND, "salt": SALT.hex(), "seats": "65", "table_round": TABLE_ROUND}
    check_body("table_seats", body)


@pytest.mark.parametrize("box", [0, 4])
def test_a_seat_has_its_box_where_there_are_boxes(box: int) -> None:
    assert box_seat_object(2, SESSION, BETS, box) == {
        "bets": [
            {"amount_minor": "100", "bet": "ante"},
            {"amount_minor": "100", "bet": "blind"},
            {"amount_minor": "20", "bet": "trips"},
        ],
        **({"box": "4"} if box else {}),
        "seat_no": "2",
        "session_id": SESSION,
    }


# --- the draw ---


def test_the_deal_names_what_was_fixed_before_it() -> None:
    deal = table_deal_object(
        TABLE_ROUND, instance="node-1-b1-w0", draw_no=8, reseed_counter=9, shuffle="fisher-yates-52/v1"
    )
    assert deal == {
        "draw_no": "8",
        "instance": "node-1-b1-w0",
        "reseed_counter": "9",
        "shuffle": "fisher-yates-52/v1",
        "table_round": TABLE_ROUND,
    }
    body = table_deal_body(deal, ROUND, bytes(range(32)))
    assert body == {"commitment": bytes(range(32)).hex(), "deal": deal, "round_id": ROUND}
    check_body("table_deal", body)


@pytest.mark.parametrize("box", [0, 4])
def test_the_opening_of_a_seat_takes_the_bets_from_its_balance(box: int) -> None:
    seat = box_seat_object(2, SESSION, BETS, box)
    body = seat_opening_body(DEAL, ROUND, 6, seat, 1_000)
    assert body == {
        "balance_after_minor": "780",
        "balance_before_minor": "1000",
        "deal": DEAL,
        "round_id": ROUND,
        "round_no": "6",
        "seat": seat,
    }
    check_body("seat_opening", body)


# --- the cards ---


def test_one_hand_for_all_is_shown_once() -> None:
    """U-0: the table's final shows the hand that all seats share."""
    assert (SHARED.is_shared, SHARED.hands) == (True, 1)
    assert revealed_object(SHARED) == {
        "cards": {
            "board": ["Ah", "7c", "2d", "9s", "4h"],
            "burns": [],
            "dealer_cards": ["Kd", "Kh"],
            "hole_cards": ["As", "Ac"],
        },
        "deck": list(format_cards(DECK)),
        "hands": {"dealer_hand": KINGS, "dealer_qualifies": True, "player_hand": ACES},
        "salt": SALT.hex(),
        "transcript": TRANSCRIPT.hex(),
    }


def test_own_cards_stand_with_their_seats() -> None:
    assert (OWN.is_shared, OWN.hands) == (False, 2)
    assert revealed_object(OWN) == {
        "cards": {"board": ["7s", "6s", "5s", "3s", "2s"], "burns": ["8s", "4s"], "dealer_cards": ["Ts", "9s"]},
        "deck": list(format_cards(FULL_DECK[::-1])),
        "hands": {"dealer_hand": TEN_HIGH, "dealer_qualifies": True},
        "salt": SALT.hex(),
        "transcript": TRANSCRIPT.hex(),
    }
    assert [player_hands_object(OWN.showdown_of(hand_no)) for hand_no in (1, 2)] == [
        {"player_hand": ACE_HIGH},
        {"player_hand": QUEEN_HIGH},
    ]


def test_a_bet_that_looks_at_the_flop_shows_its_hand() -> None:
    """C-6: AA looks at the first five cards."""
    dealt = RevealedDeal(CASINO, 1, DECK, SALT, TRANSCRIPT).dealt
    hands = showdown(CASINO, dealt.hands[0], dealt.dealer_cards, dealt.board)
    assert player_hands_object(hands) == {
        "flop_hand": {"best5": ["Ac", "Ah", "As", "7c", "2d"], "category": "trips"},
        "player_hand": ACES,
    }
    assert seat_outcome_object(Outcome.PLAYER, hands, is_shared=True) == {"outcome": "player"}


@pytest.mark.parametrize("revealed", [SHARED, OWN], ids=["shared", "own"])
def test_a_deal_prints_none_of_its_cards(revealed: RevealedDeal) -> None:
    assert repr(revealed) == f"RevealedDeal(ruleset={revealed.ruleset!r}, hands={revealed.hands})"


# --- the table's end ---


@pytest.mark.parametrize("revealed", [SHARED, OWN], ids=["shared", "own"])
def test_a_settled_table_final_shows_windows_and_cards(revealed: RevealedDeal) -> None:
    body = table_final_body(TABLE_ROUND, DEAL, ROUND, WINDOWS, revealed)
    assert body == {
        "deal": DEAL,
        "round_id": ROUND,
        "status": "settled",
        "table_round": TABLE_ROUND,
        "windows": [window.body() for window in WINDOWS],
        **revealed_object(revealed),
    }
    check_body("table_final", body)


VOID = Void("MALFUNCTION", "f6" * 32, (("admin-1", T0), ("admin-2", T0 + 60_000)))
REASONS = {
    "approvals": [{"party": "admin-1", "time": TIME}, {"party": "admin-2", "time": "2026-11-18T11:07:40.000Z"}],
    "malfunction": "f6" * 32,
    "reason": "MALFUNCTION",
}


def test_a_void_table_final_says_why_and_shows_the_cards() -> None:
    """R-6."""
    body = table_final_body(TABLE_ROUND, DEAL, ROUND, WINDOWS[:1], OWN, VOID)
    assert body == {
        "deal": DEAL,
        "round_id": ROUND,
        "status": "void",
        "table_round": TABLE_ROUND,
        "void": REASONS,
        "windows": [WINDOWS[0].body()],
        **revealed_object(OWN),
    }
    check_body("table_final", body)


@pytest.mark.parametrize("deal", ["", DEAL])
def test_a_void_without_a_deck_shows_nothing(deal: str) -> None:
    """Before the draw there is no deal, and a deck that cannot be opened is not shown."""
    void = Void(DECK_UNRECOVERABLE, VOID.malfunction, VOID.approvals)
    body = table_final_body(TABLE_ROUND, deal, ROUND, [], None, void)
    assert body == {
        **({"deal": DEAL} if deal else {}),
        "round_id": ROUND,
        "status": "void",
        "table_round": TABLE_ROUND,
        "void": {**REASONS, "reason": "DECK_UNRECOVERABLE"},
        "windows": [],
    }
    check_body("table_final", body)


# --- a seat's end ---


def played(revealed: RevealedDeal, seat_no: int, *actions: Action) -> tuple[Seat, tuple[TakenAction, ...]]:
    """A seat of the deal after these decisions, and their record."""
    seat = deal_again(revealed.ruleset, revealed.deck, seat_no, BETS, 780, hands=revealed.hands)
    recorded = []
    for number, action in enumerate(actions):
        seat = games.apply(seat, action)
        phase, _, cost_minor = seat.actions[-1]
        time_ms = T0 + 1_000 * number
        recorded.append(TakenAction(phase.value, action.value, cost_minor, time_ms, "player", "operator-1", "cd" * 32))
    return seat, tuple(recorded)


def ended(seat_no: int, actions: tuple[TakenAction, ...]) -> EndedSeat:
    return EndedSeat(OPENING, FINAL, ROUND, 6, seat_no, 1_000, actions)


def running_hash(actions: tuple[TakenAction, ...]) -> str:
    """By hand: docs/formats.md, section 9. It begins with the opening of the seat, not with the commitment."""
    running = hashlib.sha256(b"rgs/actions/v1\x00" + bytes.fromhex(OPENING)).digest()
    for action in actions:
        running = hashlib.sha256(b"rgs/actions/v1\x00" + running + format_canonical(action.body())).digest()
    return running.hex()


def row(bet: str, result: str, stake: int, returned: int) -> dict[str, str]:
    return {"bet": bet, "result": result, "returned_minor": str(returned), "stake_minor": str(stake)}


def test_the_final_of_a_seat_on_the_shared_hand() -> None:
    seat, actions = played(SHARED, 65, Action.CHECK, Action.PLAY_2X)
    result = seat_result(seat, SHARED.showdown_of(1))
    body, settlement = seat_final_body(ended(65, actions), result), result.settlement
    assert body == {
        "actions": [action.body() for action in actions],
        "actions_hash": running_hash(actions),
        "balance_after_minor": "1360",
        "balance_before_minor": "1000",
        "opening": OPENING,
        "outcome": {"outcome": "player"},
        "returned_minor": "780",
        "round_id": ROUND,
        "round_no": "6",
        "seat_no": "65",
        "settlement": [
            row("ante", "win", 100, 200),
            row("blind", "push", 100, 100),
            row("trips", "win", 20, 80),
            row("play", "win", 200, 400),
        ],
        "staked_minor": "420",
        "status": "settled",
        "table_final": FINAL,
    }
    assert (settlement.staked_minor, settlement.returned_minor) == (420, 780)
    check_body("seat_final", body)


@pytest.mark.parametrize(
    ("seat_no", "actions", "outcome", "hand", "cards", "rows", "after"),
    [
        (
            1,
            (Action.PLAY_4X,),
            "player",
            ACE_HIGH,
            ["As", "Ks"],
            [
                row("ante", "win", 100, 200),
                row("blind", "win", 100, 250),
                row("trips", "win", 20, 160),
                row("play", "win", 400, 800),
            ],
            1_000 - 620 + 1_410,
        ),
        (
            2,
            (Action.CHECK, Action.CHECK, Action.FOLD),
            "fold",
            QUEEN_HIGH,
            ["Qs", "Js"],
            [row("ante", "lose", 100, 0), row("blind", "lose", 100, 0), row("trips", "win", 20, 160)],
            1_000 - 220 + 160,
        ),
    ],
    ids=["raised", "folded"],
)
def test_the_final_of_a_seat_with_its_own_cards(
    seat_no: int,
    actions: tuple[Action, ...],
    outcome: str,
    hand: dict[str, Any],
    cards: list[str],
    rows: list[dict[str, str]],
    after: int,
) -> None:
    seat, recorded = played(OWN, seat_no, *actions)
    result = seat_result(seat, OWN.showdown_of(seat_no))
    body, settlement = seat_final_body(ended(seat_no, recorded), result), result.settlement
    assert (body["outcome"], body["hole_cards"]) == ({"outcome": outcome, "player_hand": hand}, cards)
    assert (body["settlement"], body["balance_after_minor"]) == (rows, str(after))
    assert body["actions_hash"] == running_hash(recorded)
    assert settlement.player_hand == OWN.showdown_of(seat_no).player_hand
    check_body("seat_final", body)


def test_a_void_seat_gets_every_stake_back() -> None:
    """R-6. What would have been follows from the default decisions: here a check and a fold."""
    seat, actions = played(OWN, 2, Action.CHECK)
    body = seat_void_body(ended(2, actions), seat.bets, seat, OWN.showdown_of(2))
    assert body == {
        "actions": [action.body() for action in actions],
        "actions_hash": running_hash(actions),
        "balance_after_minor": "1000",
        "balance_before_minor": "1000",
        "hole_cards": ["Qs", "Js"],
        "opening": OPENING,
        "returned_minor": "220",
        "round_id": ROUND,
        "round_no": "6",
        "seat_no": "2",
        "settlement": [row("ante", "push", 100, 100), row("blind", "push", 100, 100), row("trips", "push", 20, 20)],
        "staked_minor": "220",
        "status": "void",
        "table_final": FINAL,
        "would_have_been": [
            row("ante", "lose", 100, 0),
            row("blind", "lose", 100, 0),
            row("trips", "win", 20, 160),
        ],
        "would_have_outcome": {"outcome": "fold", "player_hand": QUEEN_HIGH},
    }
    check_body("seat_final", body)


def test_a_void_seat_on_the_shared_hand_shows_no_cards_of_its_own() -> None:
    seat, actions = played(SHARED, 3, Action.PLAY_3X)
    body = seat_void_body(ended(3, actions), seat.bets, seat, SHARED.showdown_of(1))
    assert "hole_cards" not in body
    assert body["would_have_outcome"] == {"outcome": "player"}
    assert (body["staked_minor"], body["returned_minor"], body["balance_after_minor"]) == ("520", "520", "1000")
    assert body["settlement"][-1] == row("play", "push", 300, 300)
    assert body["would_have_been"][-1] == row("play", "win", 300, 600)
    check_body("seat_final", body)


def test_seats_of_a_shared_hand_need_no_cards_of_their_own() -> None:
    """Ten thousand seats are not dealt ten thousand times: their hands are those of the table's deal."""
    dealt, actions = played(SHARED, 3, Action.PLAY_3X)
    bare = seat_in_play(ONLINE, 3, BETS, 780, actions)
    assert bare.hole_cards != dealt.hole_cards
    hands = SHARED.showdown_of(1)
    assert seat_result(bare, hands) == seat_result(dealt, hands)
    assert seat_void_body(ended(3, actions), bare.bets, bare, hands) == seat_void_body(
        ended(3, actions), dealt.bets, dealt, hands
    )


def test_without_a_deck_nobody_knows_what_would_have_been() -> None:
    bets = (*BETS, ("play", 400))
    seat, actions = played(OWN, 1, Action.PLAY_4X)
    bodies = [
        seat_void_body(ended(1, actions), bets, None, None),
        seat_void_body(ended(1, actions), bets, seat, None),
    ]
    assert bodies[0] == bodies[1]
    assert bodies[0].keys().isdisjoint({"would_have_been", "would_have_outcome", "hole_cards", "outcome"})
    assert (bodies[0]["staked_minor"], bodies[0]["returned_minor"]) == ("620", "620")
    check_body("seat_final", bodies[0])
