"""The mutating requests as the service reads them. Each has a digest for idempotency and for the final's actions.

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
    """`bets` are those that the player places, bet -> minor units."""

    request_id: str
    session_id: str
    stage_no: int
    bets: Mapping[str, int]

    def digest(self, party: str) -> bytes:
        bets = [{"amount_minor": str(amount), "bet": bet} for bet, amount in sorted(self.bets.items())]
        return _digest(self, party, session_id=self.session_id, stage_no=str(self.stage_no), bets=bets)


@dataclass(frozen=True, slots=True)
class Act:
    """A decision on the round at `round_version`."""

    request_id: str
    session_id: str
    round_id: str
    round_version: int
    action: Action

    def digest(self, party: str) -> bytes:
        return _digest(
            self,
            party,
            session_id=self.session_id,
            round_id=self.round_id,
            round_version=str(self.round_version),
            action=self.action.value,
        )


@dataclass(frozen=True, slots=True)
class OpenSession:
    """`game` is a ruleset id, `player` the operator's pseudonym. `session_token` is the operator's own, for its wallet;
    the digest leaves it out.
    """

    request_id: str
    game: str
    player: str
    currency: str
    operator_reference: str
    limits: SessionLimits = field(default_factory=SessionLimits)
    session_token: str = field(default="", repr=False)

    def digest(self, party: str) -> bytes:
        return _digest(
            self,
            party,
            game=self.game,
            player=self.player,
            currency=self.currency,
            operator_reference=self.operator_reference,
            limits=self.limits.body(),
        )


@dataclass(frozen=True, slots=True)
class BuyParticipation:
    """`amount_minor` is in the session's currency."""

    request_id: str
    session_id: str
    purchase_no: int
    amount_minor: int

    def digest(self, party: str) -> bytes:
        return _digest(
            self,
            party,
            session_id=self.session_id,
            purchase_no=str(self.purchase_no),
            amount_minor=str(self.amount_minor),
        )


@dataclass(frozen=True, slots=True)
class EndParticipation:
    """The end of the session's one participation."""

    request_id: str
    session_id: str

    def digest(self, party: str) -> bytes:
        return _digest(self, party, session_id=self.session_id)


@dataclass(frozen=True, slots=True)
class CloseSession:
    """The end of the session."""

    request_id: str
    session_id: str

    def digest(self, party: str) -> bytes:
        return _digest(self, party, session_id=self.session_id)


SessionRequest = BuyParticipation | EndParticipation | CloseSession
"""A request that changes a session outside its rounds."""


def _digest(request: StartRound | Act | OpenSession | SessionRequest, party: str, **fields: object) -> bytes:
    """The digest of the request's own fields, with its method, its sender and its id."""
    return request_digest(
        {"method": type(request).__name__, "party": party, "request_id": request.request_id, **fields}
    )
