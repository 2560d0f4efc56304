"""A client of one session of a `ServiceHarness`: it knows nothing but the last answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from rgs.core.bet_limits import BetLimits
from rgs.core.errors import RgsError, UnavailableError
from rgs.core.games.types import Action
from rgs.core.sessions import Mode
from rgs.core.views import SessionView
from rgs.service.callers import Caller, Reply
from rgs.service.play.requests import Act, BuyParticipation, CloseSession, EndParticipation, OpenSession, StartRound
from tests.support.service.harness import OPERATOR, Request, ServiceHarness, new_reference, read_reply

Choose = Callable[[Sequence[str]], str]


def cheapest(legal: Sequence[str]) -> str:
    """Check while it is free, then call or fold: the rounds last as long as they can."""
    for action in ("check", "call", "play_1x"):
        if action in legal:
            return action
    return legal[-1]


class Player:
    """A client of one session: every request is made from the last answer, and kept with its reply in `sent`."""

    def __init__(
        self, harness: ServiceHarness, *, game: str = "uth-solo", name: str = "anna", caller: Caller = OPERATOR
    ) -> None:
        self.harness = harness
        self.caller = caller
        self.name = name
        self._game = game
        self.sent: list[tuple[Request, Reply]] = []
        self.session: dict[str, Any] = {}
        self.round: dict[str, Any] = {}

    @property
    def session_id(self) -> str:
        return str(self.session["session_id"])

    @property
    def balance_minor(self) -> int:
        return int(self.session["balance_minor"])

    async def send(self, request: Request) -> Reply:
        """Send, and take the answer as what there is to know."""
        reply = await self.harness.send(request, self.caller)
        self.take(request, reply)
        return reply

    def take(self, request: Request, reply: Reply) -> None:
        """An answer has come."""
        document = read_reply(reply)
        self.session = document["session"]
        if document["round"] is not None:
            self.round = document["round"]
        self.sent.append((request, reply))

    async def view(self) -> SessionView:
        """The session as it stands."""
        view, _ = await self.harness.sessions.get(self.caller, self.session_id)
        return view

    def opening(self) -> OpenSession:
        return OpenSession(self.harness.request_id(), self._game, self.name, "EUR", new_reference())

    def purchase(self, amount_minor: int) -> BuyParticipation:
        return BuyParticipation(
            self.harness.request_id(), self.session_id, self.session["next_purchase_no"], amount_minor
        )

    def starting(self, ante: int = 100, **side_bets: int) -> StartRound:
        bets = {"ante": ante, **side_bets}
        return StartRound(self.harness.request_id(), self.session_id, self.session["next_round_no"], bets)

    def decision(self, action: str) -> Act:
        return Act(
            self.harness.request_id(),
            self.session_id,
            self.round["round_id"],
            self.round["round_version"],
            Action(action),
        )

    def ending(self) -> EndParticipation:
        return EndParticipation(self.harness.request_id(), self.session_id)

    def closing(self) -> CloseSession:
        return CloseSession(self.harness.request_id(), self.session_id)

    async def open(self) -> Reply:
        return await self.send(self.opening())

    async def buy(self, amount_minor: int = 10_000) -> Reply:
        return await self.send(self.purchase(amount_minor))

    async def start(self, ante: int = 100, **side_bets: int) -> Reply:
        return await self.send(self.starting(ante, **side_bets))

    async def act(self, action: str) -> Reply:
        return await self.send(self.decision(action))

    async def finish_round(self, choose: Choose = cheapest) -> Reply:
        """Decide until the round is settled; the last answer."""
        while True:
            reply = await self.act(choose([legal for legal, _, available in self.round["legal_actions"] if available]))
            if self.round["status"] != "open":
                return reply

    async def play(self, ante: int = 100, choose: Choose = cheapest, **side_bets: int) -> Reply:
        """A round from its stakes to its settlement; the last answer."""
        self.harness.clock.tick(1500)
        await self.start(ante, **side_bets)
        return await self.finish_round(choose)

    async def end(self) -> Reply:
        return await self.send(self.ending())

    async def close(self) -> Reply:
        return await self.send(self.closing())

    async def sit(self, amount_minor: int = 10_000) -> None:
        """Open and buy."""
        await self.open()
        await self.buy(amount_minor)

    async def leave(self) -> None:
        """End and close."""
        await self.end()
        await self.close()


async def refused(harness: ServiceHarness, player: Player, request: Request) -> RgsError:
    """Send the request; what it is refused with."""
    with pytest.raises(RgsError) as result:
        await harness.send(request, player.caller)
    assert not isinstance(result.value, UnavailableError)
    return result.value


class Guest(Player):
    """A player with play money, or with limits on his bets, or in another currency."""

    bet_limits: BetLimits = ()
    mode: Mode | None = Mode.DEMO
    currency = "EUR"

    def opening(self) -> OpenSession:
        return replace(super().opening(), mode=self.mode, bet_limits=self.bet_limits, currency=self.currency)
