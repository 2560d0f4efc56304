"""The erasure of a player at the end of the legal retention period (ARCHITECTURE 2.14; requirement PR-03).

Everything that identifies the player goes: private blocks with their salts, the pseudonym and the ids beside them. The
rounds stay and verify; totals stay without a name. One event records the erasure, without the player.

RetentionError while the player sits at a table, a session of the player is open, money or a report of it is on its way,
or the retention period of the last one has not passed: the legal duty to keep the record prevails (GDPR 17(3)(b)).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rgs.core.clock import Clock
from rgs.core.errors import NotFoundError, RetentionError
from rgs.core.sessions import Session, SessionStatus
from rgs.core.times import format_time
from rgs.service.events import EventCode, Events
from rgs.store.changes import PlayerErased
from rgs.store.interface import ROW_MAX, Store, StoreReads

_PAGE = 200
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Erased:
    """How many sessions and private blocks are erased."""

    sessions: int
    blocks: int
    session_ids: tuple[str, ...] = field(default=(), compare=False)


class Erasable:
    """Checks whether a player may be erased; changes nothing."""

    def __init__(self, *, store: StoreReads, clock: Clock, retention_days: int) -> None:
        """`retention_days` begin with the close of a session."""
        self._reads = store
        self._clock = clock
        self._retention_days = retention_days

    async def poll(self, operator: str, player: str) -> Erased:
        """What an erasure would erase. NotFoundError, RetentionError, StoreError."""
        if sittings := await self._reads.sittings_of_player(operator, player):
            tables = ", ".join(one.table_id for one in sittings)
            raise RetentionError(f"this player sits at {tables}: let the player leave first", table=tables)
        blocks = 0
        sessions: list[str] = []
        before = ROW_MAX
        while page := await self._reads.sessions_of(operator, player, open_only=False, before=before, limit=_PAGE):
            before = page[-1][0]
            for _, session in page:
                await self._verify_over(session)
                sessions.append(session.session_id)
                blocks += await self._blocks(session.session_id)
        if not sessions or not player:
            raise NotFoundError("the store knows no such player of this operator", kind="player", field="player")
        return Erased(len(sessions), blocks, tuple(sessions))

    async def _verify_over(self, session: Session) -> None:
        name = session.session_id
        if session.status is not SessionStatus.CLOSED:
            raise RetentionError(f"session {name} of this player is not closed", session_id=name)
        if not self._clock.is_trusted:
            raise RetentionError(
                f"session {name} of this player has to be kept while time is not trusted: let an admin clear the guard"
                " clock at the running server",
                session_id=name,
            )
        until_ms = session.close_ms + self._retention_days * _DAY_MS
        if self._clock.now_ms() < until_ms:
            raise RetentionError(
                f"session {name} of this player has to be kept until {format_time(until_ms)}: the law requires"
                f" {self._retention_days} days (`retention_days`)",
                session_id=name,
                limit=self._retention_days,
            )
        if await self._reads.pending_operation(name) is not None or await self._reads.reports_of(name, 1):
            raise RetentionError(f"money or a report of session {name} is still on its way", session_id=name)

    async def _blocks(self, session_id: str) -> int:
        count = after = 0
        while rows := await self._reads.statements_of_session(session_id, after, _PAGE):
            count += sum(bool(row.private) for row in rows)
            after = rows[-1].link_no
        return count


class Erasure(Erasable):
    """Erases players."""

    def __init__(self, *, store: Store, clock: Clock, events: Events, retention_days: int) -> None:
        super().__init__(store=store, clock=clock, retention_days=retention_days)
        self._events = events

    async def erase(self, operator: str, player: str) -> Erased:
        """Erase the player of the operator: all of it, or nothing. NotFoundError, RetentionError, StoreError."""
        found = await self.poll(operator, player)
        await self._events.emit(
            EventCode.PLAYER_ERASED,
            subject=operator,
            after=f"{found.sessions} sessions, {found.blocks} private blocks",
            records=(PlayerErased(operator, player),),
        )
        return found
