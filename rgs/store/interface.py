"""The main store as everybody sees it, whatever database lies below: what is read, how a change is committed, and how
the processes over one store know of one another.

`rgs.store.opening` gives one; `SqliteStore` and `PostgresStore` are the two. Refuses to show a connection, a
transaction or a query: whatever is written is a `Change`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from rgs.core.rounds import Round
from rgs.core.sessions import Session
from rgs.core.statements import Signer
from rgs.ports.regulator import StageReport
from rgs.store.changes import (
    Affair,
    Answer,
    Change,
    DayCount,
    Draft,
    LargeWin,
    LatchSet,
    ReportsHeld,
    Signed,
    StoreError,
    SwitchOff,
    VoidProposal,
)
from rgs.store.outbox import OutboxRow
from rgs.store.returns import RoundToCount, TallyKept
from rgs.store.writer import Writer

RECOVERING = "recovering"
"""Key of `meta` while a recovery is under way; its value is the store epoch that ends, empty where none is."""
LOG_EPOCH = "log_epoch"
"""Key of `meta` with the store epoch that the log's default origin is made of, once a recovery has given another."""
ROW_MAX = 1 << 62
"""Row numbers stay below it (`rgs.store.numbers`), and so does every position in a page token."""


@dataclass(frozen=True, slots=True)
class TotalsKey:
    """What a line of the totals is about; `day` is the UTC date of the rounds' end."""

    day: str = ""
    operator: str = ""
    player: str = ""
    game: str = ""
    currency: str = ""


@dataclass(frozen=True, slots=True)
class TotalsRow:
    """A line of the totals, in minor units; void rounds are counted apart and not staked."""

    key: TotalsKey
    rounds: int
    staked_minor: int
    returned_minor: int
    void_rounds: int
    void_minor: int


@dataclass(frozen=True, slots=True)
class TotalsFilter:
    """Days, ends included; the others where they are not empty. A player is one of an operator."""

    first_day: str
    last_day: str
    operator: str = ""
    player: str = ""
    game: str = ""


@dataclass(frozen=True, slots=True)
class StatementRow:
    """A statement as stored; `private` is canonical JSON {"block":…,"salt":…}, empty where there is none (any more)."""

    id: int
    kind: str
    instance: str
    statement_no: int
    session_id: str
    link_no: int
    round_id: str
    hash: bytes
    envelope: bytes
    private: bytes


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """An RNG instance (node, boot, worker) with its last durable statement and draw numbers."""

    instance: str
    node: str
    boot_no: int
    worker: int
    alive: bool
    statement_no: int
    draw_no: int
    start_ms: int


@dataclass(frozen=True, slots=True)
class PartyRow:
    """One allowed certificate: hex SHA-256 of its DER form, and whom it stands for."""

    fingerprint: str
    party: str
    role: str
    jurisdiction: str
    added_ms: int
    removed_ms: int | None
    last_ms: int | None = None
    """The last moment of its validity; None where it was added before schema 5."""


class StoreReads(Protocol):
    """What may be read, beside a server too (`open_reads`). StoreError where the database does not answer."""

    async def meta(self, key: str) -> str:
        """A value of the store's own: `schema`, `store_epoch`, `parties` (a counter of changes)."""

    async def changes(self, key: str) -> int:
        """A counter of changes, `switches` or `parties`: it rises in the commit that changes one of them."""

    async def clock_ms(self) -> int | None:
        """The database's own clock; None where the database is a file."""

    async def newest_envelope(self) -> bytes:
        """The newest statement's, by row number; empty in an empty store."""

    # --- the play path --------------------------------------------------------------------------------------------

    async def session(self, session_id: str, *, fresh: bool = True) -> Session | None:
        """The session. Not `fresh`, it may be as this process saw it last, though another has moved it since: for those
        who commit what they compute from it, and try again with a fresh one when anything is refused. Every commit
        compares versions.
        """

    async def round(self, round_id: str, *, fresh: bool = True) -> Round | None:
        """The round; `fresh` as for `session`."""

    async def answer(self, party: str, method: str, request_id: str) -> Answer | None: ...
    async def session_token(self, session_id: str) -> bytes:
        """The sealed token of a session, empty where it has none."""

    # --- affairs and reports --------------------------------------------------------------------------------------

    async def affair(self, affair_id: str) -> Affair | None: ...
    async def pending_affair(self, session_id: str) -> Affair | None:
        """The one that the session waits for; what is owed waits beside it."""

    async def affair_of_request(self, party: str, method: str, request_id: str) -> Affair | None: ...
    async def opening_of_request(self, party: str, request_id: str) -> Affair | None: ...
    async def pending_affairs(self, limit: int, after: str = "") -> list[Affair]: ...
    async def owed_affairs(self, operator: str, after: str, limit: int) -> list[Affair]: ...
    async def owed_return(self, session_id: str) -> Affair | None: ...
    async def outbox(self) -> list[OutboxRow]: ...
    async def reports(self, limit: int) -> list[tuple[int, StageReport]]: ...
    async def reports_of(self, session_id: str, limit: int) -> list[tuple[int, StageReport]]: ...
    async def held_reports(self, after: tuple[str, str], limit: int) -> list[ReportsHeld]: ...
    async def held_report(self, kind: str, subject: str) -> ReportsHeld | None: ...
    async def days_to_align(self, before_day: str, before_ms: int, limit: int) -> list[DayCount]: ...

    # --- rounds in play, admins, totals ---------------------------------------------------------------------------

    async def open_rounds(self, operator: str, *, after: int, limit: int) -> list[tuple[int, Round]]: ...
    async def void_proposal(self, round_id: str) -> VoidProposal | None: ...
    async def switches(self) -> list[SwitchOff]: ...
    async def latches(self, node: str) -> list[LatchSet]: ...
    async def events(self, code: str, *, before: int, limit: int) -> list[StatementRow]: ...
    async def large_wins(self, limit: int) -> list[LargeWin]: ...
    async def totals(self, wanted: TotalsFilter, *, after: TotalsKey, limit: int) -> list[TotalsRow]: ...

    # --- the watch over returns -----------------------------------------------------------------------------------

    async def tallies(self) -> list[TallyKept]: ...
    async def unread_instances(self, limit: int) -> list[tuple[str, int]]: ...
    async def rounds_to_count(self, instance: str, after_no: int, limit: int) -> list[RoundToCount]: ...
    async def late_rounds(self, limit: int) -> list[str]: ...
    async def passed_over(self) -> int: ...

    # --- lists ----------------------------------------------------------------------------------------------------

    async def sessions_of(
        self, operator: str, player: str, *, open_only: bool, before: int, limit: int
    ) -> list[tuple[int, Session]]: ...
    async def rounds_ended(
        self, operator: str, player: str, *, before: tuple[int, int], limit: int
    ) -> list[tuple[int, Round]]: ...
    async def rounds_started(
        self, operator: str, player: str, first_ms: int, last_ms: int, limit: int
    ) -> list[Round]: ...
    async def any_session_open(self) -> bool: ...

    # --- statements and instances ---------------------------------------------------------------------------------

    async def statement_of_hash(self, hash_: bytes) -> StatementRow | None: ...
    async def statements_of_instance(
        self, instance: str, first_no: int, last_no: int, limit: int
    ) -> list[StatementRow]: ...
    async def statements_of_session(self, session_id: str, after_link: int, limit: int) -> list[StatementRow]: ...
    async def statements_of_round(self, round_id: str, after_id: int, limit: int) -> list[StatementRow]: ...
    async def round_envelopes(self, round_id: str) -> tuple[bytes, bytes]: ...
    def statements_in_order(self, after_id: int = 0) -> AsyncIterator[StatementRow]:
        """All statements: those of an instance in the order of their numbers, those of a session in that of its
        links.
        """

    async def artifact(self, sha256: str) -> bytes | None: ...
    async def instances(self, *, alive_only: bool) -> list[InstanceRow]: ...
    async def start_of(self, instance: str) -> bytes: ...
    async def previous_boot(self, node: str, worker: int) -> InstanceRow | None: ...
    async def close(self) -> None: ...


