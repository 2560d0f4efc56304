"""The life of a round: what is fixed before the draw, the bodies of its opening and final, and its state between.

A round is one deal and its seats (ARCHITECTURE 2.1); a `Round` is one seat of it, self-contained. The deck is never
part of the durable state in plain: `Round.sealed` holds salt and transcript, sealed by the service.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any

from rgs.core import games
from rgs.core.card_texts import CATEGORY_TEXTS, texts_of
from rgs.core.free_bets import granted_minor
from rgs.core.games.dealing import deal_again
from rgs.core.games.decisions import apply_again
from rgs.core.games.types import Action, ActionTaken, Phase, Seat, Settlement
from rgs.core.hands import HandValue
from rgs.core.jurisdictions import Jurisdiction
from rgs.core.rulesets import Ruleset
from rgs.core.statements import first_actions_hash, format_canonical, hash_with_action
from rgs.core.times import format_time
from rgs.core.tlog.merkle import leaf_hash, root_of


class RoundStatus(StrEnum):
    """OPEN until the last decision, then SETTLED; VOID only through an approved malfunction."""

    OPEN = "open"
    SETTLED = "settled"
    VOID = "void"


SERVER_PARTY = "rgs"
"""The party of a decision that a timer took, or the rule for interrupted rounds."""


@dataclass(frozen=True, slots=True)
class TakenAction:
    """A decision as in the final. `party` sent it: the session's operator for its player, or SERVER_PARTY.
    `request_digest` is the hex digest of its request.
    """

    phase: str
    action: str
    amount_minor: int
    time_ms: int
    by: str
    party: str
    request_digest: str

    def body(self) -> dict[str, Any]:
        """The object that is signed and hashed."""
        return {
            "action": self.action,
            "amount_minor": str(self.amount_minor),
            "by": self.by,
            "party": self.party,
            "phase": self.phase,
            "request_digest": self.request_digest,
            "time": format_time(self.time_ms),
        }


@dataclass(frozen=True)
class Round:
    """One seat of a round as durable state. `version` rises from 1 with every decision; writers swap on it."""

    round_id: str
    session_id: str
    operator: str
    player: str
    ruleset_id: str
    round_no: int
    seat_no: int
    game_code: str
    instance: str
    draw_no: int
    deal: bytes
    """The deal core's canonical bytes, as they stand in the opening."""
    commitment: bytes
    bets: tuple[tuple[str, int], ...]
    """Opening bets, the system's own among them."""
    balance_before_minor: int
    start_ms: int
    sealed: bytes = b""
    """Salt and transcript, AES-256-GCM; empty once revealed."""
    status: RoundStatus = RoundStatus.OPEN
    version: int = 1
    actions: tuple[TakenAction, ...] = ()
    end_ms: int = 0
    staked_minor: int = 0
    returned_minor: int = 0
    opening_hash: str = ""
    funds_minor: int = 0
    """The most that decisions may cost in all, after the opening bets: balance and session limits."""
    malfunction: str = ""
    """Hex hash of the event that logged a malfunction, while the round is paused (RULEBOOK R-6)."""
    malfunction_code: str = ""
    table_id: str = ""
    """The table of a seat; empty in solo play. Deck, deal and commitment of a table's round stand in its own row."""
    phase: str = ""
    """Of a seat at a table: the phase that it stands in after its own decisions."""
    path: bytes = b""
    """Of a seat at a table: its path to the root over the seats, 32 bytes a step."""
    free_bet: str = ""
    """`campaign:grant_id` of the free bet that pays ante and blind; empty if the player pays them."""

    @property
    def grant_id(self) -> str:
        """The free bet's id; empty without one."""
        return self.free_bet.partition(":")[2]

    @property
    def granted_minor(self) -> int:
        """What a free bet pays of the opening bets; 0 without one."""
        return granted_minor(self.bets) if self.free_bet else 0

    def actions_hash(self) -> bytes:
        """Running hash of the decisions so far, 32 bytes."""
        start = bytes.fromhex(self.opening_hash) if self.table_id else self.commitment
        return actions_hash_from(start, self.actions)


def actions_hash_from(start: bytes, actions: Sequence[TakenAction]) -> bytes:
    """Running hash of these decisions, 32 bytes. It begins with the commitment, at a table with the seat's opening."""
    return _running_hash(start, tuple(actions))


