"""The main store as everybody sees it, whatever database lies below: what is read, how a change is committed, and what
the processes over one store learn of one another.

`rgs.store.opening` gives one; `SqliteStore` and `PostgresStore` are the two. Every query uses an index, and a page is
bounded by its caller's limit. Nobody outside gets a connection, a transaction or a query: all that is written is a
`Change`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from rgs.core.errors import RgsError
from rgs.core.rounds import Round
from rgs.core.sessions import Session
from rgs.observe.traces import SpanKind, TraceContext, Tracer, format_traceparent
from rgs.store.archiving import ArchivingReads
from rgs.store.changes import (
    Answer,
    Change,
    LargeWin,
    LatchSet,
    NewInstance,
    OvertakenError,
    Signed,
    StoreError,
    SwitchOff,
    VoidProposal,
)
from rgs.store.condition import ConditionReads
from rgs.store.counts import CountReads
from rgs.store.finals import FinalsReads, ListedFinal
from rgs.store.free_bets import FreeBetReads
from rgs.store.history_reads import DayTotalsKey as DayTotalsKey  # noqa: PLC0414 - offered here too
from rgs.store.history_reads import DayTotalsRow as DayTotalsRow  # noqa: PLC0414
from rgs.store.history_reads import HistoryReads
from rgs.store.launches import LaunchReads
from rgs.store.memory import Memory
from rgs.store.outbox import OutboxReads
from rgs.store.returns import ReturnsReads
from rgs.store.rows import LARGE_WINS, LATCHES, ROUNDS, SESSIONS, SWITCHES, TOTALS, VOIDS
from rgs.store.statement_reads import StatementReads
from rgs.store.statement_reads import StatementRow as StatementRow  # noqa: PLC0414 - offered here too
from rgs.store.support_reads import SupportReads
from rgs.store.table_reads import TableReads
from rgs.store.table_records import SeatTraced
from rgs.store.tables import ROW_MAX as ROW_MAX  # noqa: PLC0414 - offered here too
from rgs.store.tables import Table
from rgs.store.writer import Writer

RECOVERING = "recovering"
"""Key of `meta` for a recovery that is under way: its value is the store epoch that ends, else empty."""
LOG_EPOCH = "log_epoch"
"""Key of `meta` with the store epoch in the log's default origin, once a recovery has begun another epoch."""


@dataclass(frozen=True, slots=True)
class TotalsKey:
    """The key of a line of the totals; `day` is the UTC date of the rounds' end."""

    day: str = ""
    operator: str = ""
    player: str = ""
    game: str = ""
    currency: str = ""


@dataclass(frozen=True, slots=True)
class TotalsRow:
    """A line of the totals, in minor units. Void rounds are counted apart; their stakes are not in `staked_minor`."""

    key: TotalsKey
    rounds: int
    staked_minor: int
    returned_minor: int
    void_rounds: int
    void_minor: int


@dataclass(frozen=True, slots=True)
class TotalsFilter:
    """The days, both included, and what is not empty. A player needs an operator."""

    first_day: str
    last_day: str
    operator: str = ""
    player: str = ""
    game: str = ""


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
    """One allowed certificate: hex SHA-256 of its DER form, and the party that it identifies."""

    fingerprint: str
    party: str
    role: str
    jurisdiction: str
    added_ms: int
    removed_ms: int | None
    last_ms: int | None = None
    """The end of its validity; None where it was added before schema 5."""
    operator: str = ""
    """Whose players a party of the role support may look up; empty: those of all operators."""


INSTANCES: Final = Table("instances", InstanceRow)

_ANSWER: Final = (
    "SELECT a.party, a.method, a.request_id, a.digest, a.body, a.time_ms, COALESCE(s.envelope, x''),"
    " a.instance, a.statement_no FROM answers a"
    " LEFT JOIN statements s ON s.instance = a.instance AND s.statement_no = a.statement_no"
    " WHERE a.request_id = ? AND a.method = ? AND a.party = ?"
)
_TOTALS: Final = (
    TOTALS.select + "INDEXED BY totals_by_day WHERE day BETWEEN ? AND ?"
    " AND (day, operator, player, game, currency) > (?, ?, ?, ?, ?) AND (? = '' OR game = ?)"
    " ORDER BY day, operator, player, game, currency LIMIT ?"
)
_TOTALS_OF_OPERATOR: Final = (
    TOTALS.select + "WHERE operator = ? AND day BETWEEN ? AND ? AND (day, player, game, currency) > (?, ?, ?, ?)"
    " AND (? = '' OR game = ?) ORDER BY day, player, game, currency LIMIT ?"
)
_TOTALS_OF_PLAYER: Final = (
    TOTALS.select + "INDEXED BY totals_by_player WHERE operator = ? AND player = ? AND day BETWEEN ? AND ?"
    " AND (day, game, currency) > (?, ?, ?) AND (? = '' OR game = ?) ORDER BY day, game, currency LIMIT ?"
)


