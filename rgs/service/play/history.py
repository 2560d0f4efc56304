"""Ended rounds at one operator, last ended first: of a player over all sessions, of a session, or with a game code
(RULEBOOK R-5, R-4).

Records are rendered from the signed statements of the round. An operator sees only its own players.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from rgs.core.errors import FormatError, InvalidFieldError, NotFoundError
from rgs.core.ids import check_name, check_reference, check_ulid
from rgs.core.rounds import Round
from rgs.core.sessions import Session
from rgs.core.statements import parse_envelope, parse_statement
from rgs.core.tables.rows import TableRow
from rgs.core.tables.tree import path_nodes
from rgs.core.times import parse_date
from rgs.core.views import RoundView
from rgs.service.callers import Caller, Role
from rgs.service.pages import check_page_size, format_page_token, parse_page_token, verify_alone
from rgs.service.play.decks import Decks
from rgs.service.table_statements import shared_statements
from rgs.store.interface import ROW_MAX, Store

CODE_DAYS_MAX = 31
"""Days in which a game code may be looked for: it comes again every day."""
RECORDS_MAX = 50
"""Most rounds of one player with the same date and second (sessions at several tables), or seats of one round."""
_LINKS_OF_FREE_BET = 4
"""The free bet's debit, opening, final, and its return."""
DAY_MS = 86_400_000
_END_MS = ROW_MAX
"""Behind every time."""
_GAME_CODE = re.compile(r"#([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])(?:-[0-9]*)?")


class SeatRoundViews(Protocol):
    """Views of rounds at tables: `rgs.service.tables.views`."""

    async def own_round(self, row: TableRow, seat: Round, session: Session) -> RoundView:
        """A player's round as the player may see it now."""


@dataclass(frozen=True, slots=True)
class RoundsFilter:
    """What is listed: a player's rounds, those of one session, or those with a game code. Empty: not named."""

    player: str = ""
    operator: str = ""
    first_day: str = ""
    last_day: str = ""
    game: str = ""
    session_id: str = ""
    game_code: str = ""
    operator_reference: str = ""


_Found = tuple[list[tuple[int, Round]], Callable[[int, Round], tuple[int, ...]]]
"""Rows with their numbers, and what a page token holds of a row."""


@dataclass(frozen=True, slots=True)
class RoundSummary:
    """A line of the list: the round, and the session for its ids and currency."""

    round: Round
    session: Session


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """One round whole, with its signed opening and final (empty while it is open). Of a seat at a table its path, and
    by kind the envelopes that all seats share. Of a round that a free bet paid for its signed `free_bet` links.
    """

    summary: RoundSummary
    view: RoundView
    opening: bytes
    final: bytes
    path: tuple[bytes, ...] = ()
    shared: Mapping[str, bytes] = field(default_factory=dict)
    free_bets: tuple[bytes, ...] = ()


