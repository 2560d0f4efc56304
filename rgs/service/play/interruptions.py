"""Interrupted rounds: left longer than their jurisdiction allows, they are finished by the ruleset's default decisions.

ARCHITECTURE 2.5, RULEBOOK T-2, C-10; the same way forward as a player's decision, with `by` = rule. Refuses a paused
round and one whose deck cannot be opened: those are for the admins; and to decide anything while time is not trusted,
asked for each round as it is looked at.
"""

from __future__ import annotations

from rgs.core import games
from rgs.core.clock import Clock
from rgs.core.games.types import Phase
from rgs.core.rounds import HOUSE_PARTY, Round, RoundStatus, TakenAction
from rgs.core.sessions import Session
from rgs.core.statements import next_actions_hash, request_digest
from rgs.service.books import Books
from rgs.service.callers import SessionLocks
from rgs.service.events import EventCode, event_draft
from rgs.service.play.decks import Decks
from rgs.service.play.notices import Notices, notice_of
from rgs.service.play.settlement import after_decisions, settled, taken_action
from rgs.service.sealing import DeckSealedError
from rgs.store.changes import SessionRaceError
from rgs.store.interface import Store

FINISH_BATCH = 100
"""Rounds in play looked at in one page."""
"""Who takes a decision by rule."""


def idle_since(session: Session) -> int:
    """When something last happened in the round in play of a session, in milliseconds: its start, the last decision,
    or its resumption, so that a player whose round was paused has the whole period again.
    """
    return session.last_ms


class Interruptions:
    """Finishes what was left."""

    def __init__(
        self, *, store: Store, clock: Clock, books: Books, locks: SessionLocks, decks: Decks, notices: Notices
    ) -> None:
        self._store = store
        self._clock = clock
        self._books = books
        self._locks = locks
        self._decks = decks
        self._notices = notices
        self._soonest_ms = 1000 * min(rules.finish_after_s for rules in books.jurisdictions.values())

    def finish_ms(self, session: Session) -> int:
        """When the round is finished by rule: the jurisdiction's period after something last happened in it."""
        return self._clock.counted_from(idle_since(session)) + self._period_ms(session)

    def _period_ms(self, session: Session) -> int:
        return self._books.jurisdictions[session.jurisdiction_id].finish_after_s * 1000

    async def finish_due(self) -> int:
        """Look through the rounds in play that were begun long enough ago; how many were finished.

        Oldest first, up to a page of rounds none of which can be due yet: a hundred thousand that are played just now
        cost no more than a page.
        """
        finished, after = 0, 0
        while rows := await self._store.open_rounds("", after=after, limit=FINISH_BATCH):
            for row_id, round_ in rows:
                after = row_id
                finished += await self._finish_if_due(round_)
            if self._clock.passed_ms(min(round_.start_ms for _, round_ in rows)) < self._soonest_ms:
                break
        return finished

    async def _finish_if_due(self, round_: Round) -> bool:
        if self._clock.passed_ms(round_.start_ms) < self._soonest_ms:
            return False
        session = await self._store.session(round_.session_id, fresh=True)
        if session is None or not self._is_due(session, round_):
            return False
        async with self._locks.of(round_.session_id):
            session = await self._store.session(round_.session_id, fresh=True)
            current = await self._store.round(round_.round_id, fresh=True)
            if session is None or current is None or not self._is_due(session, current):
                return False
            try:
                await self._finish(session, current)
            except (DeckSealedError, SessionRaceError):
                return False
        self._notices.tell(notice_of(session, round_.round_id, RoundStatus.SETTLED))
        return True

    def _is_due(self, session: Session, round_: Round) -> bool:
        if round_.status is not RoundStatus.OPEN or round_.malfunction:
            return False
        return self._clock.passed_ms(idle_since(session)) >= self._period_ms(session)

    async def _finish(self, session: Session, round_: Round) -> None:
        now_ms = max(self._clock.now_ms(), session.last_ms)
        opened = self._decks.open(round_)
        seat = opened.seat
        digest = request_digest({"method": "FinishByRule", "round_id": round_.round_id})
        taken: list[TakenAction] = []
        running = round_.actions_hash()
        while seat.phase is not Phase.SHOWDOWN:
            seat = games.apply(seat, games.default_action(seat))
            taken.append(taken_action(seat, now_ms, by="rule", party=HOUSE_PARTY, digest=digest))
            running = next_actions_hash(running, taken[-1].body())
        round_, session = after_decisions(round_, session, tuple(taken), now_ms)
        change, _, _ = settled(session, round_, opened, seat, running, now_ms)
        event = event_draft(
            EventCode.ROUND_FINISHED_BY_RULE, now_ms, session_id=session.session_id, round_id=round_.round_id
        )
        change.drafts = (event, *change.drafts)
        await self._store.commit(change)