class StoreReads(
    ArchivingReads, CountReads, FinalsReads, FreeBetReads, HistoryReads, LaunchReads, OutboxReads, ReturnsReads,
    StatementReads, SupportReads, ConditionReads, TableReads,
):  # fmt: skip
    """What may be read, beside a server too (`open_reads`): the queries, once for both databases. StoreError where the
    database does not answer.
    """

    @abstractmethod
    async def close(self) -> None:
        """Let go of the store."""

    async def changes(self, key: str) -> int:
        """A counter of changes, `switches` or `parties`: it rises in the commit that changes one of them."""
        return int(await self.meta(key) or 0)

    async def meta(self, key: str) -> str:
        """A value of the store's own: `schema`, `store_epoch`, `parties` (a counter of changes)."""
        row = await self._row("SELECT value FROM meta WHERE key = ?", key)
        return "" if row is None else str(row[0])

    async def clock_ms(self) -> int | None:
        """The database's own clock; None where the database is a file."""
        return None

    async def newest_envelope(self) -> bytes:
        """The newest statement's, by row number; empty in an empty store."""
        row = await self._row("SELECT envelope FROM statements ORDER BY id DESC LIMIT 1")
        return b"" if row is None else bytes(row[0])

    # --- the play path --------------------------------------------------------------------------------------------

    async def session(self, session_id: str, *, fresh: bool = True) -> Session | None:  # noqa: ARG002
        """The session. Where it need not be `fresh`, it may be as this process saw it last, though another has moved it
        since. That is for callers who commit what they compute from it, and try again with a fresh one when anything
        is refused: every commit compares versions.
        """
        return await self._first(SESSIONS, "WHERE session_id = ?", session_id)

    async def round(self, round_id: str, *, fresh: bool = True) -> Round | None:  # noqa: ARG002
        """The round of solo play; `fresh` as for `session`. The seats of a table's round: `seat`, `seats_of_round`."""
        found = await self._first(ROUNDS, "WHERE round_id = ? AND seat_no = 1", round_id)
        if found is not None or self.archive is None:
            return found
        archived = await self.archive.round(round_id)
        return None if archived is None else (await self._with_players([archived]))[0]

    async def answer(self, party: str, method: str, request_id: str) -> Answer | None:
        """The stored answer of a request, its signed statement with it."""
        row = await self._row(_ANSWER, request_id, method, party)
        if row is None:
            return None
        envelope, instance, number = row[6:]
        if number and not envelope:
            envelope = b"".join(one.envelope for one in await self.statements_of_instance(instance, number, number, 1))
        return Answer(*(*row[:6], envelope))

    async def session_token(self, session_id: str) -> bytes:
        """The sealed token of a session, empty where it has none."""
        row = await self._row("SELECT sealed FROM session_tokens WHERE session_id = ?", session_id)
        return b"" if row is None else bytes(row[0])

    # --- rounds in play, admins, totals ---------------------------------------------------------------------------

    async def open_rounds(self, operator: str, *, after: int, limit: int) -> list[tuple[int, Round]]:
        """Rounds in play, oldest first, above row `after`; those of all operators for an empty name."""
        if operator:
            where = "WHERE status = 'open' AND operator = ? AND id > ? ORDER BY id LIMIT ?"
            return await self._numbered(ROUNDS, where, operator, after, limit)
        return await self._numbered(ROUNDS, "WHERE status = 'open' AND id > ? ORDER BY id LIMIT ?", after, limit)

    async def void_proposal(self, round_id: str) -> VoidProposal | None:
        return await self._first(VOIDS, "WHERE round_id = ?", round_id)

    async def switches(self) -> list[SwitchOff]:
        """Everything that is disabled."""
        return await self._found(SWITCHES, "ORDER BY scope, subject")

    async def latches(self, node: str) -> list[LatchSet]:
        """The latched guards of a node."""
        return await self._found(LATCHES, "WHERE node = ? ORDER BY guard", node)

    async def large_wins(self, limit: int) -> list[LargeWin]:
        """Large wins whose event is not signed yet."""
        return await self._found(LARGE_WINS, "LIMIT ?", limit)

    async def totals(self, wanted: TotalsFilter, *, after: TotalsKey, limit: int) -> list[TotalsRow]:
        """Running totals by (day, operator, player, game, currency), behind the row `after`."""
        days, rest = (wanted.first_day, wanted.last_day), (after.day, after.operator, after.player, after.game)
        values: tuple[Any, ...]
        if wanted.player:
            query = _TOTALS_OF_PLAYER
            values = (wanted.operator, wanted.player, *days, after.day, after.game, after.currency)
        elif wanted.operator:
            query = _TOTALS_OF_OPERATOR
            values = (wanted.operator, *days, after.day, after.player, after.game, after.currency)
        else:
            query, values = _TOTALS, (*days, *rest, after.currency)
        rows = await self._rows(query, *values, wanted.game, wanted.game, limit)
        return [TotalsRow(TotalsKey(*row[:5]), *row[5:]) for row in rows]

    async def any_session_open(self) -> bool:
        """Whether a chain of some session has not come to its session_close."""
        query = "SELECT 1 FROM sessions WHERE status <> 'closed' AND link_no > 0 LIMIT 1"
        return await self._row(query) is not None

    async def finals(self, operator: str, after_no: int, limit: int) -> list[ListedFinal]:
        """The operator's finals above a number, in order. StoreError where one is neither in the store nor archived."""
        query = (
            "SELECT f.final_no, f.mark, f.instance, f.statement_no, s.kind, s.session_id, s.link_no, s.round_id,"
            " s.hash, s.envelope, p.private FROM finals f"
            " LEFT JOIN statements s ON s.instance = f.instance AND s.statement_no = f.statement_no"
            " LEFT JOIN privates p ON p.instance = f.instance AND p.statement_no = f.statement_no"
            " WHERE f.operator = ? AND f.final_no > ? ORDER BY f.final_no LIMIT ?"
        )
        found = []
        for row in await self._rows(query, operator, after_no, limit):
            number, mark, instance, statement_no, kind = row[:5]
            if kind is not None:
                found.append(ListedFinal(*(number, mark, kind, instance, statement_no, *row[5:10], row[10] or b"")))
                continue
            moved = await self.statements_of_instance(instance, statement_no, statement_no, 1)
            if not moved:
                raise StoreError(f"final {number} of {operator} is neither in the store nor in the archive")
            (one,) = moved
            of_session = (one.session_id, one.link_no, one.round_id, one.hash, one.envelope, one.private)
            found.append(ListedFinal(number, mark, one.kind, instance, statement_no, *of_session))
        return found

    async def artifact(self, sha256: str) -> bytes | None:
        """The content of an artifact by its hex SHA-256."""
        row = await self._row("SELECT content FROM artifacts WHERE sha256 = ?", sha256)
        return None if row is None else bytes(row[0])

    # --- instances ------------------------------------------------------------------------------------------------

    async def instances(self, *, alive_only: bool) -> list[InstanceRow]:
        return await self._found(INSTANCES, "WHERE alive >= ? ORDER BY start_ms, instance", int(alive_only))

    async def start_of(self, instance: str) -> bytes:
        """The envelope of its statement 1."""
        query = "SELECT envelope FROM statements WHERE instance = ? AND statement_no = 1"
        envelope: bytes = (await self._row(query, instance))[0]
        return envelope

    async def previous_boot(self, node: str, worker: int) -> InstanceRow | None:
        """The newest instance of a node's worker."""
        return await self._first(INSTANCES, "WHERE node = ? AND worker = ? ORDER BY boot_no DESC LIMIT 1", node, worker)


