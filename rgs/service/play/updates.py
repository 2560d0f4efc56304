"""Updates of sessions for the streams that follow them: what another stream, a unary call or the server has changed.

A change that this process has committed marks the session in the mailbox of every stream that follows it, but for the
stream that asked for the change. What other processes did is found by `scan`, from the versions in the store: so no
notice between processes is needed, and none can be lost. A mailbox holds one mark a session at most, and whoever takes
a mark reads the session as it is then. So nobody waits for a slow stream, and one that skips changes misses nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Protocol

from rgs.core.errors import InvalidFieldError
from rgs.core.rounds import Round
from rgs.core.sessions import Session
from rgs.core.views import RoundView, SessionView
from rgs.service.callers import Caller
from rgs.store.changes import Change

SESSIONS_MAX: Final = 1_024
"""Sessions that one stream may watch, and that it follows because it has played them: of these the one that was played
longest ago makes room for another.
"""
SCAN_MAX: Final = 2_048
"""Sessions that one `scan` looks at; the others have their turn in the next ones."""

_ASKING: ContextVar[Mailbox | None] = ContextVar("rgs_asking", default=None)
"""The mailbox of the stream whose request this task answers."""


@dataclass(frozen=True, slots=True)
class Update:
    """A session as it stands. Where no round is in play, `last_round` is the one that ended last; opening and final are
    those of the round that is shown.
    """

    session: SessionView
    opening: bytes
    last_round: RoundView | None = None
    final: bytes = b""


class Mailbox:
    """What waits for one stream of a caller: the sessions that were changed by others."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.sessions: dict[str, bool] = {}
        """What the stream follows, and whether it asked for that; the one played longest ago first."""
        self.own: tuple[str, int] = ("", 0)
        """The session that the stream itself read or changed last, and its version."""
        self._marks: dict[str, None] = {}
        self._filled = asyncio.Event()

    async def wait(self) -> None:
        """Until something waits here."""
        await self._filled.wait()

    def take(self) -> str:
        """The session that waits longest; empty if none does."""
        session_id = next(iter(self._marks), "")
        self._marks.pop(session_id, None)
        if not self._marks:
            self._filled.clear()
        return session_id

    def mark(self, session_id: str) -> None:
        """The session has changed."""
        self._marks[session_id] = None
        self._filled.set()

    def unmark(self, session_id: str) -> None:
        """The session need not be read."""
        self._marks.pop(session_id, None)


class UpdateReads(Protocol):
    """What is read of the store."""

    async def session_versions(self, session_ids: Sequence[str]) -> dict[str, int]: ...
    async def rounds_of_session(self, session_id: str, *, before_no: int, limit: int) -> list[tuple[int, Round]]: ...
    async def round_envelopes(self, round_id: str, seat_no: int = 1) -> tuple[bytes, bytes]: ...


