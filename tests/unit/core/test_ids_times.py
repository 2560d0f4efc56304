"""Ids and times: every form is checked from both sides, and every parse is the inverse of its format."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core.errors import FormatError, InvalidFieldError
from rgs.core.ids import (
    check_name,
    check_reference,
    check_request_id,
    check_ulid,
    format_game_code,
    format_request_id,
    format_ulid,
    ulid_time_ms,
)
from rgs.core.times import TIME_MS_MAX, format_date, format_time, format_time_of_day, parse_date, parse_time

MOMENTS = st.integers(0, TIME_MS_MAX)
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


# --- ULIDs ------------------------------------------------------------------------------------------------------------


def test_a_ulid_is_48_bits_of_time_then_80_random_bits() -> None:
    # The first example is that of the ULID specification (ulid/spec, "01ARZ3NDEKTSV4RRFFQ69G5FAV").
    random = (0xD6764C61EFB99302BD5B).to_bytes(10, "big")
    assert format_ulid(1469922850259, random) == "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    assert format_ulid(0, bytes(10)) == "0" * 26
    assert format_ulid((1 << 48) - 1, b"\xff" * 10) == "7" + "Z" * 25


def test_a_request_id_is_a_uuid_of_version_7() -> None:
    # RFC 9562, A.6: 2022-02-22 14:22:22 -05:00, rand_a cc3, rand_b 18c4dc0c0c07398f.
    random = bytes.fromhex("0cc3" + "18c4dc0c0c07398f")
    assert format_request_id(1_645_557_742_000, random) == "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"


@given(st.integers(0, (1 << 48) - 1), st.binary(min_size=10, max_size=10))
def test_a_request_id_has_its_time_in_front_and_is_taken(time_ms: int, random: bytes) -> None:
    made = format_request_id(time_ms, random)
    assert check_request_id(made) == made
    assert (uuid.UUID(made).version, uuid.UUID(made).variant) == (7, uuid.RFC_4122)
    assert uuid.UUID(made).int >> 80 == time_ms


@pytest.mark.parametrize(("time_ms", "length"), [(-1, 10), (1 << 48, 10), (0, 9), (0, 11)])
def test_a_request_id_takes_48_bits_and_10_bytes(time_ms: int, length: int) -> None:
    with pytest.raises(FormatError):
        format_request_id(time_ms, bytes(length))


@given(st.integers(0, (1 << 48) - 1), st.binary(min_size=10, max_size=10))
def test_a_ulid_gives_back_what_it_was_made_of(time_ms: int, random: bytes) -> None:
    text = format_ulid(time_ms, random)
    number = 0
    for character in text:
        number = number * 32 + CROCKFORD.index(character)
    assert (number >> 80, (number & (1 << 80) - 1).to_bytes(10, "big")) == (time_ms, random)
    assert check_ulid(text, "id") == text
    assert ulid_time_ms(text) == time_ms


def test_what_is_no_ulid_tells_no_time() -> None:
    assert [ulid_time_ms(text) for text in ("", "STRAY", "8" + "0" * 25, "0" * 25 + "u")] == [None] * 4


@given(*[st.tuples(st.integers(0, (1 << 48) - 1), st.binary(min_size=10, max_size=10))] * 2)
def test_ulids_sort_as_their_times(one: tuple[int, bytes], other: tuple[int, bytes]) -> None:
    assert (format_ulid(*one) < format_ulid(*other)) == (one < other)


@pytest.mark.parametrize(
    ("time_ms", "random"), [(-1, bytes(10)), (1 << 48, bytes(10)), (0, bytes(9)), (0, bytes(11)), (0, b"")]
)
def test_a_ulid_out_of_bounds_is_refused(time_ms: int, random: bytes) -> None:
    with pytest.raises(FormatError, match="48 bits"):
        format_ulid(time_ms, random)


GOOD_ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@pytest.mark.parametrize(
    "text",
    [
        *("", GOOD_ULID[:-1], GOOD_ULID + "0", GOOD_ULID.lower(), "8" + GOOD_ULID[1:], GOOD_ULID + "\n"),
        *(GOOD_ULID[:-1] + letter for letter in "ILOUé\u0661-"),
    ],
)
def test_what_is_no_ulid_is_refused_by_field(text: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        check_ulid(text, "round_id")
    assert caught.value.field == "round_id"
    assert len(caught.value.metadata["value"]) <= 40


# --- request ids, names, references -----------------------------------------------------------------------------------


@given(st.uuids())
def test_a_request_id_is_a_canonical_uuid(value: uuid.UUID) -> None:
    assert check_request_id(str(value)) == str(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "{12345678-1234-5678-1234-567812345678}",
        "urn:uuid:12345678-1234-5678-1234-567812345678",
        "12345678123456781234567812345678",
        "ABCDEF78-1234-5678-1234-567812345678",
        "12345678-1234-5678-1234-567812345678 ",
        "12345678-1234-5678-1234-56781234567g",
    ],
)
def test_other_forms_of_a_uuid_are_refused(text: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        check_request_id(text)
    assert caught.value.field == "request_id"


NAMES: list[tuple[Callable[[str, str], str], str, str]] = [
    (check_name, "a", "A"),
    (check_name, "0" * 64, "0" * 65),
    (check_name, "node-1.b_2", "-node"),
    (check_name, "op", "op\n"),
    (check_name, "op", "öp"),
    (check_name, "op", ""),
    (check_name, "op", "op:1"),
    (check_reference, "A", ""),
    (check_reference, "x" * 64, "x" * 65),
    (check_reference, "Player:1.b_c-d", ":Player"),
    (check_reference, "anna", "anna "),
    (check_reference, "anna", "\u0661"),
    (check_reference, "anna", "an/na"),
]


@pytest.mark.parametrize(("check", "good", "bad"), NAMES)
def test_names_and_references(check: Callable[[str, str], str], good: str, bad: str) -> None:
    assert check(good, "player") == good
    with pytest.raises(InvalidFieldError) as caught:
        check(bad, "player")
    assert caught.value.field == "player"
    assert caught.value.metadata["limit"] == "64"
    assert len(caught.value.metadata["value"]) <= 80


# --- game codes (RULEBOOK R-4) ----------------------------------------------------------------------------------------


def test_a_game_code_is_the_second_of_the_start() -> None:
    start_ms = parse_time("2026-11-21T22:30:59.999Z")
    assert format_game_code(start_ms, 1) == "#22:30:59"
    assert format_game_code(start_ms, 2) == "#22:30:59-2"
    assert format_game_code(start_ms + 1, 1) == "#22:31:00"


# --- times ------------------------------------------------------------------------------------------------------------


@given(MOMENTS)
def test_a_time_comes_back(time_ms: int) -> None:
    text = format_time(time_ms)
    assert parse_time(text) == time_ms
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)
    assert text == moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert text[:10] == format_date(time_ms)
    assert text[11:19] == format_time_of_day(time_ms)


@given(MOMENTS)
def test_a_date_is_its_midnight(time_ms: int) -> None:
    midnight_ms = parse_date(format_date(time_ms))
    assert 0 <= time_ms - midnight_ms < 86_400_000
    assert midnight_ms % 86_400_000 == 0


@given(MOMENTS, MOMENTS)
def test_times_sort_as_texts(one: int, other: int) -> None:
    assert (format_time(one) < format_time(other)) == (one < other)


@pytest.mark.parametrize("time_ms", [-1, TIME_MS_MAX + 1])
def test_a_time_out_of_bounds_is_refused(time_ms: int) -> None:
    with pytest.raises(FormatError) as caught:
        format_time(time_ms)
    assert caught.value.metadata["limit"] == str(TIME_MS_MAX)


NO_TIMES = [
    *("", "2026-11-21", "2026-11-21T22:30:00Z", "2026-11-21T22:30:00.12Z", "2026-11-21T22:30:00.123456Z"),
    *("2026-11-21T22:30:00.123", "2026-11-21T22:30:00.123z", "2026-11-21 22:30:00.123Z", "2026-11-21T22:30:00.123Z\n"),
    *("2026-02-29T00:00:00.000Z", "2026-11-21T24:00:00.000Z", "2026-11-21T22:30:60.000Z", "2026-13-01T00:00:00.000Z"),
    *("2026-1-21T22:30:00.123Z", "1969-12-31T23:59:59.999Z", "10000-01-01T00:00:00.000Z", "٢٠٢٦-11-21T22:30:00.123Z"),
    *("20261121T223000.123Z", "2026-W47-6T22:30:00.123Z", "2026-11-21T22:30:00,123Z", "2026-11-21T22:30:00.123+00:00"),
]


@pytest.mark.parametrize("text", NO_TIMES)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(FormatError, match="is not a UTC time"):
        parse_time(text)


def reported_by_the_library(text: str) -> int | None:
    """The milliseconds of a text in the one form, by another reader."""
    if re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", text, re.ASCII) is None:
        return None
    try:
        moment = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
        time_ms = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    except ValueError:
        return None
    return time_ms if time_ms >= 0 else None


@given(st.one_of(st.text(max_size=30), st.from_regex(r"\A\d{4}-[01]\d-[0-3]\dT[0-2]\d:\d\d:[0-6]\d\.\d{3}Z\Z")))
def test_two_readers_agree_on_what_is_a_time(text: str) -> None:
    expected = reported_by_the_library(text)
    if expected is None:
        with pytest.raises(FormatError):
            parse_time(text)
    else:
        assert parse_time(text) == expected


@pytest.mark.parametrize("text", ["", "2026-11-21T", "2026-02-30", "21.11.2026", "2026-11-21 ", "x" * 100])
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(FormatError, match="is not a date") as caught:
        parse_date(text)
    assert len(caught.value.metadata["value"]) <= 20
