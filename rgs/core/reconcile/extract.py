"""From verified statements to the rows that are compared: transfers, seats of rounds, sessions.

Statements are taken in the order of the replay; each row says whether every check passed (`is_sound`). Memory grows
with open sessions. A transfer or session whose private block is absent is named in `missing` and has no id; it is then
matched by its participation and session (`rgs.store.reconciliation`).

A `transfer` names its transaction in the body, a purchase and the end of a participation in the private block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from rgs.core.free_bets import reclaimed_minor
from rgs.core.ids import ulid_time_ms
from rgs.core.reconcile.facts import SeatFact, SessionFact, SignedTransfer
from rgs.core.reconcile.matching import CREDIT, DEBIT
from rgs.core.reconcile.records import OPEN
from rgs.core.reconcile.rows import Row
from rgs.core.replay import Rulebook
from rgs.core.replay.reading import Statement
from rgs.core.sessions import PLAY_MONEY
from rgs.core.statements import UnhandledKindError
from rgs.core.times import parse_time

TRANSFERS, SEATS, SESSIONS, PLAYED_FREE = "transfers", "seats", "sessions", "play_money"
FINISH_AFTER_S: Final = 86_400
"""If the jurisdiction is not in the files."""
_KINDS: Final = {TRANSFERS: SignedTransfer, SEATS: SeatFact, SESSIONS: SessionFact}
_COLUMNS: Final = {table: [column.name for column in fields(kind)] for table, kind in _KINDS.items()}
NO_BLOCK: Final = "private block is absent: there is no id to match by"


@dataclass(slots=True)
class _Seat:
    opening: str
    round_id: str
    round_no: str
    available_minor: str
    staked_minor: int
    opened_ms: int
    is_sound: bool


@dataclass(slots=True)
class _Session:
    """One session after its links so far, with the fields of `SessionFact`. Amounts are as in statements."""

    session_id: str
    operator: str = ""
    currency: str = ""
    game: str = ""
    player: str = ""
    regulator_session_id: str = ""
    test_regulator: bool = False
    finish_after_ms: int = FINISH_AFTER_S * 1000
    opened_ms: int = 0
    closed_ms: int = 0
    ending_ms: int = 0
    ended_ms: int = 0
    linked_ms: int = 0
    """When the newest link was signed; 0 before the first link of the files."""
    participation_id: str = ""
    regulator_participation_id: str = ""
    bought_minor: str = "0"
    staked_minor: str = "0"
    returned_minor: str = "0"
    paid_out_minor: str = "0"
    rounds: str = "0"
    is_whole: bool = False
    is_sound: bool = True
    seat: _Seat | None = None
    granted_minor: int = 0
    """What a free bet paid for the round in play. Rows of seats hold the player's own money only."""
    is_demo: bool = False


