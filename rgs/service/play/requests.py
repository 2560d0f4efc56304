"""The mutating requests as the service reads them. Each has a digest for idempotency and for the final's actions.

A digest is taken over the parsed fields, not over wire bytes, so that an operator or auditor can compute it again
(docs/formats.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final

from rgs.core.games.types import Action
from rgs.core.limits import SessionLimits
from rgs.core.statements import request_digest
from rgs.store.changes import Operation


@dataclass(frozen=True, slots=True)
class Digested:
    """A mutating request."""

    request_id: str

    def digest(self, party: str) -> bytes:
        """The digest of the request's own fields, without the session token, with its method and its sender."""
        own = {one.name: _plain(getattr(self, one.name)) for one in fields(self) if one.name != "session_token"}
        if not own.get("table", "-"):  # solo play: as it was before there were tables
            del own["table"]
        return request_digest({**own, "method": type(self).__name__, "party": party})


def _plain(value: object) -> object:
    if isinstance(value, SessionLimits):
        return value.body()
    if isinstance(value, Mapping):
        return [{"amount_minor": str(amount), "bet": bet} for bet, amount in sorted(value.items())]
    return str(value)


@dataclass(frozen=True, slots=True)
class StartRound(Digested):
    """`bets` are those that the player places, bet -> minor units."""

    session_id: str
    round_no: int
    bets: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Act(Digested):
    """A decision on the round at `round_version`."""

    session_id: str
    round_id: str
    round_version: int
    action: Action


@dataclass(frozen=True, slots=True)
class OpenSession(Digested):
    """`game` is a ruleset id, `player` the operator's pseudonym. `session_token` is the operator's own, for its wallet;
    the digest leaves it out. `table` is for a game at tables.
    """

    game: str
    player: str
    currency: str
    operator_reference: str
    limits: SessionLimits = field(default_factory=SessionLimits)
    session_token: str = field(default="", repr=False)
    table: str = ""


@dataclass(frozen=True, slots=True)
class BuyParticipation(Digested):
    """`amount_minor` is in the session's currency."""

    session_id: str
    purchase_no: int
    amount_minor: int


@dataclass(frozen=True, slots=True)
class EndParticipation(Digested):
    """The end of the session's one participation."""

    session_id: str


@dataclass(frozen=True, slots=True)
class CloseSession(Digested):
    """The end of the session."""

    session_id: str


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
