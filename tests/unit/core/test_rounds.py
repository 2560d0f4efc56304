"""Bodies of openings and finals, compared with what they must say of one known deal, and with their schemas."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

from rgs.core import games
from rgs.core.cards import format_cards
from rgs.core.games.types import Action, Phase
from rgs.core.jurisdictions import load_jurisdiction
from rgs.core.rounds import (
    RoundStatus,
    UnsealedDeck,
    final_body,
    opening_body,
    rules_object,
    seat_object,
    seats_root,
)
from rgs.core.rulesets import load_ruleset
from rgs.core.statements import KINDS, LINK_ZERO, first_actions_hash, format_canonical, next_actions_hash
from rgs.core.statements.shapes import check_shape
from tests.support.records.known_deal import DECK, SALT, START_MS, TRANSCRIPT, make_round, seat_after, taken

NUMBERS = {"instance": "node-1-b1-w0", "statement_no": "5"}
LINKS = {"link_no": "3", "previous": LINK_ZERO, "session_id": "0" * 25 + "S"}
TIME = {"time": "2026-11-21T22:30:00.123Z"}

# What each game pays for aces over kings: the rows of the settlement, the sums, and the hands.
UTH_ROWS = [("ante", 100, "win", 200), ("blind", 100, "push", 100), ("trips", 20, "win", 80), ("play", 200, "win", 400)]
CASINO_ROWS = [("ante", 100, "win", 200), ("aa", 20, "win", 160), ("call", 200, "win", 400)]
GAMES = [
    ("uth-solo", (Action.CHECK, Action.PLAY_2X), UTH_ROWS, False),
    ("casino-holdem", (Action.CALL,), CASINO_ROWS, True),
]


def final_of(game: str, actions: tuple[Action, ...]) -> dict[str, Any]:
    round_ = make_round(game)
    round_ = replace(round_, actions=taken(round_, *actions), status=RoundStatus.SETTLED)
    seat = seat_after(round_)
    settlement = games.settle(seat)
    return final_body(
        round_, UnsealedDeck(seat, DECK, SALT, TRANSCRIPT), settlement, actions_hash=round_.actions_hash()
    )


@pytest.mark.parametrize(("game", "actions", "rows", "has_flop_hand"), GAMES)
def test_a_final_says_what_the_known_deal_comes_to(
    game: str, actions: tuple[Action, ...], rows: list[tuple[str, int, str, int]], has_flop_hand: bool
) -> None:
    body = final_of(game, actions)
    check_shape(KINDS["round_final"].shape, {**body, "kind": "round_final", **NUMBERS, **LINKS, **TIME})
    staked, returned = sum(row[1] for row in rows), sum(row[3] for row in rows)
    assert body["settlement"] == [
        {"bet": bet, "result": result, "returned_minor": str(back), "stake_minor": str(stake)}
        for bet, stake, result, back in rows
    ]
    assert {key: body[key] for key in ("staked_minor", "returned_minor", "balance_before_minor")} == {
        "staked_minor": str(staked),
        "returned_minor": str(returned),
        "balance_before_minor": "1000",
    }
    assert body["balance_after_minor"] == str(1000 - staked + returned)
    trips_of_aces = {"best5": ["Ac", "Ah", "As", "9s", "7c"], "category": "trips"}
    pair_of_kings = {"best5": ["Kd", "Kh", "Ah", "9s", "7c"], "category": "pair"}
    outcome = body["outcome"]
    for name, expected in (("player_hand", trips_of_aces), ("dealer_hand", pair_of_kings)):
        assert sorted(outcome[name]["best5"]) == sorted(expected["best5"]), name
        assert outcome[name]["category"] == expected["category"], name
    assert (outcome["outcome"], outcome["dealer_qualifies"]) == ("player", True)
    assert ("flop_hand" in outcome) is has_flop_hand
    assert body["cards"] == {
        "board": ["Ah", "7c", "2d", "9s", "4h"],
        "burns": [],
        "dealer_cards": ["Kd", "Kh"],
        "hole_cards": ["As", "Ac"],
    }
    assert body["deck"] == list(format_cards(DECK))
    assert (body["salt"], body["transcript"]) == (SALT.hex(), TRANSCRIPT.hex())
    assert (body["opening"], body["round_no"], body["seat_no"], body["status"]) == ("ab" * 32, "3", "1", "settled")


@pytest.mark.parametrize(("game", "actions", "rows", "_flop"), GAMES)
def test_a_round_is_played_on_from_its_recorded_decisions(
    game: str, actions: tuple[Action, ...], rows: list[tuple[str, int, str, int]], _flop: bool
) -> None:
    round_ = make_round(game)
    seat = seat_after(round_)
    assert seat.funds_minor == 1000 - sum(amount for _, amount in round_.bets)
    played = seat_after(replace(round_, actions=taken(round_, *actions)))
    assert played.phase is Phase.SHOWDOWN
    assert played.bets == tuple((bet, stake) for bet, stake, _, _ in rows)
    assert [action.action for action in played.actions] == list(actions)


def test_an_opening_binds_deal_seat_and_stakes() -> None:
    round_ = make_round("uth-solo")
    deal: dict[str, Any] = json.loads(round_.deal)
    seat = seat_object(1, round_.session_id, round_.bets)
    body = opening_body(round_, deal, seat)
    check_shape(KINDS["round_opening"].shape, {**body, "kind": "round_opening", **NUMBERS, **LINKS, **TIME})
    assert body["seat"]["bets"] == [
        {"amount_minor": "100", "bet": "ante"},
        {"amount_minor": "100", "bet": "blind"},
        {"amount_minor": "20", "bet": "trips"},
    ]
    assert (body["balance_before_minor"], body["balance_after_minor"]) == ("1000", "780")
    assert body["deal"]["seats_root"] == hashlib.sha256(b"\x00" + format_canonical(seat)).hexdigest()
    assert (body["deal"]["seats"], body["deal"]["table"], body["path"]) == ("1", "", [])
    assert opening_body(round_, deal, seat, path=[b"\xab" * 32])["path"] == ["ab" * 32]
    assert body["commitment"] == round_.commitment.hex()


def test_the_root_of_two_seats_is_that_of_rfc_6962() -> None:
    seats = [seat_object(number, "0" * 26, (("ante", 100),)) for number in (1, 2)]
    leaves = [hashlib.sha256(b"\x00" + format_canonical(seat)).digest() for seat in seats]
    assert seats_root(seats) == hashlib.sha256(b"\x01" + leaves[0] + leaves[1]).digest()


def test_rules_are_named_by_id_version_and_hash() -> None:
    for rules, version in ((load_ruleset("uth-solo"), "1"), (load_jurisdiction("demo"), "3")):
        named = rules_object(rules)
        assert named == {"id": rules.id, "sha256": hashlib.sha256(rules.canonical).hexdigest(), "version": version}


def test_the_running_hash_takes_every_action_in_order() -> None:
    round_ = make_round("uth-solo")
    assert round_.actions_hash() == first_actions_hash(round_.commitment)
    check, play = taken(round_, Action.CHECK, Action.PLAY_2X)
    both = replace(round_, actions=(check, play)).actions_hash()
    assert both == next_actions_hash(next_actions_hash(round_.actions_hash(), check.body()), play.body())
    assert both != replace(round_, actions=(play, check)).actions_hash()


def test_the_running_hash_of_a_seat_at_a_table_begins_with_its_opening() -> None:
    """All seats of a table's round share the commitment; the opening is the seat's own."""
    solo = make_round("uth-solo")
    seat = replace(solo, table_id="table-1", opening_hash="cd" * 32)
    assert seat.actions_hash() == first_actions_hash(b"\xcd" * 32)
    assert seat.actions_hash() != replace(seat, opening_hash="ce" * 32).actions_hash()
    (check,) = taken(solo, Action.CHECK)
    played = replace(seat, actions=(check,)).actions_hash()
    assert played == next_actions_hash(first_actions_hash(b"\xcd" * 32), check.body())
    assert check.body() == {
        "action": "check",
        "amount_minor": "0",
        "by": "player",
        "party": "op-1",
        "phase": "preflop",
        "request_digest": "cd" * 32,
        "time": "2026-11-18T11:06:41.000Z",
    }
    assert check.time_ms == START_MS + 1000
