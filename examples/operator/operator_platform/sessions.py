"""The sessions that players have at the game server: whose they are, what was seen of them last."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final

from rgs.v1 import common_pb2, session_pb2

from .accounts import now_ms
from .errors import PlatformError
from .protection import day_of
from .rgs_client import Rgs
from .store.accounts import Account
from .store.play import PlayRows, PlaySession

SEEN_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class Seen:
    """What the last view of a session said, and when."""

    elapsed_ms: int
    staked_minor: int
    returned_minor: int
    net_position_minor: int
    currency: str
    is_open: bool
    at_s: float
    version: int

    @property
    def elapsed_now_ms(self) -> int:
        """The elapsed time now."""
        return self.elapsed_ms + (int((time.monotonic() - self.at_s) * 1000) if self.is_open else 0)


class Sessions:
    """Who may use a session, and the figures of the day that follow from its views."""

    def __init__(self, rgs: Rgs, rows: PlayRows) -> None:
        self._rgs = rgs
        self._rows = rows
        self._seen: OrderedDict[str, Seen] = OrderedDict()
        self._figures: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._players: dict[int, str] = {}

    def know(self, account: Account) -> None:
        """Remember the pseudonym of an account that has connected."""
        self._players[account.account_id] = account.player

    async def player_of(self, account_id: int) -> str:
        """The pseudonym of an account that has connected."""
        return self._players.get(account_id, "")

    async def own(self, account: Account, session_id: str) -> PlaySession:
        """The session, if it is this player's. Another player's is as unknown as one that does not exist."""
        found = await self._rows.session(session_id)
        if found is None:
            view = await self._view(session_id)
            if view.player != account.player:
                raise unknown_session()
            await self.add(account, view, account.language)
            found = await self._rows.session(session_id)
        if found is None or found.account_id != account.account_id:
            raise unknown_session()
        return found

    async def add(self, account: Account, view: Any, language: str) -> None:
        """Keep a session that was opened."""
        session = PlaySession(
            view.session_id,
            account.account_id,
            view.ruleset.id,
            view.table,
            language,
            mode_of(view),
            view.currency,
            checked_ms=0,
        )
        await self._rows.add_session(session, now_ms())
        await self.note(view)

    async def note(self, view: Any) -> None:
        """Note what a view of a session says: figures of the day, elapsed time, net position."""
        session_id = view.session_id
        known = self._seen.get(session_id)
        if known is not None and 0 < view.session_version < known.version:
            return  # an answer that comes behind a later view
        is_open = view.status != common_pb2.SESSION_STATUS_CLOSED
        amounts = (view.staked_minor, view.returned_minor, view.net_position_minor)
        seen = Seen(view.elapsed_ms, *amounts, view.currency, is_open, time.monotonic(), view.session_version)
        _put(self._seen, session_id, seen)
        figures = (view.staked_minor, view.returned_minor)
        if self._figures.get(session_id) == figures:
            return
        await self._rows.note_play(session_id, *figures, day_of(now_ms()))
        _put(self._figures, session_id, figures)

    async def seen(self, session_id: str) -> Seen:
        """What was seen last; read now if nothing was."""
        return self._seen[session_id] if session_id in self._seen else await self.seen_now(session_id)

    async def seen_now(self, session_id: str) -> Seen:
        """What the game server says now."""
        await self.note(await self._view(session_id))
        return self._seen[session_id]

    async def _view(self, session_id: str) -> Any:
        request = session_pb2.GetSessionRequest(session_id=session_id)
        try:
            return (await self._rgs.call(self._rgs.sessions.GetSession, request)).session
        except PlatformError as error:
            raise (unknown_session() if error.status in (400, 404) else error) from None


def mode_of(view: Any) -> str:
    """`demo` for play money, which no limit and no wallet knows; else `real`."""
    return "demo" if view.mode == common_pb2.MODE_DEMO else "real"


def unknown_session() -> PlatformError:
    """The refusal of a session that is not this player's, whether it exists or not."""
    return PlatformError("SESSION_UNKNOWN", "you have no such session", 404)


def _put(kept: OrderedDict[str, Any], key: str, value: Any) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > SEEN_MAX:
        kept.popitem(last=False)
