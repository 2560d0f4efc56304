"""What one commit carries: a frozen description that the writer applies whole or not at all.

The service computes a change from state that it read; the writer compares versions, assigns numbers, signs, inserts
and commits (ARCHITECTURE 2.18). A change names everything it does, so that the same form serves row by row and set by
set.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, unique
from typing import Any

from rgs.core.errors import RgsError, UnavailableError
from rgs.core.rounds import Round
from rgs.core.sessions import Session
from rgs.core.statements import Signer
from rgs.ports.regulator import StageReport
from rgs.store.returns import ReturnsRecord


class StoreError(UnavailableError):
    """The store could not commit (full, locked, broken); nothing of the change took effect."""

    reason = "STORE_UNAVAILABLE"


class StoreUnknownError(StoreError):
    """The store has not told in time whether it committed. It may have, or may yet: the same request id tells."""

    reason = "STORE_OUTCOME_UNKNOWN"


class InstanceLostError(StoreError):
    """Others have declared the instance of this process lost: nothing of it is committed any more, and it ends."""

    reason = "INSTANCE_LOST"


class StoreRefusedError(RgsError):
    """The store is not fit to be opened: in use by another process, of another schema, or of a dead instance."""

    reason = "STORE_REFUSED"


class StoreAwayError(StoreRefusedError):
    """The store cannot be had now: another process holds it, or no database answers. It may be had in a moment."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A statement before it has its numbers: `body` without instance, statement_no and, where it is linked, without
    session_id, link_no and previous.
    """

    kind: str
    body: dict[str, Any] = field(repr=False)  # a transcript may stand in it
    private: dict[str, Any] | None = field(default=None, repr=False)
    """{"block": …, "salt": hex}, kept beside the statement and erasable without breaking it."""
    round_id: str = ""
    seat_no: int = 0


@dataclass(frozen=True, slots=True)
class Signed:
    """A statement as committed."""

    kind: str
    instance: str
    statement_no: int
    hash: bytes
    envelope: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """The stored answer of a mutating call: `body` is the response as sent, the signed statement kept once, by
    reference.
    """

    party: str
    method: str
    request_id: str
    digest: bytes
    body: bytes
    time_ms: int
    envelope: bytes = b""


@unique
class AffairStage(IntEnum):
    """How far an affair has moved money. It only rises: what one process has found out no other forgets.

    UNKNOWN: a call was not answered, it may have happened. PAID: the wallet holds the debit, the affair goes forward.
    UNDOING: the debit is to be rolled back, whatever else is heard of it.
    """

    BEGUN = 0
    UNKNOWN = 1
    PAID = 2
    UNDOING = 3


@dataclass(frozen=True, slots=True)
class Affair:
    """A multi-step affair (ARCHITECTURE 2.17): durable from before its first outward call until it is done.

    `status`: pending, done, undone (it came to nothing, refused or rolled back: `refusal` is what its request is told
    for ever), failed (as undone, and its request has another answer, or none). `attempts` that were not answered or
    refused, the last for `reason`; `next_ms` is when recovery tries again.
    """

    affair_id: str
    session_id: str
    kind: str
    status: str
    party: str
    method: str
    request_id: str
    digest: bytes
    amount_minor: int
    purchase_no: int
    created_ms: int
    detail: str = ""
    """Canonical JSON of what else the request asked."""
    stage: int = AffairStage.BEGUN
    attempts: int = 0
    next_ms: int = 0
    reason: str = ""
    refusal: str = ""
    """The error that has ended it, as `rgs.service.money.refusals` writes it."""


@dataclass(frozen=True, slots=True)
class DayCount:
    """What adds to one operator's day in one currency, as the central system counts it: UTC, minor units."""

    operator: str
    currency: str
    day: str
    purchases: int = 0
    bought_minor: int = 0
    stages: int = 0
    staked_minor: int = 0
    returned_minor: int = 0
    ends: int = 0
    final_balance_minor: int = 0


@dataclass(frozen=True, slots=True)
class DayAligned:
    """The central system has taken these sums of a day."""

    aligned: str
    operator: str
    day: str
    currency: str


@dataclass(frozen=True, slots=True)
class ReportsHeld:
    """The central system has refused: reports of this kind ("stages", "alignment") and subject are set aside."""

    kind: str
    subject: str
    reason: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class ReportsReleased:
    """They are told again."""

    kind: str
    subject: str


@dataclass(frozen=True, slots=True)
class StagesClosedOut:
    """The queued stages of a session, which the regulator refused, are never reported."""

    session_id: str


@dataclass(frozen=True, slots=True)
class DayClosedOut:
    """A day (`operator:currency:day`) counts as aligned as it stands now. Later changes of it are reported again."""

    subject: str


@dataclass(frozen=True, slots=True)
class PlayerErased:
    """All that the store has of a player outside the statements is emptied (`rgs.store.erasure`)."""

    operator: str
    player: str


@dataclass(frozen=True, slots=True)
class VoidProposal:
    """An admin's proposal to void a paused round."""

    round_id: str
    reason: str
    party: str
    time_ms: int


@dataclass(frozen=True, slots=True)
class VoidProposalEnd:
    """The proposal was approved, or the round resumed."""

    round_id: str


