"""Canonical JSON: one byte form per value, everything else is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core.errors import FormatError
from rgs.core.statements import PAYLOAD_BYTES_MAX, digest, format_canonical, parse_canonical
from tests.support.records.shape_values import JSON


@given(JSON)
def test_what_is_formatted_parses_to_the_same(value: Any) -> None:
    assert parse_canonical(format_canonical(value)) == value


@given(JSON)
def test_the_bytes_are_those_of_the_standard_encoder(value: Any) -> None:
    assert format_canonical(value) == json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


def test_a_known_document_has_known_bytes() -> None:
    value = {"b": ["1", True, {}], "a": 'ä"\n', "B": False, "\U0001f0a1": []}
    data = b'{"B":false,"a":"\\u00e4\\"\\n","b":["1",true,{}],"\\ud83c\\udca1":[]}'
    assert format_canonical(value) == data


@given(st.binary(max_size=40) | st.text(max_size=40).map(lambda text: text.encode()))
def test_what_parses_formats_to_the_same_bytes(data: bytes) -> None:
    try:
        value = parse_canonical(data)
    except FormatError:
        return
    assert format_canonical(value) == data


@given(JSON, st.sampled_from([{"indent": 1}, {"separators": (", ", ":")}, {"separators": (",", ": ")}]))
def test_white_space_is_refused(value: Any, style: Any) -> None:
    data = json.dumps(value, sort_keys=True, **style).encode()
    if data == format_canonical(value):
        assert parse_canonical(data) == value
    else:
        with pytest.raises(FormatError, match="canonical"):
            parse_canonical(data)


@pytest.mark.parametrize(
    "data",
    [
        b'{"b":"1","a":"2"}',
        b'{"a":"1","a":"2"}',
        b'{"a":"1","a":"1"}',
        b' {"a":"1"}',
        b'{"a":"1"}\n',
        b'{"a":"\\u0061"}',
        b'{"a":"\\/"}',
        b'["\\u00E4"]',
    ],
)
def test_another_form_of_the_same_value_is_refused(data: bytes) -> None:
    assert json.loads(data) is not None
    with pytest.raises(FormatError, match="canonical"):
        parse_canonical(data)


@pytest.mark.parametrize("data", [b"1", b"-1", b"1.5", b"[0]", b"NaN", b"Infinity", b'{"a":1e3}'])
def test_a_number_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match="a number"):
        parse_canonical(data)


@pytest.mark.parametrize("data", [b"", b"{", b'{"a"}', b'"\xc3\xa4"', b"\xff", b"[" * 20_000 + b"]" * 20_000])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match="not JSON"):
        parse_canonical(data, limit=100_000)


@pytest.mark.parametrize("data", [b"null", b"[null]", b'{"a":[true,{"b":null}]}'])
def test_null_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match="null"):
        parse_canonical(data)


def test_the_word_null_is_a_string_like_any_other() -> None:
    assert parse_canonical(b'{"null":["null"]}') == {"null": ["null"]}


def test_the_limit_is_on_bytes() -> None:
    whole = b'"' + b"x" * (PAYLOAD_BYTES_MAX - 2) + b'"'
    assert parse_canonical(whole) == "x" * (PAYLOAD_BYTES_MAX - 2)
    with pytest.raises(FormatError) as refused:
        parse_canonical(whole[:-1] + b'x"')
    assert refused.value.metadata == {"limit": str(PAYLOAD_BYTES_MAX), "value": str(PAYLOAD_BYTES_MAX + 1)}


def test_domains_of_digests_are_kept_apart() -> None:
    assert digest("a", b"b", b"c") == digest("a", b"bc")
    assert digest("a", b"b") != digest("ab")
    assert digest("a", b"") != digest("a\x00")
