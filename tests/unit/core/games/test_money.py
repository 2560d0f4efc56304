"""Odds are paid exactly or not at all (RULEBOOK U-10)."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rgs.core.amounts import format_money, parse_money, typed_money
from rgs.core.errors import FormatError, InvalidFieldError, StakeStepError
from rgs.core.money import EVEN, LOST, PUSH, Odds, format_odds, parse_currency, parse_odds, verify_amount


@pytest.mark.parametrize(
    ("text", "odds", "returned_of_100"),
    [
        ("500:1", Odds(500), 50_100),
        ("3:2", Odds(3, 2), 250),
        ("1:1", EVEN, 200),
        ("1:4", Odds(1, 4), 125),
        ("push", PUSH, 100),
        ("lost", LOST, 0),
        ("10000:1", Odds(10_000), 1_000_100),
        ("19999:2", Odds(19_999, 2), 1_000_050),
    ],
)
def test_odds(text: str, odds: Odds, returned_of_100: int) -> None:
    assert parse_odds(text) == odds
    assert format_odds(odds) == text
    assert odds.returned_minor(100) == returned_of_100
    assert odds.returned_per_unit == Fraction(returned_of_100, 100)


@pytest.mark.parametrize("stake_minor", [1, 3, 99_999])
def test_half_a_unit_is_refused(stake_minor: int) -> None:
    with pytest.raises(StakeStepError) as caught:
        Odds(3, 2).returned_minor(stake_minor)
    assert caught.value.metadata == {"odds": "3:2", "value": str(stake_minor), "limit": "2", "rule": "U-10"}


def test_exactness_is_a_matter_of_the_step() -> None:
    assert [Odds(3, 2).is_exact_for(step) for step in (1, 2, 3, 4)] == [False, True, False, True]
    assert all(odds.is_exact_for(1) for odds in (EVEN, PUSH, LOST))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1:",
        ":1",
        "0:1",
        "1:0",
        "01:1",
        "1:01",
        "6:4",
        "2:2",
        "-1:1",
        "1.5:1",
        "1:1 ",
        "10001:1",
        "20000:1",
        "Push",
        "3/2",
    ],
)
def test_other_texts_are_no_odds(text: str) -> None:
    with pytest.raises(FormatError):
        parse_odds(text)


@pytest.mark.parametrize("text", ["EUR", "GBP", "CHF"])
def test_the_shape_of_a_currency(text: str) -> None:
    assert parse_currency(text) == text


@pytest.mark.parametrize("text", ["", "eur", "EU", "EURO", "E1R", "EUR\n", "ÄÖÜ"])
def test_other_shapes_are_no_currency(text: str) -> None:
    with pytest.raises(FormatError, match="currency"):
        parse_currency(text)


@pytest.mark.parametrize("amount", [-1, True, 1.0, "1", None])
def test_what_is_no_amount(amount: int) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        verify_amount(amount, "balance_minor", rule="R-3")
    assert caught.value.field == "balance_minor"
    assert caught.value.metadata["rule"] == "R-3"


def test_amounts() -> None:
    verify_amount(0, "balance_minor")
    verify_amount(10**15, "balance_minor")


@pytest.mark.parametrize(
    ("amount_minor", "currency", "reported"),
    [
        (25_000, "EUR", "250.00 EUR"),
        (25_000, "JPY", "25,000 JPY"),
        (25_000, "TND", "25.000 TND"),
        (25_000, "CLF", "2.5000 CLF"),
        (5, "EUR", "0.05 EUR"),
        (-123_405, "EUR", "-1,234.05 EUR"),
        (0, "KWD", "0.000 KWD"),
        (25_000, "XTS", "25,000 minor units of XTS"),
        (25_000, "", "25,000 minor units of an unknown currency"),
    ],
)
def test_people_read_major_units(amount_minor: int, currency: str, reported: str) -> None:
    assert format_money(amount_minor, currency) == reported


def test_a_gain_has_its_sign() -> None:
    signed = [format_money(amount_minor, "EUR", signed=True) for amount_minor in (5, 0, -5)]
    assert signed == ["+0.05 EUR", "0.00 EUR", "-0.05 EUR"]


@example(amount_minor=10**15, currency="JPY")
@example(amount_minor=10**15, currency="CLF")
@given(amount_minor=st.integers(0, 10**15), currency=st.sampled_from(["EUR", "JPY", "KWD", "CLF", "XTS"]))
def test_typed_money_is_read_back(amount_minor: int, currency: str) -> None:
    assert parse_money(typed_money(amount_minor, currency), currency) == amount_minor


@pytest.mark.parametrize(
    ("text", "currency", "amount_minor"),
    [
        ("5", "EUR", 500), ("5.", "EUR", 500), ("5,5", "EUR", 550), ("1.234", "EUR", None), ("1.234", "TND", 1234),
        (" 0.07 ", "EUR", 7), ("1,000.00", "EUR", None),
        ("5.", "JPY", None), ("5.0", "JPY", None), ("-1", "EUR", None), ("", "EUR", None), ("1" * 16, "EUR", None),
        ("10000000000000.00", "EUR", 10**15), ("10000000000000.01", "EUR", None), ("1000000000000001", "JPY", None),
        ("00000000000000000", "JPY", None),
    ],
)  # fmt: skip
def test_money_as_people_type_it(text: str, currency: str, amount_minor: int | None) -> None:
    assert parse_money(text, currency) == amount_minor
