"""The mutating requests as the service reads them. Each has a digest for idempotency and for the final's actions.

A digest is taken over the parsed fields, not over wire bytes, so that an operator or auditor can compute it again
(docs/formats.md).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Final

from rgs.core.bet_limits import BetLimits, bet_limits_body
from rgs.core.games.types import Action
from rgs.core.limits import SessionLimits
from rgs.core.sessions import Mode
from rgs.core.statements import request_digest
from rgs.observe.traces import current_traceparent
from rgs.store.changes import Operation

LATER_FIELDS: Final = ("free_bet", "table", "launch_token", "mode", "bet_limits", "language", "return_url")
"""Fields that are left out of a digest where they are empty."""


@dataclass(frozen=True, slots=True)
class Digested:
    """A mutating request."""

    request_id: str

    def digest(self, party: str) -> bytes:
        """The digest of the request's own fields, without the session token, with its method and its sender."""
        return request_digest({**self._own(), "method": type(self).__name__, "party": party})

    def _own(self) -> dict[str, object]:
        """The request's own fields, as the digest has them."""
        own: dict[str, object] = {}
        for name in _names_of(type(self)):  # type: ignore[arg-type]
            value = getattr(self, name)
            if value or name not in LATER_FIELDS:  # where it is empty, as it was before there were any
                own[name] = value if type(value) is str else _plain(value)
        if token := own.pop("launch_token", None):  # the digest is kept, the token is not
            own["launch"] = hashlib.sha256(str(token).encode("utf-8")).hexdigest()
        return own


@cache
def _names_of(kind: type[Any]) -> tuple[str, ...]:
    """The fields of a digest: all but the session token."""
    return tuple(one.name for one in fields(kind) if one.name != "session_token")


def _plain(value: object) -> object:
    if isinstance(value, str | int):
        return str(value)
    if isinstance(value, SessionLimits):
        return value.body()
    if isinstance(value, tuple):
        return bet_limits_body(value)
    if isinstance(value, Mapping):
        return [{"amount_minor": str(amount), "bet": bet} for bet, amount in sorted(value.items())]
    return str(value)


@dataclass(frozen=True, slots=True)
class StartRound(Digested):
    """`bets` are those that the player places, bet -> minor units. `free_bet` is the grant that pays the
    ante, or empty.
    """

    session_id: str
    round_no: int
    bets: Mapping[str, int]
    free_bet: str = ""


@dataclass(frozen=True, slots=True)
class Act(Digested):
    """A decision on the round at `round_version`."""

    session_id: str
    round_id: str
    round_version: int
    action: Action

    def _own(self) -> dict[str, object]:
        """As for every request; a round has several of these."""
        return {
            "action": str(self.action),
            "request_id": self.request_id,
            "round_id": self.round_id,
            "round_version": str(self.round_version),
            "session_id": self.session_id,
        }


@dataclass(frozen=True, slots=True)
class OpenSession(Digested):
    """`game` is a ruleset id, `player` the operator's pseudonym. `session_token` is the operator's own, for its wallet;
    the digest leaves it out. `table` is for a game at tables. `launch_token` stands for all of them; the digest has its
    hash. `mode` None is that of the launch, or real.
    """

    game: str
    player: str
    currency: str
    operator_reference: str
    limits: SessionLimits = field(default_factory=SessionLimits)
    session_token: str = field(default="", repr=False)
    table: str = ""
    launch_token: str = field(default="", repr=False)
    mode: Mode | None = None
    bet_limits: BetLimits = ()
    language: str = ""
    return_url: str = ""


@dataclass(frozen=True, slots=True)
class CreateLaunch(Digested):
    """What `OpenSession` has, for the launch's token to open later."""

    game: str
    player: str
    currency: str
    operator_reference: str
    limits: SessionLimits = field(default_factory=SessionLimits)
    session_token: str = field(default="", repr=False)
    table: str = ""
    mode: Mode | None = None
    bet_limits: BetLimits = ()
    language: str = ""
    return_url: str = ""

    def wanted(self) -> OpenSession:
        """The session that the launch is to open."""
        return OpenSession(**{one.name: getattr(self, one.name) for one in fields(self)})


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


@dataclass(frozen=True, slots=True)
class GrantFreeBets(Digested):
    """`count` free bets for a player in one game. `stake_minor` is the ante that each pays."""

    player: str
    game: str
    currency: str
    campaign: str
    stake_minor: int
    count: int
    expires_ms: int


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
        traceparent=current_traceparent(),
    )


def free_bet_of(operation: Operation) -> str:
    """`campaign:grant_id` of the free bet that an operation of a round debits or gives back; empty if it has none."""
    return str(json.loads(operation.detail).get("free_bet", "")) if '"free_bet"' in operation.detail else ""


def expiry_of(operation: Operation) -> int:
    """When the free bet that the operation debits expires, in milliseconds."""
    return int(json.loads(operation.detail)["expires_ms"])
