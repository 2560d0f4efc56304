"""The conformance kits run against the simulators of this process."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from rgs.adapters.grpc import regulator, wallet
from rgs.devkit.conformance.kit import CheckResult, CheckVerdict, ContractCaller, run_checks
from rgs.devkit.conformance.regulator import CHECKS as REGULATOR_CHECKS
from rgs.devkit.conformance.regulator_kit import RegulatorKit
from rgs.devkit.conformance.wallet import CHECKS as WALLET_CHECKS
from rgs.devkit.conformance.wallet_kit import WalletKit
from rgs.devkit.simulators.faults import FaultPlan
from rgs.devkit.simulators.wallet import EXPIRED
from rgs.regulator.v1.regulator_pb2_grpc import RegulatorServiceStub
from rgs.wallet.v1.wallet_pb2_grpc import WalletServiceStub
from tests.support.adapters.books import NOW_MS, ulid
from tests.support.adapters.simulators import HONEST, running_regulator, running_wallet

DEADLINE_MS = 5_000


async def check_wallet(folder: Path, plan: FaultPlan = HONEST, run: int = 1, **options: str) -> list[CheckResult]:
    """Run all checks of a wallet against the simulator. A second run over the same book has other ids."""
    numbers = count(run * 10_000)
    async with running_wallet(folder, plan) as running:
        kit = WalletKit(
            stub=WalletServiceStub(running.client.channel),
            caller=ContractCaller(wallet.CONTRACT, DEADLINE_MS),
            new_id=lambda: ulid(next(numbers)),
            operator="op",
            player="anna",
            currency="EUR",
            second_player="bert",
            unknown_player="unknown-1",
            other_currency="XTS",
            **{"expired_token": EXPIRED, **options},
        )
        results = await run_checks(WALLET_CHECKS, kit)
        running.simulator.store.verify()
        return results


async def check_regulator(folder: Path, plan: FaultPlan = HONEST) -> list[CheckResult]:
    """Run all checks of a regulator's system against the simulator."""
    numbers = count(1)
    async with running_regulator(folder, plan) as running:
        kit = RegulatorKit(
            stub=RegulatorServiceStub(running.client.channel),
            caller=ContractCaller(regulator.CONTRACT, DEADLINE_MS),
            new_id=lambda: ulid(next(numbers)),
            now_ms=lambda: NOW_MS,
            operator="op",
            jurisdiction="demo",
            ruleset="uth-solo",
            currency="EUR",
        )
        results = await run_checks(REGULATOR_CHECKS, kit)
        running.simulator.store.verify()
        return results


def failed(results: list[CheckResult]) -> dict[str, str]:
    """The checks that failed, with what was found."""
    return {result.name: result.why for result in results if result.verdict is CheckVerdict.FAILED}