@dataclass(kw_only=True, eq=False, repr=False)
class History:
    """Reads ended rounds and single records."""

    store: Store
    decks: Decks
    tables: SeatRoundViews

    async def list_rounds(
        self, caller: Caller, wanted: RoundsFilter, page_size: int, page_token: str
    ) -> tuple[tuple[RoundSummary, ...], str]:
        """A page of ended rounds, last ended first, and the next page's token (empty at the end)."""
        operator = _operator_of(caller, wanted.operator)
        limit = check_page_size(page_size)
        if wanted.session_id or wanted.operator_reference:
            rows, position = await self._of_session(operator, wanted, page_token, limit)
        else:
            rows, position = await self._in_days(operator, wanted, page_token, limit)
        sessions: dict[str, Session] = {}
        summaries = tuple([await self._summary(round_, sessions) for _, round_ in rows[:limit]])
        return summaries, format_page_token(*position(*rows[limit - 1])) if len(rows) > limit else ""

    async def _of_session(self, operator: str, wanted: RoundsFilter, page_token: str, limit: int) -> _Found:
        """The ended rounds of one session; one more than `limit`, where there are as many."""
        named = "session_id" if wanted.session_id else "operator_reference"
        others = {name: value for name, value in asdict(wanted).items() if name not in {named, "operator"}}
        verify_alone(named, **others)
        if wanted.session_id:
            session = await self.store.session(check_ulid(wanted.session_id, "session_id"), fresh=True)
        else:
            reference = check_reference(wanted.operator_reference, "operator_reference")
            session_id = await self.store.session_of_reference(operator, reference)
            session = await self.store.session(session_id, fresh=True) if session_id else None
        if session is None or session.operator != operator:
            raise NotFoundError(f"no session with this {named}", kind="session", field=named)
        (before_no,) = parse_page_token(page_token, 1)
        rows = await self.store.rounds_of_session(session.session_id, before_no=before_no or ROW_MAX, limit=limit + 2)
        ended = [(row, round_) for row, round_ in rows if round_.end_ms]  # only the newest may be in play
        return ended[: limit + 1], lambda _, round_: (round_.round_no,)

    async def _in_days(self, operator: str, wanted: RoundsFilter, page_token: str, limit: int) -> _Found:
        """The ended rounds of a player, or with a game code; one more than `limit`, where there are as many."""
        first_ms, end_ms = _days_of(wanted)
        if wanted.game:
            check_name(wanted.game, "game")
        if wanted.player or not wanted.game_code:
            check_reference(wanted.player, "player")
        last_ms, row = parse_page_token(page_token, 2)
        before = (last_ms, row) if row else (end_ms, 0)
        span: Any = {"first_ms": first_ms, "before": before, "limit": limit + 1}
        if wanted.game_code:
            code = wanted.game_code
            rows = await self.store.rounds_with_code(operator, code, wanted.player, wanted.game, **span)
        else:
            rows = await self.store.rounds_ended(operator, wanted.player, game=wanted.game, **span)
        return rows, lambda number, round_: (round_.end_ms, number)

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
            return RoundRecord(summary, view, opening, final, free_bets=await self._free_bets(round_, opening))
        if not played.final and caller.role is not Role.OPERATOR:
            # Until the table shows them, only the player's own operator needs the cards of a box.
            view = replace(view, hole_cards=(), player_hand=None)
        shared = {row.kind: row.envelope for row in await shared_statements(self.store, played)}
        return RoundRecord(summary, view, opening, final, path_nodes(round_.path), shared)

    async def _free_bets(self, round_: Round, opening: bytes) -> tuple[bytes, ...]:
        """The link before the opening and the one behind the final, where a campaign paid for the round."""
        if not round_.free_bet:
            return ()
        _, body = parse_statement(parse_envelope(opening))
        rows = await self.store.statements_of_session(round_.session_id, int(body["link_no"]) - 2, _LINKS_OF_FREE_BET)
        links = [row.envelope for row in rows if row.kind == "free_bet"]
        return tuple(one for one in links if parse_statement(parse_envelope(one))[1]["round_id"] == round_.round_id)

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


def _days_of(wanted: RoundsFilter) -> tuple[int, int]:
    """The first millisecond of the days, and the first behind them. InvalidFieldError."""
    first, last = wanted.first_day, wanted.last_day
    if wanted.game_code:
        if not _GAME_CODE.fullmatch(wanted.game_code):
            raise InvalidFieldError(
                "game_code is not of the form #HH:MM:SS", field="game_code", value=wanted.game_code[:20]
            )
        for field in ("first_day", "last_day"):
            if not getattr(wanted, field):
                raise InvalidFieldError(
                    f"a game code comes again every day: give {field} too, a date of the form 2026-11-21",
                    field=field,
                    value="",
                )
    first_ms = _day_ms(first, "first_day") if first else 0
    end_ms = _day_ms(last, "last_day") + DAY_MS if last else _END_MS
    if end_ms <= first_ms:
        raise InvalidFieldError(
            f"last_day {last} is before first_day {first}", field="last_day", limit=first, value=last
        )
    if wanted.game_code and end_ms - first_ms > CODE_DAYS_MAX * DAY_MS:
        raise InvalidFieldError(
            f"a game code is looked for in {CODE_DAYS_MAX} days at most, first_day to last_day are"
            f" {(end_ms - first_ms) // DAY_MS}",
            field="last_day",
            limit=CODE_DAYS_MAX,
            value=(end_ms - first_ms) // DAY_MS,
        )
    return first_ms, end_ms


def _day_ms(day: str, field: str) -> int:
    try:
        return parse_date(day)
    except FormatError:
        limit = "a date of the form 2026-11-21"
        raise InvalidFieldError(f"{field} is not {limit}", field=field, limit=limit, value=day[:20]) from None


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
