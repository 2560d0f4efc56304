"""The replay of an export, line by line: the order of the checks, the state between lines, and the counts at the end.

Lines may stand in any order that keeps each instance's and each session's own order. Memory grows with open sessions,
open rounds and instances; of a finished round or session only its id stays. A failed check is returned, not raised. The
replay then continues with what the authentic statement says, so that one fault is reported once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

from rgs.core.errors import VerificationError
from rgs.core.replay.checks import KEY, LINE, OPENING, SCOPE, SEATS, SESSION
from rgs.core.replay.deals import Deals
from rgs.core.replay.finals import verify_discarded, verify_final
from rgs.core.replay.identifiers import IdSet
from rgs.core.replay.instances import Instances
from rgs.core.replay.keys import KeyBook
from rgs.core.replay.openings import verify_opening
from rgs.core.replay.reading import HashedEntry, Statement, read_authentic, read_entry, verify_private
from rgs.core.replay.registered import Registered
from rgs.core.replay.rules import Rulebook
from rgs.core.replay.scope import NumberSequence, Scope
from rgs.core.replay.seat_finals import read_table_seat, verify_seat_final, verify_seat_opening
from rgs.core.replay.seats import OpenSeat, read_seat
from rgs.core.replay.sessions import (
    Chain,
    chain_of_state,
    verify_free_bet,
    verify_participation_end,
    verify_purchase,
    verify_session_close,
    verify_session_open,
    verify_transfer,
)
from rgs.core.replay.table_rounds import TableRound
from rgs.core.replay.tables import Tables
from rgs.core.replay.voids import Voids
from rgs.core.rounds import DECK_UNRECOVERABLE
from rgs.core.statements import UnhandledKindError

_Read = TypeVar("_Read")


@dataclass(slots=True)
class Summary:
    """The counts. Amounts are those of finals that passed, by currency ("" if a cut export does not show it)."""

    lines: int = 0
    failures: int = 0
    statements: Counter[str] = field(default_factory=Counter)
    rounds_verified: int = 0
    rounds_failed: int = 0
    rounds_open: int = 0
    rounds_demo: int = 0
    """Finals of sessions with play money: their amounts are in no sum."""
    seats_void: int = 0
    seats_unrecoverable: int = 0
    """Those of `seats_void` whose deck was not revealed (DECK_UNRECOVERABLE)."""
    games: Counter[str] = field(default_factory=Counter)
    sessions: int = 0
    instances: int = 0
    draws_in_rounds: int = 0
    draws_discarded: int = 0
    draws_exposed: int = 0
    """The most unknown draws of lost instances, and decks of voids that could not be unsealed. A cut export shows the
    draw windows only in part.
    """
    private_verified: int = 0
    private_absent: int = 0
    ids_absent: int = 0
    """Those of `private_absent` whose jurisdiction requires the regulator's ids."""
    staked_minor: Counter[str] = field(default_factory=Counter)
    returned_minor: Counter[str] = field(default_factory=Counter)
    is_cut: bool = False
    has_development_keys: bool = False

    def fields(self) -> dict[str, Any]:
        """All counts by name."""
        return {name: getattr(self, name) for name in self.__slots__}


_OPENINGS: Final = frozenset({"round_opening", "seat_opening"})
_FINALS: Final = frozenset({"round_final", "seat_final"})
_OF_CHAIN: Final = {
    "transfer": verify_transfer,
    "participation_end": verify_participation_end,
    "session_close": verify_session_close,
}
"""The checks of links that need nothing but their session's chain."""
_COUNTERS: Final = ("games", "returned_minor", "staked_minor", "statements")


