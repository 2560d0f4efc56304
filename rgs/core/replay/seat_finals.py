"""The links of a seat at a table: its opening (checks 7 to 10, 18, 28) and its final (11, 14 to 19, 26).

What all seats share stands in the table's statements and is checked there once (`rgs.core.replay.tables`). A final
holds the decisions, the money, and the seat's own cards if it has some.
"""

from __future__ import annotations

from typing import Any, Final

from rgs.core.bet_limits import parse_bet_limits
from rgs.core.cards import FULL_DECK
from rgs.core.games.settling import Showdown, settle
from rgs.core.games.types import Phase, Seat
from rgs.core.replay.checks import (
    ACTIONS,
    CARDS,
    DEAL,
    EARLY,
    HANDS,
    OPENING,
    RULES,
    SEATS,
    SESSION,
    SETTLEMENT,
    TABLE_DEAL,
    VOID,
)
from rgs.core.replay.finals import deal_of, faces, play, verify_balance, verify_settlement
from rgs.core.replay.openings import verify_bets_within, verify_limits, verify_pace, verify_stakes
from rgs.core.replay.reading import Statement
from rgs.core.replay.rules import Rulebook
from rgs.core.replay.seats import OpenSeat, verify_balance_after, verify_balance_before
from rgs.core.replay.sessions import Chain
from rgs.core.replay.table_finals import verify_action_times
from rgs.core.replay.table_rounds import TableRound
from rgs.core.rounds import default_end, pushed_objects, settlement_objects
from rgs.core.rulesets import Ruleset
from rgs.core.statements import LINK_ZERO
from rgs.core.statements.parts import seat_bytes
from rgs.core.tables.bodies import seat_outcome_object
from rgs.core.tlog.merkle import leaf_hash

_WOULD_HAVE: Final = ("would_have_been", "would_have_outcome")


def read_table_seat(statement: Statement, round_: TableRound | None) -> OpenSeat:
    """The seat as its opening claims it, unchecked."""
    body = statement.body
    seat = body["seat"]
    return OpenSeat(
        opening=statement.hash,
        round_id=body["round_id"],
        seat_no=int(seat["seat_no"]),
        seats=1 if round_ is None else round_.hands,
        round_no=body["round_no"],
        deal_core=b"",
        commitment=b"",
        ruleset=None if round_ is None else round_.ruleset,
        bets=tuple([(bet["bet"], int(bet["amount_minor"])) for bet in seat["bets"]]),
        balance_before_minor=int(body["balance_before_minor"]),
        balance_after_minor=int(body["balance_after_minor"]),
        time=body["time"],
        leaf=leaf_hash(seat_bytes(statement.payload)),
        table_round=LINK_ZERO if round_ is None else round_.hash,
        start_time="" if round_ is None else round_.deal_time,
    )


def verify_seat_opening(
    statement: Statement, seat: OpenSeat, chain: Chain, rulebook: Rulebook, round_: TableRound | None
) -> None:
    """Checks 7 (round number), 25 (the deal that it names), 8, 9, 10 and 18 of a `seat_opening`."""
    body = statement.body
    if chain.round_no is not None and int(seat.round_no) != chain.round_no + 1:
        raise statement.failure(SESSION, f"stage {seat.round_no} comes after {chain.round_no}")
    if round_ is None or seat.ruleset is None:
        raise statement.failure(TABLE_DEAL, "its table_deal does not stand before it, or names unknown rules")
    if body["round_id"] != round_.round_id:
        raise statement.failure(TABLE_DEAL, f"round {body['round_id']} is not that of its table_deal")
    if body["time"] < round_.deal_time:
        raise statement.failure(EARLY, f"opened at {body['time']}, before the deal at {round_.deal_time}")
    if chain.rules is not None and chain.rules != round_.body["ruleset"]:
        raise statement.failure(RULES, "the table's round names another ruleset than the session")
    if chain.jurisdiction is not None and chain.jurisdiction != round_.body["jurisdiction"]:
        raise statement.failure(RULES, "the table's round names another jurisdiction than the session")
    verify_pace(statement, chain, rulebook, round_.deal_time)
    verify_limits(statement, seat, chain, round_.deal_time)
    if chain.table is not None and chain.table != round_.table:
        raise statement.failure(DEAL, f"table {round_.table} is not the session's")
    if body["seat"]["session_id"] != body["session_id"]:
        raise statement.failure(DEAL, "the seat is another session's")
    if seat.seats > 1 and seat.seat_no > seat.seats:
        raise statement.failure(DEAL, f"seat {seat.seat_no} where {seat.seats} hands are dealt")
    verify_stakes(statement, seat, seat.ruleset)
    verify_bets_within(statement, seat, dict(parse_bet_limits(round_.body["limits"])))
    verify_bets_within(statement, seat, dict(chain.bet_limits))
    verify_balance_before(statement, chain.balance_minor, seat.balance_before_minor)
    verify_balance_after(statement, seat)