class Updates:
    """Who follows which session in this process."""

    def __init__(
        self,
        *,
        store: UpdateReads,
        session: Callable[[Caller, str], Awaitable[tuple[SessionView, bytes]]],
        view: Callable[[Round, bytes, Any], RoundView],
    ) -> None:
        """`session` reads one with its round in play and that round's opening, for a caller, or raises NotFoundError;
        `view` makes the view of a round that has ended.
        """
        self._store = store
        self._session = session
        self._view = view
        self._followers: dict[str, set[Mailbox]] = {}
        self._versions: dict[str, int] = {}
        """The newest version of each followed session that is known here, 0 for none; looked at longest ago first."""
        self._in_hand: Counter[str] = Counter()
        """Sessions for which a stream's request is being answered, and how many."""

    # --- streams ------------------------------------------------------------------------------------------------------

    @contextmanager
    def mailbox(self, caller: Caller) -> Iterator[Mailbox]:
        """The mailbox of one stream, until the stream ends."""
        mailbox = Mailbox(caller)
        try:
            yield mailbox
        finally:
            for session_id in tuple(mailbox.sessions):
                self.leave(mailbox, session_id)

    @contextmanager
    def asking(self, mailbox: Mailbox, session_id: str) -> Iterator[None]:
        """What this task commits meanwhile, of this session, is no news for the mailbox."""
        before = _ASKING.set(mailbox)
        self._in_hand[session_id] += 1
        try:
            yield
        finally:
            _ASKING.reset(before)
            self._in_hand[session_id] -= 1
            if not self._in_hand[session_id]:
                del self._in_hand[session_id]

    async def watch(self, mailbox: Mailbox, session_id: str) -> Update:
        """Follow a session that the stream asks for; the session as it is now. NotFoundError, InvalidFieldError."""
        watched = sum(mailbox.sessions.values())
        if not mailbox.sessions.get(session_id) and watched >= SESSIONS_MAX:
            raise InvalidFieldError(
                f"the stream watches {watched} sessions, at most {SESSIONS_MAX} are allowed: leave one, or open another"
                " stream",
                field="watch_session",
                limit=SESSIONS_MAX,
                value=watched + 1,
            )
        was_followed = session_id in mailbox.sessions
        self._join(mailbox, session_id, is_requested=True)
        try:
            return await self.read(mailbox, session_id)
        except BaseException:
            if not was_followed:
                self.leave(mailbox, session_id)
            raise

    def played(self, mailbox: Mailbox, session_id: str) -> str:
        """Follow a session that the stream has just played; the session that made room for it, empty if none did."""
        is_new = session_id not in mailbox.sessions
        dropped = ""
        if is_new and len(mailbox.sessions) >= SESSIONS_MAX:
            dropped = next((one for one, is_requested in mailbox.sessions.items() if not is_requested), "")
            if not dropped:
                return ""
            self.leave(mailbox, dropped)
        self._join(mailbox, session_id, is_requested=False)
        if is_new and not self._versions[session_id] and mailbox.own[0] == session_id:
            self._versions[session_id] = mailbox.own[1]
        return dropped

    def leave(self, mailbox: Mailbox, session_id: str) -> None:
        """Follow a session no more."""
        mailbox.unmark(session_id)
        if mailbox.sessions.pop(session_id, None) is None:
            return
        followers = self._followers[session_id]
        followers.discard(mailbox)
        if not followers:
            del self._followers[session_id], self._versions[session_id]

    async def read(self, mailbox: Mailbox, session_id: str) -> Update:
        """The session as it is now. NotFoundError."""
        mailbox.unmark(session_id)
        view, opening = await self._session(mailbox.caller, session_id)
        session = view.session
        if session_id in self._versions:
            self._versions[session_id] = max(self._versions[session_id], session.version)
        if view.open_round is not None or session.table_id or not session.round_no:
            return Update(view, opening)
        return await self._with_last_round(view, session)

    async def _with_last_round(self, view: SessionView, session: Session) -> Update:
        rows = await self._store.rounds_of_session(session.session_id, before_no=session.round_no + 1, limit=1)
        ended = next((round_ for _, round_ in rows if round_.end_ms), None)
        if ended is None:  # it was dealt since the session was read: that has marked the session again
            return Update(view, b"")
        opening, final = await self._store.round_envelopes(ended.round_id)
        return Update(view, opening, self._view(ended, final, session.offer), final)

    # --- what was changed ---------------------------------------------------------------------------------------------

    def seen(self, session: Session) -> None:
        """The session was read, or changed, for the stream whose request this task answers."""
        asking = _ASKING.get()
        if asking is not None:
            asking.own = (session.session_id, session.version)

    def committed(self, change: Change) -> None:
        """A change of this process is durable."""
        session = change.session
        if session is None:
            return
        self.seen(session)
        asking, followers = _ASKING.get(), self._followers.get(session.session_id)
        if followers is None:
            return
        self._versions[session.session_id] = max(self._versions[session.session_id], session.version)
        for mailbox in followers:
            if mailbox is not asking:
                mailbox.mark(session.session_id)

    async def scan(self) -> None:
        """Find the sessions that other processes have changed. To be called twice a second."""
        looked_at = tuple(islice(self._versions, SCAN_MAX))
        if not looked_at:
            return
        found = await self._store.session_versions(looked_at)
        for session_id in looked_at:
            known = self._versions.pop(session_id, None)
            if known is None:
                continue  # nobody follows it any more
            newest = max(known, found.get(session_id, 0))
            if newest > known and session_id in self._in_hand:
                newest = known  # it may be what is committed just now: the next look tells
            self._versions[session_id] = newest
            if newest > known:
                for mailbox in self._followers[session_id]:
                    mailbox.mark(session_id)

    def _join(self, mailbox: Mailbox, session_id: str, *, is_requested: bool) -> None:
        is_requested = mailbox.sessions.pop(session_id, False) or is_requested
        mailbox.sessions[session_id] = is_requested
        self._followers.setdefault(session_id, set()).add(mailbox)
        self._versions.setdefault(session_id, 0)
