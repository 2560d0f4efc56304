"""A seat as its opening claims it, kept until its final; and the balance that it begins with (check 18)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from rgs.core.replay.checks import BALANCE
from rgs.core.replay.reading import Statement
from rgs.core.replay.rules import Rulebook
from rgs.core.rulesets import Ruleset
from rgs.core.statements import first_actions_hash
from rgs.core.statements.parts import deal_bytes, seat_bytes
from rgs.core.tlog.merkle import leaf_hash


@dataclass(slots=True)
class OpenSeat:
    """The claims of an opening. Its final is compared with these and nothing else.

    `is_sound` is False after one of the opening's own checks has failed; a final cannot be checked then.
    """

    opening: str
    """Hash of the opening."""
    round_id: str
    seat_no: int
    seats: int
    round_no: str
    deal_core: bytes
    commitment: bytes
    ruleset: Ruleset | None
    """None if it is unknown; the opening is not sound then."""
    bets: tuple[tuple[str, int], ...]
    balance_before_minor: int
    balance_after_minor: int
    time: str
    leaf: bytes
    """Leaf hash of the seat object."""
    operator: str | None = None
    """Of the session; None if no link so far names it."""
    funds_minor: int = 0
    """The most that decisions may cost in all: the balance after the bets, or what the session's limits leave."""
    is_sound: bool = True
    is_funding_seen: bool = True
    """False if links within the round are outside of the files: debits that they told are in the final's balance."""
    table_round: str = ""
    """Hash of the `table_round`, for a seat at a table. Such a seat has no deal core and no commitment of its own."""
    start_time: str = ""
    """Of a seat at a table: when its round was dealt."""

    @property
    def first_hash(self) -> bytes:
        """What the running hash of the decisions begins with."""
        return first_actions_hash(self.commitment or bytes.fromhex(self.opening))

    @property
    def staked_minor(self) -> int:
        """The sum of the opening bets."""
        return sum([amount for _, amount in self.bets])

    def state(self) -> dict[str, Any]:
        """What `seat_of_state` needs, for JSON."""
        rules = self.ruleset
        return {
            **asdict(replace(self, ruleset=None)),
            "commitment": self.commitment.hex(),
            "deal_core": self.deal_core.decode("ascii"),
            "leaf": self.leaf.hex(),
            "ruleset": rules and {"id": rules.id, "sha256": rules.sha256, "version": str(rules.version)},
        }


def seat_of_state(state: Mapping[str, Any], rulebook: Rulebook) -> OpenSeat:
    """The seat of a `state`."""
    values = {
        "bets": tuple((bet, amount) for bet, amount in state["bets"]),
        "commitment": bytes.fromhex(state["commitment"]),
        "deal_core": state["deal_core"].encode("ascii"),
        "leaf": bytes.fromhex(state["leaf"]),
        "ruleset": rulebook.ruleset(state["ruleset"]),
    }
    return OpenSeat(**{**state, **values})


def read_seat(statement: Statement, rulebook: Rulebook) -> OpenSeat:
    """The seat as the opening claims it, unchecked."""
    body = statement.body
    deal, seat = body["deal"], body["seat"]
    return OpenSeat(
        opening=statement.hash,
        round_id=deal["round_id"],
        seat_no=int(seat["seat_no"]),
        seats=int(deal["seats"]),
        round_no=body["round_no"],
        deal_core=deal_bytes(statement.payload),
        commitment=bytes.fromhex(body["commitment"]),
        ruleset=rulebook.ruleset(deal["ruleset"]),
        bets=tuple([(bet["bet"], int(bet["amount_minor"])) for bet in seat["bets"]]),
        balance_before_minor=int(body["balance_before_minor"]),
        balance_after_minor=int(body["balance_after_minor"]),
        time=body["time"],
        leaf=leaf_hash(seat_bytes(statement.payload)),
    )


def verify_balance_before(statement: Statement, known_minor: int | None, before_minor: int) -> None:
    """Check 18: a link begins with the balance that the one before left, if that is known."""
    if known_minor is not None and before_minor != known_minor:
        raise statement.failure(BALANCE, f"balance {before_minor} before, where the links leave {known_minor}")


def verify_balance_after(statement: Statement, seat: OpenSeat) -> None:
    """Check 18: the opening bets, and nothing else, leave the balance."""
    if seat.balance_after_minor != seat.balance_before_minor - seat.staked_minor:
        raise statement.failure(
            BALANCE,
            f"balance {seat.balance_after_minor} after staking {seat.staked_minor} of {seat.balance_before_minor}",
        )