def verify_seat_final(statement: Statement, seat: OpenSeat | None, round_: TableRound | None) -> None:
    """VerificationError of the first check that the final fails against the open seat and the table's final."""
    body = statement.body
    # (11) The opening, and what the table's final says.
    if seat is None or seat.table_round == LINK_ZERO:
        raise statement.failure(OPENING, "its opening is missing, or names no table_deal before it")
    if round_ is None or round_.is_followed:
        raise statement.failure(SEATS, "the table had begun its next round before this seat had its final")
    if not round_.final or body["table_final"] != round_.final:
        raise statement.failure(EARLY, "the table_final of its round does not stand before it")
    ruleset = _verify_opening(statement, seat, round_)
    # (14) The cards.
    dealt = deal_of(seat, ruleset, round_.deck or FULL_DECK)
    if "hole_cards" in body and body["hole_cards"] != faces(dealt.hole_cards):
        raise statement.failure(CARDS, "hole_cards are not those that the deck gives")
    # (15) The decisions, (26) in their windows.
    played = play(statement, seat, dealt)
    is_void = body["status"] == "void"
    if not is_void and played.phase is not Phase.SHOWDOWN:
        raise statement.failure(ACTIONS, f"settled at {played.phase}, before the showdown")
    verify_action_times(statement, round_, played.phase)
    # (16) The hands, (17) the settlement, (19) the void.
    if is_void:
        verify_settlement(statement, VOID, pushed_objects(played.bets), body["settlement"])
    if round_.deck:  # without one a settled seat has failed check 11
        bets, outcome = _WOULD_HAVE if is_void else ("settlement", "outcome")
        hands = round_.showdown(ruleset, seat.seat_no)
        _verify_claims(statement, default_end(played), hands, body[bets], body[outcome])
    # (18) The balance.
    verify_balance(statement, seat, played)


def _verify_opening(statement: Statement, seat: OpenSeat, round_: TableRound) -> Ruleset:
    body = statement.body
    for field, expected in (
        ("opening", seat.opening),
        ("round_id", seat.round_id),
        ("seat_no", str(seat.seat_no)),
        ("round_no", seat.round_no),
        ("status", round_.final_body["status"]),
    ):
        if body[field] != expected:
            raise statement.failure(OPENING, f"{field} is {body[field]}, that of opening and table is {expected}")
    if seat.ruleset is None or not seat.is_sound:
        raise statement.failure(OPENING, "its opening has failed a check")
    is_revealed, is_void = "deck" in round_.final_body, body["status"] == "void"
    if not round_.deck and (is_revealed or not is_void):
        raise statement.failure(OPENING, "the table_final of its round has failed a check of its cards")
    due = {
        "hole_cards": is_revealed and seat.ruleset.hole_cards == "own",
        "outcome": not is_void,
        **dict.fromkeys(_WOULD_HAVE, is_void and is_revealed),
    }
    for field, is_due in due.items():
        if (field in body) != is_due:
            problem = "is missing" if is_due else "does not belong into it"
            raise statement.failure(OPENING, f"{field} {problem}, for a seat_final of status {body['status']}")
    return seat.ruleset


def _verify_claims(
    statement: Statement, played: Seat, hands: Showdown, bets: list[dict[str, str]], outcome: dict[str, Any]
) -> None:
    settlement = settle(played, hands)
    expected = seat_outcome_object(settlement.outcome, hands, is_shared=played.ruleset.hole_cards == "shared")
    if outcome != expected:
        field = min(name for name in expected.keys() | outcome.keys() if expected.get(name) != outcome.get(name))
        raise statement.failure(HANDS, f"{field} is {outcome.get(field)}, the cards give {expected.get(field)}")
    verify_settlement(statement, SETTLEMENT, settlement_objects(settlement), bets)
