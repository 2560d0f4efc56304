"""What one commit carries. The writer applies a change as a whole or not at all.

The service computes a change from what it has read. The writer compares versions, assigns numbers, signs, inserts and
commits (ARCHITECTURE 2.18, durable before said). A change names everything that it does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, unique
from typing import Any

from rgs.core.errors import RgsError, UnavailableError
from rgs.core.rounds import Round
from rgs.core.sessions import Session
from rgs.core.statements import Signer
from rgs.core.tables.rows import TableRound, TableRow
from rgs.core.tables.seating import Sitting
from rgs.ports.regulator import StageReport
from rgs.store.finals import FinalsRecord
from rgs.store.free_bets import FreeBetRecord
from rgs.store.launches import LaunchRecord
from rgs.store.returns import ReturnsRecord
from rgs.store.table_records import TableRecord


class StoreError(UnavailableError, reason="STORE_UNAVAILABLE"):
    """The store could not commit (full, locked, broken); nothing of the change took effect."""


class StoreUnknownError(StoreError, reason="STORE_OUTCOME_UNKNOWN"):
    """The store did not answer in time. It may have committed, or still may: send the same request id again."""


class OvertakenError(StoreError):
    """Another process has done meanwhile what this change was to do; nothing of it took effect. The store is well."""


class InstanceLostError(StoreError, reason="INSTANCE_LOST"):
    """Another process has declared the instance of this process lost. It commits nothing more and ends."""


class StoreRefusedError(RgsError, reason="STORE_REFUSED"):
    """The store cannot be opened: another process uses it, its schema is another one, or the instance is dead."""


class StoreAwayError(StoreRefusedError):
    """Another process holds the store, or no database answers. A later try may succeed."""


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
    """The stored answer of a mutating call. `body` is the response as sent, without its signed statement: that is kept
    once, and comes back as `envelope`.
    """

    party: str
    method: str
    request_id: str
    digest: bytes
    body: bytes
    time_ms: int
    envelope: bytes = b""


@unique
class OperationProgress(IntEnum):
    """How far an operation has moved money. It only rises, so that no process forgets what another one found out.

    UNKNOWN: a call got no answer and may have taken effect. PAID: the wallet holds the debit, the operation goes
    forward. UNDOING: the debit is to be rolled back, whatever answers come later.
    """

    BEGUN = 0
    UNKNOWN = 1
    PAID = 2
    UNDOING = 3


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of several steps (ARCHITECTURE 2.17, one way forward). It is stored before its first outward call.

    `status`: pending; done; undone (refused or rolled back: `refusal` answers its request for ever); failed (as undone,
    but its request has another answer, or none). `attempts` counts the calls that got no answer or a refusal, the last
    one for `reason`; `next_ms` is when recovery tries again.
    """

    operation_id: str
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
    progress: int = OperationProgress.BEGUN
    attempts: int = 0
    next_ms: int = 0
    reason: str = ""
    refusal: str = ""
    """The error that ended it, as `rgs.service.money.refusals` writes it."""
    traceparent: str = ""
    """The trace of the call that began it (W3C Trace Context); recovery continues it. Empty: it was not traced."""


@dataclass(frozen=True, slots=True)
class DayCount:
    """What is added to one operator's day in one currency, as the regulator counts it: UTC, minor units."""

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
    """The regulator has accepted these sums of a day."""

    aligned: str
    operator: str
    day: str
    currency: str


@dataclass(frozen=True, slots=True)
class ReportsHeld:
    """The regulator has refused: reports of this kind ("stages", "alignment") and subject are set aside."""

    kind: str
    subject: str
    reason: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class ReportsReleased:
    """Reports that were set aside are sent again."""

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
    """All that the store has of a player outside the statements is emptied (`rgs.store.rows`)."""

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
    """What was disabled is enabled again."""

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
    """An admin has cleared the latch of a guard."""

    node: str
    guard: str


@dataclass(frozen=True, slots=True)
class PartyOn:
    """A party is added unless it is known."""

    party: str
    role: str
    jurisdiction: str
    added_ms: int
    operator: str = ""


@dataclass(frozen=True, slots=True)
class CertificateOn:
    """A certificate of a party with this role, jurisdiction and operator is allowed. It must be new to the list."""

    fingerprint: str
    added_ms: int
    party: str
    role: str
    jurisdiction: str
    last_ms: int
    operator: str = ""