class Replay:
    """One replay: `feed` every line, then `finish` once. Both return the checks that failed."""

    def __init__(self, keys: KeyBook, rulebook: Rulebook, *, goes_on: bool = False) -> None:
        """`keys` gets the instance keys that the lines name; each replay needs its own.

        `goes_on`: a log is read from its first entry. Nothing may be missing in it, and no scope excuses a gap;
        running instances, open sessions and open rounds are no fault.
        """
        self._keys = keys
        self._rulebook = rulebook
        self._goes_on = goes_on
        self._scope = Scope()
        self._instances = Instances(self._scope, goes_on=goes_on)
        self._deals = Deals()
        self._tables = Tables()
        self._chains: dict[str, Chain] = {}
        self._sessions = IdSet()
        self._closed_in_scope: set[str] = set()
        self._voids = Voids()
        self._registered = Registered()
        self._failures: list[VerificationError] = []
        self.summary = Summary()
        self.statement: Statement | None = None
        """The statement of the last line, if it is authentic (checks 1 to 4). Reconciliation reads it."""

    def feed(self, line: bytes) -> list[VerificationError]:
        """Take the next line of the files, without its line feed; return the failures that it shows."""
        return self._feed(read_authentic, line)

    def feed_entry(self, entry: HashedEntry) -> list[VerificationError]:
        """Take the next entry of a log, instead of `feed`."""
        return self._feed(read_entry, entry)

    def _feed(self, read: Callable[[_Read, KeyBook], Statement], data: _Read) -> list[VerificationError]:
        self.summary.lines += 1
        self.statement = None
        try:
            self.statement = read(data, self._keys)
        except VerificationError as error:
            self._report(error, is_of_round=False)  # no statement, whatever round it names
        else:
            self._take(self.statement)
        return self._drain()

    def refuse(self, message: str) -> list[VerificationError]:
        """Take a line that could not be read whole (check 1), instead of `feed`."""
        self.summary.lines += 1
        self.statement = None
        self._report(LINE.failure(message))
        return self._drain()

    def finish(self) -> list[VerificationError]:
        """End the replay: return what is missing, and complete `summary`."""
        for session_id in sorted(self._chains):
            self._finish_session(self._chains[session_id])
        for session_id in sorted(self._scope.sessions.keys() - self._chains.keys() - self._closed_in_scope):
            self._report(SCOPE.failure("the scope promises a session of which nothing is here", session_id=session_id))
        is_whole = self._scope.is_whole and not self._goes_on
        for round_ in self._tables.finish():
            self._finish_table_round(round_, is_whole=is_whole)
        deals = self._deals.finish(is_whole=is_whole, goes_on=self._goes_on)
        for error in (*self._voids.finish(), *self._instances.finish(), *deals):
            self._report(error)
        summary = self.summary
        summary.ids_absent = self._registered.absent
        summary.rounds_verified, summary.rounds_failed = self._deals.verified, len(self._deals.failed)
        summary.rounds_open, summary.games = self._deals.left_open, self._deals.games
        summary.instances, summary.is_cut = len(self._instances), not self._scope.is_whole
        summary.draws_exposed += self._instances.exposure
        return self._drain()

    @property
    def instances(self) -> Instances:
        """All instances read so far, with their draws."""
        return self._instances

    # --- between two runs ---

    def state(self) -> dict[str, Any]:
        """What `restore` needs, for JSON, to be written before anything else is fed. Only for a log that goes on: the
        ranges of a scope are not in it. The instance keys are the key book's.
        """
        return {
            "chains": [chain.state() for chain in self._chains.values()],
            "deals": self._deals.state(),
            "instances": self._instances.state(),
            "registered": self._registered.state(),
            "sessions": self._sessions.state(),
            "summary": self.summary.fields(),
            "tables": self._tables.state(),
            "voids": self._voids.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`, in a new replay whose key book has its instance keys.

        Raises KeyError, TypeError, ValueError, AttributeError or RgsError for what is not a state of this version.
        """
        for row in state["chains"]:
            self._chains[row["session_id"]] = chain_of_state(row, self._rulebook)
        self._deals.restore(state["deals"])
        self._instances.restore(state["instances"], self._keys.known)
        self._registered.restore(state["registered"])
        self._sessions.restore(state["sessions"])
        counts = {name: Counter(state["summary"][name]) for name in _COUNTERS}
        self.summary = Summary(**{**state["summary"], **counts})
        self._tables.restore(state["tables"], self._rulebook)
        self._voids.restore(state["voids"])

    # --- failures ---

    def _passes(self, verify: Callable[..., object], *args: object) -> bool:
        try:
            verify(*args)
        except VerificationError as error:
            self._report(error)
            return False
        return True

    def _report(self, error: VerificationError, *, is_of_round: bool = True) -> None:
        self._failures.append(error)
        self.summary.failures += 1
        if is_of_round and "round_id" in error.metadata:
            self._deals.fail(error.metadata["round_id"])

    def _drain(self) -> list[VerificationError]:
        failures, self._failures = self._failures, []
        return failures

    # --- statements ---

    def _take(self, statement: Statement) -> None:
        kind, body, summary = statement.kind, statement.body, self.summary
        if kind.name == "instance_start" and self._instances.is_repeated_start(statement):
            return
        summary.statements[kind.name] += 1
        summary.has_development_keys |= statement.key.development
        # (5) The private block.
        has_private = kind.private or statement.private is not None
        is_private_sound = not has_private or self._passes(verify_private, statement)
        if is_private_sound and kind.private:
            summary.private_absent += statement.private is None
            summary.private_verified += statement.private is not None
        if not kind.numbered:
            self._take_unnumbered(statement)
            return
        if kind.name == "instance_start" and not self._passes(self._start_instance, statement):
            return
        self._scope.has_begun |= not self._goes_on and kind.name != "instance_start"  # no scope counts in a log
        # (6) The order of the instance, (22) and of the cut.
        self._passes(self._instances.verify_number, statement)
        if not self._scope.is_whole and kind.name != "instance_start" and not self._scope.names(body):
            self._report(statement.failure(SCOPE, "no scope names this statement"))
        if kind.linked:
            self._link(statement, is_private_sound=is_private_sound)
        else:
            self._take_unlinked(statement)

    def _take_unnumbered(self, statement: Statement) -> None:
        match statement.kind.name:
            case "export_scope":
                if not self._goes_on:
                    self._passes(self._widen, statement)
            case "root_key" | "node_key" | "key_end" | "revocation" | "report" | "countersignature":
                pass  # keys come from the key bundle; the others are not replayed
            case name:
                raise UnhandledKindError(name, "rgs.core.replay.procedure.Replay._take_unnumbered")

    def _take_unlinked(self, statement: Statement) -> None:
        match statement.kind.name:
            case "instance_end":
                self._instances.end(statement)
            case "instance_lost":
                self._passes(self._instances.lose, statement)
            case "draw_window":
                self._passes(self._instances.widen, statement)
            case "discarded_draw":
                self.summary.draws_discarded += 1
                self._passes(self._instances.use_draw, statement, statement.body)
                self._passes(verify_discarded, statement)
            case "event":
                self._voids.take(statement)
                if statement.body["code"] == "TIME_JUMP":
                    self._keys.note_time_jump(statement.keyid)
            case "table_round":
                self._passes(self._begin_round, statement)
            case "table_seats":
                self._passes(self._tables.take_seats, statement)
            case "table_deal":
                self._take_deal(statement)
            case "table_final":
                self._end_round(statement)
            case "instance_start" | "artifact":
                pass  # `_start_instance` took the start; `certify log` compares files with artifacts
            case name:
                raise UnhandledKindError(name, "rgs.core.replay.procedure.Replay._take_unlinked")

    def _widen(self, statement: Statement) -> None:
        try:
            self._scope.add(statement.body, self._instances.shows, self._shows_session)
        except VerificationError as error:
            raise statement.failure(SCOPE, error.message) from None

    def _shows_session(self, session_id: str, first: int) -> bool:
        """Whether a link with this number or a later one was read, or the close."""
        chain = self._chains.get(session_id)
        return session_id in self._sessions if chain is None else chain.links.last >= first

    def _start_instance(self, statement: Statement) -> None:
        self._instances.start(statement)
        try:
            self._keys.add_instance(statement.body, statement.keyid, self._instances.since(statement.body))
        except VerificationError as error:
            raise statement.failure(KEY, error.message) from None

    # --- sessions ---

    def _link(self, statement: Statement, *, is_private_sound: bool) -> None:
        """(7) The order of the session, then the link by itself, and at last (23) the ids that it names."""
        body, kind = statement.body, statement.kind.name
        chain = self._chain(statement)
        if chain is None:
            return
        before, number = chain.links.last, int(body["link_no"])
        self._passes(chain.verify_link, statement, self._scope.sessions.get(chain.session_id))
        if number <= before:
            return
        is_behind_gap = number > before + 1
        answers = chain.seat is not None and kind in _FINALS and body["opening"] == chain.seat.opening
        if chain.seat is not None and is_behind_gap and chain.is_over(statement):
            self._abandon(chain.seat, is_outside=not self._scope.is_whole)
            chain.seat = None
        elif chain.seat is not None and not answers and kind in {*_OPENINGS, *_FINALS, "session_close"}:
            self._abandon(chain.seat, is_outside=False)
        seat = None
        match kind:
            case "round_opening":
                seat = self._open_seat(statement, chain)
            case "round_final":
                self._close_seat(statement, chain)
            case "seat_opening":
                seat = self._open_table_seat(statement, chain)
            case "seat_final":
                self._close_table_seat(statement, chain)
            case "session_open":
                self._passes(verify_session_open, statement, self._rulebook)
            case "purchase":
                self._passes(verify_purchase, statement, chain, self._rulebook)
            case "transfer" | "participation_end" | "session_close":
                self._passes(_OF_CHAIN[kind], statement, chain)
            case "free_bet":
                self._passes(verify_free_bet, statement, chain, self._rulebook)
            case _:
                raise UnhandledKindError(kind, "rgs.core.replay.procedure.Replay._link")
        if is_private_sound and (statement.kind.private or kind in {"transfer", "free_bet"}):
            self._passes(self._registered.verify, statement, chain, self._rulebook)
        chain.advance(statement, seat)
        if kind == "session_close":
            self._close_session(statement, chain)

    def _chain(self, statement: Statement) -> Chain | None:
        session_id = statement.body["session_id"]
        chain = self._chains.get(session_id)
        if chain is None:
            if not self._sessions.add(session_id):
                self._report(statement.failure(SESSION, "the session was closed before"))
                return None
            self.summary.sessions += 1
            chain = self._chains[session_id] = Chain(session_id, NumberSequence(is_whole=self._scope.is_whole, head=0))
        return chain

    def _open_seat(self, statement: Statement, chain: Chain) -> OpenSeat:
        seat = read_seat(statement, self._rulebook)
        seat.operator = chain.operator
        seat.is_sound = self._passes(verify_opening, statement, seat, chain, self._rulebook)
        # (20) The draw, once for all seats of the round; (9) then the seats among each other.
        if self._deals.brings_draw(statement):
            self.summary.draws_in_rounds += 1
            self._passes(self._instances.use_draw, statement, statement.body["deal"])
        self._passes(self._deals.join, statement, seat)
        return seat

    def _close_seat(self, statement: Statement, chain: Chain) -> None:
        body, seat = statement.body, chain.seat
        if self._passes(verify_final, statement, seat, chain.is_seamless):
            self._count_money(chain, body)
            if body["status"] == "void":
                is_hidden = body["void"]["reason"] == DECK_UNRECOVERABLE
                self.summary.seats_void += 1
                self.summary.seats_unrecoverable += is_hidden
                self.summary.draws_exposed += is_hidden
                opened = "" if seat is None else seat.time
                self._passes(partial(self._voids.verify, is_whole=self._scope.is_whole), statement, opened)
        if seat is not None and body["opening"] == seat.opening:
            self._deals.answer(seat.round_id)

    def _count_money(self, chain: Chain, body: dict[str, Any]) -> None:
        """Add a final to the amounts. Play money is counted apart, by rounds only."""
        if chain.is_demo:
            self.summary.rounds_demo += 1
            return
        self.summary.staked_minor[chain.currency] += int(body["staked_minor"])
        self.summary.returned_minor[chain.currency] += int(body["returned_minor"])

    def _abandon(self, seat: OpenSeat, *, is_outside: bool) -> None:
        round_ = self._tables.of_round(seat.table_round)
        if is_outside and round_ is not None:
            round_.is_cut = True
        elif is_outside and not seat.table_round:
            self._deals.leave_open(seat.round_id)
        elif not is_outside:
            self._report(
                OPENING.failure("no final answers the opening", round_id=seat.round_id, statement=seat.opening)
            )
        if round_ is not None:
            self._tables.answer(round_)
        elif not is_outside and not seat.table_round:
            self._deals.answer(seat.round_id)

    # --- tables ---

    def _finish_table_round(self, round_: TableRound, *, is_whole: bool) -> None:
        """In whole files every round has its end, and each seat its final."""
        is_over = bool(round_.final) and not round_.unanswered
        if is_whole and not is_over:
            missing = (
                f"{round_.unanswered} seats of the round have no final" if round_.final else "the round has no end"
            )
            self._report(SEATS.failure(missing, round_id=round_.round_id))
        self._deals.end(round_.round_id, is_left_open=round_.is_cut or not is_over)

    def _begin_round(self, statement: Statement) -> None:
        """The round before is over. In cut files its end and its seats' finals may lie outside: there it is kept until
        each of its seats has ended.
        """
        is_whole = self._scope.is_whole
        before = self._tables.newest(statement.body["table"])
        try:
            self._tables.begin(statement, self._rulebook, is_whole=is_whole)
        finally:
            if before is not None and (is_whole or not before.unanswered):
                self._finish_table_round(before, is_whole=is_whole)
                self._tables.forget(before)

    def _take_deal(self, statement: Statement) -> None:
        """(20) The draw, (25) the deal."""
        self.summary.draws_in_rounds += 1
        self._passes(self._instances.use_draw, statement, statement.body["deal"])
        round_ = self._tables.of_round(statement.body["deal"]["table_round"])
        family = round_.ruleset.family if round_ is not None and round_.ruleset is not None else "unknown"
        self._passes(self._deals.begin, statement, family)
        self._passes(partial(self._tables.take_deal, is_whole=self._scope.is_whole), statement)

    def _end_round(self, statement: Statement) -> None:
        body = statement.body
        if not self._passes(partial(self._tables.end, is_whole=self._scope.is_whole), statement):
            return
        if body["status"] == "void":
            round_ = self._tables.of_round(body["table_round"])
            is_hidden = "deal" in body and body["void"]["reason"] == DECK_UNRECOVERABLE
            self.summary.draws_exposed += is_hidden
            opened = "" if round_ is None else round_.deal_time or round_.body["betting_open_time"]
            self._passes(partial(self._voids.verify, is_whole=self._scope.is_whole), statement, opened)

    def _open_table_seat(self, statement: Statement, chain: Chain) -> OpenSeat:
        round_ = self._tables.of_deal(statement.body["deal"])
        seat = read_table_seat(statement, round_)
        seat.operator = chain.operator
        seat.is_sound = self._passes(verify_seat_opening, statement, seat, chain, self._rulebook, round_)
        if round_ is not None:
            self._passes(partial(self._tables.join, is_whole=self._scope.is_whole), statement, round_, seat.leaf)
        return seat

    def _close_table_seat(self, statement: Statement, chain: Chain) -> None:
        body, seat = statement.body, chain.seat
        round_ = None if seat is None else self._tables.of_round(seat.table_round)
        if self._passes(verify_seat_final, statement, seat, round_):
            self._count_money(chain, body)
            self.summary.seats_void += body["status"] == "void"
            self.summary.seats_unrecoverable += body["status"] == "void" and "would_have_been" not in body
        if seat is not None and round_ is not None and body["opening"] == seat.opening:
            self._tables.answer(round_)

    def _close_session(self, statement: Statement, chain: Chain) -> None:
        ranges = self._scope.sessions.get(chain.session_id)
        fault = chain.links.missing_end(has_ended=True, ranges=ranges)
        if fault:
            self._report(statement.failure(SCOPE, f"the session {fault}"))
        if ranges:
            self._closed_in_scope.add(chain.session_id)
        del self._chains[chain.session_id]

    def _finish_session(self, chain: Chain) -> None:
        fault = chain.links.missing_end(has_ended=self._goes_on, ranges=self._scope.sessions.get(chain.session_id))
        if fault:
            self._report(SCOPE.failure(f"the session {fault}", session_id=chain.session_id))
        if chain.seat is not None:
            self._abandon(chain.seat, is_outside=not fault)
