"""Finds players, sessions and rounds for support staff, and explains rounds in words.

A caller of the role support sees the players of its own operator, or those of all where its row in the allow-list names
none. What it may not see is not found. Nothing here opens a sealed deck, and no answer has a card that a signed final
has not revealed. Every list is a page of an index.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final

from rgs.core.errors import FormatError, InvalidFieldError, NotFoundError
from rgs.core.ids import check_name, check_reference, check_ulid, ulid_time_ms
from rgs.core.rounds import Round
from rgs.core.sessions import Session
from rgs.core.statements import parse_envelope
from rgs.core.times import parse_date, parse_time
from rgs.service.availability import Availability
from rgs.service.callers import Caller
from rgs.service.game_catalog import GameCatalog
from rgs.service.money.transfers import transaction_of
from rgs.service.pages import check_page_size, format_page_token, parse_page_token
from rgs.service.play.history import RoundSummary
from rgs.service.support.words import SignedRound, explain
from rgs.service.table_statements import shared_statements
from rgs.store.changes import Operation, SwitchOff
from rgs.store.interface import ROW_MAX, StatementRow, Store

DAY_MS: Final = 86_400_000
CODE_DAYS: Final = 32
"""A round that ended so many days after its beginning is not found by its game code, but by its id."""
SEATS_MAX: Final = 50
OPEN_SESSIONS_MAX: Final = 50
TEXT_MAX: Final = 96
_MONEY: Final = frozenset({"purchase", "end", "start", "act", "credit"})
"""Operations that move money at the wallet."""
_FIRST_LIST: Final = 1
_HEAD: Final = (ROW_MAX, ROW_MAX)
"""The position before every row of a list: the greatest comes first."""


class MatchKind(Enum):
    """What a text names."""

    PLAYER = "player"
    SESSION_ID = "session_id"
    ROUND_ID = "round_id"
    GAME_CODE = "game_code"
    OPERATOR_REFERENCE = "operator_reference"
    REGULATOR_SESSION_ID = "regulator_session_id"
    REGULATOR_PARTICIPATION_ID = "regulator_participation_id"
    TRANSACTION_ID = "transaction_id"


@dataclass(frozen=True, slots=True)
class Match:
    """Something that has the name that was looked for."""

    kind: MatchKind
    operator: str
    player: str
    session_id: str = ""
    round_id: str = ""
    time_ms: int = 0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for. A game code needs a date, and where the caller sees all operators, the operator."""

    text: str
    operator: str = ""
    date: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """What keeps a player from starting: a switch by its scope, or a bar at a table."""

    scope: str
    table: str
    reason: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class SignedTransfer:
    """A transfer as it was signed; the transaction id stands in an erasable block, and may be gone."""

    kind: str
    amount_minor: int
    transaction_id: str
    round_id: str
    time_ms: int


@dataclass(frozen=True, slots=True)
class SessionFound:
    """A session, what it waits for, and a page of its transfers."""

    session: Session
    wait: Operation | None
    transfers: Sequence[SignedTransfer]


@dataclass(frozen=True, slots=True)
class ExplainedRound:
    """A round in words, with the envelopes that they come from and the sessions whose seats may be explained, too."""

    summary: RoundSummary
    sentences: Sequence[str]
    opening: bytes = field(repr=False)
    final: bytes = field(repr=False)
    session_ids: Sequence[str] = ()


