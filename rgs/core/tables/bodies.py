"""The bodies of the statements of a table's round, numbers and links aside (docs/formats.md, section 5).

`table_round` and `table_seats` are fixed before the draw. `table_deal` brings the draw and its commitment. Then come
the seats' `seat_opening`, the cards, `table_final`, and the seats' `seat_final`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rgs.core.cards import format_card
from rgs.core.games.dealing import Dealt, dealt_cards
from rgs.core.games.settling import Showdown, settle, showdown
from rgs.core.games.types import Outcome, Ruleset, Seat, Settlement, StakeLimits
from rgs.core.jurisdictions import Jurisdiction
from rgs.core.rounds import (
    RoundStatus,
    TakenAction,
    Void,
    actions_hash_from,
    default_end,
    hand_object,
    pushed_objects,
    rules_object,
    seat_object,
    settlement_objects,
)
from rgs.core.tables.windows import Window
from rgs.core.times import format_time

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RoundRules:
    """What a round of a table is played by. Times are milliseconds, amounts minor units."""

    table: str
    config: str
    """Hex SHA-256 of the table's configuration."""
    ruleset: Ruleset
    jurisdiction: Jurisdiction
    limits: tuple[tuple[str, StakeLimits], ...]
    betting_ms: int
    decision_ms: int
    early_close: bool


@dataclass(frozen=True, slots=True)
class RoundPlace:
    """Which round of its table it is. `previous` is the hex hash of the `table_final` before it."""

    round_id: str
    game_code: str
    table_round_no: int
    previous: str


def table_round_body(
    rules: RoundRules, place: RoundPlace, *, betting: tuple[int, int], hands: int, leaves: int, seats_root: bytes
) -> Body:
    """Body of `table_round`: `betting` is when the betting window opened and closed, `hands` how many are dealt."""
    return {
        "betting_close_time": format_time(betting[1]),
        "betting_ms": str(rules.betting_ms),
        "betting_open_time": format_time(betting[0]),
        "config": rules.config,
        "decision_ms": str(rules.decision_ms),
        "early_close": rules.early_close,
        "game_code": place.game_code,
        "hands": str(hands),
        "jurisdiction": rules_object(rules.jurisdiction),
        "leaves": str(leaves),
        "limits": [
            {"bet": bet, "max_minor": str(limits.max_minor), "min_minor": str(limits.min_minor)}
            for bet, limits in rules.limits
        ],
        "previous": place.previous,
        "round_id": place.round_id,
        "ruleset": rules_object(rules.ruleset),
        "seats_root": seats_root.hex(),
        "table": rules.table,
        "table_round_no": str(place.table_round_no),
    }


def box_seat_object(seat_no: int, session_id: str, bets: Sequence[tuple[str, int]], box: int) -> Body:
    """A seat as in `seat_opening`; its canonical bytes are a leaf of the round's tree. `box` is 0 without boxes."""
    seat = seat_object(seat_no, session_id, bets)
    return {**seat, "box": str(box)} if box else seat


def table_seats_body(table_round: str, round_id: str, seats: int, salt: bytes) -> Body:
    """Body of `table_seats`: the number of seats, and the salt of the padding behind them."""
    return {"round_id": round_id, "salt": salt.hex(), "seats": str(seats), "table_round": table_round}


def table_deal_object(table_round: str, *, instance: str, draw_no: int, reseed_counter: int, shuffle: str) -> Body:
    """The deal core of a table. It names its `table_round` by hash, and so everything that was fixed before."""
    return {
        "draw_no": str(draw_no),
        "instance": instance,
        "reseed_counter": str(reseed_counter),
        "shuffle": shuffle,
        "table_round": table_round,
    }


def table_deal_body(deal: Body, round_id: str, commitment: bytes) -> Body:
    """Body of `table_deal`."""
    return {"commitment": commitment.hex(), "deal": deal, "round_id": round_id}


def seat_opening_body(deal: str, round_id: str, round_no: int, seat: Body, balance_before_minor: int) -> Body:
    """Body of `seat_opening`: the bets of the seat leave the balance. `deal` is the hash of the `table_deal`."""
    staked = sum(int(bet["amount_minor"]) for bet in seat["bets"])
    return {
        "balance_after_minor": str(balance_before_minor - staked),
        "balance_before_minor": str(balance_before_minor),
        "deal": deal,
        "round_id": round_id,
        "round_no": str(round_no),
        "seat": seat,
    }


@dataclass(frozen=True, slots=True)
class RevealedDeal:
    """The cards of a table's deal. The repr shows none of them; a `table_final` reveals all."""

    ruleset: Ruleset
    hands: int
    deck: Sequence[int] = field(repr=False)
    salt: bytes = field(repr=False)
    transcript: bytes = field(repr=False)

    @property
    def dealt(self) -> Dealt:
        """All cards by place."""
        return dealt_cards(self.ruleset, self.deck, self.hands)

    @property
    def is_shared(self) -> bool:
        return self.ruleset.hole_cards == "shared"

    def showdown_of(self, hand_no: int) -> Showdown:
        """The hands of a seat and of the dealer. `hand_no` counts the hands dealt, from 1."""
        dealt = self.dealt
        return showdown(self.ruleset, dealt.hands[hand_no - 1], dealt.dealer_cards, dealt.board)


