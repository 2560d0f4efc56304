"""The rounds of a player at one operator, over all sessions, last ended first (RULEBOOK R-5, R-4).

Records are rendered from the signed statements of the round. An operator sees only its own players.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from rgs.core.errors import FormatError, InvalidFieldError, NotFoundError
from rgs.core.ids import check_name, check_reference, check_ulid
from rgs.core.rounds import Round
from rgs.core.sessions import Session
from rgs.core.tables.rows import TableRow
from rgs.core.times import parse_date
from rgs.core.views import RoundView
from rgs.service.callers import Caller, Role
from rgs.service.pages import check_page_size, format_page_token, parse_page_token
from rgs.service.play.decks import Decks
from rgs.service.table_statements import path_nodes, shared_statements
from rgs.store.interface import Store

RECORDS_MAX = 50
"""Most rounds of one player with the same date and second (sessions at several tables), or seats of one round."""
_GAME_CODE = re.compile(r"#([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])(?:-[0-9]*)?")


class SeatRoundViews(Protocol):
    """Views of rounds at tables: `rgs.service.tables.views`."""

    async def own_round(self, row: TableRow, seat: Round, session: Session) -> RoundView:
        """A player's round as the player may see it now."""


@dataclass(frozen=True, slots=True)
class RoundSummary:
    """A line of the list: the round, and the session for its ids and currency."""

    round: Round
    session: Session


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """One round whole, with its signed opening and final (empty while it is open). Of a seat at a table its path, and
    by kind the envelopes that all seats share.
    """

    summary: RoundSummary
    view: RoundView
    opening: bytes
    final: bytes
    path: tuple[bytes, ...] = ()
    shared: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(kw_only=True, eq=False, repr=False)
class History:
    """Reads ended rounds and single records."""

    store: Store
    decks: Decks
    tables: SeatRoundViews

    async def list_rounds(
        self, caller: Caller, player: str, page_size: int, page_token: str, operator: str = ""
    ) -> tuple[tuple[RoundSummary, ...], str]:
        """A page of ended rounds, last ended first, and the next page's token (empty at the end)."""
        check_reference(player, "player")
        operator = _operator_of(caller, operator)
        limit = check_page_size(page_size)
        end_ms, row = parse_page_token(page_token, 2)
        before = (end_ms, row) if row else (1 << 62, 0)
        rows = await self.store.rounds_ended(operator, player, before=before, limit=limit + 1)
        sessions: dict[str, Session] = {}
        summaries = tuple([await self._summary(round_, sessions) for _, round_ in rows[:limit]])
        if len(rows) <= limit:
            return summaries, ""
        last_row, last = rows[limit - 1]
        return summaries, format_page_token(last.end_ms, last_row)

    async def get_records(
        self,
        caller: Caller,
        *,
        round_id: str,
        player: str,
        date: str,
        game_code: str,
        operator: str = "",
        session_id: str = "",
    ) -> tuple[RoundRecord, ...]:
        """One round by its id, of a table all seats or that of a session; or those of a player with that UTC date and
        game code. NotFoundError if there is none.
        """
        if round_id:
            rounds = await self._rounds_of(caller, check_ulid(round_id, "round_id"), session_id)
        else:
            check_reference(player, "player")
            start_ms = _start_of(date, game_code)
            rounds = await self.store.rounds_started(
                _operator_of(caller, operator), player, start_ms, start_ms + 999, RECORDS_MAX
            )
            rounds = [round_ for round_ in rounds if round_.game_code == game_code]
        sessions: dict[str, Session] = {}
        records = [
            await self._record(caller, round_, sessions)
            for round_ in rounds
            if caller.role is not Role.OPERATOR or round_.operator == caller.party
        ]
        if not records:
            raise NotFoundError("no such round", kind="round", round_id=round_id, date=date, game_code=game_code)
        return tuple(records)

    async def _rounds_of(self, caller: Caller, round_id: str, session_id: str) -> list[Round]:
        """The round; at a table the seats of the caller's players, up to RECORDS_MAX."""
        round_ = await self.store.round(round_id, fresh=True)
        if round_ is not None and not round_.table_id:
            return [round_] if session_id in ("", round_.session_id) else []
        if session_id:
            seat = await self.store.seat(check_ulid(session_id, "session_id"), round_id)
            return [] if seat is None else [seat]
        if caller.role is Role.OPERATOR:
            return await self.store.seats_of_operator(round_id, caller.party, 0, RECORDS_MAX)
        return await self.store.seats_of_round(round_id, 0, RECORDS_MAX)

    async def _record(self, caller: Caller, round_: Round, sessions: dict[str, Session]) -> RoundRecord:
        opening, final = await self.store.round_envelopes(round_.round_id, round_.seat_no)
        summary = await self._summary(round_, sessions)
        view = await self._view(summary, final)
        played = await self.store.table_round(round_.round_id) if round_.table_id else None
        if played is None:
            return RoundRecord(summary, view, opening, final)
        if not played.final and caller.role is not Role.OPERATOR:
            # Until the table shows them, only the player's own operator needs the cards of a box.
            view = replace(view, hole_cards=(), player_hand=None)
        shared = {row.kind: row.envelope for row in await shared_statements(self.store, played)}
        return RoundRecord(summary, view, opening, final, path_nodes(round_.path), shared)

    async def _view(self, summary: RoundSummary, final: bytes) -> RoundView:
        round_ = summary.round
        found = await self.store.table(round_.table_id) if round_.table_id else None
        if found is None:
            return self.decks.view(round_, final)
        return await self.tables.own_round(found[0], round_, summary.session)

    async def _summary(self, round_: Round, sessions: dict[str, Session]) -> RoundSummary:
        session = sessions.get(round_.session_id) or await self.store.session(round_.session_id, fresh=True)
        if session is None:
            raise NotFoundError(f"no session {round_.session_id}", kind="session")
        sessions[round_.session_id] = session
        return RoundSummary(round_, session)


def _operator_of(caller: Caller, operator: str) -> str:
    """The operator whose players are meant: the caller itself; other parties name the operator."""
    if caller.role is not Role.OPERATOR:
        return check_name(operator, "operator")
    if operator not in ("", caller.party):
        raise InvalidFieldError(
            "an operator asks for its own players only", field="operator", limit=caller.party, value=operator[:80]
        )
    return caller.party


def _start_of(date: str, game_code: str) -> int:
    try:
        midnight_ms = parse_date(date)
    except FormatError:
        raise InvalidFieldError("date is not of the form 2026-11-21", field="date", value=date[:20]) from None
    code = _GAME_CODE.fullmatch(game_code)
    if code is None:
        raise InvalidFieldError("game_code is not of the form #HH:MM:SS", field="game_code", value=game_code[:20])
    hours, minutes, seconds = map(int, code.groups())
    return midnight_ms + ((hours * 60 + minutes) * 60 + seconds) * 1000
