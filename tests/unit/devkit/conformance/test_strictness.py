"""The kits believe no answer that the game server does not believe, and say what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from rgs.adapters.grpc import regulator, wallet
from rgs.adapters.grpc.peer import DETAILS, PeerContract
from rgs.devkit.conformance.kit import CheckVerdict, ContractCaller
from rgs.devkit.simulators.faults import Call, Fault, FaultPlan, Planned
from rgs.devkit.simulators.serving import WireError
from rgs.devkit.simulators.wallet import SimulatedWallet
from rgs.ports.wallet import Receipt, Transfer
from rgs.wallet.v1 import wallet_pb2 as pb
from tests.support.adapters.conformance import check_regulator, check_wallet, failed
from tests.support.adapters.simulators import always

SLOW = pytest.mark.slow


# --- reading a refusal ------------------------------------------------------------------------------------------------


def error(code: grpc.StatusCode, *reasons: str, inner: int | None = None, domain: str = wallet.DOMAIN) -> Exception:
    """A call that ended with this code, and with an ErrorInfo for each reason."""
    status = Status(code=code.value[0] if inner is None else inner, message="no")
    for reason in reasons:
        packed = AnyMessage()
        packed.Pack(ErrorInfo(reason=reason, domain=domain))
        status.details.append(packed)
    return ended(code, status.SerializeToString())


def ended(code: grpc.StatusCode, *details: bytes) -> Exception:
    trailing = grpc.aio.Metadata(*((DETAILS, one) for one in details))
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailing)


async def reason(said: Exception, contract: PeerContract, name: str) -> str:
    async def method(_request: Any, timeout: float) -> Any:  # noqa: ASYNC109 - as gRPC names it
        assert timeout == 3.0
        raise said

    answered = await ContractCaller(contract, 3_000).call(method, name, pb.DebitRequest())
    assert answered.response is None
    return answered.reason


STATE, EXISTS, AWAY = grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.ALREADY_EXISTS, grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (ended(AWAY), "no answer (UNAVAILABLE)"),
        (ended(STATE), "FAILED_PRECONDITION: no google.rpc.Status"),
        (ended(STATE, b"\xff"), "FAILED_PRECONDITION: a google.rpc.Status that cannot be read"),
        (error(STATE), "FAILED_PRECONDITION: 0 ErrorInfos, not one"),
        (error(STATE, *["INSUFFICIENT_FUNDS"] * 2), "FAILED_PRECONDITION: 2 ErrorInfos, not one"),
        (error(STATE, "INSUFFICIENT_FUNDS", inner=0), "FAILED_PRECONDITION: code 0 in the google.rpc.Status, not 9"),
        (
            error(STATE, "INSUFFICIENT_FUNDS", domain="other"),
            "FAILED_PRECONDITION: INSUFFICIENT_FUNDS of the domain other, not rgs.wallet.v1",
        ),
        (error(STATE, "NO_MONEY"), "FAILED_PRECONDITION: NO_MONEY, which the contract does not know"),
        (
            error(EXISTS, "INSUFFICIENT_FUNDS"),
            "ALREADY_EXISTS: INSUFFICIENT_FUNDS as ALREADY_EXISTS, not FAILED_PRECONDITION",
        ),
        (
            error(STATE, "BALANCE_ABOVE_MAXIMUM"),
            "FAILED_PRECONDITION: BALANCE_ABOVE_MAXIMUM, which Debit may not answer",
        ),
        (error(AWAY, "AWAY"), "UNAVAILABLE: AWAY, which the contract does not know"),
    ],
    ids=range(11),
)
async def test_a_refusal_that_is_not_believed_is_none(said: Exception, why: str) -> None:
    is_silent = why.startswith("no answer")
    expected = why if is_silent else f"a refusal that the game server does not believe ({why})"
    assert await reason(said, wallet.CONTRACT, "Debit") == expected


async def test_a_refusal_of_the_contract_is_one() -> None:
    assert await reason(error(STATE, "INSUFFICIENT_FUNDS"), wallet.CONTRACT, "Debit") == "INSUFFICIENT_FUNDS"
    seated = error(STATE, "SEATED", domain=regulator.DOMAIN)
    assert await reason(seated, regulator.CONTRACT, "CloseSession") == "SEATED"


# --- planted peers ----------------------------------------------------------------------------------------------------


def of(method: str, fault: Fault) -> FaultPlan:
    return FaultPlan((Planned(fault, method),))


@SLOW
async def test_a_wallet_whose_status_names_another_code_fails_every_check_of_a_refusal(tmp_path: Path) -> None:
    broken = failed(await check_wallet(tmp_path, always(Fault.WRONG_CODE)))
    assert {"conflict_amount", "tombstone", "funds_insufficient", "lookup_unknown", "token_expired"} <= set(broken)
    assert not set(broken) & {"debit_repeat", "rollback_debit", "lookup_transaction", "free_bet", "lookup_free_bet"}
    for why in broken.values():
        assert "that the game server does not believe" in why
        assert ": code 2 in the google.rpc.Status, not " in why


@SLOW
async def test_a_wallet_that_answers_with_the_reason_of_another_method_is_told_so(tmp_path: Path) -> None:
    broken = failed(await check_wallet(tmp_path, always(Fault.ROLLBACK_REFUSED)))
    assert broken["rollback_unknown"] == (
        "expected an acceptance, got a refusal that the game server does not believe"
        " (NOT_FOUND: TRANSACTION_UNKNOWN, which Rollback may not answer)"
    )


NO_BALANCE = "balance_after_minor is missing or below 0: the game server does not believe the receipt"
LONG = "wallet_reference has more than 64 characters: the game server does not believe the receipt"


@SLOW
@pytest.mark.parametrize(
    ("method", "fault", "checks", "why"),
    [
        ("GetTransaction", Fault.NO_BALANCE, ["lookup_transaction", "lookup_free_bet"], NO_BALANCE),
        (
            "GetTransaction",
            Fault.LONG_REFERENCE,
            ["lookup_transaction", "lookup_refused", "lookup_tombstone", "lookup_free_bet"],
            LONG,
        ),
        (
            "Rollback",
            Fault.LONG_REFERENCE,
            [
                *("rollback_debit", "rollback_repeat", "rollback_unknown", "rollback_refused_debit"),
                *("debit_after_rollback", "lookup_transaction", "parallel_overdraw", "parallel_rollback"),
                *("free_bet_once", "free_bet_again"),
            ],
            LONG,
        ),
        (
            "Credit",
            Fault.NO_BALANCE,
            [
                *("credit_gives_money", "credit_of_nothing", "credit_repeat", "seamless_purposes", "round_ended"),
                *("balances_add_up", "conflict_credit_amount", "conflict_credit_as_debit", "conflict_rollback_credit"),
                *("precision", "refusal_final", "lookup_transaction", "free_bet"),
            ],
            NO_BALANCE,
        ),
    ],
)
async def test_a_wallet_whose_receipts_are_not_believed_fails_where_one_is_looked_at(
    tmp_path: Path, method: str, fault: Fault, checks: list[str], why: str
) -> None:
    assert failed(await check_wallet(tmp_path, of(method, fault))) == dict.fromkeys(checks, why)


@SLOW
async def test_every_check_of_a_debit_needs_its_balance(tmp_path: Path) -> None:
    broken = failed(await check_wallet(tmp_path, of("Debit", Fault.NO_BALANCE)))
    assert {"debit_takes_money", "debit_repeat", "parallel_debits", "token_expired_repeat"} <= set(broken)
    assert set(broken.values()) == {NO_BALANCE}


@SLOW
async def test_a_regulator_whose_status_names_another_code_fails_every_check_of_a_refusal(tmp_path: Path) -> None:
    broken = failed(await check_regulator(tmp_path, always(Fault.WRONG_CODE)))
    assert {"session_conflict", "purchase_gap", "stage_gap", "end_once", "day_over", "fields_malformed"} <= set(broken)
    assert not set(broken) & {"session_id", "purchase_once", "stages", "end_repeat", "modules", "read_back"}
    assert all(": code 2 in the google.rpc.Status, not " in why for why in broken.values())


@SLOW
@pytest.mark.parametrize(
    ("method", "some"),
    [
        ("OpenSession", {"session_id", "stages", "read_back"}),
        ("BuyParticipation", {"purchase_id", "purchase_top_up", "session_seated"}),
        ("ReportStages", {"stages", "stage_repeat", "read_back"}),
        ("EndParticipation", {"stages", "end_repeat", "seat_ended"}),
        ("CloseSession", {"session_close", "session_closed"}),
        ("AlignDay", {"day_aligned"}),
        ("ReportModules", {"modules"}),
    ],
)
async def test_a_regulator_that_answers_for_another_transaction_fails_what_needs_the_answer(
    tmp_path: Path, method: str, some: set[str]
) -> None:
    broken = failed(await check_regulator(tmp_path, of(method, Fault.WRONG_TRANSACTION)))
    assert some <= set(broken)
    assert all("got another transaction_id, which the game server does not believe" in why for why in broken.values())


# --- free bets --------------------------------------------------------------------------------------------------------

KNOWN = "spring:01K4ZQ5A0B1C2D3E4F5G6H7J81"
NEED_ONE = {"free_bet_once", "free_bet_again", "conflict_free_bet", "lookup_free_bet"}


@pytest.fixture
def picky(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wallet pays the free bets of the campaign `spring` only."""
    pays = SimulatedWallet._debit

    async def debit(self: SimulatedWallet, request: pb.DebitRequest, call: Call, requested: Transfer) -> Receipt:
        if requested.free_bet.startswith("conformance:"):
            raise WireError("FREE_BET_UNKNOWN", "no such grant")
        return await pays(self, request, call, requested)

    monkeypatch.setattr(SimulatedWallet, "_debit", debit)


@SLOW
@pytest.mark.usefixtures("picky")
async def test_a_wallet_that_pays_its_own_free_bets_only_is_told_what_is_skipped(tmp_path: Path) -> None:
    results = await check_wallet(tmp_path)
    assert failed(results) == {}
    skipped = {result.name: result.why for result in results if result.verdict is CheckVerdict.SKIPPED}
    assert skipped == dict.fromkeys(NEED_ONE, "needs --free-bet")


@SLOW
@pytest.mark.usefixtures("picky")
async def test_a_free_bet_that_the_wallet_knows_is_good_for_every_check_and_for_the_next_run(tmp_path: Path) -> None:
    for run in (1, 2):
        results = await check_wallet(tmp_path, run=run, free_bet=KNOWN)
        assert {result.verdict for result in results} == {CheckVerdict.PASSED}


@SLOW
@pytest.mark.usefixtures("picky")
async def test_a_named_free_bet_that_the_wallet_refuses_fails(tmp_path: Path) -> None:
    broken = failed(await check_wallet(tmp_path, free_bet="conformance:mine"))
    assert broken == dict.fromkeys(NEED_ONE, "expected an acceptance, got FREE_BET_UNKNOWN")
