"""rgs.core.shards: half-years and the origins that bear them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core.errors import FormatError
from rgs.core.shards import ORIGIN_MAX, format_origin, half_year, next_half_year, parse_origin
from rgs.core.times import parse_time


@pytest.mark.parametrize(
    ("time", "name"),
    [
        ("2026-01-01T00:00:00.000Z", "2026h1"),
        ("2026-06-30T23:59:59.999Z", "2026h1"),
        ("2026-07-01T00:00:00.000Z", "2026h2"),
        ("2026-12-31T23:59:59.999Z", "2026h2"),
        ("2027-01-01T00:00:00.000Z", "2027h1"),
    ],
)
def test_half_years_of_times(time: str, name: str) -> None:
    assert half_year(parse_time(time)) == name


def test_half_years_follow_one_another() -> None:
    assert [next_half_year(name) for name in ("2026h1", "2026h2", "2099h2")] == ["2026h2", "2027h1", "2100h1"]


@given(
    st.from_regex(r"[a-z0-9][a-z0-9._-]{0,20}(/[a-z0-9][a-z0-9._-]{0,20}){0,3}", fullmatch=True),
    st.integers(0, 4_102_444_800_000).map(half_year),
)
def test_origins_there_and_back(prefix: str, name: str) -> None:
    assert parse_origin(format_origin(prefix, name)) == (prefix, name)


@pytest.mark.parametrize(
    ("prefix", "name"),
    [
        ("", "2026h2"),
        ("a", "2026h3"),
        ("a", "2026"),
        ("a", ""),
        ("a b", "2026h2"),
        ("a+b", "2026h2"),
        ("a/", "2026h2"),
        ("/a", "2026h2"),
        ("A", "2026h2"),
        ("a\n", "2026h2"),
        ("a", "2026h2\n"),
        ("a" * (ORIGIN_MAX - 6), "2026h2"),
    ],
)
def test_what_is_no_origin_is_refused(prefix: str, name: str) -> None:
    with pytest.raises(FormatError):
        format_origin(prefix, name)
