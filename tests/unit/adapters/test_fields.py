"""Every value that is none is refused by its own name, by the embedded peers and by the clients over gRPC alike.

The clients over gRPC speak to nobody here: what is refused must be refused before anything is sent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rgs.adapters.embedded.regulator import EmbeddedRegulator
from rgs.adapters.grpc.peer import PeerSettings
from rgs.adapters.grpc.regulator import GrpcRegulator
from rgs.adapters.grpc.wallet import GrpcWallet
from rgs.core.errors import InvalidFieldError, RegulatorUnavailableError, RgsError, WalletUnavailableError
from rgs.core.times import format_date
from rgs.ports.amounts import AMOUNT_MINOR_MAX, check_amount
from rgs.ports.regulator import DayAlignment, DayTotals, ParticipationEnd, SessionClose
from rgs.ports.wallet import TransferPurpose, Wallet
from tests.support.adapters.books import (
    NOTHING,
    NOW_MS,
    make_regulator,
    make_wallet,
    modules,
    move,
    opening,
    purchase,
    requested_by,
    stage,
    ulid,
)
from tests.support.api.harness import authority, operator_certificate

SESSION, PARTICIPATION = "M" + "0" * 15, "N" + "0" * 15
NO_ULID, NO_NAME, NO_REFERENCE, NO_ID = "x" * 26, "A b", "a b", "m" * 16


def nowhere() -> PeerSettings:
    own = operator_certificate()
    return PeerSettings("localhost:1", authority().certificate_pem, own.certificate_pem, own.key_pem)


@pytest.fixture(params=["embedded", "grpc"])
async def wallet(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Wallet]:
    made: Any = make_wallet(tmp_path / "wallet.sqlite")[0]
    if request.param == "grpc":
        await made.close()
        made = GrpcWallet("wallet", nowhere(), new_id=lambda: ulid(1), now_ms=lambda: NOW_MS)
    yield made
    await made.close()


@pytest.fixture(params=["embedded", "grpc"])
async def regulator(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    made: Any = make_regulator(tmp_path / "regulator.sqlite")[0]
    if request.param == "grpc":
        await made.close()
        made = GrpcRegulator("regulator", nowhere(), new_id=lambda: ulid(1), now_ms=lambda: NOW_MS)
    yield made
    await made.close()


WRONG = {
    "operator": NO_NAME,
    "player": NO_REFERENCE,
    "currency": "eur",
    "amount_minor": AMOUNT_MINOR_MAX + 1,
    "transaction_id": NO_ULID,
    "reference": NO_REFERENCE,
    "round_reference": "round-1",
}


@pytest.mark.parametrize("method", ["debit", "credit", "rollback"])
@pytest.mark.parametrize("field", WRONG)
async def test_a_transfer_names_the_field_that_is_wrong(wallet: Wallet, method: str, field: str) -> None:
    wrong: dict[str, Any] = {field: WRONG[field]}
    with pytest.raises(RgsError) as refused:
        await getattr(wallet, method)(replace(requested_by(method, move(1)), **wrong))
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("method", "purpose"),
    [("debit", TransferPurpose.BET), ("credit", TransferPurpose.RETURN), ("rollback", TransferPurpose.BET)],
)
@pytest.mark.parametrize("field", ["reference", "round_reference"])
async def test_a_transfer_of_a_round_names_its_round(
    wallet: Wallet, method: str, purpose: TransferPurpose, field: str
) -> None:
    wrong: dict[str, Any] = {"purpose": purpose, "round_reference": "round-1", field: NO_REFERENCE}
    with pytest.raises(InvalidFieldError) as refused:
        await getattr(wallet, method)(replace(move(1), **wrong))
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("method", "purpose"),
    [
        ("debit", TransferPurpose.PAYOUT),
        ("debit", TransferPurpose.RETURN),
        ("credit", TransferPurpose.PURCHASE),
        ("credit", TransferPurpose.BET),
        ("rollback", TransferPurpose.PAYOUT),
        ("rollback", TransferPurpose.RETURN),
    ],
)
async def test_money_moves_in_the_direction_of_its_purpose(
    wallet: Wallet, method: str, purpose: TransferPurpose
) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        await getattr(wallet, method)(replace(move(1), purpose=purpose, round_reference="round-1"))
    assert refused.value.field == "purpose"


@pytest.mark.parametrize(("method", "least"), [("debit", 1), ("credit", 0), ("rollback", 1)])
async def test_the_least_amount_is_exact(wallet: Wallet, method: str, least: int) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        await getattr(wallet, method)(requested_by(method, move(1, least - 1)))
    assert (refused.value.field, refused.value.metadata["limit"]) == ("amount_minor", str(least))


async def test_a_question_names_the_field_that_is_wrong(wallet: Wallet) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        await wallet.get_transaction(operator="op", player="anna", transaction_id=NO_ULID)
    assert refused.value.field == "transaction_id"
    if isinstance(wallet, GrpcWallet):
        for field in ("operator", "player", "currency"):
            requested: dict[str, Any] = {"operator": "op", "player": "anna", "currency": "EUR", field: WRONG[field]}
            with pytest.raises(RgsError) as wrong:
                await wallet.get_balance(**requested)
            assert wrong.value.field == field


REPORTED = opening(ulid(1))
BOUGHT = purchase(ulid(1), SESSION)
STAGE = stage(SESSION, PARTICIPATION, 1, 500)
END = ParticipationEnd(ulid(1), SESSION, PARTICIPATION, 0, 0, NOW_MS)
DAY = DayAlignment(ulid(1), "op", "EUR", format_date(NOW_MS - 86_400_000), NOTHING)
BOTH: list[tuple[str, Any, str, Any]] = [
    ("open_session", REPORTED, "transaction_id", NO_ULID),
    ("open_session", REPORTED, "participation_cap_minor", 0),
    ("buy_participation", BOUGHT, "transaction_id", NO_ULID),
    ("buy_participation", BOUGHT, "regulator_session_id", NO_ID),
    ("buy_participation", BOUGHT, "purchase_no", 0),
    ("buy_participation", BOUGHT, "amount_minor", 0),
    ("buy_participation", BOUGHT, "amount_minor", AMOUNT_MINOR_MAX + 1),
    ("end_participation", END, "transaction_id", NO_ULID),
    ("end_participation", END, "regulator_session_id", NO_ID),
    ("end_participation", END, "regulator_participation_id", NO_ID),
    ("end_participation", END, "final_balance_minor", -1),
    ("end_participation", END, "rounds", -1),
    ("close_session", SessionClose(ulid(1), SESSION, NOW_MS), "transaction_id", NO_ULID),
    ("close_session", SessionClose(ulid(1), SESSION, NOW_MS), "regulator_session_id", NO_ID),
    ("align_day", DAY, "transaction_id", NO_ULID),
    ("report_modules", modules(ulid(1)), "transaction_id", NO_ULID),
]


@pytest.mark.parametrize(("method", "message", "field", "value"), BOTH)
async def test_a_message_to_the_regulator_names_the_field_that_is_wrong(
    regulator: Any, method: str, message: Any, field: str, value: Any
) -> None:
    with pytest.raises(RgsError) as refused:
        await getattr(regulator, method)(replace(message, **{field: value}))
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("field", "value"),
    [("regulator_session_id", NO_ID), ("regulator_participation_id", NO_ID), ("stage_no", 0), ("available_minor", -1),
     ("staked_minor", -1), ("returned_minor", -1)],
)  # fmt: skip
async def test_a_stage_names_the_field_that_is_wrong(regulator: Any, field: str, value: Any) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        await regulator.report_stages(ulid(1), [replace(STAGE, **{field: value})])
    assert refused.value.field == field
    with pytest.raises(InvalidFieldError) as unnamed:
        await regulator.report_stages(NO_ULID, [STAGE])
    assert unnamed.value.field == "transaction_id"


@pytest.mark.parametrize("name", list(DayTotals.__dataclass_fields__))
async def test_a_total_of_a_day_is_named(regulator: Any, name: str) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        await regulator.align_day(replace(DAY, totals=replace(NOTHING, **{name: -1})))
    assert refused.value.field == name


EMBEDDED: list[tuple[str, Any, str, Any]] = [
    ("open_session", REPORTED, "currency", "eur"),
    ("open_session", REPORTED, "jurisdiction", NO_NAME),
    ("open_session", REPORTED, "operator", NO_NAME),
    ("open_session", REPORTED, "reference", NO_REFERENCE),
    ("open_session", REPORTED, "ruleset", NO_NAME),
    ("buy_participation", BOUGHT, "player", NO_REFERENCE),
    ("buy_participation", BOUGHT, "reference", NO_REFERENCE),
    ("align_day", DAY, "operator", NO_NAME),
    ("align_day", DAY, "currency", "eur"),
    ("report_modules", modules(ulid(1)), "node", NO_NAME),
    ("report_modules", modules(ulid(1)), "modules", ()),
]


@pytest.mark.parametrize(("method", "message", "field", "value"), EMBEDDED)
async def test_the_embedded_regulator_reads_words_too(
    tmp_path: Path, method: str, message: Any, field: str, value: Any
) -> None:
    regulator, store = make_regulator(tmp_path / "regulator.sqlite")
    with pytest.raises(RgsError) as refused:
        await getattr(regulator, method)(replace(message, **{field: value}))
    assert refused.value.field == field
    assert list(store.entries()) == []
    await regulator.close()


async def test_a_module_with_another_name_version_or_hash_is_refused(tmp_path: Path) -> None:
    regulator, _ = make_regulator(tmp_path / "regulator.sqlite")
    report = modules(ulid(1))
    first, *others = report.modules
    for field, value in (("name", NO_REFERENCE), ("version", "a b"), ("sha256", "A" * 64), ("sha1", "b" * 39)):
        with pytest.raises(InvalidFieldError) as refused:
            await regulator.report_modules(replace(report, modules=(replace(first, **{field: value}), *others)))
        assert refused.value.field == "modules"
    with pytest.raises(InvalidFieldError):
        await regulator.report_modules(replace(report, modules=(first, first)))
    await regulator.close()


async def test_no_test_regulator_where_the_jurisdiction_forbids_one(tmp_path: Path) -> None:
    regulator, _ = make_regulator(tmp_path / "regulator.sqlite")
    with pytest.raises(RgsError) as refused:
        await regulator.open_session(replace(REPORTED, test_regulator_allowed=False))
    assert (refused.value.field, refused.value.metadata) == ("jurisdiction", {"jurisdiction": "demo"})
    await regulator.close()


def test_an_amount_has_exactly_eighteen_digits_at_most() -> None:
    assert AMOUNT_MINOR_MAX == 999_999_999_999_999_999
    assert check_amount(AMOUNT_MINOR_MAX, "amount_minor", 0) == AMOUNT_MINOR_MAX
    assert check_amount(0, "amount_minor", 0) == 0
    for wrong in (-1, AMOUNT_MINOR_MAX + 1, True, 1.0):
        with pytest.raises(InvalidFieldError) as refused:
            check_amount(wrong, "amount_minor", 0)  # type: ignore[arg-type]
        assert refused.value.metadata["limit"] == (str(AMOUNT_MINOR_MAX) if wrong == AMOUNT_MINOR_MAX + 1 else "0")
        assert refused.value.field == "amount_minor"


async def test_what_is_closed_says_which_it_is(tmp_path: Path) -> None:
    wallet, _ = make_wallet(tmp_path / "wallet.sqlite")
    regulator, _ = make_regulator(tmp_path / "regulator.sqlite")
    await wallet.close()
    await regulator.close()
    with pytest.raises(WalletUnavailableError, match="the embedded wallet is closed"):
        await wallet.debit(move(1))
    with pytest.raises(RegulatorUnavailableError, match="the embedded regulator is closed"):
        await regulator.open_session(REPORTED)


async def test_an_id_that_the_server_cannot_make_is_told_before_anything_is_entered(tmp_path: Path) -> None:
    for made in ("", "N" + "0" * 15, "M" + "0" * 14, "m" + "0" * 15):
        store = make_regulator(tmp_path / "regulator.sqlite")[1]
        regulator = EmbeddedRegulator(store, lambda _prefix, made=made: made, lambda: NOW_MS)  # type: ignore[misc]
        with pytest.raises(RegulatorUnavailableError, match="16-character id with M"):
            await regulator.open_session(REPORTED)
        assert list(store.entries()) == []
        await regulator.close()
