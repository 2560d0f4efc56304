"""The checks of a wallet that are about free bets (docs/wallet.md).

A wallet that rightly refuses a made-up free bet needs one that it knows (`--free-bet`); without it all checks but the
first are skipped. Each of these rolls its debits back, so that the free bet is good for the next one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from rgs.devkit.conformance.kit import Answered, CheckSkippedError, ConformanceCheck, checks, demand_reason
from rgs.devkit.conformance.wallet_kit import ACCEPTED, ROLLED_BACK, WalletKit, changed, receipt_of
from rgs.wallet.v1 import wallet_pb2 as pb

UNKNOWN: Final = "FREE_BET_UNKNOWN"


@dataclass(frozen=True, slots=True)
class PlayedFreeBet:
    """Debits of one free bet."""

    kit: WalletKit
    free_bet: str
    sent: list[pb.Transfer] = field(default_factory=list)

    async def debit(self) -> tuple[pb.Transfer, Answered]:
        """Debit it for a new round, under a new id."""
        bet = self.kit.transfer(pb.TRANSFER_PURPOSE_FREE_BET, round_reference=self.kit.new_id(), free_bet=self.free_bet)
        self.sent.append(bet)
        return bet, await self.kit.debit(bet)


@asynccontextmanager
async def played(kit: WalletKit) -> AsyncIterator[tuple[PlayedFreeBet, pb.Transfer]]:
    """A free bet, and its debit, which was accepted. In the end every debit of it is rolled back."""
    playing = PlayedFreeBet(kit, kit.free_bet or _made_up(kit))
    async with kit.moves(0):
        bet, answer = await playing.debit()
        if answer.reason == UNKNOWN and not kit.free_bet:
            raise CheckSkippedError("needs --free-bet")
        try:
            receipt_of(answer, bet, ACCEPTED)
            yield playing, bet
        finally:
            for debit in playing.sent:
                await kit.rollback(debit)


def _made_up(kit: WalletKit) -> str:
    return f"conformance:{kit.new_id()}"


async def free_bet(kit: WalletKit) -> None:
    """A free bet moves nothing on the player's account; one that the wallet does not know is refused."""
    async with kit.moves(0):
        bet, answer = await PlayedFreeBet(kit, _made_up(kit)).debit()
        if answer.reason:
            demand_reason(answer, UNKNOWN)
            return
        receipt_of(answer, bet, ACCEPTED)
        back = {name: getattr(bet, name) for name in ("amount_minor", "reference", "round_reference", "free_bet")}
        await kit.given(pb.TRANSFER_PURPOSE_FREE_BET_RETURN, **back)


async def free_bet_once(kit: WalletKit) -> None:
    """A debit of a free bet is refused for good while another debit of it stands."""
    async with played(kit) as (playing, bet):
        second, answer = await playing.debit()
        demand_reason(answer, UNKNOWN)
        receipt_of(await kit.rollback(bet), bet, ROLLED_BACK)
        demand_reason(await kit.debit(second), UNKNOWN)


async def free_bet_again(kit: WalletKit) -> None:
    """A debit that was refused or rolled back uses no free bet up: the next one is accepted."""
    async with played(kit) as (playing, bet):
        await playing.debit()  # refused, for the other one stands
        receipt_of(await kit.rollback(bet), bet, ROLLED_BACK)
        again, answer = await playing.debit()
        receipt_of(answer, again, ACCEPTED)


async def conflict_free_bet(kit: WalletKit) -> None:
    """A free bet's id with another free bet is a conflict."""
    async with played(kit) as (playing, bet):
        campaign = playing.free_bet.partition(":")[0]
        other = changed(bet, free_bet=f"{campaign}:{kit.new_id()}")
        demand_reason(await kit.debit(other), "TRANSACTION_CONFLICT")


async def lookup_free_bet(kit: WalletKit) -> None:
    """GetTransaction finds the debit of a free bet, with the player who plays it."""
    async with played(kit) as (_, bet):
        receipt_of(await kit.stands(bet), bet, ACCEPTED)


FREE_BETS: Final[tuple[ConformanceCheck[WalletKit], ...]] = tuple(
    checks(free_bet, free_bet_once, free_bet_again, conflict_free_bet, lookup_free_bet)
)