class Store(StoreReads):
    """The open store of one process. It signs, and so commits, as the one instance that it was started for."""

    large_win_minor: int
    """A round that returns its stake and this much more is kept as a LargeWin; 0: none is."""
    beside_older = False
    """Nodes of the schema before this version's might run over the store, as it was opened (docs/upgrades.md)."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.on_failure: Callable[[StoreError], None] = lambda _: None
        """Called with every commit that the store could not do."""
        self.on_committed: Callable[[Change], None] = lambda _: None
        """Called with every change that is durable now, in its caller's context. It must not wait and not raise."""
        self.tracer: Tracer | None = None
        """Makes a span of each commit of a call that is traced."""
        self._memory = Memory()

    def follow(self, now_ms: Callable[[], int]) -> None:
        """Take this for the store's clock, where the store has none of its own."""

    @property
    @abstractmethod
    def draws_owed(self) -> int:
        """Draws that were not used and whose account is not durable yet: they are in flight still."""

    @property
    @abstractmethod
    def draw_window(self) -> int:
        """Draws of this instance that may be in flight at once, as its durable statements say: what its start promised,
        or the last `draw_window` since.
        """

    @abstractmethod
    async def start_instance(self, new: NewInstance) -> Signed:
        """Insert its row and its statement 1, signed by the node key. From here on `commit` signs as this instance."""

    async def commit(self, change: Change) -> tuple[Signed, ...]:
        """Commit with the next group; the signed statements of the change, in the order of its drafts.

        SessionRaceError, RequestSeenError, StoreError: nothing took effect, except the account of a discarded draw. An
        OvertakenError is no failure of the store: the lead of a duty has moved in the middle of its work.
        """
        self._memory.forget(change)
        try:
            signed = await (self.writer.commit(change) if self.tracer is None else self._traced(self.tracer, change))
        except OvertakenError:
            raise
        except StoreError as error:
            self.on_failure(error)
            raise
        self._memory.keep(change, signed)
        self.on_committed(change)
        return signed

    async def _traced(self, tracer: Tracer, change: Change) -> tuple[Signed, ...]:
        with tracer.inner("store commit", SpanKind.INTERNAL) as span:
            if span is not None:
                _leave_trace(change, span.context)
            try:
                signed = await self.writer.commit(change)
            except RgsError as error:
                if span is not None:
                    span.reason = error.reason
                raise
            if span is not None:
                span.reason = "OK"
            return signed

    def _verify_answering(self) -> None:
        """StoreError while a commit of this process is stuck, where what is in memory may then be out of date."""

    async def session(self, session_id: str, *, fresh: bool = True) -> Session | None:
        if not fresh and (known := self._memory.session(session_id)) is not None:
            self._verify_answering()
            return known
        return await super().session(session_id)

    async def sessions_by_id(self, session_ids: Sequence[str], *, fresh: bool = True) -> dict[str, Session]:
        found = {} if fresh else self._memory.sessions(session_ids)
        if found:
            self._verify_answering()
        missing = [session_id for session_id in session_ids if session_id not in found]
        return found | (await super().sessions_by_id(missing) if missing else {})

    async def round(self, round_id: str, *, fresh: bool = True) -> Round | None:
        if not fresh and (known := self._memory.round(round_id)) is not None:
            self._verify_answering()
            return known
        return await super().round(round_id)

    @abstractmethod
    async def forget_reports(self, row_ids: Sequence[int]) -> None:
        """Drop queued stage reports: the regulator has them."""

    @abstractmethod
    async def forget_answers(self, now_ms: int, before_ms: int) -> int:
        """Drop some answers from before a time, none younger than `now_ms - before_ms` by the database's own clock."""

    @abstractmethod
    async def forget_chat(self, before_ms: int) -> int:
        """Drop lines of chat from before a time, a bounded number; how many."""

    @abstractmethod
    async def forget_launches(self, before_ms: int) -> int:
        """The same of launches."""

    # --- many processes over one store; a file has one, which leads everything and hears nothing --------------------

    @abstractmethod
    async def renew_lease(self, instance: str, lease_ms: int) -> bool:
        """Renew the lease of the instance by the database's clock. False if the instance has ended."""

    @abstractmethod
    async def lapsed_instances(self) -> list[InstanceRow]:
        """Other instances that have not ended but whose lease has, or whose worker has started again. The leader signs
        that they are lost. A commit that ends one is refused if it is alive after all.
        """

    @abstractmethod
    async def lead(self, duty: str) -> bool:
        """Whether this process alone leads the duty now. Ask before each round of it."""

    @abstractmethod
    async def emit(self, payload: str) -> None:
        """Send it to every process that listens, this one too; best effort, nothing waits for it."""

    @abstractmethod
    async def listen(self, callback: Callable[[str], None]) -> None:
        """Call it with each payload, also after a reconnection; payloads sent meanwhile are lost."""


