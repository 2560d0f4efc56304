"""The shipped rulesets and jurisdictions, and sessions read under them.

To an operator, another operator's session is indistinguishable from one that does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rgs.core.bet_limits import BetLimits
from rgs.core.errors import JurisdictionError, NotFoundError
from rgs.core.ids import check_ulid
from rgs.core.jurisdictions import SHIPPED_JURISDICTIONS, Jurisdiction, load_jurisdiction
from rgs.core.returns.certified import verify_offered
from rgs.core.rulesets import SHIPPED_RULESETS, Ruleset, load_ruleset
from rgs.core.sessions import Funding, Session
from rgs.core.tables.config import TableConfig
from rgs.core.tables.machine import Clockwork
from rgs.core.views import RoundView, SessionView, session_view
from rgs.service.callers import Caller, Role
from rgs.store.interface import Store


class GameCatalog:
    """Rulesets and jurisdictions by id, and what is set for an operator: its funding (without one it sells
    participations), its currencies (without any all of its jurisdiction) and its limits on bets by currency.
    """

    def __init__(
        self,
        fundings: Mapping[str, Funding] | None = None,
        *,
        currencies: Mapping[str, tuple[str, ...]] | None = None,
        bet_limits: Mapping[str, Mapping[str, BetLimits]] | None = None,
    ) -> None:
        self.fundings: Mapping[str, Funding] = fundings or {}
        self._currencies: Mapping[str, tuple[str, ...]] = currencies or {}
        self._bet_limits: Mapping[str, Mapping[str, BetLimits]] = bet_limits or {}
        self.rulesets: Mapping[str, Ruleset] = {name: load_ruleset(name) for name in SHIPPED_RULESETS}
        self.jurisdictions: Mapping[str, Jurisdiction] = {
            name: load_jurisdiction(name) for name in SHIPPED_JURISDICTIONS
        }
        self.counted_from: Callable[[int], int] = lambda since_ms: since_ms
        """When a period that began at a time counts from; the clock replaces this function."""

    def verify_offered(self, ruleset_id: str, jurisdiction_id: str) -> None:
        """GameNotOfferedError unless the game's certified returns meet the jurisdiction's floor."""
        verify_offered(self.rulesets[ruleset_id], self.jurisdictions[jurisdiction_id])

    def verify_free_bets(self, jurisdiction_id: str) -> None:
        """JurisdictionError unless the jurisdiction allows free bets."""
        if not self.jurisdictions[jurisdiction_id].free_bets_allowed:
            raise JurisdictionError(
                f"jurisdiction {jurisdiction_id} does not allow free bets",
                field="free_bet",
                jurisdiction=jurisdiction_id,
            )

    def bet_limits_of(self, operator: str, currency: str) -> BetLimits:
        """The operator's limits on bets in this currency."""
        return self._bet_limits.get(operator, {}).get(currency, ())

    def verify_currency(self, operator: str, currency: str) -> None:
        """JurisdictionError for a currency that is not one of the operator's."""
        allowed = self._currencies.get(operator, ())
        if allowed and currency not in allowed:
            raise JurisdictionError(
                f"currency: {currency[:8]!r} is not one of {operator}, which plays in {', '.join(allowed)}",
                field="currency",
                value=currency[:8],
                limit=", ".join(allowed),
            )

    def clockwork(self, config: TableConfig) -> Clockwork:
        """What decides when a window of the table ends."""
        return Clockwork(config.timers, config.early_close, self.rulesets[config.ruleset_id].rules)

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
    """The session, if this caller may read it: operators their own, other roles all. NotFoundError.

    Without `fresh` it is as this process left it, though another process may have changed it since.
    """
    session = await store.session(check_ulid(session_id, "session_id"), fresh=fresh)
    if session is None or (caller.role is Role.OPERATOR and session.operator != caller.party):
        raise NotFoundError(f"no session {session_id}", kind="session", field="session_id", session_id=session_id)
    return session


async def moved(store: Store, session: Session) -> bool:
    """Whether the session has changed since it was read: rows that were read beside it may be of another state."""
    now = await store.session(session.session_id, fresh=True)
    return now is None or now.version != session.version
