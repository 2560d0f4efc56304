"""Notices of what happens to a round without its player: paused, resumed, finished by rule, void (RULEBOOK R-6).

A stream that plays a session listens; whoever does not is told by the view. Bounded: a listener that does not read
loses its oldest notices, never its answers. Between the processes over one store `Relay` carries them as well as the
store does: a notice that is lost on the way is found in the view. Refuses to carry cards.
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
"""Notices that wait for one listener."""
RELAY_MAX = 256
"""Notices that wait to be carried to other processes; of more, the oldest are left out."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What happened; `malfunction_code` is set while the round is paused. The regulator's ids are empty where the
    session has none.
    """

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
    """Who listens to which session in this process."""

    def __init__(self) -> None:
        self._listeners: defaultdict[str, set[asyncio.Queue[Notice]]] = defaultdict(set)
        self.pass_on: Callable[[Notice], None] = lambda _: None
        """Told of every notice that arises here."""

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
        """Something has happened here: tell all listeners of the session, here and elsewhere."""
        self.hear(notice)
        self.pass_on(notice)

    def hear(self, notice: Notice) -> None:
        """Something has happened, here or elsewhere: tell the listeners of this process."""
        for queue in self._listeners.get(notice.session_id, ()):
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(notice)


class Relay:
    """Notices from this process to the others over its store, and back. `origin` is this process's name among them."""

    def __init__(self, notices: Notices, origin: str, send: Callable[[str], Awaitable[object]]) -> None:
        """`send` hands a text to every process, this one too."""
        self._notices = notices
        self._origin = origin
        self._send = send
        self._waiting: asyncio.Queue[Notice] = asyncio.Queue(RELAY_MAX)
        notices.pass_on = self._pass_on

    def take(self, text: str) -> None:
        """A text has come from some process. What is not understood is of another version: passed over."""
        try:
            origin, notice = parse_notice(text)
        except ValueError:
            structlog.get_logger().warning("notice_not_understood", characters=len(text))
            return
        if origin != self._origin:
            self._notices.hear(notice)

    async def run(self) -> None:
        """Carry what waits, until cancelled. What the store does not take is left out."""
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
    """A notice as one line of JSON, with who tells it."""
    return json.dumps([origin, *astuple(notice)], separators=(",", ":"))


def parse_notice(text: str) -> tuple[str, Notice]:
    """Who tells what; ValueError for a text that `format_notice` did not make."""
    fields = json.loads(text)
    if not isinstance(fields, list) or len(fields) != 7 or not all(isinstance(field, str) for field in fields):
        raise ValueError("not a notice")
    origin, session_id, round_id, status, *rest = fields
    return origin, Notice(session_id, round_id, RoundStatus(status), *rest)