class Parties(ABC):
    """The allow-list, over a connection of its own: servers notice a change by the counter. Removed rows stay."""

    @abstractmethod
    async def changes(self) -> int:
        """Rises with every change of the list."""

    async def allowed(self) -> list[PartyRow]:
        """The certificates that are allowed now."""
        return await self._listed(removed_too=False)

    async def all(self) -> list[PartyRow]:
        """All certificates that were ever allowed."""
        return await self._listed(removed_too=True)

    @abstractmethod
    async def _listed(self, *, removed_too: bool) -> list[PartyRow]: ...

    @abstractmethod
    async def add(self, row: PartyRow) -> None:
        """Allow a certificate; what `rgs.store.allowed.verify_new` raises."""

    @abstractmethod
    async def remove(self, fingerprint: str, removed_ms: int) -> None:
        """Deny a certificate from now on; what `rgs.store.allowed.removable` raises."""

    @abstractmethod
    async def set_links(self, party: str, links: str) -> None:
        """Keep the links of an operator (`rgs.core.links`); what `rgs.store.allowed.verify_operator` raises."""

    @abstractmethod
    async def close(self) -> None: ...


def _leave_trace(change: Change, context: TraceContext) -> None:
    """Keep the trace for the report that the change queues, or that a table will queue for a seat in play."""
    report, round_ = change.report, change.round
    if report is not None:
        if report.traceparent is None:
            change.report = replace(report, traceparent=format_traceparent(context))
    elif round_ is not None and round_.table_id:
        traced = SeatTraced(format_traceparent(context), round_.session_id, round_.round_id)
        change.records = (*change.records, traced)
