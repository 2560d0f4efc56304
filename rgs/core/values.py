"""A fast copy of a frozen value, and the check of an integer between two bounds."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

from rgs.core.errors import InvalidFieldError

_Value = TypeVar("_Value")


def changed(value: _Value, **given: Any) -> _Value:
    """A copy of a frozen dataclass without slots, with some fields changed; TypeError for an unknown field.

    Like `dataclasses.replace`, but the fields are copied as one mapping: a constructor would set some thirty fields one
    by one on every step of a round. A `__post_init__` would not run, so a class with one is a TypeError too.
    """
    kind = type(value)
    if not given.keys() <= _names_of(kind):  # type: ignore[arg-type]
        raise TypeError(f"{kind.__name__} has no such field")
    new: _Value = object.__new__(kind)
    state = new.__dict__
    state |= value.__dict__
    state |= given
    return new


@cache
def _names_of(kind: type[Any]) -> frozenset[str]:
    """The names of the fields; TypeError for a class that checks itself when it is made."""
    if hasattr(kind, "__post_init__"):
        raise TypeError(f"{kind.__name__} checks itself when it is made")
    return frozenset(one.name for one in fields(kind))


def check_range(value: int, field: str, least: int, most: int) -> int:
    """The value if it is a whole number from `least` to `most`; InvalidFieldError with the bound that it breaks."""
    if type(value) is int and least <= value <= most:
        return value
    if type(value) is not int:
        raise InvalidFieldError(f"{field} {value!r} is not a whole number", field=field, limit=least, value=value)
    which, limit = ("below", least) if value < least else ("above", most)
    raise InvalidFieldError(f"{field} {value} is {which} {limit}", field=field, limit=limit, value=value)
