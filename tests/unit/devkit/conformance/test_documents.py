"""wallet.md, regulator.md and simulators.md name every reason, check, fault and column that is there, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rgs.adapters.grpc.peer import RefusalRow
from rgs.adapters.grpc.regulator import REFUSALS as REGULATOR_REFUSALS
from rgs.adapters.grpc.wallet import REFUSALS as WALLET_REFUSALS
from rgs.devkit.conformance.regulator import CHECKS as REGULATOR_CHECKS
from rgs.devkit.conformance.wallet import CHECKS as WALLET_CHECKS
from rgs.devkit.simulators.faults import Fault, parse_plan
from rgs.devkit.simulators.statements import WALLET_COLUMNS

DOCS = Path(__file__).resolve().parents[4] / "docs"
SIMULATORS = (DOCS / "simulators.md").read_text("utf-8")


def rows(name: str) -> list[list[str]]:
    lines = (DOCS / f"{name}.md").read_text("utf-8").splitlines()
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| `")]


@pytest.mark.parametrize(
    ("name", "refusals", "checks"),
    [
        ("wallet", WALLET_REFUSALS, [(check.name, check.says) for check in WALLET_CHECKS]),
        ("regulator", REGULATOR_REFUSALS, [(check.name, check.says) for check in REGULATOR_CHECKS]),
    ],
)
def test_reasons_and_checks_are_those_of_the_code(
    name: str, refusals: dict[str, RefusalRow], checks: list[tuple[str, str]]
) -> None:
    result = rows(name)
    reasons = [row[:3] for row in result if row[0].strip("`").isupper()]
    assert reasons == [[f"`{reason}`", f"`{row.code.name}`", row.meaning] for reason, row in refusals.items()]
    if name == "wallet":
        methods = [row[3] for row in result if row[0].strip("`").isupper()]
        assert methods == [", ".join(sorted(row.methods)) or "all" for row in refusals.values()]
    assert [row for row in result if row[0].strip("`").islower()] == [[f"`{check}`", says] for check, says in checks]
    text = (DOCS / f"{name}.md").read_text("utf-8")
    assert f"runs {len(checks)} checks" in text


def test_faults_and_columns_are_those_of_the_code() -> None:
    faults = SIMULATORS.split("## Faults")[1].split("## Exports")[0]
    cells = [line.split("|")[1] for line in faults.splitlines() if line.startswith("| `")]
    named = [name for cell in cells for name in re.findall(r"`([a-z_]+)`", cell)]
    assert sorted(named) == sorted(Fault)
    exports = SIMULATORS.split("## Exports")[1].split("`regulator.jsonl`")[0]
    assert [name for name in re.findall(r"`(\w+)`", exports) if name in WALLET_COLUMNS] == list(WALLET_COLUMNS)
    (plan,) = re.findall(r"```toml\n(.*?)```", SIMULATORS, re.DOTALL)
    assert parse_plan(plan).seed == "demo-1"


def test_what_the_mapping_calls_a_rejection_is_one() -> None:
    mapping = (DOCS / "regulator-mapping.md").read_text("utf-8")
    assert set(re.findall(r"`([A-Z_]{6,})`", mapping)) <= set(REGULATOR_REFUSALS)
