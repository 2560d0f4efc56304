"""A final against its opening: chance, cards, decisions, hands, money (checks 11 to 19). The heart of the replay.

A final holds inputs and claims; what can be computed is computed again from the inputs and compared. The steps follow
docs/verify.md. A claim that the status does not call for is refused, like one that is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from rgs.core import games
from rgs.core.cards import FULL_DECK, format_card
from rgs.core.errors import RgsError
from rgs.core.games.dealing import deal_again
from rgs.core.games.types import Action, Phase, Seat, Settlement
from rgs.core.replay.checks import (
    ACTIONS,
    BALANCE,
    CARDS,
    COMMITMENT,
    HANDS,
    OPENING,
    SETTLEMENT,
    TRANSCRIPT,
    VOID,
    Check,
)
from rgs.core.replay.reading import Statement
from rgs.core.replay.seats import OpenSeat
from rgs.core.rounds import (
    DECK_UNRECOVERABLE,
    SERVER_PARTY,
    outcome_object,
    pushed_objects,
    settle_by_default,
    settlement_objects,
)
from rgs.core.rulesets import Ruleset
from rgs.core.statements import commitment_of, hash_with_action
from rgs.core.statements.parts import action_bytes
from rng.shuffle import TranscriptError, transcript_to_deck  # type: ignore[attr-defined]  # it raises it, see there

_ACTIONS: Final = {str(action): action for action in Action}
_FACES: Final = tuple(format_card(card) for card in FULL_DECK)
_REVEALED: Final[tuple[str, ...]] = ("cards", "deck", "salt", "transcript")
_SETTLED: Final[tuple[str, ...]] = (*_REVEALED, "outcome", "settlement")


def verify_final(statement: Statement, seat: OpenSeat | None, is_seamless: bool | None) -> None:
    """VerificationError of the first check that the final fails against the open seat of its session.

    `is_seamless`: transfers debited every stake, and `seat.balance_before_minor` includes them.
    """
    body = statement.body
    # (11) The opening.
    if seat is None:
        raise statement.failure(OPENING, "its opening is missing")
    ruleset = _verify_opening(statement, seat)
    deck: Sequence[int] = FULL_DECK
    if "transcript" in body:
        # (12) The commitment.
        _verify_commitment(statement, seat)
        # (13) The transcript.
        deck = _deck(statement)
    # (14) The cards.
    dealt = deal_of(seat, ruleset, deck)
    if "cards" in body:
        _verify_cards(statement, dealt)
    # (15) The actions. Any deck serves if none is revealed: what is legal, and its cost, does not depend on cards.
    played = play(statement, seat, dealt)
    if body["status"] == "settled":
        # (16) The hands, (17) the settlement.
        if played.phase is not Phase.SHOWDOWN:
            raise statement.failure(ACTIONS, f"settled at {played.phase}, before the showdown")
        settlement = games.settle(played)
        _verify_hands(statement, settlement, body["outcome"])
        verify_settlement(statement, SETTLEMENT, settlement_objects(settlement), body["settlement"])
    else:
        # (19) The void.
        _verify_void(statement, played)
    # (18) The balance.
    verify_balance(statement, seat, played)
    if is_seamless and body["staked_minor"] != body["balance_before_minor"]:
        raise statement.failure(BALANCE, f"staked {body['staked_minor']}, debited {body['balance_before_minor']}")


# --- (11) ---


def _verify_opening(statement: Statement, seat: OpenSeat) -> Ruleset:
    body = statement.body
    for field, expected in (
        ("opening", seat.opening),
        ("round_id", seat.round_id),
        ("seat_no", str(seat.seat_no)),
        ("round_no", seat.round_no),
    ):
        if body[field] != expected:
            raise statement.failure(OPENING, f"{field} is {body[field]}, that of the open opening is {expected}")
    if seat.ruleset is None or not seat.is_sound:
        raise statement.failure(OPENING, "its opening has failed a check")
    due: tuple[str, ...]
    barred: tuple[str, ...]
    if body["status"] == "settled":
        due, barred = _SETTLED, ("void",)
    elif "void" in body and body["void"]["reason"] == DECK_UNRECOVERABLE:
        due, barred = ("void",), (*_REVEALED, "outcome")
    else:
        due, barred = ("void", *_REVEALED, "settlement"), ("outcome",)
    for field in due:
        if field not in body:
            raise statement.failure(OPENING, f"{field} is missing in a final of status {body['status']}")
    for field in barred:
        if field in body:
            raise statement.failure(OPENING, f"{field} does not belong into this final of status {body['status']}")
    return seat.ruleset


def verify_discarded(statement: Statement) -> None:
    """Check 13 for a discarded draw: its transcript is that of one shuffle."""
    _shuffled(statement)


# --- (12) (13) (14) ---


def _verify_commitment(statement: Statement, seat: OpenSeat) -> None:
    salt, transcript = bytes.fromhex(statement.body["salt"]), bytes.fromhex(statement.body["transcript"])
    if commitment_of(seat.deal_core, salt, transcript) != seat.commitment:
        raise statement.failure(COMMITMENT, "salt and transcript do not give the commitment of the opening")


def _deck(statement: Statement) -> tuple[int, ...]:
    deck = _shuffled(statement)
    if faces(deck) != statement.body["deck"]:
        raise statement.failure(TRANSCRIPT, "the transcript gives another deck")
    return deck


def _shuffled(statement: Statement) -> tuple[int, ...]:
    try:
        return transcript_to_deck(bytes.fromhex(statement.body["transcript"]))
    except TranscriptError as error:
        raise statement.failure(TRANSCRIPT, str(error)) from None


def deal_of(seat: OpenSeat, ruleset: Ruleset, deck: Sequence[int]) -> Seat:
    """The seat as dealt, for an opening whose stakes and seats are right."""
    hands = seat.seats if ruleset.hole_cards == "own" else 1
    return deal_again(ruleset, deck, seat.seat_no, seat.bets, seat.funds_minor, hands=hands)


def _verify_cards(statement: Statement, dealt: Seat) -> None:
    claimed = statement.body["cards"]
    for place, cards in (
        ("board", dealt.board),
        ("burns", dealt.burns),
        ("dealer_cards", dealt.dealer_cards),
        ("hole_cards", dealt.hole_cards),
    ):
        if claimed[place] != faces(cards):
            raise statement.failure(CARDS, f"{place} are not those that the deck gives")


def faces(cards: Iterable[int]) -> list[str]:
    """The cards as statements show them."""
    return list(map(_FACES.__getitem__, cards))


# --- (15) ---


def play(statement: Statement, seat: OpenSeat, dealt: Seat) -> Seat:
    """The seat after all actions; each must be legal in its phase, and the running hash must agree."""
    body = statement.body
    played, time, running = dealt, seat.time, seat.first_hash
    actions = zip(body["actions"], action_bytes(statement.payload), strict=True)
    for number, (action, data) in enumerate(actions, 1):
        if action["phase"] != played.phase:
            raise statement.failure(
                ACTIONS, f"action {number} is taken at {action['phase']}, the round is at {played.phase}"
            )
        if not time <= action["time"] <= body["time"]:
            raise statement.failure(ACTIONS, f"action {number} at {action['time']} is out of order")
        is_player = action["by"] == "player"
        sender = seat.operator if is_player else SERVER_PARTY
        if sender is not None and action["party"] != sender:
            raise statement.failure(ACTIONS, f"action {number} by {action['by']} is sent by {action['party']}")
        if not is_player and action["action"] != games.default_action(played):
            raise statement.failure(ACTIONS, f"action {number} by {action['by']} is not the ruleset's default")
        try:
            played = games.apply(played, _ACTIONS[action["action"]])
        except RgsError as error:
            raise statement.failure(ACTIONS, f"action {number}: {error.message}") from None
        cost_minor = played.actions[-1].amount_minor
        if action["amount_minor"] != str(cost_minor):
            raise statement.failure(
                ACTIONS, f"action {number} is priced {action['amount_minor']}, {action['action']} costs {cost_minor}"
            )
        time, running = action["time"], hash_with_action(running, data)
    if running.hex() != body["actions_hash"]:
        raise statement.failure(ACTIONS, "actions_hash is not the running hash of the actions")
    return played


# --- (16) (17) ---


def _verify_hands(statement: Statement, settlement: Settlement, claimed: dict[str, Any]) -> None:
    expected = outcome_object(settlement)
    if expected != claimed:
        field = min(name for name in expected.keys() | claimed.keys() if expected.get(name) != claimed.get(name))
        raise statement.failure(HANDS, f"{field} is {claimed.get(field)}, the cards give {expected.get(field)}")


def verify_settlement(
    statement: Statement, check: Check, expected: list[dict[str, str]], claimed: list[dict[str, str]]
) -> None:
    """The check's failure unless the claimed rows are those that are due, bet by bet."""
    if len(claimed) != len(expected):
        raise statement.failure(check, f"{len(claimed)} bets are settled, {len(expected)} were placed")
    for due, row in zip(expected, claimed, strict=True):
        if row != due:
            raise statement.failure(check, f"{due['bet']}: {_row(row)} where {_row(due)} is due")


