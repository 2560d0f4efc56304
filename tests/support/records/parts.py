"""What a record factory (`tests.support.records.factory`) keeps of an instance, an open round and a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rgs.core.games.types import Seat
from rgs.core.rulesets import Ruleset
from rgs.core.statements import LINK_ZERO, Ed25519Signer


@dataclass
class Worker:
    """An instance: its key and its counters."""

    name: str
    node: str
    signer: Ed25519Signer
    statement_no: int = 0
    draw_no: int = 0
    reseed_counter: int = 0


@dataclass
class Round:
    """The seat of an open round."""

    round_id: str
    transcript: bytes
    salt: bytes
    commitment: bytes
    seat: Seat
    before: int
    opening: str = ""
    actions: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class SessionRecord:
    """A session: its chain and its account."""

    session_id: str
    ruleset: Ruleset
    table: str
    participation_id: str
    link_no: int = 0
    head: str = LINK_ZERO
    purchase_no: int = 0
    round_no: int = 0
    bought: int = 0
    staked: int = 0
    returned: int = 0
    paid_out: int = 0
    granted: int = 0
    reclaimed: int = 0
    """What campaigns paid for free bets, and what of it went back."""
    second: str = ""
    starts: int = 0
    funds: int | None = None
    regulator_participation_id: str = ""
    round: Round | None = None
    is_demo: bool = False

    @property
    def balance(self) -> int:
        return self.bought + self.granted - self.staked + self.returned - self.reclaimed - self.paid_out

    def named(self) -> dict[str, str]:
        """The open round, as events name it."""
        assert self.round is not None
        return {"round_id": self.round.round_id, "session_id": self.session_id}


def join(lines: Sequence[bytes]) -> bytes:
    """An export file of these lines."""
    return b"".join(line + b"\n" for line in lines)
