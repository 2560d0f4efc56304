"""Shapes: the walk, the pattern over canonical bytes and the JSON Schema say the same."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core.errors import FormatError
from rgs.core.statements import KINDS, format_canonical
from rgs.core.statements.lines import PRIVATE_BLOCK
from rgs.core.statements.shapes import (
    Array,
    Flag,
    Record,
    Shape,
    Text,
    canonical_pattern,
    check_shape,
    json_schema,
    one_of,
)
from tests.support.records.shape_values import JSON, values_of

SHAPE = Record(
    {"b": Text("[0-9]+", "a number"), "d": Array(Flag(), 2)},
    {"a": one_of("x", "y.z"), "c": Record({}, {"p": Flag(), "q": Flag()}), "e": Flag()},
)
LEADING = Record({"c": Flag()}, {"a": Flag(), "b": Flag(), "d": Flag()})
OPTIONAL = Record({}, {"a": Flag(), "b": Array(Text("[a-z]"), 1), "c": Flag()})
ALL = (SHAPE, LEADING, OPTIONAL, *(kind.shape for kind in KINDS.values()), PRIVATE_BLOCK)


def accepts(shape: Shape, value: Any) -> bool:
    try:
        check_shape(shape, value)
    except FormatError:
        return False
    return True


def pattern_accepts(shape: Shape, value: Any) -> bool:
    return re.fullmatch(canonical_pattern(shape).encode(), format_canonical(value)) is not None


@pytest.mark.slow
@given(st.data(), st.sampled_from(ALL))
def test_three_readings_accept_every_value_of_a_shape(data: st.DataObject, shape: Shape) -> None:
    value = data.draw(values_of(shape))
    assert accepts(shape, value)
    assert pattern_accepts(shape, value)
    jsonschema.validate(value, json_schema(shape))


@pytest.mark.slow
@given(st.data(), st.sampled_from(ALL))
def test_three_readings_agree_on_a_value_that_was_changed(data: st.DataObject, shape: Record) -> None:
    value = data.draw(values_of(shape))
    key = data.draw(st.sampled_from([*shape.required, *shape.optional, "other"]))
    if data.draw(st.booleans()):
        value.pop(key, None)
    else:
        value[key] = data.draw(JSON)
    right = accepts(shape, value)
    assert pattern_accepts(shape, value) == right
    assert jsonschema.Draft202012Validator(json_schema(shape)).is_valid(value) == right


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("x", ""),
        ({"d": []}, ".b"),
        ({"b": "1x", "d": []}, ".b"),
        ({"b": True, "d": []}, ".b"),
        ({"b": "1", "d": "x"}, ".d"),
        ({"b": "1", "d": [True, True, True]}, ".d"),
        ({"b": "1", "d": [True, "true"]}, ".d[1]"),
        ({"b": "1", "d": [], "f": "x"}, ".f"),
        ({"a": "yz", "b": "1", "d": []}, ".a"),
        ({"b": "1", "c": {"p": "no"}, "d": []}, ".c.p"),
        ({"b": "1", "c": [], "d": []}, ".c"),
    ],
)
def test_the_walk_names_the_first_fault(value: Any, field: str) -> None:
    with pytest.raises(FormatError) as refused:
        check_shape(SHAPE, value)
    assert refused.value.field == field


def test_a_line_feed_at_the_end_is_no_part_of_a_text() -> None:
    with pytest.raises(FormatError):
        check_shape(Text("[a-z]+"), "abc\n")


def texts_of(shape: Shape) -> Iterator[Text]:
    if isinstance(shape, Text):
        yield shape
    elif isinstance(shape, Array):
        yield from texts_of(shape.of)
    elif isinstance(shape, Record):
        for inner in (*shape.required.values(), *shape.optional.values()):
            yield from texts_of(inner)


TEXTS = sorted({text.pattern for shape in ALL for text in texts_of(shape)})


@pytest.mark.parametrize("pattern", TEXTS)
def test_no_text_matches_what_would_have_to_be_escaped(pattern: str) -> None:
    # What the pattern may hold at any place: the characters of its classes and literals, read by Python's own parser.
    for character in allowed(sys.modules["re._parser"].parse(pattern, re.ASCII)):
        assert 0x20 <= character < 0x7F
        assert chr(character) not in '"\\'


def allowed(parsed: Any) -> Iterator[int]:
    for operation, argument in parsed:
        match str(operation):
            case "LITERAL":
                yield argument
            case "IN":
                yield from allowed(argument)
            case "RANGE":
                yield from range(argument[0], argument[1] + 1)
            case "MAX_REPEAT":
                yield from allowed(argument[2])
            case "SUBPATTERN":
                yield from allowed(argument[3])
            case "BRANCH":
                for branch in argument[1]:
                    yield from allowed(branch)
            case other:
                raise AssertionError(f"this test does not know {other}")


def test_a_schema_is_json_and_closed() -> None:
    described = json_schema(SHAPE)
    assert json.loads(json.dumps(described)) == described
    assert described["additionalProperties"] is False
    assert described["properties"]["b"]["description"] == "a number"
    assert "description" not in described["properties"]["a"]