@dataclass(frozen=True, slots=True)
class CertificateOff:
    """An allowed certificate is denied, unless it is the last one of an admin. In its commit it follows
    AllowListChanged, so that one of two such commits waits for the other.
    """

    removed_ms: int
    fingerprint: str


@dataclass(frozen=True, slots=True)
class AllowListChanged:
    """The counter rises by which servers notice a change. Whoever has raised it holds the list until the commit."""


@dataclass(frozen=True, slots=True)
class MetaSet:
    """A value about the store itself."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class LargeWin:
    """A round that won at least the configured amount. An event reports it soon after its end."""

    round_id: str
    session_id: str
    won_minor: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class LargeWinReported:
    """The event of a large win is in the same commit."""

    round_id: str


@dataclass(frozen=True, slots=True)
class TokenKept:
    """The operator's token of a session, sealed."""

    session_id: str
    sealed: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenDropped:
    """The token goes when its session is closed: nothing more is debited for it."""

    session_id: str


@dataclass(frozen=True, slots=True)
class ReferenceFreed:
    """A session that was never opened gives the operator's reference back: another may be opened with it."""

    session_id: str


@dataclass(frozen=True, slots=True)
class BalanceReported:
    """The balance that a session's wallet named last. It decides nothing, so the session keeps its version."""

    balance_minor: int
    credited_minor: int
    time_ms: int
    session_id: str


@dataclass(frozen=True, slots=True)
class TableGuard:
    """The change holds only while the table stands at this version, and until `until_ms` by the store's clock (0: no
    limit). The store refuses it otherwise with TableMovedError.
    """

    table_id: str
    version: int
    until_ms: int = 0


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
    | LargeWinReported
    | TokenKept
    | TokenDropped
    | BalanceReported
    | ReferenceFreed
    | DayAligned
    | ReportsHeld
    | ReportsReleased
    | StagesClosedOut
    | DayClosedOut
    | PlayerErased
    | FinalsRecord
    | LaunchRecord
    | ReturnsRecord
    | TableRecord
    | FreeBetRecord
)


@dataclass(frozen=True, slots=True)
class NewInstance:
    """An instance that begins, with its row and its statement 1. From here on the store signs as it."""

    instance: str
    node: str
    boot_no: int
    worker: int
    start_ms: int
    start: Draft
    """Its `instance_start`, to be signed by the node key."""
    node_signer: Signer = field(repr=False)
    signer: Signer = field(repr=False)

    @property
    def row(self) -> tuple[str, str, int, int, int]:
        """What its row begins with in the table `instances`."""
        return (self.instance, self.node, self.boot_no, self.worker, self.start_ms)


@dataclass(frozen=True, slots=True)
class InstanceHandover(NewInstance):
    """The instance that follows the one that ends with this change; the writer adds `previous_boot` to its `start`."""

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
    operation: Operation | None = None
    credit: Operation | None = None
    """Another operation: the credit that the player is owed by this change."""
    counted: DayCount | None = None
    report: StageReport | None = None
    """Queued for the regulator; its `final_hash` is filled with the hash of the change's last statement."""
    draw_no: int = 0
    """The draw that this change uses, 0 for none."""
    discard: Draft | None = None
    """The account of its draw, which is signed instead where the change cannot be committed."""
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
    handover: InstanceHandover | None = None
    """After this change the store signs as another instance. Such a change is a transaction of its own."""
    table: TableRow | None = None
    """A table's new state, its version one above what was read; version 1 is a new table. The hashes of what the change
    signs for the table (`table_round`, `table_deal`, `table_final`) are filled in.
    """
    guard: TableGuard | None = None
    """Where the table must stand."""
    table_round: TableRound | None = None
    """A round of the table; its `version` as for `table`."""
    sitting: Sitting | None = None
    """A seat at a table; its `version` as for `table`."""


class SessionRaceError(RgsError, reason="SESSION_CHANGED"):
    """The session is no longer at the version that the change was computed from."""


class TableMovedError(RgsError, reason="TABLE_MOVED"):
    """The table, or a seat of it, is no longer at the version that the change was computed from, or its time is up."""


class RequestSeenError(RgsError, reason="REQUEST_SEEN"):
    """The request id has a stored answer already."""
