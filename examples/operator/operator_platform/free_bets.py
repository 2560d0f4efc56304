"""Free bets: antes that a campaign of the operator pays. The game server keeps the grants, the wallet pays them.

The wallet knows each grant before it is played. Where the game server has made another in the place of one whose round
was void, or where this process died between both, the grant is made known when the player starts the round.
"""

from __future__ import annotations

import re
from typing import Any, Final

from google.protobuf.timestamp_pb2 import Timestamp

from rgs.v1 import catalog_pb2, free_bet_pb2

from .accounts import now_ms
from .errors import invalid
from .rgs_client import Rgs
from .store.wallet import WalletBook

CAMPAIGN: Final = re.compile(r"[a-z0-9._-]{1,32}")
PAGE_SIZE: Final = 200
PAGES_MAX: Final = 10


class Stakes:
    """What bets take: the game server places a blind beside the ante of some games."""

    def __init__(self, rgs: Rgs) -> None:
        self._rgs = rgs
        self._blinds: dict[str, bool] = {}

    async def has_blind(self, game: str) -> bool:
        """Whether the game has a blind, which is as high as the ante."""
        if not self._blinds:
            found = await self._rgs.call(self._rgs.catalog.ListGames, catalog_pb2.ListGamesRequest())
            self._blinds = {one.ruleset.id: any(table.bet == "blind" for table in one.paytables) for one in found.games}
        return self._blinds.get(game, False)

    async def of(self, game: str, bets: Any, *, is_free: bool = False) -> int:
        """What these bets take of the player's money; a free bet pays ante and blind."""
        of_ante = 0 if is_free else 2 if await self.has_blind(game) else 1
        return sum(int(bet.amount_minor) * (of_ante if bet.bet == "ante" else 1) for bet in bets)


class FreeBets:
    """Grant, list and make known."""

    def __init__(self, rgs: Rgs, wallet: WalletBook, stakes: Stakes) -> None:
        self._rgs = rgs
        self._wallet = wallet
        self._stakes = stakes

    async def grant(self, request: free_bet_pb2.GrantFreeBetsRequest) -> list[Any]:
        """Grant free bets, and have the wallet know them. A repeat under its request id grants nothing more."""
        if not CAMPAIGN.fullmatch(request.campaign):
            raise invalid("campaign", "campaign must be 1 to 32 of a-z 0-9 . _ -", value=request.campaign[:80])
        granted = await self._rgs.call(self._rgs.free_bets.GrantFreeBets, request)
        for one in granted.free_bets:
            await self._know(one)
        return list(granted.free_bets)

    async def playable(self, player: str) -> list[Any]:
        """The free bets that the player can play now (`FreeBet`), oldest first."""
        found: list[Any] = []
        request = free_bet_pb2.ListFreeBetsRequest(player=player, page_size=PAGE_SIZE)
        for _ in range(PAGES_MAX):
            page = await self._rgs.call(self._rgs.free_bets.ListFreeBets, request)
            found += page.free_bets
            request.page_token = page.next_page_token
            if not request.page_token:
                break
        return found

    async def make_known(self, player: str, grant_id: str) -> None:
        """Have the wallet know a grant that the player is about to play. One that nobody can play now stays unknown:
        the game server refuses it, or it is a repeat of a round that has begun.
        """
        for one in await self.playable(player):
            if one.grant_id == grant_id and await self._wallet.knows_campaign(one.campaign, one.currency):
                await self._know(one)

    async def _know(self, one: Any) -> None:
        amount_minor = int(one.stake_minor) * (2 if await self._stakes.has_blind(one.game) else 1)
        await self._wallet.grant(f"{one.campaign}:{one.grant_id}", one.player, one.currency, amount_minor, now_ms())

    async def cancel(self, request_id: str, grant_id: str) -> None:
        """Take back a free bet that was not played."""
        request = free_bet_pb2.CancelFreeBetRequest(request_id=request_id, grant_id=grant_id)
        await self._rgs.call(self._rgs.free_bets.CancelFreeBet, request)


def expiry(days: int, time_ms: int) -> Timestamp:
    """The end of a free bet, so many days from then."""
    return Timestamp(seconds=time_ms // 1000 + days * 86_400)