@lru_cache(maxsize=4096)
def _running_hash(start: bytes, actions: tuple[TakenAction, ...]) -> bytes:
    """Each step of a round needs the hash that the step before has had."""
    if not actions:
        return first_actions_hash(start)
    return hash_with_action(_running_hash(start, actions[:-1]), _action_bytes(actions[-1]))


@lru_cache(maxsize=4096)
def _action_bytes(action: TakenAction) -> bytes:
    """Canonical. Silent seats of a table share their actions, and each step of a round hashes those before it."""
    return format_canonical(action.body())


def seat_object(seat_no: int, session_id: str, bets: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """The seat as in the opening; its canonical bytes are a leaf of the deal's `seats_root`."""
    return {
        "bets": [{"amount_minor": str(amount), "bet": bet} for bet, amount in bets],
        "seat_no": str(seat_no),
        "session_id": session_id,
    }


def seats_root(seats: Sequence[dict[str, Any]]) -> bytes:
    """RFC 6962 root over the seats in seat order, 32 bytes."""
    return root_of([leaf_hash(format_canonical(seat)) for seat in seats])


def rules_object(rules: Ruleset | Jurisdiction) -> dict[str, str]:
    """A ruleset or jurisdiction as statements name it."""
    return {"id": rules.id, "sha256": rules.sha256, "version": str(rules.version)}


def deal_core(
    *,
    round_id: str,
    game_code: str,
    ruleset: Ruleset,
    shuffle: str,
    instance: str,
    draw_no: int,
    reseed_counter: int,
    seats: Sequence[dict[str, Any]],
    start_ms: int,
    table: str = "",
) -> dict[str, Any]:
    """The deal core, which the commitment binds (ARCHITECTURE 2.7). It is byte-equal in the openings of all seats."""
    return {
        "draw_no": str(draw_no),
        "game_code": game_code,
        "instance": instance,
        "reseed_counter": str(reseed_counter),
        "round_id": round_id,
        "ruleset": rules_object(ruleset),
        "seats": str(len(seats)),
        "seats_root": seats_root(seats).hex(),
        "shuffle": shuffle,
        "start_time": format_time(start_ms),
        "table": table,
    }


def opening_body(
    round_: Round, deal: dict[str, Any], seat: dict[str, Any], *, path: Sequence[bytes] = ()
) -> dict[str, Any]:
    """Body of `round_opening`, numbers and links aside."""
    staked = sum([amount for _, amount in round_.bets])
    return {
        "balance_after_minor": str(round_.balance_before_minor - staked),
        "balance_before_minor": str(round_.balance_before_minor),
        "commitment": round_.commitment.hex(),
        "deal": deal,
        "path": [node.hex() for node in path],
        "seat": seat,
        "round_no": str(round_.round_no),
    }


def seat_of(round_: Round, ruleset: Ruleset, deck: Sequence[int]) -> Seat:
    """The seat as the rules see it after all decisions so far."""
    seat = deal_again(ruleset, deck, round_.seat_no, round_.bets, round_.funds_minor)
    if not round_.actions:
        return seat
    taken = [ActionTaken(Phase(one.phase), Action(one.action), one.amount_minor) for one in round_.actions]
    return apply_again(seat, taken)


def hand_object(hand: HandValue) -> dict[str, Any]:
    """A hand as statements show it."""
    return {"best5": texts_of(hand.best5), "category": CATEGORY_TEXTS[hand.category]}


def outcome_object(settlement: Settlement) -> dict[str, Any]:
    """Outcome and hands, as statements show them."""
    outcome: dict[str, Any] = {
        "dealer_hand": hand_object(settlement.dealer_hand),
        "dealer_qualifies": settlement.dealer_qualifies,
        "outcome": str(settlement.outcome),
        "player_hand": hand_object(settlement.player_hand),
    }
    if settlement.flop_hand is not None:
        outcome["flop_hand"] = hand_object(settlement.flop_hand)
    return outcome


def settlement_objects(settlement: Settlement) -> list[dict[str, str]]:
    """The settled bets, as statements show them."""
    return [
        {
            "bet": bet.bet,
            "result": str(bet.result),
            "returned_minor": str(bet.returned_minor),
            "stake_minor": str(bet.stake_minor),
        }
        for bet in settlement.bets
    ]


def pushed_objects(bets: Sequence[tuple[str, int]]) -> list[dict[str, str]]:
    """The bets of a void round: each comes back."""
    return [
        {"bet": bet, "result": "push", "returned_minor": str(amount), "stake_minor": str(amount)}
        for bet, amount in bets
    ]


@dataclass(frozen=True, slots=True)
class UnsealedDeck:
    """An unsealed deck: the seat after all decisions so far, deck, salt and transcript. The repr shows none of it. The
    end of a round reveals all of it.
    """

    seat: Seat = field(repr=False)
    deck: Sequence[int] = field(repr=False)
    salt: bytes = field(repr=False)
    transcript: bytes = field(repr=False)


def final_body(
    round_: Round, revealed: UnsealedDeck, settlement: Settlement, *, actions_hash: bytes, debited_minor: int = 0
) -> dict[str, Any]:
    """Body of a settled `round_final`, numbers and links aside: the inputs and the claims, all revealed.

    `debited_minor` was debited for decisions inside the round (seamless mode), and came to the balance before it.
    """
    before_minor = round_.balance_before_minor + debited_minor
    return {
        **_end_object(
            round_, RoundStatus.SETTLED, actions_hash, before_minor, settlement.staked_minor, settlement.returned_minor
        ),
        **_revealed_object(revealed),
        "outcome": outcome_object(settlement),
        "settlement": settlement_objects(settlement),
    }


def _end_object(
    round_: Round, status: RoundStatus, actions_hash: bytes, before_minor: int, staked_minor: int, returned_minor: int
) -> dict[str, Any]:
    return {
        "actions": [action.body() for action in round_.actions],
        "actions_hash": actions_hash.hex(),
        "balance_after_minor": str(before_minor - staked_minor + returned_minor),
        "balance_before_minor": str(before_minor),
        "opening": round_.opening_hash,
        "returned_minor": str(returned_minor),
        "round_id": round_.round_id,
        "seat_no": str(round_.seat_no),
        "round_no": str(round_.round_no),
        "staked_minor": str(staked_minor),
        "status": str(status),
    }


@dataclass(frozen=True, slots=True)
class Void:
    """Why a round is void (ARCHITECTURE 2.20): a coded reason, a logged malfunction, two different admins.

    `approvals` are (party, time in milliseconds): who proposed, who approved.
    """

    reason: str
    malfunction: str
    approvals: tuple[tuple[str, int], tuple[str, int]]


DECK_UNRECOVERABLE = "DECK_UNRECOVERABLE"
"""The only reason that reveals nothing: the deck cannot be opened."""


def void_body(
    round_: Round, void: Void, *, staked_minor: int, revealed: UnsealedDeck | None, debited_minor: int = 0
) -> dict[str, Any]:
    """Body of a void `round_final`: all stakes come back; what would have been follows from the default decisions.

    `revealed` is None where the deck cannot be opened; `debited_minor` as in `final_body`. Numbers and links aside.
    """
    before_minor = round_.balance_before_minor + debited_minor
    approvals = [{"party": party, "time": format_time(time_ms)} for party, time_ms in void.approvals]
    reasons: dict[str, Any] = {"approvals": approvals, "malfunction": void.malfunction, "reason": void.reason}
    body = _end_object(round_, RoundStatus.VOID, round_.actions_hash(), before_minor, staked_minor, staked_minor)
    if revealed is None:
        return {**body, "void": reasons}
    settlement = settle_by_default(revealed.seat)
    reasons["would_have_been"] = settlement_objects(settlement)
    reasons["would_have_outcome"] = outcome_object(settlement)
    return {
        **body,
        **_revealed_object(revealed),
        "settlement": pushed_objects(revealed.seat.bets),
        "void": reasons,
    }


def settle_by_default(seat: Seat) -> Settlement:
    """The settlement if the ruleset's default decisions were taken from here on (RULEBOOK T-2, C-10)."""
    return games.settle(default_end(seat))


def default_end(seat: Seat) -> Seat:
    """The seat after the ruleset's default decisions from here on."""
    while seat.phase is not Phase.SHOWDOWN:
        seat = games.apply(seat, games.default_action(seat))
    return seat


def staked_so_far(round_: Round) -> int:
    """Opening bets and the cost of the decisions taken, in minor units."""
    return sum([amount for _, amount in round_.bets]) + sum(taken.amount_minor for taken in round_.actions)


def _revealed_object(revealed: UnsealedDeck) -> dict[str, Any]:
    places = ("board", "burns", "dealer_cards", "hole_cards")
    return {
        "cards": {place: texts_of(getattr(revealed.seat, place)) for place in places},
        "deck": texts_of(revealed.deck),
        "salt": revealed.salt.hex(),
        "transcript": revealed.transcript.hex(),
    }
