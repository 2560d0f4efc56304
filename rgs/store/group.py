"""The rows of one transaction, for either database: statement numbers, link numbers and signatures are given in order
(ARCHITECTURE 2.18, durable before said).

Nothing is signed before an instance has started. A round must have its draw from the instance that signs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rgs.core.errors import RgsError
from rgs.core.rounds import Round, RoundStatus
from rgs.core.statements import KINDS, Signer, format_canonical, kind_of, leaf_hash, seal_envelope
from rgs.core.tables.machine import Table
from rgs.core.values import changed
from rgs.store.changes import (
    Change,
    DayCount,
    Draft,
    InstanceHandover,
    LargeWin,
    Record,
    SessionRaceError,
    Signed,
    StoreError,
    TableMovedError,
)
from rgs.store.rows import (
    DAYS,
    OPERATIONS,
    REPORTS,
    ROUNDS,
    SESSIONS,
    AnswerRow,
    DayTotalsAdded,
    PrivateRow,
    SignedRow,
    TotalsAdded,
    day_totals_rows,
    totals_row,
)
from rgs.store.table_rows import SITTINGS, TABLE_ROUNDS, TABLES
from rgs.store.writer import CommitOutcome


@dataclass(frozen=True, slots=True)
class SigningIdentity:
    """The instance that the store signs as, its key, and how far its numbers are durable."""

    instance: str = ""
    signer: Signer | None = None
    statement_no: int = 0
    draw_no: int = 0
    draw_window: int = 0
    """Draws that may be in flight at once, as its durable statements say."""


@dataclass(slots=True)
class Known:
    """What the store knows of the sessions and tables of a group, under its locks: their versions, and its clock."""

    sessions: dict[str, int]
    tables: dict[str, int]
    now_ms: int

    def refusal_of(self, change: Change) -> RgsError | None:
        """Why the change cannot be added: it was computed from another state."""
        session, guard, row = change.session, change.guard, change.table
        if session is not None and self.sessions.get(session.session_id, 0) != session.version - 1:
            return SessionRaceError("the session was changed by another request")
        if row is not None and self.tables.get(row.table.table_id, 0) != row.table.version - 1:
            return TableMovedError("the table was changed by another request", table=row.table.table_id)
        if guard is not None and self.tables.get(guard.table_id, 0) != guard.version:
            return TableMovedError("the table has moved on", table=guard.table_id)
        if guard is not None and guard.until_ms and self.now_ms > guard.until_ms:
            return TableMovedError("the window has closed", table=guard.table_id)
        return None

    def take(self, change: Change) -> None:
        """Count the change as done."""
        if change.session is not None:
            self.sessions[change.session.session_id] = change.session.version
        if change.table is not None:
            self.tables[change.table.table.table_id] = change.table.table.version


class Group:
    """The rows of one transaction, with numbers and signatures assigned in order."""

    def __init__(self, identity: SigningIdentity, large_win_minor: int) -> None:
        self._identity = identity
        self._large_win_minor = large_win_minor
        self.instance = identity.instance
        self.first_no = identity.statement_no
        """The last number that is durable already."""
        self.statement_no = identity.statement_no
        self.draw_no = identity.draw_no
        self.draw_window = identity.draw_window
        self.new_sessions: list[tuple[Any, ...]] = []
        self.sessions: list[tuple[Any, ...]] = []
        self.new_rounds: list[tuple[Any, ...]] = []
        self.rounds: list[tuple[Any, ...]] = []
        self.statements: list[tuple[Any, ...]] = []
        self.privates: list[tuple[Any, ...]] = []
        self.answers: list[tuple[Any, ...]] = []
        self.operations: list[tuple[Any, ...]] = []
        self.reports: list[tuple[Any, ...]] = []
        self._days: dict[tuple[str, str, str], list[int]] = {}
        self.artifacts: list[tuple[Any, ...]] = []
        self.ends: list[tuple[int, str]] = []
        self.totals: list[TotalsAdded] = []
        self.records: list[Record] = []
        self.new_tables: list[tuple[Any, ...]] = []
        self.tables: list[tuple[Any, ...]] = []
        self.new_table_rounds: list[tuple[Any, ...]] = []
        self.table_rounds: list[tuple[Any, ...]] = []
        self.new_sittings: list[tuple[Any, ...]] = []
        self.sittings: list[tuple[Any, ...]] = []
        self.seats_signed: dict[str, int] = {}
        """The rounds of tables of which a seat's opening or final is signed, with the newest time of these."""
        self.moved: tuple[str, str, int] = ("", "", 0)
        """A row that the group moves: its table, its id and its new version. Where it stands so, the group landed."""

    @property
    def identity(self) -> SigningIdentity:
        """The instance that the store signs as once the group is durable."""
        return replace(
            self._identity, statement_no=self.statement_no, draw_no=self.draw_no, draw_window=self.draw_window
        )

    def start(self, start: Draft, node_signer: Signer) -> Signed:
        """Statement 1 of the instance, `instance_start`, under the node key."""
        body = {**start.body, "instance": self.instance, "kind": start.kind, "statement_no": "1"}
        signed = sign_statement(start.kind, body, self.instance, 1, node_signer)
        self.statement_no = 1
        self.draw_window = window_of(start)
        self.statements.append(SignedRow(self.instance, 1, signed.kind, hash=signed.hash, envelope=signed.envelope))
        return signed

    def sign(self, draft: Draft, link: tuple[str, int, str] = ("", 0, "")) -> Signed:
        """Give the draft its numbers, sign it, keep its row. `link` is (session id, link number, previous hash)."""
        signer = self._identity.signer
        if signer is None:
            raise StoreError("the store signs nothing before its instance has started")
        session_id, link_no, previous = link
        statement_no = self.statement_no + 1
        body = {**draft.body, "instance": self.instance, "kind": draft.kind, "statement_no": str(statement_no)}
        if link_no:
            body["session_id"], body["link_no"], body["previous"] = session_id, str(link_no), previous
        signed = sign_statement(draft.kind, body, self.instance, statement_no, signer)
        self.statement_no = statement_no
        if draft.kind == "draw_window":
            self.draw_window = window_of(draft)
        if draft.kind == "discarded_draw":
            self.draw_no = max(self.draw_no, int(draft.body["draw_no"]))
        self.statements.append(
            SignedRow(
                self.instance, statement_no, draft.kind, draft.body.get("code", ""), session_id, link_no,
                draft.round_id, draft.seat_no, signed.hash, signed.envelope,
            )
        )  # fmt: skip
        if draft.private is not None:
            self.privates.append(PrivateRow(self.instance, statement_no, format_canonical(draft.private)))
        return signed

    def fill(self, changes: Sequence[Change], known: Known, owed: Sequence[Draft]) -> list[CommitOutcome]:
        """Sign what draws are owed, then add each change whose session and table stand where it was computed from. Of
        any other change only its discarded draw is signed.
        """
        outcomes: list[CommitOutcome] = []
        for draft in owed:
            self.sign(draft)
        for change in changes:
            refusal = known.refusal_of(change)
            if refusal is not None:
                if change.discard is not None:
                    self.sign(change.discard)
                outcomes.append(refusal)
                continue
            known.take(change)
            outcomes.append(self.add(change))
        return outcomes

    def turned(self, handover: InstanceHandover) -> Group:
        """The first statements of the instance that follows this one; its `instance_start` names the numbers that this
        one ends with. StoreError unless every draw of this one is accounted for.
        """
        if self.draw_no != handover.last_draw_no:
            raise StoreError(
                f"{handover.last_draw_no} draws were made, {self.draw_no} are accounted for: the instance cannot end"
            )
        begun = Group(SigningIdentity(handover.instance, handover.signer), self._large_win_minor)
        previous_boot = {
            "instance": self.instance,
            "last_draw_no": str(self.draw_no),
            "last_statement_no": str(self.statement_no),
        }
        begun.start(
            replace(handover.start, body={**handover.start.body, "previous_boot": previous_boot}), handover.node_signer
        )
        for draft in handover.drafts:
            begun.sign(draft)
        begun.artifacts.extend(handover.artifacts)
        return begun

    def add(self, change: Change) -> tuple[Signed, ...]:
        """Sign the change's drafts in order and keep its rows."""
        session = change.session
        self._verify_own_draw(change)
        link_no, link_hash = (session.link_no, session.link_hash) if session is not None else (0, "")
        signed: list[Signed] = []
        for draft in change.drafts:
            if draft.kind == "table_seats":  # it names the `table_round` before it
                draft = replace(draft, body={**draft.body, "table_round": signed[-1].hash.hex()})  # noqa: PLW2901
            if session is not None and KINDS[draft.kind].linked:
                link_no += 1
                signed.append(self.sign(draft, (session.session_id, link_no, link_hash)))
                link_hash = signed[-1].hash.hex()
            else:
                signed.append(self.sign(draft))
        if change.draw_no:
            self.draw_no = max(self.draw_no, change.draw_no)
        if session is not None:
            self.moved = ("sessions", session.session_id, session.version)
            linked = changed(session, link_no=link_no, link_hash=link_hash)
            if session.version == 1:
                self.new_sessions.append(SESSIONS.row(linked))
            else:
                self.sessions.append(SESSIONS.change(linked))
        last = signed[change.main] if signed and change.main is not None else None
        if change.round is not None:
            change.round = self._keep_round(change, change.round, last)
        if change.answer is not None:
            answer = change.answer
            self.answers.append(
                AnswerRow(
                    answer.party, answer.method, answer.request_id, answer.digest, answer.body,
                    last.instance if last else "", last.statement_no if last else 0, answer.time_ms,
                )
            )  # fmt: skip
        self.operations.extend(
            OPERATIONS.row(operation) for operation in (change.operation, change.credit) if operation is not None
        )
        if change.counted is not None:
            self._count(change.counted)
        if change.report is not None and last is not None:
            *reported, _ = REPORTS.row(change.report)  # its last column is `final_hash`
            self.reports.append((*reported, last.hash.hex()))
        is_over = change.round is not None and change.round.status is not RoundStatus.OPEN
        if session is not None and change.round is not None and is_over and not session.is_demo:
            self._end(change.round, session.currency)
        if change.table is not None or change.table_round is not None or change.sitting is not None:
            self._keep_of_table(change, {statement.kind: statement.hash.hex() for statement in signed})
        self.records.extend(change.records)
        if change.artifact is not None:
            self.artifacts.append(change.artifact)
        if change.ends is not None:
            self.ends.append((change.ends[1], change.ends[0]))
        return tuple(signed)

    @property
    def versioned(self) -> tuple[tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]], ...]:
        """New and changed rows of each table of `VERSIONED`."""
        return (
            (self.new_tables, self.tables),
            (self.new_table_rounds, self.table_rounds),
            (self.new_sittings, self.sittings),
        )

    def day_rows(self) -> list[tuple[Any, ...]]:
        """What is added to the days, one row a day. They are in the order of the key, so that two nodes never wait for
        each other in a circle.
        """
        return [(*key, *self._days[key]) for key in sorted(self._days)]

    def day_totals_rows(self) -> list[DayTotalsAdded]:
        """What the rounds that end here add to the totals of their operators' days."""
        return day_totals_rows(self.totals, _worker_of(self.instance))

    def _count(self, count: DayCount) -> None:
        operator, currency, day, *sums = DAYS.row(count)
        before = self._days.get((operator, currency, day), [0] * len(sums))
        self._days[operator, currency, day] = [old + new for old, new in zip(before, sums, strict=True)]

    def _keep_round(self, change: Change, round_: Round, last: Signed | None) -> Round:
        """Keep the row of the change's round; the round, with the event that paused it."""
        signed = last.hash.hex() if last is not None else ""
        if change.pauses and signed:
            round_ = replace(round_, malfunction=signed)
        if change.session is not None and signed and round_.table_id:
            newest_ms = self.seats_signed.get(round_.round_id, 0)
            self.seats_signed[round_.round_id] = max(newest_ms, change.session.last_ms)
        if round_.version == 1:
            self.new_rounds.append(ROUNDS.row(changed(round_, opening_hash=signed)))
        else:
            self.rounds.append(ROUNDS.change(round_))
        return round_

    def _keep_of_table(self, change: Change, hashes: dict[str, str]) -> None:
        """Keep the rows of a table, its round and a seat, with the hashes of what was signed for them just now."""
        round_, row, sitting = change.table_round, change.table, change.sitting
        if round_ is not None:
            named = {"table_round": "table_round", "deal": "table_deal", "final": "table_final"}
            signed = {field: hashes[kind] for field, kind in named.items() if kind in hashes}
            round_ = changed(round_, **signed)
            if round_.version == 1:
                self.new_table_rounds.append(TABLE_ROUNDS.row(round_))
            else:
                self.table_rounds.append(TABLE_ROUNDS.change(round_))
        if row is not None:
            row = replace(row, table=_with_hashes(row.table, hashes, pauses=change.pauses))
            self.moved = ("tables", row.table.table_id, row.table.version)
            if row.table.version == 1:
                self.new_tables.append(TABLES.row(row))
            else:
                self.tables.append(TABLES.change(row))
        if sitting is not None:
            if self.moved[0] in {"", "sittings"}:  # any other row shows more: this one may go in the same group
                self.moved = ("sittings", sitting.session_id, sitting.version)
            if sitting.version == 1:
                self.new_sittings.append(SITTINGS.row(sitting))
            else:
                self.sittings.append(SITTINGS.change(sitting))

    def _verify_own_draw(self, change: Change) -> None:
        """A deck is dealt by the instance that drew it. Seats at a table are opened by any."""
        round_, dealt = change.round, change.table_round
        drawn_by = self.instance
        if round_ is not None and round_.version == 1 and not round_.table_id:
            drawn_by = round_.instance
        elif dealt is not None and change.draw_no:
            drawn_by = dealt.instance
        if drawn_by != self.instance:
            change.discard = None  # nor is it accounted for in another's name
            raise StoreError("a round must be opened by the instance that drew its deck")

    def _end(self, ended: Round, currency: str) -> None:
        """What the end of a round adds: totals, and perhaps a large win."""
        self.totals.append(totals_row(ended, currency))
        won_minor = ended.returned_minor - ended.staked_minor
        if 0 < self._large_win_minor <= won_minor:
            self.records.append(LargeWin(ended.round_id, ended.session_id, won_minor, ended.end_ms))


