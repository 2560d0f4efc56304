"""The mutating requests as the service reads them. Each has a digest for idempotency and for the final's actions.

A digest is taken over the parsed fields, not over wire bytes, so that an operator or auditor can compute it again
(docs/formats.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from rgs.core.games.types import Action
from rgs.core.limits import SessionLimits
from rgs.core.statements import request_digest
from rgs.store.changes import Operation


@dataclass(frozen=True, slots=True)
class StartRound:
    """`bets` are those that the player places, bet -> minor units."""

    request_id: str
    session_id: str
    round_no: int
    bets: Mapping[str, int]

    def digest(self, party: str) -> bytes:
        bets = [{"amount_minor": str(amount), "bet": bet} for bet, amount in sorted(self.bets.items())]
        return _digest(self, party, session_id=self.session_id, round_no=str(self.round_no), bets=bets)


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


KINDS: Final[Mapping[type, str]] = {
    OpenSession: "open",
    BuyParticipation: "purchase",
    EndParticipation: "end",
    CloseSession: "close",
    StartRound: "start",
    Act: "act",
}
"""The kind of the operation that a request begins."""
SessionRequest = BuyParticipation | EndParticipation | CloseSession
"""A request that changes a session outside its rounds."""
_Request = StartRound | Act | OpenSession | SessionRequest


def intent_of(
    request: _Request, session_id: str, operation_id: str, party: str, digest: bytes, now_ms: int, amount_minor: int = 0
) -> Operation:
    """The operation that a request of a party begins, before its first step."""
    return Operation(
        operation_id=operation_id,
        session_id=session_id,
        kind=KINDS[type(request)],
        status="pending",
        party=party,
        method=type(request).__name__,
        request_id=request.request_id,
        digest=digest,
        amount_minor=amount_minor,
        purchase_no=0,
        created_ms=now_ms,
    )


def _digest(request: _Request, party: str, **fields: object) -> bytes:
    """The digest of the request's own fields, with its method, its sender and its id."""
    return request_digest(
        {"method": type(request).__name__, "party": party, "request_id": request.request_id, **fields}
    )