_Page = list[tuple[tuple[int, int], Match]]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Support:
    """The lookups. It has the store to read from, the rules, and the switches as this process knows them."""

    store: Store
    games: GameCatalog
    availability: Availability

    # --- find -----------------------------------------------------------------------------------------------------

    async def find(
        self, caller: Caller, wanted: Wanted, page_size: int, page_token: str
    ) -> tuple[tuple[Match, ...], str]:
        """What the text names: first what has it as its one name, then the lists of sessions and rounds that share it.
        A token says the list and the position in it.
        """
        limit = check_page_size(page_size)
        operator = _operator_of(caller, wanted.operator)
        text = _check_text(wanted.text)
        stage, *position = parse_page_token(page_token, 3)
        is_code = text.startswith("#")
        lists = [self._codes(wanted, operator)] if is_code else self._listed(text, operator)
        found: list[Match] = []
        if not stage and not is_code:
            found = await self._named(text, operator)
        at = max(stage, _FIRST_LIST)
        before = (position[0], position[1]) if stage else _HEAD
        while at <= len(lists):
            rows = await lists[at - _FIRST_LIST](before, limit + 1 - min(len(found), limit))
            for (first, second), match in rows:
                if len(found) >= limit:
                    return tuple(found), format_page_token(at, *before)
                found.append(match)
                before = (first, second)
            at, before = at + 1, _HEAD
        return tuple(found), ""

    async def _named(self, text: str, operator: str) -> list[Match]:
        """What has this name alone, or alone at its operator. Bounded by the number of operators."""
        found: list[Match | None] = []
        if ulid_time_ms(text) is not None:
            found += [await self._session_match(text), await self._round_match(operator, text)]
            found.append(await self._transaction_match(text))
        if _is_reference(text):
            for name in [operator] if operator else await self.store.operators():
                found += [await self._player_match(name, text), await self._reference_match(name, text)]
        return [match for match in found if match is not None and operator in ("", match.operator)]

    async def _session_match(self, text: str) -> Match | None:
        session = await self.store.session(text)
        return None if session is None else _session(MatchKind.SESSION_ID, session)

    async def _round_match(self, operator: str, text: str) -> Match | None:
        """At a table the first seat of the operator."""
        seats = await self._seats(operator, text)
        return _round(MatchKind.ROUND_ID, seats[0]) if seats else None

    async def _transaction_match(self, text: str) -> Match | None:
        operation = await self.store.operation(text)
        if operation is None or transaction_of(operation) != text:
            operation = await self.store.payout_of_transaction(text)
        if operation is None or operation.kind not in _MONEY:
            return None
        session = await self.store.session(operation.session_id)
        if session is None:
            return None
        match = _session(MatchKind.TRANSACTION_ID, session)
        round_id = json.loads(operation.detail or "{}").get("round_id", "")
        return replace(match, round_id=round_id, time_ms=operation.created_ms)

    async def _player_match(self, operator: str, text: str) -> Match | None:
        sessions = await self.store.sessions_of(operator, text, open_only=False, before=0, limit=1)
        return Match(MatchKind.PLAYER, operator, text, time_ms=sessions[0][1].open_ms) if sessions else None

    async def _reference_match(self, operator: str, text: str) -> Match | None:
        session_id = await self.store.session_of_reference(operator, text)
        session = await self.store.session(session_id) if session_id else None
        return None if session is None else _session(MatchKind.OPERATOR_REFERENCE, session)

    def _listed(self, text: str, operator: str) -> list[Callable[[tuple[int, int], int], Awaitable[_Page]]]:
        async def regulator_sessions(before: tuple[int, int], limit: int) -> _Page:
            rows = await self.store.sessions_of_regulator(text, operator, before=before[0], limit=limit)
            return [((row, row), _session(MatchKind.REGULATOR_SESSION_ID, one)) for row, one in rows]

        async def participations(before: tuple[int, int], limit: int) -> _Page:
            rows = await self.store.sessions_of_participation(text, operator, before=before[0], limit=limit)
            return [((row, row), _session(MatchKind.REGULATOR_PARTICIPATION_ID, one)) for row, one in rows]

        return [regulator_sessions, participations]

    def _codes(self, wanted: Wanted, operator: str) -> Callable[[tuple[int, int], int], Awaitable[_Page]]:
        """Rounds in play first, on the first page; then ended ones, last ended first."""
        if not operator:
            raise InvalidFieldError(
                "a game code is looked for at one operator: name it", field="operator", limit="an operator", value=""
            )
        first_ms = _day_ms(wanted.date)
        span, until_ms = (first_ms, first_ms + DAY_MS), first_ms + CODE_DAYS * DAY_MS

        async def rounds(before: tuple[int, int], limit: int) -> _Page:
            found: _Page = []
            if before[0] == ROW_MAX:
                in_play = await self.store.open_rounds_of_code(
                    operator, wanted.text, span, before=before[1], limit=limit
                )
                found = [((ROW_MAX, row), _round(MatchKind.GAME_CODE, one)) for row, one in in_play]
            left = limit - len(found)
            rows = await self.store.rounds_of_code(operator, wanted.text, span, until_ms, before=before, limit=left)
            return found + [((one.end_ms, row), _round(MatchKind.GAME_CODE, one)) for row, one in rows]

        return rounds

    # --- players and sessions -------------------------------------------------------------------------------------

    async def player(self, caller: Caller, operator: str, player: str) -> tuple[list[Bar], list[Session]]:
        """What keeps a player from starting, and the sessions that are not closed. NotFoundError if the operator has
        had no session of the player.
        """
        operator = _named_operator(caller, operator)
        check_reference(player, "player")
        if not await self.store.sessions_of(operator, player, open_only=False, before=0, limit=1):
            raise NotFoundError(f"{operator} has no session of this player", kind="player", field="player")
        bars = [_bar(switch) for switch in self.availability.switches() if _stops(switch, operator, player)]
        tables = await self.store.bars_of_player(operator, player, OPEN_SESSIONS_MAX)
        bars += [Bar("table", table, reason, since_ms) for table, reason, since_ms in tables]
        rows = await self.store.sessions_of(operator, player, open_only=True, before=0, limit=OPEN_SESSIONS_MAX)
        return bars, [session for _, session in rows]

    async def sessions(
        self, caller: Caller, operator: str, player: str, *, open_only: bool, page_size: int, page_token: str
    ) -> tuple[tuple[Session, ...], str]:
        """A page of a player's sessions, newest first."""
        operator = _named_operator(caller, operator)
        check_reference(player, "player")
        limit = check_page_size(page_size)
        (before,) = parse_page_token(page_token, 1)
        rows = await self.store.sessions_of(operator, player, open_only=open_only, before=before, limit=limit + 1)
        token = format_page_token(rows[limit - 1][0]) if len(rows) > limit else ""
        return tuple(session for _, session in rows[:limit]), token

    async def session(
        self, caller: Caller, session_id: str, page_size: int, page_token: str
    ) -> tuple[SessionFound, str]:
        """A session, what it waits for, and the transfers among a page of its statements."""
        session = await self._session(caller, session_id)
        limit = check_page_size(page_size)
        (after,) = parse_page_token(page_token, 1)
        rows = await self.store.statements_of_session(session_id, after, limit + 1)
        wait = await self.store.pending_operation(session_id) or await self.store.round_credit(session_id)
        transfers = [one for row in rows[:limit] if (one := _transfer(row)) is not None]
        token = format_page_token(rows[limit - 1].link_no) if len(rows) > limit else ""
        return SessionFound(session, wait, transfers), token

    # --- rounds ---------------------------------------------------------------------------------------------------

    async def rounds(
        self, caller: Caller, *, session_id: str, operator: str, player: str, page_size: int, page_token: str
    ) -> tuple[tuple[RoundSummary, ...], str]:
        """A page of the rounds of a session, the one in play among them, or of a player's ended rounds."""
        limit = check_page_size(page_size)
        if bool(session_id) == bool(player):
            raise InvalidFieldError("give either session_id or player", field="session_id", limit="one of them")
        if session_id:
            session = await self._session(caller, session_id)
            (before_no,) = parse_page_token(page_token, 1)
            rows = await self.store.rounds_of_session(session_id, before_no=before_no or ROW_MAX, limit=limit + 1)
            token = format_page_token(rows[limit - 1][1].round_no) if len(rows) > limit else ""
            return tuple(RoundSummary(one, session) for _, one in rows[:limit]), token
        operator = _named_operator(caller, operator)
        check_reference(player, "player")
        last_ms, last_row = parse_page_token(page_token, 2)
        before = (last_ms, last_row) if last_row else (ROW_MAX, 0)
        rows = await self.store.rounds_ended(operator, player, before=before, limit=limit + 1)
        token = format_page_token(rows[limit - 1][1].end_ms, rows[limit - 1][0]) if len(rows) > limit else ""
        return tuple([RoundSummary(one, await self._session_of(one)) for _, one in rows[:limit]]), token

    async def explain(self, caller: Caller, round_id: str, session_id: str) -> ExplainedRound:
        """A round in words. NotFoundError if there is none that the caller may look up."""
        seats = await self._seats(caller.operator, check_ulid(round_id, "round_id"))
        chosen = [seat for seat in seats if session_id in ("", seat.session_id)]
        if session_id and not chosen and (seats and seats[0].table_id):  # beyond the seats that are listed
            seat = await self.store.seat(check_ulid(session_id, "session_id"), round_id)
            chosen = [seat] if seat is not None and caller.operator in ("", seat.operator) else []
        if not chosen:
            raise NotFoundError("no such round", kind="round", field="round_id", round_id=round_id)
        round_ = chosen[0]
        session = await self._session_of(round_)
        opening, final = await self.store.round_envelopes(round_id, round_.seat_no)
        if not opening:  # of a table's round that is void before the draw, or whose seat is about to be opened
            raise NotFoundError("the round has no signed opening yet", kind="round", field="round_id")
        played = await self.store.table_round(round_id) if round_.table_id and final else None
        shared = await shared_statements(self.store, played) if played is not None else []
        signed = SignedRound(
            _body(opening),
            _body(final) if final else {},
            next((_body(row.envelope) for row in shared if row.kind == "table_final"), {}),
        )
        ruleset = self.games.rulesets[round_.ruleset_id]
        sentences = explain(signed, round_, session, ruleset, await self._malfunction_code(round_))
        listed = tuple(seat.session_id for seat in seats)
        return ExplainedRound(RoundSummary(round_, session), sentences, opening, final, listed)

    async def _seats(self, operator: str, round_id: str) -> list[Round]:
        """The seats of an operator's players, or all for an empty name; one in solo play."""
        round_ = await self.store.round(round_id, fresh=True)
        if round_ is not None and not round_.table_id:
            return [round_] if operator in ("", round_.operator) else []
        if operator:
            return await self.store.seats_of_operator(round_id, operator, 0, SEATS_MAX)
        return await self.store.seats_of_round(round_id, 0, SEATS_MAX)

    async def _malfunction_code(self, round_: Round) -> str:
        """Why the round, or the table that is playing it, is paused; empty if it is not."""
        if not round_.table_id:
            return round_.malfunction_code if round_.malfunction else ""
        row, _ = await self.store.table(round_.table_id) or (None, None)
        return row.malfunction_code if row is not None and row.table.round_id == round_.round_id else ""

    async def _session(self, caller: Caller, session_id: str) -> Session:
        session = await self.store.session(check_ulid(session_id, "session_id"), fresh=True)
        if session is None or caller.operator not in ("", session.operator):
            raise NotFoundError("no such session", kind="session", field="session_id", session_id=session_id)
        return session

    async def _session_of(self, round_: Round) -> Session:
        session = await self.store.session(round_.session_id, fresh=True)
        if session is None:
            raise NotFoundError(f"no session {round_.session_id}", kind="session")
        return session


