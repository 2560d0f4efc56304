"""Players with free bets, and the oracle over what they leave."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from rgs.adapters.embedded.wallet import CAMPAIGN_MINOR
from rgs.core.free_bets import Grant
from rgs.service.play.requests import GrantFreeBets
from rgs.store.wallet import WalletStore
from tests.support.service.harness import read_statement
from tests.support.service.oracles import replay, stored_statements
from tests.support.service.player import Player

DAY_MS = 86_400_000
STAKE = 100
OPENED = ("campaign:spring", "opening")


class Guest(Player):
    """A player with free bets of one campaign."""

    async def grant(self, count: int = 1, **changed: Any) -> list[Grant]:
        return await self.harness.services.free_bets.grant(self.caller, self.granting(count, **changed))

    def granting(self, count: int = 1, **changed: Any) -> GrantFreeBets:
        request = GrantFreeBets(
            self.harness.request_id(),
            player=self.name,
            game=self._game,
            currency="EUR",
            campaign="spring",
            stake_minor=STAKE,
            count=count,
            expires_ms=self.harness.clock.now_ms() + DAY_MS,
        )
        return replace(request, **changed)

    async def start_free(self, grant_id: str, ante: int = STAKE, **side_bets: int) -> None:
        self.harness.clock.tick(1500)
        await self.send(replace(self.starting(ante, **side_bets), free_bet=grant_id))

    async def play_free(self, grant_id: str) -> None:
        await self.start_free(grant_id)
        await self.finish_round()

    async def open_grants(self) -> list[str]:
        found, _ = await self.harness.services.free_bets.list_open(self.caller, self.name, 0, "")
        return [grant.grant_id for grant in found]


def links_of(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [read_statement(row.envelope) for row in stored_statements(folder) if row.kind == kind]


def verify_campaign(folder: Path, *, rounds: int) -> None:
    """The record and the wallet's book say the same of the campaign, round by round, and replay agrees."""
    assert replay(folder).failures == 0
    moved = {
        one["transaction_id"]: (one["direction"], int(one["amount_minor"])) for one in links_of(folder, "free_bet")
    }
    assert len(moved) == 2 * rounds
    with closing(WalletStore(folder / "wallet.db")) as store:
        store.verify()
        entries = [entry for entry in store.rows() if entry.player == "campaign:spring" and entry.kind != "opening"]
        opened = [entry.amount_minor for entry in store.rows() if (entry.player, entry.kind) == OPENED]
    undone = {entry.transaction_id for entry in entries if entry.kind == "rollback"}
    booked = {
        str(entry.transaction_id): (entry.kind, entry.amount_minor)
        for entry in entries
        if entry.kind in {"debit", "credit"} and entry.transaction_id not in undone
    }
    assert booked == moved
    assert opened == ([CAMPAIGN_MINOR] if any(entry.kind == "debit" for entry in entries) else [])
