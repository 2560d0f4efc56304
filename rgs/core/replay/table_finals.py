"""The end of a table's round: its cards and the windows of its decisions (checks 11 to 14, 16, 26, 27)."""

from __future__ import annotations

from typing import Final

from rgs.core.cards import format_card
from rgs.core.games.dealing import dealt_cards
from rgs.core.games.settling import showdown
from rgs.core.games.types import Phase
from rgs.core.replay.checks import CARDS, COMMITMENT, EARLY, HANDS, OPENING, TRANSCRIPT, WINDOWS
from rgs.core.replay.reading import Statement
from rgs.core.replay.table_rounds import TableRound, verify_length
from rgs.core.rounds import DECK_UNRECOVERABLE, hand_object
from rgs.core.rulesets import Ruleset
from rgs.core.statements import commitment_of
from rgs.core.tables.bodies import player_hands_object
from rgs.core.tables.windows import WindowEnd
from rng.shuffle import TranscriptError, transcript_to_deck  # type: ignore[attr-defined]

_REVEALED: Final = ("cards", "deck", "hands", "salt", "transcript")


# --- (11) (12) (13) (14) (16) of a table_final ---


def verify_fields(statement: Statement, round_: TableRound) -> None:
    """Check 11: the deal that it names, and the fields that its status demands."""
    body = statement.body
    if body.get("deal", "") != round_.deal:
        raise statement.failure(OPENING, "deal is not the hash of the round's table_deal")
    is_void = body["status"] == "void"
    due = set() if is_void else {*_REVEALED, "deal"}
    barred = set() if is_void else {"void"}
    if is_void:
        due.add("void")
        is_hidden = not round_.deal or body.get("void", {}).get("reason") == DECK_UNRECOVERABLE
        (barred if is_hidden else due).update(_REVEALED)
    for name in sorted(due - body.keys()):
        raise statement.failure(OPENING, f"{name} is missing in a table_final of status {body['status']}")
    for name in sorted(barred & body.keys()):
        raise statement.failure(OPENING, f"{name} does not belong into this table_final of status {body['status']}")


def verified_deck(statement: Statement, round_: TableRound, ruleset: Ruleset) -> tuple[int, ...]:
    """The deck, if commitment, transcript, cards and hands agree."""
    body = statement.body
    salt, transcript = bytes.fromhex(body["salt"]), bytes.fromhex(body["transcript"])
    if commitment_of(round_.core.encode("ascii"), salt, transcript).hex() != round_.commitment:
        raise statement.failure(COMMITMENT, "salt and transcript do not give the commitment of the deal")
    try:
        deck = transcript_to_deck(transcript)
    except TranscriptError as error:
        raise statement.failure(TRANSCRIPT, str(error)) from None
    if _faces(deck) != body["deck"]:
        raise statement.failure(TRANSCRIPT, "the transcript gives another deck")
    dealt = dealt_cards(ruleset, deck, round_.hands)
    is_shared = ruleset.hole_cards == "shared"
    expected = {
        "board": _faces(dealt.board),
        "burns": _faces(dealt.burns),
        "dealer_cards": _faces(dealt.dealer_cards),
        **({"hole_cards": _faces(dealt.hands[0])} if is_shared else {}),
    }
    if body["cards"] != expected:
        raise statement.failure(CARDS, "cards are not those that the deck gives")
    hands = showdown(ruleset, dealt.hands[0], dealt.dealer_cards, dealt.board)
    due = {
        "dealer_hand": hand_object(hands.dealer_hand),
        "dealer_qualifies": hands.dealer_qualifies,
        **(player_hands_object(hands) if is_shared else {}),
    }
    if body["hands"] != due:
        raise statement.failure(HANDS, "hands are not those that the cards give")
    return tuple(deck)


def _faces(cards: tuple[int, ...] | list[int]) -> list[str]:
    return [format_card(card) for card in cards]


# --- (26) (27) of a table_final ---


def verify_windows(statement: Statement, round_: TableRound) -> None:
    """The windows stand in the order of the phases, each whole unless a pause or all decisions ended it."""
    body, time = statement.body, round_.deal_time
    due_ms = int(round_.body["decision_ms"])
    # Of a ruleset that is not known (8) neither phases nor cards can be compared.
    phases = [] if round_.ruleset is None else [phase.value for phase in round_.ruleset.rules.transitions]
    ended: list[str] = []
    if body["windows"] and not round_.deal:
        raise statement.failure(WINDOWS, "windows of a round that was not dealt")
    for window in body["windows"]:
        if not time <= window["open_time"] <= window["close_time"]:
            raise statement.failure(WINDOWS, f"the window from {window['open_time']} is out of order")
        time = window["close_time"]
        if phases and phases[len(ended) : len(ended) + 1] != [window["phase"]]:
            raise statement.failure(WINDOWS, f"a window of {window['phase']} stands after {len(ended)} phases")
        if window["end"] != WindowEnd.PAUSED:
            ended.append(window["phase"])
        if window["end"] == WindowEnd.DECIDED and not round_.body["early_close"]:
            raise statement.failure(WINDOWS, f"the window from {window['open_time']} ended early")
        ran_out = window["end"] == WindowEnd.TIME
        verify_length(statement, window["open_time"], window["close_time"], due_ms, ran_out=ran_out)
    if phases and body["status"] == "settled" and ended != phases:
        raise statement.failure(WINDOWS, f"windows of {', '.join(ended) or 'no phase'}, not of {', '.join(phases)}")
    if body["time"] < time:
        raise statement.failure(EARLY, f"the table's final is dated {body['time']}, before its last window closed")


def verify_action_times(statement: Statement, round_: TableRound, phase: Phase) -> None:
    """Check 26 of a `seat_final`: a player's decision inside a window of its phase, a timer's at the end of one, and
    none missing in a window that ran out. `phase` is where the seat stands after its decisions.
    """
    for number, action in enumerate(statement.body["actions"], 1):
        windows = round_.windows_of(action["phase"])
        if action["by"] == "player":
            if not any(window["open_time"] <= action["time"] <= window["close_time"] for window in windows):
                raise statement.failure(WINDOWS, f"action {number} at {action['time']} is outside every window")
        elif action["by"] == "rule":
            raise statement.failure(WINDOWS, f"action {number} is taken by rule: at a table the timer decides")
        elif not windows or windows[-1]["end"] != WindowEnd.TIME or action["time"] != windows[-1]["close_time"]:
            raise statement.failure(WINDOWS, f"action {number} by timer is not at the end of a window that ran out")
    left_open = round_.windows_of(phase)
    if left_open and left_open[-1]["end"] == WindowEnd.TIME:
        raise statement.failure(WINDOWS, f"no decision is there for {phase}, whose window ran out")
