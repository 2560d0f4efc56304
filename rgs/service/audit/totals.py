"""Significant events and running totals, for auditors, regulators and admins (GLI-19 2.8.8).

Events are read from their signed statements. Totals are read from rows that the commits of round ends keep up to date;
nothing is added up here.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import astuple, dataclass, replace

from rgs.core.errors import FormatError, InvalidFieldError
from rgs.core.ids import check_name, check_reference
from rgs.core.statements import parse_envelope
from rgs.core.times import parse_date, parse_time
from rgs.service.admin.admin import check_code
from rgs.service.pages import check_page_size, format_key_token, format_page_token, parse_key_token, parse_page_token
from rgs.store.interface import DayTotalsKey, DayTotalsRow, Store, TotalsFilter, TotalsKey, TotalsRow

EXPORT_ROWS = 500
"""Totals in one message of an export."""
_FIRST_DAY, _LAST_DAY = "0001-01-01", "9999-12-31"


@dataclass(frozen=True, slots=True)
class EventRow:
    """A significant event from its statement; fields that the statement does not have are empty."""

    code: str
    time_ms: int
    envelope: bytes
    subject: str = ""
    before: str = ""
    after: str = ""
    actor: str = ""
    reason: str = ""
    session_id: str = ""
    round_id: str = ""


_OPTIONAL = ("subject", "before", "after", "actor", "reason", "session_id", "round_id")


class Reports:
    """Pages of events and totals."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def list_events(self, code: str, page_size: int, page_token: str) -> tuple[tuple[EventRow, ...], str]:
        """Events, newest first, of one code or of all, and the token of the next page (empty at the end)."""
        limit = check_page_size(page_size)
        if code:
            check_code(code, "code")
        (before,) = parse_page_token(page_token, 1)
        rows = await self._store.events(code, before=before, limit=limit + 1)
        token = format_page_token(rows[limit - 1].id) if len(rows) > limit else ""
        return tuple(_event(row.envelope) for row in rows[:limit]), token

    async def list_totals(
        self, wanted: TotalsFilter, page_size: int, page_token: str
    ) -> tuple[tuple[TotalsRow, ...], str]:
        """Totals in the order of day, operator, player, game; and the token of the next page (empty at the end)."""
        limit = check_page_size(page_size)
        after = TotalsKey(*parse_key_token(page_token, 5))
        rows = await self._store.totals(_checked(wanted), after=after, limit=limit + 1)
        return tuple(rows[:limit]), format_key_token(*astuple(rows[limit - 1].key)) if len(rows) > limit else ""

    async def list_day_totals(
        self, operator: str, *, first_day: str, last_day: str, game: str, currency: str, page_size: int, page_token: str
    ) -> tuple[tuple[DayTotalsRow, ...], str]:
        """An operator's totals over all its players, in the order of day, game and currency; and the token of the next
        page (empty at the end).
        """
        limit = check_page_size(page_size)
        days = _checked(totals_filter(first_day, last_day, operator=operator, game=game))
        after = DayTotalsKey(*parse_key_token(page_token, 3))
        rows = await self._store.day_totals(
            operator, days.first_day, days.last_day, game=game, currency=currency, after=after, limit=limit + 1
        )
        return tuple(rows[:limit]), format_key_token(*astuple(rows[limit - 1].key)) if len(rows) > limit else ""

    async def export_totals(self, wanted: TotalsFilter) -> AsyncIterator[list[TotalsRow]]:
        """All totals in pieces; each piece as it is when it is read."""
        wanted, after = _checked(wanted), TotalsKey()
        while rows := await self._store.totals(wanted, after=after, limit=EXPORT_ROWS):
            yield rows
            after = rows[-1].key


def _event(envelope: bytes) -> EventRow:
    body = json.loads(parse_envelope(envelope).payload)
    result = {name: body[name] for name in _OPTIONAL if name in body}
    return EventRow(code=body["code"], time_ms=parse_time(body["time"]), envelope=envelope, **result)


def totals_filter(first_day: str, last_day: str, *, operator: str, player: str = "", game: str = "") -> TotalsFilter:
    """The filter of a request; days and names may be empty."""
    return TotalsFilter(first_day, last_day, operator, player, game)


def _checked(wanted: TotalsFilter) -> TotalsFilter:
    for field, value in (("operator", wanted.operator), ("game", wanted.game)):
        if value:
            check_name(value, field)
    if wanted.player:
        check_reference(wanted.player, "player")
        if not wanted.operator:
            raise InvalidFieldError("a player needs its operator: give operator too", field="operator", value="")
    first_day, last_day = wanted.first_day or _FIRST_DAY, wanted.last_day or _LAST_DAY
    for field, value in (("first_day", wanted.first_day), ("last_day", wanted.last_day)):
        try:
            if value:
                parse_date(value)
        except FormatError:
            limit = "a date of the form 2026-11-21"
            raise InvalidFieldError(f"{field} is not {limit}", field=field, limit=limit, value=value[:20]) from None
    if last_day < first_day:
        raise InvalidFieldError(
            f"last_day {last_day} is before first_day {first_day}", field="last_day", limit=first_day, value=last_day
        )
    return replace(wanted, first_day=first_day, last_day=last_day)