def _row(row: dict[str, str]) -> str:
    return f"{row['bet']} {row['stake_minor']} {row['result']} {row['returned_minor']}"


# --- (18) (19) ---


def verify_balance(statement: Statement, seat: OpenSeat, played: Seat) -> None:
    """Check 18 of a final: what was staked and returned, and the balance before and after."""
    body = statement.body
    before, after = int(body["balance_before_minor"]), int(body["balance_after_minor"])
    staked, returned = int(body["staked_minor"]), int(body["returned_minor"])
    if seat.is_funding_seen and before != seat.balance_before_minor:
        raise statement.failure(
            BALANCE, f"balance {before} before, opening and transfers come to {seat.balance_before_minor}"
        )
    expected = sum([amount for _, amount in played.bets])
    if staked != expected:
        raise statement.failure(BALANCE, f"staked {staked}, the bets come to {expected}")
    due = sum([int(row["returned_minor"]) for row in body["settlement"]]) if "settlement" in body else staked
    if returned != due:
        raise statement.failure(BALANCE, f"returned {returned}, the bets return {due}")
    if after != before - staked + returned:
        raise statement.failure(BALANCE, f"{before} - {staked} + {returned} is not {after}")


def verify_approvals(statement: Statement) -> None:
    """Check 19 of a void, of one seat or of a table's round: two parties approved it, and not later than its final."""
    approvals = statement.body["void"]["approvals"]
    parties = [approval["party"] for approval in approvals]
    if len(parties) != 2 or parties[0] == parties[1]:
        raise statement.failure(VOID, "a void needs the approvals of two different parties")
    latest = max(approval["time"] for approval in approvals)
    if latest > statement.body["time"]:
        raise statement.failure(VOID, f"approved at {latest}, after the void")


def _verify_void(statement: Statement, played: Seat) -> None:
    """Every stake comes back, two parties approved, and what would have been follows from the default decisions."""
    body = statement.body
    void = body["void"]
    verify_approvals(statement)
    if "settlement" in body:
        verify_settlement(statement, VOID, pushed_objects(played.bets), body["settlement"])
    is_revealed = "deck" in body
    for claim in ("would_have_been", "would_have_outcome"):
        if (claim in void) != is_revealed:
            raise statement.failure(VOID, f"{claim} is {'missing' if is_revealed else 'claimed without a deck'}")
    if is_revealed:
        settlement = settle_by_default(played)
        _verify_hands(statement, settlement, void["would_have_outcome"])
        verify_settlement(statement, SETTLEMENT, settlement_objects(settlement), void["would_have_been"])
