"""What may be opened: a session, and a launch that is to become one. Both ask here, before anything is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rgs.core.bet_limits import BetLimits, joined, verify_bet_limits, within
from rgs.core.errors import (
    InvalidFieldError,
    JurisdictionError,
    TableFundingError,
    TableOnlyError,
    UnknownRulesetError,
)
from rgs.core.games.types import Ruleset
from rgs.core.ids import check_name
from rgs.core.jurisdictions import Jurisdiction
from rgs.core.sessions import Funding, Mode
from rgs.core.tables.config import TableConfig
from rgs.service.availability import Availability
from rgs.service.callers import Caller
from rgs.service.game_catalog import GameCatalog
from rgs.service.play.requests import OpenSession
from rgs.service.play.return_urls import verify_return_url


class OfferedTables(Protocol):
    """The tables that players share: `rgs.service.tables.configs`."""

    async def offered_to(self, operator: str, table_id: str) -> TableConfig:
        """The configuration in force of a table, if the operator's players may play there. NotFoundError."""


@dataclass(kw_only=True, eq=False, repr=False)
class OpeningRules:
    """The checks of what a caller wants to open."""

    games: GameCatalog
    availability: Availability
    tables: OfferedTables

    async def verify(self, caller: Caller, request: OpenSession) -> BetLimits:
        """Raise the error that forbids this session; the limits on its bets: the operator's and the player's."""
        request.limits.verify()
        if request.table:
            self._verify_sells_participations(caller)
        ruleset, jurisdiction = self._verify_rules(caller, request)
        self._verify_shown(request, jurisdiction)
        limits = self._limits_of(caller, request, ruleset)
        if request.table:
            await self._verify_table(caller, request, limits)
        self.availability.verify_may_start(caller.party, request.game, request.player)
        return limits

    def funding_of(self, caller: Caller, request: OpenSession) -> Funding:
        """How the session is funded. Play money is always bought, whatever the operator's wallet does."""
        if request.mode is Mode.DEMO:
            return Funding.PARTICIPATION
        return self.games.fundings.get(caller.party, Funding.PARTICIPATION)

    def _verify_rules(self, caller: Caller, request: OpenSession) -> tuple[Ruleset, Jurisdiction]:
        ruleset = self.games.rulesets.get(request.game)
        if ruleset is None:
            raise UnknownRulesetError(f"no game {request.game[:40]}", field="game", value=request.game[:40])
        if ruleset.table_only and not request.table:
            raise TableOnlyError(
                f"{ruleset.id} is played at tables: name one of ListTables in table", field="table", value=ruleset.id
            )
        jurisdiction = self.games.jurisdictions.get(caller.jurisdiction)
        if jurisdiction is None:
            raise JurisdictionError(
                f"operator {caller.party} has no jurisdiction", operator=caller.party, jurisdiction=caller.jurisdiction
            )
        self.games.verify_offered(ruleset.id, jurisdiction.id)
        if request.mode is Mode.DEMO:
            _verify_demo(request, jurisdiction)
        elif jurisdiction.regulator_ids_required and self.games.fundings.get(caller.party) is Funding.SEAMLESS:
            raise JurisdictionError(
                f"jurisdiction {jurisdiction.id} requires a participation, {caller.party} is funded bet by bet",
                field="jurisdiction",
                operator=caller.party,
                jurisdiction=jurisdiction.id,
            )
        jurisdiction.verify_currency(request.currency)
        self.games.verify_currency(caller.party, request.currency)
        return ruleset, jurisdiction

    def _verify_shown(self, request: OpenSession, jurisdiction: Jurisdiction) -> None:
        """Language and return address are such as the jurisdiction allows."""
        if request.language and request.language not in jurisdiction.languages:
            allowed = ", ".join(jurisdiction.languages)
            raise JurisdictionError(
                f"language: {request.language[:8]!r} is not one of {jurisdiction.id}, which allows {allowed}",
                field="language",
                value=request.language[:8],
                limit=allowed,
            )
        verify_return_url(request.return_url, local=jurisdiction.development_ca_allowed)

    def _limits_of(self, caller: Caller, request: OpenSession, ruleset: Ruleset) -> BetLimits:
        own = self.games.bet_limits_of(caller.party, request.currency)
        widest = within(ruleset.limits, own)
        whose = f"{caller.party} and {ruleset.id}" if own else ruleset.id
        verify_bet_limits(request.bet_limits, widest, ruleset.step_minor, whose=whose)
        return joined(ruleset, own, request.bet_limits)

    async def _verify_table(self, caller: Caller, request: OpenSession, limits: BetLimits) -> None:
        """The table is one of the caller's, and has the session's game, currency and law."""
        config = await self.tables.offered_to(caller.party, check_name(request.table, "table"))
        if config.ruleset_id != request.game:
            raise InvalidFieldError(
                f"table {config.id} plays {config.ruleset_id}, not {request.game[:40]}",
                field="game",
                value=request.game[:40],
                limit=config.ruleset_id,
            )
        if config.currency != request.currency:
            raise InvalidFieldError(
                f"currency: {request.currency[:8]!r} is not {config.currency}, in which table {config.id} is played",
                field="currency",
                value=request.currency[:8],
                limit=config.currency,
            )
        if config.jurisdiction_id != caller.jurisdiction:
            raise JurisdictionError(
                f"table {config.id} is under jurisdiction {config.jurisdiction_id}, {caller.party} under"
                f" {caller.jurisdiction}",
                operator=caller.party,
                jurisdiction=caller.jurisdiction,
            )
        for bet, one in within(config.limits, limits).items():
            if one.min_minor > one.max_minor:
                there = config.limits[bet]
                raise InvalidFieldError(
                    f"bet_limits: table {config.id} takes {bet} from {there.min_minor} to {there.max_minor}, and the"
                    " limits of this session leave nothing of it",
                    field=f"bet_limits.{bet}",
                    limit=f"{there.min_minor}..{there.max_minor}",
                )

    def _verify_sells_participations(self, caller: Caller) -> None:
        """TableFundingError for an operator whose players are funded bet by bet."""
        if self.games.fundings.get(caller.party) is Funding.SEAMLESS:
            raise TableFundingError(
                f"{caller.party} is funded bet by bet: a bet at a table is a reservation in a participation",
                operator=caller.party,
            )


def _verify_demo(request: OpenSession, jurisdiction: Jurisdiction) -> None:
    """Play money: where the jurisdiction allows it, and never beside money at one table."""
    if not jurisdiction.demo_allowed:
        raise JurisdictionError(
            f"mode: jurisdiction {jurisdiction.id} does not allow play money",
            field="mode",
            jurisdiction=jurisdiction.id,
        )
    if request.table:
        raise InvalidFieldError(
            "mode: there is no play money at tables that players share; open a game that is played alone",
            field="mode",
            value=Mode.DEMO.value,
            limit="a game without a table",
        )
