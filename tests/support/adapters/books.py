"""What the tests of the embedded wallet and regulator share: ids, a clock that stands, messages, a played game."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from rgs.adapters.embedded.regulator import EmbeddedRegulator
from rgs.adapters.embedded.wallet import EmbeddedWallet
from rgs.core.ids import format_ulid
from rgs.ports.regulator import (
    DayTotals,
    ModuleReport,
    ParticipationEnd,
    Purchase,
    RegulatorParticipation,
    RegulatorReceipt,
    SessionClose,
    SessionOpening,
    SoftwareModule,
    StageReport,
)
from rgs.ports.wallet import Transfer, TransferPurpose
from rgs.store.regulator import RegulatorEntry, RegulatorStore
from rgs.store.wallet import WalletStore

NOW_MS = 1_795_000_000_000


def ulid(number: int) -> str:
    return format_ulid(NOW_MS, number.to_bytes(10, "big"))


def move(
    number: int, amount_minor: int = 100, *, player: str = "anna", operator: str = "op", currency: str = "EUR"
) -> Transfer:
    """What a debit or a rollback asks for."""
    return Transfer(operator, player, currency, amount_minor, ulid(number), ulid(900), TransferPurpose.PURCHASE)


def give(number: int, amount_minor: int = 100, *, player: str = "anna", operator: str = "op") -> Transfer:
    """What a credit asks for."""
    return replace(move(number, amount_minor, player=player, operator=operator), purpose=TransferPurpose.PAYOUT)


def requested_by(method: str, transfer: Transfer) -> Transfer:
    """The transfer with the purpose that fits the method."""
    return replace(transfer, purpose=TransferPurpose.PAYOUT) if method.lower() == "credit" else transfer


def make_wallet(path: Path) -> tuple[EmbeddedWallet, WalletStore]:
    store = WalletStore(path)
    return EmbeddedWallet(store, lambda: NOW_MS), store


def counting_ids() -> Callable[[str], str]:
    numbers = count(1)
    return lambda prefix: f"{prefix}{next(numbers):015d}"


def make_regulator(path: Path) -> tuple[EmbeddedRegulator, RegulatorStore]:
    store = RegulatorStore(path)
    return EmbeddedRegulator(store, counting_ids(), lambda: NOW_MS), store


@dataclass
class Numbers:
    """Transaction ids, one after the other."""

    last: int = field(default=0)

    def __call__(self) -> str:
        self.last += 1
        return ulid(self.last)


def opening(transaction_id: str, *, reference: str = "session-1", cap_minor: int = 1000) -> SessionOpening:
    return SessionOpening(
        transaction_id=transaction_id,
        reference=reference,
        operator="op",
        jurisdiction="demo",
        test_regulator_allowed=True,
        ruleset="uth-classic",
        currency="EUR",
        participation_cap_minor=cap_minor,
        open_ms=NOW_MS,
    )


def purchase(
    transaction_id: str,
    session_id: str,
    *,
    reference: str = "participation-1",
    player: str = "anna",
    purchase_no: int = 1,
    amount_minor: int = 500,
) -> Purchase:
    return Purchase(
        transaction_id=transaction_id,
        regulator_session_id=session_id,
        reference=reference,
        player=player,
        purchase_no=purchase_no,
        amount_minor=amount_minor,
        purchase_ms=NOW_MS,
    )


def stage(
    session_id: str,
    participation_id: str,
    round_no: int,
    available_minor: int,
    *,
    staked_minor: int = 30,
    returned_minor: int = 0,
    end_ms: int = NOW_MS,
) -> StageReport:
    return StageReport(
        session_id="session-1",
        stage_no=round_no,
        regulator_session_id=session_id,
        regulator_participation_id=participation_id,
        available_minor=available_minor,
        staked_minor=staked_minor,
        returned_minor=returned_minor,
        opening_hash=f"{round_no:064x}",
        end_ms=end_ms,
        final_hash=f"{round_no:x}".rjust(64, "f"),
    )


NOTHING = DayTotals(0, 0, 0, 0, 0, 0, 0)


def modules(transaction_id: str) -> ModuleReport:
    rng = SoftwareModule("rng", "1.0.0", "a" * 64, "b" * 40)
    return ModuleReport(transaction_id, "node1", (rng, SoftwareModule("games", "1.0.0", "c" * 64)), NOW_MS)


class Played:
    """A regulator with one session open, one participation of 500 bought (cap 1000), two stages told: 440 are left."""

    def __init__(self, regulator: EmbeddedRegulator, store: RegulatorStore) -> None:
        self.regulator = regulator
        self.store = store
        self.number = Numbers()
        self.session = ""
        self.participation = ""
        self.other = ""
        """A second session's or participation's id, where a test needs one."""

    async def play(self) -> None:
        self.session = (await self.regulator.open_session(opening(self.number()))).regulator_session_id
        bought = await self.regulator.buy_participation(purchase(self.number(), self.session))
        self.participation = bought.regulator_participation_id
        stages = [self.stage(1, 500), self.stage(2, 470)]
        await self.regulator.report_stages(self.number(), stages)

    def stage(self, round_no: int, available_minor: int, **other: Any) -> StageReport:
        return stage(self.session, self.participation, round_no, available_minor, **other)

    async def report(self, *stages: StageReport) -> RegulatorReceipt:
        return await self.regulator.report_stages(self.number(), stages)

    async def buy(self, **other: Any) -> RegulatorParticipation:
        return await self.regulator.buy_participation(purchase(self.number(), self.session, **other))

    async def end(self, final_balance_minor: int = 440, rounds: int = 2, **other: Any) -> RegulatorReceipt:
        end = ParticipationEnd(
            transaction_id=self.number(),
            regulator_session_id=self.session,
            regulator_participation_id=self.participation,
            final_balance_minor=final_balance_minor,
            rounds=rounds,
            end_ms=NOW_MS,
        )
        return await self.regulator.end_participation(replace(end, **other))

    async def close(self, **other: Any) -> RegulatorReceipt:
        return await self.regulator.close_session(replace(SessionClose(self.number(), self.session, NOW_MS), **other))

    def state(self) -> list[RegulatorEntry]:
        return list(self.store.entries())
