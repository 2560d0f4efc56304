"""Interrupted rounds: after their jurisdiction's period they are finished by the ruleset's default decisions.

ARCHITECTURE 2.5 (interrupted rounds), RULEBOOK T-2, C-10. The steps are those of a player's decision, with `by` = rule.
Paused rounds and rounds whose deck cannot be unsealed are left to the admins. While time is not trusted, no round is
due.
"""

from __future__ import annotations

from dataclasses import dataclass

from rgs.core import games
from rgs.core.clock import Clock
from rgs.core.games.types import Phase
from rgs.core.rounds import SERVER_PARTY, Round, RoundStatus, TakenAction
from rgs.core.sessions import Session
from rgs.core.statements import next_actions_hash, request_digest
from rgs.service.callers import SessionLocks
from rgs.service.events import EventCode, event_draft
from rgs.service.game_catalog import GameCatalog
from rgs.service.play.decks import Decks
from rgs.service.play.notices import Notices, notice_of
from rgs.service.play.settlement import after_decisions, settled, taken_action
from rgs.service.sealing import DeckSealedError
from rgs.store.changes import SessionRaceError
from rgs.store.interface import Store

FINISH_BATCH = 100
"""Rounds in play that are read as one page."""


@dataclass(kw_only=True, eq=False, repr=False)
class Interruptions:
    """Finishes rounds whose player has gone.

    The period counts from the session's `last_ms`: the start of the round, the last decision, or its resumption. So a
    player whose round was paused has the whole period again.
    """

    store: Store
    clock: Clock
    games: GameCatalog
    locks: SessionLocks
    decks: Decks
    notices: Notices

    def __post_init__(self) -> None:
        self._soonest_ms = 1000 * min(rules.finish_after_s for rules in self.games.jurisdictions.values())

    def finish_ms(self, session: Session) -> int:
        """When the round will be finished by rule, in milliseconds."""
        return self.clock.counted_from(session.last_ms) + self._period_ms(session)

    def _period_ms(self, session: Session) -> int:
        return self.games.jurisdictions[session.jurisdiction_id].finish_after_s * 1000

    async def finish_due(self) -> int:
        """Finish the rounds that are due, oldest first; return how many were finished.

        It stops after a page without a round that can be due, so a hundred thousand new rounds cost one page.
        """
        finished, after = 0, 0
        while rows := await self.store.open_rounds("", after=after, limit=FINISH_BATCH):
            for row_id, round_ in rows:
                after = row_id
                finished += await self._finish_if_due(round_)
            if self.clock.passed_ms(min(round_.start_ms for _, round_ in rows)) < self._soonest_ms:
                break
        return finished

    async def _finish_if_due(self, round_: Round) -> bool:
        if round_.table_id or self.clock.passed_ms(round_.start_ms) < self._soonest_ms:
            return False  # at a table the timer decides
        session = await self.store.session(round_.session_id, fresh=True)
        if session is None or not self._is_due(session, round_):
            return False
        async with self.locks.of(round_.session_id):
            session = await self.store.session(round_.session_id, fresh=True)
            current = await self.store.round(round_.round_id, fresh=True)
            if session is None or current is None or not self._is_due(session, current):
                return False
            try:
                await self._finish(session, current)
            except (DeckSealedError, SessionRaceError):
                return False
        self.notices.emit(notice_of(session, round_.round_id, RoundStatus.SETTLED))
        return True

    def _is_due(self, session: Session, round_: Round) -> bool:
        if round_.status is not RoundStatus.OPEN or round_.malfunction:
            return False
        return self.clock.passed_ms(session.last_ms) >= self._period_ms(session)

    async def _finish(self, session: Session, round_: Round) -> None:
        now_ms = max(self.clock.now_ms(), session.last_ms)
        unsealed = self.decks.open(round_)
        seat = unsealed.seat
        digest = request_digest({"method": "FinishByRule", "round_id": round_.round_id})
        taken: list[TakenAction] = []
        running = round_.actions_hash()
        while seat.phase is not Phase.SHOWDOWN:
            seat = games.apply(seat, games.default_action(seat))
            taken.append(taken_action(seat, now_ms, by="rule", party=SERVER_PARTY, digest=digest))
            running = next_actions_hash(running, taken[-1].body())
        round_, session = after_decisions(round_, session, tuple(taken), now_ms)
        change, _, _ = settled(session, round_, unsealed, seat, running, now_ms)
        event = event_draft(
            EventCode.ROUND_FINISHED_BY_RULE, now_ms, session_id=session.session_id, round_id=round_.round_id
        )
        change.drafts = (event, *change.drafts)
        await self.store.commit(change)
