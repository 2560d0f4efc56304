"""Reality checks: each page of a player is told how long the session has been open and what was lost, when it is due.

The game server's clock counts: what seems due here is asked for there before it is told. The message takes nothing from
a round in play; only the next one waits until the player has seen it (`Commands`).
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from dataclasses import dataclass
from typing import Any, Final

from .connections import Connection, Hub
from .errors import PlatformError
from .protection import Protection
from .sessions import Seen, Sessions
from .store.play import PlayRows, PlaySession

TICK_S: Final = 0.25
AGAIN_S: Final = 2.0
"""After so long a check is looked at again that nobody could be asked for."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Due:
    """When the next check of a session is due: by the session's elapsed time, and by this process's clock."""

    elapsed_ms: int
    at_s: float


class RealityChecks:
    """Tells the pages that hear of a session."""

    def __init__(self, hub: Hub, sessions: Sessions, rows: PlayRows, protection: Protection) -> None:
        self._hub = hub
        self._sessions = sessions
        self._rows = rows
        self._protection = protection
        self._due: dict[str, Due] = {}

    async def run(self) -> None:
        """Tell each check when it is due, until this is cancelled."""
        while True:
            await asyncio.sleep(TICK_S)
            watched = set(self._hub.watched_sessions())
            for session_id in self._due.keys() - watched:
                del self._due[session_id]
            now_s = time.monotonic()
            waiting = [one for one in watched if one not in self._due or self._due[one].at_s <= now_s]
            await asyncio.gather(*(self._look(one) for one in waiting))

    async def _look(self, session_id: str) -> None:
        """Plan the next check of a session, and tell the one that is due."""
        due = self._due.get(session_id)
        try:
            every_ms = await self._protection.reality_check_ms()
            session = await self._rows.session(session_id)
            if session is None or not every_ms:
                self._due[session_id] = Due(0, time.monotonic() + AGAIN_S)
                return
            seen = await (self._sessions.seen(session_id) if due is None else self._sessions.seen_now(session_id))
            next_ms = (session.checked_ms // every_ms + 1) * every_ms
            if due is not None and seen.elapsed_ms >= max(due.elapsed_ms, next_ms):
                for connection in self._hub.listeners(session_id):
                    connection.push(message_of(session_id, seen))
            if due is not None:
                next_ms = max(next_ms, (seen.elapsed_ms // every_ms + 1) * every_ms)
            wait_s = (next_ms - seen.elapsed_ms) / 1000 if seen.is_open else math.inf
            self._due[session_id] = Due(next_ms, seen.at_s + wait_s)
        except PlatformError as error:
            log.info("a reality check waits: %s", error.reason)
            self._due[session_id] = Due(due.elapsed_ms if due else 0, time.monotonic() + AGAIN_S)

    async def remind(self, connection: Connection, session: PlaySession) -> bool:
        """Tell a page of the check that is due now, if one is. Returns whether one is."""
        seen = await self._sessions.seen(session.session_id)
        if not seen.is_open or not await self._protection.is_check_due(session, seen.elapsed_now_ms):
            return False
        connection.push(message_of(session.session_id, seen))
        return True

    async def confirm(self, connection: Connection, session: PlaySession) -> None:
        """The player has seen it; the player's other pages need not show it any more."""
        seen = await self._sessions.seen(session.session_id)
        await self._rows.checked(session.session_id, seen.elapsed_now_ms)
        for other in self._hub.listeners(session.session_id):
            if other is not connection:
                other.push({"type": "reality_check_seen", "value": {"session_id": session.session_id}})


def message_of(session_id: str, seen: Seen) -> dict[str, Any]:
    """What a page shows."""
    value = {
        "session_id": session_id,
        "elapsed_ms": str(seen.elapsed_now_ms),
        "staked_minor": str(seen.staked_minor),
        "returned_minor": str(seen.returned_minor),
        "net_position_minor": str(seen.net_position_minor),
        "currency": seen.currency,
    }
    return {"type": "reality_check", "value": value}
