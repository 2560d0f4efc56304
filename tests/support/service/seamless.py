"""A harness whose operator is funded bet by bet, its player, and the oracle over what it leaves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from rgs.core.sessions import Funding
from rgs.service.callers import Caller, Role
from rgs.service.play.requests import OpenSession
from rgs.store.sqlite.store import connect
from rgs.store.wallet import WalletStore
from tests.support.service.harness import ACCOUNT_MINOR, ServiceHarness, new_reference, open_harness, read_statement
from tests.support.service.oracles import replay, stored_statements, verify_numbers, verify_one_operation_a_request
from tests.support.service.player import Player

BRITISH = Caller("op-gb", Role.OPERATOR, "gb-ukgc")
FUNDINGS = {BRITISH.party: Funding.SEAMLESS}
PACE_MS = 5_000
"""The jurisdiction's least time between two starts."""


class Better(Player):
    """A player whose bets are debited one by one."""

    def __init__(self, harness: ServiceHarness, *, name: str = "anna", game: str = "uth-solo") -> None:
        super().__init__(harness, name=name, caller=BRITISH, game=game)
        self.account_minor = harness._account_minor

    def opening(self) -> OpenSession:
        return OpenSession(self.harness.request_id(), self._game, self.name, "GBP", new_reference())

    async def open(self) -> Any:
        await self.fill()
        return await super().open()

    async def fill(self) -> None:
        """The operator opens the account."""
        await self.harness.wallet.open_account(
            operator=BRITISH.party, player=self.name, currency="GBP", balance_minor=self.account_minor
        )

    async def start(self, ante: int = 100, **side_bets: int) -> Any:
        self.harness.clock.tick(PACE_MS)
        return await super().start(ante, **side_bets)

    async def balance(self) -> int:
        found = await self.harness.wallet.get_balance(operator=BRITISH.party, player=self.name, currency="GBP")
        return found.balance_minor


@asynccontextmanager
async def opened(folder: Path, **options: Any) -> AsyncIterator[ServiceHarness]:
    """A started harness with an operator that is funded bet by bet."""
    async with open_harness(folder, fundings=FUNDINGS, **options) as harness:
        yield harness


async def debits(harness: ServiceHarness) -> int:
    """How many debits stand in the wallet."""
    entries = list(harness.wallet_store.rows())
    undone = {entry.transaction_id for entry in entries if entry.kind == "rollback"}
    return sum(entry.kind == "debit" and entry.transaction_id not in undone for entry in entries)


def verify_seamless(folder: Path, *, account_minor: int = ACCOUNT_MINOR) -> None:
    """Nothing is under way: the signed transfers are the wallet's transfers, one for one, every round has its one
    return, and replay agrees.
    """
    rows = stored_statements(folder)
    verify_numbers(rows)
    verify_one_operation_a_request(folder)
    assert replay(folder).failures == 0
    transfers: dict[str, tuple[str, int]] = {}
    sums: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    returns: list[tuple[str, str]] = []
    finals: list[tuple[str, str]] = []
    seamless: set[str] = set()
    for row in rows:
        body = read_statement(row.envelope)
        if row.kind == "session_open" and "funding" in body:
            seamless.add(row.session_id)
        if row.kind == "transfer" and body["direction"] == "credit":
            returns.append((body["round_id"], body["amount_minor"]))
        if row.kind == "round_final" and row.session_id in seamless:
            finals.append((body["round_id"], body["returned_minor"]))
        if row.kind == "transfer":
            assert body["transaction_id"] not in transfers
            transfers[body["transaction_id"]] = (body["direction"], int(body["amount_minor"]))
            sums[row.session_id][2 * (body["direction"] == "credit")] += int(body["amount_minor"])
        if row.kind == "round_final":
            sums[row.session_id][1] += int(body["staked_minor"])
            sums[row.session_id][3] += int(body["returned_minor"])
    assert returns == finals, "every round has one return, of 0 where it was lost"
    for debited, staked, credited, returned in sums.values():
        assert (debited, credited) == (staked, returned)
    with closing(connect(folder / "rgs.db", read_only=True)) as connection:
        assert connection.execute("SELECT count(*) FROM operations WHERE status = 'pending'").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM sessions WHERE pending_operation <> ''").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM stage_reports").fetchone() == (0,)
        query = "SELECT session_id, bought_minor, staked_minor, paid_out_minor, returned_minor FROM sessions"
        for session_id, *held in connection.execute(query + " WHERE funding = 'seamless'"):
            assert held == sums[session_id]
    with closing(WalletStore(folder / "wallet.db")) as store:
        store.verify()
        entries = [entry for entry in store.rows() if entry.operator == BRITISH.party]
    undone = {entry.transaction_id for entry in entries if entry.kind == "rollback"}
    moved = {
        str(entry.transaction_id): (entry.kind, entry.amount_minor)
        for entry in entries
        if entry.kind in ("debit", "credit") and entry.transaction_id not in undone
    }
    assert moved == transfers
    assert sum(entry.amount_minor for entry in entries if entry.kind == "opening") % account_minor == 0
