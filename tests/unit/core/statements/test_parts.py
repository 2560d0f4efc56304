"""Parts of a payload: what is cut out of the bytes is what formatting the parsed part gives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core.statements import KINDS, format_canonical
from rgs.core.statements.parts import action_bytes, deal_bytes, seat_bytes
from tests.support.records.shape_values import values_of


@given(values_of(KINDS["round_opening"].shape))
def test_the_deal_core_of_an_opening_is_cut_out(body: dict[str, object]) -> None:
    assert deal_bytes(format_canonical(body)) == format_canonical(body["deal"])


@given(st.sampled_from(("round_opening", "seat_opening")).flatmap(lambda kind: values_of(KINDS[kind].shape)))
def test_the_seat_of_an_opening_is_cut_out(body: dict[str, object]) -> None:
    assert seat_bytes(format_canonical(body)) == format_canonical(body["seat"])


@given(st.sampled_from(("round_final", "seat_final")).flatmap(lambda kind: values_of(KINDS[kind].shape)))
def test_the_actions_of_a_final_are_cut_out_one_by_one(body: dict[str, list[object]]) -> None:
    assert action_bytes(format_canonical(body)) == [format_canonical(action) for action in body["actions"]]


@pytest.mark.parametrize("part", [deal_bytes, seat_bytes, action_bytes])
def test_a_payload_without_the_part_is_an_error(part: object) -> None:
    assert callable(part)
    with pytest.raises(ValueError, match="not found"):
        part(format_canonical({"kind": "event"}))
