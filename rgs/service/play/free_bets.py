"""The free bets that operators grant to their players (docs/money.md, section 7): grant, list, cancel.

What a request has granted is found again by its request id, for good: no repeat grants more. `rgs.service.play.play`
has a round paid for by one.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from typing import Final

from rgs.core import games
from rgs.core.clock import Clock
from rgs.core.errors import (
    FreeBetRefusedError,
    FundingModeError,
    JurisdictionError,
    NotFoundError,
    SessionChangedError,
    TableOnlyError,
    UnknownRulesetError,
)
from rgs.core.free_bets import Grant, GrantStatus, check_campaign
from rgs.core.ids import check_reference, check_request_id, check_ulid
from rgs.core.sessions import Funding, Session
from rgs.core.values import check_range
from rgs.service.callers import Caller, verify_same_content
from rgs.service.game_catalog import GameCatalog
from rgs.service.instance import Instance
from rgs.service.pages import check_page_size, format_key_token, parse_key_token
from rgs.service.play.requests import GrantFreeBets, StartRound, expiry_of, free_bet_of
from rgs.store.changes import Change, Operation, SessionRaceError
from rgs.store.free_bets import GrantAdded, GrantCancelled
from rgs.store.interface import Store

COUNT_MAX: Final = 100
"""The most free bets of one request."""
VALID_MS_MAX: Final = 366 * 86_400_000
"""The longest that a free bet can be played."""


async def playable_grant(store: Store, games: GameCatalog, session: Session, request: StartRound, now_ms: int) -> Grant:
    """The player's free bet that a start names. FundingModeError, JurisdictionError, NotFoundError or
    FreeBetRefusedError if it cannot pay for this round.
    """
    if session.is_seamless:
        raise FundingModeError(
            "this session is funded bet by bet: its wallet pays free bets by itself", session_id=session.session_id
        )
    if session.is_demo:
        raise FundingModeError(
            "this session is played with play money: a free bet pays with money", session_id=session.session_id
        )
    games.verify_free_bets(session.jurisdiction_id)
    grant = await store.grant(check_ulid(request.free_bet, "free_bet"))
    if grant is None or (grant.operator, grant.player) != (session.operator, session.player):
        raise NotFoundError(
            f"the player has no free bet {request.free_bet}",
            kind="free_bet",
            field="free_bet",
            grant_id=request.free_bet,
        )
    grant.verify_playable(session.ruleset_id, session.currency, request.bets, now_ms)
    return grant


def verify_not_expired(operation: Operation | None, now_ms: int) -> None:
    """FreeBetRefusedError if the operation's free bet has expired while the wallet was asked."""
    if operation is not None and free_bet_of(operation) and now_ms >= expiry_of(operation):
        grant_id = free_bet_of(operation).partition(":")[2]
        raise FreeBetRefusedError(
            f"free bet {grant_id} cannot be played: it has expired", field="free_bet", grant_id=grant_id
        )


@dataclass(kw_only=True, eq=False, repr=False)
class FreeBets:
    """The grants of all operators."""

    store: Store
    instance: Instance
    games: GameCatalog
    clock: Clock

    async def grant(self, caller: Caller, request: GrantFreeBets) -> list[Grant]:
        """Grant free bets to a player of the caller. A repeat answers with what was granted."""
        check_request_id(request.request_id)
        known = await self._known(caller, request)
        if known:
            return known
        self._verify(caller, request)
        now_ms = self.clock.now_ms()
        check_range(request.expires_ms, "expiry_time", now_ms + 1, now_ms + VALID_MS_MAX)
        grants = [
            Grant(
                grant_id=self.instance.new_id(now_ms),
                operator=caller.party,
                player=request.player,
                ruleset_id=request.game,
                currency=request.currency,
                campaign=request.campaign,
                stake_minor=request.stake_minor,
                granted_ms=now_ms,
                expires_ms=request.expires_ms,
                request_id=request.request_id,
                nth=nth,
            )
            for nth in range(1, request.count + 1)
        ]
        try:
            await self.store.commit(Change(records=tuple(GrantAdded(*astuple(grant)) for grant in grants)))
        except SessionRaceError:  # the same request, at the same time
            known = await self._known(caller, request)
            if not known:
                raise
            return known
        return grants

    async def list_open(self, caller: Caller, player: str, page_size: int, page_token: str) -> tuple[list[Grant], str]:
        """(a page of the free bets that the player may play now, in the order of their ids; token of the next page)."""
        size = check_page_size(page_size)
        (after,) = parse_key_token(page_token, 1)
        now_ms = self.clock.now_ms()
        found = await self.store.grants_of(
            caller.party, check_reference(player, "player"), after, size + 1, now_ms=now_ms
        )
        return found[:size], format_key_token(found[size - 1].grant_id) if len(found) > size else ""

    async def cancel(self, caller: Caller, request_id: str, grant_id: str) -> Grant:
        """Take a free bet back that was not played. A repeat changes nothing."""
        check_request_id(request_id)
        grant = await self.store.grant(check_ulid(grant_id, "grant_id"))
        if grant is None or grant.operator != caller.party:
            raise NotFoundError(f"no free bet {grant_id}", kind="free_bet", field="grant_id", grant_id=grant_id)
        if grant.status is GrantStatus.OPEN:
            try:
                await self.store.commit(Change(records=(GrantCancelled(grant_id),)))
            except SessionRaceError:
                raise SessionChangedError("the free bet was changed by another request; read it again") from None
        elif grant.status is GrantStatus.USED:
            raise FreeBetRefusedError(
                f"free bet {grant_id} was used in round {grant.round_id}", grant_id=grant_id, round_id=grant.round_id
            )
        return replace(grant, status=GrantStatus.CANCELLED)

    async def _known(self, caller: Caller, request: GrantFreeBets) -> list[Grant]:
        """What the request has granted before. IdempotencyConflictError if its id comes with other content."""
        found = await self.store.grants_of_request(caller.party, request.request_id)
        if found:
            first = found[0]
            was = replace(
                request,
                player=first.player,
                game=first.ruleset_id,
                currency=first.currency,
                campaign=first.campaign,
                stake_minor=first.stake_minor,
                count=len(found),
                expires_ms=first.expires_ms,
            )
            verify_same_content(was, request, request.request_id, "GrantFreeBets")
        return found

    def _verify(self, caller: Caller, request: GrantFreeBets) -> None:
        """What forbids the grant, whatever the time."""
        check_reference(request.player, "player")
        check_campaign(request.campaign)
        check_range(request.count, "count", 1, COUNT_MAX)
        ruleset = self.games.rulesets.get(request.game)
        if ruleset is None:
            raise UnknownRulesetError(f"no game {request.game[:40]}", field="game", value=request.game[:40])
        if ruleset.table_only:
            raise TableOnlyError(
                f"{ruleset.id} is played at tables: free bets are for games of one player",
                field="game",
                value=ruleset.id,
            )
        if self.games.fundings.get(caller.party) is Funding.SEAMLESS:
            raise FundingModeError(
                f"{caller.party} is funded bet by bet: its wallet pays free bets by itself", operator=caller.party
            )
        jurisdiction = self.games.jurisdictions.get(caller.jurisdiction)
        if jurisdiction is None:
            raise JurisdictionError(
                f"operator {caller.party} has no jurisdiction", operator=caller.party, jurisdiction=caller.jurisdiction
            )
        self.games.verify_free_bets(jurisdiction.id)
        jurisdiction.verify_currency(request.currency)
        games.check_stakes(ruleset, {"ante": request.stake_minor})
