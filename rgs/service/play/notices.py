"""Notices of what happens to a round without its player: paused, resumed, finished by rule, void (RULEBOOK R-6).

A stream that plays a session listens for them; other clients find the same in the view. A listener that does not read
loses its oldest notices, never its answers. `Relay` carries notices between the processes over one store; it may lose
some, and the view shows them. A notice never contains cards.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import astuple, dataclass

import structlog

from rgs.core.errors import RgsError
from rgs.core.rounds import RoundStatus
from rgs.core.sessions import Session

NOTICES_MAX = 32
"""Most notices that wait for one listener."""
RELAY_MAX = 256
"""Most notices that wait for the other processes; beyond it the oldest are dropped."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What happened to a round. `malfunction_code` is set while it is paused; a session may have no regulator's ids."""

    session_id: str
    round_id: str
    status: RoundStatus
    malfunction_code: str
    regulator_session_id: str
    regulator_participation_id: str


def notice_of(session: Session, round_id: str, status: RoundStatus, malfunction_code: str = "") -> Notice:
    """The notice of what happened to a round of the session."""
    ids = session.regulator_session_id, session.regulator_participation_id
    return Notice(session.session_id, round_id, status, malfunction_code, *ids)


class Notices:
    """The listeners of this process, by session."""

    def __init__(self) -> None:
        self._listeners: defaultdict[str, set[asyncio.Queue[Notice]]] = defaultdict(set)
        self.pass_on: Callable[[Notice], None] = lambda _: None
        """Called with every notice of this process."""

    def listen(self, session_id: str, queue: asyncio.Queue[Notice]) -> None:
        """Put notices of the session into the queue from now on."""
        self._listeners[session_id].add(queue)

    def leave(self, session_id: str, queue: asyncio.Queue[Notice]) -> None:
        """Put no more notices of the session into the queue."""
        listeners = self._listeners.get(session_id)
        if listeners is not None:
            listeners.discard(queue)
            if not listeners:
                del self._listeners[session_id]

    def emit(self, notice: Notice) -> None:
        """Send a notice of this process to all listeners of the session, also in other processes."""
        self.hear(notice)
        self.pass_on(notice)

    def hear(self, notice: Notice) -> None:
        """Send a notice to the listeners of this process."""
        for queue in self._listeners.get(notice.session_id, ()):
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(notice)


class Relay:
    """Carries notices between the processes over one store. `origin` is the name of this process."""

    def __init__(self, notices: Notices, origin: str, send: Callable[[str], Awaitable[object]]) -> None:
        """`send` delivers a text to every process, this one included."""
        self._notices = notices
        self._origin = origin
        self._send = send
        self._waiting: asyncio.Queue[Notice] = asyncio.Queue(RELAY_MAX)
        notices.pass_on = self._pass_on

    def take(self, text: str) -> None:
        """Take a text from some process. A text that cannot be parsed is of another version, and is skipped."""
        try:
            origin, notice = parse_notice(text)
        except ValueError:
            structlog.get_logger().warning("notice_not_understood", characters=len(text))
            return
        if origin != self._origin:
            self._notices.hear(notice)

    async def run(self) -> None:
        """Send waiting notices until cancelled. A notice that the store refuses is dropped."""
        while True:
            notice = await self._waiting.get()
            try:
                await self._send(format_notice(self._origin, notice))
            except RgsError as error:
                structlog.get_logger().warning("notice_not_carried", reason=error.reason)

    def _pass_on(self, notice: Notice) -> None:
        if self._waiting.full():
            self._waiting.get_nowait()
        self._waiting.put_nowait(notice)


def format_notice(origin: str, notice: Notice) -> str:
    """A notice and its origin as one line of JSON; inverse of `parse_notice`."""
    return json.dumps([origin, *astuple(notice)], separators=(",", ":"))


def parse_notice(text: str) -> tuple[str, Notice]:
    """(origin, notice); ValueError for a text that `format_notice` did not make."""
    fields = json.loads(text)
    if not isinstance(fields, list) or len(fields) != 7 or not all(isinstance(field, str) for field in fields):
        raise ValueError("not a notice")
    origin, session_id, round_id, status, *rest = fields
    return origin, Notice(session_id, round_id, RoundStatus(status), *rest)
