"""The conformance kits pass an honest peer, and fail a misbehaving one on exactly the checks that its fault breaks."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from rgs.devkit.conformance.kit import CheckResult, CheckVerdict, ConformanceCheck, format_junit, print_table
from rgs.devkit.conformance.regulator import CHECKS as REGULATOR_CHECKS
from rgs.devkit.conformance.wallet import CHECKS as WALLET_CHECKS
from rgs.devkit.simulators.faults import Fault
from tests.support.adapters.conformance import check_regulator, check_wallet, failed
from tests.support.adapters.simulators import HONEST, always, at

pytestmark = pytest.mark.slow

CONFLICTS = {
    *("conflict_amount", "conflict_player", "conflict_currency", "conflict_reference", "conflict_round"),
    *("conflict_purpose", "conflict_credit_amount", "conflict_rollback_amount", "conflict_free_bet"),
}
REPEATS = {
    *("debit_repeat", "credit_repeat", "repeat_same_answer", "parallel_repeats", "token_expired_repeat"),
    "round_ended",
}
WALLET_FAULTS: dict[Fault, set[str]] = {
    Fault.CONFLICTING_RETRY: REPEATS
    | {"rollback_repeat", "tombstone", "debit_after_rollback", "refusal_final", "free_bet_once"},
    Fault.NO_CONFLICT: CONFLICTS,
    Fault.WRONG_AMOUNT: {
        *("debit_takes_money", "credit_gives_money", "attempt_id_ignored", "balances_add_up", "precision"),
        *("refusal_final", "parallel_repeats", "parallel_debits", "parallel_overdraw"),
    },
    Fault.ROUNDED: {"precision"},
    Fault.DOUBLE_ENTRY: REPEATS,
    Fault.NO_TOMBSTONE: {"tombstone", "lookup_tombstone"},
    Fault.ROLLBACK_REFUSED: {"rollback_unknown", "tombstone", "lookup_tombstone"},
    Fault.LATE_DEBIT: {"tombstone", "debit_after_rollback"},
    Fault.NOT_FINAL: {"refusal_final", "lookup_refused"},
    Fault.TOKEN_FIRST: {"token_expired_repeat"},
    Fault.ZERO_TAKEN: {"amount_zero"},
    Fault.ZERO_REFUSED: {"credit_of_nothing", "round_ended"},
    Fault.FORGETFUL: {"lookup_transaction", "lookup_refused", "lookup_tombstone", "lookup_free_bet"},
    Fault.FREE_BET_SPENT: {"free_bet_again"},
    Fault.FREE_BET_TWICE: {"free_bet_once"},
    Fault.WRONG_BALANCE: {"debit_takes_money", "credit_gives_money", "balances_add_up"},
}
RACED = {Fault.LATE_DEBIT, Fault.CONFLICTING_RETRY, Fault.NO_TOMBSTONE, Fault.ROLLBACK_REFUSED}
REGULATOR_FAULTS: dict[Fault, set[str]] = {
    Fault.CONFLICTING_RETRY: {
        *("session_repeat", "session_parallel", "session_close", "purchase_repeat", "end_repeat", "day_aligned"),
        "modules",
    },
    Fault.NEW_IDS: {"session_repeat", "session_parallel", "purchase_repeat"},
    Fault.NO_CAP: {"purchase_cap"},
    Fault.CLOSES_SEATED: {"session_seated"},
    Fault.ENDS_TWICE: {"end_once"},
    Fault.FUTURE_DATES: {"dates"},
    Fault.ALIGNMENT_RUNNING: {check.name for check in REGULATOR_CHECKS},
}


async def test_an_honest_wallet_passes_every_check(tmp_path: Path) -> None:
    results = await check_wallet(tmp_path, HONEST)
    assert [(result.name, result.why) for result in results if result.verdict is not CheckVerdict.PASSED] == []


async def test_what_cannot_be_tried_is_skipped_and_said_so(tmp_path: Path) -> None:
    results = await check_wallet(tmp_path, HONEST, expired_token="")
    skipped = {result.name: result.why for result in results if result.verdict is CheckVerdict.SKIPPED}
    assert skipped == dict.fromkeys(("token_expired", "token_expired_repeat"), "needs --expired-token")
    assert failed(results) == {}


async def test_duplicate_delivery_breaks_no_check(tmp_path: Path) -> None:
    assert failed(await check_wallet(tmp_path, always(Fault.DUPLICATE))) == {}


@pytest.mark.parametrize("fault", WALLET_FAULTS)
async def test_a_wallet_fails_what_its_fault_breaks_and_nothing_else(tmp_path: Path, fault: Fault) -> None:
    results = await check_wallet(tmp_path, always(fault))
    # Of a debit and its rollback at the same moment either may be first, so these faults may or may not be seen there.
    may = {"parallel_rollback"} if fault in RACED else set()
    assert set(failed(results)) - may == WALLET_FAULTS[fault]


async def test_an_answer_that_names_another_amount_fails_every_check_of_a_receipt(tmp_path: Path) -> None:
    broken = set(failed(await check_wallet(tmp_path, always(Fault.WRONG_ECHO))))
    assert {"debit_takes_money", "credit_gives_money", "rollback_debit", "lookup_transaction"} <= broken
    assert not broken & {"balance_is_reported", "amount_zero", "player_unknown", "funds_insufficient", "lookup_unknown"}


async def test_one_lost_reply_fails_the_one_check_that_waits_for_it(tmp_path: Path) -> None:
    results = await check_wallet(tmp_path, at("Debit", 1, Fault.LOST_REPLY))
    assert [(result.name, result.why) for result in results if result.verdict is CheckVerdict.FAILED] == [
        ("debit_takes_money", "expected an acceptance, got no answer (UNAVAILABLE)")
    ]


async def test_an_honest_regulator_passes_every_check(tmp_path: Path) -> None:
    results = await check_regulator(tmp_path, HONEST)
    assert [(result.name, result.why) for result in results if result.verdict is not CheckVerdict.PASSED] == []


@pytest.mark.parametrize("fault", REGULATOR_FAULTS)
async def test_a_regulator_fails_what_its_fault_breaks_and_nothing_else(tmp_path: Path, fault: Fault) -> None:
    assert set(failed(await check_regulator(tmp_path, always(fault)))) == REGULATOR_FAULTS[fault]


async def test_ids_that_are_none_are_seen(tmp_path: Path) -> None:
    assert {"session_id", "purchase_id"} <= set(failed(await check_regulator(tmp_path, always(Fault.WRONG_ID))))


@pytest.mark.parametrize("checks", [WALLET_CHECKS, REGULATOR_CHECKS], ids=["wallet", "regulator"])
def test_checks_have_names_of_their_own_and_say_what_the_contract_says(
    checks: tuple[ConformanceCheck[object], ...],
) -> None:
    assert len(checks) >= 25
    assert len({check.name for check in checks}) == len(checks)
    assert all(len(check.says) > 20 for check in checks)


def test_junit_holds_every_result() -> None:
    results = [
        CheckResult("a", "does a", CheckVerdict.PASSED, "", 12),
        CheckResult("b", "does b", CheckVerdict.FAILED, 'it was "<c>"', 1),
        CheckResult("c", "does c", CheckVerdict.SKIPPED, "needs d", 0),
    ]
    root = ET.fromstring(format_junit("suite", results))  # noqa: S314 - made a line above
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("3", "1", "1")
    found = {case.get("name"): [(child.tag, child.get("message")) for child in case] for case in root}
    assert found == {"a": [], "b": [("failure", 'it was "<c>"')], "c": [("skipped", "needs d")]}


def test_no_row_of_a_table_in_a_pipe_is_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    why = "expected TRANSACTION_ROLLED_BACK, got an acceptance " * 4
    print_table("wallet at x:1", [CheckResult("tombstone", "says", CheckVerdict.FAILED, why.strip(), 1)])
    out = capsys.readouterr().out
    assert why.strip() in out
    assert out.splitlines()[-1] == "1 checks: 0 passed, 1 FAILED, 0 skipped"
