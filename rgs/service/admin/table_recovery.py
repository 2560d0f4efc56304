"""The tables of a restored store: what their rounds leave behind the gap, and what admins must end (docs/keys.md 5).

Bets that are reserved stand in no statement. What the backup has of them goes back to the balance, because in the gap
their players may have changed them or taken them back. One exception: bets that are, with the openings of the gap,
exactly the seats under the root of a dealt round. They are the round's, and get their openings before it is void.

A round that was fixed and has no end is paused, as rounds of solo play are: two admins make it void. Of a round whose
`table_final` is in the log the seats get their finals, by the decisions that are known; the deck is public.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from rgs.core.clock import Clock
from rgs.core.recovery import end_round
from rgs.core.rounds import DECK_UNRECOVERABLE, Round, RoundStatus, staked_so_far
from rgs.core.sessions import Session, SessionStatus
from rgs.core.statements import parse_envelope, parse_statement
from rgs.core.tables.bodies import EndedSeat, box_seat_object, seat_void_body
from rgs.core.tables.config import parse_canonical_table_config
from rgs.core.tables.machine import Clockwork, State, Step, take
from rgs.core.tables.recovery import (
    IN_PLAY,
    SeatEnd,
    advance_round,
    advance_table,
    after_event,
    ended_phase,
    fixed_round,
    leaf_of_seat,
    new_table,
    numbered,
    opened_seat,
    state_of,
    tree_of,
    without_bets,
)
from rgs.core.tables.rows import TableRound, TableRow
from rgs.core.tables.seating import Sitting
from rgs.core.times import parse_time
from rgs.core.values import changed
from rgs.service.events import EventCode, event_draft
from rgs.service.game_catalog import GameCatalog
from rgs.service.play.settlement import seat_ended
from rgs.store.changes import Change, StoreError, VoidProposalEnd
from rgs.store.interface import Store, StoreReads
from rgs.store.recovery import Import
from rgs.store.table_records import TableConfigKept
from rgs.tlog.gap import Missing

REASON: Final = EventCode.STORE_RECOVERED.value
"""Code of the malfunctions, and reason of the voids."""
_OF_ROUNDS: Final = frozenset({"table_seats", "table_deal", "table_final"})
CONFIGS: Final = "tables/"
"""What the names of the artifacts begin with that are configurations of tables."""
_PAGE: Final = 256


# --- the gap ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class TableImport:
    """The part of an import that is about tables: it takes the gap's statements in order, then `finish`."""

    planned: Import
    reads: StoreReads
    games: GameCatalog
    _leaves: dict[str, dict[int, tuple[str, bytes]]] = field(default_factory=dict, init=False)
    """Round -> seat -> session and leaf, of the gap's openings."""

    async def take(self, missing: Missing) -> None:
        """Take a statement that is no link. Most kinds say nothing of a table."""
        body, kind, planned = missing.body, missing.kind, self.planned
        if kind == "artifact" and body["name"].startswith(CONFIGS):
            await self._configure(body["name"].removeprefix(CONFIGS), missing)
        elif kind == "event" and (row := await self._table(body.get("subject", ""))) is not None:
            planned.tables[row.table.table_id] = after_event(row, body, missing.hash)
        elif kind == "table_round":
            row = await self._known_table(body["table"], missing)
            planned.tables[row.table.table_id] = advance_table(row, kind, body, missing.hash)
            planned.table_rounds[body["round_id"]] = fixed_round(body, missing.hash)
        elif kind in _OF_ROUNDS:
            round_ = await self._known_round(body["round_id"], missing)
            planned.table_rounds[round_.round_id] = advance_round(round_, kind, body, missing.hash)
            if kind != "table_seats":
                row = await self._known_table(round_.table_id, missing)
                planned.tables[round_.table_id] = advance_table(row, kind, body, missing.hash)

    async def _configure(self, table_id: str, missing: Missing) -> None:
        sha256, time_ms = missing.body["sha256"], parse_time(missing.body["time"])
        version = int(json.loads(missing.content)["version"])
        self.planned.table_configs.append(TableConfigKept(sha256, table_id, version, missing.content))
        row = await self._table(table_id)
        after = new_table(table_id, sha256, time_ms) if row is None else replace(row, next_config=sha256)
        self.planned.tables[table_id] = after

    async def open_seat(self, missing: Missing, session: Session) -> Round:
        """Take a `seat_opening`; `session` is as before it."""
        body = missing.body
        round_ = await self._known_round(body["round_id"], missing)
        seat = opened_seat(body, missing.hash, session, round_, self.games.rulesets[round_.ruleset_id])
        leaves = self._leaves.setdefault(round_.round_id, {})
        leaves[seat.seat_no] = (session.session_id, leaf_of_seat(body["seat"]))
        sitting = await self._sitting(session.session_id)
        if sitting is not None:
            self.planned.sittings[session.session_id] = sitting.opened(round_.table_round_no)
        self.planned.new_rounds[round_.round_id, seat.seat_no] = seat
        self._signed(missing)
        return seat

    async def end_seat(self, missing: Missing) -> Round:
        """Take a `seat_final`."""
        body, planned = missing.body, self.planned
        key = (body["round_id"], int(body["seat_no"]))
        seats = planned.new_rounds if key in planned.new_rounds else planned.rounds
        seat = seats.get(key) or await self.reads.seat(body["session_id"], body["round_id"])
        if seat is None:
            raise ValueError(f"the log ends seat {key[1]} of round {key[0]}, which nothing has opened")
        ended = end_round(seat, body)
        ended = seats[key] = replace(ended, phase=ended_phase(ended, self.games.rulesets[seat.ruleset_id]))
        self._signed(missing)
        return ended

    def _signed(self, missing: Missing) -> None:
        round_id, newest_ms = missing.body["round_id"], self.planned.seats_ms
        newest_ms[round_id] = max(newest_ms.get(round_id, 0), parse_time(missing.body["time"]))

    async def finish(self) -> None:
        """What remains of every table of the store and of the gap, once the whole gap is taken."""
        for round_id in self._leaves:
            round_ = await self._round(round_id)
            if round_ is not None and round_.status is not RoundStatus.OPEN:
                self._name_paths(round_, {no: leaf for no, (_, leaf) in (await self._opened(round_)).items()})
        async for row in self._all_tables():
            await self._finish_table(row)

    async def _all_tables(self) -> AsyncIterator[TableRow]:
        after = ""
        while page := await self.reads.tables(after, _PAGE):
            after = page[-1].table.table_id
            for row in page:
                yield self.planned.tables.get(row.table.table_id, row)
        for row in list(self.planned.tables.values()):
            if await self.reads.table(row.table.table_id) is None:
                yield row

    async def _finish_table(self, row: TableRow) -> None:
        """Give back its bets, those aside that are a dealt round's."""
        after, kept = without_bets(row), dict[str, Sitting]()
        if after is not row:
            self.planned.tables[row.table.table_id] = after
        round_ = await self._round(row.table.round_id)
        if round_ is not None and round_.deal and state_of(row.table) in IN_PLAY:
            kept = await self._unopened(round_)
        if round_ is not None and round_.status is RoundStatus.SETTLED:
            await self._note_silent(round_, row)
        async for sitting in self._sittings(row.table.table_id):
            await self._finish_sitting(sitting, kept.get(sitting.session_id))

    async def _unopened(self, round_: TableRound) -> dict[str, Sitting]:
        """The reserved bets that make, with the opened seats, all the seats under the round's root: by session."""
        opened = await self._opened(round_)
        sessions = {session_id for session_id, _ in opened.values()}
        bets = [one async for one in self._sittings(round_.table_id)
                if one.reserved_minor and one.session_id not in sessions]  # fmt: skip
        leaves = {number: leaf for number, (_, leaf) in opened.items()}
        found = numbered(round_, leaves, bets)
        leaves |= {one.seat_no: _leaf_of(one) for one in found}
        return {one.session_id: one for one in found} if self._name_paths(round_, leaves) else {}

    async def _opened(self, round_: TableRound) -> dict[int, tuple[str, bytes]]:
        """Session and leaf of each opened seat: of the gap's, and of those that the store has."""
        found = dict(self._leaves.get(round_.round_id, {}))
        after_id = 0
        while page := await self.reads.statements_of_round(round_.round_id, after_id, _PAGE):
            after_id = page[-1].id
            for statement in page:
                if statement.kind == "seat_opening":
                    seat = parse_statement(parse_envelope(statement.envelope))[1]["seat"]
                    found[int(seat["seat_no"])] = (seat["session_id"], leaf_of_seat(seat))
        return found

    def _name_paths(self, round_: TableRound, leaves: dict[int, bytes]) -> bool:
        """Give the seats of the gap their paths, if these are all the seats under the root; whether they are."""
        tree = tree_of(round_, leaves)
        if tree is None:
            return False
        for number in self._leaves.get(round_.round_id, ()):
            key = (round_.round_id, number)
            self.planned.new_rounds[key] = replace(self.planned.new_rounds[key], path=b"".join(tree.path(number)))
        return True

    async def _note_silent(self, round_: TableRound, row: TableRow) -> None:
        """Note the seats without a final of a round that ended in the gap, and what is not known of their decisions."""
        planned = self.planned
        if round_.round_id not in planned.table_rounds:
            return  # the store has its end, and so every decision
        seats = [planned.new_rounds[round_.round_id, number] for number in self._leaves.get(round_.round_id, ())]
        stored = seats_of(self.reads, round_.round_id)
        seats += [planned.rounds.get((seat.round_id, seat.seat_no), seat) async for seat in stored]
        for seat in seats:
            if seat.status is RoundStatus.OPEN:
                end = SeatEnd(seat, self.games.rulesets[seat.ruleset_id], row.table.windows)
                if end.is_undecided:
                    planned.undecided.append(seat)
                elif end.is_silent:
                    planned.silent.append(seat)

    async def _finish_sitting(self, sitting: Sitting, kept: Sitting | None) -> None:
        planned, session_id = self.planned, sitting.session_id
        session = planned.sessions.get(session_id) or await self.reads.session(session_id)
        if session is None:
            return
        if kept is not None:
            after, reserved_minor = replace(kept, version=kept.version + 1), kept.reserved_minor
        elif sitting.reserved_minor or sitting.seat_no:
            after, reserved_minor = replace(sitting.placed(()), seat_no=0), 0
        else:
            after, reserved_minor = sitting, 0
        if session.reserved_minor != reserved_minor:
            moved = changed(session, version=session.version + 1, reserved_minor=reserved_minor)
            planned.sessions[session_id] = moved
        has_left = after.leaving and not reserved_minor
        if has_left or session.status is SessionStatus.CLOSED or session.participation.ended:
            planned.sittings.pop(session_id, None)
            planned.left.append(session_id)
        elif after is not sitting:
            planned.sittings[session_id] = after

    # --- rows, as they stand behind what was taken ----------------------------------------------------------------

    async def _table(self, table_id: str) -> TableRow | None:
        found = self.planned.tables.get(table_id)
        if found is None and table_id:
            stored = await self.reads.table(table_id)
            found = None if stored is None else stored[0]
        return found

    async def _known_table(self, table_id: str, missing: Missing) -> TableRow:
        row = await self._table(table_id)
        if row is None:
            raise ValueError(f"the log has a {missing.kind} of table {table_id}, which nothing has set up")
        return row

    async def _round(self, round_id: str) -> TableRound | None:
        if not round_id:
            return None
        return self.planned.table_rounds.get(round_id) or await self.reads.table_round(round_id)

    async def _known_round(self, round_id: str, missing: Missing) -> TableRound:
        round_ = await self._round(round_id)
        if round_ is None:
            raise ValueError(f"the log has a {missing.kind} of round {round_id}, which nothing has fixed")
        return round_

    async def _sitting(self, session_id: str) -> Sitting | None:
        return self.planned.sittings.get(session_id) or await self.reads.sitting(session_id)

    async def _sittings(self, table_id: str) -> AsyncIterator[Sitting]:
        after = ""
        while page := await self.reads.sittings(table_id, after, _PAGE):
            after = page[-1].session_id
            for sitting in page:
                yield self.planned.sittings.get(sitting.session_id, sitting)