@dataclass(frozen=True, slots=True)
class SwitchOff:
    """Something is disabled: scope play, operator, game or player."""

    scope: str
    subject: str
    reason: str
    party: str
    time_ms: int


@dataclass(frozen=True, slots=True)
class SwitchOn:
    """It is enabled again."""

    scope: str
    subject: str


@dataclass(frozen=True, slots=True)
class LatchSet:
    """A guard of a node is closed until an admin clears it."""

    node: str
    guard: str
    code: str
    time_ms: int


@dataclass(frozen=True, slots=True)
class LatchCleared:
    """An admin has cleared it."""

    node: str
    guard: str


@dataclass(frozen=True, slots=True)
class PartyOn:
    """A party, if it is not known yet."""

    party: str
    role: str
    jurisdiction: str
    added_ms: int


@dataclass(frozen=True, slots=True)
class CertificateOn:
    """A certificate of a party of this role and jurisdiction is allowed; it was never in the list."""

    fingerprint: str
    added_ms: int
    party: str
    role: str
    jurisdiction: str
    last_ms: int


@dataclass(frozen=True, slots=True)
class CertificateOff:
    """An allowed certificate is denied; not the last one of an admin. Behind AllowListChanged, so that two of them do
    not pass each other by.
    """

    removed_ms: int
    fingerprint: str


@dataclass(frozen=True, slots=True)
class AllowListChanged:
    """The counter by which everybody notices: whoever has moved it holds the list until the commit."""


@dataclass(frozen=True, slots=True)
class MetaSet:
    """A value of the store's own."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class LargeWin:
    """A round that brought at least what the house wants to hear of; told by an event soon after its end."""

    round_id: str
    session_id: str
    won_minor: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class LargeWinTold:
    """Its event is in the same commit."""

    round_id: str


@dataclass(frozen=True, slots=True)
class TokenKept:
    """The operator's token of a session, sealed."""

    session_id: str
    sealed: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenDropped:
    """The session is closed: nothing is debited for it any more."""

    session_id: str


@dataclass(frozen=True, slots=True)
class BalanceTold:
    """What a session's wallet told last. It decides nothing, so it is written beside the session's version."""

    balance_minor: int
    credited_minor: int
    time_ms: int
    session_id: str


Record = (
    VoidProposal
    | VoidProposalEnd
    | SwitchOff
    | SwitchOn
    | LatchSet
    | LatchCleared
    | PartyOn
    | CertificateOn
    | CertificateOff
    | AllowListChanged
    | MetaSet
    | LargeWin
    | LargeWinTold
    | TokenKept
    | TokenDropped
    | BalanceTold
    | DayAligned
    | ReportsHeld
    | ReportsReleased
    | StagesClosedOut
    | DayClosedOut
    | PlayerErased
    | ReturnsRecord
)


@dataclass(frozen=True, slots=True)
class Turn:
    """The instance that goes on where the signing one ends by this change: from here on the store signs as it."""

    instance: str
    node: str
    boot_no: int
    worker: int
    start_ms: int
    start: Draft
    """Its `instance_start`, to be signed by the node key; `previous_boot` is filled in by the writer."""
    node_signer: Signer = field(repr=False)
    signer: Signer = field(repr=False)
    last_draw_no: int
    """Draws that the ending instance has made: all of them must be accounted for."""
    drafts: tuple[Draft, ...]
    """Signed by the new instance in the same transaction."""
    artifacts: tuple[tuple[str, str, bytes], ...]
    """As `Change.artifact`, for its drafts."""


@dataclass(slots=True)
class Change:
    """One transaction. `session` and `round` are the new states, their `version` one above what was read."""

    session: Session | None = None
    round: Round | None = None
    drafts: tuple[Draft, ...] = ()
    answer: Answer | None = None
    affair: Affair | None = None
    owed: Affair | None = None
    """Another affair: what the player is owed by what this change does."""
    counted: DayCount | None = None
    report: StageReport | None = None
    """Queued for the regulator; its `final_hash` is filled with the hash of the change's last statement."""
    draw_no: int = 0
    """The draw that this change uses, 0 for none."""
    discard: Draft | None = None
    """Signed instead, if the change cannot be committed: the account of its draw."""
    main: int | None = -1
    """Which of the drafts the answer carries, counted from the end; None: none of them."""
    artifact: tuple[str, str, bytes] | None = None
    """(sha256, name, content) kept beside its `artifact` statement."""
    pauses: bool = False
    """The round's `malfunction` becomes the hash of the change's last statement, the event that logs it."""
    records: tuple[Record, ...] = ()
    """What admins and guards leave beside their events."""
    ends: tuple[str, int] | None = None
    """(instance, end time) whose row this change ends: its own at `instance_end`, another's at `instance_lost`."""
    turn: Turn | None = None
    """Behind this change the store signs as another instance. It is a transaction of its own."""
    signed: tuple[Signed, ...] = field(default=())
    """Filled by the writer after the commit."""


class SessionRaceError(RgsError):
    """The session is no longer at the version that the change was computed from."""

    reason = "SESSION_CHANGED"


class RequestSeenError(RgsError):
    """The request id has a stored answer already."""

    reason = "REQUEST_SEEN"
