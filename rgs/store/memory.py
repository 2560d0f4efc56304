"""Sessions as this process committed them last, each with its round in play. The next call usually needs them.

They are kept after a commit only. A stale copy does no harm: every commit compares versions, and a failed one forgets
the copy. At most `FRESH_MAX` sessions are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rgs.core.rounds import Round, RoundStatus
from rgs.core.sessions import Session
from rgs.core.statements import KINDS
from rgs.core.values import changed
from rgs.store.changes import BalanceReported, Change, Signed

FRESH_MAX: Final = 10_000
"""Sessions kept in memory, some kilobytes each."""


class Memory:
    """What was committed last, by session."""

    def __init__(self) -> None:
        self._fresh: dict[str, tuple[Session, Round | None]] = {}
        self._session_of: dict[str, str] = {}
        """Sessions of the rounds in play that are in memory."""

    def session(self, session_id: str) -> Session | None:
        """The session, if it is in memory."""
        fresh = self._fresh.get(session_id)
        return fresh[0] if fresh is not None else None

    def sessions(self, session_ids: Sequence[str]) -> dict[str, Session]:
        """Those of the sessions that are in memory."""
        return {session_id: self._fresh[session_id][0] for session_id in session_ids if session_id in self._fresh}

    def round(self, round_id: str) -> Round | None:
        """The round, if it is the one in play of a session in memory."""
        fresh = self._fresh.get(self._session_of.get(round_id, ""))
        if fresh is not None and fresh[1] is not None and fresh[1].round_id == round_id:
            return fresh[1]
        return None

    def forget(self, change: Change) -> None:
        """Forget the session of a change that is about to be committed: until it is, nothing is known of it."""
        if change.session is not None:
            self._fresh.pop(change.session.session_id, None)

    def _take_balances(self, change: Change) -> None:
        """The balances that wallets have named: they do not change the version of a session."""
        for record in change.records:
            if isinstance(record, BalanceReported) and record.session_id in self._fresh:
                session, round_ = self._fresh[record.session_id]
                result = changed(
                    session,
                    wallet_balance_minor=record.balance_minor,
                    wallet_credited_minor=record.credited_minor,
                    wallet_balance_ms=record.time_ms,
                )
                self._fresh[record.session_id] = (result, round_)

    def keep(self, change: Change, signed: tuple[Signed, ...]) -> None:
        """Keep what was just committed."""
        session = change.session
        if session is None:
            self._take_balances(change)
            return
        links = [statement for statement in signed if KINDS[statement.kind].linked]
        if links:
            session = changed(session, link_no=session.link_no + len(links), link_hash=links[-1].hash.hex())
        round_ = change.round
        if round_ is not None:
            self._session_of.pop(round_.round_id, None)
            if round_.status is not RoundStatus.OPEN:
                round_ = None
            elif round_.version == 1:
                round_ = changed(round_, opening_hash=signed[-1].hash.hex())
        if len(self._fresh) >= FRESH_MAX:
            self._fresh.clear()
            self._session_of.clear()
        self._fresh[session.session_id] = (session, round_)
        if round_ is not None and not round_.table_id:  # a round of a table is that of many sessions
            self._session_of[round_.round_id] = session.session_id