class Store(StoreReads, Protocol):
    """The open store of one process. It signs, and so commits, as the one instance that it was started for."""

    writer: Writer
    large_win_minor: int
    """From which returned - staked on a round's end is kept as a LargeWin; 0: never."""
    on_failure: Callable[[StoreError], None]
    """Told of every commit that the store could not do."""

    @property
    def draws_owed(self) -> int:
        """Draws that were not used and whose account is not durable yet: they are in flight still."""

    @property
    def draw_window(self) -> int:
        """Draws of this instance that may be in flight at once, as its durable statements say: what its start promised,
        or the last `draw_window` since.
        """

    async def start_instance(
        self, *, instance: str, node: str, boot_no: int, worker: int, start_ms: int, start: Draft, node_signer: Signer,
        signer: Signer,
    ) -> Signed:  # fmt: skip
        """Insert the instance's row and its statement 1, signed by the node key. From here on `commit` signs as this
        instance.
        """

    async def commit(self, change: Change) -> tuple[Signed, ...]:
        """Commit with the next group; the signed statements of the change, in the order of its drafts.

        Raises SessionRaceError, RequestSeenError, StoreError; nothing took effect then, but the account of a
        discarded draw.
        """

    async def forget_reports(self, row_ids: Sequence[int]) -> None:
        """Drop queued stage reports: the regulator has them."""

    async def forget_answers(self, now_ms: int, before_ms: int) -> int:
        """Drop stored answers from before a time, a share of them or a whole day's, and make room for those of the days
        from now on. Never one that is younger than `now_ms - before_ms` by the database's own clock. Called now and
        then by one process: 0 when there is nothing more to drop.
        """

    # --- many processes over one store; a file has one, which leads everything and hears nothing --------------------

    async def renew_lease(self, instance: str, lease_ms: int) -> bool:
        """The instance lives at least so long, by the database's clock; False if it has ended, whoever ended it."""

    async def lapsed_instances(self) -> list[InstanceRow]:
        """Other instances that have not ended, but whose lease has, or whose worker has begun anew: whoever leads signs
        that they are lost. A commit that ends one is refused if it lives after all.
        """

    async def lead(self, duty: str) -> bool:
        """Whether this process leads the duty now, and no other: ask before each round of it."""

    async def tell(self, payload: str) -> None:
        """Tell every process that listens, this one too; best effort, nothing waits for it."""

    async def listen(self, callback: Callable[[str], None]) -> None:
        """Call it with whatever is told, over reconnections too; what was told meanwhile is lost."""


class Parties(Protocol):
    """The allow-list over a connection of its own: changed by `rgs party …` while servers run, which notice by the
    counter. Removing a certificate keeps its row, with the time.
    """

    async def changes(self) -> int:
        """Rises with every change of the list."""

    async def allowed(self) -> list[PartyRow]:
        """The certificates that are allowed now."""

    async def all(self) -> list[PartyRow]:
        """All certificates that were ever allowed."""

    async def add(self, row: PartyRow) -> None:
        """Allow a certificate; what `rgs.store.allowed.verify_new` raises."""

    async def remove(self, fingerprint: str, removed_ms: int) -> None:
        """Deny a certificate from now on; what `rgs.store.allowed.removable` raises."""

    async def close(self) -> None: ...