def _operator_of(caller: Caller, operator: str) -> str:
    """The operator whose players may be found; empty: all. InvalidFieldError for another one than the caller's."""
    if operator:
        check_name(operator, "operator")
    if caller.operator and operator not in ("", caller.operator):
        raise InvalidFieldError(
            f"this party looks up players of {caller.operator} only",
            field="operator",
            limit=caller.operator,
            value=operator[:80],
        )
    return caller.operator or operator


def _named_operator(caller: Caller, operator: str) -> str:
    return check_name(_operator_of(caller, operator), "operator")


def _check_text(text: str) -> str:
    if not 1 <= len(text) <= TEXT_MAX or not text.isascii() or not text.isprintable():
        raise InvalidFieldError(
            f"text must have 1 to {TEXT_MAX} printable ASCII characters, it has {len(text)}",
            field="text",
            limit=TEXT_MAX,
            value=ascii(text)[:80],
        )
    return text


def _is_reference(text: str) -> bool:
    try:
        check_reference(text, "text")
    except InvalidFieldError:
        return False
    return True


def _day_ms(date: str) -> int:
    try:
        return parse_date(date)
    except FormatError:
        raise InvalidFieldError(
            "a game code comes again every day: give the date of the round's start, as 2026-11-21",
            field="date",
            limit="a date of the form 2026-11-21",
            value=date[:20],
        ) from None