def _leaf_of(sitting: Sitting) -> bytes:
    return leaf_of_seat(box_seat_object(sitting.seat_no, sitting.session_id, sitting.bets, sitting.box))


async def seats_of(reads: StoreReads, round_id: str) -> AsyncIterator[Round]:
    """All seats that the store has of a round."""
    after = 0
    while page := await reads.seats_of_round(round_id, after, _PAGE):
        after = page[-1].seat_no
        for seat in page:
            yield seat


# --- behind it --------------------------------------------------------------------------------------------------------


class PausedTable(NamedTuple):
    """A table that is paused in a round, and the reason for which two admins make it void."""

    table_id: str
    round_id: str
    reason: str
    fault: str = ""
    """What replay will report of the round. SEATS_LOST with a number: of so many seats of the deal only the leaf under
    the root is left, and nobody can sign their openings. SEATS_UNCOUNTED: its `table_seats` is in no log.
    """

    @property
    def is_deck_lost(self) -> bool:
        return self.reason == DECK_UNRECOVERABLE


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TableRecovery:
    """What is signed about the tables once the gap is in the store."""

    store: Store
    clock: Clock
    games: GameCatalog

    async def pause(self) -> tuple[PausedTable, ...]:
        """Pause every table whose round was fixed and has no end, each with an event."""
        paused: list[PausedTable] = []
        async for row in self._tables():
            if state_of(row.table) not in IN_PLAY:
                continue
            round_ = await self.store.table_round(row.table.round_id)
            if round_ is None:
                raise ValueError(f"the store has no round {row.table.round_id} of table {row.table.table_id}")
            fault = await self._fault(round_)
            if row.malfunction_code != REASON:  # otherwise an earlier run has paused it
                await self.store.commit(self._pause(row, await self._clockwork(row), fault, await self._now(row)))
            has_deck = bool(round_.sealed) or not round_.deal
            paused.append(
                PausedTable(row.table.table_id, round_.round_id, REASON if has_deck else DECK_UNRECOVERABLE, fault)
            )
        return tuple(paused)

    async def _clockwork(self, row: TableRow) -> Clockwork:
        """By which the table's round is played. StoreError if the store has lost its configuration."""
        canonical = await self.store.artifact(row.config)
        if canonical is None:
            raise StoreError(f"the store does not hold the configuration {row.config}", value=row.config)
        config = parse_canonical_table_config(
            canonical, rulesets=self.games.rulesets, jurisdictions=self.games.jurisdictions
        )
        return self.games.clockwork(config)

    def _pause(self, row: TableRow, clockwork: Clockwork, fault: str, now_ms: int) -> Change:
        """The malfunction. One that paused the table before may have been ended in the gap: this one counts."""
        if row.table.state is State.PAUSED:
            table = replace(row.table, version=row.table.version + 1, step_ms=now_ms)
        else:
            table = take(row.table, Step.PAUSE, clockwork, now_ms)
        event = event_draft(
            EventCode.MALFUNCTION,
            now_ms,
            reason=REASON,
            subject=row.table.table_id,
            after=fault,
            round_id=row.table.round_id,
        )
        return Change(
            table=replace(row, table=table, due_ms=0, malfunction_code=REASON),
            drafts=(event,),
            pauses=True,
            records=(VoidProposalEnd(row.table.round_id),),
        )

    async def _fault(self, round_: TableRound) -> str:
        if not round_.seats:
            return "SEATS_UNCOUNTED"
        if not round_.deal:
            return ""
        count, after = 0, 0
        async for _ in seats_of(self.store, round_.round_id):
            count += 1
        while page := await self.store.fixed_sittings(round_.table_id, after, _PAGE):
            after = page[-1].seat_no
            count += len(page)
        return "" if count == round_.seats else f"SEATS_LOST {round_.seats - count}"

    async def undecided(self) -> list[tuple[Round, SeatEnd, TableRound]]:
        """The seats of settled rounds that cannot be settled: what their players had decided is not known."""
        found = []
        async for row in self._tables():
            if row.table.state is not State.SETTLING:
                continue
            round_ = await self.store.table_round(row.table.round_id)
            async for seat in seats_of(self.store, row.table.round_id):
                if round_ is not None and seat.status is RoundStatus.OPEN:
                    end = SeatEnd(seat, self.games.rulesets[seat.ruleset_id], row.table.windows)
                    if end.is_undecided:
                        found.append((seat, end, round_))
        return found

    async def void_undecided(self, seat: Round, end: SeatEnd, round_: TableRound) -> None:
        """Sign a void `seat_final`: the stake returns. Replay reports the seat, because its round is settled."""
        session = await self.store.session(seat.session_id)
        if session is None:
            raise ValueError(f"the store has no session {seat.session_id}")
        now_ms = max(self.clock.now_ms(), session.last_ms, round_.end_ms)
        seat_as_known = replace(seat, actions=end.actions)
        staked_minor = staked_so_far(seat_as_known)
        ended = EndedSeat(
            opening=seat.opening_hash,
            table_final=round_.final,
            round_id=seat.round_id,
            round_no=seat.round_no,
            seat_no=seat.seat_no,
            balance_before_minor=seat.balance_before_minor,
            actions=end.actions,
        )
        done = changed(
            seat_as_known,
            version=seat.version + 1,
            status=RoundStatus.VOID,
            phase=end.seat.phase.value,
            end_ms=now_ms,
            staked_minor=staked_minor,
            returned_minor=staked_minor,
        )
        await self.store.commit(seat_ended(session, done, seat_void_body(ended, end.seat.bets, None, None)))

    async def _now(self, row: TableRow) -> int:
        """Now: no window and no decision is later, and the instance that signs had begun."""
        stored_ms = await self.store.clock_ms() or 0
        newest_ms = max(row.table.step_ms, await self.store.newest_seat_ms(row.table.round_id))
        return max(self.clock.now_ms(), stored_ms, newest_ms)

    async def _tables(self) -> AsyncIterator[TableRow]:
        after = ""
        while page := await self.store.tables(after, _PAGE):
            after = page[-1].table.table_id
            for row in page:
                yield row
