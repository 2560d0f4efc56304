"""The mutating requests as the service reads them, each with the digest that idempotency and the final's actions use.

A digest is taken over the parsed fields, not over wire bytes, so that an operator or auditor can compute it again
(docs/formats.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rgs.core.games.types import Action
from rgs.core.limits import SessionLimits
from rgs.core.statements import request_digest


@dataclass(frozen=True, slots=True)
class StartRound:
    """Bets are those that the player places, bet -> minor units."""

    request_id: str
    session_id: str
    stage_no: int
    bets: Mapping[str, int]

    def digest(self, party: str) -> bytes:
        return request_digest(
            {
                "bets": [{"amount_minor": str(amount), "bet": bet} for bet, amount in sorted(self.bets.items())],
                "method": "StartRound",
                "party": party,
                "request_id": self.request_id,
                "session_id": self.session_id,
                "stage_no": str(self.stage_no),
            }
        )


@dataclass(frozen=True, slots=True)
class Act:
    """A decision on the round at `round_version`."""

    request_id: str
    session_id: str
    round_id: str
    round_version: int
    action: Action

    def digest(self, party: str) -> bytes:
        return request_digest(
            {
                "action": self.action.value,
                "method": "Act",
                "party": party,
                "request_id": self.request_id,
                "round_id": self.round_id,
                "round_version": str(self.round_version),
                "session_id": self.session_id,
            }
        )


@dataclass(frozen=True, slots=True)
class OpenSession:
    """`game` is a ruleset id, `player` the operator's pseudonym, `session_token` the operator's own, for his wallet: no
    part of the digest.
    """

    request_id: str
    game: str
    player: str
    currency: str
    operator_reference: str
    limits: SessionLimits = field(default_factory=SessionLimits)
    session_token: str = field(default="", repr=False)

    def digest(self, party: str) -> bytes:
        return request_digest(
            {
                "currency": self.currency,
                "game": self.game,
                "limits": self.limits.body(),
                "method": "OpenSession",
                "operator_reference": self.operator_reference,
                "party": party,
                "player": self.player,
                "request_id": self.request_id,
            }
        )


@dataclass(frozen=True, slots=True)
class BuyParticipation:
    """`amount_minor` in the session's currency."""

    request_id: str
    session_id: str
    purchase_no: int
    amount_minor: int

    def digest(self, party: str) -> bytes:
        return request_digest(
            {
                "amount_minor": str(self.amount_minor),
                "method": "BuyParticipation",
                "party": party,
                "purchase_no": str(self.purchase_no),
                "request_id": self.request_id,
                "session_id": self.session_id,
            }
        )


@dataclass(frozen=True, slots=True)
class EndParticipation:
    """The end of the session's one participation."""

    request_id: str
    session_id: str

    def digest(self, party: str) -> bytes:
        return _session_digest("EndParticipation", party, self.request_id, self.session_id)


@dataclass(frozen=True, slots=True)
class CloseSession:
    """The end of the session."""

    request_id: str
    session_id: str

    def digest(self, party: str) -> bytes:
        return _session_digest("CloseSession", party, self.request_id, self.session_id)


def _session_digest(method: str, party: str, request_id: str, session_id: str) -> bytes:
    return request_digest({"method": method, "party": party, "request_id": request_id, "session_id": session_id})
