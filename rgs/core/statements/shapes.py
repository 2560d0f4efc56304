"""Shapes of signed JSON: small values that check a parsed document and describe themselves as JSON Schema.

`check_shape` compares a value with a shape and names the path of the first fault. `canonical_pattern` checks the same
in one pass over the bytes, without a name. `json_schema` gives the shape to outsiders (docs/schemas). Unknown keys are
refused everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rgs.core.errors import FormatError


@dataclass(frozen=True)
class Text:
    """A string that matches `pattern` whole."""

    pattern: str
    note: str = ""
    compiled: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "compiled", re.compile(self.pattern, re.ASCII))


@dataclass(frozen=True)
class Flag:
    """true or false."""


@dataclass(frozen=True)
class Array:
    """A list of one shape, at most `most` long."""

    of: Shape
    most: int


@dataclass(frozen=True)
class Record:
    """An object with exactly the required keys and any of the optional ones."""

    required: Mapping[str, Shape]
    optional: Mapping[str, Shape] = field(default_factory=dict)


Shape = Text | Flag | Array | Record


def one_of(*values: str) -> Text:
    """A closed vocabulary."""
    return Text("|".join(re.escape(value) for value in values))


def check_shape(shape: Shape, value: Any, path: str = "") -> None:
    """FormatError naming the path of the first fault, or nothing."""
    if isinstance(shape, Text):
        if type(value) is not str or shape.compiled.fullmatch(value) is None:
            raise FormatError(f"{path or 'the value'} is not of the form {shape.pattern}", field=path)
    elif isinstance(shape, Record):
        if type(value) is not dict:
            raise FormatError(f"{path or 'the value'} is not an object", field=path)
        for key, inner in shape.required.items():
            if key not in value:
                raise FormatError(f"{path}.{key} is missing", field=f"{path}.{key}")
            check_shape(inner, value[key], f"{path}.{key}")
        if len(value) != len(shape.required):
            for key in value.keys() - shape.required.keys():
                if key not in shape.optional:
                    raise FormatError(f"{path}.{key} is not known", field=f"{path}.{key}")
                check_shape(shape.optional[key], value[key], f"{path}.{key}")
    elif isinstance(shape, Array):
        if type(value) is not list:
            raise FormatError(f"{path or 'the value'} is not a list", field=path)
        if len(value) > shape.most:
            raise FormatError(f"{path} has {len(value)} items, more than {shape.most}", field=path, limit=shape.most)
        for index, item in enumerate(value):
            check_shape(shape.of, item, f"{path}[{index}]")
    elif type(value) is not bool:
        raise FormatError(f"{path or 'the value'} is neither true nor false", field=path)


def canonical_pattern(shape: Shape) -> str:
    """A regular expression of exactly the canonical bytes of the shape's values: form and shape in one pass.

    It is exact, because no Text matches a quote, a backslash or anything but printable ASCII: nothing is escaped (a
    test checks every one).
    """
    if isinstance(shape, Text):
        return f'"(?:{shape.pattern})"'
    if isinstance(shape, Array):
        item = canonical_pattern(shape.of)
        return rf"\[(?:{item}(?:,{item}){{0,{shape.most - 1}}})?\]"
    if isinstance(shape, Record):
        return rf"\{{{_members_pattern(shape, sorted({**shape.required, **shape.optional}), comma='')}\}}"
    return "(?:true|false)"


def _members_pattern(shape: Record, keys: list[str], *, comma: str) -> str:
    """The members from these keys on; `comma` is empty for the first member."""
    if not keys:
        return ""
    key, *others = keys
    rest = _members_pattern(shape, others, comma=",")
    if key in shape.required:
        return f'{comma}"{key}":{canonical_pattern(shape.required[key])}{rest}'
    member = f'{comma}"{key}":{canonical_pattern(shape.optional[key])}'
    if comma:
        return f"(?:{member})?{rest}"
    return f"(?:{member}{rest}|{_members_pattern(shape, others, comma='')})"


def json_schema(shape: Shape) -> dict[str, Any]:
    """The same shape in JSON Schema 2020-12 terms."""
    if isinstance(shape, Text):
        described: dict[str, Any] = {"type": "string", "pattern": f"^(?:{shape.pattern})$"}
        if shape.note:
            described["description"] = shape.note
        return described
    if isinstance(shape, Array):
        return {"type": "array", "items": json_schema(shape.of), "maxItems": shape.most}
    if isinstance(shape, Record):
        return {
            "type": "object",
            "properties": {key: json_schema(inner) for key, inner in {**shape.required, **shape.optional}.items()},
            "required": sorted(shape.required),
            "additionalProperties": False,
        }
    return {"type": "boolean"}
