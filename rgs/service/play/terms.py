"""What holds for one operator: the values of its jurisdiction, how its sessions are funded, and its links."""

from __future__ import annotations

from dataclasses import dataclass

from rgs.core.jurisdictions import Jurisdiction
from rgs.core.links import OperatorLinks, parse_links
from rgs.core.sessions import Funding
from rgs.service.callers import Caller
from rgs.service.game_catalog import GameCatalog
from rgs.store.allowed import links_key
from rgs.store.interface import StoreReads


@dataclass(frozen=True, slots=True)
class TermsView:
    """The terms of one operator."""

    jurisdiction: Jurisdiction
    funding: Funding
    links: OperatorLinks

    @property
    def participation_required(self) -> bool:
        """Whether sessions need a right of participation: where the regulator issues an id for each."""
        return self.jurisdiction.regulator_ids_required


@dataclass(frozen=True, slots=True)
class OperatorTerms:
    """The terms of every operator, as they are now."""

    store: StoreReads
    games: GameCatalog

    async def of(self, caller: Caller) -> TermsView:
        """The terms of an operator."""
        return TermsView(
            jurisdiction=self.games.jurisdictions[caller.jurisdiction],
            funding=self.games.fundings.get(caller.party, Funding.PARTICIPATION),
            links=parse_links(await self.store.meta(links_key(caller.party))),
        )
