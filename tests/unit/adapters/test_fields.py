"""Every value that is none is refused by its own name, by the embedded peers and by the clients over gRPC alike.

The clients over gRPC speak to nobody here: what is refused must be refused before anything is sent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rgs.adapters.embedded.regulator import EmbeddedRegister
from rgs.adapters.grpc.peer import PeerSettings
from rgs.adapters.grpc.regulator import GrpcCentralSystem
from rgs.adapters.grpc.wallet import GrpcWallet
from rgs.core.errors import InvalidFieldError, RegulatorUnavailableError, RgsError, WalletUnavailableError
from rgs.core.times import format_date
from rgs.ports.amounts import AMOUNT_MINOR_MAX, check_amount
from rgs.ports.regulator import DayAlignment, DayTotals, ParticipationEnd, SessionClose
from rgs.ports.wallet import Leg, Wallet
from tests.support.adapters.books import (
    NOTHING,
    NOW_MS,
    asked_by,
    make_register,
    make_wallet,
    modules,
    move,
    opening,
    purchase,
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
async def central(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    made: Any = make_register(tmp_path / "register.sqlite")[0]
    if request.param == "grpc":
        await made.close()
        made = GrpcCentralSystem("central", nowhere(), new_id=lambda: ulid(1), now_ms=lambda: NOW_MS)
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
async def test_a_movement_names_the_field_that_is_wrong(wallet: Wallet, method: str, field: str) -> None:
    wrong: dict[str, Any] = {field: WRONG[field]}
    with pytest.raises(RgsError) as refused:
        await getattr(wallet, method)(replace(asked_by(method, move(1)), **wrong))
    assert refused.value.field == field


@pytest.mark.parametrize(("method", "leg"), [("debit", Leg.BET), ("credit", Leg.RETURN), ("rollback", Leg.BET)])
@pytest.mark.parametrize("field", ["reference", "round_reference"])
async def test_a_movement_of_a_round_names_its_round(wallet: Wallet, method: str, leg: Leg, field: str) -> None:
    wrong: dict[str, Any] = {"leg": leg, "round_reference": "round-1", field: NO_REFERENCE}
    with pytest.raises(InvalidFieldError) as refused:
        await getattr(wallet, method)(replace(move(1), **wrong))
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("method", "leg"),
    [("debit", Leg.PAYOUT), ("debit", Leg.RETURN), ("credit", Leg.PURCHASE), ("credit", Leg.BET),
     ("rollback", Leg.PAYOUT), ("rollback", Leg.RETURN)],
)  # fmt: skip
async def test_money_moves_in_the_direction_of_its_leg(wallet: Wallet, method: str, leg: Leg) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        await getattr(wallet, method)(replace(move(1), leg=leg, round_reference="round-1"))
    assert refused.value.field == "leg"


@pytest.mark.parametrize(("method", "least"), [("debit", 1), ("credit", 0), ("rollback", 1)])
async def test_the_least_amount_is_exact(wallet: Wallet, method: str, least: int) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        await getattr(wallet, method)(asked_by(method, move(1, least - 1)))
    assert (refused.value.field, refused.value.metadata["limit"]) == ("amount_minor", str(least))


async def test_a_question_names_the_field_that_is_wrong(wallet: Wallet) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        await wallet.get_transaction(operator="op", player="anna", transaction_id=NO_ULID)
    assert refused.value.field == "transaction_id"
    if isinstance(wallet, GrpcWallet):
        for field in ("operator", "player", "currency"):
            asked: dict[str, Any] = {"operator": "op", "player": "anna", "currency": "EUR", field: WRONG[field]}
            with pytest.raises(RgsError) as wrong:
                await wallet.get_balance(**asked)
            assert wrong.value.field == field


TOLD = opening(ulid(1))
BOUGHT = purchase(ulid(1), SESSION)
STAGE = stage(SESSION, PARTICIPATION, 1, 500)
END = ParticipationEnd(ulid(1), SESSION, PARTICIPATION, 0, 0, NOW_MS)
DAY = DayAlignment(ulid(1), "op", "EUR", format_date(NOW_MS - 86_400_000), NOTHING)
BOTH: list[tuple[str, Any, str, Any]] = [
    ("open_session", TOLD, "transaction_id", NO_ULID),
    ("open_session", TOLD, "participation_cap_minor", 0),
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
async def test_a_message_to_the_central_system_names_the_field_that_is_wrong(
    central: Any, method: str, message: Any, field: str, value: Any
) -> None:
    with pytest.raises(RgsError) as refused:
        await getattr(central, method)(replace(message, **{field: value}))
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("field", "value"),
    [("regulator_session_id", NO_ID), ("regulator_participation_id", NO_ID), ("stage_no", 0), ("available_minor", -1),
     ("staked_minor", -1), ("returned_minor", -1)],
)  # fmt: skip
async def test_a_stage_names_the_field_that_is_wrong(central: Any, field: str, value: Any) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        await central.report_stages(ulid(1), [replace(STAGE, **{field: value})])
    assert refused.value.field == field
    with pytest.raises(InvalidFieldError) as unnamed:
        await central.report_stages(NO_ULID, [STAGE])
    assert unnamed.value.field == "transaction_id"


@pytest.mark.parametrize("name", list(DayTotals.__dataclass_fields__))
async def test_a_total_of_a_day_is_named(central: Any, name: str) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        await central.align_day(replace(DAY, totals=replace(NOTHING, **{name: -1})))
    assert refused.value.field == name


EMBEDDED: list[tuple[str, Any, str, Any]] = [
    ("open_session", TOLD, "currency", "eur"),
    ("open_session", TOLD, "jurisdiction", NO_NAME),
    ("open_session", TOLD, "operator", NO_NAME),
    ("open_session", TOLD, "reference", NO_REFERENCE),
    ("open_session", TOLD, "ruleset", NO_NAME),
    ("buy_participation", BOUGHT, "player", NO_REFERENCE),
    ("buy_participation", BOUGHT, "reference", NO_REFERENCE),
    ("align_day", DAY, "operator", NO_NAME),
    ("align_day", DAY, "currency", "eur"),
    ("report_modules", modules(ulid(1)), "node", NO_NAME),
    ("report_modules", modules(ulid(1)), "modules", ()),
]


@pytest.mark.parametrize(("method", "message", "field", "value"), EMBEDDED)
async def test_the_embedded_register_reads_words_too(
    tmp_path: Path, method: str, message: Any, field: str, value: Any
) -> None:
    register, store = make_register(tmp_path / "register.sqlite")
    with pytest.raises(RgsError) as refused:
        await getattr(register, method)(replace(message, **{field: value}))
    assert refused.value.field == field
    assert list(store.entries()) == []
    await register.close()


async def test_a_module_with_another_name_version_or_hash_is_refused(tmp_path: Path) -> None:
    register, _ = make_register(tmp_path / "register.sqlite")
    report = modules(ulid(1))
    first, *others = report.modules
    for field, value in (("name", NO_REFERENCE), ("version", "a b"), ("sha256", "A" * 64), ("sha1", "b" * 39)):
        with pytest.raises(InvalidFieldError) as refused:
            await register.report_modules(replace(report, modules=(replace(first, **{field: value}), *others)))
        assert refused.value.field == "modules"
    with pytest.raises(InvalidFieldError):
        await register.report_modules(replace(report, modules=(first, first)))
    await register.close()


async def test_no_test_register_where_the_jurisdiction_forbids_one(tmp_path: Path) -> None:
    register, _ = make_register(tmp_path / "register.sqlite")
    with pytest.raises(RgsError) as refused:
        await register.open_session(replace(TOLD, test_register_allowed=False))
    assert (refused.value.field, refused.value.metadata) == ("jurisdiction", {"jurisdiction": "demo"})
    await register.close()


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
    register, _ = make_register(tmp_path / "register.sqlite")
    await wallet.close()
    await register.close()
    with pytest.raises(WalletUnavailableError, match="the embedded wallet is closed"):
        await wallet.debit(move(1))
    with pytest.raises(RegulatorUnavailableError, match="the embedded register is closed"):
        await register.open_session(TOLD)


async def test_an_id_that_the_server_cannot_make_is_told_before_anything_is_entered(tmp_path: Path) -> None:
    for made in ("", "N" + "0" * 15, "M" + "0" * 14, "m" + "0" * 15):
        store = make_register(tmp_path / "register.sqlite")[1]
        register = EmbeddedRegister(store, lambda _prefix, made=made: made, lambda: NOW_MS)  # type: ignore[misc]
        with pytest.raises(RegulatorUnavailableError, match="16-character id with M"):
            await register.open_session(TOLD)
        assert list(store.entries()) == []
        await register.close()