def _session(kind: MatchKind, session: Session) -> Match:
    return Match(kind, session.operator, session.player, session.session_id, time_ms=session.open_ms)


def _round(kind: MatchKind, round_: Round) -> Match:
    return Match(kind, round_.operator, round_.player, round_.session_id, round_.round_id, round_.start_ms)


def _stops(switch: SwitchOff, operator: str, player: str) -> bool:
    subjects = {"play": "", "operator": operator, "player": f"{operator}/{player}"}
    return subjects.get(switch.scope) == switch.subject


def _bar(switch: SwitchOff) -> Bar:
    return Bar(switch.scope, "", switch.reason, switch.time_ms)


def _body(envelope: bytes) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(parse_envelope(envelope).payload)
    return body


def _transfer(row: StatementRow) -> SignedTransfer | None:
    """The transfer of a statement; None for a kind that moves no money outside."""
    if row.kind not in ("purchase", "participation_end", "transfer", "free_bet"):
        return None
    body = _body(row.envelope)
    block = json.loads(row.private)["block"] if row.private else {}
    transaction_id = body.get("transaction_id") or block.get("wallet_transaction_id", "")
    kind = {"purchase": "purchase", "participation_end": "payout", "free_bet": f"free_bet_{body.get('direction')}"}
    amount = body.get("paid_out_minor") or body["amount_minor"]
    name = kind.get(row.kind, body.get("direction", ""))
    return SignedTransfer(name, int(amount), transaction_id, body.get("round_id", ""), parse_time(body["time"]))
