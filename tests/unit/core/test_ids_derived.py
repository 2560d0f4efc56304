"""Ids that follow from others: who has lost one makes the same one again."""

from __future__ import annotations

import hashlib

import pytest

from rgs.core.errors import FormatError
from rgs.core.ids import check_ulid, format_ulid, opening_id, payout_id, return_id, ulid_time_ms

ID = "01M7Q5CQG0ZQ8DMEQE07WCXDK0"
OTHER = "01M7Q5CQG0ZQ8DMEQE07WCXDK1"


@pytest.mark.parametrize(
    ("derive", "domain"),
    [(opening_id, "rgs/open/v1"), (payout_id, "rgs/payout/v1"), (return_id, "rgs/return/v1")],
)
def test_an_id_is_derived_as_the_page_says(derive: object, domain: str) -> None:
    """docs/money.md 3: the time of what it is derived from, then ten bytes of a hash."""
    assert callable(derive)
    digest = hashlib.sha256(domain.encode() + b"\x00" + ID.encode()).digest()
    time_ms = ulid_time_ms(ID)
    assert time_ms is not None
    assert derive(ID) == format_ulid(time_ms, digest[:10]) == check_ulid(derive(ID), "transaction_id")
    assert len({derive(ID), derive(OTHER), ID, OTHER}) == 4


def test_no_two_uses_share_an_id() -> None:
    assert len({opening_id(ID), payout_id(ID), return_id(ID)}) == 3
    # Fixed for ever: a version that made another one would pay twice what this one has paid.
    assert (payout_id(ID), return_id(ID)) == ("01M7Q5CQG0RS5366HVC66P8F4C", "01M7Q5CQG06DQ5ZMFFX66S6CSX")


def test_nothing_is_derived_from_what_is_no_id_of_ours() -> None:
    with pytest.raises(FormatError, match="derived from a ULID only"):
        payout_id("p-1")
