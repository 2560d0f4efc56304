"""What the service plays by: rulesets and jurisdictions as shipped, and reading an owned session with them.

Refuses a session of another operator in the very words of one that does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rgs.core.errors import NotFoundError
from rgs.core.ids import check_ulid
from rgs.core.jurisdictions import SHIPPED_JURISDICTIONS, Jurisdiction, load_jurisdiction
from rgs.core.returns.certified import verify_offered
from rgs.core.rulesets import SHIPPED_RULESETS, Ruleset, load_ruleset
from rgs.core.sessions import Funding, Session
from rgs.core.views import RoundView, SessionView, session_view
from rgs.service.callers import Caller, Role
from rgs.store.interface import Store


class Books:
    """Rulesets and jurisdictions by id, and by an operator's name how his players are funded; an operator that is not
    named sells participations.
    """

    def __init__(self, fundings: Mapping[str, Funding] | None = None) -> None:
        self.fundings: Mapping[str, Funding] = fundings or {}
        self.rulesets: Mapping[str, Ruleset] = {name: load_ruleset(name) for name in SHIPPED_RULESETS}
        self.jurisdictions: Mapping[str, Jurisdiction] = {
            name: load_jurisdiction(name) for name in SHIPPED_JURISDICTIONS
        }
        self.counted_from: Callable[[int], int] = lambda since_ms: since_ms
        """From when a period is counted that began then: the clock's word, once there is one."""

    def verify_offered(self, ruleset_id: str, jurisdiction_id: str) -> None:
        """GameNotOfferedError unless the game's certified returns meet the jurisdiction's floor."""
        verify_offered(self.rulesets[ruleset_id], self.jurisdictions[jurisdiction_id])

    def view(self, session: Session, now_ms: int, open_round: RoundView | None = None) -> SessionView:
        """The view of a session under its own rules."""
        ruleset = self.rulesets[session.ruleset_id]
        return session_view(
            session,
            ruleset,
            self.jurisdictions[session.jurisdiction_id],
            now_ms,
            open_round=open_round,
            idle_from_ms=self.counted_from(session.last_ms),
        )


async def owned_session(store: Store, caller: Caller, session_id: str, *, fresh: bool = True) -> Session:
    """The session, if it is this operator's (auditors and regulators read all); NotFoundError otherwise. Not
    `fresh`: as this process left it, though another one may have moved it since.
    """
    session = await store.session(check_ulid(session_id, "session_id"), fresh=fresh)
    if session is None or (caller.role is Role.OPERATOR and session.operator != caller.party):
        raise NotFoundError(f"no session {session_id}", kind="session", field="session_id", session_id=session_id)
    return session


async def moved(store: Store, session: Session) -> bool:
    """Whether any process has moved the session since it was read: what was read beside it may belong to another state
    of it then.
    """
    now = await store.session(session.session_id, fresh=True)
    return now is None or now.version != session.version