def _with_hashes(table: Table, hashes: dict[str, str], *, pauses: bool) -> Table:
    """The table with what was signed for it. Its head is the newest `table_final`."""
    if "table_round" in hashes:
        table = replace(table, table_round=hashes["table_round"])
    if "table_deal" in hashes:
        table = replace(table, deal=hashes["table_deal"])
    if "table_final" in hashes:
        table = replace(table, final=hashes["table_final"], head=hashes["table_final"])
    return replace(table, malfunction=hashes["event"]) if pauses else table


def window_of(draft: Draft) -> int:
    """The draw window that an `instance_start` or `draw_window` promises."""
    return int(draft.body["draws_in_flight_max"])


def sign_statement(kind: str, body: dict[str, Any], instance: str, statement_no: int, signer: Signer) -> Signed:
    """Seal a whole body."""
    envelope = seal_envelope(kind_of(kind, body).payload_type, format_canonical(body), signer)
    return Signed(kind, instance, statement_no, leaf_hash(envelope), envelope)


def _worker_of(instance: str) -> str:
    """Node and worker of an instance, without the number of its boot."""
    node, _, worker = instance.rsplit("-", 2)
    return f"{node}-{worker}"


def tables_moved(changes: Sequence[Change]) -> set[str]:
    """Ids of the tables that the changes move; not of new ones."""
    rows = (change.table for change in changes if change.table is not None)
    return {row.table.table_id for row in rows if row.table.version > 1}


def tables_followed(changes: Sequence[Change]) -> set[str]:
    """Ids of the tables behind whose statements those of the changes stand: seats that are opened or end there."""
    rounds = (round_ for change in changes for round_ in (change.round, change.table_round) if round_ is not None)
    return {round_.table_id for round_ in rounds if round_.table_id}


def parted(changes: Sequence[Change], *, is_session_once: bool) -> Iterator[list[Change]]:
    """The changes in their order; each that turns to another instance is a part by itself, and where
    `is_session_once` no part has a session or a table twice.
    """
    part: list[Change] = []
    moved: set[str] = set()
    for change in changes:
        ids = _ids_of(change)
        is_repeated = is_session_once and bool(ids & moved)
        if part and (change.handover is not None or part[-1].handover is not None or is_repeated):
            yield part
            part, moved = [], set()
        part.append(change)
        moved |= ids
    if part:
        yield part


def _ids_of(change: Change) -> set[str]:
    """Sessions and tables of which the change moves a row."""
    ids = {one.session_id for one in (change.session, change.round, change.sitting) if one is not None}
    if change.table is not None:
        ids.add(change.table.table.table_id)
    if change.table_round is not None:
        ids.add(change.table_round.table_id)
    return ids