class Extract:
    """One pass over the statements of an export: `take` each, then `finish` once."""

    def __init__(self, rulebook: Rulebook, *, overdue_s: int | None = None, operator: str | None = None) -> None:
        """`overdue_s` replaces the jurisdiction's time; with `operator` only its sessions are compared."""
        self._rulebook = rulebook
        self._overdue_s = overdue_s
        self._operator = operator
        self._sessions: dict[str, _Session] = {}
        self.newest_ms = 0
        self.operators: set[str] = set()
        self.test_regulator = False
        self.missing: dict[str, str] = {}
        """Statements without their private block -> their session, empty for a transfer."""
        self.demo_sessions = 0
        """Sessions with play money, which are in no other book: they are counted here, and not compared."""
        self.demo_rounds = 0

    def take(self, statement: Statement, *, is_sound: bool) -> Iterator[tuple[str, Row]]:
        """The rows (table, fields) that this statement completes."""
        body, kind = statement.body, statement.kind.name
        time_ms = parse_time(body["time"])
        if not statement.kind.numbered:
            return
        self.newest_ms = max(self.newest_ms, time_ms)
        if not statement.kind.linked:
            return
        session = self._sessions.setdefault(body["session_id"], _Session(body["session_id"]))
        block: dict[str, str] = (statement.private or {}).get("block", {})
        session.regulator_participation_id = block.get("regulator_participation_id", session.regulator_participation_id)
        match kind:
            case "session_open":
                self._open(session, statement, block, time_ms)
                session.is_sound &= is_sound
            case "purchase":
                session.participation_id, session.bought_minor = body["participation_id"], body["bought_minor"]
                self._note_play_money(session, block)
                yield from self._transfer(session, statement, block, (DEBIT, body["amount_minor"]), is_sound=is_sound)
            case "transfer":
                moved = (body["direction"], body["amount_minor"])
                yield from self._transfer(session, statement, block, moved, is_sound=is_sound)
            case "free_bet":
                session.granted_minor = int(body["amount_minor"]) if body["direction"] == DEBIT else 0
                moved = (body["direction"], body["amount_minor"])
                yield from self._transfer(session, statement, block, moved, is_sound=is_sound)
            case "round_opening" | "seat_opening":
                staked = sum(int(bet["amount_minor"]) for bet in body["seat"]["bets"]) - session.granted_minor
                before = str(int(body["balance_before_minor"]) - session.granted_minor)
                session.seat = _Seat(
                    statement.hash, statement.round_id, body["round_no"], before, staked, time_ms, is_sound
                )
            case "round_final" | "seat_final":
                yield from self._final(session, statement, time_ms, is_sound=is_sound)
            case "participation_end":
                session.ended_ms, session.rounds = time_ms, body["rounds"]
                self._note_play_money(session, block)
                session.is_sound &= is_sound
                session.staked_minor, session.returned_minor = body["staked_minor"], body["returned_minor"]
                session.bought_minor, session.paid_out_minor = body["bought_minor"], body["paid_out_minor"]
                session.participation_id = body["participation_id"]
                session.ending_ms = _begun_ms(block.get("wallet_transaction_id", ""), session.linked_ms, time_ms)
                yield from self._transfer(
                    session, statement, block, (CREDIT, session.paid_out_minor), is_sound=is_sound
                )
            case "session_close":
                session.closed_ms, session.is_sound = time_ms, session.is_sound & is_sound
                yield from self._done(self._sessions.pop(session.session_id))
            case _:
                raise UnhandledKindError(kind, "rgs.core.reconcile.extract.Extract.take")
        session.linked_ms = time_ms

    def finish(self) -> Iterator[tuple[str, Row]]:
        """The rows of what is still open."""
        for session_id in sorted(self._sessions):
            yield from self._done(self._sessions[session_id])

    def _open(self, session: _Session, statement: Statement, block: dict[str, str], time_ms: int) -> None:
        body: dict[str, Any] = statement.body
        session.operator, session.currency, session.game = body["operator"], body["currency"], body["ruleset"]["id"]
        session.test_regulator, session.opened_ms, session.is_whole = body["test_regulator"], time_ms, True
        session.player = block.get("player", "")
        session.regulator_session_id = block.get("regulator_session_id", "")
        jurisdiction = self._rulebook.jurisdiction(body["jurisdiction"])
        own_s = jurisdiction.finish_after_s if jurisdiction else FINISH_AFTER_S
        session.finish_after_ms = 1000 * (own_s if self._overdue_s is None else self._overdue_s)
        if body.get("mode") == "demo":
            self._leave_out(session)
        self.operators.add(session.operator)
        self.test_regulator |= session.test_regulator
        if statement.private is None and self._is_compared(session):
            self.missing[statement.hash] = session.session_id

    def _transfer(
        self,
        session: _Session,
        statement: Statement,
        block: dict[str, str],
        moved: tuple[str, str],
        *,
        is_sound: bool,
    ) -> Iterator[tuple[str, Row]]:
        body = statement.body
        transaction_id = block.get("wallet_transaction_id", body.get("transaction_id", ""))
        if not self._is_compared(session):
            return
        if not transaction_id:
            self.missing[statement.hash] = ""
        kind, amount_minor = moved
        time_ms = parse_time(body["time"])
        own = {
            "transaction_id": transaction_id,
            "kind": kind,
            "amount_minor": amount_minor,
            "reference": _reference(session, body, kind),
            "purchase_no": body.get("purchase_no", "0"),
            "source": statement.kind.name,
            "begun_ms": _begun_ms(transaction_id, session.linked_ms, time_ms),
            "time_ms": time_ms,
            "statement": statement.hash,
            "is_sound": is_sound,
            **({"player": ""} if "grant_id" in body else {}),  # the campaign's money, whatever its account is called
        }
        yield TRANSFERS, _row(TRANSFERS, session, own)

    def _final(
        self, session: _Session, statement: Statement, time_ms: int, *, is_sound: bool
    ) -> Iterator[tuple[str, Row]]:
        seat, session.seat = session.seat, None
        body = statement.body
        self.demo_rounds += session.is_demo and self._is_of_operator(session)
        if seat is None or seat.opening != body["opening"]:  # its opening is outside the files, or the replay said so
            return
        seat.is_sound &= is_sound
        staked, returned = int(body["staked_minor"]), int(body["returned_minor"])
        if session.granted_minor:
            staked -= session.granted_minor
            returned -= reclaimed_minor(body["settlement"]) if "settlement" in body else session.granted_minor
        yield from self._seat(session, seat, (statement.hash, str(staked), str(returned), time_ms, body["status"]))

    def _seat(self, session: _Session, seat: _Seat, final: tuple[str, str, str, int, str]) -> Iterator[tuple[str, Row]]:
        if not self._is_compared(session):
            return
        of_final = dict(zip(("final", "staked_minor", "returned_minor", "ended_ms", "status"), final, strict=True))
        due_ms = seat.opened_ms + session.finish_after_ms
        yield SEATS, _row(SEATS, session, {**asdict(seat), **of_final, "due_ms": due_ms})

    def _done(self, session: _Session) -> Iterator[tuple[str, Row]]:
        if session.seat is not None:
            yield from self._seat(session, session.seat, ("", str(session.seat.staked_minor), "0", 0, OPEN))
        if session.is_demo:
            yield PLAYED_FREE, (session.session_id,)
        if not self._is_compared(session):
            return
        yield SESSIONS, _row(SESSIONS, session, {})

    def _note_play_money(self, session: _Session, block: dict[str, str]) -> None:
        """In files that begin later, the block beside a purchase or an end says what the session is played for."""
        if block.get("reason") == PLAY_MONEY and not session.is_demo:
            self._leave_out(session)

    def _leave_out(self, session: _Session) -> None:
        session.is_demo = True
        self.demo_sessions += self._is_of_operator(session)

    def _is_compared(self, session: _Session) -> bool:
        return self._is_of_operator(session) and not session.is_demo

    def _is_of_operator(self, session: _Session) -> bool:
        return self._operator is None or session.operator in ("", self._operator)


def _reference(session: _Session, body: dict[str, Any], kind: str) -> str:
    """What the wallet got with the transaction's id (rgs.ports.wallet)."""
    if "round_id" not in body:
        return session.participation_id
    purposes = ("free_bet", "free_bet_return") if "grant_id" in body else ("bet", "return")
    return f"{session.session_id}:{purposes[kind != DEBIT]}:{body['round_id']}"


def _begun_ms(transaction_id: str, linked_ms: int, time_ms: int) -> int:
    """The earliest request for a transfer whose statement was signed at `time_ms`: not before the previous link of its
    session, nor before the time in its id. 0: unknown.
    """
    if not transaction_id:
        return 0
    begun_ms = ulid_time_ms(transaction_id)
    return time_ms if begun_ms is None else min(max(begun_ms, linked_ms), time_ms)


def _row(table: str, session: _Session, own: dict[str, Any]) -> Row:
    """The fields of the table's dataclass: from `own`, the others from the session."""
    return tuple(_cell(own[name] if name in own else getattr(session, name)) for name in _COLUMNS[table])


def _cell(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