def table_final_body(
    table_round: str,
    deal: str,
    round_id: str,
    windows: Sequence[Window],
    revealed: RevealedDeal | None,
    void: Void | None = None,
) -> Body:
    """Body of `table_final`: settled, or void where `void` says why.

    `deal` is empty where the round was void before the draw. `revealed` is None then, and where the deck cannot be
    unsealed.
    """
    body: Body = {
        "round_id": round_id,
        "status": (RoundStatus.VOID if void else RoundStatus.SETTLED).value,
        "table_round": table_round,
        "windows": [window.body() for window in windows],
    }
    if deal:
        body["deal"] = deal
    if void is not None:
        approvals = [{"party": party, "time": format_time(time_ms)} for party, time_ms in void.approvals]
        body["void"] = {"approvals": approvals, "malfunction": void.malfunction, "reason": void.reason}
    return body if revealed is None else {**body, **revealed_object(revealed)}


def revealed_object(revealed: RevealedDeal) -> Body:
    """Deck, cards and hands as a `table_final` shows them; own hole cards stand in the seats' finals."""
    dealt, hands = revealed.dealt, revealed.showdown_of(1)
    cards = {
        "board": _faces(dealt.board),
        "burns": _faces(dealt.burns),
        "dealer_cards": _faces(dealt.dealer_cards),
        **({"hole_cards": _faces(dealt.hands[0])} if revealed.is_shared else {}),
    }
    return {
        "cards": cards,
        "deck": _faces(revealed.deck),
        "hands": {
            "dealer_hand": hand_object(hands.dealer_hand),
            "dealer_qualifies": hands.dealer_qualifies,
            **(player_hands_object(hands) if revealed.is_shared else {}),
        },
        "salt": revealed.salt.hex(),
        "transcript": revealed.transcript.hex(),
    }


def player_hands_object(hands: Showdown) -> Body:
    """The player's hands; `flop_hand` only where a bet looks at it."""
    flop = {} if hands.flop_hand is None else {"flop_hand": hand_object(hands.flop_hand)}
    return {**flop, "player_hand": hand_object(hands.player_hand)}


def seat_outcome_object(outcome: Outcome, hands: Showdown, *, is_shared: bool) -> Body:
    """The outcome of a seat, with its hands where they are its own."""
    return {"outcome": outcome.value, **({} if is_shared else player_hands_object(hands))}


@dataclass(frozen=True, slots=True)
class EndedSeat:
    """A seat after its last decision: what its `seat_final` says of it."""

    opening: str
    table_final: str
    round_id: str
    round_no: int
    seat_no: int
    balance_before_minor: int
    actions: tuple[TakenAction, ...]


class SeatResult(NamedTuple):
    """How a seat ended: its settlement, and the fields of its `seat_final` that say so. Seats of a shared hand with the
    same bets and decisions have the same.
    """

    settlement: Settlement
    fields: Body


def seat_result(seat: Seat, hands: Showdown) -> SeatResult:
    """The result of a seat that stands at the showdown; `hands` are its own."""
    settlement = settle(seat, hands)
    is_shared = seat.ruleset.hole_cards == "shared"
    fields = {
        "outcome": seat_outcome_object(settlement.outcome, hands, is_shared=is_shared),
        "settlement": settlement_objects(settlement),
        **({} if is_shared else {"hole_cards": _faces(seat.hole_cards)}),
    }
    return SeatResult(settlement, fields)


def seat_final_body(ended: EndedSeat, result: SeatResult) -> Body:
    """Body of a settled `seat_final`."""
    settlement = result.settlement
    end = _end_object(ended, RoundStatus.SETTLED, settlement.staked_minor, settlement.returned_minor)
    return {**end, **result.fields}


def seat_void_body(
    ended: EndedSeat, bets: Sequence[tuple[str, int]], seat: Seat | None, hands: Showdown | None
) -> Body:
    """Body of a void `seat_final`: every bet comes back. `seat` and `hands` are None where nothing is revealed."""
    staked = sum(amount for _, amount in bets)
    body = {**_end_object(ended, RoundStatus.VOID, staked, staked), "settlement": pushed_objects(bets)}
    if seat is None or hands is None:
        return body
    is_shared = seat.ruleset.hole_cards == "shared"
    settlement = settle(default_end(seat), hands)
    return {
        **body,
        "would_have_been": settlement_objects(settlement),
        "would_have_outcome": seat_outcome_object(settlement.outcome, hands, is_shared=is_shared),
        **({} if is_shared else {"hole_cards": _faces(seat.hole_cards)}),
    }


def _end_object(ended: EndedSeat, status: RoundStatus, staked_minor: int, returned_minor: int) -> Body:
    before_minor = ended.balance_before_minor
    return {
        "actions": [action.body() for action in ended.actions],
        "actions_hash": actions_hash_from(bytes.fromhex(ended.opening), ended.actions).hex(),
        "balance_after_minor": str(before_minor - staked_minor + returned_minor),
        "balance_before_minor": str(before_minor),
        "opening": ended.opening,
        "returned_minor": str(returned_minor),
        "round_id": ended.round_id,
        "round_no": str(ended.round_no),
        "seat_no": str(ended.seat_no),
        "staked_minor": str(staked_minor),
        "status": status.value,
        "table_final": ended.table_final,
    }


def _faces(cards: Sequence[int]) -> list[str]:
    return [format_card(card) for card in cards]
