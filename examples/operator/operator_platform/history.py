"""The rounds of a player or of all players: by time, game, session, game code or reference.

The game server keeps them and filters them (`ListRounds`). It counts in days of UTC; a player's own days begin at other
hours, so what ended outside the times that were asked for is left out here.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, Final

from rgs.v1 import history_pb2, session_pb2

from . import fields
from .errors import invalid
from .rgs_client import Rgs, as_json
from .sessions import Sessions, unknown_session
from .store.accounts import Account

PAGE_SIZE: Final = 50
PAGE_SIZE_MAX: Final = 200
CODE_DAYS: Final = 31
"""A game code comes again every day: the game server looks for it in so many days at once."""
CALLS_MAX: Final = 10
"""So many of the game server's pages are read for one that has a round in it."""
FILTERS: Final = ("page_token", "page_size", "from", "to", "game", "session", "code", "reference")


class History:
    """Lists of ended rounds."""

    def __init__(self, rgs: Rgs, sessions: Sessions) -> None:
        self._rgs = rgs
        self._sessions = sessions

    async def of_player(self, account: Account, query: Mapping[str, str]) -> dict[str, Any]:
        """A page of the player's ended rounds, last ended first: `ListRoundsResponse` as JSON. PlatformError."""
        wanted = {name: value for name, value in query.items() if value}
        fields.check_known(wanted, *FILTERS)
        first, end = _time(wanted, "from"), _time(wanted, "to")
        request = history_pb2.ListRoundsRequest(
            page_size=fields.number(wanted, "page_size", 1, PAGE_SIZE_MAX, PAGE_SIZE),
            page_token=fields.text(wanted, "page_token", 0, 400, ""),
            game=fields.text(wanted, "game", 0, 64, ""),
            game_code=code_of(fields.text(wanted, "code", 0, 20, "")),
            session_id=await self._session(account, wanted),
        )
        if not request.session_id:
            request.player = account.player
        _set_days(request, first, end)
        return await self._page(request, first, end)

    async def with_code(self, game_code: str, day: str) -> list[Any]:
        """The rounds of all players with this code, on a day or lately: `RoundSummary`, at most 200."""
        request = history_pb2.ListRoundsRequest(page_size=PAGE_SIZE_MAX, game_code=code_of(game_code))
        request.first_day = request.last_day = day
        if not day:
            _set_days(request, None, None)
        return list((await self._rgs.call(self._rgs.history.ListRounds, request)).rounds)

    async def session_of_reference(self, reference: str) -> Any:
        """The session that was opened with this reference (`SessionView`), or None."""
        request = session_pb2.ListSessionsRequest(operator_reference=reference, page_size=1)
        found = (await self._rgs.call(self._rgs.sessions.ListSessions, request)).sessions
        return found[0] if found else None

    async def _session(self, account: Account, wanted: Mapping[str, Any]) -> str:
        """The session that is asked for, which must be the player's own; "" if none is."""
        if "session" in wanted and "reference" in wanted:
            raise invalid("reference", "name a session or a reference, not both")
        if "session" in wanted:
            return (await self._sessions.own(account, fields.text(wanted, "session", 1, 64))).session_id
        if "reference" not in wanted:
            return ""
        found = await self.session_of_reference(fields.text(wanted, "reference", 1, 64))
        if found is None or found.player != account.player:
            raise unknown_session()
        return str(found.session_id)

    async def _page(
        self, request: history_pb2.ListRoundsRequest, first: dt.datetime | None, end: dt.datetime | None
    ) -> dict[str, Any]:
        kept: list[Any] = []
        token = ""
        for _ in range(CALLS_MAX):
            found = await self._rgs.call(self._rgs.history.ListRounds, request)
            ends = [one.end_time.ToDatetime(dt.UTC) for one in found.rounds]
            kept = [
                one
                for one, ended in zip(found.rounds, ends, strict=True)
                if (first is None or ended >= first) and (end is None or ended < end)
            ]
            token = found.next_page_token
            if first is not None and ends and ends[-1] < first:
                token = ""  # whatever follows has ended earlier still
            if kept or not token:
                break
            request.page_token = token
        return as_json(history_pb2.ListRoundsResponse(rounds=kept, next_page_token=token))


def code_of(text: str) -> str:
    """A game code as the game server has it: "#21:10:10"; a person may leave out the "#"."""
    return text if not text or text.startswith("#") else f"#{text}"


def _set_days(request: history_pb2.ListRoundsRequest, first: dt.datetime | None, end: dt.datetime | None) -> None:
    """Name the days of UTC that hold these times. A game code needs both: what is not named lies a month away."""
    first_day = None if first is None else first.date()
    # `end` is excluded: of midnight, the day before.
    last_day = None if end is None else (end - dt.timedelta(microseconds=1)).date()
    if request.game_code:
        span = dt.timedelta(days=CODE_DAYS - 1)
        today = dt.datetime.now(dt.UTC).date()
        last_day = last_day or (today if first_day is None else max(first_day, min(today, first_day + span)))
        first_day = first_day or last_day - span
    request.first_day = "" if first_day is None else first_day.isoformat()
    request.last_day = "" if last_day is None else last_day.isoformat()


def _time(query: Mapping[str, Any], name: str) -> dt.datetime | None:
    """A time of RFC 3339, or None."""
    text = fields.text(query, name, 0, 40, "")
    if not text:
        return None
    try:
        found = dt.datetime.fromisoformat(text)
        if found.tzinfo is not None and 1970 < found.year < 9000:
            return found.astimezone(dt.UTC)
    except (ValueError, OverflowError):
        pass
    raise invalid(name, f"{name} must be a time such as 2026-11-23T00:00:00Z", value=text)
