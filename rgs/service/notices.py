"""Notices of what happens to a round without its player: paused, resumed, finished by rule, void (RULEBOOK R-6).

A stream that plays a session listens; whoever does not is told by the view. Bounded: a listener that does not read
loses its oldest notices, never its answers. Refuses to carry cards.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass

from rgs.core.rounds import RoundStatus

NOTICES_MAX = 32
"""Notices that wait for one listener."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What happened; `malfunction_code` is set while the round is paused."""

    session_id: str
    round_id: str
    status: RoundStatus
    malfunction_code: str


class Notices:
    """Who listens to which session."""

    def __init__(self) -> None:
        self._listeners: defaultdict[str, set[asyncio.Queue[Notice]]] = defaultdict(set)

    def listen(self, session_id: str, queue: asyncio.Queue[Notice]) -> None:
        """From now on notices of the session go into the queue as well."""
        self._listeners[session_id].add(queue)

    def leave(self, session_id: str, queue: asyncio.Queue[Notice]) -> None:
        """No more."""
        listeners = self._listeners.get(session_id)
        if listeners is not None:
            listeners.discard(queue)
            if not listeners:
                del self._listeners[session_id]

    def tell(self, notice: Notice) -> None:
        """Tell all listeners of the session."""
        for queue in self._listeners.get(notice.session_id, ()):
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(notice)
